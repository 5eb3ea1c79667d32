#include "tensors/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/half.h"
#include "base/random.h"
#include "base/text/text.h"
#include "common/standard_streams.h"
#include "infer/shape_operands.h"
#include "tensors/csv.h"
#include "tensors/picture.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

template <class T>
void store(std::byte* data, int64_t i, T value) {
  std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

Result<Shape> parse_shape(const std::string& name, const std::string& text) {
  Shape shape;
  size_t i = 0;
  while (i <= text.size() && !text.empty()) {
    const size_t end = std::min(text.find('x', i), text.size());
    int64_t dim = 0;
    if (!parse_int(std::string_view(text).substr(i, end - i), &dim) || dim < 0 || shape.rank() == max_rank)
      return Status(Code::invalid_argument, fmt::format("--shape {} is not a shape", quoted(name + "=" + text)),
                    fmt::format("write it like {}=1x3x224x224", word(name)));
    shape.push_back(dim);
    i = end + 1;
  }
  return shape;
}

Result<Shape> shape_of(const PortInfo& value, const InputRequest& request, const std::vector<std::pair<std::string, int64_t>>& symbols) {
  HEDDLE_TRY(const std::vector<NameValue> shapes, split_name_values("--shape", request.shapes));
  for (const NameValue& given : shapes)
    if (given.first == value.name) return parse_shape(given.first, given.second);
  Shape shape;
  if (!value.ranked)
    return Status(Code::unbound_symbol, fmt::format("the shape of input {} is not known", quoted(value.name)),
                  fmt::format("give it with --shape {}=...", word(value.name)));
  for (int i = 0; i < value.shape.rank(); ++i) {
    if (value.shape[i] >= 0) {
      shape.push_back(value.shape[i]);
      continue;
    }
    const std::string& symbol = value.symbols[static_cast<size_t>(i)];
    const auto bound = std::find_if(symbols.begin(), symbols.end(), [&](const auto& s) { return s.first == symbol; });
    if (bound == symbols.end())
      return Status(Code::unbound_symbol,
                    symbol.empty() ? fmt::format("an extent of input {} is not known", quoted(value.name))
                                   : fmt::format("an extent of input {} is not known: symbol {}", quoted(value.name), quoted(symbol)),
                    symbol.empty() ? fmt::format("give --shape {}=...", word(value.name))
                                   : fmt::format("give --symbol {}=NUMBER or --shape {}=...", word(symbol), word(value.name)));
    shape.push_back(bound->second);
  }
  return shape;
}

Result<size_t> position_of(const std::vector<PortInfo>& inputs, const std::string& option, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(inputs[i].name);
    if (names.back() == name) return i;
  }
  const std::string hint = suggestion(name, names);
  return Status(Code::unknown_name, fmt::format("{}: the net has no input {}", option, quoted(name)),
                hint.empty() ? fmt::format("its inputs are {}", words(names, ", ")) : hint);
}

}  // namespace

Result<NameValue> split_name_value(const std::string& option, const std::string& text) {
  const size_t at = text.rfind('=');  // the last one: names of inputs may contain it
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return Status(Code::invalid_argument, fmt::format("{} {} is not NAME=VALUE", option, quoted(text)),
                  fmt::format("write {} NAME=VALUE", option));
  return NameValue{text.substr(0, at), text.substr(at + 1)};
}

Result<std::vector<NameValue>> split_name_values(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<NameValue> values;
  for (const std::string& text : texts) {
    HEDDLE_TRY(NameValue given, split_name_value(option, text));
    const auto earlier = std::find_if(values.begin(), values.end(), [&](const NameValue& v) { return v.first == given.first; });
    if (earlier != values.end())
      return Status(Code::invalid_argument,
                    fmt::format("{} gives {} twice: {} and {}", option, quoted(given.first), quoted(earlier->second), quoted(given.second)),
                    "give it once");
    values.push_back(std::move(given));
  }
  return values;
}

Result<std::vector<std::pair<std::string, int64_t>>> parse_symbols(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, int64_t>> symbols;
  HEDDLE_TRY(const std::vector<NameValue> values, split_name_values("--symbol", texts));
  for (const auto& [name, text] : values) {
    int64_t extent = 0;
    if (!parse_int(text, &extent) || extent < 0)
      return Status(Code::invalid_argument, fmt::format("--symbol {} is not NAME=N", quoted(name + "=" + text)),
                    "give a non-negative number");
    symbols.emplace_back(name, extent);
  }
  return symbols;
}

std::shared_ptr<const Blob> random_blob(DType dtype, const Shape& shape, uint64_t seed, int64_t bound) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  uint64_t state = seed;
  const int64_t count = shape.element_count();
  for (int64_t i = 0; i < count; ++i) {
    // One draw for each element whatever the dtype, so that the same seed gives comparable content. Reals are in [-1, 1) with 24 bits,
    // exact in f32; integers are below the bound of an index, else small enough for i8.
    const uint64_t r = next_random(state);
    const float real = static_cast<float>(static_cast<int32_t>(r >> 40) - (1 << 23)) * 0x1p-23f;
    const auto integer = static_cast<int64_t>((r >> 16) % static_cast<uint64_t>(bound > 0 ? bound : 101));
    switch (dtype) {
      case DType::f16:
        store(data, i, f16_of_float(real));
        break;
      case DType::bf16:
        store(data, i, bf16_of_float(real));
        break;
      case DType::f32:
        store(data, i, real);
        break;
      case DType::f64:
        store(data, i, static_cast<double>(real));
        break;
      case DType::i8:
        store(data, i, static_cast<int8_t>(integer));
        break;
      case DType::u8:
        store(data, i, static_cast<uint8_t>(integer));
        break;
      case DType::i16:
      case DType::u16:
        store(data, i, static_cast<uint16_t>(integer));
        break;
      case DType::i32:
      case DType::u32:
        store(data, i, static_cast<uint32_t>(integer));
        break;
      case DType::i64:
      case DType::u64:
        store(data, i, static_cast<uint64_t>(integer));
        break;
      default:
        store(data, i, static_cast<uint8_t>(r >> 63));
        break;
    }
  }
  return blob;
}

