#include "compile/prepack.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "base/checksum.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr int64_t depth = 64, columns = 16;

uint64_t xxh64(const Blob& blob) {
  return checksum({blob.data, static_cast<size_t>(blob.bytes)});
}

std::shared_ptr<const Blob> matrix(const std::vector<float>& values) {
  return Blob::copy_of(DType::f32, Shape{depth, columns}, values.data());
}

// Returns two matrices with the same XXH64 of seed 0. A lane of the hash takes word w as rotate(lane + w * prime, 31) * another, so the
// second word of a lane can cancel a change of the first.
std::pair<std::shared_ptr<const Blob>, std::shared_ptr<const Blob>> colliding_matrices() {
  constexpr uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F;
  uint64_t inverse = 1;  // of prime2 modulo 2^64
  for (int i = 0; i < 6; ++i) inverse *= 2 - prime2 * inverse;
  const auto round = [](uint64_t lane, uint64_t word) {
    lane += word * prime2;
    return (lane << 31 | lane >> 33) * prime1;
  };
  std::vector<float> a(static_cast<size_t>(depth * columns)), b;
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) - 6;
  const auto word_at = [&](const std::vector<float>& v, size_t word) {
    uint64_t bits = 0;
    std::memcpy(&bits, v.data() + 2 * word, sizeof(bits));
    return bits;
  };
  const uint64_t lane = prime1 + prime2, first = round(lane, word_at(a, 0));
  std::mt19937 random(1);  // any numbers will do
  for (;;) {
    b = a;
    b[0] = static_cast<float>(random() % 1000) - 500;
    b[1] = static_cast<float>(random() % 1000) - 500;
    const uint64_t second = word_at(a, 4) + (first - round(lane, word_at(b, 0))) * inverse;
    std::memcpy(b.data() + 8, &second, sizeof(second));
    if (b[0] != a[0] && std::fabs(b[8]) < 1e3f && std::fabs(b[9]) < 1e3f) return {matrix(a), matrix(b)};
  }
}

std::shared_ptr<const Blob> packed(PackCache& cache, const Blob& content) {
  return cache.find_or_pack(content, "copy", static_cast<uint64_t>(content.bytes), [&](void* to) {
    std::memcpy(to, content.data, static_cast<size_t>(content.bytes));
    return true;
  });
}

bool holds(const Blob& packed, const Blob& content) {
  return packed.bytes == content.bytes && std::memcmp(packed.data, content.data, static_cast<size_t>(content.bytes)) == 0;
}

TEST(PackCache, AConstantMadeToCollideIsPackedItself) {
  const auto [a, b] = colliding_matrices();
  ASSERT_EQ(xxh64(*a), xxh64(*b));
  ASSERT_FALSE(holds(*a, *b));
  PackCache cache;
  const auto of_a = packed(cache, *a), of_b = packed(cache, *b);
  EXPECT_TRUE(holds(*of_a, *a));
  EXPECT_TRUE(holds(*of_b, *b));
  EXPECT_EQ(cache.bytes(), 2 * a->bytes);
}

TEST(PackCache, TwoMatrixProductsHaveTheirOwnWeights) {
  const auto [a, b] = colliding_matrices();
  constexpr int64_t rows = 5;
  NetBuilder builder("collision");
  const ValueId x = builder.input("x", DType::f32, Shape{rows, depth});
  builder.output(builder.add1("MatMul", "of_a", {x, builder.constant("a", a)}));
  builder.output(builder.add1("MatMul", "of_b", {x, builder.constant("b", b)}));
  Session session = open(runtime(), builder.finish());
  std::vector<float> ones(static_cast<size_t>(rows * depth), 1);
  auto results = session.run({{DType::f32, Shape{rows, depth}, ones.data()}});
  ASSERT_TRUE(results.ok()) << results.status().text();
  const Blob* weights[] = {a.get(), b.get()};
  for (size_t which = 0; which < 2; ++which)
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<double>(reinterpret_cast<const float*>(weights[which]->data)[k * columns + column]);
      EXPECT_NEAR(static_cast<const float*>((*results)[which].data())[column], sum, 1e-2) << which << ", column " << column;
    }
}

TEST(PackCache, BytesAreComparedWhereBothAreAtHand) {
  PackCache cache([](std::span<const std::byte>) { return std::string("all alike"); });
  std::vector<float> values(static_cast<size_t>(depth * columns), 1);
  auto a = matrix(values);
  const auto again = matrix(values);
  values[7] = 2;
  const auto b = matrix(values);
  const auto of_a = packed(cache, *a), of_b = packed(cache, *b);
  EXPECT_NE(of_a, of_b);
  EXPECT_TRUE(holds(*of_a, *a));
  EXPECT_TRUE(holds(*of_b, *b));
  EXPECT_EQ(packed(cache, *a), of_a);
  EXPECT_EQ(packed(cache, *again), of_a);
  EXPECT_EQ(packed(cache, *b), of_b);
  EXPECT_EQ(cache.size(), 2u);
  // The table keeps no original in memory.
  const std::weak_ptr<const void> owner = a->owner;
  a = nullptr;
  EXPECT_TRUE(owner.expired());
}

