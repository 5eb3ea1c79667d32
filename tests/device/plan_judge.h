// Decides from the plan alone whether a plan that was changed still gives the same results in every legal execution. It shares nothing with
// compile/plan_check, and runs nothing.
//
// It traces back the values that the caller reads at the end of each of two runs: each was written last by one step, whose inputs were
// written last by others, and so on to feeds, constants and variables. The plan's results are the resulting expressions. If two writes, or
// a write and a read, of the same bytes are not ordered, a result is not determined. Parts that no result depends on do not matter.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "completion_order.h"
#include "heddle/expression.h"
#include "plugin/registry.h"

namespace heddle::testing_devices {

// Bytes of one memory: an arena, a variable, a constant, a feed, or the host's staging memory; or the host's information about a value
// whose extents only the run knows.
struct Bytes {
  enum class Memory : uint8_t { nowhere, arena, constant, input, variable, staging, view };
  Memory memory = Memory::nowhere;
  uint8_t device = 0;
  uint32_t index = 0;
  int64_t begin = 0, end = 0;

  bool overlaps(const Bytes& other) const {
    return memory == other.memory && device == other.device && index == other.index &&
           std::max(begin, other.begin) < std::min(end, other.end);
  }
  bool operator==(const Bytes&) const = default;
};

inline Bytes bytes_of(const Plan& plan, ValueId id) {
  const PlanValue& value = plan.values[id.index];
  const MemoryPlace& at = value.place;
  const int64_t size = value.type.byte_size();
  switch (at.kind) {
    case MemoryPlace::Kind::arena:
      return {Bytes::Memory::arena, at.device, 0, at.offset, at.offset + size};
    case MemoryPlace::Kind::constant:
      return {Bytes::Memory::constant, at.device, at.index, 0, size};
    case MemoryPlace::Kind::input:
      return {Bytes::Memory::input, 0, at.index, 0, size};
    case MemoryPlace::Kind::variable:
      return {Bytes::Memory::variable, at.device, at.index, 0, size};
    default:
      return {Bytes::Memory::nowhere, 0, id.index, 0, size};
  }
}

// Numbers expressions: equal numbers mean equal expressions, in all plans that use one table.
class Expressions {
 public:
  uint32_t number(const std::vector<int64_t>& expression) {
    return known_.try_emplace(expression, static_cast<uint32_t>(known_.size())).first->second;
  }

 private:
  std::map<std::vector<int64_t>, uint32_t> known_;
};

// The results of one plan.
class PlanResults {
 public:
  // `right`: the plan as it was made, in which a step may write over its inputs; null: this one is it.
  PlanResults(const Plan& plan, const Plan* right, Expressions& expressions)
      : plan_(plan), right_(right ? *right : plan), order_(plan), expressions_(expressions) {
    collect_writes();
  }

  // Returns nullopt if the results depend on the order of unordered steps, or a device may refuse a call.
  std::optional<std::vector<uint32_t>> find() {
    if (order_.calls_may_overlap()) return undetermined("two calls for one stream may overlap"), std::nullopt;
    std::vector<uint32_t> results;
    for (uint32_t run = 0; run < CompletionOrder::runs; ++run)
      for (const ValueId output : plan_.outputs) results.push_back(read(order_.end(run), bytes_of(plan_, output), nullptr));
    std::set<std::pair<uint8_t, uint32_t>> variables;
    for (const PlanValue& value : right_.values)
      if (value.place.kind == MemoryPlace::Kind::variable && variables.insert({value.place.device, value.place.index}).second)
        results.push_back(read(order_.end(CompletionOrder::runs - 1),
                               {Bytes::Memory::variable, value.place.device, value.place.index, 0, value.type.byte_size()}, nullptr));
    if (!why_.empty()) return std::nullopt;
    return results;
  }

  // Valid after find() has returned nullopt.
  const std::string& why() const { return why_; }

 private:
  enum Head : int64_t { there_before, feed, piece, step_output, operation, late_output };
  struct Write {
    Bytes bytes;
    uint32_t point = 0;
    uint32_t run = 0, step = 0;
    int64_t output = 0;  // output of the step; staged: the feed that it puts into the staging memory; scratch: its own
  };
  static constexpr int64_t staged = -1, scratch = -2;
  static constexpr uint32_t unknown = UINT32_MAX;

