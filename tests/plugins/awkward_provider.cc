// Publishes "awkward_provider.counter", a session-long resource for other plugins' kernels (counter.h).
#include <atomic>
#include <new>

#include "counter.h"
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

struct AtomicCounter : Counter {
  std::atomic<int64_t> value{0};
};

int64_t next(Counter* self) {
  return static_cast<AtomicCounter*>(self)->value.fetch_add(1) + 1;
}

heddle_status create(const heddle_host* host, const heddle_call* call, const char*, void*, void** resource) {
  return detail::guard(host, call, [&]() -> Status {
    auto* counter = new AtomicCounter();
    counter->next = next;
    *resource = static_cast<Counter*>(counter);
    return {};
  });
}

void destroy(void* resource) {
  delete static_cast<AtomicCounter*>(static_cast<Counter*>(resource));
}

const heddle_resource counter_resource = {sizeof(heddle_resource), 0, "awkward_provider.counter", "cpu", create, destroy};

}  // namespace

HEDDLE_PLUGIN("awkward_provider", "1.0", plugin) {
  plugin.add(&counter_resource);
}
