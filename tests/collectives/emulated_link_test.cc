// The link that HEDDLE_GLOO_LINK emulates: what arrives is what was sent, and no earlier than the link says.
#include "connections/emulated_link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace heddle::operators {

class RankMemory {
 public:
  char* data = nullptr;
  std::vector<std::tuple<uint64_t, uint64_t, uint64_t>> awaited{};  // tag, offset, bytes
};

}  // namespace heddle::operators

namespace heddle::ranks {
namespace {

using operators::RankClock;
using operators::RankMemory;

using Wire = std::map<uint64_t, std::string>;  // by tag

// One end of a connection within this process: what is sent has arrived at once.
class End final : public operators::RankConnections {
 public:
  explicit End(Wire& wire) : wire_(wire) {}
  RankMemory* memory(int32_t, void* data, uint64_t) override {
    RankMemory& place = places_[data];
    place.data = static_cast<char*>(data);
    return &place;
  }
  void begin() override {}
  void look() override {}
  Status send(RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) override {
    wire_[tag].assign(from.data + offset, bytes);
    return {};
  }
  Status receive(RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) override {
    into.awaited.emplace_back(tag, offset, bytes);
    return {};
  }
  Status wait(RankMemory& place, RankClock::time_point) override {
    for (const auto& [tag, offset, bytes] : place.awaited) {
      const auto sent = wire_.find(tag);
      if (sent == wire_.end() || sent->second.size() != bytes) return {HEDDLE_ERROR_DEVICE, "nothing has come"};
      std::memcpy(place.data + offset, sent->second.data(), bytes);
    }
    place.awaited.clear();
    return {};
  }
  Status idle() override { return {}; }
  void wake() override {}
  void abort() override {}
  std::vector<int32_t> missing() override { return {}; }
  std::vector<int32_t> broken() override { return {}; }
  Status report(const operators::RankReport&) override { return {}; }
  void close() override {}
  Status reports(std::vector<std::optional<operators::RankReport>>*) override { return {}; }

 private:
  Wire& wire_;
  std::map<void*, RankMemory> places_;
};

TEST(EmulatedLink, DelaysWhatArrives) {
  Wire wire;
  const LinkSettings settings = {std::chrono::milliseconds(3), 0.001};  // a million bytes a second
  EmulatedLink here(std::make_unique<End>(wire), settings), there(std::make_unique<End>(wire), settings);
  std::string sent(5000, 'a'), got(5000, ' ');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7);
  for (uint64_t round = 0; round < 3; ++round) {
    here.begin();
    there.begin();
    const RankClock::time_point begun = RankClock::now();
    ASSERT_EQ(here.send(*here.memory(1, sent.data(), sent.size()), 2 * round, 0, 3000).code, HEDDLE_OK);
    ASSERT_EQ(here.send(*here.memory(1, sent.data(), sent.size()), 2 * round + 1, 3000, 2000).code, HEDDLE_OK);
    RankMemory* const into = there.memory(0, got.data(), got.size());
    ASSERT_EQ(there.receive(*into, 2 * round, 0, 3000).code, HEDDLE_OK);
    ASSERT_EQ(there.receive(*into, 2 * round + 1, 3000, 2000).code, HEDDLE_OK);
    ASSERT_EQ(there.wait(*into, RankClock::time_point::max()).code, HEDDLE_OK);
    EXPECT_GE(RankClock::now() - begun, std::chrono::milliseconds(3 + 5)) << "the delay, and the time of the bytes";
    EXPECT_EQ(got, sent);
    got.assign(got.size(), ' ');
  }
}

TEST(EmulatedLink, EndsAtTheTimeOutAndWhenItIsAborted) {
  Wire wire;
  const LinkSettings settings = {std::chrono::hours(1), 0};
  EmulatedLink link(std::make_unique<End>(wire), settings);
  int64_t sent = 1, got = 0;
  for (const bool aborted : {false, true}) {
    ASSERT_EQ(link.send(*link.memory(1, &sent, sizeof(sent)), aborted, 0, sizeof(sent)).code, HEDDLE_OK);
    RankMemory* const into = link.memory(1, &got, sizeof(got));
    ASSERT_EQ(link.receive(*into, aborted, 0, sizeof(got)).code, HEDDLE_OK);
    if (aborted) link.abort();
    const RankClock::time_point until = aborted ? RankClock::time_point::max() : RankClock::now() + std::chrono::milliseconds(5);
    EXPECT_EQ(link.wait(*into, until).code, aborted ? HEDDLE_ERROR_CANCELLED : HEDDLE_PENDING);
  }
}

TEST(EmulatedLink, IsReadFromAText) {
  LinkSettings settings;
  ASSERT_EQ(parse_link("50,1250", &settings).code, HEDDLE_OK);
  EXPECT_EQ(settings.delay, std::chrono::microseconds(50));
  EXPECT_EQ(settings.bytes_per_ns, 1.25);
  ASSERT_EQ(parse_link("0.5,0", &settings).code, HEDDLE_OK);
  EXPECT_EQ(settings.delay, std::chrono::nanoseconds(500));
  for (const char* const text :
       {"", "50", "50,", ",1250", "50,1250,1", "50;1250", "-1,1250", "50,-1", "nan,1", "1,nan", "inf,1", "1e300,1", "x,1"}) {
    const Status status = parse_link(text, &settings);
    EXPECT_EQ(status.code, HEDDLE_ERROR_INVALID) << text;
    EXPECT_NE(status.text.find("expected DELAY_US,MB_PER_S"), std::string::npos) << status.text;
  }
}

}  // namespace
}  // namespace heddle::ranks
