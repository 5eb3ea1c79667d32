#include "layout_examination.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/text.h"
#include "compile/plan.h"

namespace heddle::tool {
namespace {

// An order of all the dimensions, or row-major.
bool is_order(const heddle_layout& layout, int rank) {
  if (layout.block_count != 0 || layout.opaque_owner != 0) return false;
  if (layout.rank == 0) return true;
  if (layout.rank != rank) return false;
  std::vector<uint8_t> sorted(layout.order, layout.order + rank);
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < rank; ++i)
    if (sorted[static_cast<size_t>(i)] != i) return false;
  return true;
}

// The same elements in the order of `layout`, or back from it. Shapes stay the logical ones.
std::shared_ptr<const Blob> reordered(const std::shared_ptr<const Blob>& blob, const heddle_layout& layout, bool back) {
  if (!blob || layout.rank == 0 || blob->bytes == 0) return blob;
  const int rank = blob->shape.rank();
  const auto width = static_cast<size_t>(byte_width(blob->dtype));
  int64_t strides[HEDDLE_MAX_RANK];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[layout.order[i]] = stride;
    stride *= blob->shape[layout.order[i]];
  }
  std::byte* data = nullptr;
  auto result = Blob::allocate(blob->dtype, blob->shape, &data);
  for (int64_t i = 0; i < blob->shape.element_count(); ++i) {
    int64_t at = 0, rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      at += rest % blob->shape[d] * strides[d];
      rest /= blob->shape[d];
    }
    std::memcpy(data + static_cast<size_t>(back ? i : at) * width, blob->data + static_cast<size_t>(back ? at : i) * width, width);
  }
  return result;
}

double real(const Blob& blob, int64_t i) {
  switch (blob.dtype) {
    case DType::f32:
      return static_cast<double>(reinterpret_cast<const float*>(blob.data)[i]);
    case DType::f64:
      return reinterpret_cast<const double*>(blob.data)[i];
    case DType::f16:
      return static_cast<double>(float_of_f16(reinterpret_cast<const uint16_t*>(blob.data)[i]));
    default:
      return static_cast<double>(float_of_bf16(reinterpret_cast<const uint16_t*>(blob.data)[i]));
  }
}

// The first element that differs; -1: they agree.
int64_t difference(const Blob& a, const Blob& b) {
  const bool floating = a.dtype == DType::f32 || a.dtype == DType::f64 || a.dtype == DType::f16 || a.dtype == DType::bf16;
  const auto width = static_cast<size_t>(byte_width(a.dtype));
  const double relative = width == 2 ? 2e-2 : 1e-4;
  for (int64_t i = 0; i < a.shape.element_count(); ++i) {
    if (std::memcmp(a.data + static_cast<size_t>(i) * width, b.data + static_cast<size_t>(i) * width, width) == 0) continue;
    if (!floating) return i;
    const double x = real(a, i), y = real(b, i);
    if (!(std::abs(x - y) <= relative * std::max(0.1, std::abs(y))) && !(std::isnan(x) && std::isnan(y))) return i;
  }
  return -1;
}

std::string examine_format(const RegistrySnapshot& registry, OperatorCall call, const heddle_format& format,
                           const std::vector<std::shared_ptr<const Blob>>& outputs) {
  const auto layout_of = [](const heddle_layout* layouts, size_t i) { return i < HEDDLE_FORMAT_PORTS ? layouts[i] : heddle_layout{}; };
  std::vector<std::string> named;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const heddle_layout layout = layout_of(format.inputs, i);
    if (call.inputs[i] && !is_order(layout, call.inputs[i]->shape.rank()))
      return "formats() gives input " + std::to_string(i) + " of rank " + std::to_string(call.inputs[i]->shape.rank()) +
             " a layout that is no order of its dimensions";
    call.input_layouts.push_back(layout);
    call.inputs[i] = reordered(call.inputs[i], layout, false);
    named.push_back(layout_text(layout));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const heddle_layout layout = layout_of(format.outputs, o);
    if (!is_order(layout, outputs[o]->shape.rank()))
      return "formats() gives output " + std::to_string(o) + " of rank " + std::to_string(outputs[o]->shape.rank()) +
             " a layout that is no order of its dimensions";
    call.output_layouts.push_back(layout);
  }
  const std::string in = " with inputs " + join(named, ", ");
  const auto result = run_operator(registry, call);
  if (!result.ok()) return "fails in a layout of its formats()" + in + ": " + result.status().text();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::shared_ptr<const Blob> row_major = reordered((*result)[o], call.output_layouts[o], true);
    if (row_major->shape != outputs[o]->shape) return "gives another shape in a layout of its formats()" + in;
    if (const int64_t at = difference(*row_major, *outputs[o]); at >= 0)
      return "gives another element " + std::to_string(at) + " of output " + std::to_string(o) + " in a layout of its formats()" + in;
  }
  return {};
}

}  // namespace

std::string examine_layouts(const RegistrySnapshot& registry, const OperatorCall& call,
                            const std::vector<std::shared_ptr<const Blob>>& outputs) {
  const auto formats = operator_formats(registry, call);
  if (!formats.ok()) return {};
  for (const heddle_format& format : *formats) {
    const std::string wrong = examine_format(registry, call, format, outputs);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace heddle::tool
