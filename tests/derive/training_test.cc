// Training nets: learning rates, updates, clipping, and losses that fall.
#include "base/half.h"
#include "derive/derived_run.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;

// Half the sum of squares of w - x.
Net distance() {
  NetBuilder b("distance");
  const ValueId x = b.input("x", DType::f64, Shape{2}), w = b.variable("w", blob(Shape{2}, {0, 0}), true);
  const ValueId d = b.add1("Sub", "d", {w, x});
  b.add1("ReduceSum", "loss", {b.add1("Mul", "half", {b.add1("Mul", "square", {d, d}), b.constant("a", blob(Shape{}, {0.5}))})},
         {{"keepdims", int64_t{0}}});
  return b.finish();
}

std::vector<double> rates_of(const std::string& schedule, int64_t warm_up, int steps) {
  TrainingOptions options;
  options.losses = {"loss"};
  const auto rate = LearningRate::parse(0.5, schedule, warm_up);
  EXPECT_TRUE(rate.ok()) << rate.status().text();
  options.learning_rate = *rate;
  auto net = trained(distance(), options);
  EXPECT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  const std::vector<double> x = {1, 2};
  std::vector<double> rates;
  for (int i = 0; i < steps; ++i) {
    const auto ran = session.run({testing_nets::view(x.data(), DType::f64, Shape{2})});
    EXPECT_TRUE(ran.ok()) << ran.status().text();
    rates.push_back(static_cast<double>(*static_cast<const float*>((*ran)[1].data())));
  }
  return rates;
}

TEST(Training, RatesFollowTheirSchedules) {
  EXPECT_EQ(rates_of("constant", 0, 3), (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(rates_of("step(2, 0.5)", 0, 5), (std::vector<double>{0.5, 0.5, 0.25, 0.25, 0.125}));
  EXPECT_EQ(rates_of("exponential(0.5)", 0, 3), (std::vector<double>{0.5, 0.25, 0.125}));
  EXPECT_EQ(rates_of("polynomial(4)", 0, 6), (std::vector<double>{0.5, 0.375, 0.25, 0.125, 0, 0}));
  EXPECT_EQ(rates_of("polynomial(2, 2, 0.25)", 0, 3), (std::vector<double>{0.5, 0.3125, 0.25}));
  const std::vector<double> cosine = rates_of("cosine(2, 0.1)", 0, 4);
  EXPECT_FLOAT_EQ(static_cast<float>(cosine[1]), 0.3F);
  EXPECT_FLOAT_EQ(static_cast<float>(cosine[3]), 0.1F);
  EXPECT_EQ(rates_of("constant", 4, 5), (std::vector<double>{0.125, 0.25, 0.375, 0.5, 0.5}));
}

TEST(Training, WhatIsNoScheduleIsRefused) {
  for (const char* text : {"", "linear", "step", "step(2)", "step(0, 1)", "step(2, x)", "cosine(10", "polynomial(1,2,3,4)", "constant(1)"})
    EXPECT_FALSE(LearningRate::parse(0.1, text).ok()) << text;
  EXPECT_FALSE(LearningRate::parse(-1, "constant").ok());
  EXPECT_FALSE(LearningRate::parse(0.1, "constant", -1).ok());
}

// w moves half of the distance each time.
TEST(Training, AStepOfSgdIsTheRateTimesTheGradient) {
  TrainingOptions options;
  options.losses = {"loss"};
  options.learning_rate = *LearningRate::parse(0.5, "constant");
  auto net = trained(distance(), options);
  ASSERT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  const std::vector<double> x = {1, 2};
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    const auto ran = session.run({testing_nets::view(x.data(), DType::f64, Shape{2})});
    ASSERT_TRUE(ran.ok()) << ran.status().text();
    losses.push_back(*static_cast<const double*>((*ran)[0].data()));
  }
  EXPECT_EQ(losses, (std::vector<double>{2.5, 0.625, 0.15625}));
  const auto w = session.read_variable("w"), step = session.read_variable("step");
  ASSERT_TRUE(w.ok() && step.ok());
  EXPECT_EQ(static_cast<const double*>(w->data())[1], 1.75);
  EXPECT_EQ(*static_cast<const int64_t*>(step->data()), 3);
}

TEST(Training, GradientsAreClippedByValueAndByNorm) {
  const auto w_after = [](double value, double norm) {
    TrainingOptions options;
    options.losses = {"loss"};
    options.learning_rate = *LearningRate::parse(1, "constant");
    options.clip_value = value;
    options.clip_norm = norm;
    auto net = trained(distance(), options);
    EXPECT_TRUE(net.ok()) << net.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
    const std::vector<double> x = {3, 4};
    EXPECT_TRUE(session.run({testing_nets::view(x.data(), DType::f64, Shape{2})}).ok());
    const auto w = session.read_variable("w");
    return std::vector<double>{static_cast<const double*>(w->data())[0], static_cast<const double*>(w->data())[1]};
  };
  EXPECT_EQ(w_after(0, 0), (std::vector<double>{3, 4}));
  EXPECT_EQ(w_after(3.5, 0), (std::vector<double>{3, 3.5}));
  const std::vector<double> short_step = w_after(0, 1);
  EXPECT_NEAR(short_step[0], 0.6, 1e-6);
  EXPECT_NEAR(short_step[1], 0.8, 1e-6);
}

// The norm that is asked for is that before both ways of clipping, which do what they do without it.
TEST(Training, TheNormOfGradientsIsShownBeforeTheyAreClipped) {
  struct Found {
    std::vector<double> w;
    std::optional<double> norm;
  };
  const auto after = [](double value, double norm, bool shown) {
    TrainingOptions options;
    options.losses = {"loss"};
    options.learning_rate = *LearningRate::parse(1, "constant");
    options.clip_value = value;
    options.clip_norm = norm;
    options.gradient_norm = shown;
    auto net = trained(distance(), options);
    EXPECT_TRUE(net.ok()) << net.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
    const std::vector<double> x = {3, 4};
    const auto ran = session.run({testing_nets::view(x.data(), DType::f64, Shape{2})});
    EXPECT_TRUE(ran.ok()) << ran.status().text();
    const auto w = session.read_variable("w");
    const auto* const numbers = static_cast<const double*>(w->data());
    Found found{{numbers[0], numbers[1]}, std::nullopt};
    const std::vector<PortInfo> outputs = session.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == "gradient_norm") found.norm = *static_cast<const double*>((*ran)[i].data());
    return found;
  };
  for (const auto& [value, norm] : {std::pair(0.0, 0.0), {3.5, 0.0}, {0.0, 1.0}, {3.5, 1.0}, {0.0, 100.0}}) {
    const Found plain = after(value, norm, false), shown = after(value, norm, true);
    EXPECT_EQ(shown.w, plain.w) << value << " " << norm;
    ASSERT_TRUE(shown.norm) << value << " " << norm;
    EXPECT_NEAR(*shown.norm, 5, 1e-12) << value << " " << norm;
    EXPECT_EQ(plain.norm.has_value(), norm > 0);
  }
  EXPECT_NEAR(*after(3.5, 1, false).norm, std::hypot(3, 3.5), 1e-12) << "the norm that clips";
}

