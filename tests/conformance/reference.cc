#include "conformance/reference.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace heddle::conformance {
namespace {

template <class T>
std::vector<Number> read(const Blob& blob) {
  std::vector<T> elements(static_cast<size_t>(blob.shape.element_count()));
  if (!elements.empty()) std::memcpy(elements.data(), blob.data, elements.size() * sizeof(T));
  return std::vector<Number>(elements.begin(), elements.end());
}

std::vector<Number> read_halves(const Blob& blob, float (*widened)(uint16_t)) {
  std::vector<Number> numbers(static_cast<size_t>(blob.shape.element_count()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, blob.data + 2 * i, 2);
    numbers[i] = widened(bits);
  }
  return numbers;
}

// Rounds once, to `digits` bits of mantissa with exponents from `least` on, in the sense of frexp: the mantissa is from 0.5 to 1.
Number to_bits(Number value, int digits, int least, Number largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent, least) - digits;
  const Number units = std::nearbyint(std::ldexp(value, -unit));  // to even
  const Number near = std::ldexp(units, unit);
  return std::fabs(near) > largest ? std::copysign(HUGE_VALL, value) : near;
}

// Returns the low bits of the number without its fraction.
uint64_t low_bits(Number value) {
  if (!std::isfinite(value)) return 0;
  const Number low = std::fmod(std::trunc(value), 0x1p64L);
  return static_cast<uint64_t>(low < 0 ? low + 0x1p64L : low);
}
template <class T>
Number wrapped(Number value) {
  return static_cast<Number>(static_cast<T>(low_bits(value)));
}

}  // namespace

bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

Number rounded(DType dtype, Number value) {
  switch (dtype) {
    case DType::f16:
      return to_bits(value, 11, -13, 65504);
    case DType::bf16:
      return to_bits(value, 8, -125, static_cast<Number>(float_of_bf16(0x7f7f)));
    case DType::f32:
      return static_cast<float>(value);
    case DType::f64:
      return static_cast<double>(value);
    case DType::i8:
      return wrapped<int8_t>(value);
    case DType::i16:
      return wrapped<int16_t>(value);
    case DType::i32:
      return wrapped<int32_t>(value);
    case DType::i64:
      return wrapped<int64_t>(value);
    case DType::u8:
      return wrapped<uint8_t>(value);
    case DType::u16:
      return wrapped<uint16_t>(value);
    case DType::u32:
      return wrapped<uint32_t>(value);
    case DType::u64:
      return wrapped<uint64_t>(value);
    default:
      return value != 0;
  }
}

Numbers zeros(DType dtype, const Shape& shape) {
  return {dtype, shape, std::vector<Number>(static_cast<size_t>(shape.element_count()), 0), {}};
}

Numbers numbers_of(const Blob& blob) {
  Numbers numbers{blob.dtype, blob.shape, {}, {}};
  switch (blob.dtype) {
    case DType::f16:
      numbers.values = read_halves(blob, float_of_f16);
      break;
    case DType::bf16:
      numbers.values = read_halves(blob, float_of_bf16);
      break;
    case DType::f32:
      numbers.values = read<float>(blob);
      break;
    case DType::f64:
      numbers.values = read<double>(blob);
      break;
    case DType::i8:
      numbers.values = read<int8_t>(blob);
      break;
    case DType::i16:
      numbers.values = read<int16_t>(blob);
      break;
    case DType::i32:
      numbers.values = read<int32_t>(blob);
      break;
    case DType::i64:
      numbers.values = read<int64_t>(blob);
      break;
    case DType::u16:
      numbers.values = read<uint16_t>(blob);
      break;
    case DType::u32:
      numbers.values = read<uint32_t>(blob);
      break;
    case DType::u64:
      numbers.values = read<uint64_t>(blob);
      break;
    default:
      numbers.values = read<uint8_t>(blob);
  }
  return numbers;
}

std::shared_ptr<const Blob> blob_of(const Numbers& numbers) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(numbers.dtype, numbers.shape, &data);
  const auto width = static_cast<size_t>(byte_width(numbers.dtype));
  for (size_t i = 0; i < numbers.values.size(); ++i) {
    const Number value = rounded(numbers.dtype, numbers.values[i]);
    const auto real = static_cast<double>(value);
    const auto single = static_cast<float>(value);
    const uint16_t half = numbers.dtype == DType::bf16 ? bf16_of_float(single) : f16_of_float(single);
    const uint64_t integer = is_floating(numbers.dtype) ? 0 : low_bits(value);
    const void* from = !is_floating(numbers.dtype) ? static_cast<const void*>(&integer)
                       : width == 8                ? static_cast<const void*>(&real)
                       : width == 4                ? static_cast<const void*>(&single)
                                                   : static_cast<const void*>(&half);
    std::memcpy(data + i * width, from, width);
  }
  return blob;
}

