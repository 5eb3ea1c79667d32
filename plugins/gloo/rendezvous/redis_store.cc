// The store in a Redis server. A job's name is its own part of the server; keys stay there after a run:
// `redis-cli --scan --pattern 'heddle/*' | xargs redis-cli del` removes those of name heddle. They must not expire one by one: numbers of
// attempts are counted by the keys that are there (meeting.h).
#include <utility>

#include "rendezvous/key_text.h"
#include "rendezvous/redis_connection.h"
#include "rendezvous/stores.h"

namespace heddle::rendezvous {
namespace {

class RedisStore final : public Store {
 public:
  RedisStore(const RedisPlace& place, const std::string& communicator, int32_t rank)
      : Store(rank), connection_(place), name_(place.name), prefix_(escaped(place.name) + "/" + escaped(communicator) + "/") {}

  // Connects, so that what is wrong with the server is said early. Any command finds a missing password; PING may be refused to a user who
  // may read the keys of this job alone.
  Status make() {
    std::string ignored;
    bool found = false;
    return get({rank_, "here"}, &ignored, &found);
  }

  Status get(const Key& key, std::string* value, bool* found) override {
    *found = false;
    RedisAnswer answer;
    bool sent_twice = false;
    HEDDLE_PLUGIN_CHECK(connection_.call({"GET", key_of(key)}, {RedisAnswer::nil, RedisAnswer::string}, &answer, &sent_twice));
    if (answer.type == RedisAnswer::nil) return {};
    *found = true;
    *value = std::move(answer.text);
    return {};
  }

  std::string where() const override { return "redis:" + connection_.address() + "/" + name_; }

 protected:
  Status put(const Key& key, const std::string& value, bool* written) override {
    *written = false;
    RedisAnswer answer;
    bool sent_twice = false;
    HEDDLE_PLUGIN_CHECK(connection_.call({"SETNX", key_of(key), value}, {RedisAnswer::integer}, &answer, &sent_twice));
    *written = answer.number == 1;
    if (*written || !sent_twice) return {};
    // It may be the first of the two that wrote it.
    std::string there;
    bool found = false;
    HEDDLE_PLUGIN_CHECK(get(key, &there, &found));
    *written = found && there == value;
    return {};
  }

 private:
  std::string key_of(const Key& key) const { return prefix_ + std::to_string(key.rank) + "/" + key.name; }

  RedisConnection connection_;
  const std::string name_, prefix_;
};

}  // namespace

Status make_redis_store(const RedisPlace& place, const std::string& communicator, int32_t rank, std::unique_ptr<Store>* store) {
  auto made = std::make_unique<RedisStore>(place, communicator, rank);
  HEDDLE_PLUGIN_CHECK(made->make());
  *store = std::move(made);
  return {};
}

}  // namespace heddle::rendezvous
