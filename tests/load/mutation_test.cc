// Seeded mutations of good files, checksum repaired: load returns a net or an error, and a net that loads can be saved. tests/fuzz
// continues through resolve, infer, transform and compile, without end.
#include <gtest/gtest.h>

#include <random>

#include "load/header.h"
#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using Bytes = std::vector<std::byte>;

// Makes one to four small damages: a flipped bit, a byte, a word of an interesting value, a copied or removed stretch.
void mutate(Bytes& bytes, size_t first, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t left = 1 + below(4); left > 0 && bytes.size() > first + 16; --left) {
    const size_t at = first + below(bytes.size() - first - 8);
    static constexpr uint32_t words[] = {0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 4, 8};
    const uint32_t word = words[below(std::size(words))];
    switch (below(5)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(below(256));
        break;
      case 2:
        std::memcpy(&bytes[at & ~size_t{3}], &word, sizeof(word));
        break;
      case 3:
        std::memmove(&bytes[at], &bytes[first + below(bytes.size() - first - 8)], 8);
        break;
      default: {
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(1 + below(8)));
      }
    }
  }
}

struct Outcome {
  int loaded = 0;
  int refused = 0;
};

// Loads the bytes; a net that loads must survive a round trip.
void try_load(const Bytes& bytes, Outcome* outcome) {
  const auto net = load_net_bytes(bytes, "");
  ++(net.ok() ? outcome->loaded : outcome->refused);
  if (!net.ok()) {
    ASSERT_NE(net.status().code(), Code::internal) << net.status().text();
    ASSERT_FALSE(net.status().diagnostic().message.empty());
    return;
  }
  const auto again = net_to_bytes(*net);
  ASSERT_TRUE(again.ok()) << again.status().text();
  const auto text = net_to_json(*net);
  ASSERT_TRUE(text.ok()) << text.status().text();
  const auto reread = load_net_bytes(testing::bytes_of(*text), "");
  ASSERT_TRUE(reread.ok()) << reread.status().text();
  ASSERT_EQ(*net_to_bytes(*reread), *again);
}

TEST(Mutations, OfTheBinaryForm) {
  const Bytes good = *net_to_bytes(testing::sample_net());
  std::mt19937_64 random(20261121);
  Outcome outcome;
  for (int i = 0; i < 15'000; ++i) {
    Bytes bytes = good;
    mutate(bytes, net_header_bytes, random);
    const auto header = net_header(std::span(bytes).subspan(net_header_bytes));
    std::copy(header.begin(), header.end(), bytes.begin());
    try_load(bytes, &outcome);
    if (HasFatalFailure()) FAIL() << "mutation " << i;
  }
  // Both outcomes must be frequent, or the test covers little.
  EXPECT_GT(outcome.loaded, 500);
  EXPECT_GT(outcome.refused, 5000);
}

TEST(Mutations, OfTheTextForm) {
  const std::string text = *net_to_json(testing::sample_net());
  const auto view = testing::bytes_of(text);
  const Bytes good(view.begin(), view.end());
  std::mt19937_64 random(42);
  Outcome outcome;
  for (int i = 0; i < 5'000; ++i) {
    Bytes bytes = good;
    mutate(bytes, 1, random);
    try_load(bytes, &outcome);
    if (HasFatalFailure()) FAIL() << "mutation " << i;
  }
  EXPECT_GT(outcome.loaded, 50);
  EXPECT_GT(outcome.refused, 1000);
}

}  // namespace
}  // namespace heddle
