#include "commands/plugin/check/call_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/element.h"
#include "base/text/text.h"
#include "commands/plugin/check/index_examination.h"
#include "commands/plugin/check/watch/watched_run.h"
#include "operator_runner/operator_runner.h"
#include "operator_runner/packed_constants.h"
#include "tensors/compare.h"
#include "tensors/convert.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

using Side = GuardedBytes::Side;

// One call under all the conditions that must not make a difference.
class CallExamination {
 public:
  CallExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs)
      : registry_(registry), schema_(schema), call_(call), expected_(outputs) {
    call_.conditions.gives_state = true;
  }
  Finding examine();

 private:
  // Runs `call` in guarded memory: ok, or what went wrong. `under`: "when its tiles are split". Results that differ have `mistake`.
  Finding run(const OperatorCall& call, Side side, uint8_t slack, const char* mistake, const std::string& differs,
              const std::string& under);
  Finding plainly(const OperatorCall& call, const char* mistake, const std::string& differs, const std::string& under) {
    return run(call, Side::behind, 0, mistake, differs, under);
  }
  Finding repeated();
  Finding guarded();
  bool holds(const Blobs& outputs, uint8_t fill) const;
  Finding unwritten();
  Finding over_other_bytes();
  Finding by_others();
  Finding constants();
  Finding packed_for_another();
  Finding behind_other_runs();
  Finding with_less_known();
  Finding in_place();

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  OperatorCall call_;
  const Blobs& expected_;
  int64_t tiles_ = 0;
};

Finding CallExamination::run(const OperatorCall& call, Side side, uint8_t slack, const char* mistake, const std::string& differs,
                             const std::string& under) {
  const WatchedRun watched(registry_, call, side, slack);
  if (!watched.outputs().ok()) return {mistake, fmt::format("fails {}: {}", under, watched.outputs().status().text())};
  if (!watched.found().ok()) return watched.found();
  const Blobs& outputs = *watched.outputs();
  if (!same_bits(expected_, outputs)) {
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o]->shape != expected_[o]->shape && mistake == std::string_view("read-beyond"))
        return {"shape", fmt::format("output {} is {} once and {} another time, of equal inputs", o, expected_[o]->shape.text(),
                                     outputs[o]->shape.text())};
    return {mistake, differs};
  }
  tiles_ = watched.tiles();
  return {};
}

Finding CallExamination::repeated() {
  return plainly(call_, "nondeterministic", "gives other bits when it is run again, with the same inputs", "when it is run again");
}

// Runs with other slack than before: a result that differs only then was read from there.
Finding CallExamination::guarded() {
  Finding found;
  for (const uint8_t slack : {0x7f, 0xff})
    for (const Side side : {Side::behind, Side::front})
      if (found.ok())
        found = run(call_, side, slack, "read-beyond", "gives other bits when there is something else beside its inputs: it reads that",
                    "when there is something else beside its inputs");
  if (found.mistake != std::string_view("read-beyond")) return found;
  // The difference may come only from the address of its memory.
  const Finding elsewhere =
      run(call_, Side::front, 0, "nondeterministic", "gives other bits where its memory lies elsewhere", "where its memory lies elsewhere");
  return elsewhere.mistake == std::string_view("nondeterministic") ? elsewhere : found;
}

// Whether an element that differs from the expected one holds nothing but `fill`.
bool CallExamination::holds(const Blobs& outputs, uint8_t fill) const {
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o]->shape != expected_[o]->shape) return true;
    const auto width = static_cast<int64_t>(byte_width(outputs[o]->dtype));
    for (int64_t at = 0; at + width <= outputs[o]->bytes; at += width) {
      const std::byte* const here = outputs[o]->data + at;
      if (std::memcmp(here, expected_[o]->data + at, static_cast<size_t>(width)) == 0) continue;
      if (std::all_of(here, here + width, [&](std::byte b) { return b == std::byte{fill}; })) return true;
    }
  }
  return false;
}

