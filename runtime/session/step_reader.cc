#include "session/step_reader.h"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "net/layout_order.h"
#include "session/plain_values.h"

namespace heddle {

TensorView StepReader::type(const std::vector<Operand>& operands, size_t k) const {
  if (k >= operands.size() || !operands[k].value.valid()) return {};
  const heddle_tensor& view = execution_.view(operands[k].value);
  TensorView tensor{static_cast<DType>(view.dtype), Shape(view.dims, view.rank), nullptr};
  if (view.extent && view.extent_axis >= 0) tensor.shape[view.extent_axis] = extent_of(operands[k].value, view);
  return tensor;
}

// Returns the extent, which lies where the value does. Returns the bound if the device can't be read: then reading the value will fail too.
int64_t StepReader::extent_of(ValueId value, const heddle_tensor& view) const {
  const uint8_t device = execution_.plan().values[value.index].place.device;
  if (device == 0) return *view.extent;
  int64_t extent = 0;
  const Status read = execution_.plan().devices[device - 1u].device->read(&extent, view.extent, sizeof(extent));
  const int64_t bound = view.dims[view.extent_axis];
  return read.ok() && extent >= 0 && extent <= bound ? extent : bound;
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

// Catches exceptions, since the observed run must end like any other: with its streams drained and its variables whole or marked.
Status StepReader::show(const StepObserver& observer, size_t step) {
  try {
    StepView view(*this, step);
    return observer(view);
  } catch (const std::bad_alloc&) {
    return status_of_exception();
  } catch (const std::exception& e) {
    return {Code::internal, fmt::format("the observer threw an exception: {}", printable_line(e.what())), "return a Status instead"};
  } catch (...) {
    return {Code::internal, "the observer threw an exception", "return a Status instead"};
  }
}

TensorView StepView::input_type(size_t k) const {
  return or_empty("no memory for the type of an input", [&] { return reader_.type(reader_.step(step_).inputs, k); });
}
TensorView StepView::output_type(size_t k) const {
  return or_empty("no memory for the type of an output", [&] { return reader_.type(reader_.step(step_).outputs, k); });
}
Result<TensorView> StepView::read_input(size_t k) try { return reader_.read(reader_.step(step_).inputs, k); } catch (...) {
  return status_of_exception();
}
Result<TensorView> StepView::read_output(size_t k) try { return reader_.read(reader_.step(step_).outputs, k); } catch (...) {
  return status_of_exception();
}

}  // namespace heddle
