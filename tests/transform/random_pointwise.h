// Seeded random nets of pointwise operators whose operands broadcast: of all operators that a dtype has an expression for, of comparisons
// with Where, and of Sum, Mean, Max and Min, which have kernels of their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/random.h"
#include "net/net.h"
#include "operators/fusion/fusion_support.h"

namespace heddle::testing_fusion {

inline constexpr DType fusion_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,
                                          DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32, DType::u64};

inline bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

// Returns half a unit in the last place, relative: the error of rounding to the dtype.
inline double rounding_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
}

inline bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || is_narrow(dtype);
}

// Returns the float at `data`.
inline double number_at(DType dtype, const void* data) {
  if (dtype == DType::f64) return *static_cast<const double*>(data);
  if (dtype == DType::f32) return static_cast<double>(*static_cast<const float*>(data));
  const uint16_t bits = *static_cast<const uint16_t*>(data);
  return static_cast<double>(dtype == DType::f16 ? float_of_f16(bits) : float_of_bf16(bits));
}

// Returns `numbers` in the dtype; integers are rounded toward zero and wrap.
inline std::shared_ptr<const Blob> blob_of(DType dtype, const Shape& shape, const std::vector<float>& numbers) {
  std::byte* data = nullptr;
  const auto blob = Blob::allocate(dtype, shape, &data);
  const auto width = static_cast<size_t>(byte_width(dtype));
  for (const float f : numbers) {
    const double d = static_cast<double>(f);
    const uint16_t half = dtype == DType::f16 ? f16_of_float(f) : bf16_of_float(f);
    const int64_t whole = std::abs(d) < 0x1p62 ? static_cast<int64_t>(d) : 0x7654321012345678;  // NaN too
    const void* from = &whole;
    if (dtype == DType::f32) from = &f;
    if (dtype == DType::f64) from = &d;
    if (is_narrow(dtype)) from = &half;
    std::memcpy(data, from, width);
    data += width;
  }
  return blob;
}

class RandomPointwise {
 public:
  RandomPointwise(uint64_t seed, DType dtype, const std::vector<testing::PointwiseOperator>& operators)
      : state_(seed), dtype_(dtype), operators_(operators), net_("random" + std::to_string(seed)) {
    const size_t inputs = 1 + below(16), steps = below(10) == 0 ? 100 + below(100) : 1 + below(40);
    for (size_t i = 0; i < inputs; ++i) add_leaf("x" + std::to_string(i), i > 0 && below(5) == 0);
    for (size_t i = 0; i < steps; ++i) add_step("n" + std::to_string(i));
    if (below(2) == 0) {
      while (unread_.size() > 1) {
        const size_t a = take_unread(), b = take_unread();
        add("Add", "end" + std::to_string(values_.size()), {a, b});
      }
    }
    for (const size_t value : unread_) give(value);
    if (const size_t value = below(values_.size()); below(4) == 0 && std::find(unread_.begin(), unread_.end(), value) == unread_.end())
      give(value);
  }

  Net net() { return net_.finish(); }
  const std::vector<std::shared_ptr<const Blob>>& inputs() const { return inputs_; }
  // Returns for each output of f16 and bf16 how many roundings its fused and unfused results may differ by.
  const std::vector<double>& roundings() const { return output_roundings_; }

 private:
  struct Made {
    ValueId id;
    double roundings;
  };

  size_t below(size_t count) { return static_cast<size_t>(next_random(state_) % count); }

