// Sums of many terms, as the gradient of a value with many readers: each addition takes over the bytes of the sum so far. Where several
// threads run the steps, nothing else would keep the terms from being computed all at once, before the first is added. So the steps that
// make a term wait for the addition before it; terms run one after the other, in plan order, and each on all threads.
#include <algorithm>

#include "compile/draft.h"

namespace heddle::compiling {
namespace {

// The maximum number of steps of one term that are looked at.
constexpr size_t max_steps_of_a_term = 64;

class Pacing {
 public:
  explicit Pacing(Draft& draft) : draft_(draft), net_(draft.typed.net), position_(net_.nodes.size(), UINT32_MAX) {}

  void run() {
    for (uint32_t i = 0; i < draft_.order.size(); ++i) position_[draft_.order[i].index] = i;
    for (uint32_t i = 0; i < draft_.order.size(); ++i) pace(i);
  }

 private:
  // Returns the step that makes the bytes of `value`, through views; UINT32_MAX: none.
  uint32_t maker(ValueId value) const {
    while (value.valid() && net_[value].producer.valid()) {
      const NodeId id = net_[value].producer;
      if (!draft_.nodes[id.index].view) return position_[id.index];
      value = net_[id].inputs[0];
    }
    return UINT32_MAX;
  }
  uint32_t storage(ValueId value) const { return value.valid() ? draft_.storage_of[value.index] : UINT32_MAX; }
  int64_t planned_bytes(ValueId value) const {
    const uint32_t of = storage(value);
    return of != UINT32_MAX && draft_.storages[of].planned() ? draft_.storages[of].bytes : 0;
  }
  const Node& at(uint32_t step) const { return net_[draft_.order[step]]; }
  bool on_host(uint32_t step) const { return draft_.draft(draft_.order[step]).device == 0; }

  // Returns the input whose bytes the step's output takes over; invalid: none.
  ValueId sum_so_far(uint32_t step) const {
    const Node& node = at(step);
    if (node.outputs.size() != 1 || planned_bytes(node.outputs[0]) == 0) return {};
    const auto taken = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId v) { return v.valid() && storage(v) == storage(node.outputs[0]); });
    return taken == node.inputs.end() ? ValueId() : *taken;
  }

  void pace(uint32_t addition) {
    const ValueId sum = sum_so_far(addition);
    const uint32_t before = maker(sum);
    // Two terms alone may be computed concurrently: two branches of a net are such a sum.
    if (before == UINT32_MAX || !on_host(before) || !is_addition(before)) return;
    const int64_t bytes = planned_bytes(sum);
    for (const ValueId term : at(addition).inputs)
      if (term != sum && planned_bytes(term) >= bytes) wait_for(before, maker(term), bytes);
  }
  bool is_addition(uint32_t step) const {
    const ValueId sum = sum_so_far(step);
    if (!sum.valid()) return false;
    const std::vector<ValueId>& inputs = at(step).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return v != sum && planned_bytes(v) >= planned_bytes(sum); });
  }

  // Makes the step `last`, and those after `before` in plan order that make values as large as the sum for it, run after `before`.
  void wait_for(uint32_t before, uint32_t last, int64_t bytes) {
    std::vector<uint32_t> steps = {last};
    for (size_t i = 0; i < steps.size(); ++i) {
      const uint32_t step = steps[i];
      if (step == UINT32_MAX || step <= before || !on_host(step)) continue;
      bool is_first = true;
      for (const ValueId input : at(step).inputs) {
        const uint32_t from = planned_bytes(input) >= bytes ? maker(input) : UINT32_MAX;
        if (from == UINT32_MAX || from <= before || steps.size() >= max_steps_of_a_term) continue;
        is_first = false;
        if (std::find(steps.begin(), steps.end(), from) == steps.end()) steps.push_back(from);
      }
      std::vector<uint32_t>& after = draft_.edges[before];
      if (is_first && std::find(after.begin(), after.end(), step) == after.end()) after.push_back(step);
    }
  }

  Draft& draft_;
  const Net& net_;
  std::vector<uint32_t> position_;  // by node
};

}  // namespace

Status pace_sums(Draft& draft) {
  // One thread runs the steps in plan order anyway.
  if (draft.options.share_memory && draft.target.max_threads > 1) Pacing(draft).run();
  return {};
}

}  // namespace heddle::compiling
