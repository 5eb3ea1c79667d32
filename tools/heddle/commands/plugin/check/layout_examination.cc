#include "commands/plugin/check/layout_examination.h"

#include <fmt/format.h>

#include "base/text/text.h"
#include "net/layout_order.h"
#include "tensors/compare.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

TensorView view_of(const Blob& blob) {
  return {blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)};
}

std::string examine_format(const RegistrySnapshot& registry, OperatorCall call, const heddle_format& format, const Blobs& outputs) {
  const auto layout_of = [](const heddle_layout* layouts, size_t i) { return i < HEDDLE_FORMAT_PORTS ? layouts[i] : heddle_layout{}; };
  std::vector<std::string> named;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const heddle_layout layout = layout_of(format.inputs, i);
    call.input_layouts.push_back(layout);
    if (const auto x = call.inputs[i]; x && x->bytes > 0)
      call.inputs[i] = Blob::copy_of(x->dtype, x->shape, in_order(view_of(*x), layout).data());
    named.push_back(layout_text(layout));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const heddle_layout layout = layout_of(format.outputs, o);
    call.output_layouts.push_back(layout);
  }
  const std::string in = join(named, ", ");
  const auto result = run_operator(registry, call);
  if (!result.ok()) return fmt::format("fails in a layout of its formats() with inputs {}: {}", in, result.status().text());
  for (size_t o = 0; o < outputs.size(); ++o) {
    TensorView actual = view_of(*(*result)[o]);
    std::vector<std::byte> ordered = row_major(actual, call.output_layouts[o]);
    actual.data = ordered.data();
    const double relative = byte_width(actual.dtype) == 2 ? 2e-2 : 1e-4;
    const Comparison c = compare(actual, view_of(*outputs[o]), relative, relative / 10);
    if (!c.equal) return fmt::format("output {} in a layout of its formats() with inputs {}: {}", o, in, c.reason);
  }
  return {};
}

}  // namespace

std::string examine_layouts(const RegistrySnapshot& registry, const OperatorCall& call, const Blobs& outputs) {
  const auto formats = operator_formats(registry, call);
  if (!formats.ok()) return formats.status().diagnostic().message;
  for (const heddle_format& format : *formats) {
    const std::string wrong = examine_format(registry, call, format, outputs);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace heddle::tool
