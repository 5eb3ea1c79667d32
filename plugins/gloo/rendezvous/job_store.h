// A store of texts that are written once: the processes of one job share it before they are connected.
//
// A key belongs to one rank, which alone writes it, and keeps its first value. This is what a folder, Redis and PMIx can all do. The files
// here are not called as those of Gloo are (store.h, redis_store.h): a plugin that has plugins/ among its folders of headers would get ours
// for <gloo/rendezvous/...>.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/op/plugin_status.h"

namespace heddle::rendezvous {

using plugin::Status;

// How long a call waits: until `deadline`, or until `cancelled` (asked at least every 20 ms; empty: never) says true.
struct Patience {
  std::chrono::steady_clock::time_point deadline;
  const std::function<bool()>& cancelled;
};

// The pauses of a loop that looks again and again: 1 ms at first, growing to 20 ms.
class Pauses {
 public:
  explicit Pauses(const Patience& patience) : patience_(patience) {}
  // Sleeps, or returns false at once if the patience has ended.
  bool pause();
  bool cancelled() const { return patience_.cancelled && patience_.cancelled(); }

 private:
  const Patience& patience_;
  std::chrono::microseconds next_{1000};
};

struct Key {
  int32_t rank = 0;  // who alone writes it
  std::string name;  // any bytes
};

// Thread-safe. Errors of all functions: device (the store can not be reached, or does not do it: what, where, and how to mend it). No call
// takes longer than about two seconds, but for wait(), and a folder of a file system that hangs. Nothing is thrown but std::bad_alloc.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Gives a key its value. `written` is false if it has one already, which stays. Errors: invalid (the key is another rank's), device.
  Status set(const Key& key, const std::string& value, bool* written);
  // `found` is false, and the value untouched, as long as the key has none.
  virtual Status get(const Key& key, std::string* value, bool* found) = 0;
  Status has(const Key& key, bool* found);
  // Waits until the key has a value. Errors: cancelled; device (those of get(), and the deadline).
  Status wait(const Key& key, std::string* value, const Patience& patience);
  // Where it is, as users say it: "file:/home/job". It never has a password.
  virtual std::string where() const = 0;

 protected:
  explicit Store(int32_t rank) : rank_(rank) {}
  virtual Status put(const Key& key, const std::string& value, bool* written) = 0;
  const int32_t rank_;
};

// Makes the store that a user calls by one of these:
//   file:DIR                   a folder that all processes see; it is made if it is missing
//   redis:HOST:PORT[/NAME]     a Redis server; two jobs at once need two names (default: heddle); an IPv6 address stands in brackets. A
//                              password comes from HEDDLE_REDIS_PASSWORD, and the name of a user from HEDDLE_REDIS_USERNAME.
//   pmix                       the launcher of the processes (mpirun, srun)
// `communicator`: its name; stores of two names share no key. `rank`: of this process, which writes its own keys alone. What runs left in a
// folder or in Redis stays there until somebody removes it, and does no harm (meeting.h).
// Errors: invalid (another text; ranks that PMIx counts differently), device (it can not be reached).
Status make_store(const std::string& rendezvous, const std::string& communicator, int32_t rank, int32_t ranks,
                  std::unique_ptr<Store>* store);

// Checks that `rendezvous` has one of these forms, and connects with nothing. Errors: invalid.
Status check_rendezvous(const std::string& rendezvous);

}  // namespace heddle::rendezvous
