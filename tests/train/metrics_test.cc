// TrainerOptions::metrics: what each of them counts, and what is refused before the first step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "points.h"

namespace heddle::testing_train {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// The trained net is "line" with an input for weights; the others only hand on what they are given.
std::string nets_text(const std::string& logits_dims, const std::string& labels_dims, const std::string& dtype,
                      const std::string& label_dtype) {
  const std::string text = R"json({"heddle": 1, "name": "learner", "operator_sets": [{"domain": "", "version": 18}],
 "inputs": ["x", "weights"], "outputs": ["loss"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [1, 1], "trainable": true, "initializer": "constant(0.5)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 1]}, {"name": "weights", "kind": "input", "dtype": "f32", "dims": ["N", 1]},
  {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
 "nodes": [{"name": "guess", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["guess"]},
  {"name": "weighted", "type": "Mul", "inputs": ["guess", "weights"], "outputs": ["weighted"]},
  {"name": "loss", "type": "ReduceSum", "inputs": ["weighted"], "outputs": ["loss"], "attributes": {"keepdims": {"int": 0}}}],
 "nets": [{"name": "test", "operator_sets": [{"domain": "", "version": 18}], "inputs": ["scores", "labels", "weights"],
  "outputs": ["logits", "same", "loss", "wide"],
  "values": [{"name": "scores", "kind": "input", "dtype": "DTYPE", "dims": [LOGITS]},
   {"name": "labels", "kind": "input", "dtype": "LABEL", "dims": [LABELS]},
   {"name": "weights", "kind": "input", "dtype": "f32", "dims": ["N"]}],
  "nodes": [{"name": "logits", "type": "Identity", "inputs": ["scores"], "outputs": ["logits"]},
   {"name": "same", "type": "Identity", "inputs": ["labels"], "outputs": ["same"]},
   {"name": "wide", "type": "Cast", "inputs": ["labels"], "outputs": ["wide"], "attributes": {"to": {"int": 1}}},
   {"name": "sum", "type": "ReduceSum", "inputs": ["weights"], "outputs": ["sum"], "attributes": {"keepdims": {"int": 0}}},
   {"name": "total", "type": "Mul", "inputs": ["sum", "sum"], "outputs": ["total"]},
   {"name": "loss", "type": "Div", "inputs": ["total", "sum"], "outputs": ["loss"]}]}]})json";
  const auto with = [](const std::string& in, const char* what, const std::string& value) {
    return std::regex_replace(in, std::regex(what), value);
  };
  return with(with(with(with(text, "\\[LOGITS\\]", logits_dims), "\\[LABELS\\]", labels_dims), "DTYPE", dtype), "LABEL", label_dtype);
}

struct Form {
  std::string logits_dims = R"(["N", 4])", labels_dims = R"(["N"])", dtype = "f32", label_dtype = "i64";
  std::string chosen_by = {};  // "all" or "odd": what says which rows the output "chosen" has; empty: there is no such output
};

// A trainer of one step whose tests have these logits and labels.
struct Tested {
  Tested(std::vector<std::string> metrics, const Form& form, int64_t batch = 3, LastBatch last_batch = LastBatch::keep) {
    std::string text = nets_text(form.logits_dims, form.labels_dims, form.dtype, form.label_dtype);
    if (!form.chosen_by.empty()) {
      text = std::regex_replace(text, std::regex("\"wide\"\\],\n"), "\"wide\", \"chosen\"],\n");
      const std::string rows = R"({"name": "all", "type": "Equal", "inputs": ["labels", "labels"], "outputs": ["all"]},
        {"name": "odd", "type": "Cast", "inputs": ["labels"], "outputs": ["odd"], "attributes": {"to": {"int": 9}}},
        {"name": "chosen", "type": "Compress", "inputs": ["scores", "BY"], "outputs": ["chosen"], "attributes": {"axis": {"int": 0}}},)";
      const size_t at = text.find(R"({"name": "sum", "type": "ReduceSum", "inputs": ["weights"])");
      text.insert(at, std::regex_replace(rows, std::regex("BY"), form.chosen_by));
    }
    auto nets = Nets::read_bytes(text.data(), text.size(), "");
    EXPECT_TRUE(nets.ok()) << nets.status().text();
    EXPECT_TRUE(nets->add_training(runtime, "learner", testing_line::learning("sgd"), "train").ok());
    all.emplace(testing_line::open(runtime, *nets));
    options.batch = batch;
    options.steps = 1;
    options.weights = "weights";
    options.last_batch = last_batch;
    options.metrics = std::move(metrics);
  }
  Result<Trainer> make() {
    auto data = Dataset::of_arrays({{"x", testing_nets::view(ones.data(), DType::f32, Shape{8, 1})}});
    return Trainer::create(*all->net("train"), *data, options);
  }
  Status test_with(const TensorView& scores, const TensorView& labels) {
    auto made = make();
    if (!made.ok()) return made.status();
    auto data = Dataset::of_arrays({{"scores", scores}, {"labels", labels}});
    EXPECT_TRUE(data.ok()) << data.status().text();
    trainer.emplace(std::move(*made));
    return trainer->test_with(*all->net("test"), *data);
  }
  // The mean of that name.
  double mean(const std::string& name) {
    auto of = trainer->evaluate();
    EXPECT_TRUE(of.ok()) << of.status().text();
    if (!of.ok()) return -1;
    const auto found = std::find_if(of->means.begin(), of->means.end(), [&](const auto& m) { return m.first == name; });
    EXPECT_NE(found, of->means.end()) << name;
    return found == of->means.end() ? -1 : found->second;
  }
  const std::vector<float> ones = std::vector<float>(8, 1);
  const Runtime runtime = testing_nets::runtime();
  std::optional<Session> all;
  TrainerOptions options;
  std::optional<Trainer> trainer;
};

