#include "commands/train/array_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/element.h"
#include "base/text/text.h"
#include "net/net.h"
#include "tensors/convert.h"
#include "tensors/csv.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

bool is_synthetic(const std::vector<std::string>& specs) {
  return specs.size() == 1 && specs[0] == "synthetic";
}

// Checks that samples of `array` fit an input: its dims except for the first.
Status check_samples(const std::string& option, const PortInfo& port, const Blob& array) {
  bool fits = array.shape.rank() >= 1 && (!port.ranked || array.shape.rank() == port.shape.rank());
  for (int d = 1; fits && port.ranked && d < port.shape.rank(); ++d) fits = port.shape[d] < 0 || port.shape[d] == array.shape[d];
  if (fits) return {};
  return {Code::shape_mismatch,
          fmt::format("{}: the array for {} is {}, samples of the input are {}", option, quoted(port.name), array.shape.text(),
                      port.shape.text()),
          "give samples along the first axis"};
}

// Converts the dtype: a picture of bytes becomes numbers from 0 to 1.
Result<std::shared_ptr<const Blob>> of_dtype(const std::shared_ptr<const Blob>& array, DType wanted) {
  if (array->dtype == wanted) return array;
  std::byte* data = nullptr;
  auto made = Blob::allocate(wanted, array->shape, &data);
  const TensorView from = {array->dtype, array->shape, const_cast<std::byte*>(array->data)};
  for (int64_t i = 0; i < array->shape.element_count(); ++i) {
    if (array->dtype == DType::u64 && wanted == DType::i64) {  // a double would round these
      const uint64_t exact = static_cast<const uint64_t*>(from.data)[i];
      if (exact > INT64_MAX)
        return Status(Code::invalid_argument, fmt::format("element {} is {}, which no i64 is", i, exact), "look at the data");
      reinterpret_cast<int64_t*>(data)[i] = static_cast<int64_t>(exact);
      continue;
    }
    const double value = element(from, i);
    const auto at = static_cast<size_t>(i);
    const double bound = wanted == DType::i32 ? 0x1p31 : 0x1p63;  // for integers; narrower ones are exact in a double
    if ((wanted == DType::i32 || wanted == DType::i64) && !(value >= -bound && value < bound))
      return Status(Code::invalid_argument, fmt::format("element {} is {:.17g}, which no {} is", i, value, to_string(wanted)),
                    "look at the data");
    if (wanted == DType::f32) reinterpret_cast<float*>(data)[at] = static_cast<float>(array->dtype == DType::u8 ? value / 255 : value);
    if (wanted == DType::f64) reinterpret_cast<double*>(data)[at] = array->dtype == DType::u8 ? value / 255 : value;
    if (wanted == DType::i64) reinterpret_cast<int64_t*>(data)[at] = static_cast<int64_t>(value);
    if (wanted == DType::i32) reinterpret_cast<int32_t*>(data)[at] = static_cast<int32_t>(value);
  }
  return std::shared_ptr<const Blob>(made);
}

bool converts(DType from, DType to) {
  const auto whole = [](DType t) { return t != DType::none && t != DType::f16 && t != DType::bf16 && t != DType::f32 && t != DType::f64; };
  const bool to_float = to == DType::f32 || to == DType::f64, to_whole = to == DType::i64 || to == DType::i32;
  return from == to || (to_float && from != DType::none) || (to_whole && whole(from));
}

struct ReadArrays {
  std::vector<std::shared_ptr<const Blob>> arrays;
  std::shared_ptr<const Dataset> dataset;  // of them
};

// Returns the array that --data synthetic has for an input.
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

// Returns the array of a file for an input, in the input's dtype.
Result<std::shared_ptr<const Blob>> read_array(const std::string& option, const PortInfo& port, const std::string& file,
                                               const Limits& limits) {
  const std::string what = fmt::format("{} {}", option, port.name);
  HEDDLE_TRY(std::shared_ptr<const Blob> array, read_tensor(file, limits), what);
  if (is_csv(file)) array = csv_for_input(array, port);
  if (!converts(array->dtype, port.dtype))
    return Status(
        Code::dtype_mismatch,
        fmt::format("{}: the array for {} is {}, the input {}", option, quoted(port.name), to_string(array->dtype), to_string(port.dtype)),
        "save it as that dtype");
  HEDDLE_TRY(std::shared_ptr<const Blob> converted, of_dtype(array, port.dtype), what);
  return converted;
}

}  // namespace

Result<std::shared_ptr<const Dataset>> read_array_files(const std::string& option, const std::vector<std::string>& specs,
                                                        const std::vector<PortInfo>& inputs, int64_t samples, uint64_t seed,
                                                        const Limits& limits) {
  std::vector<NameValue> given;
  if (!is_synthetic(specs)) {
    HEDDLE_TRY(given, split_name_values(option, specs));
  }
  for (const auto& [name, file] : given)
    if (std::none_of(inputs.begin(), inputs.end(), [&, &n = name](const PortInfo& p) { return p.name == n; }))
      return Status(Code::unknown_name, fmt::format("{}: the net has no input {}", option, quoted(name)), "see heddle inspect");
  const auto read = std::make_shared<ReadArrays>();
  std::vector<std::pair<std::string, TensorView>> views;
  for (const PortInfo& port : inputs) {
    std::shared_ptr<const Blob> array;
    if (is_synthetic(specs)) {
      HEDDLE_TRY(array, synthetic_array(option, port, samples, seed + read->arrays.size()));
    } else {
      const auto found = std::find_if(given.begin(), given.end(), [&](const NameValue& v) { return v.first == port.name; });
      if (found == given.end())
        return Status(Code::missing_input, fmt::format("{}: nothing was given for input {}", option, quoted(port.name)),
                      fmt::format("add {} {}=FILE.npy", option, port.name));
      HEDDLE_TRY(array, read_array(option, port, found->second, limits));
    }
    HEDDLE_CHECK(check_samples(option, port, *array));
    views.emplace_back(port.name, TensorView{array->dtype, array->shape, const_cast<std::byte*>(array->data)});
    read->arrays.push_back(std::move(array));
  }
  HEDDLE_TRY(read->dataset, Dataset::of_arrays(std::move(views)), option);
  return std::shared_ptr<const Dataset>(read, read->dataset.get());
}

std::vector<std::string> files_of(const std::vector<std::string>& specs) {
  std::vector<std::string> names;
  if (is_synthetic(specs)) return names;
  const auto given = split_name_values("--data", specs);
  for (size_t i = 0; given.ok() && i < given->size(); ++i) names.push_back(file_of_tensor((*given)[i].second));
  return names;
}

}  // namespace heddle::tool
