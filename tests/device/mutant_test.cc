// Plans with a wait between streams left out: what the other waits and the order of streams do not make up for shows on a simulated device,
// as other bits, under some order of it.
#include <cstdio>
#include <memory>

#include "random_nets.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(Mutant);

// Which steps are complete before which, by streams, events, fences and the host alone; an edge between steps that are only enqueued says
// nothing of it.
class CompletionOrder {
 public:
  explicit CompletionOrder(const Plan& plan) : count_(plan.steps.size()), before_(count_, std::vector<char>(count_, 0)) {
    std::vector<uint32_t> recorded(plan.events.size());
    for (uint32_t i = 0; i < count_; ++i)
      if (const DeviceWork* work = plan.steps[i].on_device.get(); work && work->records >= 0)
        recorded[static_cast<size_t>(work->records)] = i;
    for (uint32_t i = 0; i < count_; ++i) {
      const DeviceWork* work = plan.steps[i].on_device.get();
      if (work)
        for (uint32_t e = 0; e < i; ++e)
          if (const DeviceWork* other = plan.steps[e].on_device.get();
              other && other->device == work->device && other->stream == work->stream)
            add(e, i);
      if (work)
        for (const uint32_t event : work->waits) add(recorded[event], i);
      for (uint32_t e = 0; e < i; ++e) {
        if (e < plan.graph.tail_begin && i >= plan.graph.tail_begin) add(e, i);  // updates begin when nothing is in flight
        const bool done = !plan.steps[e].on_device || plan.steps[e].on_device->kind == DeviceWork::Kind::fence;
        if (done && has_edge(plan.graph, e, i)) add(e, i);
      }
    }
  }
  bool is(uint32_t earlier, uint32_t later) const { return before_[later][earlier] != 0; }

 private:
  static bool has_edge(const StepGraph& graph, uint32_t from, uint32_t to) {
    for (uint32_t e = graph.successor_begin[from]; e < graph.successor_begin[from + 1]; ++e)
      if (graph.successors[e] == to) return true;
    return false;
  }
  // In plan order, so that what is before `from` is known.
  void add(uint32_t from, uint32_t to) {
    before_[to][from] = 1;
    for (size_t k = 0; k < count_; ++k) before_[to][k] = static_cast<char>(before_[to][k] | before_[from][k]);
  }
  const size_t count_;
  std::vector<std::vector<char>> before_;
};

struct Wait {
  uint32_t step = 0;
  size_t index = 0;     // among its waits
  uint32_t before = 0;  // the step that records the event
};

std::vector<Wait> waits_of(const Plan& plan) {
  std::vector<Wait> all;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const DeviceWork* work = plan.steps[i].on_device.get();
    for (size_t k = 0; work && k < work->waits.size(); ++k)
      for (uint32_t e = 0; e < i; ++e)
        if (const DeviceWork* other = plan.steps[e].on_device.get(); other && other->records == static_cast<int32_t>(work->waits[k]))
          all.push_back({i, k, e});
  }
  return all;
}

void leave_out(Prepared& prepared, const Wait& wait) {
  auto& waits = const_cast<Plan&>(prepared.plan()).steps[wait.step].on_device->waits;
  waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(wait.index));
  // A context has the events that it waits for since it was made.
  auto context = prepared.session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  prepared.context = std::move(*context);
  for (size_t i = 0; i < prepared.inputs.size(); ++i) ASSERT_TRUE(prepared.context.bind_input(i, prepared.inputs[i]->data).ok());
}

// Whether a run of it comes out differently under the delays of `seed`.
bool shows(const Net& net, const SessionOptions& options, const Wait& wait, uint64_t seed, const std::vector<std::vector<char>>& right) {
  const DeviceSetting delays("SEED", std::to_string(seed));
  const Runtime runtime = device_runtime(2);  // whose device's memory holds nothing of an earlier run
  auto prepared = prepare(runtime, net, options);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  leave_out(*prepared, wait);
  return !prepared->context.run().ok() || outputs(prepared->context) != right;
}

TEST_P(Mutant, AWaitThatIsLeftOutShowsUnlessOthersImplyIt) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  constexpr uint64_t nets = 14, most_seeds = 100;
  SessionOptions options = silent(4);
  options.device = device_name(0);
  options.check_plans = false;
  size_t equivalent = 0, found = 0, survived = 0;
  for (uint64_t seed = 1; seed <= nets; ++seed) {
    const Net net = random_net(seed);
    auto prepared = prepare(device_runtime(2), net, options);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(prepared->context.run().ok());
    const std::vector<std::vector<char>> right = outputs(prepared->context);
    for (const Wait& wait : waits_of(prepared->plan())) {
      auto mutant = prepare(device_runtime(2), net, options);
      ASSERT_TRUE(mutant.ok());
      leave_out(*mutant, wait);
      if (CompletionOrder(mutant->plan()).is(wait.before, wait.step)) {
        ++equivalent;
        continue;
      }
      bool shown = false;
      for (uint64_t delays = 1; delays <= most_seeds && !shown; ++delays) shown = shows(net, options, wait, delays, right);
      ++(shown ? found : survived);
      if (!shown)
        std::printf("net %d: no order shows that \"%s\" does not wait for \"%s\"\n", static_cast<int>(seed),
                    prepared->plan().steps[wait.step].name.c_str(), prepared->plan().steps[wait.before].name.c_str());
    }
  }
  std::printf("%zu waits are implied by others; of %zu that are not, %zu show\n", equivalent, found + survived, found);
  EXPECT_GE(found + survived, 20u);
  EXPECT_GE(100 * found, 90 * (found + survived));  // a few change no output
}

}  // namespace
}  // namespace heddle