TensorView floats(const std::vector<float>& numbers, const Shape& shape) {
  return testing_nets::view(numbers.data(), DType::f32, shape);
}
TensorView labels_of(const std::vector<int64_t>& labels) {
  return testing_nets::view(labels.data(), DType::i64, Shape{static_cast<int64_t>(labels.size())});
}

// Seven samples of four classes; classes 0 and 2 of the third are equal, and the fifth has a NaN.
const std::vector<float> scores = {0, 1,   2, 3,  //
                                   3, 2,   1, 0,  //
                                   5, 1,   5, 0,  //
                                   1, 1,   1, 1,  //
                                   9, nan, 0, 0, 0, 0, 0, 7, -1, -2, -3, -4};
const Shape seven = {7, 4};

TEST(Metrics, CountEachSampleOnceInUnevenAndInPaddedBatches) {
  const std::vector<int64_t> labels = {3, 1, 2, 0, 0, 3, 2};
  // Right are 0, 3 and 5; among two classes 1 and 2 too; among three 6 too.
  for (const int64_t batch : {1, 2, 3, 4, 7, 8})
    for (const LastBatch last_batch : {LastBatch::keep, LastBatch::pad}) {
      SCOPED_TRACE(batch);
      Tested tested({"accuracy:logits,labels", "top2:logits,labels", "top3:logits,labels", "top4:logits,labels"}, {}, batch, last_batch);
      const Status status = tested.test_with(floats(scores, seven), labels_of(labels));
      ASSERT_TRUE(status.ok()) << status.text();
      for (int i = 0; i < 2; ++i) {  // the second evaluation counts anew
        EXPECT_EQ(tested.mean("accuracy"), 3.0 / 7);
        EXPECT_EQ(tested.mean("top2"), 5.0 / 7);
        EXPECT_EQ(tested.mean("top3"), 6.0 / 7);
        EXPECT_EQ(tested.mean("top4"), 6.0 / 7) << "a NaN is no order";
      }
    }
}

// Among equal logits the class with the smallest number comes first.
TEST(Metrics, EqualLogitsAreInTheOrderOfTheirClasses) {
  const std::vector<float> equal(16, 0.5F);
  const std::vector<int64_t> labels = {0, 1, 2, 3};
  Tested tested({"top1:logits,labels", "top2:logits,labels", "top3:logits,labels", "top4:logits,labels"}, {});
  ASSERT_TRUE(tested.test_with(floats(equal, {4, 4}), labels_of(labels)).ok());
  EXPECT_EQ(tested.mean("top1"), 0.25);
  EXPECT_EQ(tested.mean("top2"), 0.5);
  EXPECT_EQ(tested.mean("top3"), 0.75);
  EXPECT_EQ(tested.mean("top4"), 1);
}