  // Operands of narrow floats are at least 1, so that operators that add, multiply or compare them keep relative errors small.
  float random_number() {
    const double unit = static_cast<double>(next_random(state_) >> 11) * 0x1p-53;
    if (is_narrow(dtype_)) return static_cast<float>(1 + unit / 4);
    const auto& special = testing::special_values();
    if (below(16) == 0) return special[below(special.size())];
    return static_cast<float>(is_float(dtype_) ? 4 * unit - 2 : std::floor(20 * unit - 5));
  }
  std::shared_ptr<const Blob> random_blob(const Shape& shape) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < shape.element_count(); ++i) numbers.push_back(random_number());
    return blob_of(dtype_, shape, numbers);
  }

  void add_leaf(const std::string& name, bool constant) {
    const Shape shapes[] = {Shape{3, 5}, Shape{3, 5}, Shape{3, 5}, Shape{5}, Shape{3, 1}, Shape{1}, Shape{}, Shape{1, 1, 1}};
    add_leaf(name, constant, shapes[constant ? 3 + below(5) : below(8)]);
  }
  void add_leaf(const std::string& name, bool constant, const Shape& shape) {
    const auto content = random_blob(shape);
    if (!constant) inputs_.push_back(content);
    remember(constant ? net_.constant(name, content) : net_.input(name, dtype_, shape), 0);
  }
  void remember(ValueId id, double roundings) {
    unread_.push_back(values_.size());
    values_.push_back({id, roundings});
  }
  size_t take_unread() {
    const size_t place = below(unread_.size()), taken = unread_[place];
    unread_.erase(unread_.begin() + static_cast<std::ptrdiff_t>(place));
    return taken;
  }
  // Chooses values without a reader more often than others: chains consist of values with one reader.
  size_t operand() {
    if (!unread_.empty() && below(4) != 0) return take_unread();
    const size_t any = below(values_.size());
    unread_.erase(std::remove(unread_.begin(), unread_.end(), any), unread_.end());
    return any;
  }
  void give(size_t value) {
    net_.output(values_[value].id);
    output_roundings_.push_back(values_[value].roundings);
  }

  void add(const std::string& type, const std::string& name, const std::vector<size_t>& operands, std::vector<Attribute> attributes = {},
           const std::string& domain = {}) {
    std::vector<ValueId> ids;
    double all = 0, largest = 0;
    for (const size_t i : operands) {
      ids.push_back(values_[i].id);
      all += values_[i].roundings;
      largest = std::max(largest, values_[i].roundings);
    }
    remember(net_.add1(type, name, std::move(ids), std::move(attributes), domain), (type == "Mul" ? all : largest) + 1);
  }
  std::vector<size_t> some(size_t count) {
    std::vector<size_t> operands;
    for (size_t i = 0; i < count; ++i) operands.push_back(operand());
    return operands;
  }
  void add_step(const std::string& name) {
    if (below(12) == 0) {
      constexpr const char* folds[] = {"Max", "Min", "Sum", "Mean"};
      return add(folds[below(is_float(dtype_) ? 4 : 2)], name, some(1 + below(20)));
    }
    if (is_narrow(dtype_)) {
      constexpr const char* two[] = {"Add", "Mul", "Mul", "Add", "Max", "Min"};
      constexpr const char* one[] = {"Relu", "Abs", "Sqrt"};
      return below(4) == 0 ? add(one[below(3)], name, some(1)) : add(two[below(6)], name, some(2));
    }
    if (below(12) == 0) {
      const std::vector<size_t> operands = some(4);
      const auto id = [&](size_t i) { return values_[operands[i]].id; };
      const ValueId condition = net_.add1(below(2) == 0 ? "Less" : "Equal", name + "c", {id(0), id(1)});
      return remember(net_.add1("Where", name, {condition, id(2), id(3)}), 0);
    }
    if (below(3) == 0) {
      constexpr const char* usual[] = {"Add", "Mul", "Sub"};
      return add(usual[below(3)], name, some(2));
    }
    const testing::PointwiseOperator& op = operators_[below(operators_.size())];
    std::vector<size_t> operands = some(op.inputs);
    if (op.schema->name == "Clip") {  // whose bounds are scalars
      operands.resize(1);
      for (const char* bound : {"low", "high"}) {
        operands.push_back(values_.size());
        add_leaf(name + bound, below(2) == 0, Shape{});
        unread_.pop_back();
      }
    }
    add(op.schema->name, name, operands, op.attributes, op.schema->domain);
  }

  uint64_t state_;
  const DType dtype_;
  const std::vector<testing::PointwiseOperator>& operators_;
  NetBuilder net_;
  std::vector<Made> values_;
  std::vector<size_t> unread_;  // indices of values_
  std::vector<std::shared_ptr<const Blob>> inputs_;
  std::vector<double> output_roundings_;
};

}  // namespace heddle::testing_fusion
