#include "compile/plan_check/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/checked.h"
#include "base/text/text.h"
#include "compile/plan_check/plan_check_graph.h"
#include "compile/plan_check/update_phase_check.h"
#include "plugin/registry.h"

namespace heddle::compiling {
namespace {

constexpr uint32_t nobody = UINT32_MAX;  // no step: written before the run, or never

// Bytes of a value, or of a step's scratch, and the steps that use them.
struct Buffer {
  std::string name;
  const MemoryPlace* place = nullptr;  // null: scratch
  // Which memory: the arena of a device (0: the host), the host's pinned memory, or variable `memory - first_variable`, where variables
  // that inputs bring follow the others; -1: memory that the plan does not lay out.
  int64_t memory = -1;
  int64_t begin = 0, end = 0;
  uint32_t writer = nobody;       // for a view: the writer of the value that it shows
  std::vector<uint32_t> readers;  // without repeats
  uint32_t source = nobody;       // the buffer whose content it has: itself, or for a view the buffer that it shows
  bool written = false;           // by a step, not a view
};
constexpr int64_t pinned_memory = 255, first_variable = 256;  // greater than any device

bool overlap(const Buffer& a, const Buffer& b) {
  return a.memory >= 0 && a.memory == b.memory && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

// True if the planner means them to have the same bytes.
bool share(const Buffer& a, const Buffer& b) {
  return a.place && b.place && a.place->kind == b.place->kind && a.place->device == b.place->device && a.place->index == b.place->index;
}

bool has_asynchronous(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const PlanStep& step) { return step.suspends || (step.kernel && step.asynchronous()); });
}

class Judge {
 public:
  explicit Judge(const Plan& plan)
      : plan_(plan),
        graph_(plan.graph),
        in_plan_order_(plan.max_threads <= 1 && plan.devices.empty() && !has_asynchronous(plan)),
        order_(plan) {}

  Status run() {
    HEDDLE_CHECK(order_.read());
    HEDDLE_CHECK(check_places());
    find_updated_inputs();
    HEDDLE_CHECK(collect_buffers());
    HEDDLE_CHECK(check_outputs());
    HEDDLE_CHECK(check_updates());
    HEDDLE_CHECK(check_collectives());
    HEDDLE_CHECK(check_subnets());
    HEDDLE_CHECK(check_scratch());
    HEDDLE_CHECK(check_pinned());
    HEDDLE_CHECK(check_sizes());
    HEDDLE_CHECK(check_storages());
    HEDDLE_CHECK(check_reads_after_writes());
    return check_overwriting();
  }

 private:
  Status check_updates() const;
  Status check_collectives() const;
  Status check_places() const;
  void find_updated_inputs();
  Status check_place(const PlanValue& value) const;
  Status collect_buffers();
  Status add_write(uint32_t step, ValueId value);
  Status check_outputs() const;
  Status check_subnets() const;
  Status check_scratch();
  Status add_scratch(uint32_t step, int64_t memory, int64_t begin, int64_t own, int64_t nested);
  Status check_sizes() const;
  Status check_pinned() const;
  Status check_storages() const;
  Status check_reads_after_writes();
  Status find_shown(uint32_t view);
  Status check_overwriting() const;
  Status check_use(const Buffer& buffer, uint32_t user, const Buffer& written) const;
  Status check_in_place(uint32_t step, const Buffer& taken, const Buffer& written) const;
  bool may_take(const PlanStep& step, size_t input, size_t output) const;