TEST(Metrics, InfiniteLogitsAreNumbersAndNansAreNot) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {inf, 0, 0, 0, -inf, -inf, -inf, -inf, 0, 0, 0, nan, nan, 1, 0, 0};
  const std::vector<int64_t> labels = {0, 0, 0, 0};
  Tested tested({"accuracy:logits,labels"}, {});
  ASSERT_TRUE(tested.test_with(floats(odd, {4, 4}), labels_of(labels)).ok());
  EXPECT_EQ(tested.mean("accuracy"), 0.5);
}

// Equal numbers in each dtype that logits may have, and labels in each form that these may have, count alike.
TEST(Metrics, TakeEachDtypeAndFormOfLabels) {
  const std::vector<float> numbers = {0, 1, 2, 3, 3, 2, 1, 0, 5, 1, 5, 0, 1, 1, 1, 1, 0, 0, 9, 0};
  const std::vector<int64_t> labels = {3, 1, 0, 1, 2};
  const std::vector<int32_t> narrow(labels.begin(), labels.end());
  const std::vector<double> f64(numbers.begin(), numbers.end());
  std::vector<uint16_t> f16, bf16;
  for (const float number : numbers) f16.push_back(f16_of_float(number)), bf16.push_back(bf16_of_float(number));
  const Shape five = {5, 4};
  const std::vector<std::pair<const char*, TensorView>> types = {{"f32", floats(numbers, five)},
                                                                 {"f64", testing_nets::view(f64.data(), DType::f64, five)},
                                                                 {"f16", testing_nets::view(f16.data(), DType::f16, five)},
                                                                 {"bf16", testing_nets::view(bf16.data(), DType::bf16, five)}};
  for (const auto& [dtype, view] : types)
    for (const char* const name : {"labels", "same"}) {  // an input, and an output
      SCOPED_TRACE(std::string(dtype) + " " + name);
      Form form;
      form.dtype = dtype;
      const auto accuracy = [&](const TensorView& of) {
        Tested tested({std::string("accuracy:logits,") + name}, form);
        const Status status = tested.test_with(view, of);
        EXPECT_TRUE(status.ok()) << status.text();
        return status.ok() ? tested.mean("accuracy") : -1;
      };
      EXPECT_EQ(accuracy(labels_of(labels)), 0.6);
      form.labels_dims = R"(["N", 1])";
      EXPECT_EQ(accuracy(testing_nets::view(labels.data(), DType::i64, Shape{5, 1})), 0.6);
      form.label_dtype = "i32";
      EXPECT_EQ(accuracy(testing_nets::view(narrow.data(), DType::i32, Shape{5, 1})), 0.6);
    }
}

// Each token counts, but for those of samples that pad.
TEST(Metrics, OfSequencesCountEachLabel) {
  const std::vector<float> numbers = {1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0};
  const std::vector<int64_t> labels = {0, 1, 1, 1, 0, 0};  // the fourth is wrong
  Form form{R"(["N", 2, 2])", R"(["N", 2])"};
  for (const LastBatch last_batch : {LastBatch::keep, LastBatch::pad}) {
    Tested tested({"accuracy:logits,labels"}, form, 2, last_batch);
    const Status status = tested.test_with(floats(numbers, {3, 2, 2}), testing_nets::view(labels.data(), DType::i64, Shape{3, 2}));
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(tested.mean("accuracy"), 5.0 / 6);
  }
}

// A brute force sorts the classes by their logits.
TEST(Metrics, TopKIsWhatSortingSays) {
  std::mt19937 random(7);
  constexpr int64_t count = 101, classes = 13;
  std::vector<float> numbers(count * classes);
  for (float& number : numbers) number = static_cast<float>(random() % 5);  // with many that are equal
  std::vector<int64_t> labels(count);
  for (int64_t& label : labels) label = static_cast<int64_t>(random() % classes);
  for (const int64_t k : {1, 2, 5, 13}) {
    int64_t right = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> order(classes);
      for (int64_t c = 0; c < classes; ++c) order[static_cast<size_t>(c)] = c;
      const float* const row = numbers.data() + i * classes;
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
      right += std::find(order.begin(), order.begin() + k, labels[static_cast<size_t>(i)]) != order.begin() + k ? 1 : 0;
    }
    const std::string name = "top" + std::to_string(k);
    Tested tested({name + ":logits,labels"}, {R"(["N", 13])"}, 8);
    ASSERT_TRUE(tested.test_with(floats(numbers, {count, classes}), labels_of(labels)).ok());
    EXPECT_EQ(tested.mean(name), static_cast<double>(right) / count);
  }
}

