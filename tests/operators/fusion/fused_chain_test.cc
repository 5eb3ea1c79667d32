// Chains of pointwise operators give the same bits fused into one program and one by one; those of f16 and bf16 the bits of one by one in
// f32, rounded once at the end. CTest runs this file once per instruction set (CMakeLists.txt beside it).
#include <cstring>
#include <tuple>

#include "operators/fusion/fusion_support.h"
#include "small_nets.h"

namespace heddle::testing {
namespace {

using namespace testing_nets;

// How the second operand of a binary operator is given.
enum class Operand { value, first, scalar };

class Chains {
 public:
  explicit Chains(DType dtype) : dtype_(dtype), operators_(pointwise_operators(*Internals::of(runtime_).registry.snapshot(), dtype)) {
    begin();
  }
  const std::vector<PointwiseOperator>& operators() const { return operators_; }

  // Adds x through `chain`, indices of operators(); binary operators read `other` as well, ternary ones two more values.
  void add(const std::vector<size_t>& chain, Operand operand, float scalar = 0) {
    std::string shown;
    for (const size_t index : chain) shown += " " + operators_[index].schema->name;
    net_.output(put_into(net_, net_ends_, chain, operand, scalar));
    if (is_narrow()) {
      const ValueId wide = put_into(wide_, wide_ends_, chain, operand, scalar);
      wide_.output(wide_.add1("Cast", std::to_string(names_.size()) + "_narrow", {wide}, {{"to", static_cast<int64_t>(onnx_dtype())}}));
    }
    names_.push_back(shown + (operand == Operand::first    ? ", operand first"
                              : operand == Operand::scalar ? ", with " + hexadecimal(scalar)
                                                           : ""));
    if (names_.size() == 400) run();
  }
  void run() {
    if (names_.empty()) return;
    const Net net = net_.finish();
    auto fused = results(net, true), apart = results(is_narrow() ? wide_.finish() : net, false);
    ASSERT_EQ(fused.size(), names_.size());
    ASSERT_EQ(apart.size(), names_.size());
    for (size_t i = 0; i < fused.size() && differences_ < 30; ++i) {
      const size_t bytes = static_cast<size_t>(fused[i].byte_size());
      ASSERT_EQ(fused[i].byte_size(), apart[i].byte_size());
      if (!nan_has_bits) canonical_nans(fused[i]), canonical_nans(apart[i]);
      if (std::memcmp(fused[i].data(), apart[i].data(), bytes) == 0) continue;
      ++differences_;
      std::string where;
      if (dtype_ == DType::f32)
        where = first_difference(static_cast<const float*>(fused[i].data()), static_cast<const float*>(apart[i].data()), bytes / 4,
                                 Nans::by_bits);
      ADD_FAILURE() << to_string(dtype_) << names_[i] << ", fused and apart: " << where;
    }
    names_.clear();
    begin();
  }

