#include "commands/plugin/check/call_examination.h"

#include <fmt/format.h>

#include <cstring>

#include "commands/plugin/check/watched_run.h"
#include "plugin/operator_runner.h"
#include "tensors/compare.h"

namespace heddle::tool {
namespace {

using Side = GuardedBytes::Side;

// One call under all the conditions that may make no difference.
class CallExamination {
 public:
  CallExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs)
      : registry_(registry), schema_(schema), call_(call), expected_(outputs) {}
  Finding examine();

 private:
  // A run of `call` in guarded memory: "", or what went wrong. `under`: "when its tiles are split". Results that are others have `mistake`.
  Finding run(const OperatorCall& call, Side side, uint8_t slack, const char* mistake, const std::string& differs,
              const std::string& under);
  Finding plainly(const OperatorCall& call, const char* mistake, const std::string& differs, const std::string& under) {
    return run(call, Side::behind, 0, mistake, differs, under);
  }
  Finding repeated();
  Finding guarded();
  Finding over_other_bytes();
  Finding by_others();
  Finding constants();
  Finding in_place();
  Finding index(uint32_t input, int64_t wrong, bool last);
  Finding indices();

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  const OperatorCall& call_;
  const Blobs& expected_;
  int64_t tiles_ = 0;
};

Finding CallExamination::run(const OperatorCall& call, Side side, uint8_t slack, const char* mistake, const std::string& differs,
                             const std::string& under) {
  const WatchedRun watched(registry_, call, side, slack);
  if (!watched.outputs().ok()) return {mistake, fmt::format("fails {}: {}", under, watched.outputs().status().text())};
  if (!watched.found().ok()) return watched.found();
  if (!same_bits(expected_, *watched.outputs())) return {mistake, differs};
  tiles_ = watched.tiles();
  return {};
}

Finding CallExamination::repeated() {
  return plainly(call_, "nondeterministic", "gives other bits when it is run again, with the same inputs", "when it is run again");
}

// Over other slack than before: what only then is different was read from there.
Finding CallExamination::guarded() {
  Finding found;
  for (const uint8_t slack : {0x7f, 0xff})
    for (const Side side : {Side::behind, Side::front})
      if (found.ok())
        found = run(call_, side, slack, "read-beyond", "gives other bits when there is something else beside its inputs: it reads that",
                    "when there is something else beside its inputs");
  return found;
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
    if (!same_bits(expected_, *watched.outputs()))
      return {"unwritten", "leaves elements of its outputs unwritten, or reads what was in them before"};
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

// Other tiles, threads, seeds.
Finding CallExamination::by_others() {
  for (const uint64_t split : {uint64_t{3}, uint64_t{4}}) {
    OperatorCall other = call_;
    other.split_seed = split;
    Finding found = plainly(other, "tiles", "gives other bits when its tiles are split", "when its tiles are split");
    if (!found.ok()) return found;
    const int64_t tiles = tiles_;
    other.conditions.max_threads = split == 3 ? 2 : 7;
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
  drawn.conditions.gives_state = true;
  for (const auto& [seed, step] :
       {std::pair<uint64_t, uint64_t>(call_.random_seed, 0), {call_.random_seed + 1, 0}, {call_.random_seed, 5}}) {
    drawn.random_seed = seed;
    drawn.step = step;
    Finding found = plainly(drawn, "random-undeclared", "gives other bits with another seed or step, and does not have the trait RANDOM",
                            "with another seed or step");
    if (!found.ok()) return found;
  }
  return {};
}

Finding CallExamination::constants() {
  OperatorCall constant = call_;
  constant.constant_inputs = true;
  return plainly(constant, "value", "gives other bits with constant inputs", "with constant inputs");
}

// Where the schema lets an output take an input's bytes: it may make no difference, tile by tile.
Finding CallExamination::in_place() {
  for (uint32_t o = 0; o < expected_.size(); ++o) {
    const int alias = schema_.alias_input(o);
    for (uint32_t i = 0; i < call_.inputs.size(); ++i) {
      if (alias != HEDDLE_ALIAS_ANY && alias != static_cast<int>(i) && schema_.updated_input(o) != static_cast<int>(i)) continue;
      const auto& input = call_.inputs[i];
      if (!input || input->bytes != expected_[o]->bytes || byte_width(input->dtype) != byte_width(expected_[o]->dtype)) continue;
      OperatorCall shared = call_;
      shared.in_place = {{o, i}};
      for (const uint64_t split : {uint64_t{0}, uint64_t{3}}) {
        shared.split_seed = split;
        const std::string where = fmt::format("with output {} in place of input {}", o, i);
        Finding found = plainly(shared, "in-place", fmt::format("gives other bits {}", where), where);
        if (!found.ok()) return found;
      }
    }
  }
  return {};
}

// An index outside of its bound, a little or far, at the begin or at the end, is refused, or what lies there would be read.
Finding CallExamination::index(uint32_t input, int64_t wrong, bool last) {
  const Blob& indices = *call_.inputs[input];
  std::byte* data = nullptr;
  auto outside = Blob::allocate(indices.dtype, indices.shape, &data);
  const auto width = static_cast<size_t>(byte_width(indices.dtype));
  std::memcpy(data, indices.data, static_cast<size_t>(indices.bytes));
  std::memcpy(data + (last ? static_cast<size_t>(indices.bytes) - width : 0), &wrong, width);
  OperatorCall called = call_;
  called.inputs[input] = outside;
  const int32_t of = schema_.input_port(input)->index_bound_port;
  describe({fmt::format(" with {} as an index in input {}", wrong, input), "index-unchecked"});
  const WatchedRun watched(registry_, called, Side::behind, 0);
  describe({});
  if (watched.outputs().ok())
    return {"index-unchecked", fmt::format("takes {} as an index in input {}, which holds indices of input {}", wrong, input, of)};
  if (!watched.end().refused())
    return {"index-unchecked", fmt::format("breaks on {} as an index in input {}: {}", wrong, input, watched.outputs().status().text())};
  return watched.found().mistake == std::string_view("write-beyond") ? watched.found() : Finding();
}

Finding CallExamination::indices() {
  for (uint32_t i = 0; i < call_.inputs.size(); ++i) {
    const auto& indices = call_.inputs[i];
    if (!indices || indices->bytes == 0 || byte_width(indices->dtype) < 4) continue;
    const auto bound = index_bound(schema_, call_, i);
    if (!bound) continue;
    for (const int64_t wrong : {*bound, -*bound - 1, int64_t{1} << 20, -(int64_t{1} << 20), INT64_MAX, INT64_MIN})
      for (const bool last : {false, true}) {
        if (byte_width(indices->dtype) < 8 && (wrong > INT32_MAX || wrong < INT32_MIN)) continue;
        Finding found = index(i, wrong, last);
        if (!found.ok()) return found;
      }
  }
  return {};
}

Finding CallExamination::examine() {
  using Part = Finding (CallExamination::*)();
  for (const Part part : {&CallExamination::repeated, &CallExamination::guarded, &CallExamination::over_other_bytes,
                          &CallExamination::by_others, &CallExamination::constants, &CallExamination::in_place}) {
    Finding found = (this->*part)();
    if (!found.ok()) return found;
  }
  Finding left = find_leaks(registry_, call_);
  return left.ok() ? indices() : left;
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
    const double relative = got.dtype == DType::bf16 ? 1e-2 : got.dtype == DType::f16 ? 2e-3 : 1e-5;
    const Comparison c = compare(view(got), view(*said.content), relative, relative / 10);
    if (!c.equal) return {example.is_example() ? "value" : "dtype", fmt::format("output {} is not what its example says: {}", o, c.reason)};
  }
  return {};
}

}  // namespace heddle::tool
