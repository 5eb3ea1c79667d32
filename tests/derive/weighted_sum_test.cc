// WeightedSum in nets: its gradients, and that it gives the same bits whichever of its inputs has no further readers.
#include <cstring>
#include <optional>

#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;

// The sum of squares of w0 * x0 + w1 * x1 + w2 * x0, where x is [2, 3] and every weight has another shape of one element.
TEST(WeightedSum, HasTheGradientsThatDifferencesShow) {
  for (const bool open : {false, true}) {
    NetBuilder b(open ? "open" : "known");
    DeclaredType matrix = DeclaredType::of(DType::f64, Shape{2, 3});
    if (open) matrix.dims[0] = Dim::named("n");
    const ValueId x0 = b.input("x0", matrix), x1 = b.input("x1", matrix);
    const ValueId w0 = b.input("w0", DType::f64, Shape{}), w1 = b.input("w1", DType::f64, Shape{1}),
                  w2 = b.input("w2", DType::f64, Shape{1, 1});
    const ValueId y = b.add1("WeightedSum", "y", {x0, w0, x1, w1, x0, w2}, {}, "heddle");
    b.output(b.add1("Mul", "loss", {y, y}));
    const std::vector<Shape> shapes = {Shape{2, 3}, Shape{2, 3}, Shape{}, Shape{1}, Shape{1, 1}};
    Values at;
    for (size_t i = 0; i < shapes.size(); ++i) at.push_back(numbers(shapes[i], static_cast<int>(i) + 3));
    expect_gradients(b.finish(), "loss", at, 1e-6, shapes);
  }
}

// ---------------------------------------------------------------- in place

constexpr int64_t wide = 200003;  // several tiles
constexpr float weights[] = {0.3f, -1.7f, 0.9f};
// The values of the terms of a sum, by number: equal numbers are the same value.
using Sources = std::vector<size_t>;

std::vector<float> given(size_t source) {
  std::vector<float> content;
  for (int64_t i = 0; i < wide; ++i)
    content.push_back(static_cast<float>((i * 7919 + static_cast<int64_t>(source) * 104729) % 1009) / 37.0f);
  return content;
}

// Each value is the result of a step on an input, with the same numbers, and those that are `kept` are outputs of the net too. A further
// step reads the sum, so that it is in the session's memory.
Net net_of_sum(const Sources& sources, const std::vector<bool>& kept) {
  NetBuilder b("sum");
  std::vector<ValueId> made, inputs;
  for (size_t i = 0; i < kept.size(); ++i)
    made.push_back(
        b.add1("CumSum", "made" + std::to_string(i),
               {b.input("x" + std::to_string(i), DType::f32, Shape{wide, 1}), b.constant_ints("axis" + std::to_string(i), {1})}));
  for (size_t i = 0; i < sources.size(); ++i) {
    inputs.push_back(made[sources[i]]);
    inputs.push_back(b.constant_float("w" + std::to_string(i), weights[i]));
  }
  const ValueId sum = b.add1("WeightedSum", "sum", inputs, {}, "heddle");
  b.output(b.add1("CumSum", "read", {sum, b.constant_ints("axis", {1})}));
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) b.output(made[i]);
  return b.finish();
}

// Returns the input of the sum whose place its output has taken.
std::optional<size_t> taken_by_the_sum(Session& session) {
  const auto plan = session.plan();
  EXPECT_TRUE(plan.ok()) << plan.status().text();
  const PlanInfo& info = **plan;
  for (const PlanInfo::Step& step : info.steps) {
    if (step.name != "sum") continue;
    const auto buffer = [&](const PlanInfo::Operand& of) { return info.values[*of.value].buffer; };
    const auto is_planned = [&](const PlanInfo::Operand& of) { return info.values[*of.value].place == PlanInfo::Place::arena; };
    EXPECT_TRUE(is_planned(step.outputs[0]));
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (is_planned(step.inputs[i]) && buffer(step.inputs[i]) == buffer(step.outputs[0])) return i;
    return {};
  }
  ADD_FAILURE() << "the plan has no step \"sum\"";
  return {};
}

