// What kernels ask their host for while they run, and the nets that they run inside.
#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "plugin/attributes.h"
#include "plugin/host.h"
#include "run/execution.h"
#include "run/late_step.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

// Seeds that differ in one bit are unrelated.
uint64_t mixed(uint64_t seed, uint64_t with) {
  uint64_t state = seed + 0x9e3779b97f4a7c15ULL * with;
  return next_random(state);
}

}  // namespace

const heddle_host* Execution::host() {
  static const heddle_host table = [] {
    heddle_host h = *base_host();
    // Plugins call these, and nothing may be thrown across them.
    h.set_error = [](const void* context, heddle_status code, const char* text, size_t length) noexcept {
      StepContext& c = context_of(context);
      try {
        c.owner->failures_.note(c.step, code, kept_text(text, length));
      } catch (const std::bad_alloc&) {
        // The status is reported without its text.
      }
    };
    h.thread_scratch = [](const void* context) -> void* {
      const StepContext& c = context_of(context);
      if (c.thread_scratch) return c.thread_scratch;
      const Execution& owner = *c.owner;
      // A plan for one thread (a subnet's) has one scratch, whichever thread runs it.
      const uint32_t index = owner.plan_->max_threads > 1 ? worker_index() : 0;
      return owner.thread_scratch_ + static_cast<size_t>(index) * static_cast<size_t>(owner.plan_->thread_scratch_bytes);
    };
    h.thread_index = [](const void* context) -> uint32_t { return context_of(context).owner->plan_->max_threads > 1 ? worker_index() : 0; };
    h.cancelled = [](const void* context) -> int32_t {
      const StepContext& c = context_of(context);
      return c.owner->should_stop(c.step) ? 1 : 0;
    };
    h.allocate_output = [](const void* context, uint32_t output, const int64_t* dims, int32_t rank) -> void* {
      StepContext& c = context_of(context);
      LateStep* late = c.owner->late_.empty() ? nullptr : c.owner->late_[c.step].get();
      try {
        return late ? late->allocate_output(output, dims, rank) : nullptr;
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
    };
    h.run_subnet = [](const void* context, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                      heddle_tensor* const* outputs, uint32_t output_count) -> heddle_status {
      StepContext& c = context_of(context);
      try {
        return c.owner->run_subnet(c.step, subnet, inputs, input_count, outputs, output_count);
      } catch (const std::bad_alloc&) {
        return HEDDLE_ERROR_OUT_OF_MEMORY;
      }
    };
    return h;
  }();
  return &table;
}

// Whether a kernel that asks while it runs should give up: its run, or the one around it, was cancelled or is late. Never in the tail:
// updates of variables are all made or none.
bool Execution::should_stop(uint32_t step) {
  bool stop = false;
  for (Execution* e = this; e; step = e->parent_step_, e = e->parent_) {
    if (step >= e->plan_->graph.tail_begin) return false;
    RunControl& control = e->control_;
    if (control.deadline_ticks != 0 && ticks() >= control.deadline_ticks) request_stop(control.stop, stop_deadline);
    stop = stop || control.stop.load(std::memory_order_relaxed) != 0;
  }
  return stop;
}

void Execution::step_failed(void* user, uint32_t step, heddle_status status) {
  static_cast<Execution*>(user)->failures_.report(step, status);
}

bool Execution::outer_stops(void* user) {
  const Execution& self = *static_cast<Execution*>(user);
  return self.parent_->should_stop(self.parent_step_);
}

uint64_t Execution::next_trip(uint32_t step, const Net* subnet) {
  for (Trips& trips : trips_[step])
    if (trips.subnet == subnet) return trips.count++;
  trips_[step].push_back({subnet, 1});
  return 0;
}

// Whether the plan was made for inputs of these types, and of these contents where it depends on them.
bool Execution::made_for(std::span<const heddle_tensor* const> inputs) {
  if (plan_->inputs.size() != inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = plan_->values[plan_->inputs[i].index].type;
    if (static_cast<DType>(inputs[i]->dtype) != type.dtype || Shape(inputs[i]->dims, inputs[i]->rank) != type.shape) return false;
  }
  for (size_t k = 0; k < recognised_.size(); ++k) {
    const KnownInput& known = plan_->known_inputs[k];
    const heddle_tensor& input = *inputs[known.input];
    const bool constant = (input.flags & HEDDLE_TENSOR_CONSTANT) != 0;
    if (constant && input.data && input.data == recognised_[k]) continue;
    const auto bytes = static_cast<size_t>(known.content->bytes);
    if (bytes > 0 && (!input.data || std::memcmp(input.data, known.content->data, bytes) != 0)) return false;
    if (constant) recognised_[k] = input.data;
  }
  return true;
}

// The execution of a subnet for such inputs; null: there is none.
Execution* Execution::find_nested(uint32_t step, const Net* subnet, std::span<const heddle_tensor* const> inputs, size_t outputs) {
  if (nested_.empty()) return nullptr;
  auto& kept = nested_[step];
  auto found = kept.end();
  for (auto candidate = kept.begin(); candidate != kept.end(); ++candidate) {
    Execution& e = **candidate;
    if (e.subnet_ != subnet || e.plan().outputs.size() < outputs || !e.made_for(inputs)) continue;
    // The plan that knew most is the one that inference had meant.
    if (found == kept.end() || e.plan().known_inputs.size() > (*found)->plan().known_inputs.size()) found = candidate;
  }
  if (found == kept.end()) return nullptr;
  Execution* const chosen = found->get();
  // What a late step keeps is in the order of last use.
  if (plan_->steps[step].late) std::rotate(found, found + 1, kept.end());
  return chosen;
}

// Stands before kernels that read extents themselves.
heddle_status Execution::run_with_extents(const heddle_run_context* context, int64_t begin, int64_t end) {
  StepContext& c = context_of(context);
  if (const Status bad = check_input_extents(*context); !bad.ok()) {
    c.owner->failures_.note(c.step, HEDDLE_ERROR_INVALID, bad.diagnostic().message);
    return HEDDLE_ERROR_INVALID;
  }
  return c.owner->plan_->steps[c.step].kernel->kernel->run(context, begin, end);
}

// Tiles in ranges of some milliseconds: between them the step looks whether the run is to end. `tile_ns`: what is known, or 0.
heddle_status Execution::run_tiles(uint32_t step, heddle_run_function run, const heddle_run_context* context, TileSpan tiles,
                                   double tile_ns) {
  constexpr double range_ns = 5e6;
  for (uint64_t before = ticks(); tiles.begin < tiles.end;) {
    const int64_t wanted = tile_ns > 0 ? std::max<int64_t>(1, static_cast<int64_t>(range_ns / tile_ns)) : 1;
    const int64_t count = std::min(wanted, tiles.end - tiles.begin);
    if (const heddle_status status = run(context, tiles.begin, tiles.begin + count); status != HEDDLE_OK) return status;
    tiles.begin += count;
    if (tiles.begin == tiles.end) break;
    if (should_stop(step)) return HEDDLE_ERROR_CANCELLED;
    const uint64_t now = ticks();
    tile_ns = std::max(1.0, ticks_to_ns(now - before) / static_cast<double>(count));
    before = now;
  }
  return HEDDLE_OK;
}

// Stands before kernels that may be at work for long.
heddle_status Execution::run_in_ranges(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = context_of(context);
  const PlanStep& step = c.owner->plan_->steps[c.step];
  const heddle_run_function run = step.reads_extents ? run_with_extents : step.kernel->kernel->run;
  return c.owner->run_tiles(c.step, run, context, {begin, end}, step.cost_ns / static_cast<double>(step.tiles));
}

heddle_status Execution::run_subnet(uint32_t step, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                                    heddle_tensor* const* outputs, uint32_t output_count) {
  const auto refuse = [&](heddle_status code, const std::string& text) {
    failures_.note(step, code, text);
    return code;
  };
  const auto failed = [&](Status cause) {
    const heddle_status code = status_of(cause.code());
    failures_.note_cause(step, std::move(cause));
    return code;
  };
  const Net* net = from_abi(subnet);
  for (uint32_t i = 0; i < input_count; ++i)
    if (!inputs[i]) return refuse(HEDDLE_ERROR_INVALID, "input " + std::to_string(i) + " of subnet " + quoted(net->name) + " is absent");
  const auto elsewhere = [](const heddle_tensor* t) { return t && t->space != HEDDLE_SPACE_HOST; };
  if (std::any_of(inputs, inputs + input_count, elsewhere) || std::any_of(outputs, outputs + output_count, elsewhere))
    return refuse(HEDDLE_ERROR_INVALID, "subnet " + quoted(net->name) + " is given device memory, and subnets run on the host");
  const auto from_outside = [&](Status status) {
    const PlanStep& outer = plan_->steps[step];
    return from_subnet(std::move(status), net->name, plan_->net_name, outer.name, display_name(outer.domain, outer.type));
  };
  const int64_t most = plan_->limits.loop_trips;
  Execution* outermost = this;
  while (outermost->parent_) outermost = outermost->parent_;
  if (outermost->subnet_runs_.fetch_add(1, std::memory_order_relaxed) >= most)
    return failed(over_limit(plan_->limits, &Limits::loop_trips, "the loops of the net go round too often"));
  const std::span<const heddle_tensor* const> given(inputs, input_count);
  Execution* nested = find_nested(step, net, given, output_count);
  if (!nested && plan_->steps[step].late) {
    // Only what is the same in each run may be part of a plan.
    std::vector<heddle_tensor> views(input_count);
    std::vector<const heddle_tensor*> lasting(input_count);
    for (uint32_t i = 0; i < input_count; ++i) {
      views[i] = *inputs[i];
      if (!(views[i].flags & HEDDLE_TENSOR_CONSTANT)) views[i].data = nullptr;
      lasting[i] = &views[i];
    }
    Result<Execution*> made = late_[step]->compile(net, lasting, {});
    if (!made.ok()) return failed(from_outside(made.status()));
    nested = *made;
  }
  if (!nested) return refuse(HEDDLE_ERROR_UNSUPPORTED, "a subnet is run with shapes or contents for which it was not planned");
  if (nested->plan().outputs.size() < output_count) return refuse(HEDDLE_ERROR_INVALID, "the subnet has too few outputs");
  for (uint32_t i = 0; i < input_count; ++i) nested->bind_input(i, inputs[i]->data);
  for (uint32_t i = 0; i < output_count; ++i) {
    const TensorType& type = nested->plan().values[nested->plan().outputs[i].index].type;
    const bool where_it_is = !outputs[i] || !outputs[i]->data || type.late();
    nested->bind_output(i, where_it_is ? nullptr : outputs[i]->data);
    // A larger place would keep old bytes behind the result.
    if (!where_it_is && outputs[i]->byte_size != static_cast<uint64_t>(type.byte_size()))
      return refuse(HEDDLE_ERROR_INVALID, "output " + std::to_string(i) + " of subnet " + quoted(net->name) + " takes " +
                                              std::to_string(type.byte_size()) + " bytes, its place has " +
                                              std::to_string(outputs[i]->byte_size));
  }
  // Random operators of a subnet differ from those of other subnets, and from trip to trip.
  RunSettings settings;
  settings.seed = mixed(mixed(info_.seed, plan_->steps[step].random_stream), next_trip(step, net));
  settings.step = info_.step;
  Status status = nested->run(settings);
  if (status.code() == Code::cancelled) return refuse(HEDDLE_ERROR_CANCELLED, "cancelled");
  if (!status.ok()) return failed(from_outside(std::move(status)));
  nested->result_shapes_.resize(nested->outputs_.size());
  for (uint32_t i = 0; i < output_count; ++i) {
    const bool late = nested->plan().values[nested->plan().outputs[i].index].type.late();
    if (!outputs[i] || (outputs[i]->data && !late)) continue;
    const TensorView result = nested->output(i);
    if (outputs[i]->data) {
      const Shape wanted(outputs[i]->dims, outputs[i]->rank);
      if (result.shape != wanted || result.dtype != static_cast<DType>(outputs[i]->dtype))
        return refuse(HEDDLE_ERROR_INVALID, "output " + std::to_string(i) + " of subnet " + quoted(net->name) + " is " +
                                                to_string(result.dtype) + result.shape.text() + ", expected " +
                                                to_string(static_cast<DType>(outputs[i]->dtype)) + wanted.text());
      if (outputs[i]->byte_size > 0) std::memcpy(outputs[i]->data, result.data, outputs[i]->byte_size);
      continue;
    }
    Shape& shape = nested->result_shapes_[i] = result.shape;
    *outputs[i] = tensor_view(result.dtype, shape, result.data);
  }
  return HEDDLE_OK;
}

}  // namespace heddle