  uint32_t undetermined(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return unknown;
  }
  void collect_writes() {
    for (uint32_t run = 0; run < CompletionOrder::runs; ++run)
      for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
        const PlanStep& step = plan_.steps[i];
        const uint32_t at = order_.work(run, i);
        for (size_t k = 0; k < step.outputs.size(); ++k)
          if (step.outputs[k].value.valid())
            writes_.push_back({bytes_of(plan_, step.outputs[k].value), at, run, i, static_cast<int64_t>(k)});
        if (const Bytes bytes = staging(i); bytes.begin < bytes.end) writes_.push_back({bytes, order_.call(run, i), run, i, staged});
        for (size_t k = 0; k < step.outputs.size(); ++k) {
          const ValueId output = step.outputs[k].value;
          if (!output.valid() || !plan_.values[output.index].type.late()) continue;
          if (step.late) writes_.push_back({view(output), order_.call(run, i), run, i, static_cast<int64_t>(k)});
          const auto slot = static_cast<uint32_t>(plan_.values[output.index].extent_slot);
          if (step.on_device && std::count(step.on_device->extents.begin(), step.on_device->extents.end(), slot) > 0)
            writes_.push_back({staged_extent(output), at, run, i, static_cast<int64_t>(k)});
        }
        const uint8_t device = step.on_device ? step.on_device->device : uint8_t{0};
        if (step.scratch_bytes > 0)
          writes_.push_back(
              {{Bytes::Memory::arena, device, 0, step.scratch_offset, step.scratch_offset + step.scratch_bytes}, at, run, i, scratch});
      }
  }
  Bytes staging(uint32_t step) const {
    const DeviceWork* work = plan_.steps[step].on_device.get();
    if (!work || work->kind != DeviceWork::Kind::copy || work->staging < 0) return {};
    const int64_t size = plan_.values[plan_.steps[step].outputs[0].value.index].type.byte_size();
    return {Bytes::Memory::staging, 0, 0, work->staging, work->staging + size};
  }

  static Bytes view(ValueId value) { return {Bytes::Memory::view, 0, static_cast<uint32_t>(value.index), 0, 1}; }
  Bytes staged_extent(ValueId value) const {
    constexpr auto size = static_cast<int64_t>(sizeof(int64_t));
    const int64_t at = plan_.extent_staging + plan_.values[value.index].extent_slot * size;
    return {Bytes::Memory::staging, 0, 0, at, at + size};
  }

