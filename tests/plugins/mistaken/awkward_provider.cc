// Publishes "awkward_provider.counter", a session-long resource for other plugins' kernels (counter.h).
#include <atomic>

#include "../counter.h"
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

class AtomicCounter : public Counter {
 public:
  explicit AtomicCounter(const ResourceRequest&) : Counter{count} {}

 private:
  static int64_t count(Counter* self) { return static_cast<AtomicCounter*>(self)->value_.fetch_add(1) + 1; }
  std::atomic<int64_t> value_{0};
};

}  // namespace

HEDDLE_PLUGIN("awkward_provider", "1.0", plugin) {
  plugin.resource<AtomicCounter, Counter>("awkward_provider.counter", HEDDLE_SCOPE_SESSION, 1);
}
