#include "commands/plugin/check/index_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "commands/plugin/check/watch/watched_run.h"
#include "tensors/compare.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

using Side = GuardedBytes::Side;

// `indices` with `value` in place of the first element, the last one, or all.
enum class Place { first, last, all };
std::shared_ptr<const Blob> with_index(const Blob& indices, int64_t value, Place place) {
  std::byte* data = nullptr;
  auto changed = Blob::allocate(indices.dtype, indices.shape, &data);
  const auto width = static_cast<size_t>(byte_width(indices.dtype)), bytes = static_cast<size_t>(indices.bytes);
  std::memcpy(data, indices.data, bytes);
  const size_t begin = place == Place::last ? bytes - width : 0, end = place == Place::first ? width : bytes;
  for (size_t at = begin; at < end; at += width) std::memcpy(data + at, &value, width);
  return changed;
}

// The call with `extent` rows, or elements of what input `input` holds indices of.
std::optional<OperatorCall> with_bound(const OperatorSchema& schema, const OperatorCall& call, size_t input, int64_t extent) {
  const auto of = static_cast<size_t>(schema.input_port(input)->index_bound_port);
  const Blob& bounding = *call.inputs[of];
  for (int axis = 0; axis < bounding.shape.rank(); ++axis) {
    OperatorCall bounded = call;
    Shape shape = bounding.shape;
    shape[axis] = extent;
    bounded.inputs[of] = random_blob(bounding.dtype, shape, call.random_seed);
    if (index_bound(schema, bounded, input) == extent) return bounded;
  }
  return {};
}

class IndexExamination {
 public:
  IndexExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs)
      : registry_(registry), schema_(schema), call_(call), expected_(outputs) {}
  Finding examine(size_t input, int64_t bound) const;

 private:
  Finding examine_one(size_t input, int64_t bound, int64_t wrong, Place place) const;
  Finding examine_nothing(size_t input) const;
  bool reads(size_t input, int64_t bound, Place place) const;

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  const OperatorCall& call_;
  const Blobs& expected_;
};

// Whether another index within the bound gives another result there, or fails.
bool IndexExamination::reads(size_t input, int64_t bound, Place place) const {
  if (bound <= 1) return reads_indices(registry_, schema_, call_, input);  // there is no other index
  for (const int64_t other : {int64_t{0}, bound / 2, bound - 1}) {
    OperatorCall called = call_;
    called.inputs[input] = with_index(*call_.inputs[input], other, place);
    const auto outputs = run_operator(registry_, called);
    if (!outputs.ok() || !same_bits(expected_, *outputs)) return true;
  }
  return false;
}

// Tries an index a little or far outside, at the begin or at the end: the memory there would be read.
Finding IndexExamination::examine_one(size_t input, int64_t bound, int64_t wrong, Place place) const {
  OperatorCall called = call_;
  called.inputs[input] = with_index(*call_.inputs[input], wrong, place);
  const int32_t of = schema_.input_port(input)->index_bound_port;
  const Describing here({fmt::format(" with {} as an index in input {}", wrong, input), "index-unchecked"});
  const WatchedRun watched(registry_, called, Side::behind, 0);
  if (watched.outputs().ok() && same_bits(expected_, *watched.outputs()) && !reads(input, bound, place)) return watched.found();
  if (watched.outputs().ok())
    return {"index-unchecked", fmt::format("takes {} as an index in input {}, which holds indices of input {}", wrong, input, of)};
  if (!watched.end().refused())
    return {"index-unchecked", fmt::format("breaks on {} as an index in input {}: {}", wrong, input, watched.outputs().status().text())};
  return watched.found().mistake == std::string_view("write-beyond") ? watched.found() : Finding();
}

// Without any rows, every index is outside.
Finding IndexExamination::examine_nothing(size_t input) const {
  const auto probe = with_bound(schema_, call_, input, 0);
  if (!probe) return {};
  const int32_t of = schema_.input_port(input)->index_bound_port;
  const Describing here({fmt::format(" with indices in input {} of nothing in input {}", input, of), "index-unchecked"});
  const WatchedRun watched(registry_, *probe, Side::behind, 0);
  if (!watched.outputs().ok() || !reads_indices(registry_, schema_, call_, input)) return {};
  return {"index-unchecked", fmt::format("takes indices in input {} where input {} has nothing", input, of)};
}

Finding IndexExamination::examine(size_t input, int64_t bound) const {
  if (Finding found = examine_nothing(input); !found.ok()) return found;
  for (const int64_t wrong : {bound, -bound - 1, int64_t{1} << 20, -(int64_t{1} << 20), INT64_MAX, INT64_MIN})
    for (const Place place : {Place::first, Place::last}) {
      if (byte_width(call_.inputs[input]->dtype) < 8 && (wrong > INT32_MAX || wrong < INT32_MIN)) continue;
      if (Finding found = examine_one(input, bound, wrong, place); !found.ok()) return found;
    }
  return {};
}

}  // namespace

Finding examine_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs) {
  const IndexExamination examination(registry, schema, call, outputs);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& indices = call.inputs[i];
    if (!indices || indices->bytes == 0 || byte_width(indices->dtype) < 4) continue;
    const auto bound = index_bound(schema, call, i);
    if (!bound) continue;
    if (Finding found = examination.examine(i, *bound); !found.ok()) return found;
  }
  return {};
}

bool reads_indices(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, size_t input) {
  const auto bound = index_bound(schema, call, input);
  const std::optional<OperatorCall> bounded = bound && *bound > 1 ? std::optional(call) : with_bound(schema, call, input, 2);
  if (!bounded) return true;
  std::optional<Blobs> first;
  for (const int64_t value : {int64_t{0}, *index_bound(schema, *bounded, input) - 1}) {
    OperatorCall called = *bounded;
    called.inputs[input] = with_index(*call.inputs[input], value, Place::all);
    auto outputs = run_operator(registry, called);
    if (!outputs.ok() || (first && !same_bits(*first, *outputs))) return true;
    first = std::move(*outputs);
  }
  return false;
}

}  // namespace heddle::tool
