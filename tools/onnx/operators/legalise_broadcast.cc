// Operators of opset < 7 that aligned their second operand by attributes instead of by NumPy's rule.
#include <fmt/format.h>

#include <numeric>

#include "onnx/operators/legalise.h"

namespace heddle::importer {
namespace {

// Appends `ones` dimensions of 1 to those of `value`, which has rank `rank`.
ValueId append_ones(Rewrite& r, const std::string& label, ValueId value, int rank, int ones) {
  if (ones <= 0) return value;
  std::vector<int64_t> axes(static_cast<size_t>(ones));
  std::iota(axes.begin(), axes.end(), rank);
  return r.emit(label, "Unsqueeze", {value, r.ints(label + "/axes", axes)});
}

}  // namespace

// broadcast = 1 without `axis` matches the last dimensions, like NumPy's rule. With `axis`, dimension 0 of the second operand is aligned
// with that axis of the first.
Status align_broadcast(Rewrite& r) {
  HEDDLE_TRY(const auto broadcast, r.take_int("broadcast"));
  HEDDLE_TRY(const auto axis, r.take_int("axis"));
  if (broadcast.value_or(0) == 0 || !axis) return {};
  const int a = r.hint(r.input(0)).rank;
  const int b = r.hint(r.input(1)).rank;
  if (b == 0) return {};
  if (a < 0 || b < 0)
    return {Code::unsupported, "legacy broadcast along an axis needs the ranks of both operands, and they are not known",
            "run ONNX's shape inference on the model, or convert it to opset 7 or newer"};
  const int64_t start = *axis < 0 ? a - b : *axis;  // Caffe2 wrote -1 for "the last dimensions"
  if (start + b > a) return {Code::attribute_mismatch, fmt::format("axis {} does not fit operands of rank {} and {}", *axis, a, b)};
  r.set_input(1, append_ones(r, "aligned", r.input(1), b, static_cast<int>(a - b - start)));
  return {};
}

// A slope [C] belonged to dimension 1; a single element applies everywhere, and stays right with ones appended.
Status slope_to_channels(Rewrite& r) {
  const int x = r.hint(r.input(0)).rank;
  const int slope = r.hint(r.input(1)).rank;
  const Blob* content = r.content(r.input(1));
  const bool single = slope == 0 || (content && content->shape.element_count() == 1);
  if (single || slope > 1) return {};
  if (x < 0 || slope < 0)
    return {Code::unsupported, "a slope per channel needs the rank of the input, and it is not known",
            "run ONNX's shape inference on the model, or convert it to opset 7 or newer"};
  r.set_input(1, append_ones(r, "slope", r.input(1), slope, x - 2));
  return {};
}

Status drop_broadcast(Rewrite& r) {
  r.drop("broadcast");
  return {};
}

}  // namespace heddle::importer
