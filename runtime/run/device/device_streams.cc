#include "run/device/device_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/text.h"

namespace heddle {

DeviceStreams::DeviceStreams(const Plan& plan) : plan_(plan) {
  for (const PlanDevice& planned : plan.devices) {
    OnDevice& there = devices_.emplace_back();
    there.device = planned.device.get();
    there.streams.resize(planned.stream_classes.size());
    there.first_draw.assign(planned.stream_classes.size(), -1);
  }
  records_.resize(plan.steps.size());
  wait_begin_.resize(plan.steps.size() + 1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const DeviceWork* work = plan.steps[i].on_device.get();
    wait_begin_[i + 1] = wait_begin_[i] + static_cast<uint32_t>(work ? work->waits.size() : 0);
  }
  waits_.resize(wait_begin_.back());
}

Status DeviceStreams::allocate() {
  HEDDLE_CHECK(allocate_states());
  HEDDLE_CHECK(allocate_faults());
  return allocate_extents();
}

Status DeviceStreams::allocate_states() {
  for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (!work || !plan_.steps[i].draws) continue;
    OnDevice& there = devices_[work->device - 1u];
    if (there.first_draw[work->stream] < 0) there.first_draw[work->stream] = static_cast<int32_t>(i);
    if (!there.states) {
      HEDDLE_TRY(there.states, there.device->allocate(static_cast<int64_t>(there.streams.size() * state_stride)));
    }
  }
  return {};
}

Status DeviceStreams::allocate_extents() {
  for (const PlanValue& value : plan_.values) {
    if (value.extent_slot < 0 || value.place.device == 0) continue;
    OnDevice& there = devices_[value.place.device - 1u];
    if (!there.extents) {
      HEDDLE_TRY(there.extents, there.device->allocate(static_cast<int64_t>(plan_.extent_slots * sizeof(int64_t))));
    }
  }
  return {};
}

Status DeviceStreams::allocate_faults() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    OnDevice& there = devices_[d];
    if (!plan_.devices[d].has_block) continue;
    HEDDLE_TRY(there.faults, there.device->allocate(FaultBlock::bytes(devices_.size())));
    there.block = static_cast<std::byte*>(there.faults.get());
  }
  return {};
}

Status DeviceStreams::clear_faults() {
  if (std::exchange(faults_clear_, false)) return {};
  static constexpr std::array<std::byte, FaultBlock::max_bytes> zeros = {};
  const int64_t bytes = FaultBlock::bytes(devices_.size());
  for (const OnDevice& there : devices_)
    if (there.faults) HEDDLE_CHECK(there.device->write(there.block, zeros.data(), bytes));
  return {};
}

void DeviceStreams::move_to(const ContextMemory& memory) {
  staging_ = memory.staging();
  for (size_t d = 0; d < devices_.size(); ++d) devices_[d].arena = memory.arena(static_cast<uint8_t>(d + 1));
}

void DeviceStreams::follow(const Workspace& workspace, const ContextMemory& memory) {
  move_to(memory);
  for (size_t d = 0; d < devices_.size(); ++d) {
    OnDevice& there = devices_[d];
    const std::vector<int32_t>& classes = plan_.devices[d].stream_classes;
    for (size_t s = 0; s < classes.size(); ++s) {
      const auto of_class = std::count(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(s), classes[s]);
      there.streams[s] = workspace.stream(*there.device, classes[s], static_cast<size_t>(of_class));
    }
  }
  const auto event = [&](size_t e) { return workspace.event(*plan_.devices[plan_.events[e].device - 1u].device, plan_.events[e].index); };
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (!work) continue;
    for (size_t w = 0; w < work->waits.size(); ++w) waits_[wait_begin_[i] + w] = event(work->waits[w]);
    records_[i] = work->records < 0 ? nullptr : event(static_cast<size_t>(work->records));
  }
}

void DeviceStreams::follow(const DeviceStreams& outer, uint32_t step, uint32_t subnet, const ContextMemory& memory) {
  move_to(memory);
  outer_label_ = outer.label_of(step);
  subnet_ = subnet;
  void* const stream = outer.stream(*outer.plan_.steps[step].on_device);
  const DeviceWork& work = *outer.plan_.steps[step].on_device;
  for (OnDevice& there : devices_) {
    std::fill(there.streams.begin(), there.streams.end(), stream);
    there.block = outer.block_on(work.device);
  }
}

Status DeviceStreams::usable() const {
  for (const OnDevice& there : devices_) HEDDLE_CHECK(there.device->usable());
  return {};
}

// ---------------------------------------------------------------- labels

uint64_t DeviceStreams::label_of(uint32_t step) const {
  if (outer_label_ == no_label) return step;
  if (outer_label_ >> 32 != 0) return outer_label_;
  constexpr uint32_t max_subnet = 14, max_step = (1u << 28) - 1;
  return outer_label_ | uint64_t{std::min(subnet_, max_subnet) + 1} << 60 | uint64_t{std::min(step, max_step)} << 32;
}

std::optional<DeviceStreams::Origin> DeviceStreams::origin_of(uint64_t label) const {
  if (label == no_label) return std::nullopt;
  const auto step = static_cast<uint32_t>(label), inner = static_cast<uint32_t>(label >> 32) & ((1u << 28) - 1);
  const auto subnet = static_cast<uint32_t>(label >> 60);
  if (outer_label_ != no_label) {
    if (step != static_cast<uint32_t>(outer_label_)) return Origin{step, true, {}};
    return Origin{inner < plan_.steps.size() ? inner : 0, false, {}};
  }
  if (step >= plan_.steps.size()) return std::nullopt;
  const std::vector<NestedPlan>& nested = *plan_.steps[step].nested;
  Origin origin{step, false, {}};
  if (subnet > 0 && subnet <= nested.size() && inner < nested[subnet - 1].plan->steps.size()) {
    const PlanStep& there = nested[subnet - 1].plan->steps[inner];
    origin.inside = fmt::format(", in {} ({}) of subnet {}", quoted(there.name), display_name(there.domain, there.type),
                                quoted(nested[subnet - 1].plan->net_name));
  }
  return origin;
}

// ---------------------------------------------------------------- streams of the caller's

Status DeviceStreams::stream_without_work(const CallerStream& option) {
  return {Code::invalid_argument, fmt::format("a stream of {} was given, where nothing of the net runs", quoted(option.device)),
          "give streams of the devices that plan() names, in full: \"kind:index\""};
}

Result<DeviceStreams::Adopted*> DeviceStreams::adopt(const CallerStream& option) {
  for (uint32_t d = 1; d <= device_count(); ++d) {
    Device& there = device(d);
    if (there.name() != option.device) continue;
    for (Adopted& known : adopted_)
      if (known.native == option.stream && known.device == d) return &known;
    HEDDLE_TRY(DeviceStream stream, there.create_stream(HEDDLE_STREAM_COMPUTE, option.stream));
    HEDDLE_TRY(DeviceEvent reached, there.create_event());
    adopted_.push_back({option.stream, d, std::move(stream), std::move(reached)});
    return &adopted_.back();
  }
  return stream_without_work(option);
}

void DeviceStreams::forget_adopted() {
  constexpr size_t max_kept = 16;
  if (adopted_.size() >= max_kept) adopted_.clear();
}

}  // namespace heddle