 private:
  // The first input of the chains and the other values that they read.
  struct Ends {
    ValueId x, y, high;
  };
  // Which of two NaNs their sum is depends on the order of the operands, which a sanitizer's instructions change.
#if defined(__SANITIZE_ADDRESS__)
  static constexpr bool nan_has_bits = false;
#else
  static constexpr bool nan_has_bits = true;
#endif
  static void canonical_nans(heddle::Tensor& tensor) {
    const auto replace = [&](auto zero, auto magnitude, auto infinity) {
      using Word = decltype(zero);
      auto* const words = static_cast<Word*>(tensor.data());
      for (int64_t i = 0; i < tensor.shape().element_count(); ++i)
        if ((words[i] & magnitude) > infinity) words[i] = static_cast<Word>(magnitude);
    };
    if (tensor.dtype() == DType::f32) replace(uint32_t{}, 0x7fffffffU, 0x7f800000U);
    if (tensor.dtype() == DType::f16) replace(uint16_t{}, 0x7fff, 0x7c00);
    if (tensor.dtype() == DType::bf16) replace(uint16_t{}, 0x7fff, 0x7f80);
  }
  bool is_narrow() const {
    return dtype_ == DType::f16 || dtype_ == DType::bf16;
  }
  void begin() {
    const auto count = static_cast<int64_t>(special_values().size());
    const auto inputs = [&](NetBuilder& net) {
      net = NetBuilder("chains");
      const ValueId x = net.input("x", dtype_, Shape{count, count + 1});
      return std::pair(x, net.input("y", dtype_, Shape{count, count + 1}));
    };
    std::tie(net_ends_.x, net_ends_.y) = inputs(net_);
    net_ends_.high = constant(net_, "high", 6);
    const auto [x, y] = inputs(wide_);
    wide_ends_.x = wide_.add1("Cast", "wide_x", {x}, {{"to", int64_t{1}}});
    wide_ends_.y = wide_.add1("Cast", "wide_y", {y}, {{"to", int64_t{1}}});
    wide_ends_.high = constant(wide_, "high", 6);
  }
  ValueId put_into(NetBuilder& net, const Ends& ends, const std::vector<size_t>& chain, Operand operand, float scalar) {
    ValueId value = ends.x;
    size_t place = 0;
    for (const size_t index : chain) {
      const PointwiseOperator& op = operators_[index];
      const std::string name = std::to_string(names_.size()) + "_" + std::to_string(place++);
      std::vector<ValueId> inputs = {value};
      while (inputs.size() < op.inputs) inputs.push_back(inputs.size() == 2 ? ends.high : other(net, ends, operand, op, scalar));
      if (operand == Operand::first && inputs.size() == 2) std::swap(inputs[0], inputs[1]);
      value = net.add1(op.schema->name, name, std::move(inputs), op.attributes, op.schema->domain);
    }
    return value;
  }
  ValueId constant(NetBuilder& net, const std::string& name, float value) {
    const Tensor wide = tensor<float>(Shape{}, {value});
    return net.constant(name, &net == &wide_ ? wide : cast(wide));
  }
  Tensor cast(const Tensor& values) const {
    if (dtype_ == DType::f32) return values;
    return run1("Cast", {values}, {{"to", static_cast<int64_t>(onnx_dtype())}});
  }
  int onnx_dtype() const {
    switch (dtype_) {
      case DType::f64:
        return 11;
      case DType::f16:
        return 10;
      case DType::bf16:
        return 16;
      case DType::i64:
        return 7;
      case DType::i32:
        return 6;
      case DType::u8:
        return 2;
      default:
        return 1;
    }
  }
  ValueId other(NetBuilder& net, const Ends& ends, Operand operand, const PointwiseOperator& op, float scalar) {
    if (operand == Operand::scalar || op.schema->name == "Clip") return constant(net, "scalar" + std::to_string(constants_++), scalar);
    return ends.y;
  }
  std::vector<heddle::Tensor> results(const Net& net, bool fuse) {
    Session session = open(runtime_, net);
    Internals::of(session).pipeline.transform.fuse_epilogues = fuse;
    Internals::of(session).pipeline.transform.fuse_pointwise = fuse;
    const auto& special = special_values();
    const size_t rows = special.size(), columns = rows + 1;
    std::vector<float> x(rows * columns), y(rows * columns);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = special[i / columns];
      y[i] = special[i % columns % rows];
    }
    const Shape shape{static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    const Tensor a = cast(tensor<float>(shape, x)), b = cast(tensor<float>(shape, y));
    auto out = session.run({{dtype_, shape, const_cast<std::byte*>(a->data)}, {dtype_, shape, const_cast<std::byte*>(b->data)}});
    EXPECT_TRUE(out.ok()) << out.status().text();
    return out.ok() ? std::move(*out) : std::vector<heddle::Tensor>();
  }

  Runtime runtime_ = runtime();
  DType dtype_;
  std::vector<PointwiseOperator> operators_;
  NetBuilder net_{"chains"}, wide_{"chains"};
  Ends net_ends_, wide_ends_;
  std::vector<std::string> names_;
  size_t constants_ = 0, differences_ = 0;
};

TEST(FusedChain, OfAnyTwoOperatorsGivesTheSameBits) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    Chains chains(dtype);
    const size_t count = chains.operators().size();
    EXPECT_GT(count, dtype == DType::f32 ? 45u : 8u) << to_string(dtype);
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < count; ++k) {
        chains.add({i, k}, Operand::value);
        if (dtype == DType::f32 && (chains.operators()[i].inputs > 1 || chains.operators()[k].inputs > 1))
          chains.add({i, k}, Operand::first);
      }
    chains.run();
  }
}

TEST(FusedChain, OfThreeOperatorsGivesTheSameBits) {
  Chains chains(DType::f32);
  const size_t count = chains.operators().size();
  // A subset of all triples, in which each pair is at both places with several third operators.
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < count; ++k)
      for (size_t l = (i * 5 + k * 3) % 31; l < count; l += 31) chains.add({i, k, l}, (i + k + l) % 2 ? Operand::value : Operand::first);
  chains.run();
}