  // The step that reads at a `point`; null if it is not a step that reads.
  struct Reader {
    uint32_t run = 0, step = 0;
    size_t input = 0;
  };
  uint32_t read(uint32_t point, const Bytes& bytes, const Reader* reader) {
    std::vector<const Write*> met;
    std::vector<int64_t> cuts = {bytes.begin, bytes.end};
    for (const Write& write : writes_)
      if (write.bytes.overlaps(bytes) && !order_.is_before(point, write.point)) {
        if (write.point == point && (!reader || may_take(*reader, write))) continue;
        met.push_back(&write);
        for (const int64_t cut : {write.bytes.begin, write.bytes.end})
          if (cut > bytes.begin && cut < bytes.end) cuts.push_back(cut);
      }
    std::sort(cuts.begin(), cuts.end());
    std::vector<int64_t> pieces = {piece};
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      if (cuts[c] == cuts[c + 1]) continue;
      Bytes part = bytes;
      part.begin = cuts[c];
      part.end = cuts[c + 1];
      const Write* last = nullptr;
      if (const Write* other = find_last(met, point, part, &last)) {
        const std::string who = reader                                             ? plan_.steps[reader->step].name
                                : point == order_.end(0) || point == order_.end(1) ? "the caller"
                                                                                   : "a copy";
        return undetermined(who + " may read what " + plan_.steps[other->step].name + " writes before or after");
      }
      const uint32_t value = last ? written(*last) : before_all(point, part);
      if (last && last->bytes == bytes) return value;
      pieces.insert(pieces.end(), {value, last ? part.begin - last->bytes.begin : 0, part.end - part.begin});
    }
    return expressions_.number(pieces);
  }
  // Returns a write that is not ordered with the read, or with `last`; null: there is none. `last` null: no step has written the bytes.
  const Write* find_last(const std::vector<const Write*>& writes, uint32_t point, const Bytes& part, const Write** last) const {
    for (const Write* write : writes) {
      if (!write->bytes.overlaps(part)) continue;
      if (!order_.is_before(write->point, point)) return write;
      if (!*last || order_.is_before((*last)->point, write->point)) *last = write;
    }
    const auto found = std::find_if(writes.begin(), writes.end(), [&](const Write* write) {
      return write != *last && write->bytes.overlaps(part) && !order_.is_before(write->point, (*last)->point);
    });
    return found == writes.end() ? nullptr : *found;
  }
  // A feed differs in each run.
  uint32_t before_all(uint32_t point, const Bytes& part) {
    const bool second = part.memory == Bytes::Memory::input && order_.is_before(order_.begin(1), point);
    return expressions_.number(
        {second ? feed : there_before, static_cast<int64_t>(part.memory), part.device, part.index, part.begin, part.end});
  }

  uint32_t written(const Write& write) {
    const auto [it, first] = written_.try_emplace({write.run, write.step, write.output}, unknown);
    if (!first) return it->second;
    const uint32_t value = evaluate(write);
    return written_[{write.run, write.step, write.output}] = value;
  }
  // The output of a late step also depends on the values that it gets its extents from.
  uint32_t evaluate(const Write& write) {
    const PlanStep& step = plan_.steps[write.step];
    const uint32_t value = content(write);
    if (!step.late || write.output < 0) return value;
    std::vector<int64_t> all = {late_output, value};
    for (const Operand& in : step.inputs)
      if (in.value.valid()) all.push_back(extents(write, in.value));
    return expressions_.number(all);
  }
  uint32_t content(const Write& write) {
    const PlanStep& step = plan_.steps[write.step];
    if (write.output == scratch) return expressions_.number({step_output, write.run, write.step, scratch});
    if (write.output == staged) return read(write.point, bytes_of(plan_, step.inputs[0].value), nullptr);
    if (!has_scratch_alone(write)) return undetermined(step.name + " shares its scratch with what runs beside it");
    // Copies do not change their inputs.
    if (is_copy(step)) {
      const Bytes from = staging(write.step);
      return from.begin < from.end ? read(write.point, from, nullptr) : operand(write, 0);
    }
    if (step.domain == "heddle" && step.type == "Assign" && step.fused->empty()) return operand(write, 1);
    if (step.domain == "heddle" && step.type == "Pointwise" && step.fused->empty()) return pointwise(write);
    if (step.on_device && (step.on_device->launched_by >= 0 || !step.on_device->group.empty())) return group_output(write);
    std::vector<int64_t> inputs;
    for (size_t k = 0; k < step.inputs.size(); ++k) inputs.push_back(step.inputs[k].value.valid() ? operand(write, k) : -1);
    if (commutes(step)) std::sort(inputs.begin(), inputs.end());
    inputs.insert(inputs.begin(), {step_output, write.step, write.output});
    return expressions_.number(inputs);
  }
  // Each output of a group is made of all its inputs.
  uint32_t group_output(const Write& write) {
    const DeviceWork& own = *plan_.steps[write.step].on_device;
    const uint32_t launch = own.launched_by >= 0 ? static_cast<uint32_t>(own.launched_by) : write.step;
    std::vector<int64_t> all = {step_output, launch, write.output};
    for (const uint32_t member : plan_.steps[launch].on_device->group) {
      Write part = write;
      part.step = member;
      for (size_t k = 0; k < plan_.steps[member].inputs.size(); ++k) all.push_back(operand(part, k));
    }
    return expressions_.number(all);
  }
  // Returns true if no other step can write to a step's scratch while it uses it.
  bool has_scratch_alone(const Write& of) const {
    const auto own = std::find_if(writes_.begin(), writes_.end(),
                                  [&](const Write& w) { return w.run == of.run && w.step == of.step && w.output == scratch; });
    return own == writes_.end() || std::all_of(writes_.begin(), writes_.end(), [&](const Write& w) {
             return &w == &*own || !w.bytes.overlaps(own->bytes) || order_.is_before(w.point, own->point) ||
                    order_.is_before(own->point, w.point);
           });
  }
  uint32_t operand(const Write& write, size_t input) {
    const PlanStep& step = plan_.steps[write.step];
    const Reader reader = {write.run, write.step, input};
    const bool at_call = step.on_device && !is_copy(step) && step.on_device->reads_on_host(input);
    return read(at_call ? order_.call(write.run, write.step) : write.point, bytes_of(plan_, step.inputs[input].value), &reader);
  }
  // Returns the values from which a late step gets its extents, when it is called.
  uint32_t extents(const Write& write, ValueId input) {
    const PlanValue& value = plan_.values[input.index];
    if (!value.type.late()) return unknown;
    const bool on_device = value.extent_slot >= 0 && value.place.device != 0;
    return read(order_.call(write.run, write.step), on_device ? staged_extent(input) : view(input), nullptr);
  }
  // Evaluates the step's program, in which some operations commute.
  uint32_t pointwise(const Write& write) {
    using expression::Opcode;
    const PlanStep& step = plan_.steps[write.step];
    expression::Program program;
    for (size_t k = 0; k < step.inputs.size(); ++k) program.inputs.push_back("x" + std::to_string(k));
    std::string error;
    const auto& attributes = step.attributes->values;
    const auto text = std::find_if(attributes.begin(), attributes.end(), [](const Attribute& a) { return a.name == "program"; });
    if (text == attributes.end() || !expression::parse(std::get<std::string>(text->value), {}, program, error))
      return undetermined(step.name + " has no program");
    std::vector<uint32_t> values;
    for (const expression::Instruction& code : program.code) {
      if (code.op == Opcode::input) {
        values.push_back(operand(write, static_cast<size_t>(code.a)));
        continue;
      }
      std::vector<int64_t> of;
      for (const int32_t k : {code.a, code.b, code.c})
        if (k >= 0) of.push_back(values[static_cast<size_t>(k)]);
      if (code.op == Opcode::add || code.op == Opcode::mul || code.op == Opcode::max || code.op == Opcode::min)
        std::sort(of.begin(), of.end());
      of.insert(of.begin(), {operation, static_cast<int64_t>(code.op), std::bit_cast<int64_t>(code.literal)});
      values.push_back(expressions_.number(of));
    }
    return values.back();
  }
  static bool is_copy(const PlanStep& step) { return step.on_device && step.on_device->kind == DeviceWork::Kind::copy; }
  static bool commutes(const PlanStep& step) {
    return step.domain.empty() && step.fused->empty() &&
           (step.type == "Add" || step.type == "Mul" || step.type == "Max" || step.type == "Min" || step.type == "Sum");
  }
  // Returns true if the reader's step may write over its input: it did so in the plan as it was made, or its operator allows it for exactly
  // these bytes.
  bool may_take(const Reader& reader, const Write& write) const {
    if (write.step != reader.step || write.output < 0) return false;
    const auto output = static_cast<size_t>(write.output);
    const PlanStep &step = plan_.steps[reader.step], &before = right_.steps[reader.step];
    const Bytes taken = bytes_of(plan_, step.inputs[reader.input].value);
    if (taken != write.bytes) return false;
    if (bytes_of(right_, before.inputs[reader.input].value) == bytes_of(right_, before.outputs[output].value)) return true;
    // Pointwise works element by element, with any input.
    if (step.domain == "heddle" && step.type == "Pointwise" && step.fused->empty()) return true;
    const OperatorSchema* schema = plan_.registry->find_operator(step.domain, step.type);
    const int alias = schema && step.fused->empty() ? schema->alias_input(output) : -1;
    return alias == HEDDLE_ALIAS_ANY || alias == static_cast<int>(reader.input);
  }

  const Plan &plan_, &right_;
  const CompletionOrder order_;
  Expressions& expressions_;
  std::vector<Write> writes_;
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, uint32_t> written_;  // by run, step and output
  std::string why_;  // the first reason why the results are not determined; empty: they are
};

class PlanJudge {
 public:
  // `right` must outlive it.
  explicit PlanJudge(const Plan& right) : right_(right), results_(PlanResults(right, nullptr, expressions_).find()) {}
  // Returns true if the results of the plan as it was made depend on no order; else there is nothing to compare with.
  bool is_determined() const { return results_.has_value(); }
  // Sets `why` if it is not.
  bool is_equivalent(const Plan& changed, std::string* why) {
    PlanResults all(changed, &right_, expressions_);
    const std::optional<std::vector<uint32_t>> results = all.find();
    *why = results ? "its results are others" : all.why();
    return results && results == results_;
  }

 private:
  const Plan& right_;
  Expressions expressions_;
  const std::optional<std::vector<uint32_t>> results_;
};

}  // namespace heddle::testing_devices
