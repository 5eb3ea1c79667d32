// A connection to a Redis server that is made when it is needed, and again when the server has restarted.
//
// It is hiredis' own and not gloo::rendezvous::RedisStore: the constructor of that one loses its connection's memory where it fails, and
// looks host names up without a time-out; its set() says only in the text of an exception that a key is there; its get() waits; and a
// server that goes away ends the process by SIGPIPE.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rendezvous/stores.h"

struct redisContext;
struct redisReply;

namespace heddle::rendezvous {

struct RedisAnswer {
  enum Type { nil, integer, string, other };
  Type type = nil;
  int64_t number = 0;
  std::string text;
};

// Thread-safe. It authenticates by HEDDLE_REDIS_PASSWORD and HEDDLE_REDIS_USERNAME, which no message repeats.
class RedisConnection {
 public:
  explicit RedisConnection(const RedisPlace& place);
  ~RedisConnection();

  // Sends a command and waits for its answer, two seconds at most for all. `sent_twice`: the connection was lost after the command was
  // sent, so that it was sent again by another, and the server may have obeyed both. Errors: device (no server; no or a wrong password; its
  // error; an answer of another type than those expected), invalid (a user without a password).
  Status call(const std::vector<std::string>& words, std::initializer_list<RedisAnswer::Type> expected, RedisAnswer* answer,
              bool* sent_twice);
  // "HOST:PORT".
  std::string address() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Closer {
    void operator()(redisContext* context) const;
  };
  Status connect(Deadline deadline);
  Status authenticate(Deadline deadline);
  // Returns null when the connection is lost: lost() says how.
  std::unique_ptr<redisReply, void (*)(redisReply*)> exchange(const std::vector<std::string>& words, Deadline deadline);
  bool send_all(Deadline deadline);
  void* next_reply(Deadline deadline);
  Status lost() const;
  Status refused(const std::string& text) const;

  const RedisPlace place_;
  const std::string password_, user_;
  std::mutex mutex_;
  std::unique_ptr<redisContext, Closer> context_;
  std::string why_;    // how the last connection was lost
  bool late_ = false;  // by its time-out
};

}  // namespace heddle::rendezvous
