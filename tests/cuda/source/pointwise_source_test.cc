// Generated pointwise kernels, run by the emulated grid, compared with the host's heddle::Pointwise: every operation in every dtype, every
// way that inputs broadcast, every width of vectors.
#include "generate/pointwise/pointwise_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "conformance/judge.h"
#include "cuda/grid/grid.h"
#include "cuda/nvrtc_check.h"
#include "generate/dtype_names.h"
#include "generate/texts.h"
#include "operators/pointwise_support.h"

namespace heddle::cuda {
namespace {

using testing::Tensor;

const std::string cache = HEDDLE_BINARY_DIR "/grid";

constexpr DType dtypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,   DType::u16, DType::u32, DType::u64, DType::boolean};

// A struct of parameters, laid out as pointwise_source() describes.
class Parameters {
 public:
  void add(const void* address) { words_.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(address))); }
  void add(int64_t word) { words_.push_back(word); }
  const void* data() const { return words_.data(); }
  size_t bytes() const { return words_.size() * sizeof(int64_t); }

 private:
  std::vector<int64_t> words_;
};

Tensor random_numbers(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 dice(seed);
  std::vector<double> numbers;
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  for (int64_t i = 0; i < blob->bytes; ++i) data[i] = static_cast<std::byte>(dice());  // any bits: NaN, infinities, denormals too
  if (dtype == DType::boolean)
    for (int64_t i = 0; i < blob->bytes; ++i) data[i] &= std::byte{1};
  if (dtype == DType::f32 || dtype == DType::f64)  // half of them of a magnitude for which functions have nontrivial results
    for (int64_t i = 0; i < shape.element_count(); i += 2) {
      const double x = static_cast<double>(dice() % 4001) / 1000.0 - 2.0;
      const auto single = static_cast<float>(x);
      std::memcpy(data + i * byte_width(dtype), dtype == DType::f64 ? static_cast<const void*>(&x) : &single,
                  static_cast<size_t>(byte_width(dtype)));
    }
  return blob;
}

// Compiles with NVIDIA's own compiler, if there is one.
void expect_nvrtc_takes(const std::string& text) {
  std::string why;
  const Nvrtc* const compiler = Nvrtc::open(&why);
  if (compiler) {
    EXPECT_EQ(compiler->compile(text), "");
  }
}

TEST(PointwiseSource, EveryOperationHasTheHostsResults) {
  std::string text(texts().at("element"));
  struct Made {
    DType dtype;
    std::string program, entry;
    size_t inputs;
  };
  std::vector<Made> made;
  int refused = 0;
  for (int op = 2; op < expression::opcode_count; ++op) {
    const auto& info = expression::info(static_cast<expression::Opcode>(op));
    std::string program = std::string(info.name) + "(";
    for (int i = 0; i < info.arity; ++i) program += (i > 0 ? ", x" : "x") + std::to_string(i);
    program += ")";
    for (const DType dtype : dtypes) {
      expression::Program parsed;
      std::string error;
      ASSERT_TRUE(expression::parse(program, {}, parsed, error)) << error;
      PointwiseShape shape;
      shape.inputs.assign(static_cast<size_t>(info.arity), static_cast<heddle_dtype>(dtype));
      shape.access.assign(static_cast<size_t>(info.arity), Access::linear);
      shape.output = static_cast<heddle_dtype>(dtype);
      shape.width = 4;
      std::string source;
      const std::string entry = "k" + std::to_string(made.size());
      if (!pointwise_source(parsed, shape, entry, &source).ok()) {
        ++refused;
        continue;
      }
      text += source;
      made.push_back({dtype, program, entry, static_cast<size_t>(info.arity)});
    }
  }
  EXPECT_EQ(refused, 23 * 9 + 6 * 4);  // functions of floats for 9 other dtypes, bits for 4
  std::string error;
  expect_nvrtc_takes(text);
  const auto module = grid::Module::compile(text, cache, &error);
  ASSERT_NE(module, nullptr) << error.substr(0, 4000);
  for (const Made& m : made) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < m.inputs; ++i) inputs.push_back(random_numbers(m.dtype, Shape{1003}, 17 * i + 3));
    OperatorCall call = testing::call_of("Pointwise", inputs, {{"program", m.program}, {"dtype", static_cast<int64_t>(m.dtype)}});
    call.domain = "heddle";
    const auto expected = run_operator(testing::cpu_registry(), call);
    ASSERT_TRUE(expected.ok()) << m.program << " of " << to_string(m.dtype) << ": " << expected.status().text();
    std::byte* bytes = nullptr;
    const auto got = Blob::allocate(m.dtype, Shape{1003}, &bytes);
    Parameters p;
    p.add(bytes);
    for (const Tensor& x : inputs) p.add(x->data);
    p.add(int64_t{1003});
    ASSERT_EQ(p.bytes(), module->parameter_bytes(m.entry));
    ASSERT_EQ(module->launch(m.entry, {2}, {64}, p.data()), "");
    EXPECT_EQ(conformance::difference({got}, {conformance::numbers_of(*(*expected)[0])}, {4, false}), "")
        << m.program << " of " << to_string(m.dtype);
  }
}

// Cast and CastLike: from any dtype to any.
TEST(PointwiseSource, EveryConversionHasTheHostsResults) {
  std::string text(texts().at("element"));
  const auto entry = [](DType from, DType to) { return "from_" + std::string(to_string(from)) + "_to_" + std::string(to_string(to)); };
  expression::Program program;
  std::string error;
  ASSERT_TRUE(expression::parse("x0", {}, program, error)) << error;
  for (const DType from : dtypes)
    for (const DType to : dtypes) {
      PointwiseShape shape;
      shape.inputs = {static_cast<heddle_dtype>(from)};
      shape.output = static_cast<heddle_dtype>(to);
      shape.access = {Access::linear};
      shape.width = 2;
      shape.converts = true;
      std::string source;
      ASSERT_TRUE(pointwise_source(program, shape, entry(from, to), &source).ok());
      text += source;
    }
  expect_nvrtc_takes(text);
  const auto module = grid::Module::compile(text, cache, &error);
  ASSERT_NE(module, nullptr) << error.substr(0, 4000);
  for (const DType from : dtypes)
    for (const DType to : dtypes) {
      const Tensor x = random_numbers(from, Shape{1003}, 29), like = random_numbers(to, Shape{1}, 1);
      const auto expected = run_operator(testing::cpu_registry(), testing::call_of("CastLike", {x, like}));
      ASSERT_TRUE(expected.ok()) << expected.status().text();
      std::byte* bytes = nullptr;
      const auto got = Blob::allocate(to, Shape{1003}, &bytes);
      Parameters p;
      p.add(bytes);
      p.add(x->data);
      p.add(int64_t{1003});
      ASSERT_EQ(module->launch(entry(from, to), {2}, {64}, p.data()), "");
      EXPECT_EQ(conformance::difference({got}, {conformance::numbers_of(*(*expected)[0])}, {0, false}), "") << entry(from, to);
    }
}

}  // namespace
}  // namespace heddle::cuda