  std::string step_name(uint32_t step) const { return plan_step_name(plan_, step); }
  bool reaches(uint32_t a, uint32_t b) const { return order_.reaches(a, b); }
  std::string user_name(uint32_t user) const { return user == the_end ? "the caller" : step_name(user); }
  bool exists(ValueId value) const { return value.index < plan_.values.size(); }
  int64_t arena_bytes(int64_t memory) const {
    if (memory == pinned_memory) return plan_.pinned_bytes;
    return memory == 0 ? plan_.arena_bytes : plan_.devices[static_cast<size_t>(memory) - 1].arena_bytes;
  }
  // Returns the memory at `offset` of a device's arena; `offset` becomes the offset within that memory.
  int64_t memory_at(uint8_t device, int64_t* offset) const {
    if (device != 0 || *offset < plan_.pinned_offset() || plan_.pinned_bytes == 0) return device;
    *offset -= plan_.pinned_offset();
    return pinned_memory;
  }
  // True for the session's variables, and in a subnet for one that an input brings and that it updates.
  bool is_variable(const MemoryPlace& at) const {
    return at.kind == MemoryPlace::Kind::variable || (at.kind == MemoryPlace::Kind::input && updated_inputs_[at.index]);
  }
  // True if `a` is before `b` in every possible run.
  bool before(uint32_t a, uint32_t b, bool by_edges) const { return in_plan_order_ && !by_edges ? a < b : reaches(a, b); }

