// Nets that are trained: the gradients of losses of labels and of normalisations, as part of nets.
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;

// A loss whose gradient differs from element to element.
void add_loss(NetBuilder& b, ValueId y) {
  b.output(b.add1("Mul", "loss", {y, b.add1("Sin", "sine", {y})}));
}

TEST(TrainingGradients, LossesOfLabels) {
  const std::vector<int64_t> classes = {2, 0, 1, 2, -1, 1, 0, 2};
  for (const char* type : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})
    for (const char* reduction : {"mean", "sum", "none"})
      for (const bool weighted : {false, true}) {
        NetBuilder b(std::string(type) + " " + reduction + (weighted ? " weighted" : ""));
        const ValueId x = b.input("x", DType::f64, Shape{2, 3, 4});
        const ValueId labels = b.constant("labels", Blob::copy_of(DType::i64, Shape{2, 4}, classes.data()));
        std::vector<ValueId> inputs = {b.add1("Mul", "scores", {x, x}), labels};
        if (weighted) inputs.push_back(b.constant("weights", blob(Shape{3}, {0.5, 2, 1})));
        add_loss(b, b.add1(type, "y", inputs, {{"reduction", std::string(reduction)}, {"ignore_index", int64_t{-1}}}));
        expect_gradients(b.finish(), "loss", {numbers(Shape{2, 3, 4}, 5)});
      }
}

TEST(TrainingGradients, LogarithmsThatALossLeavesBesideIt) {
  const std::vector<int64_t> classes = {2, 0};
  NetBuilder b("log_prob");
  const ValueId x = b.input("x", DType::f64, Shape{2, 3});
  const ValueId labels = b.constant("labels", Blob::copy_of(DType::i64, Shape{2}, classes.data()));
  const std::vector<ValueId> outputs = b.add("SoftmaxCrossEntropyLoss", "y", {x, labels}, 2, {{"reduction", std::string("sum")}});
  const ValueId product = b.add1("Mul", "product", {outputs[1], outputs[1]});
  b.output(b.add1("Mul", "loss", {product, outputs[0]}));
  expect_gradients(b.finish(), "loss", {numbers(Shape{2, 3}, 5)});
}

TEST(TrainingGradients, BatchNormalization) {
  for (const int64_t training : {0, 1}) {
    NetBuilder b("batch " + std::to_string(training));
    const ValueId x = b.input("x", DType::f64, Shape{3, 2, 4}), scale = b.input("scale", DType::f64, Shape{2});
    const ValueId bias = b.input("bias", DType::f64, Shape{2});
    const ValueId mean = b.constant("mean", blob(Shape{2}, {0.25, -0.5})), variance = b.constant("variance", blob(Shape{2}, {0.5, 2}));
    const std::vector<ValueId> y =
        b.add("BatchNormalization", "y", {x, scale, bias, mean, variance}, training ? 3 : 1, {{"training_mode", training}});
    add_loss(b, y[0]);
    expect_gradients(b.finish(), "loss", {numbers(Shape{3, 2, 4}, 1), numbers(Shape{2}, 2), numbers(Shape{2}, 3)}, 1e-5);
  }
}

TEST(TrainingGradients, NormalizationsWithScaleAndBias) {
  struct Kind {
    const char* type;
    std::vector<Attribute> attributes;
    bool has_bias;
    Shape parameters;
  };
  for (const Kind& kind :
       {Kind{"LayerNormalization", {{"axis", int64_t{-2}}}, true, Shape{4, 5}}, Kind{"LayerNormalization", {}, true, Shape{5}},
        Kind{"LayerNormalization", {}, false, Shape{1}}, Kind{"RMSNormalization", {}, false, Shape{5}},
        Kind{"InstanceNormalization", {}, true, Shape{4}}, Kind{"GroupNormalization", {{"num_groups", int64_t{2}}}, true, Shape{4}}}) {
    NetBuilder b(kind.type);
    std::vector<ValueId> inputs = {b.input("x", DType::f64, Shape{3, 4, 5}), b.input("scale", DType::f64, kind.parameters)};
    Values at = {numbers(Shape{3, 4, 5}, 1), numbers(kind.parameters, 2)};
    if (kind.has_bias) inputs.push_back(b.input("bias", DType::f64, kind.parameters)), at.push_back(numbers(kind.parameters, 3));
    add_loss(b, b.add1(kind.type, "y", inputs, kind.attributes));
    expect_gradients(b.finish(), "loss", at, 1e-5);
  }
}

TEST(TrainingGradients, NormalizationsWithoutParameters) {
  struct Kind {
    const char* type;
    std::vector<Attribute> attributes;
  };
  for (const Kind& kind : {Kind{"MeanVarianceNormalization", {{"axes", std::vector<int64_t>{0, 2}}}},
                           Kind{"LpNormalization", {{"axis", int64_t{1}}}}, Kind{"LpNormalization", {{"p", int64_t{1}}}}}) {
    NetBuilder b(kind.type);
    add_loss(b, b.add1(kind.type, "y", {b.input("x", DType::f64, Shape{3, 4, 5})}, kind.attributes));
    expect_gradients(b.finish(), "loss", {numbers(Shape{3, 4, 5}, 1)}, 1e-5);
  }
}

}  // namespace
}  // namespace heddle