// The previous content of the outputs shows: unchanged, or in a sum (of the small numbers that these bytes are, for floats too).
Finding CallExamination::unwritten() {
  constexpr uint8_t small = 0x3c;
  OperatorCall filled = call_;
  filled.conditions.output_fill = small;
  const WatchedRun watched(registry_, filled, Side::behind, 0);
  if (watched.outputs().ok() && !holds(*watched.outputs(), small)) return {"uninitialised", "reads its outputs before it has written them"};
  return {"unwritten", "leaves elements of its outputs unwritten"};
}

Finding CallExamination::over_other_bytes() {
  for (const uint8_t fill : {0xa5, 0x7f}) {
    OperatorCall filled = call_;
    auto& conditions = filled.conditions;
    conditions.output_fill = fill;
    conditions.clears_extents = true;
    const WatchedRun watched(registry_, filled, Side::behind, 0);
    if (!watched.outputs().ok())
      return {watched.outputs().status().text().find("extent") != std::string::npos ? "extent" : "unwritten",
              watched.outputs().status().text()};
    if (!same_bits(expected_, *watched.outputs())) return unwritten();
    conditions.output_fill.reset();
    conditions.scratch_fill = fill;
    Finding found = plainly(filled, "uninitialised", "reads its scratch before it has written it", "when its scratch holds something");
    conditions.scratch_fill.reset();
    conditions.thread_scratch_fill = fill;
    if (found.ok())
      found = plainly(filled, "uninitialised", "reads its thread's scratch before it has written it",
                      "when its thread's scratch holds something");
    if (!found.ok()) return found;
  }
  return {};
}

// Runs with other tiles, threads, seeds.
Finding CallExamination::by_others() {
  for (const auto& [split, threads] : {std::pair<uint64_t, uint32_t>(7, 2), {4, 7}}) {
    OperatorCall other = call_;
    other.split_seed = split;
    Finding found = plainly(other, "tiles", "gives other bits when its tiles are split", "when its tiles are split");
    if (!found.ok()) return found;
    const int64_t tiles = tiles_;
    other.conditions.max_threads = threads;
    found = plainly(other, "threads", "gives other bits when it may have more threads", "when it may have more threads");
    if (found.ok() && tiles_ != tiles)
      found = {
          "threads",
          fmt::format("has {} tiles where it may have one thread, and {} where it may have {}: their number is to depend on shapes alone",
                      tiles, tiles_, other.conditions.max_threads)};
    other.conditions.other_threads = true;
    other.conditions.thread_scratch_fill = uint8_t{0x7f};
    if (found.ok()) found = plainly(other, "threads", "gives other bits when other threads run it", "when other threads run it");
    if (!found.ok()) return found;
  }
  if (schema_.has_trait(HEDDLE_TRAIT_RANDOM)) return {};
  OperatorCall drawn = call_;
  for (const auto& [seed, step] :
       {std::pair<uint64_t, uint64_t>(call_.random_seed, 0), {call_.random_seed + 1, 0}, {call_.random_seed, 5}}) {
    drawn.random_seed = seed;
    drawn.step = step;
    Finding found = plainly(drawn, "random-undeclared", "gives other bits with another seed or step, and does not have the trait RANDOM",
                            "with another seed or step");
    if (!found.ok()) return found;
  }
  drawn = call_;
  drawn.conditions.gives_state = false;
  const Describing here({" without seed and step", "random-undeclared"});
  return plainly(drawn, "random-undeclared", "gives other bits without seed and step", "without seed and step");
}

Finding CallExamination::constants() {
  OperatorCall constant = call_;
  constant.constant_inputs = true;
  return plainly(constant, "value", "gives other bits with constant inputs", "with constant inputs");
}

// Another number for one that is a choice; the same for a value that has no other.
AttributeValue other_number(const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return *i + 1;
  if (const auto* f = std::get_if<double>(&value)) return *f * 2 + 1;
  return value;
}