  const Plan& plan_;
  const StepGraph& graph_;
  const bool in_plan_order_;
  PlanOrder order_;
  std::vector<char> updated_inputs_;
  std::vector<Buffer> buffers_;  // of values, by ValueId; followed by scratches
};

Status Judge::check_updates() const {
  for (uint32_t s = 0; s < graph_.count; ++s)
    for (const Operand& out : plan_.steps[s].outputs)
      if (out.value.valid() && is_variable(plan_.values[out.value.index].place) && !plan_.steps[s].updates_variable)
        return wrong_plan(fmt::format("{} writes a variable and is not marked as an update", step_name(s)));
  return check_update_phase(plan_, order_);
}

Status Judge::check_collectives() const {
  std::map<uint8_t, uint32_t> last;  // by device
  for (uint32_t s = 0; s < graph_.count; ++s) {
    if (!plan_.steps[s].collective) continue;
    const auto [at, first] = last.try_emplace(plan_.steps[s].placed, s);
    if (!first && !reaches(at->second, s))
      return wrong_plan(fmt::format("{} and {} are collectives of one device in no order", step_name(at->second), step_name(s)));
    at->second = s;
  }
  return {};
}

Status Judge::check_place(const PlanValue& value) const {
  const MemoryPlace& at = value.place;
  const auto beyond = [&] { return wrong_plan(fmt::format("value {} lies in a memory that is not there", quoted(value.name))); };
  if (at.device > plan_.devices.size()) return beyond();
  switch (at.kind) {
    case MemoryPlace::Kind::arena: {
      const int64_t bytes = value.type.byte_size();
      if (at.offset < 0) return wrong_plan(fmt::format("value {} lies at the negative offset {}", quoted(value.name), at.offset));
      if (at.offset % arena_alignment != 0)
        return wrong_plan(fmt::format("value {} lies at {}, which is no multiple of {}", quoted(value.name), at.offset, arena_alignment));
      int64_t offset = at.offset;
      const int64_t memory = memory_at(at.device, &offset);
      if (bytes < 0 || bytes > arena_bytes(memory) - offset)
        return wrong_plan(fmt::format("value {} ends beyond the arena of {} bytes", quoted(value.name), arena_bytes(memory)));
      return {};
    }
    case MemoryPlace::Kind::constant:
      if (at.device == 0 ? at.index >= plan_.constants.size() || !plan_.constants[at.index]
                         : at.index >= plan_.devices[at.device - 1u].constants.size())
        return beyond();
      return {};
    case MemoryPlace::Kind::input:
      return at.index < plan_.inputs.size() ? Status() : beyond();
    case MemoryPlace::Kind::variable:
      return at.index < plan_.variables.size() ? Status() : beyond();
    default:
      return {};
  }
}

Status Judge::check_places() const {
  std::vector<char> taken(plan_.extent_slots, 0);
  for (const PlanValue& value : plan_.values) {
    HEDDLE_CHECK(check_place(value));
    const int32_t slot = value.extent_slot;
    if ((slot >= 0) != (value.type.bounded_axis >= 0) || slot >= static_cast<int64_t>(taken.size()) || (slot >= 0 && taken[slot]++))
      return wrong_plan(fmt::format("value {} has no slot of its own for its extent", quoted(value.name)));
  }
  return {};
}

void Judge::find_updated_inputs() {
  updated_inputs_.assign(plan_.inputs.size(), 0);
  for (const PlanStep& step : plan_.steps)
    for (const Operand& out : step.outputs)
      if (out.value.valid() && exists(out.value) && plan_.values[out.value.index].place.kind == MemoryPlace::Kind::input)
        updated_inputs_[plan_.values[out.value.index].place.index] = 1;
}

Status Judge::add_write(uint32_t step, ValueId value) {
  Buffer& buffer = buffers_[value.index];
  const std::string names = fmt::format("{} writes {}", step_name(step), buffer.name);
  if (buffer.writer == step) return wrong_plan(fmt::format("{} twice among its outputs", names));
  if (buffer.writer != nobody) return wrong_plan(fmt::format("{}, as does {}", names, step_name(buffer.writer)));
  switch (buffer.place->kind) {
    case MemoryPlace::Kind::constant:
      return wrong_plan(fmt::format("{}, a constant", names));
    case MemoryPlace::Kind::input:
      if (!plan_.steps[step].updates_variable) return wrong_plan(fmt::format("{}, an input of the net", names));
      break;
    case MemoryPlace::Kind::none:
      return wrong_plan(fmt::format("{}, which has no memory", names));
    default:
      break;
  }
  buffer.writer = step;
  buffer.source = value.index;
  buffer.written = true;
  return {};
}

Status Judge::collect_buffers() {
  for (const PlanValue& value : plan_.values) {
    Buffer& buffer = buffers_.emplace_back();
    buffer.name = fmt::format("value {}", quoted(value.name));
    buffer.place = &value.place;
    if (value.place.kind == MemoryPlace::Kind::arena) {
      buffer.begin = value.place.offset;
      buffer.memory = memory_at(value.place.device, &buffer.begin);
    } else if (value.place.kind == MemoryPlace::Kind::variable) {
      buffer.memory = first_variable + value.place.index;
    } else if (is_variable(value.place)) {
      buffer.memory = first_variable + static_cast<int64_t>(plan_.variables.size()) + value.place.index;
    }
    buffer.end = buffer.begin + value.type.byte_size();
  }
  for (uint32_t s = 0; s < graph_.count; ++s) {
    for (const auto* operands : {&plan_.steps[s].inputs, &plan_.steps[s].outputs})
      for (const Operand& operand : *operands)
        if (operand.value.valid() && !exists(operand.value))
          return wrong_plan(fmt::format("{} has an operand that is not there", step_name(s)));
    for (const Operand& in : plan_.steps[s].inputs) {
      if (!in.value.valid()) continue;
      std::vector<uint32_t>& readers = buffers_[in.value.index].readers;
      if (readers.empty() || readers.back() != s) readers.push_back(s);
    }
    for (const Operand& out : plan_.steps[s].outputs)
      if (out.value.valid()) HEDDLE_CHECK(add_write(s, out.value));
  }
  for (const ValueId output : plan_.outputs)
    if (exists(output)) buffers_[output.index].readers.push_back(the_end);
  return {};
}

Status Judge::check_outputs() const {
  for (const auto* ports : {&plan_.inputs, &plan_.outputs})
    for (const ValueId value : *ports)
      if (!exists(value)) return wrong_plan("an input or output of the net is not there");
  for (const ValueId output : plan_.outputs)
    if (buffers_[output.index].place->kind == MemoryPlace::Kind::none)
      return wrong_plan(fmt::format("the output of the net {} has no memory", buffers_[output.index].name));
  return {};
}

Status Judge::check_subnets() const {
  for (const PlanStep& step : plan_.steps)
    for (const NestedPlan& nested : *step.nested)
      if (nested.plan->steps.size() <= judged_steps)
        HEDDLE_CHECK(check(*nested.plan), fmt::format("in a subnet of step {}", quoted(step.name)));
  return {};
}

// Adds the scratch of a step in one memory: its own, followed by that of its subnets.
Status Judge::add_scratch(uint32_t step, int64_t memory, int64_t begin, int64_t own, int64_t nested) {
  if (own < 0) return wrong_plan(fmt::format("{} has scratch of a negative size", step_name(step)));
  int64_t bytes = 0;
  if (!checked_add(align_up(own, arena_alignment), nested, &bytes))
    return wrong_plan(fmt::format("the scratch of {} ends beyond 63 bits", step_name(step)));
  if (bytes == 0) return {};
  memory = memory_at(static_cast<uint8_t>(memory), &begin);
  Buffer scratch;
  scratch.name = fmt::format("the scratch of {}", step_name(step));
  scratch.memory = memory;
  scratch.begin = begin;
  if (begin < 0 || begin % arena_alignment != 0)
    return wrong_plan(fmt::format("{} lies at {}, which is no multiple of {}", scratch.name, begin, arena_alignment));
  if (bytes > arena_bytes(memory) - begin) return wrong_plan(fmt::format("{} ends beyond the arena", scratch.name));
  scratch.end = begin + bytes;
  scratch.writer = step;
  scratch.source = static_cast<uint32_t>(buffers_.size());
  scratch.written = true;
  buffers_.push_back(std::move(scratch));
  return {};
}

Status Judge::check_scratch() {
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const PlanStep& step = plan_.steps[s];
    int64_t nested = 0, on_device = 0;
    for (const NestedPlan& n : *step.nested) {
      nested = std::max(nested, n.plan->context_bytes());
      if (!n.plan->devices.empty()) on_device = std::max(on_device, n.plan->devices[0].arena_bytes);
    }
    const uint8_t device = step.on_device ? step.on_device->device : uint8_t{0};
    const bool from_host = step.on_device && step.on_device->from_host;
    HEDDLE_CHECK(add_scratch(s, from_host ? 0 : device, step.scratch_offset, step.scratch_bytes, nested));
    if (from_host) HEDDLE_CHECK(add_scratch(s, device, step.data_scratch_offset, step.data_scratch_bytes, on_device));
  }
  return {};
}