// 300 squared is beyond f16: the norm is computed in f32.
TEST(Training, GradientsOf16BitsAreClippedByTheirNormToo) {
  constexpr int64_t f16 = 10;  // ONNX's number
  NetBuilder b("narrow");
  const auto narrow = [&](const char* name, ValueId wide) { return b.add1("Cast", name, {wide}, {{"to", f16}}); };
  const std::vector<uint16_t> ones = {0x3C00, 0x3C00};
  const ValueId w = b.variable("w", Blob::copy_of(DType::f16, Shape{2}, ones.data()), true);
  const ValueId x = narrow("x", b.constant("wide", blob(Shape{2}, {300, 400})));
  b.output(b.add1("ReduceSum", "loss", {b.add1("Mul", "product", {w, x})}, {{"keepdims", int64_t{0}}}));
  TrainingOptions options;
  options.losses = {"loss"};
  options.learning_rate = *LearningRate::parse(1, "constant");
  options.clip_norm = 0.5;
  auto net = trained(b.finish(), options);
  ASSERT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  ASSERT_TRUE(session.run(std::vector<TensorView>()).ok());
  const auto learned = session.read_variable("w");
  ASSERT_TRUE(learned.ok());
  const auto* const data = static_cast<const uint16_t*>(learned->data());
  EXPECT_NEAR(float_of_f16(data[0]), 1 - 0.3, 2e-3);
  EXPECT_NEAR(float_of_f16(data[1]), 1 - 0.4, 2e-3);
}

TEST(Training, WhatIsNotKnownIsNamed) {
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = "sdg";
  EXPECT_NE(trained(distance(), options).status().text().find("there is no optimizer \"sdg\""), std::string::npos);
  options.optimizer = "sgd";
  options.settings = {{"beta", 1}};
  EXPECT_NE(trained(distance(), options).status().text().find("optimizer sgd has no setting \"beta\""), std::string::npos);
}

TEST(Training, WhatNoUpdateWouldTakeIsRefusedWhenTheNetIsBuilt) {
  TrainingOptions options;
  options.losses = {"loss"};
  const auto refused = [&](const std::string& optimizer, const std::string& setting, double value, const std::string& why) {
    options.optimizer = optimizer;
    options.settings = {{setting, value}};
    const auto made = trained(distance(), options);
    ASSERT_FALSE(made.ok()) << optimizer << " " << setting;
    for (const std::string& part : {setting, ", expected " + why}) EXPECT_NE(made.status().text().find(part), std::string::npos) << part;
  };
  for (const auto& [optimizer, setting] : {std::pair{"adam", "beta1"}, {"adamw", "beta2"}, {"rmsprop", "alpha"}})
    refused(optimizer, setting, 1, "at least 0 and less than 1");
  for (const Optimizer& optimizer : optimizers())
    for (const std::string& setting : optimizer.settings)
      if (setting != "rowwise") refused(optimizer.name, setting, -0.5, "at least 0");
}

}  // namespace
}  // namespace heddle