std::vector<TensorView> views_of(const std::vector<std::shared_ptr<const Blob>>& blobs) {
  std::vector<TensorView> views;
  for (const auto& blob : blobs) views.push_back({blob->dtype, blob->shape, const_cast<std::byte*>(blob->data)});
  return views;
}

Result<std::vector<TensorView>> bind_shapes(const std::vector<PortInfo>& inputs, const std::vector<std::string>& shapes) {
  std::vector<TensorView> bindings(inputs.size());
  HEDDLE_TRY(const std::vector<NameValue> values, split_name_values("--shape", shapes));
  for (const NameValue& given : values) {
    HEDDLE_TRY(const size_t position, position_of(inputs, "--shape", given.first));
    HEDDLE_TRY(bindings[position].shape, parse_shape(given.first, given.second));
    bindings[position].dtype = inputs[position].dtype;
  }
  return bindings;
}

namespace {

// Returns a picture's numbers, or, where the input takes the bytes of a file, these.
Result<std::shared_ptr<const Blob>> picture_for_input(PortInfo input, const std::string& file, const InputRequest& request,
                                                      const std::vector<std::pair<std::string, int64_t>>& symbols) {
  if (input.dtype == DType::u8 && input.ranked && input.shape.rank() == 1) {
    HEDDLE_TRY(const FileBytes bytes, read_file(file, request.limits.weight_file_bytes, "weight_file_bytes"));
    return std::shared_ptr<const Blob>(Blob::copy_of(DType::u8, {static_cast<int64_t>(bytes.size)}, bytes.data.get()));
  }
  const bool is_open = input.ranked && input.shape.rank() > 0 && input.shape[0] < 0;
  if (is_open && std::none_of(symbols.begin(), symbols.end(), [&](const auto& s) { return s.first == input.symbols[0]; }))
    input.shape[0] = 1;  // one picture is a batch of one, unless another one is asked for
  HEDDLE_TRY(const Shape shape, shape_of(input, request, symbols));
  return read_picture(file, shape);
}

}  // namespace

Result<std::vector<std::shared_ptr<const Blob>>> read_inputs(const std::vector<PortInfo>& inputs, const InputRequest& request) {
  HEDDLE_TRY(const auto symbols, parse_symbols(request.symbols));
  std::vector<std::shared_ptr<const Blob>> blobs(inputs.size());
  HEDDLE_CHECK(bind_shapes(inputs, request.shapes).status());
  HEDDLE_TRY(const std::vector<NameValue> files, split_name_values("--input", request.files));
  for (const NameValue& given : files) {
    HEDDLE_TRY(const size_t position, position_of(inputs, "--input", given.first));
    HEDDLE_TRY(const std::string file, named_by_content(given.second, request.limits.weight_file_bytes));
    if (is_picture(file)) {
      HEDDLE_TRY(blobs[position], picture_for_input(inputs[position], file, request, symbols));
    } else {
      HEDDLE_TRY(blobs[position], read_tensor(file, request.limits));
      if (is_csv(file)) blobs[position] = csv_for_input(blobs[position], inputs[position]);
    }
  }
  return blobs;
}

Result<std::vector<std::shared_ptr<const Blob>>> make_inputs(const std::vector<PortInfo>& inputs, const InputRequest& request) {
  HEDDLE_TRY(const auto symbols, parse_symbols(request.symbols));
  HEDDLE_TRY(auto blobs, read_inputs(inputs, request));
  std::vector<std::string> missing;
  for (size_t i = 0; i < blobs.size(); ++i)
    // Random content would mean random extents, up to the size of memory: it must be given.
    if (!request.invent_shapes && inputs[i].decides_shapes && !blobs[i]) return missing_content(inputs[i].name);
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (blobs[i]) continue;
    const PortInfo& input = inputs[i];
    if (!request.random_seed) {
      missing.push_back(quoted(input.name));
      continue;
    }
    HEDDLE_TRY(const Shape shape, shape_of(input, request, symbols));
    int64_t bytes = 0;
    if (!checked_byte_size(input.dtype, shape, &bytes) || bytes > max_random_bytes)
      return Status(Code::limit_exceeded,
                    fmt::format("random content for input {} of shape {} is too large", quoted(input.name), shape.text()),
                    "give a smaller --shape");
    // By position: an input keeps its content when a file is given for another one.
    blobs[i] = random_blob(input.dtype, shape, *request.random_seed + i * 7919, input.index_bound);
  }
  if (!missing.empty())
    return Status(Code::missing_input, fmt::format("no data for input {}", join(missing, ", ")), "give --input NAME=FILE or --random SEED");
  return blobs;
}

}  // namespace heddle::tool
