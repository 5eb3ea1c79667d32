#include "connections/emulated_link.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace heddle::ranks {
namespace {

using operators::RankClock;
using operators::RankMemory;

constexpr uint64_t stamp_bit = uint64_t{1} << 63;  // of the tags of stamps: collectives use none that has it

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(RankClock::now().time_since_epoch()).count();
}

}  // namespace

Status parse_link(const std::string& text, LinkSettings* settings) {
  double delay_us = 0, megabytes = 0;
  const char* const end = text.data() + text.size();
  const auto [comma, failed] = std::from_chars(text.data(), end, delay_us);
  const auto [rest, also] =
      comma != end && *comma == ',' ? std::from_chars(comma + 1, end, megabytes) : std::from_chars(end, end, megabytes);
  constexpr double most = 1e9;                                                       // a delay of 17 minutes
  const auto is_sane = [](double number) { return number >= 0 && number <= most; };  // NaN is not
  if (failed != std::errc() || also != std::errc() || rest != end || !is_sane(delay_us) || !is_sane(megabytes))
    return plugin::invalid("HEDDLE_GLOO_LINK is \"" + text + "\", expected DELAY_US,MB_PER_S, as in \"50,1250\"");
  settings->delay = std::chrono::nanoseconds(static_cast<int64_t>(delay_us * 1000));
  settings->bytes_per_ns = megabytes / 1000;
  return {};
}

EmulatedLink::EmulatedLink(std::unique_ptr<operators::RankConnections> inner, const LinkSettings& settings)
    : inner_(std::move(inner)), settings_(settings) {}

EmulatedLink::~EmulatedLink() = default;

RankMemory* EmulatedLink::memory(int32_t peer, void* data, uint64_t bytes) {
  RankMemory* const made = inner_->memory(peer, data, bytes);
  if (made) places_[made].peer = peer;
  return made;
}

void EmulatedLink::begin() {
  inner_->begin();
  places_.clear();  // the connections may have forgotten theirs
}

// Stamps are used again and again, so that the connections know them.
RankMemory* EmulatedLink::stamp_for(int32_t peer, std::vector<std::unique_ptr<Stamp>>& stamps, uint64_t bytes) {
  if (free_.empty()) free_.push_back(std::make_unique<Stamp>());
  stamps.push_back(std::move(free_.back()));
  free_.pop_back();
  Stamp& stamp = *stamps.back();
  stamp.sent_ns = now_ns();
  stamp.bytes = bytes;
  return stamp.place = inner_->memory(peer, &stamp.sent_ns, sizeof(stamp.sent_ns));
}

Status EmulatedLink::send(RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) {
  Place& place = places_[&from];
  RankMemory* const stamp = stamp_for(place.peer, place.sent, bytes);
  if (!stamp) return {HEDDLE_ERROR_OUT_OF_MEMORY, "a place for a time"};
  HEDDLE_PLUGIN_CHECK(inner_->send(*stamp, tag | stamp_bit, 0, sizeof(int64_t)));
  return inner_->send(from, tag, offset, bytes);
}

Status EmulatedLink::receive(RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) {
  Place& place = places_[&into];
  RankMemory* const stamp = stamp_for(place.peer, place.received, bytes);
  if (!stamp) return {HEDDLE_ERROR_OUT_OF_MEMORY, "a place for a time"};
  HEDDLE_PLUGIN_CHECK(inner_->receive(*stamp, tag | stamp_bit, 0, sizeof(int64_t)));
  return inner_->receive(into, tag, offset, bytes);
}

Status EmulatedLink::wait(RankMemory& memory, RankClock::time_point until) {
  Place& place = places_[&memory];
  HEDDLE_PLUGIN_CHECK(inner_->wait(memory, until));
  HEDDLE_PLUGIN_CHECK(wait_for(place.sent, until));
  RankClock::time_point arrival = RankClock::time_point::min();
  for (const auto& stamp : place.received) {
    HEDDLE_PLUGIN_CHECK(inner_->wait(*stamp->place, until));
    busy_until_ = std::max(busy_until_, RankClock::time_point(std::chrono::nanoseconds(stamp->sent_ns)));
    if (settings_.bytes_per_ns > 0)
      busy_until_ += std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(stamp->bytes) / settings_.bytes_per_ns));
    arrival = std::max(arrival, busy_until_ + settings_.delay);
  }
  HEDDLE_PLUGIN_CHECK(wait_for(place.received, until));
  return sleep_until(arrival, until);
}

Status EmulatedLink::wait_for(std::vector<std::unique_ptr<Stamp>>& stamps, RankClock::time_point until) {
  for (auto& stamp : stamps) {
    HEDDLE_PLUGIN_CHECK(inner_->wait(*stamp->place, until));
    free_.push_back(std::move(stamp));
  }
  stamps.clear();
  return {};
}

Status EmulatedLink::sleep_until(RankClock::time_point arrival, RankClock::time_point until) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, std::min(arrival, until), [&] { return aborted_; });
  if (aborted_) return plugin::cancelled();
  return arrival > until ? Status(HEDDLE_PENDING, "the time is over") : Status();
}

void EmulatedLink::abort() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  inner_->abort();
}

}  // namespace heddle::ranks