// The last plan that holds an entry lets go of it while a lookup, which finds the entry after it, compares its bytes: the lookup is then
// its last owner, and must not free it under the lock that freeing takes.
TEST(PackCache, AnEntryMayLoseItsPlansDuringALookup) {
  PackCache cache([](std::span<const std::byte>) { return std::string("all alike"); });
  constexpr int64_t count = 4 << 20;
  std::vector<float> values(count, 1);
  const auto original = Blob::copy_of(DType::f32, Shape{count}, values.data());
  values.back() = 2;
  const auto other = Blob::copy_of(DType::f32, Shape{count}, values.data());
  bool freed_by_lookup = false;
  for (int round = 0; round < 200 && !freed_by_lookup; ++round) {
    auto held = packed(cache, *original);
    const auto of_other = packed(cache, *other);
    const std::weak_ptr<const Blob> entry = held;
    std::atomic<bool> over{false};
    std::thread plan([&] {
      while (held.use_count() == 1 && !over.load()) std::this_thread::yield();
      held.reset();
      freed_by_lookup = !over.load() && !entry.expired();
    });
    EXPECT_EQ(packed(cache, *other), of_other);
    over.store(true);
    plan.join();
    EXPECT_TRUE(entry.expired());
    EXPECT_EQ(cache.size(), 1u);
  }
  EXPECT_TRUE(freed_by_lookup) << "no lookup was under way when the plan let go";
}

TEST(PackCache, WhatNoPlanHoldsLeavesTheTable) {
  PackCache cache;
  std::vector<std::shared_ptr<const Blob>> held;
  for (int i = 0; i < 100; ++i)
    held.push_back(packed(cache, *matrix(std::vector<float>(static_cast<size_t>(depth * columns), static_cast<float>(i)))));
  EXPECT_EQ(cache.size(), 100u);
  held.resize(1);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.bytes(), held[0]->bytes);
  held.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.bytes(), 0);
  const auto failed =
      cache.find_or_pack(*matrix(std::vector<float>(static_cast<size_t>(depth * columns))), "fails", 64, [](void*) { return false; });
  EXPECT_EQ(failed, nullptr);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PackCache, OutlivesNoPlanThatHoldsItsEntries) {
  std::shared_ptr<const Blob> held;
  const auto content = matrix(std::vector<float>(static_cast<size_t>(depth * columns), 3));
  {
    PackCache cache;
    held = packed(cache, *content);
  }
  EXPECT_TRUE(holds(*held, *content));
}

TEST(PackCache, ThreadsThatLetGoAndAskAgain) {
  PackCache cache;
  std::vector<std::shared_ptr<const Blob>> contents;
  for (int i = 0; i < 3; ++i) contents.push_back(matrix(std::vector<float>(static_cast<size_t>(depth * columns), static_cast<float>(i))));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const Blob& content = *contents[static_cast<size_t>(i + t) % contents.size()];
        EXPECT_TRUE(holds(*packed(cache, content), content));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.size(), 0u);
}

// A plugin's function that requests the constant that it is packing would wait for itself.
TEST(PackCache, WhoAsksForWhatHePacksIsRefused) {
  PackCache cache;
  const auto content = matrix(std::vector<float>(static_cast<size_t>(depth * columns), 3));
  const auto ask = [&](const char* key, const std::function<bool(void*)>& fill, bool* in_circle) {
    return cache.find_or_pack(*content, key, 64, fill, in_circle);
  };
  bool outer = false, inner = false;
  const auto goes_on = [&](void*) {
    EXPECT_EQ(ask(
                  "a", [](void*) { return true; }, &inner),
              nullptr);
    return true;  // as if no error had occurred
  };
  EXPECT_EQ(ask("a", goes_on, &outer), nullptr);
  EXPECT_TRUE(inner);
  EXPECT_TRUE(outer);
  EXPECT_EQ(cache.size(), 0u);
  // The function may pack another constant, and the same one can be packed afterwards.
  bool circle = false;
  const auto packed_inside = [&](void*) {
    return ask(
               "b", [](void*) { return true; }, &circle) != nullptr;
  };
  EXPECT_NE(ask("a", packed_inside, &circle), nullptr);
  EXPECT_FALSE(circle);
}

// Each thread packs one constant and requests the other's.
TEST(PackCache, ACircleOfThreadsEnds) {
  PackCache cache;
  const auto content = matrix(std::vector<float>(static_cast<size_t>(depth * columns), 4));
  std::atomic<int> packing{0};
  std::array<bool, 2> circle = {}, packed_other = {};
  const auto work = [&](size_t own) {
    const char* const keys[] = {"a", "b"};
    const auto fill = [&](void*) {
      ++packing;
      while (packing < 2) std::this_thread::yield();
      bool inner = false;
      packed_other[own] = cache.find_or_pack(
                              *content, keys[1 - own], 64, [](void*) { return true; }, &inner) != nullptr;
      return packed_other[own];
    };
    static_cast<void>(cache.find_or_pack(*content, keys[own], 64, fill, &circle[own]));
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_TRUE(circle[0] || circle[1]) << "somebody was told";
  EXPECT_EQ(cache.size(), 0u);
}

TEST(PackCache, WhatThrowsLeavesNothingAndOthersPackItThemselves) {
  PackCache cache;
  const auto content = matrix(std::vector<float>(static_cast<size_t>(depth * columns), 5));
  std::atomic<bool> packing{false}, asked{false};
  std::thread waits([&] {
    while (!packing) std::this_thread::yield();
    asked = true;
    const auto own = cache.find_or_pack(*content, "a", 64, [](void*) { return true; });
    EXPECT_NE(own, nullptr);
  });
  EXPECT_THROW(static_cast<void>(cache.find_or_pack(*content, "a", 64,
                                                    [&](void*) -> bool {
                                                      packing = true;
                                                      while (!asked) std::this_thread::yield();
                                                      throw 7;
                                                    })),
               int);
  waits.join();
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace heddle
