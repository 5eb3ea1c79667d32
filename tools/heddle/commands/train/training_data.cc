#include "commands/train/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/text/text.h"
#include "heddle/op/philox.h"
#include "tensors/compare.h"
#include "tensors/convert.h"
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

}  // namespace

std::vector<std::string> TrainingData::files(const std::vector<std::string>& specs) {
  std::vector<std::string> names;
  if (is_synthetic(specs)) return names;
  const auto given = split_name_values("--data", specs);
  for (size_t i = 0; given.ok() && i < given->size(); ++i) names.push_back(file_of_tensor((*given)[i].second));
  return names;
}

Result<TrainingData> TrainingData::read(const std::string& option, const std::vector<std::string>& specs,
                                        const std::vector<PortInfo>& inputs, int64_t samples, uint64_t seed, const Limits& limits) {
  TrainingData data;
  std::vector<NameValue> given;
  if (!is_synthetic(specs)) {
    HEDDLE_TRY(given, split_name_values(option, specs));
  }
  for (const auto& [name, file] : given)
    if (std::none_of(inputs.begin(), inputs.end(), [&, &n = name](const PortInfo& p) { return p.name == n; }))
      return Status(Code::unknown_name, fmt::format("{}: the net has no input {}", option, quoted(name)), "see heddle inspect");
  for (const PortInfo& port : inputs) {
    std::shared_ptr<const Blob> array;
    if (is_synthetic(specs)) {
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
      array = random_blob(port.dtype, shape, seed + data.arrays_.size(), port.index_bound > 0 ? port.index_bound : 2);
    } else {
      const auto found = std::find_if(given.begin(), given.end(), [&](const NameValue& v) { return v.first == port.name; });
      if (found == given.end())
        return Status(Code::missing_input, fmt::format("{}: nothing was given for input {}", option, quoted(port.name)),
                      fmt::format("add {} {}=FILE.npy", option, port.name));
      HEDDLE_TRY(array, read_tensor(found->second, limits), fmt::format("{} {}", option, port.name));
      if (!converts(array->dtype, port.dtype))
        return Status(Code::dtype_mismatch,
                      fmt::format("{}: the array for {} is {}, the input {}", option, quoted(port.name), to_string(array->dtype),
                                  to_string(port.dtype)),
                      "save it as that dtype");
      HEDDLE_TRY(array, of_dtype(array, port.dtype), fmt::format("{} {}", option, port.name));
    }
    HEDDLE_CHECK(check_samples(option, port, *array));
    if (!data.arrays_.empty() && array->shape[0] != data.samples_)
      return Status(Code::shape_mismatch,
                    fmt::format("{}: {} has {} samples, {} has {}", option, quoted(inputs[0].name), data.samples_, quoted(port.name),
                                array->shape[0]),
                    "give as many of each");
    data.samples_ = array->shape[0];
    data.arrays_.push_back(std::move(array));
  }
  data.gathered_.resize(data.arrays_.size());
  data.views_.resize(data.arrays_.size());
  for (const PortInfo& input : inputs) data.names_.push_back(input.name);
  return data;
}

const std::vector<TensorView>& TrainingData::gather(const int64_t* samples, int64_t count) {
  given_.assign(samples, samples + count);
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const Blob& array = *arrays_[i];
    const auto bytes = static_cast<size_t>(samples_ == 0 ? 0 : array.bytes / samples_);
    gathered_[i].resize(bytes * static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k)
      std::memcpy(gathered_[i].data() + bytes * static_cast<size_t>(k), array.data + bytes * static_cast<size_t>(samples[k]), bytes);
    Shape shape = array.shape;
    shape[0] = count;
    views_[i] = {array.dtype, shape, gathered_[i].data()};
  }
  return views_;
}

const std::vector<TensorView>& TrainingData::batch(int64_t number, int64_t size, uint64_t seed) {
  const int64_t in_epoch = samples_ / size, epoch = number / in_epoch;
  if (epoch != epoch_) {
    order_.resize(static_cast<size_t>(samples_));
    std::iota(order_.begin(), order_.end(), 0);
    const plugin::Philox philox(seed, 0xda7a, static_cast<uint64_t>(epoch));
    for (size_t i = order_.size(); i > 1; --i) {  // Fisher and Yates
      const plugin::Philox::Block words = philox.block(i);
      std::swap(order_[i - 1], order_[(uint64_t{words[0]} << 32 | words[1]) % i]);
    }
    epoch_ = epoch;
  }
  return gather(order_.data() + (number % in_epoch) * size, size);
}

std::string TrainingData::samples_text() const {
  constexpr size_t most = 256;
  std::string text;
  for (size_t k = 0; k < std::min(given_.size(), most); ++k) text += fmt::format("{}{}", k == 0 ? "" : ", ", given_[k]);
  if (given_.size() > most) text += ", ...";
  return text;
}

std::string TrainingData::sample_text(std::string_view error) const {
  constexpr std::string_view marker = " at position ";
  const size_t at = error.find(marker);
  if (at == std::string_view::npos) return {};
  const std::string_view before = error.substr(0, at), after = error.substr(at + marker.size());
  int64_t number = 0, position = 0;
  if (!parse_int(before.substr(before.find_last_of(' ') + 1), &number)) return {};
  if (!parse_int(after.substr(0, after.find_first_not_of("0123456789")), &position) || position < 0) return {};
  for (size_t i = 0; i < views_.size(); ++i) {
    const int64_t count = views_[i].shape.element_count();
    if (is_float(views_[i].dtype) || position >= count || element(views_[i], position) != static_cast<double>(number)) continue;
    const int64_t each = count / views_[i].shape[0];
    return fmt::format("sample {} of input {}", given_[static_cast<size_t>(position / each)], quoted(names_[i]));
  }
  return {};
}

std::string TrainingData::not_finite_text() const {
  for (size_t i = 0; i < views_.size(); ++i) {
    if (!is_float(views_[i].dtype)) continue;
    const int64_t each = views_[i].shape.element_count() / std::max<int64_t>(1, views_[i].shape[0]);
    for (int64_t k = 0; k < views_[i].shape.element_count(); ++k)
      if (const double number = element(views_[i], k); !std::isfinite(number))
        return fmt::format("input {} has {} in sample {}", quoted(names_[i]), number, given_[static_cast<size_t>(k / each)]);
  }
  return {};
}

const std::vector<TensorView>& TrainingData::slice(int64_t first, int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  return gather(samples.data(), count);
}

}  // namespace heddle::tool