std::vector<float> expected_sum(const Sources& sources) {
  std::vector<float> sum(static_cast<size_t>(wide), 0);
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::vector<float> x = given(sources[i]);
    for (size_t k = 0; k < x.size(); ++k) {
      const float term = weights[i] * x[k];
      sum[k] = i == 0 ? term : sum[k] + term;
    }
  }
  return sum;
}

// FEATURES E9: the output may take the place of x0, and no other.
TEST(WeightedSum, GivesTheSameBitsWhateverItsOutputTakesThePlaceOf) {
  struct Way {
    Sources sources;
    std::vector<bool> kept;
    std::optional<size_t> taken;
  };
  const std::vector<Way> ways = {
      {{0, 1, 2}, {false, true, true}, 0},    // x0 is dead after it
      {{0, 1, 2}, {true, false, true}, {}},   // x1 is dead
      {{0, 1, 2}, {true, true, false}, {}},   // x2 is dead
      {{0, 1, 2}, {false, false, false}, 0},  // all are dead
      {{0, 1, 2}, {true, true, true}, {}},    // none is dead
      {{0, 0}, {false}, {}},                  // x0 and x1 are the same value
      {{0, 1, 0}, {false, false}, {}},        // x0 and x2 are
      {{0, 1, 1}, {true, false}, {}},         // x1 and x2 are
      {{0, 1, 1}, {false, false}, 0},         // x1 and x2 are, and x0 is dead
      {{0}, {false}, 0},                      // one term
  };
  for (size_t w = 0; w < ways.size(); ++w) {
    SCOPED_TRACE(w);
    const Way& way = ways[w];
    std::vector<std::vector<float>> contents;
    for (size_t i = 0; i < way.kept.size(); ++i) contents.push_back(given(i));
    std::vector<TensorView> views;
    for (const std::vector<float>& content : contents) views.push_back(testing_nets::view(content.data(), DType::f32, Shape{wide, 1}));
    std::vector<std::vector<float>> expected = {expected_sum(way.sources)};
    for (size_t i = 0; i < way.kept.size(); ++i)
      if (way.kept[i]) expected.push_back(contents[i]);
    for (const int threads : {1, 3})
      for (const bool share_memory : {true, false}) {
        Session session = testing_nets::open(testing_nets::runtime(threads), net_of_sum(way.sources, way.kept));
        Internals::of(session).pipeline.compile.share_memory = share_memory;
        EXPECT_EQ(taken_by_the_sum(session), share_memory ? way.taken : std::nullopt);
        const auto ran = session.run(views);
        ASSERT_TRUE(ran.ok()) << ran.status().text();
        ASSERT_EQ(ran->size(), expected.size());
        for (size_t o = 0; o < expected.size(); ++o)
          EXPECT_EQ(std::memcmp((*ran)[o].data(), expected[o].data(), wide * sizeof(float)), 0) << "output " << o;
      }
  }
}

// If tensors and weights have one element, one value may be both.
TEST(WeightedSum, MayHaveAWeightThatIsAlsoATerm) {
  NetBuilder b("square");
  const ValueId x = b.add1("CumSum", "made", {b.input("x", DType::f32, Shape{1}), b.constant_ints("axis", {0})});
  b.output(b.add1("WeightedSum", "sum", {x, x, b.constant("one", testing_nets::blob(Shape{1}, 1, 0)), x}, {}, "heddle"));
  Session session = testing_nets::open(testing_nets::runtime(), b.finish());
  const float three = 3;
  const auto ran = session.run({testing_nets::view(&three, DType::f32, Shape{1})});
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  EXPECT_EQ(*static_cast<const float*>((*ran)[0].data()), 12.0f);
}

}  // namespace
}  // namespace heddle