TEST(FusedChain, WithAConstantGivesTheSameBits) {
  Chains chains(DType::f32);
  const size_t count = chains.operators().size();
  size_t negation = count;
  for (size_t i = 0; i < count; ++i)
    if (chains.operators()[i].schema->name == "Neg") negation = i;
  ASSERT_LT(negation, count);
  for (const float scalar : special_values())
    for (size_t i = 0; i < count; ++i) {
      if (chains.operators()[i].inputs < 2) continue;
      chains.add({i, negation}, Operand::scalar, scalar);
      chains.add({negation, i}, Operand::scalar, scalar);
      chains.add({negation, i, i}, Operand::first, scalar);
    }
  chains.run();
}

// Exporters write gelu with these: the compiler of programs recognises them, and gives the same bits.
TEST(FusedChain, OfErrorFunctionsAsInGeluGivesTheSameBits) {
  const Runtime r = runtime();
  for (int association = 0; association < 4; ++association)
    for (const bool divides : {false, true})
      for (const float root : {1.4142135f, 1.414214f, 1.41f}) {
        const auto net = [&] {
          NetBuilder b("gelu");
          const ValueId x = b.input("x", DType::f32, Shape{static_cast<int64_t>(special_values().size())});
          const ValueId half = b.constant_float("half", 0.5f), one = b.constant_float("one", 1);
          ValueId e = b.add1(divides ? "Div" : "Mul", "scaled", {x, b.constant_float("root", divides ? root : 1 / root)});
          e = b.add1("Add", "sum", {b.add1("Erf", "erf", {e}), one});
          if (association == 0) e = b.add1("Mul", "y", {b.add1("Mul", "h", {half, x}), e});
          if (association == 1) e = b.add1("Mul", "y", {b.add1("Mul", "h", {x, e}), half});
          if (association == 2) e = b.add1("Mul", "y", {x, b.add1("Mul", "h", {half, e})});
          if (association == 3) e = b.add1("Mul", "y", {b.add1("Mul", "h", {x, half}), b.add1("Neg", "n", {e})});
          b.output(e);
          return b.finish();
        };
        std::vector<float> results[2];
        for (const bool fuse : {false, true}) {
          Session session = open(r, net());
          Internals::of(session).pipeline.transform.fuse_pointwise = fuse;
          std::vector<float> x = special_values();
          auto out = session.run({{DType::f32, Shape{static_cast<int64_t>(x.size())}, x.data()}});
          ASSERT_TRUE(out.ok()) << out.status().text();
          const auto* y = static_cast<const float*>((*out)[0].data());
          results[fuse].assign(y, y + x.size());
        }
        EXPECT_EQ(first_difference(results[1].data(), results[0].data(), results[0].size(), Nans::by_bits), "")
            << association << " " << divides << " " << root;
      }
}

// An element's value does not depend on the others that are computed with it: pow, sin and the like compute a few of them in another way.
TEST(FusedChain, AnElementDoesNotDependOnItsNeighbours) {
  for (const std::string program : {"pow(x0, x1)", "sin(x0)", "cos(x0)", "tan(x0)", "exp(x0)", "erf(x0)", "log1p(x0)", "expm1(x0)"}) {
    const auto& special = special_values();
    std::vector<float> x, y;
    for (size_t i = 0; i < 640; ++i) {
      x.push_back(i % 2 ? special[i % special.size()] : 0.013f + 0.37f * static_cast<float>(i));
      y.push_back(i % 3 ? 0.7f + 0.01f * static_cast<float>(i) : special[i / 3 % special.size()]);
    }
    const auto of = [&](size_t first, size_t count) {
      const Shape shape{static_cast<int64_t>(count)};
      const auto part = [&](const std::vector<float>& v) {
        return tensor<float>(shape, std::vector<float>(v.begin() + static_cast<long>(first), v.begin() + static_cast<long>(first + count)));
      };
      std::vector<Tensor> inputs = {part(x)};
      if (program.find("x1") != std::string::npos) inputs.push_back(part(y));
      return values<float>(*evaluate(program, inputs));
    };
    const std::vector<float> whole = of(0, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const std::vector<float> alone = of(i, 1);
      EXPECT_EQ(first_difference(&whole[i], alone.data(), 1, Nans::any), "")
          << program << " of " << hexadecimal(x[i]) << ", " << hexadecimal(y[i]);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
