// The plans of a session: found by dtypes, shapes and contents, made where there is none, dropped where there is no room.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "infer/shape_operands.h"
#include "plugin/host.h"
#include "session/describe_plan.h"
#include "session/plan_footprint.h"
#include "session/session_impl.h"
#include "weights/attach.h"
#include "weights/referenced_files.h"

namespace heddle {

Status check_count(const Net& net, size_t count) {
  if (count == 0 || count == net.inputs.size()) return {};
  return {Code::missing_input, fmt::format("the net has {} inputs, {} are given", net.inputs.size(), count), "give each input"};
}

Status check_sizes(const Net& net, const TensorView* inputs, size_t count, const Limits& limits) {
  for (size_t i = 0; i < count; ++i) {
    int64_t bytes = 0;
    if (checked_byte_size(inputs[i].dtype, inputs[i].shape, &bytes) && bytes <= limits.tensor_bytes) continue;
    return over_limit(limits, &Limits::tensor_bytes,
                      fmt::format("input {} is {}{}", quoted(net[net.inputs[i]].name), to_string(inputs[i].dtype), inputs[i].shape.text()));
  }
  return {};
}

bool Session::Impl::matches(const PlanEntry& entry, const TensorView* inputs, size_t count) const {
  if (count == 0) return entry.as_declared;
  // A plan that was made without the contents that decide shapes is not used where they are known.
  if (entry.types.size() != count || entry.contents.size() != shape_inputs.size()) return false;
  for (size_t i = 0; i < count; ++i)
    if (inputs[i].dtype != entry.types[i].dtype || inputs[i].shape != entry.types[i].shape) return false;
  for (size_t k = 0; k < entry.contents.size(); ++k) {
    const TensorView& input = inputs[shape_inputs[k]];
    const std::vector<std::byte>& content = entry.contents[k];
    if (!input.data || static_cast<size_t>(input.byte_size()) != content.size() ||
        !std::equal(content.begin(), content.end(), static_cast<const std::byte*>(input.data)))
      return false;
  }
  return true;
}

std::shared_ptr<PlanEntry> Session::Impl::cached(const TensorView* inputs, size_t count) {
  const MutexLock lock(mutex);
  // Drop plans that use a lost device; the next call compiles for the reopened one.
  const auto lost = [](const PlanDevice& d) { return d.device->lost(); };
  plans_evicted += static_cast<int64_t>(
      plans.remove_if([&](const auto& entry) { return std::any_of(entry->plan->devices.begin(), entry->plan->devices.end(), lost); }));
  for (auto it = plans.begin(); it != plans.end(); ++it) {
    if (!matches(**it, inputs, count)) continue;
    if (it != plans.begin()) plans.splice(plans.begin(), plans, it);
    ++plan_hits;
    return plans.front();
  }
  ++plan_misses;
  return nullptr;
}

Result<std::shared_ptr<PlanEntry>> Session::Impl::make_plan(const TensorView* inputs, size_t count, const Interruption* interruption) {
  // Folding and packing are about to read mapped weights: a file that shrank meanwhile is an error, not a fault.
  HEDDLE_CHECK(check_weights_whole(net), "while preparing the net");
  auto entry = std::make_shared<PlanEntry>();
  PipelineOptions p = pipeline;
  p.interruption = interruption;
  entry->as_declared = count == 0;
  HEDDLE_CHECK(check_sizes(net, inputs, count, target.limits));
  for (size_t i = 0; i < count; ++i) p.inputs.push_back({{inputs[i].dtype, inputs[i].shape}, nullptr});
  if (count > 0)
    for (const uint32_t i : shape_inputs) {
      const TensorView& input = inputs[i];
      if (!input.data) return missing_content(net[net.inputs[i]].name);
      const auto* bytes = static_cast<const std::byte*>(input.data);
      entry->contents.emplace_back(bytes, bytes + input.byte_size());
      p.inputs[i].content = Blob::copy_of(input.dtype, input.shape, input.data);
    }
  entry->times = load_times;
  HEDDLE_TRY(entry->plan, build_plan(net, registry, target, p, &entry->times));
  entry->needs = needs_of(*entry->plan);
  for (const ValueId id : entry->plan->inputs) entry->types.push_back(entry->plan->values[id.index].type);
  return entry;
}

Result<std::shared_ptr<PlanEntry>> Session::Impl::find_plan(const TensorView* inputs, size_t count, const Interruption* interruption) {
  HEDDLE_CHECK(check_count(net, count));
  if (auto entry = cached(inputs, count)) return entry;
  HEDDLE_TRY(std::shared_ptr<PlanEntry> made, make_plan(inputs, count, interruption));
  made->footprint = plan_footprint(*made->plan, net);
  const MutexLock lock(mutex);
  made->number = ++plans_made;
  for (const auto& entry : plans)
    if (matches(*entry, inputs, count)) return entry;
  tell_of_thrashing(*made);
  plans.push_front(made);
  make_room();
  return made;
}

namespace {

// Returns a hash of the types and contents that a plan was made for.
uint64_t hash_of(const PlanEntry& entry) {
  uint64_t hash = 0;
  const auto add = [&](uint64_t number) {
    hash ^= number;
    hash = next_random(hash);
  };
  for (const TensorType& type : entry.types) {
    add(static_cast<uint64_t>(type.dtype));
    for (const int64_t dim : type.shape) add(static_cast<uint64_t>(dim));
  }
  for (const auto& content : entry.contents)
    for (const std::byte byte : content) add(static_cast<uint64_t>(byte));
  return hash;
}

}  // namespace

void Session::Impl::make_room() {
  constexpr size_t max_remembered = 4096;
  int64_t bytes = 0;
  for (const auto& entry : plans) bytes += entry->footprint;
  while (plans.size() > 1 && (bytes > options.plan_cache_bytes || plans.size() > static_cast<size_t>(std::max(1, options.plan_cache)))) {
    bytes -= plans.back()->footprint;
    if (dropped_plans.size() < max_remembered) dropped_plans.insert(hash_of(*plans.back()));
    plans.pop_back();
    ++plans_evicted;
  }
}

void Session::Impl::tell_of_thrashing(const PlanEntry& made) {
  if (told_of_thrashing || dropped_plans.count(hash_of(made)) == 0) return;
  told_of_thrashing = true;
  log_line(HEDDLE_LOG_WARNING,
           fmt::format("plans of net {} are made again and again: it is run with more shapes than plans are kept for ({} in {}); raise "
                       "SessionOptions::plan_cache_bytes, or pad inputs to fewer shapes",
                       quoted(net.name), plans.size(), human_bytes(options.plan_cache_bytes)));
}

Result<std::shared_ptr<PlanEntry>> Session::Impl::find_plan_to_run(const TensorView* inputs, size_t count,
                                                                   const Interruption& interruption) {
  HEDDLE_TRY(auto entry, find_plan(inputs, count, &interruption));
  HEDDLE_CHECK(variables->fill(interruption));
  return entry;
}

std::shared_ptr<const PlanInfo> PlanEntry::described() {
  const MutexLock lock(mutex);
  if (!info) info = describe(*plan, times, number);
  return info;
}

}  // namespace heddle
