#include "session/step_reader.h"

#include <fmt/format.h>

#include <exception>

#include "base/text.h"
#include "net/layout_order.h"

namespace heddle {

TensorView StepReader::type(const std::vector<Operand>& operands, size_t k) const {
  if (k >= operands.size() || !operands[k].value.valid()) return {};
  const heddle_tensor& view = execution_.view(operands[k].value);
  TensorView tensor{static_cast<DType>(view.dtype), Shape(view.dims, view.rank), nullptr};
  if (view.extent && view.extent_axis >= 0) tensor.shape[view.extent_axis] = *view.extent;
  return tensor;
}

Result<TensorView> StepReader::read(const std::vector<Operand>& operands, size_t k) {
  TensorView tensor = type(operands, k);
  if (tensor.dtype == DType::none) return tensor;
  const heddle_tensor& view = execution_.view(operands[k].value);
  if (!is_order(view.layout, view.rank))
    return Status(Code::unsupported,
                  fmt::format("value {} is in a layout of its own, which nothing else reads",
                              quoted(execution_.plan().values[operands[k].value.index].name)),
                  "look at another step");
  if (!view.data) return tensor;
  HEDDLE_TRY(tensor.data, execution_.on_host(operands[k].value, staging_));
  if (view.layout.rank == 0) return tensor;
  ordered_ = row_major(tensor, view.layout);
  tensor.data = ordered_.data();
  return tensor;
}

// The run that it looks at must end as any other: with its streams drained and its variables whole or marked.
Status StepReader::show(const StepObserver& observer, size_t step) noexcept {
  try {
    StepView view(*this, step);
    return observer(view);
  } catch (const std::exception& e) {
    return {Code::internal, fmt::format("the observer threw an exception: {}", printable_line(e.what())), "return a Status instead"};
  } catch (...) {
    return {Code::internal, "the observer threw an exception", "return a Status instead"};
  }
}

TensorView StepView::input_type(size_t k) const {
  return reader_.type(reader_.step(step_).inputs, k);
}
TensorView StepView::output_type(size_t k) const {
  return reader_.type(reader_.step(step_).outputs, k);
}
Result<TensorView> StepView::read_input(size_t k) {
  return reader_.read(reader_.step(step_).inputs, k);
}
Result<TensorView> StepView::read_output(size_t k) {
  return reader_.read(reader_.step(step_).outputs, k);
}

}  // namespace heddle
