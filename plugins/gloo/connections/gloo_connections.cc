#include "connections/gloo_connections.h"

#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "connections/pair_connecting.h"
#include "rendezvous/no_broken_pipe.h"
#include "rendezvous/reports.h"

namespace heddle::operators {

class RankMemory {
 public:
  RankMemory(int32_t of, std::unique_ptr<gloo::transport::UnboundBuffer> made) : peer(of), buffer(std::move(made)) {}
  const int32_t peer;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  uint32_t sends = 0, receives = 0;  // under way
};

}  // namespace heddle::operators

namespace heddle::ranks {
namespace {

using gloo::transport::UnboundBuffer;

constexpr uint64_t control_tag = ~uint64_t{0}, probe_tag = control_tag - 1, watch_tag = control_tag - 2;
constexpr size_t max_places = 4096;
constexpr std::chrono::hours for_ever(1'000'000);

// Begins to receive one byte; returns false if the pair is closed.
bool receives_from(UnboundBuffer& into, int32_t peer, uint64_t tag, size_t offset) {
  try {
    into.recv(peer, tag, offset, 1);
    return true;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

GlooConnections::GlooConnections(int32_t rank, int32_t size, std::shared_ptr<rendezvous::Store> store)
    : rank_(rank), size_(size), store_(std::move(store)), came_(static_cast<size_t>(size)) {}

GlooConnections::~GlooConnections() {
  places_.clear();
  control_.reset();
  probe_.reset();
  watches_.clear();
}

// ---------------------------------------------------------------- coming together

Status GlooConnections::listen(const std::string& interface, std::string* addresses) {
  gloo::transport::tcp::attr attributes;
  if (interface.empty()) {
    attributes.hostname = "127.0.0.1";
  } else if (if_nametoindex(interface.c_str()) != 0) {
    attributes.iface = interface;
  } else {
    return plugin::invalid("there is no network interface \"" + interface + "\": `ip link` lists those of this machine");
  }
  const rendezvous::NoBrokenPipe of_its_thread;
  device_ = gloo::transport::tcp::CreateDevice(attributes);
  context_ = device_->createContext(rank_, size_);
  context_->setTimeout(std::chrono::hours(1));  // connect() ends waits itself
  std::vector<std::vector<char>> each(static_cast<size_t>(size_));
  size_t longest = 0;
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    each[static_cast<size_t>(peer)] = context_->createPair(peer)->address().bytes();
    longest = std::max(longest, each[static_cast<size_t>(peer)].size());
  }
  addresses->clear();
  for (std::vector<char>& address : each) {
    address.resize(longest);
    addresses->append(address.data(), address.size());
  }
  return {};
}

Status GlooConnections::connect(const std::string& attempt, const std::vector<std::string>& addresses, RankClock::time_point until,
                                const std::function<bool()>& cancelled) {
  attempt_ = attempt;
  const rendezvous::NoBrokenPipe of_this_thread;  // Gloo writes by writev()
  HEDDLE_PLUGIN_CHECK(connect_pairs(*context_, attempt, addresses, until, cancelled));
  control_bytes_.resize(static_cast<size_t>(size_));
  probe_bytes_.resize(1);
  probe_ = context_->createUnboundBuffer(probe_bytes_.data(), probe_bytes_.size());
  const std::lock_guard<std::mutex> looking(look_mutex_);
  watch_bytes_.resize(static_cast<size_t>(size_));
  closed_.resize(static_cast<size_t>(size_));
  watch_pairs();
  watch_for_control();
  const std::vector<int32_t> ended = known_closed();
  if (ended.empty()) return {};
  return {HEDDLE_ERROR_DEVICE, "rank " + std::to_string(ended.front()) + " could not be connected: it has ended"};
}

// A pair says that it is broken when it is asked for anything. What it is asked for never comes: call it when the pairs are not used any
// more.
std::vector<int32_t> GlooConnections::closed_pairs() {
  std::vector<int32_t> closed;
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    try {
      probe_->recv(peer, probe_tag, 0, 1);
    } catch (const std::exception&) {
      closed.push_back(peer);
    }
  }
  return closed;
}

std::vector<int32_t> GlooConnections::known_closed() const {
  std::vector<int32_t> closed;
  for (int32_t peer = 0; peer < size_; ++peer)
    if (closed_[static_cast<size_t>(peer)]) closed.push_back(peer);
  return closed;
}

// Each may take 10 ms, because Gloo waits for its thread. What close() resets loses what the system has not sent yet; a pair that is
// destroyed does not.
void GlooConnections::close_pairs(bool lets_arrive) {
  constexpr int32_t max_threads = 64;
  const int32_t at_once = std::min(size_, max_threads);
  const auto closes = [this, at_once, lets_arrive](int32_t first) {
    for (int32_t peer = first; peer < size_; peer += at_once) {
      if (peer == rank_) continue;
      std::unique_ptr<gloo::transport::Pair>& pair = context_->getPair(peer);
      if (lets_arrive)
        pair.reset();
      else if (pair)
        pair->close();
    }
  };
  std::vector<std::thread> threads;
  for (int32_t first = 0; first < at_once; ++first) {
    try {
      threads.emplace_back(closes, first);
    } catch (const std::exception&) {  // no memory for a thread
      closes(first);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

// ---------------------------------------------------------------- messages

RankMemory* GlooConnections::memory(int32_t peer, void* data, uint64_t bytes) {
  try {
    const std::tuple<int32_t, void*, uint64_t> key(peer, data, bytes);
    auto known = places_.find(key);
    if (known == places_.end())
      known = places_.emplace(key, std::make_unique<RankMemory>(peer, context_->createUnboundBuffer(data, bytes))).first;
    return known->second.get();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void GlooConnections::begin() {
  std::fill(came_.begin(), came_.end(), 0);
  if (places_.size() > max_places) places_.clear();
}

// Calls `act`, which may throw because a connection has broken, or because it has waited until `until`.
template <class Act>
Status GlooConnections::guarded(UnboundBuffer& waits, int32_t peer, RankClock::time_point until, const Act& act) {
  if (failed_) return {HEDDLE_ERROR_DEVICE, "the connections are closed"};
  bool late = false;
  std::string text;
  try {
    if (begin_wait(waits, peer)) {
      const bool done = act();
      end_wait();
      if (done) return {};
    }
    end_wait();
  } catch (const std::exception& error) {
    end_wait();
    late = RankClock::now() >= until;
    text = error.what();
  }
  note_failure(late);
  if (aborted_) return {HEDDLE_ERROR_CANCELLED, "aborted"};
  if (late) return {HEDDLE_PENDING, "the time is over"};
  return {HEDDLE_ERROR_DEVICE, ended_by_look_ ? "the connection has closed" : text};
}

// From here on abort() and look() end the wait for `buffer`; false if abort() was called before.
bool GlooConnections::begin_wait(UnboundBuffer& buffer, int32_t peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = &buffer;
  waits_for_ = peer;
  ended_by_look_ = false;
  return !aborted_;
}

void GlooConnections::end_wait() {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_ = nullptr;
  waits_for_ = -1;
}

// Asks Gloo to say of each pair when it closes. What asks for that is written to the peer, which may lose what it has sent if it has closed
// since: so it is done once, and look() only reads.
void GlooConnections::watch_pairs() {
  watches_.resize(static_cast<size_t>(size_));
  for (int32_t peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto at = static_cast<size_t>(peer);
    watches_[at] = context_->createUnboundBuffer(&watch_bytes_[at], 1);
    closed_[at] = closed_[at] || !receives_from(*watches_[at], peer, watch_tag, 0);
  }
}

// Makes a control_ for the pairs that are open, and finds those that are closed. Between operations nothing is under way from others. A
// wake() of the one before is not lost: idle() returns after this.
void GlooConnections::watch_for_control() {
  std::unique_ptr<UnboundBuffer> control = context_->createUnboundBuffer(control_bytes_.data(), control_bytes_.size());
  for (int32_t peer = 0; peer < size_; ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (peer != rank_ && !closed_[at]) closed_[at] = !receives_from(*control, peer, control_tag, at);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  control_.swap(control);
}

// A pair of Gloo's that closes tells those who wait for a message, but for one that is half-way: one that it could not write yet, or has
// read in part (pair.cc, signalException: tx_ and rx_ are left out). Such a wait would end at its time-out.
void GlooConnections::look() {
  const std::unique_lock<std::mutex> looking(look_mutex_, std::try_to_lock);
  if (!looking || watches_.empty()) return;
  int32_t peer = -1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    peer = waits_for_;
  }
  if (peer < 0) return;
  try {
    UnboundBuffer& watch = *watches_[static_cast<size_t>(peer)];
    watch.abortWaitRecv();  // it returns at once
    watch.waitRecv(nullptr, for_ever);
    return;
  } catch (const std::exception&) {
    closed_[static_cast<size_t>(peer)] = 1;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waits_for_ != peer) return;
  ended_by_look_ = true;
  waits_->abortWaitRecv();
  waits_->abortWaitSend();
}

// Notes who is lost, and takes all places from Gloo, which reads and writes none of them from then on: their destructors wait for its
// thread. Pairs stay open until close(), so that this rank's report is there before others see that it has left. Only if time was over Gloo
// has closed all of them, and they do not tell who is gone.
void GlooConnections::note_failure(bool late) {
  failed_ = true;
  try {
    const std::lock_guard<std::mutex> looking(look_mutex_);
    if (late)
      find_missing();
    else
      broken_ = ended_by_look_ ? known_closed() : closed_pairs();
  } catch (const std::bad_alloc&) {  // then fewer are known
  }
  places_.clear();
}

// Finds the ranks from which nothing has come of what was awaited; if all have sent something, those that did not take what was sent to
// them. Call it when all pairs are closed: waits of no time close them.
void GlooConnections::find_missing() {
  std::vector<char> awaited(came_.size()), taken(came_.size(), 1);
  for (const auto& [key, place] : places_) {
    if (place->sends > 0) taken[static_cast<size_t>(place->peer)] = 0;
    for (; place->receives > 0; --place->receives) {
      bool has_come = false;
      try {
        has_come = place->buffer->waitRecv(nullptr, std::chrono::milliseconds(0));
      } catch (const std::exception&) {
      }
      if (has_come) came_[static_cast<size_t>(place->peer)] = 1;
      awaited[static_cast<size_t>(place->peer)] = 1;
    }
  }
  for (int32_t peer = 0; peer < size_; ++peer)
    if (awaited[static_cast<size_t>(peer)] && !came_[static_cast<size_t>(peer)]) missing_.push_back(peer);
  const bool all_sent = missing_.empty();
  for (int32_t peer = 0; peer < size_; ++peer)
    if (all_sent && !taken[static_cast<size_t>(peer)]) missing_.push_back(peer);
}

Status GlooConnections::send(RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) {
  return guarded(*from.buffer, -1, RankClock::time_point::max(), [&] {
    from.buffer->send(from.peer, tag, offset, bytes);
    ++from.sends;
    return true;
  });
}

Status GlooConnections::receive(RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) {
  return guarded(*into.buffer, -1, RankClock::time_point::max(), [&] {
    into.buffer->recv(into.peer, tag, offset, bytes);
    ++into.receives;
    return true;
  });
}

// Calls wait(time), which is false if it was told to end. look() does so because a pair has closed: what came before that has come.
template <class Wait>
bool GlooConnections::has_come(const Wait& wait, RankClock::time_point until) const {
  return wait(left_until(until)) || (!aborted_ && wait(std::chrono::milliseconds(0)));
}

Status GlooConnections::wait(RankMemory& memory, RankClock::time_point until) {
  if (memory.receives == 0 && memory.sends == 0) return {};
  return guarded(*memory.buffer, memory.peer, until, [&] {
    for (; memory.receives > 0; --memory.receives) {
      if (!has_come([&](auto time) { return memory.buffer->waitRecv(nullptr, time); }, until)) return false;
      came_[static_cast<size_t>(memory.peer)] = 1;
    }
    for (; memory.sends > 0; --memory.sends)
      if (!has_come([&](auto time) { return memory.buffer->waitSend(nullptr, time); }, until)) return false;
    return true;
  });
}

Status GlooConnections::idle() {
  if (failed_) return {HEDDLE_ERROR_DEVICE, "the connections are closed"};
  std::string text;
  bool one_has_closed = false;
  try {
    if (begin_wait(*control_, -1)) control_->waitRecv(nullptr, for_ever);  // false: it was woken
  } catch (const std::exception& error) {
    one_has_closed = true;
    text = error.what();
  }
  end_wait();
  if (aborted_) {
    note_failure(false);
    return {HEDDLE_ERROR_CANCELLED, "aborted"};
  }
  if (!one_has_closed) return {};
  const std::lock_guard<std::mutex> looking(look_mutex_);
  watch_for_control();
  broken_ = known_closed();
  return {HEDDLE_ERROR_DEVICE, std::move(text)};
}

// ---------------------------------------------------------------- the end

void GlooConnections::wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  control_->abortWaitRecv();
}

void GlooConnections::abort() {
  const std::lock_guard<std::mutex> lock(mutex_);
  aborted_ = true;
  if (!waits_) return;
  waits_->abortWaitRecv();
  waits_->abortWaitSend();
}

void GlooConnections::close() {
  const bool in_order = !std::exchange(failed_, true);
  if (in_order) {
    const std::lock_guard<std::mutex> looking(look_mutex_);
    watches_.clear();  // look() asks the pairs no more
  }
  close_pairs(in_order);
}

Status GlooConnections::report(const RankReport& mine) {
  return rendezvous::report(*store_, attempt_, rank_, mine);
}

Status GlooConnections::reports(std::vector<std::optional<RankReport>>* all) {
  Status status = rendezvous::read_reports(*store_, attempt_, size_, &read_);
  *all = read_;
  return status;
}

}  // namespace heddle::ranks