// The test net's loss is the number of samples of a batch that do not pad it.
TEST(Metrics, PerplexityIsOfTheMeanOverAllSamples) {
  const std::vector<int64_t> labels(7, 0);
  for (const LastBatch last_batch : {LastBatch::keep, LastBatch::pad}) {
    Tested tested({"perplexity:loss"}, {}, 4, last_batch);
    ASSERT_TRUE(tested.test_with(floats(scores, seven), labels_of(labels)).ok());
    EXPECT_NEAR(tested.mean("loss"), (4.0 * 4 + 3.0 * 3) / 7, 1e-12);
    EXPECT_NEAR(tested.mean("perplexity"), std::exp((4.0 * 4 + 3.0 * 3) / 7), 1e-12);
  }
}

TEST(Metrics, DecideWhichTestIsTheBest) {
  const std::vector<int64_t> labels = {3, 1, 2, 0, 0, 3, 2};
  Tested tested({"top2:logits,labels"}, {});
  tested.options.best.mean = "top2";
  tested.options.best.largest = true;
  std::vector<std::string> names;
  tested.options.on_evaluation = [&](const Evaluation& of) {
    for (const auto& [name, value] : of.means) names.push_back(name);
    return Status();
  };
  ASSERT_TRUE(tested.test_with(floats(scores, seven), labels_of(labels)).ok());
  ASSERT_TRUE(tested.trainer->run().ok());
  ASSERT_TRUE(tested.trainer->best());
  EXPECT_EQ(tested.trainer->best()->second, 5.0 / 7);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "top2"})) << "after the net's own";
}

TEST(Metrics, ALabelThatIsNoClassNamesTheSample) {
  const auto said = [](std::vector<int64_t> labels, LastBatch last_batch) {
    Tested tested({"accuracy:logits,labels"}, {}, 3, last_batch);
    EXPECT_TRUE(tested.test_with(floats(scores, seven), labels_of(labels)).ok()) << "labels are read when they are tested";
    const Status status = tested.trainer->evaluate().status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.text();
  };
  for (const LastBatch last_batch : {LastBatch::keep, LastBatch::pad}) {
    EXPECT_NE(said({3, 1, 2, 0, 4, 3, 2}, last_batch).find("label 4 of sample 4 is no class"), std::string::npos);
    EXPECT_NE(said({3, 1, 2, 0, 0, 3, -1}, last_batch).find("label -1 of sample 6 is no class"), std::string::npos);
    EXPECT_NE(said({INT64_MAX, 1, 2, 0, 0, 3, 0}, last_batch).find("of sample 0 is no class"), std::string::npos);
  }
}

TEST(Metrics, TextsOfAnotherFormAreRefusedWhenTheTrainerIsMade) {
  const auto refused = [](const std::vector<std::string>& metrics) {
    Status status = Tested(metrics, {}).make().status();
    EXPECT_FALSE(status.ok()) << metrics.back();
    EXPECT_NE(status.text().find("metric \"" + metrics.back() + "\""), std::string::npos) << status.text();
    return status;
  };
  for (const char* const text : {"f1:logits,labels", "", "accuracies:logits,labels", "top:logits,labels", "topk:logits,labels",
                                 "top-1:logits,labels", ":logits,labels"}) {
    const Status status = refused({text});
    EXPECT_EQ(status.code(), Code::unknown_name) << text;
    EXPECT_NE(status.diagnostic().hint.find("accuracy:LOGITS,LABELS, topK:LOGITS,LABELS"), std::string::npos) << status.text();
  }
  for (const char* const text :
       {"accuracy", "accuracy:", "accuracy:logits", "accuracy:logits,", "accuracy:,labels", "perplexity",
        "perplexity:", "top0:logits,labels", "top01:logits,labels", "top99999999999999999999:logits,labels", "top5"})
    EXPECT_EQ(refused({text}).code(), Code::invalid_argument) << text;
  EXPECT_EQ(refused({"accuracy:logits,labels", "accuracy:wide,same"}).code(), Code::duplicate_name);
}

