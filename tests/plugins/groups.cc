// A collective operator whose kernel is launched in groups, without a library of communication: each output is the sum of all inputs, added
// in the order of the devices. Kernels were told in prepare which part of how large a group they are.
#include <algorithm>
#include <string>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

class Sums {
 public:
  Status prepare(PrepareContext& context) {
    size_ = context.group_size();
    index_ = context.group_index();
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const RunContext* const parts[] = {&c};
    return sum(RunGroup(parts, 1));
  }
  Status run_group(const RunGroup& group) const {
    for (uint32_t part = 0; part < group.size(); ++part) {
      const auto& kernel = *static_cast<const Sums*>(group[part].state);
      if (kernel.size_ != group.size() || kernel.index_ != part)
        return invalid("part " + std::to_string(part) + " of " + std::to_string(group.size()) + " was prepared as part " +
                       std::to_string(kernel.index_) + " of " + std::to_string(kernel.size_));
    }
    return sum(group);
  }

 private:
  static Status sum(const RunGroup& group) {
    const Out<float> first = output<float>(group[0], 0);
    std::fill(first.data, first.data + first.size, 0.0F);
    for (uint32_t part = 0; part < group.size(); ++part) {
      const In<float> mine = input<float>(group[part], 0);
      if (mine.size != first.size) return invalid("members of a group have other sizes");
      for (int64_t i = 0; i < mine.size; ++i) first.data[i] += mine.data[i];
    }
    for (uint32_t part = 1; part < group.size(); ++part) std::copy(first.data, first.data + first.size, output<float>(group[part], 0).data);
    return {};
  }

  uint32_t size_ = 0, index_ = 0;
};

}  // namespace

HEDDLE_PLUGIN("groups", "1.0", plugin) {
  Op sum("Sum", "groups");
  sum.in("x", dtypes<float>()).out("y", same_as("x"), dtypes<float>());
  plugin.add(sum.required("communicator", HEDDLE_ATTRIBUTE_STRING).traits(HEDDLE_TRAIT_COLLECTIVE).cpu<Sums>());
}
