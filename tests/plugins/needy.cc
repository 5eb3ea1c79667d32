// Resources that need each other, meet each other, or can not be made. needy.h says what they are.
#include "needy.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

enum Kind { base, above, self, hen, egg, broken, silent, left, right, slow, kinds };
constexpr const char* names[kinds] = {"needy.base",   "needy.above",  "needy.self", "needy.hen",   "needy.egg",
                                      "needy.broken", "needy.silent", "needy.left", "needy.right", "needy.slow"};
std::atomic<int32_t> attempts[kinds];

// Two that can only be made at the same time: each waits until the other one has begun.
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

void destroy(void* resource) {
  auto* needy = static_cast<Needy*>(resource);
  if (needy->gone) {
    if (needy->went_as) *needy->went_as = *needy->gone;
    ++*needy->gone;
  }
  delete needy;
}

template <Kind kind>
heddle_status create(const heddle_host* host, const heddle_call* call, const char*, void*, void** resource) {
  return detail::guard(host, call, [&]() -> Status {
    auto made = std::make_unique<Needy>();
    made->name = names[kind];
    made->attempt = ++attempts[kind];
    constexpr Kind none = kinds;
    constexpr Kind needs = kind == above ? base : kind == self ? self : kind == hen ? egg : kind == egg ? hen : none;
    if constexpr (needs != none) {
      made->other = static_cast<const Needy*>(host->resource(call, names[needs]));
      if (!made->other) return {HEDDLE_ERROR_INVALID, ""};
    }
    if (kind == broken) return {HEDDLE_ERROR_INVALID, "the licence server said no, attempt " + std::to_string(made->attempt)};
    if (kind == silent) return {};  // all is well, and there is nothing
    if ((kind == left || kind == right) && !meeting.wait()) return invalid("the other one did not come");
    if (kind == slow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *resource = made.release();
    return {};
  });
}

template <Kind kind>
const heddle_resource published = {sizeof(heddle_resource), 0, names[kind], "cpu", create<kind>, destroy};

// A kernel that can not do without a resource, and says so in its own words.
template <Kind kind>
class User {
 public:
  Status create(const CreateContext& c) { return c.resource(names[kind]) ? Status() : invalid("User has nothing to use"); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    std::memcpy(c.outputs[0]->data, c.inputs[0]->data, c.outputs[0]->byte_size);
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("needy", "1.0", plugin) {
  for (const heddle_resource* each : {&published<base>, &published<above>, &published<self>, &published<hen>, &published<egg>,
                                      &published<broken>, &published<silent>, &published<left>, &published<right>, &published<slow>})
    plugin.add(each);
  plugin.add(Op("UsesBroken", "needy").in("x").out("y", same_as("x")).cpu<User<broken>>());
  plugin.add(Op("UsesHen", "needy").in("x").out("y", same_as("x")).cpu<User<hen>>());
}