// ---------------------------------------------------------------- calls

const AttributeValue* Call::find(const std::string& name) const {
  for (const Attribute& a : attributes)
    if (a.name == name) return &a.value;
  return nullptr;
}
int64_t Call::i(const std::string& name, int64_t otherwise) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<int64_t>(*v) : otherwise;
}
double Call::f(const std::string& name, double otherwise) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<double>(*v) : otherwise;
}
std::string Call::s(const std::string& name, const std::string& otherwise) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<std::string>(*v) : otherwise;
}
Ints Call::ints(const std::string& name, Ints otherwise) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<Ints>(*v) : otherwise;
}
std::vector<double> Call::floats(const std::string& name, std::vector<double> otherwise) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<std::vector<double>>(*v) : otherwise;
}
std::vector<std::string> Call::strings(const std::string& name) const {
  const AttributeValue* const v = find(name);
  return v ? std::get<std::vector<std::string>>(*v) : std::vector<std::string>();
}
std::optional<Numbers> Call::tensor(const std::string& name) const {
  const AttributeValue* const v = find(name);
  return v ? std::optional(numbers_of(*std::get<std::shared_ptr<const Blob>>(*v))) : std::nullopt;
}
std::string Call::net(const std::string& name) const {
  return std::get<std::shared_ptr<const Net>>(*find(name))->name;
}
Ints Call::list(size_t i) const {
  return Ints((*this)[i].values.begin(), (*this)[i].values.end());
}

// ---------------------------------------------------------------- positions

Ints position_of(int64_t flat, const Shape& shape) {
  Ints position(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0;) {
    position[static_cast<size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return position;
}

int64_t flat_of(const Ints& position, const Shape& shape) {
  int64_t flat = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) flat = flat * shape[axis] + position[static_cast<size_t>(axis)];
  return flat;
}

int64_t broadcast_flat(const Ints& position, const Shape& shape) {
  int64_t flat = 0;
  const size_t beyond = position.size() - static_cast<size_t>(shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis)
    flat = flat * shape[axis] + (shape[axis] == 1 ? 0 : position[beyond + static_cast<size_t>(axis)]);
  return flat;
}

Shape broadcast_of(const std::vector<Shape>& shapes) {
  int rank = 0;
  for (const Shape& s : shapes) rank = std::max(rank, s.rank());
  Shape all;
  for (int axis = 0; axis < rank; ++axis) {
    int64_t extent = 1;
    for (const Shape& s : shapes)
      if (const int own = axis - (rank - s.rank()); own >= 0 && s[own] != 1) extent = s[own];
    all.push_back(extent);
  }
  return all;
}

int64_t positive_axis(int64_t axis, int rank) {
  return axis < 0 ? axis + rank : axis;
}

Numbers elementwise(const Call& call, DType dtype, const std::function<Number(const std::vector<Number>&)>& f) {
  std::vector<Shape> shapes;
  for (const auto& input : call.inputs)
    if (input) shapes.push_back(input->shape);
  Numbers result = zeros(dtype, broadcast_of(shapes));
  for (int64_t i = 0; i < result.size(); ++i) {
    const Ints position = position_of(i, result.shape);
    std::vector<Number> at;
    for (const auto& input : call.inputs)
      if (input) at.push_back(input->values[static_cast<size_t>(broadcast_flat(position, input->shape))]);
    result.values[static_cast<size_t>(i)] = f(at);
  }
  return result;
}

const std::map<int64_t, DType>& onnx_dtypes() {
  static const auto& all = *new std::map<int64_t, DType>{
      {1, DType::f32},     {2, DType::u8},   {3, DType::i8},   {4, DType::u16},  {5, DType::i16},  {6, DType::i32},  {7, DType::i64},
      {9, DType::boolean}, {10, DType::f16}, {11, DType::f64}, {12, DType::u32}, {13, DType::u64}, {16, DType::bf16}};
  return all;
}

const char* to_string(Kind kind) {
  static constexpr const char* names[kind_count] = {"odd", "empty", "broadcast", "strided", "rank", "large"};
  return names[static_cast<int>(kind)];
}

}  // namespace heddle::conformance
