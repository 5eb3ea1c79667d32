// Every net that compiles and runs without fusion does so with it, on the host and on a simulated device: sums of products, random nets of
// pointwise operators of all dtypes, random nets that are trained. Results have the same bits; those of f16 and bf16, which are rounded
// less often when they are fused, agree within the roundings.
//
// HEDDLE_LONG_TESTS=1 takes 10,000 pointwise nets and 2,000 that are trained.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "derive/derived_run.h"
#include "transform/random_pointwise.h"

namespace heddle {
namespace {

using namespace testing_fusion;
using Blobs = std::vector<std::shared_ptr<const Blob>>;

const bool long_tests = std::getenv("HEDDLE_LONG_TESTS") != nullptr;

Runtime fusion_runtime() {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = 1;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// How a net is compiled.
struct How {
  bool fuses = true;
  const char* device = "cpu:0";
  bool epilogues = true;  // epilogues are fused too
};

Result<Session> opened(const Runtime& runtime, const Net& net, const How& how) {
  SessionOptions options;
  options.device = how.device;
  options.copies = Copies::automatic;
  HEDDLE_TRY(Session session, runtime.open(Net(net), options));
  TransformOptions& transform = Internals::of(session).pipeline.transform;
  transform.fuse_pointwise = how.fuses;
  transform.fuse_epilogues = how.fuses && how.epilogues;
  return session;
}

Result<std::vector<Tensor>> results(const Runtime& runtime, const Net& net, const Blobs& inputs, const How& how) {
  HEDDLE_TRY(Session session, opened(runtime, net, how));
  std::vector<TensorView> views;
  for (const auto& blob : inputs) views.push_back(testing_nets::view(blob->data, blob->dtype, blob->shape));
  return session.run(views);
}

// Returns the difference between two results of one dtype; empty: none. Which NaN results from two is left open, as for operands that are
// swapped. `roundings` is the number of roundings that narrow floats may differ by.
std::string difference(const Tensor& fused, const Tensor& apart, double roundings) {
  const DType dtype = fused.dtype();
  if (dtype != apart.dtype() || fused.shape() != apart.shape()) return "another type";
  const auto width = static_cast<size_t>(byte_width(dtype));
  for (int64_t i = 0; i < fused.shape().element_count(); ++i) {
    const auto* const f = static_cast<const char*>(fused.data()) + static_cast<size_t>(i) * width;
    const auto* const g = static_cast<const char*>(apart.data()) + static_cast<size_t>(i) * width;
    if (std::memcmp(f, g, width) == 0) continue;
    if (!is_float(dtype)) return "another integer at " + std::to_string(i);
    const double a = number_at(dtype, f), b = number_at(dtype, g);
    if (std::isnan(a) && std::isnan(b)) continue;
    // A value that overflows when it is rounded on the way may not overflow without that rounding.
    if (is_narrow(dtype) && (!std::isfinite(a) || !std::isfinite(b))) continue;
    const double bound = is_narrow(dtype) ? std::expm1(2 * roundings * rounding_of(dtype)) : 0;
    if (std::isnan(a) || std::isnan(b) || bound == 0 || std::abs(a - b) > bound * std::min(std::abs(a), std::abs(b)))
      return "element " + std::to_string(i) + ": " + std::to_string(a) + ", " + std::to_string(b);
  }
  return {};
}

// Runs nets in both ways and counts.
class Comparison {
 public:
  void compare(const Net& net, const Blobs& inputs, const std::vector<double>& roundings, const How& how) {
    const std::string where = std::string(how.device) + " " + net.name;
    auto apart = results(runtime_, net, inputs, {false, how.device});
    ++nets_;
    if (!apart.ok()) {
      ++refused_;
      ADD_FAILURE() << where << ": " << apart.status().text();
      return;
    }
    auto fused = results(runtime_, net, inputs, how);
    ASSERT_TRUE(fused.ok()) << where << ": " << fused.status().text();
    ASSERT_EQ(fused->size(), apart->size());
    for (size_t i = 0; i < fused->size(); ++i) {
      const std::string found = difference((*fused)[i], (*apart)[i], roundings.empty() ? 0 : roundings[i]);
      EXPECT_EQ(found, "") << where << ", output " << i << " " << to_string((*fused)[i].dtype());
      same_ += found.empty();
      ++outputs_;
    }
  }
  void print(const char* what) const {
    std::printf("%d %s: %d refused either way, %d of %d outputs the same fused and apart\n", nets_, what, refused_, same_, outputs_);
  }
  const Runtime& runtime() const { return runtime_; }
  int refused() const { return refused_; }

 private:
  const Runtime runtime_ = fusion_runtime();
  int nets_ = 0, refused_ = 0, outputs_ = 0, same_ = 0;
};

// All ways to write `rest` as a sum of 2 to 4 terms that are not larger than `largest`.
void add_partitions(int rest, int largest, std::vector<int>& terms, std::vector<std::vector<int>>& all) {
  if (rest == 0 && terms.size() >= 2) all.push_back(terms);
  if (rest == 0 || terms.size() == 4) return;
  for (int term = std::min(rest, largest); term > 0; --term) {
    terms.push_back(term);
    add_partitions(rest - term, term, terms, all);
    terms.pop_back();
  }
}

// a*b*c + d*e*f + ...: each sum is a net of its own partition into terms, of inputs whose products are exact.
TEST(RandomFusion, SumsOfProductsRunWithAnyPartitionOfTheirFactors) {
  Comparison comparison;
  for (const DType dtype : fusion_dtypes)
    for (int factors = 4; factors <= 16; ++factors) {
      NetBuilder b(std::string(to_string(dtype)) + " " + std::to_string(factors));
      std::vector<ValueId> inputs;
      Blobs contents;
      for (int i = 0; i < factors; ++i) {
        contents.push_back(blob_of(dtype, Shape{3}, {i % 5 == 0 ? 2.0f : 1.0f, 1, i % 3 == 0 ? 0.0f : 1.0f}));
        inputs.push_back(b.input("x" + std::to_string(i), dtype, Shape{3}));
      }
      std::vector<std::vector<int>> partitions;
      std::vector<int> terms;
      add_partitions(factors, factors, terms, partitions);
      for (size_t p = 0; p < partitions.size(); ++p) {
        const std::string name = std::to_string(p) + "_";
        ValueId sum;
        size_t next = 0;
        for (const int count : partitions[p]) {
          ValueId product = inputs[next++];
          for (int i = 1; i < count; ++i, ++next) product = b.add1("Mul", name + "p" + std::to_string(next), {product, inputs[next]});
          sum = sum.valid() ? b.add1("Add", name + "s" + std::to_string(next), {sum, product}) : product;
        }
        b.output(sum);
      }
      const Net net = b.finish();
      comparison.compare(net, contents, {}, {});
      if (dtype == DType::f32) comparison.compare(net, contents, {}, {true, "sim:0"});
    }
  EXPECT_EQ(comparison.refused(), 0);
}

TEST(RandomFusion, PointwiseNetsRunAsTheyDoWithoutFusion) {
  Comparison comparison;
  const auto registry = testing_stages::registry();
  std::map<DType, std::vector<testing::PointwiseOperator>> operators;
  for (const DType dtype : fusion_dtypes) operators[dtype] = testing::pointwise_operators(*registry, dtype);
  for (uint64_t seed = 1; seed <= (long_tests ? 10000u : 300u); ++seed) {
    const DType dtype = seed % 2 == 0 ? DType::f32 : fusion_dtypes[seed / 2 % std::size(fusion_dtypes)];
    RandomPointwise random(seed, dtype, operators[dtype]);
    comparison.compare(random.net(), random.inputs(), random.roundings(), {true, seed % 5 == 0 ? "sim:0" : "cpu:0"});
  }
  comparison.print("random pointwise nets");
  EXPECT_EQ(comparison.refused(), 0);
}

// Layers of [4, 6] between products with weights, of values that are read several times: their gradients are sums of products.
Net random_layers(uint64_t seed, DType dtype) {
  uint64_t state = seed;
  const auto below = [&](size_t count) { return static_cast<size_t>(next_random(state) % count); };
  const auto content = [&](const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.element_count()));
    for (float& v : values) v = static_cast<float>(below(2001)) / 1000 - 1;
    return blob_of(dtype, shape, values);
  };
  NetBuilder b("layers" + std::to_string(seed));
  std::vector<ValueId> values = {b.input("x", dtype, Shape{4, 6})};
  size_t variables = 0;
  const auto weights = [&](const Shape& shape) { return b.variable("w" + std::to_string(variables++), content(shape), true); };
  values.push_back(b.add1("Add", "first", {values[0], weights(Shape{6})}));
  const auto any = [&] { return values[values.size() - 1 - below(std::min<size_t>(values.size(), below(2) == 0 ? 2 : 6))]; };
  const size_t steps = 3 + below(12);
  for (size_t i = 0; i < steps; ++i) {
    const std::string name = "n" + std::to_string(i);
    constexpr const char* one[] = {"Tanh", "Sigmoid", "Relu", "Softplus", "Neg", "Sin", "Softmax", "LayerNormalization"};
    constexpr const char* two[] = {"Add", "Mul", "Sub", "Mul"};
    switch (below(6)) {
      case 0:
        values.push_back(b.add1("MatMul", name, {any(), weights(Shape{6, 6})}));
        break;
      case 1: {
        const size_t kind = below(8);
        std::vector<ValueId> inputs = {any()};
        if (kind == 7) inputs.push_back(weights(Shape{6}));
        values.push_back(b.add1(one[kind], name, inputs));
        break;
      }
      case 2: {  // several operators that read one value
        const ValueId of = any();
        std::vector<ValueId> read;
        for (size_t k = 0, count = 2 + below(3); k < count; ++k)
          read.push_back(b.add1("Softmax", name + "s" + std::to_string(k), {b.add1("Mul", name + "m" + std::to_string(k), {of, any()})}));
        values.push_back(b.add1("Sum", name, read));
        break;
      }
      case 3:
        values.push_back(b.add1("Mul", name, {any(), weights(Shape{6})}));
        break;
      default:
        values.push_back(b.add1(two[below(4)], name, {any(), any()}));
        break;
    }
  }
  b.output(b.add1("ReduceMean", "loss", {b.add1("Mul", "product", {values.back(), values[1]})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

// Returns the bytes of the losses and the variables after two steps.
Result<std::string> learned(const Runtime& runtime, const Net& net, const std::shared_ptr<const Blob>& x, const How& how) {
  HEDDLE_TRY(Session session, opened(runtime, net, how));
  std::string bytes;
  const auto take = [&](const Tensor& tensor) {
    bytes.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.byte_size()));
  };
  for (int step = 0; step < 2; ++step) {
    HEDDLE_TRY(const std::vector<Tensor> losses, session.run({testing_nets::view(x->data, x->dtype, x->shape)}));
    for (const Tensor& loss : losses) take(loss);
  }
  for (const std::string& name : session.variables()) {
    HEDDLE_TRY(const Tensor variable, session.read_variable(name));
    take(variable);
  }
  return bytes;
}

TEST(RandomFusion, NetsThatAreTrainedLearnAsTheyDoWithoutFusion) {
  const Runtime runtime = fusion_runtime();
  const uint64_t count = long_tests ? 2000 : 60;
  int refused = 0, same = 0, compared = 0;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const DType dtype = seed % 8 == 0 ? DType::f16 : seed % 8 == 1 ? DType::f64 : DType::f32;
    const char* const device = seed % 7 == 0 ? "sim:0" : "cpu:0";
    TrainingOptions options;
    options.losses = {"loss"};
    options.optimizer = seed % 3 == 0 && dtype != DType::f16 ? "adam" : "sgd";
    const Net layers = random_layers(seed, dtype);
    const auto net = testing_derive::trained(layers, options);
    ASSERT_TRUE(net.ok()) << layers.name << ": " << net.status().text();
    std::vector<float> numbers(24);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i * 37 + seed) % 101) / 50 - 1;
    const auto x = blob_of(dtype, Shape{4, 6}, numbers);
    const auto apart = learned(runtime, *net, x, {false, device});
    if (!apart.ok()) {
      ++refused;
      ADD_FAILURE() << layers.name << " " << device << ": " << apart.status().text();
      continue;
    }
    const auto whole = learned(runtime, *net, x, {true, device});
    ASSERT_TRUE(whole.ok()) << layers.name << " " << device << ": " << whole.status().text();
    const auto chains = learned(runtime, *net, x, {true, device, false});
    ASSERT_TRUE(chains.ok()) << layers.name << " " << device << ": " << chains.status().text();
    if (dtype == DType::f16) continue;
    ++compared;
    same += *chains == *apart;
    EXPECT_TRUE(*chains == *apart) << layers.name << " " << device << " " << to_string(dtype) << ": other bits";
  }
  std::printf("%d random nets that are trained: %d refused either way, %d of %d learn the same bits fused and apart\n",
              static_cast<int>(count), refused, same, compared);
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace heddle