TEST(Metrics, WhatDoesNotFitTheTestNetIsRefusedBeforeTheFirstStep) {
  const std::vector<int64_t> labels = {3, 1, 2, 0, 0, 3, 2};
  const auto refused = [&](const std::string& metric, Code code, const std::string& said, const Form& form = {}) {
    SCOPED_TRACE(metric);
    Tested tested({metric}, form);
    const Shape shape = form.labels_dims == R"(["N"])" ? Shape{7} : Shape{7, 1, 1};
    const Status status = tested.test_with(floats(scores, seven), testing_nets::view(labels.data(), DType::i64, shape));
    EXPECT_EQ(status.code(), code) << status.text();
    EXPECT_NE(status.text().find("metric \"" + metric + "\""), std::string::npos) << status.text();
    EXPECT_NE(status.text().find(said), std::string::npos) << status.text();
  };
  refused("accuracy:scores,labels", Code::unknown_name, "\"logits\"");
  refused("accuracy:logits,label", Code::unknown_name, "\"labels\"");
  refused("accuracy:logits,zzz", Code::unknown_name, "may be labels: \"labels\"");
  refused("perplexity:losses", Code::unknown_name, "\"loss\"");
  refused("perplexity:logits", Code::shape_mismatch, "f32 [3, 4]");
  refused("accuracy:loss,labels", Code::shape_mismatch, "f32 []");
  refused("accuracy:wide,labels", Code::shape_mismatch, "f32 [3]");
  refused("accuracy:same,labels", Code::dtype_mismatch, "i64 [3]");
  refused("accuracy:logits,wide", Code::dtype_mismatch, "f32 [3]");
  refused("accuracy:logits,scores", Code::dtype_mismatch, "f32 [3, 4]");
  refused("top5:logits,labels", Code::shape_mismatch, "fewer than 5 classes");
  refused("accuracy:logits,labels", Code::shape_mismatch, "i64 [3, 1, 1]", {R"(["N", 4])", R"(["N", 1, 1])"});
  Tested without({"accuracy:logits,labels"}, {});
  without.options.best.mean = "top5";
  EXPECT_EQ(without.test_with(floats(scores, seven), labels_of(labels)).code(), Code::unknown_name) << "there is no such metric";
}

// Rows that a run alone selects: how many these are is checked when it has ended.
TEST(Metrics, TakeOutputsWhoseExtentsARunDecides) {
  const std::vector<int64_t> labels = {3, 1, 2, 0, 0, 3, 2};
  Form form;
  form.chosen_by = "all";
  Tested tested({"accuracy:chosen,labels"}, form);
  const Status status = tested.test_with(floats(scores, seven), labels_of(labels));
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(tested.mean("accuracy"), 3.0 / 7);
  form.chosen_by = "odd";  // labels that are not 0
  Tested fewer({"accuracy:chosen,labels"}, form);
  ASSERT_TRUE(fewer.test_with(floats(scores, seven), labels_of(labels)).ok());
  const Status refused = fewer.trainer->evaluate().status();
  EXPECT_EQ(refused.code(), Code::shape_mismatch);
  EXPECT_NE(refused.text().find("\"chosen\" is f32 [1, 4], of a batch of 3 samples"), std::string::npos) << refused.text();
}

// A metric may not take the place of a number that the net computes itself. After a refusal evaluations are what they were.
TEST(Metrics, AMeanOfTheNetKeepsItsName) {
  const Points points(12);
  const LineSession line;
  Nets nets = line.nets;
  PredictorOptions how;
  how.outputs = {"loss"};
  how.rename = {{"loss", "perplexity"}};
  ASSERT_TRUE(nets.add_predictor("line", how).ok());
  const Session all = testing_line::open(line.runtime, nets);
  TrainerOptions options;
  options.metrics = {"perplexity:loss"};
  options.batch = 4;
  Trainer trainer = LineSession::value_of(Trainer::create(*all.net("train"), points.dataset(), options));
  ASSERT_TRUE(trainer.test_with(*all.net("line"), points.dataset()).ok());
  const auto before = trainer.evaluate();
  ASSERT_TRUE(before.ok()) << before.status().text();
  ASSERT_EQ(before->means.size(), 2u);
  const Status refused = trainer.test_with(*all.net("predict"), points.dataset());
  EXPECT_EQ(refused.code(), Code::duplicate_name) << refused.text();
  const auto after = trainer.evaluate();
  ASSERT_TRUE(after.ok()) << after.status().text();
  EXPECT_EQ(after->means, before->means);
}

}  // namespace
}  // namespace heddle::testing_train