// Checks that the arenas are exactly as large as their contents, and that these sizes are reported.
Status Judge::check_sizes() const {
  std::vector<int64_t> highest(plan_.devices.size() + 1, 0);
  int64_t pinned = 0;
  for (const Buffer& buffer : buffers_)
    if (buffer.memory >= 0 && buffer.memory < first_variable && buffer.begin < buffer.end) {
      int64_t& top = buffer.memory == pinned_memory ? pinned : highest[static_cast<size_t>(buffer.memory)];
      const int64_t guard = buffer.place && buffer.memory > 0 && buffer.memory != pinned_memory
                                ? plan_.devices[static_cast<size_t>(buffer.memory) - 1].guard_bytes()
                                : 0;
      top = std::max(top, align_up(buffer.end, arena_alignment) + guard);
    }
  if (plan_.pinned_bytes != pinned)
    return wrong_plan(fmt::format("the pinned memory has {} bytes, its content ends at {}", plan_.pinned_bytes, pinned));
  for (size_t device = 0; device < highest.size(); ++device) {
    const MemoryReport& memory = device == 0 ? plan_.memory : plan_.devices[device - 1].memory;
    const int64_t bytes = arena_bytes(static_cast<int64_t>(device));
    if (bytes != highest[device]) return wrong_plan(fmt::format("the arena has {} bytes, its content ends at {}", bytes, highest[device]));
    if (memory.arena_bytes != bytes)
      return wrong_plan(fmt::format("the arena is reported as {} bytes and has {}", memory.arena_bytes, bytes));
    const int64_t peak = device == 0 ? plan_.context_bytes() : bytes;
    if (memory.peak_bytes != peak)
      return wrong_plan(fmt::format("the peak is reported as {}, arena and thread scratch have {} bytes", memory.peak_bytes, peak));
  }
  if (plan_.max_threads == 0) return wrong_plan("it is made for no thread");
  for (uint32_t s = 0; s < graph_.count; ++s)
    if (!plan_.steps[s].late && plan_.steps[s].thread_scratch_bytes > plan_.thread_scratch_bytes)
      return wrong_plan(fmt::format("{} needs more thread scratch than the {} bytes there are", step_name(s), plan_.thread_scratch_bytes));
  return {};
}

