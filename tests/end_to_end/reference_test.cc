// The recipes' outputs against PyTorch's for the same weights; make_reference.sh made the references. Also their memory: a context holds
// what was planned, and that is close to the lower bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "models/recipes.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

// PyTorch's output: 1,000 numbers, spread evenly.
std::vector<float> reference(const std::string& name) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/end_to_end/" + name + ".f32", std::ios::binary);
  std::vector<float> values(1000);
  file.read(reinterpret_cast<char*>(values.data()), 4000);
  EXPECT_EQ(file.gcount(), 4000);
  return values;
}

// Compares by the largest difference, relative to the largest number of the reference.
void expect_agreement(const std::string& name, const TensorView& output) {
  const auto* ours = static_cast<const float*>(output.data);
  const std::vector<float> theirs = reference(name);
  const auto count = static_cast<size_t>(output.shape.element_count());
  ASSERT_GE(count, theirs.size());
  float largest = 0, difference = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const float mine = ours[i * count / theirs.size()];
    ASSERT_TRUE(std::isfinite(mine)) << i;
    largest = std::max(largest, std::abs(theirs[i]));
    difference = std::max(difference, std::abs(theirs[i] - mine));
  }
  EXPECT_GT(largest, 1.0f);
  EXPECT_LT(difference, 1e-4f * largest);
  testing::Test::RecordProperty("relative_difference", fmt::format("{:.2g}", difference / largest));
}

void expect_planned_memory(const Session& session, const Context& context) {
  EXPECT_EQ(context.held_bytes(), context.planned_bytes());
  const MemoryReport m = last_plan(session)->memory;
  EXPECT_EQ(context.planned_bytes(), m.peak_bytes);
  EXPECT_LE(static_cast<double>(m.peak_bytes), 1.02 * static_cast<double>(m.lower_bound_bytes));
  testing::Test::RecordProperty("peak_over_lower_bound",
                                fmt::format("{:.4f}", static_cast<double>(m.peak_bytes) / static_cast<double>(m.lower_bound_bytes)));
}

// Runs the recipe at the inputs' batch; with `compare`, compares its output with PyTorch's.
void run_recipe(const std::string& name, const std::vector<TensorView>& inputs, bool compare) {
  auto net = models::build(name, {.batch = inputs[0].shape[0]});
  ASSERT_TRUE(net.ok()) << net.status().text();
  const Runtime r = testing_nets::runtime(2);
  Session session = testing_nets::open(r, std::move(*net));
  auto context = session.prepare(inputs);
  ASSERT_TRUE(context.ok()) << context.status().text();
  for (size_t i = 0; i < inputs.size(); ++i) ASSERT_TRUE(context->bind_input(i, inputs[i].data).ok());
  const Status run = context->run();
  ASSERT_TRUE(run.ok()) << run.text();
  if (compare) expect_agreement(name, context->output(0));
  expect_planned_memory(session, *context);
}

// An input and its content, computed by the formulas of make_reference.sh.
class Input {
 public:
  // The content lies within -1 and 1.
  static Input floats(const Shape& shape) {
    Input input(DType::f32, shape);
    for (size_t i = 0; i < input.count(); ++i) input.floats_.push_back(static_cast<float>(i * 7919 % 1000) / 500 - 1);
    return input;
  }
  static Input indices(const Shape& shape, int64_t bound, int64_t step = 7919, int64_t start = 0) {
    Input input(DType::i64, shape);
    for (size_t i = 0; i < input.count(); ++i) input.indices_.push_back((static_cast<int64_t>(i) * step + start) % bound);
    return input;
  }
  // The view is valid as long as this object.
  TensorView view() const {
    const void* data = dtype_ == DType::f32 ? static_cast<const void*>(floats_.data()) : indices_.data();
    return testing_nets::view(data, dtype_, shape_);
  }

 private:
  Input(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {}
  size_t count() const { return static_cast<size_t>(shape_.element_count()); }
  DType dtype_;
  Shape shape_;
  std::vector<float> floats_;
  std::vector<int64_t> indices_;
};

void run_recipe(const std::string& name, const std::vector<Input>& inputs, bool compare = true) {
  std::vector<TensorView> views;
  for (const Input& input : inputs) views.push_back(input.view());
  run_recipe(name, views, compare);
}

TEST(Reference, Resnet50AgreesWithPyTorch) {
  run_recipe("resnet50", {Input::floats(Shape{1, 3, 224, 224})});
}

TEST(Reference, EncoderAgreesWithPyTorch) {
  run_recipe("encoder", {Input::indices(Shape{1, 128}, 30522)});
}

TEST(Reference, Densenet121AgreesWithPyTorch) {
  run_recipe("densenet121", {Input::floats(Shape{1, 3, 224, 224})});
}

TEST(Reference, UnetAgreesWithPyTorch) {
  run_recipe("unet", {Input::floats(Shape{1, 3, 128, 128})});
}

TEST(Reference, LstmTaggerAgreesWithPyTorch) {
  run_recipe("lstm_tagger", {Input::indices(Shape{1, 64}, 10'000)});
}

TEST(Reference, GruSeq2seqAgreesWithPyTorch) {
  run_recipe("gru_seq2seq", {Input::indices(Shape{1, 32}, 8000), Input::indices(Shape{1, 24}, 8000, 104'729)});
}

std::vector<Input> dlrm_inputs(int64_t batch) {
  std::vector<Input> inputs = {Input::floats(Shape{batch, 13})};
  for (int64_t table = 0; table < 26; ++table) inputs.push_back(Input::indices(Shape{batch, 20}, 10'000, 7919, 104'729 * table));
  return inputs;
}

// The output has one number for each sample of a batch, hence a large batch; the memory is also that of a net written by `heddle model`.
TEST(Reference, DlrmAgreesWithPyTorch) {
  run_recipe("dlrm", dlrm_inputs(1), false);
  run_recipe("dlrm", dlrm_inputs(1000));
}

}  // namespace
}  // namespace heddle
