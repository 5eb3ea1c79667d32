#include "commands/train/data/array_column.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/element.h"
#include "base/text/text.h"
#include "net/net.h"
#include "tensors/convert.h"
#include "tensors/csv.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

// Converts the dtype: a picture of bytes becomes numbers from 0 to 1.
Result<std::shared_ptr<const Blob>> of_dtype(const std::shared_ptr<const Blob>& array, DType wanted) {
  if (array->dtype == wanted) return array;
  std::byte* data = nullptr;
  auto made = Blob::allocate(wanted, array->shape, &data);
  const TensorView from = {array->dtype, array->shape, const_cast<std::byte*>(array->data)};
  for (int64_t i = 0; i < array->shape.element_count(); ++i) {
    if (takes_whole(wanted)) {
      int64_t number = 0;
      if (!whole_element(from, i, &number) || !store_whole(data, wanted, i, number))
        return Status(Code::invalid_argument, fmt::format("element {} is {}, which no {} is", i, element_text(from, i), to_string(wanted)),
                      "look at the data");
      continue;
    }
    const double value = array->dtype == DType::u8 ? element(from, i) / 255 : element(from, i);
    if (wanted == DType::f32) reinterpret_cast<float*>(data)[i] = static_cast<float>(value);
    if (wanted == DType::f64) reinterpret_cast<double*>(data)[i] = value;
  }
  return std::shared_ptr<const Blob>(made);
}

bool converts(DType from, DType to) {
  const bool to_float = to == DType::f32 || to == DType::f64;
  return from == to || (to_float && from != DType::none) || (takes_whole(to) && (is_whole(from) || from == DType::boolean));
}

class ArrayColumn final : public SampleColumn {
 public:
  ArrayColumn(std::shared_ptr<const Blob> array, std::string identity) : array_(std::move(array)), identity_(std::move(identity)) {}
  std::string identity() const override { return identity_; }
  int64_t samples() const override { return array_->shape[0]; }
  // Consecutive samples are not copied.
  Status read(const BatchRequest& request, size_t i, Batch& batch) const override {
    TensorView value = {array_->dtype, array_->shape, const_cast<std::byte*>(array_->data)};
    const int64_t row = samples() == 0 ? 0 : value.byte_size() / samples();
    value.shape[0] = request.count;
    bool is_consecutive = request.count > 0;
    for (int64_t k = 1; k < request.count && is_consecutive; ++k) is_consecutive = request.samples[k] == request.samples[0] + k;
    if (is_consecutive) {
      value.data = const_cast<std::byte*>(array_->data + request.samples[0] * row);
      return batch.refer(i, value);
    }
    HEDDLE_TRY(void* const made, batch.make(i, value.dtype, value.shape));
    for (int64_t k = 0; k < request.count; ++k)
      std::memcpy(static_cast<std::byte*>(made) + k * row, array_->data + request.samples[k] * row, static_cast<size_t>(row));
    return {};
  }

 private:
  const std::shared_ptr<const Blob> array_;
  const std::string identity_;
};

}  // namespace

Result<std::shared_ptr<const Blob>> synthetic_array(const std::string& option, const PortInfo& port, int64_t samples, uint64_t seed) {
  Shape shape = port.shape;
  if (shape.rank() > 0) shape[0] = samples;
  for (int d = 1; d < shape.rank(); ++d)
    if (shape[d] < 0)
      return Status(Code::unbound_symbol, fmt::format("{} synthetic: input {} has no fixed samples", option, quoted(port.name)),
                    "give files");
  int64_t bytes = 0;
  if (!checked_byte_size(port.dtype, shape, &bytes) || bytes > max_random_bytes)
    return Status(Code::limit_exceeded,
                  fmt::format("{} synthetic: {} samples of input {} are too large", option, samples, quoted(port.name)),
                  "give fewer --samples");
  // Integers without a bound are drawn as one of two classes, which every net has.
  return random_blob(port.dtype, shape, seed, port.index_bound > 0 ? port.index_bound : 2);
}

Result<std::shared_ptr<const Blob>> read_array(const std::string& option, const PortInfo& port, const std::string& file,
                                               const Limits& limits) {
  const std::string what = fmt::format("{} {}", option, port.name);
  HEDDLE_TRY(std::shared_ptr<const Blob> array, read_tensor(file, limits), what);
  if (is_csv(file)) array = csv_for_input(array, port);
  if (!converts(array->dtype, port.dtype))
    return Status(
        Code::dtype_mismatch,
        fmt::format("{}: the array for {} is {}, the input {}", option, quoted(port.name), to_string(array->dtype), to_string(port.dtype)),
        is_csv(file) ? "write its numbers without a point: 3, not 3.0" : "save it as that dtype");
  HEDDLE_TRY(std::shared_ptr<const Blob> converted, of_dtype(array, port.dtype), what);
  return converted;
}

Result<std::shared_ptr<const SampleColumn>> array_column(const std::string& option, const PortInfo& input,
                                                         std::shared_ptr<const Blob> array, std::string identity) {
  bool fits = array->shape.rank() >= 1 && (!input.ranked || array->shape.rank() == input.shape.rank());
  for (int d = 1; fits && input.ranked && d < input.shape.rank(); ++d) fits = input.shape[d] < 0 || input.shape[d] == array->shape[d];
  if (!fits)
    return Status(Code::shape_mismatch,
                  fmt::format("{}: the array for {} is {}, samples of the input are {}", option, quoted(input.name), array->shape.text(),
                              input.shape.text()),
                  "give samples along the first axis");
  return std::shared_ptr<const SampleColumn>(std::make_shared<ArrayColumn>(std::move(array), std::move(identity)));
}

}  // namespace heddle::tool