// Checks the host memory that devices copy from and to in a run.
Status Judge::check_pinned() const {
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const DeviceWork* work = plan_.steps[s].on_device.get();
    if (!plan_.pinned_by || !work || work->kind != DeviceWork::Kind::copy) continue;
    for (const Operand& operand : {plan_.steps[s].inputs[0], plan_.steps[s].outputs[0]}) {
      const Buffer& buffer = buffers_[operand.value.index];
      if (buffer.memory == 0 && buffer.begin < buffer.end)
        return wrong_plan(fmt::format("{} copies {}, which is not in pinned memory", step_name(s), buffer.name));
    }
  }
  return {};
}

// Checks that versions and views of one buffer have the same bytes.
Status Judge::check_storages() const {
  std::map<std::tuple<MemoryPlace::Kind, uint8_t, uint32_t>, const Buffer*> first;
  for (const Buffer& buffer : buffers_) {
    if (buffer.memory < 0 || !buffer.place) continue;
    const auto [it, added] = first.try_emplace({buffer.place->kind, buffer.place->device, buffer.place->index}, &buffer);
    if (!added && (it->second->begin != buffer.begin || it->second->end != buffer.end))
      return wrong_plan(fmt::format("{} shares a buffer with {} and has other bytes", buffer.name, it->second->name));
  }
  return {};
}

// Finds the content of a value that no step writes: that of a variable before the run, or the latest written value of the same buffer that
// all its readers run after.
Status Judge::find_shown(uint32_t view) {
  Buffer& buffer = buffers_[view];
  const bool given = is_variable(*buffer.place);
  if (given) buffer.source = view;
  uint32_t missed = nobody;  // a writer, and a reader that may run before it
  uint32_t early = nobody;
  for (uint32_t i = 0; i < plan_.values.size(); ++i) {
    const Buffer& other = buffers_[i];
    if (!other.written || !share(other, buffer)) continue;
    const auto reader = std::find_if(buffer.readers.begin(), buffer.readers.end(), [&](uint32_t r) { return !reaches(other.writer, r); });
    if (reader != buffer.readers.end()) {
      missed = other.writer;
      early = *reader;
    } else if (buffer.writer == nobody || other.writer > buffer.writer) {
      buffer.writer = other.writer;
      buffer.source = i;
    }
  }
  if (given || buffer.source != nobody) return {};
  if (missed == nobody) return wrong_plan(fmt::format("{} reads {}, which nobody writes", user_name(buffer.readers.front()), buffer.name));
  return wrong_plan(
      fmt::format("{} reads {} and does not run after {}, which writes it", step_name(early), buffer.name, step_name(missed)));
}