// Nodes share a packed constant with the same key: of two whose attributes differ each must get its own.
Finding CallExamination::packed_for_another() {
  OperatorCall first = call_;
  first.constant_inputs = true;
  PackedConstants shared;
  first.conditions.packed = &shared;
  if (const auto ran = run_operator(registry_, first); !ran.ok() || shared.empty()) return {};
  for (uint32_t a = 0; a < schema_.op->attribute_count; ++a) {
    const heddle_attribute_schema& declared = *schema_.op->attributes[a];
    OperatorCall second = first;
    auto given =
        std::find_if(second.attributes.begin(), second.attributes.end(), [&](const Attribute& v) { return v.name == declared.name; });
    if (given != second.attributes.end())
      given->value = other_number(given->value);
    else if (declared.default_value && declared.type == HEDDLE_ATTRIBUTE_INT)
      second.attributes.push_back({declared.name, declared.default_value->i + 1});
    else if (declared.default_value && declared.type == HEDDLE_ATTRIBUTE_FLOAT)
      second.attributes.push_back({declared.name, declared.default_value->f * 2 + 1});
    else
      continue;
    OperatorCall alone = second;
    alone.conditions.packed = nullptr;
    const auto right = run_operator(registry_, alone), got = run_operator(registry_, second);
    if (right.ok() && (!got.ok() || !same_bits(*right, *got)))
      return {"value", fmt::format("packs constants under a key that does not tell nodes with another {} apart", quoted(declared.name))};
  }
  return {};
}

// Inputs of another call of the same node: other numbers, or one row less.
Blobs other_numbers(const Blobs& inputs, uint64_t seed) {
  Blobs others;
  for (const auto& input : inputs)
    others.push_back(input && is_float(input->dtype) ? random_blob(input->dtype, input->shape, seed + others.size()) : input);
  return others;
}

Blobs a_row_less(const Blobs& inputs, bool all) {
  Blobs others = inputs;
  const int64_t rows = inputs.empty() || !inputs[0] || inputs[0]->shape.rank() == 0 ? 0 : inputs[0]->shape[0];
  for (size_t i = 0; i < others.size() && rows > 1 && (all || i == 0); ++i) {
    if (!others[i] || others[i]->shape.rank() == 0 || others[i]->shape[0] != rows) continue;
    Shape shape = others[i]->shape;
    shape[0] = rows - 1;
    others[i] = Blob::copy_of(others[i]->dtype, shape, others[i]->data);
  }
  return others;
}

// A node is run repeatedly, and prepared again where extents change: its earlier runs must have no effect.
Finding CallExamination::behind_other_runs() {
  for (const Blobs& before :
       {other_numbers(call_.inputs, call_.random_seed + 31), a_row_less(call_.inputs, true), a_row_less(call_.inputs, false)}) {
    OperatorCall again = call_;
    again.conditions.inputs_before = &before;
    Finding found = plainly(again, "nondeterministic", "gives other bits where its node has run before, on other inputs",
                            "where its node has run before, on other inputs");
    if (found.ok()) continue;
    OperatorCall alone = call_;
    alone.inputs = before;
    if (!run_operator(registry_, alone).ok()) found = {"error-path", "is not as before after a run that it refused"};
    return found;
  }
  return {};
}

// Runs as where a net is compiled before its feeds are known, and with an input that has fewer rows than its bound.
Finding CallExamination::with_less_known() {
  OperatorCall hidden = call_;
  hidden.conditions.hides_content = true;
  const auto blind = run_operator(registry_, hidden);
  for (size_t o = 0; blind.ok() && o < expected_.size(); ++o)
    if ((*blind)[o]->shape != expected_[o]->shape)
      return {"shape", fmt::format("infers {} for output {} where the content of its inputs is known, else {}", expected_[o]->shape.text(),
                                   o, (*blind)[o]->shape.text())};
  OperatorCall bounded = call_;
  bounded.conditions.rows_beyond = 3;
  const auto cut = run_operator(registry_, bounded);
  if (!cut.ok()) return {};  // its kernel does not read extents, or the shapes do not go together
  for (size_t o = 0; o < expected_.size(); ++o)
    if ((*cut)[o]->shape == expected_[o]->shape && !same_bits({(*cut)[o]}, {expected_[o]}))
      return {"extent", fmt::format("output {} depends on what lies past the true extent of input 0", o)};
  return {};
}

