#include "charts/arena_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/device_name.h"

namespace heddle::tool {
namespace {

std::string type_text(const PlanInfo::Value& value) {
  return fmt::format("{}{}", to_string(value.dtype), value.shape.text());
}

class Buffers {
 public:
  Buffers(const PlanInfo& plan, size_t device, const std::vector<StepPhase>& phases) : plan_(plan), device_(device), phases_(phases) {}

  std::vector<ArenaBuffer> all() && {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const PlanInfo::Operand& operand : plan_.steps[i].inputs) touch(operand.value, i);
      for (const PlanInfo::Operand& operand : plan_.steps[i].outputs) touch(operand.value, i);
      add_scratch(i);
    }
    for (const size_t output : plan_.outputs) finish(output);
    for (auto& [number, buffer] : buffers_) {
      buffer.others = values_[number].size() - 1;
      scratch_.push_back(std::move(buffer));
    }
    std::stable_sort(scratch_.begin(), scratch_.end(), [](const ArenaBuffer& a, const ArenaBuffer& b) { return a.offset < b.offset; });
    return std::move(scratch_);
  }

 private:
  bool is_here(const PlanInfo::Value& value) const { return value.place == PlanInfo::Place::arena && value.device == device_; }

  void touch(std::optional<size_t> index, size_t step) {
    if (!index || !is_here(plan_.values[*index])) return;
    const PlanInfo::Value& value = plan_.values[*index];
    const auto [at, is_new] = buffers_.try_emplace(value.buffer);
    ArenaBuffer& buffer = at->second;
    if (is_new)
      buffer = {phases_[step] == StepPhase::backward ? ArenaBuffer::Role::gradient : ArenaBuffer::Role::value,
                value.name,
                plan_.steps[step].name,
                type_text(value),
                0,
                value.offset,
                value.bytes,
                step,
                step,
                false};
    const int64_t end = std::max(buffer.offset + buffer.bytes, value.offset + value.bytes);
    buffer.offset = std::min(buffer.offset, value.offset);
    buffer.bytes = end - buffer.offset;
    buffer.last_step = step;
    values_[value.buffer].insert(*index);
  }

  void add_scratch(size_t i) {
    const PlanInfo::Step& step = plan_.steps[i];
    const bool here = device_ == 0 ? !step.on_stream && is_host(step.device) : step.device == plan_.memory[device_].device;
    if (here && step.scratch_bytes > 0)
      scratch_.push_back({ArenaBuffer::Role::scratch, step.name, step.name, {}, 0, step.scratch_offset, step.scratch_bytes, i, i, false});
  }

  // An output of the net is kept to the end of the run.
  void finish(size_t output) {
    const PlanInfo::Value& value = plan_.values[output];
    const auto at = is_here(value) ? buffers_.find(value.buffer) : buffers_.end();
    if (at == buffers_.end()) return;
    at->second.role = ArenaBuffer::Role::output;
    at->second.last_step = plan_.steps.size() - 1;
  }

  const PlanInfo& plan_;
  const size_t device_;
  const std::vector<StepPhase>& phases_;
  std::map<uint32_t, ArenaBuffer> buffers_;
  std::map<uint32_t, std::set<size_t>> values_;
  std::vector<ArenaBuffer> scratch_;
};

}  // namespace

ArenaBuffers arena_buffers(const PlanInfo& plan, size_t device, const std::vector<StepPhase>& phases) {
  ArenaBuffers buffers;
  buffers.all = Buffers(plan, device, phases).all();
  const std::vector<MemoryOwner> owners = memory_by_owner(plan, device);
  if (owners.empty()) return buffers;
  buffers.last_full = SIZE_MAX;
  for (const MemoryOwner& owner : owners) {
    buffers.held_bytes += owner.bytes;
    buffers.first_full = std::max(buffers.first_full, owner.first_step);
    buffers.last_full = std::min(buffers.last_full, owner.last_step);
  }
  for (ArenaBuffer& buffer : buffers.all) buffer.held = buffer.first_step <= buffers.first_full && buffer.last_step >= buffers.first_full;
  return buffers;
}

}  // namespace heddle::tool
