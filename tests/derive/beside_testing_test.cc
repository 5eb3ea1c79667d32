// A net that is tested while it is trained: the AlexNet-shaped pair of caffe's memory_share_net (Krizhevsky et al., 2012), in one memory.
#include <gtest/gtest.h>

#include "derive/derived_run.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;

// The extents of the pictures, and the divisor of the numbers of channels and neurons.
struct Scale {
  int64_t size = 224, divisor = 1;
};

// A net with convolutions and layers in the proportions of AlexNet, over variables; `trains`: with dropout, and the loss alone.
Net alexnet(bool trains, const Scale& scale) {
  NetBuilder b(trains ? "train" : "test");
  DeclaredType images = DeclaredType::of(DType::f32, Shape{1, 3, scale.size, scale.size}),
               labels_type = DeclaredType::of(DType::i64, Shape{1});
  images.dims[0] = labels_type.dims[0] = Dim::named("N");
  ValueId x = b.input("image", images);
  const ValueId labels = b.input("labels", labels_type);
  const auto conv = [&](const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
    if (in > 3) in /= scale.divisor;
    const ValueId w = b.variable(name + ".weight", DType::f32, Shape{out / scale.divisor, in, kernel, kernel}, "kaiming_normal", true);
    const std::vector<int64_t> strides = {stride, stride}, pads = {pad, pad, pad, pad};
    x = b.add1("Relu", name + ".relu", {b.add1("Conv", name, {x, w}, {{"strides", strides}, {"pads", pads}})});
  };
  const auto pool = [&](const std::string& name) {
    const std::vector<int64_t> kernel = {3, 3}, strides = {2, 2};
    x = b.add1("MaxPool", name, {x}, {{"kernel_shape", kernel}, {"strides", strides}});
  };
  const auto layer = [&](const std::string& name, int64_t in, int64_t out) {
    x = b.add1("Gemm", name, {x, b.variable(name + ".weight", DType::f32, Shape{in, out}, "kaiming_normal", true)});
  };
  const bool yes = true;
  const auto drop = [&](const std::string& name) {
    x = b.add1("Relu", name + ".relu", {x});
    if (trains)
      x = b.add1("Dropout", name,
                 {x, b.constant_float(name + "_ratio", 0.5F), b.constant(name + "_mode", Blob::copy_of(DType::boolean, Shape{}, &yes))});
  };
  conv("conv1", 3, 64, 11, 4, 2);
  pool("pool1");
  conv("conv2", 64, 192, 5, 1, 2);
  pool("pool2");
  conv("conv3", 192, 384, 3, 1, 1);
  conv("conv4", 384, 256, 3, 1, 1);
  conv("conv5", 256, 256, 3, 1, 1);
  x = b.add1("GlobalAveragePool", "pool5", {x});
  x = b.add1("Flatten", "flat", {x});
  layer("fc6", 256 / scale.divisor, 4096 / scale.divisor);
  drop("drop6");
  layer("fc7", 4096 / scale.divisor, 4096 / scale.divisor);
  drop("drop7");
  layer("fc8", 4096 / scale.divisor, 10);
  b.output(b.add1("SoftmaxCrossEntropyLoss", "loss", {x, labels}));
  return b.finish();
}

Session open_pair(const Runtime& runtime, const Scale& scale) {
  const auto registry = testing_stages::registry();
  const auto evaluator = make_registry_evaluator(registry);
  const auto resolved = resolve(alexnet(true, scale), registry);
  EXPECT_TRUE(resolved.ok()) << resolved.status().text();
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = "momentum";
  options.learning_rate = *LearningRate::parse(0.01, "constant");
  auto train = training_net(*resolved, registry, *evaluator, options);
  EXPECT_TRUE(train.ok()) << train.status().text();
  std::vector<Net> nets;
  nets.push_back(std::move(*train));
  nets.push_back(alexnet(false, scale));
  auto session = runtime.open(std::move(nets));
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

// As many samples as a test needs.
struct Samples {
  Samples(int64_t count, const Scale& scale) : shape{count, 3, scale.size, scale.size}, labels(static_cast<size_t>(count)) {
    for (const double number : numbers(shape, 3)) image.push_back(static_cast<float>(number));
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i % 10);
  }
  std::vector<TensorView> views() const {
    return {testing_nets::view(image.data(), DType::f32, shape), testing_nets::view(labels.data(), DType::i64, Shape{shape[0]})};
  }
  Shape shape;
  std::vector<float> image;
  std::vector<int64_t> labels;
};

