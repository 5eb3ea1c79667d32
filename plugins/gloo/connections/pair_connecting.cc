#include "connections/pair_connecting.h"

#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include "rendezvous/no_broken_pipe.h"

namespace heddle::ranks {

std::chrono::milliseconds left_until(RankClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - RankClock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

namespace {

using gloo::transport::UnboundBuffer;

constexpr uint64_t greeting_tag = ~uint64_t{0} - 3;       // none of those of GlooConnections
constexpr std::chrono::milliseconds time_to_settle(200);  // for connections that are being made when another one has failed

// Addresses of one length each, which all have.
std::string address_for(const std::string& all, size_t ranks, int32_t rank) {
  const size_t each = all.size() / ranks;
  return all.substr(each * static_cast<size_t>(rank), each);
}

// A connection that is being made, on a thread of its own.
struct Connecting {
  std::vector<char> address;
  std::string told, heard;                 // which attempt it is
  std::unique_ptr<UnboundBuffer> out, in;  // for these
  std::string why;                         // it could not be made
  bool failed = false;
  std::atomic<bool> connected{false}, over{false};  // for the kernel; for both ranks
  std::thread thread;
};

// Connects with a peer, until `until`, and never throws. Something else may have connected with the port, or the peer be one of another
// attempt: each tells the other which attempt it is. Closing the pair ends the connecting, and aborting the waits what follows.
void connect_pair(gloo::transport::Context& context, int32_t peer, RankClock::time_point until, Connecting& one) {
  try {
    try {
      context.getPair(peer)->connect(one.address);
      one.connected = true;
      one.in->recv(peer, greeting_tag, 0, one.heard.size());
      one.out->send(peer, greeting_tag, 0, one.told.size());
      const bool done = one.out->waitSend(nullptr, left_until(until)) && one.in->waitRecv(nullptr, left_until(until));
      one.failed = !done || one.heard != one.told;
      if (done && one.failed) one.why = "a process of another job has come in its place";
    } catch (const std::exception& error) {
      one.failed = true;
      one.why = error.what();
    }
  } catch (const std::bad_alloc&) {  // for the text
  }
  one.over = true;
}

bool has_failed(const Connecting& one) {
  return one.over && one.failed;
}
bool is_under_way(const Connecting& one) {
  return !one.over;
}
bool is_unconnected(const Connecting& one) {
  return !one.over && !one.connected;
}

template <class Waits>
void wait_while(RankClock::time_point limit, const Waits& waits) {
  while (RankClock::now() < limit && waits()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Ends the connections that are under way, since another one has failed. Gloo resets what it closes, and its thread ends the process of a
// peer that accepts a connection which was reset. So only those are closed that come to nothing. A connection that the peer may not have
// accepted yet ends with its pair, which does not reset it.
void end_connecting(gloo::transport::Context& context, std::vector<Connecting>& all) {
  wait_while(RankClock::now() + time_to_settle, [&] { return std::any_of(all.begin(), all.end(), is_unconnected); });
  for (size_t peer = 0; peer < all.size(); ++peer) {
    Connecting& one = all[peer];
    if (is_unconnected(one)) context.getPair(static_cast<int>(peer))->close();
    one.out->abortWaitSend();
    one.in->abortWaitRecv();
  }
}

}  // namespace

Status connect_pairs(gloo::transport::Context& context, const std::string& attempt, const std::vector<std::string>& addresses,
                     RankClock::time_point until, const std::function<bool()>& cancelled) {
  const int32_t rank = context.rank, size = context.size;
  const rendezvous::NoBrokenPipe of_all_threads;
  std::vector<Connecting> all(static_cast<size_t>(size));
  for (int32_t peer = 0; peer < size; ++peer) {
    const std::string address = address_for(addresses[static_cast<size_t>(peer)], static_cast<size_t>(size), rank);
    Connecting& one = all[static_cast<size_t>(peer)];
    one.address.assign(address.begin(), address.end());
    one.told = attempt;
    one.heard.resize(attempt.size());
    one.out = context.createUnboundBuffer(one.told.data(), one.told.size());
    one.in = context.createUnboundBuffer(one.heard.data(), one.heard.size());
  }
  all[static_cast<size_t>(rank)].over = true;
  for (int32_t peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    Connecting& one = all[static_cast<size_t>(peer)];
    try {
      one.thread = std::thread([&context, peer, until, &one] { connect_pair(context, peer, until, one); });
    } catch (const std::exception&) {
      one.failed = one.over = true;  // no memory for a thread
    }
  }
  // One that can not be made is enough: the ranks meet again.
  bool asked = false;
  wait_while(until, [&] {
    return std::any_of(all.begin(), all.end(), is_under_way) && std::none_of(all.begin(), all.end(), has_failed) &&
           !(asked = cancelled && cancelled());
  });
  // Connections that are under way fail, too, when they are ended.
  auto lost = std::find_if(all.begin(), all.end(), has_failed);
  if (lost == all.end()) lost = std::find_if(all.begin(), all.end(), is_under_way);
  if (lost != all.end()) end_connecting(context, all);
  for (Connecting& one : all)
    if (one.thread.joinable()) one.thread.join();
  if (asked) return plugin::cancelled();
  if (lost != all.end())
    return {HEDDLE_ERROR_DEVICE,
            "rank " + std::to_string(lost - all.begin()) + " could not be connected" +
                (lost->why.empty() ? " in time: see whether it still runs, and whether the interface reaches it" : ": " + lost->why)};
  return {};
}

}  // namespace heddle::ranks