Status Judge::check_reads_after_writes() {
  for (uint32_t i = 0; i < plan_.values.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    const MemoryPlace::Kind kind = buffer.place->kind;
    const bool lives = kind == MemoryPlace::Kind::arena || kind == MemoryPlace::Kind::unplanned || is_variable(*buffer.place);
    if (!lives || buffer.readers.empty()) continue;
    if (!buffer.written) {
      HEDDLE_CHECK(find_shown(i));
      continue;
    }
    for (const uint32_t reader : buffer.readers)
      if (!reaches(buffer.writer, reader))
        return wrong_plan(fmt::format("{} reads {} and does not run after {}, which writes it", step_name(reader), buffer.name,
                                      step_name(buffer.writer)));
  }
  return {};
}

// True if the schema of any version of the operator allows it. An operator with an epilogue may take an operand of that instead, and
// nothing else: those follow its own inputs, of which it has at least the required ones.
bool Judge::may_take(const PlanStep& step, size_t input, size_t output) const {
  const OperatorSchema* schema = plan_.registry->find_operator(step.domain, step.type);
  while (schema) {
    const heddle_port* const port = schema->output_port(output);
    if (port && (port->flags & HEDDLE_PORT_MAY_UPDATE) && step.updates_variable) return true;
    const int alias = schema->alias_input(output);
    if (!step.fused->empty() ? output == 0 && input >= schema->required_inputs
                             : alias == HEDDLE_ALIAS_ANY || alias == static_cast<int>(input))
      return true;
    const int32_t version = schema->version;
    schema = version > 1 ? plan_.registry->find_operator(step.domain, step.type, version - 1) : nullptr;
  }
  return false;
}

// Checks a step that reads `taken` and writes `written` over it.
Status Judge::check_in_place(uint32_t step, const Buffer& taken, const Buffer& written) const {
  const std::string names = fmt::format("{} writes {} over its input {}", step_name(step), written.name, taken.name);
  if (!share(taken, written)) return wrong_plan(fmt::format("{} without sharing its buffer", names));
  const std::vector<Operand>& inputs = plan_.steps[step].inputs;
  const std::vector<Operand>& outputs = plan_.steps[step].outputs;
  size_t input = inputs.size(), reads = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].value.valid() && overlap(buffers_[inputs[i].value.index], written)) {
      input = i;
      ++reads;
    }
  if (reads != 1) return wrong_plan(fmt::format("{}, which another operand reads too", names));
  const auto output = std::find_if(outputs.begin(), outputs.end(),
                                   [&](const Operand& o) { return o.value.valid() && &buffers_[o.value.index] == &written; });
  if (!may_take(plan_.steps[step], input, static_cast<size_t>(output - outputs.begin())))
    return wrong_plan(fmt::format("{}, which the operator does not declare", names));
  return {};
}

// Checks that `buffer` has its content at `user`: `written` is written before that content is or after it was used.
Status Judge::check_use(const Buffer& buffer, uint32_t user, const Buffer& written) const {
  const bool by_edges = buffer.memory >= first_variable || share(buffer, written);
  if (buffer.writer != nobody && before(written.writer, buffer.writer, by_edges)) return {};
  if (user != the_end && before(user, written.writer, by_edges)) return {};
  if (user == written.writer && user != buffer.writer && written.place) return check_in_place(user, buffer, written);
  const char* does = user == buffer.writer ? "writes" : "reads";
  return wrong_plan(fmt::format("{} may write {} over {} before {} {} it or while it does", step_name(written.writer), written.name,
                                buffer.name, user_name(user), does));
}

Status Judge::check_overwriting() const {
  for (uint32_t w = 0; w < buffers_.size(); ++w) {
    const Buffer& written = buffers_[w];
    if (!written.written) continue;
    for (const Buffer& buffer : buffers_) {
      if (buffer.source == nobody || buffer.source == w || !overlap(buffer, written)) continue;
      if (buffer.written) HEDDLE_CHECK(check_use(buffer, buffer.writer, written));
      for (const uint32_t reader : buffer.readers) HEDDLE_CHECK(check_use(buffer, reader, written));
    }
  }
  return {};
}

}  // namespace

Status check(const Plan& plan) {
  return Judge(plan).run();
}

}  // namespace heddle::compiling
