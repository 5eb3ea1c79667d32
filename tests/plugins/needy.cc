// Resources that need each other, wait for each other, or can not be made. needy.h describes their interface.
#include "needy.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

enum Kind { base, above, self, hen, egg, broken, silent, left, right, slow, comm_base, comm_above, kinds };
constexpr const char* names[kinds] = {"needy.base",   "needy.above", "needy.self",  "needy.hen",  "needy.egg",       "needy.broken",
                                      "needy.silent", "needy.left",  "needy.right", "needy.slow", "needy.comm_base", "needy.comm_above"};
std::atomic<int32_t> attempts[kinds];

// Two resources that can only be made at the same time: each waits until the other one has begun.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int here = 0;
  bool wait() {
    std::unique_lock<std::mutex> lock(mutex);
    ++here;
    changed.notify_all();
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return here >= 2; });
  }
} meeting;

// The resource itself; it records when it is destroyed.
template <Kind kind>
class Made : public Needy {
 public:
  explicit Made(const ResourceRequest& request) : Needy{} {
    name = names[kind];
    attempt = ++attempts[kind];
    constexpr Kind none = kinds;
    constexpr Kind needs = kind == above        ? base
                           : kind == self       ? self
                           : kind == hen        ? egg
                           : kind == egg        ? hen
                           : kind == comm_above ? comm_base
                                                : none;
    if constexpr (needs != none) {
      other = request.need<Needy>(names[needs]);
      if (!other) throw std::runtime_error(std::string(name) + " can not do without it");
    }
    if (kind == broken && attempt % 2 == 1) throw std::runtime_error("the licence server said no, attempt " + std::to_string(attempt));
    if ((kind == left || kind == right) && !meeting.wait()) throw std::runtime_error("the other one did not come");
    if (kind == slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Made() {
    if (!gone) return;
    if (went_as) *went_as = *gone;
    ++*gone;
  }
};

// Returns success without an object.
heddle_status create_nothing(const heddle_resource_request*, void**) {
  return HEDDLE_OK;
}
heddle_resource nothing() {
  heddle_resource r = {};
  r.struct_size = sizeof(r);
  r.scope = HEDDLE_SCOPE_SESSION;
  r.interface_version = 1;
  r.name = names[silent];
  r.create = create_nothing;
  r.destroy = [](void*) {};
  return r;
}
const heddle_resource silent_resource = nothing();

// A kernel that requires a resource, and reports its absence in its own words.
template <Kind kind>
class User {
 public:
  Status create(const CreateContext& c) { return needed_.ask(c, names[kind]).ok() ? Status() : invalid("User has nothing to use"); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    std::memcpy(c.outputs[0]->data, c.inputs[0]->data, c.outputs[0]->byte_size);
    return {};
  }

 private:
  Needed<Needy> needed_;
};

template <Kind... each>
void publish(Builder& plugin, int32_t scope) {
  (plugin.resource<Made<each>, Needy>(names[each], scope, 1), ...);
}

}  // namespace

HEDDLE_PLUGIN("needy", "1.0", plugin) {
  publish<base, above, self, hen, egg, broken, left, right, slow>(plugin, HEDDLE_SCOPE_SESSION);
  publish<comm_base, comm_above>(plugin, HEDDLE_SCOPE_COMMUNICATOR);
  plugin.add(&silent_resource);
  plugin.add(Op("UsesBroken", "needy").in("x").out("y", same_as("x")).cpu<User<broken>>());
  plugin.add(Op("UsesHen", "needy").in("x").out("y", same_as("x")).cpu<User<hen>>());
}