// Runs with an output that takes an input's bytes where the schema allows it: this must not make a difference, tile by tile.
Finding CallExamination::in_place() {
  for (uint32_t o = 0; o < expected_.size(); ++o) {
    const int alias = schema_.alias_input(o);
    for (uint32_t i = 0; i < call_.inputs.size(); ++i) {
      if (alias != HEDDLE_ALIAS_ANY && alias != static_cast<int>(i) && schema_.updated_input(o) != static_cast<int>(i)) continue;
      const auto& input = call_.inputs[i];
      if (!input || input->bytes != expected_[o]->bytes || byte_width(input->dtype) != byte_width(expected_[o]->dtype)) continue;
      OperatorCall shared = call_;
      shared.in_place = {{o, i}};
      for (const uint64_t split : {uint64_t{0}, uint64_t{7}}) {
        shared.split_seed = split;
        const std::string where = fmt::format("with output {} in place of input {}", o, i);
        Finding found = plainly(shared, "in-place", fmt::format("gives other bits {}", where), where);
        if (!found.ok()) return found;
      }
    }
  }
  return {};
}

Finding CallExamination::examine() {
  using Part = Finding (CallExamination::*)();
  int64_t bytes = 0;
  for (const Blobs& blobs : {call_.inputs, expected_})
    for (const auto& blob : blobs) bytes += blob ? blob->bytes : 0;
  constexpr int64_t large = int64_t{8} << 20;  // larger calls take long, and show nothing more
  for (const Part part : {&CallExamination::repeated, &CallExamination::guarded, &CallExamination::over_other_bytes,
                          &CallExamination::by_others, &CallExamination::constants, &CallExamination::in_place,
                          &CallExamination::packed_for_another, &CallExamination::behind_other_runs, &CallExamination::with_less_known}) {
    if (bytes > large && part == &CallExamination::packed_for_another) break;
    Finding found = (this->*part)();
    // An allocation may also be a leak.
    if (found.mistake == std::string_view("allocates"))
      if (Finding left = find_leaks(registry_, call_); !left.ok()) return left;
    if (!found.ok()) return found;
  }
  Finding left = find_leaks(registry_, call_);
  return left.ok() && bytes <= large ? examine_indices(registry_, schema_, call_, expected_) : left;
}

}  // namespace

bool same_bits(const Blobs& a, const Blobs& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (a[i]->shape != b[i]->shape || std::memcmp(a[i]->data, b[i]->data, static_cast<size_t>(a[i]->bytes)) != 0) return false;
  return a.size() == b.size();
}

Finding examine_call(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs) {
  return CallExamination(registry, schema, call, outputs).examine();
}

Finding examine_bools(const Blobs& outputs) {
  for (size_t o = 0; o < outputs.size(); ++o)
    if (outputs[o]->dtype == DType::boolean &&
        std::any_of(outputs[o]->data, outputs[o]->data + outputs[o]->bytes, [](std::byte b) { return b > std::byte{1}; }))
      return {"dtype", fmt::format("output {} is bool and holds bytes other than 0 and 1", o)};
  return {};
}

Finding compare_with_example(const OperatorCase& example, const Blobs& outputs) {
  for (size_t o = 0; o < example.expected.size(); ++o) {
    const ExampleTensor& said = example.expected[o];
    if (said.absent) continue;
    const Blob& got = *outputs[o];
    if (got.dtype != said.dtype)
      return {"dtype", fmt::format("output {} is {}, its example says {}", o, to_string(got.dtype), to_string(said.dtype))};
    if (got.shape != said.shape)
      return {"shape", fmt::format("output {} is {}, its example says {}", o, got.shape.text(), said.shape.text())};
    if (!said.content) continue;
    const auto view = [](const Blob& blob) { return TensorView{blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)}; };
    const double relative = precision_of(got.dtype);
    const Comparison c = compare(view(got), view(*said.content), relative, relative / 10);
    if (!c.equal) return {example.is_example() ? "value" : "dtype", fmt::format("output {} is not what its example says: {}", o, c.reason)};
  }
  return {};
}

}  // namespace heddle::tool