int64_t planned_bytes(Session& session, int64_t batch) {
  // The content does not decide any shapes: it is not read.
  static const char none = 0;
  const auto plan =
      session.plan({testing_nets::view(&none, DType::f32, Shape{batch, 3, 224, 224}), testing_nets::view(&none, DType::i64, Shape{batch})});
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  return (*plan)->memory[0].peak_bytes;
}

// FEATURES G4: the part that took 39 and 127 MB in caffe takes none here. Contexts in one memory hold the maximum
// (SharedMemory.*).
TEST(BesideTesting, TheTestNetFitsIntoWhatTrainingNeeds) {
  Session train = open_pair(testing_nets::runtime(2), {});
  Session test = *train.net("test");
  const int64_t of_training = planned_bytes(train, 256), smaller = planned_bytes(test, 50), larger = planned_bytes(test, 250);
  std::printf("train 256: %lld bytes, test 50: %lld, test 250: %lld\n", static_cast<long long>(of_training),
              static_cast<long long>(smaller), static_cast<long long>(larger));
  EXPECT_EQ(std::max({of_training, smaller, larger}) - of_training, 0);
  EXPECT_LT(smaller, larger);
  // No activation is kept for gradients: the test net needs less than half of the memory of training for as many samples.
  EXPECT_LT(2 * larger, planned_bytes(train, 250));
}

// The losses and variables of 6 steps, each followed by a test of more samples if `tests`.
Values trained(bool tests) {
  const Scale scale = {63, 32};
  const Samples samples(8, scale), more(9, scale);
  Session train = open_pair(testing_nets::runtime(2), scale);
  Session test = *train.net("test");
  const SharedMemory memory;
  auto learning = train.prepare_on(memory, samples.views());
  EXPECT_TRUE(learning.ok()) << learning.status().text();
  const int64_t alone = memory.bytes();
  std::optional<Context> testing;
  if (tests) {
    auto prepared = test.prepare_on(memory, more.views());
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    testing = std::move(*prepared);
    EXPECT_EQ(memory.bytes(), alone);
  }
  Values all(1);
  const auto run = [](Context& context, const Samples& of) {
    const std::vector<TensorView> views = of.views();
    for (size_t i = 0; i < views.size(); ++i) EXPECT_TRUE(context.bind_input(i, views[i].data).ok());
    const Status status = context.run();
    EXPECT_TRUE(status.ok()) << status.text();
    return *static_cast<const float*>(context.output(0).data);
  };
  for (int step = 0; step < 6; ++step) {
    all[0].push_back(run(*learning, samples));
    if (tests) {
      EXPECT_GT(run(*testing, more), 0);
    }
  }
  for (const char* name : {"conv1.weight", "fc7.weight", "fc8.weight.velocity"}) {
    const auto variable = train.read_variable(name);
    EXPECT_TRUE(variable.ok()) << name;
    const auto* const data = static_cast<const float*>(variable->data());
    all.emplace_back(data, data + variable->shape().element_count());
  }
  return all;
}

TEST(BesideTesting, TrainingGivesTheSameBitsWithAndWithoutTests) {
  const Values with = trained(true), without = trained(false);
  EXPECT_EQ(with, without);
  EXPECT_LT(with[0].back(), with[0].front());
}

}  // namespace
}  // namespace heddle
