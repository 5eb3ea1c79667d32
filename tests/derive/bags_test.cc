// Lookups in bags: their gradients compared with differences, gradients by rows, and training with them.
#include <cstring>
#include <functional>

#include "derive/derived_run.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;
using Ints = std::vector<int64_t>;
using Inputs = std::vector<ValueId>;

const Attribute mean_mode = {"mode", std::string("mean")}, with_end = {"include_last_offset", int64_t{1}};

ValueId square_of_ints(NetBuilder& b, const char* name, const Shape& shape, const Ints& values) {
  return b.constant(name, Blob::copy_of(DType::i64, shape, values.data()));
}

// Checks the gradient of the sum of squares of a lookup in the first input, whose number of rows is open.
void check_bags(const std::string& name, const std::vector<Shape>& shapes,
                const std::function<ValueId(NetBuilder&, const Inputs&)>& build) {
  NetBuilder b(name);
  Inputs inputs;
  Values at;
  for (size_t i = 0; i < shapes.size(); ++i) {
    DeclaredType type = DeclaredType::of(DType::f64, shapes[i]);
    if (i == 0) type.dims[0] = Dim::named("rows");
    inputs.push_back(b.input("x" + std::to_string(i), type));
    at.push_back(numbers(shapes[i], static_cast<int>(i) + 3));
  }
  const ValueId y = build(b, inputs);
  b.output(b.add1("Mul", "loss", {y, y}));
  expect_gradients(b.finish(), "loss", at, 1e-6, shapes);
}

// An empty bag, and a row that three lookups name.
TEST(BagGradients, AreWhatDifferencesShow) {
  const Ints indices = {3, 1, 1, 0, 1}, offsets = {0, 2, 2};
  const auto bag = [](NetBuilder& b, const Inputs& inputs, std::vector<Attribute> attributes = {}) {
    return b.add1("EmbeddingBag", "y", inputs, std::move(attributes), "heddle");
  };
  check_bags("sum", {Shape{4, 3}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], b.constant_ints("i", indices), b.constant_ints("o", offsets)});
  });
  check_bags("mean", {Shape{4, 3}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], b.constant_ints("i", indices), b.constant_ints("o", offsets)}, {mean_mode});
  });
  check_bags("end", {Shape{4, 3, 2}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], b.constant_ints("i", indices), b.constant_ints("o", {0, 2, 2, 5})}, {mean_mode, with_end});
  });
  check_bags("rows", {Shape{4, 3}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], square_of_ints(b, "i", Shape{2, 3}, {3, 1, 1, 0, 1, 3})}, {mean_mode});
  });
  check_bags("numbers", {Shape{4}, Shape{5}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], b.constant_ints("i", indices), b.constant_ints("o", offsets), x[1]});
  });
  check_bags("weights", {Shape{4, 3}, Shape{5}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], b.constant_ints("i", indices), b.constant_ints("o", offsets), x[1]});
  });
  check_bags("weights of rows", {Shape{4, 3}, Shape{2, 3}}, [&](NetBuilder& b, const Inputs& x) {
    return bag(b, {x[0], square_of_ints(b, "i", Shape{2, 3}, {3, 1, 1, 0, 1, 3}), {}, x[1]});
  });
  for (const char* type : {"SparseLengthsSum", "SparseLengthsMean"})
    check_bags(type, {Shape{4, 3}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1(type, "y", {x[0], b.constant_ints("i", indices), b.constant_ints("l", {2, 0, 3})}, {}, "heddle");
    });
  check_bags("SparseLengthsWeightedSum", {Shape{4, 3}, Shape{5}}, [&](NetBuilder& b, const Inputs& x) {
    return b.add1("SparseLengthsWeightedSum", "y", {x[0], x[1], b.constant_ints("i", indices), b.constant_ints("l", {2, 0, 3})}, {},
                  "heddle");
  });
}

// A table of rows [1, 2], [3, 4], ... from which bags of lookups are summed; every element of a sum has a weight of its own in the loss.
class Bags : public NetBuilder {
 public:
  explicit Bags(int64_t rows) : NetBuilder("bags") {
    std::vector<double> content;
    for (int64_t i = 0; i < 2 * rows; ++i) content.push_back(static_cast<double>(i + 1));
    table = variable("table", blob(Shape{rows, 2}, content), true);
  }
  ValueId weighted(const std::string& name, ValueId value, const Shape& shape, const std::vector<double>& weights) {
    const ValueId product = add1("Mul", name + ".product", {value, constant(name + ".factors", blob(shape, weights))});
    return add1("ReduceSum", name + ".sum", {product}, {{"keepdims", int64_t{0}}});
  }
  ValueId lengths(const std::string& name, ValueId indices, const Ints& counts, const std::vector<double>& weights) {
    const ValueId y = add1("SparseLengthsSum", name, {table, indices, constant_ints(name + ".lengths", counts)}, {}, "heddle");
    return weighted(name, y, Shape{static_cast<int64_t>(counts.size()), 2}, weights);
  }
  void loss(ValueId a) { output(add1("Identity", "loss", {a})); }
  void loss(ValueId a, ValueId b) { output(add1("Add", "loss", {a, b})); }

  ValueId table;
};

DifferentiateOptions of_bags_table() {
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"table"};
  options.outputs = true;
  return options;
}

template <class T>
std::vector<T> numbers_of(const Tensor& tensor) {
  const auto* const data = static_cast<const T*>(tensor.data());
  return {data, data + tensor.shape().element_count()};
}

// Checks the gradient of the table, which follows the loss.
void expect_rows_of_bags(NetBuilder& b, const Ints& indices, const std::vector<double>& values) {
  const auto made = derived(b.finish(), of_bags_table());
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].dense, "");
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  const auto ran = session.run(std::vector<TensorView>());
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  ASSERT_EQ(ran->size(), 3u);
  EXPECT_EQ(numbers_of<double>((*ran)[1]), values);
  EXPECT_EQ(numbers_of<int64_t>((*ran)[2]), indices);
}

TEST(BagGradients, HaveARowForEachLookupAtTheForwardsOwnIndices) {
  Bags b(4);
  const ValueId indices = b.constant_ints("indices", {3, 1, 1, 0});
  b.loss(b.lengths("rows", indices, {2, 0, 2}, {1, 2, 3, 4, 5, 6}));
  const auto made = derived(Net(b.net()), of_bags_table());
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].indices, "indices");
  expect_rows_of_bags(b, {3, 1, 1, 0}, {1, 2, 1, 2, 5, 6, 5, 6});
}

TEST(BagGradients, AreDividedAndWeightedAsTheLookupsWere) {
  Bags b(4);
  const ValueId list = square_of_ints(b, "indices", Shape{2, 2}, {3, 1, 1, 0});
  const ValueId means = b.add1("EmbeddingBag", "means", {b.table, list}, {mean_mode}, "heddle");
  const ValueId factors = b.constant("weights", blob(Shape{2, 2}, {1, 2, 0.5, -1}));
  const ValueId sums = b.add1("EmbeddingBag", "sums", {b.table, list, {}, factors}, {}, "heddle");
  b.loss(b.weighted("means", means, Shape{2, 2}, {2, 4, 6, 8}), b.weighted("sums", sums, Shape{2, 2}, {1, 2, 4, 8}));
  expect_rows_of_bags(b, {3, 1, 1, 0, 3, 1, 1, 0}, {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 2, 4, 2, 4, -4, -8});
}

// FEATURES E4, with a lookup in bags and one of rows.
TEST(BagGradients, StandBehindThoseOfOtherLookupsInTheirOrder) {
  Bags b(5);
  const ValueId rows = b.add1("Gather", "rows", {b.table, b.constant_ints("of rows", {4, 0})});
  const ValueId first = b.weighted("rows", rows, Shape{2, 2}, {1, 2, 3, 4});
  const ValueId second = b.lengths("bags", b.constant_ints("of bags", {1, 4, 1}), {1, 2}, {5, 6, 7, 8});
  b.loss(second, first);
  expect_rows_of_bags(b, {4, 0, 1, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 7, 8});
}

// FEATURES E4.
TEST(BagGradients, OfATableThatIsReadAsAWholeTooAreRefused) {
  Bags b(3);
  const ValueId bags = b.lengths("bags", b.constant_ints("indices", {1}), {1}, {5, 6});
  b.loss(bags, b.weighted("whole", b.add1("Transpose", "turned", {b.table}), Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  const std::string said = refused(b.finish(), of_bags_table());
  for (const char* part : {"\"bags\" (heddle::SparseLengthsSum)", "\"turned\" (Transpose)", "\"table\"", "ask for a dense gradient"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

Result<Net> trained_bags(const Net& net, const std::string& optimizer, double clip_value = 0) {
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.clip_value = clip_value;
  HEDDLE_TRY(options.learning_rate, LearningRate::parse(0.125, "constant"));
  const auto registry = testing_stages::registry();
  const auto evaluator = make_registry_evaluator(registry);
  HEDDLE_TRY(const Net resolved, resolve(net, registry));
  return training_net(resolved, registry, *evaluator, options);
}

std::vector<std::vector<char>> all_variables(const Session& session) {
  std::vector<std::vector<char>> contents;
  for (const std::string& name : session.variables()) {
    const auto read = session.read_variable(name);
    EXPECT_TRUE(read.ok()) << read.status().text();
    const auto* const data = static_cast<const char*>(read->data());
    contents.emplace_back(data, data + read->byte_size());
  }
  return contents;
}

const Node* reader_of_rows(const Net& net) {
  for (const Node& node : net.nodes)
    if (node.type.text().find("UpdateRows") != std::string::npos) return &node;
  return nullptr;
}

// 40 bags of 25 lookups with weights, in 100 rows of 67 numbers.
Net many_bags() {
  NetBuilder b("many");
  const ValueId table = b.variable("table", blob(Shape{100, 67}, numbers(Shape{100, 67}, 1)), true);
  Ints indices;
  for (int64_t i = 0; i < 1000; ++i) indices.push_back(i * i % 97);
  const ValueId weights = b.constant("weights", blob(Shape{40, 25}, numbers(Shape{40, 25}, 2)));
  const ValueId y =
      b.add1("EmbeddingBag", "bags", {table, square_of_ints(b, "indices", Shape{40, 25}, indices), {}, weights}, {}, "heddle");
  b.output(b.add1("ReduceSum", "loss", {b.add1("Mul", "squares", {y, y})}, {{"keepdims", int64_t{0}}}));
  return b.finish();
}

// An update that reads the rows of bags gives the same bits as one whose rows are written out for each lookup, as they are if they are
// clipped.
TEST(BagTraining, RowsThatAreNotWrittenOutGiveTheSameBits) {
  for (const char* optimizer : {"sgd", "momentum", "adagrad", "adam"}) {
    SCOPED_TRACE(optimizer);
    auto direct = trained_bags(many_bags(), optimizer), written = trained_bags(many_bags(), optimizer, 1e300);
    ASSERT_TRUE(direct.ok() && written.ok()) << direct.status().text() << written.status().text();
    const auto is_given = [](const Net& net) {
      const Node& update = *reader_of_rows(net);
      return update.inputs.size() + 1 == update.schema->op->input_count;  // all but `apply`
    };
    EXPECT_TRUE(is_given(*direct));
    EXPECT_FALSE(is_given(*written));
    std::vector<std::vector<std::vector<char>>> left;
    for (const int threads : {1, 3})
      for (const Net* net : {&*direct, &*written}) {
        Session session = testing_nets::open(testing_nets::runtime(threads), Net(*net));
        for (int step = 0; step < 3; ++step) ASSERT_TRUE(session.run(std::vector<TensorView>()).ok());
        left.push_back(all_variables(session));
      }
    for (size_t i = 1; i < left.size(); ++i) EXPECT_EQ(left[i], left[0]) << i;
  }
}

// Nothing is written out for each lookup: the plan has no heddle::BagRows.
TEST(BagTraining, RowsOfBagsAreNotPlanned) {
  auto net = trained_bags(many_bags(), "sgd");
  ASSERT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  const auto plan = session.plan();
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  size_t updates = 0;
  for (const auto& step : (*plan)->steps) {
    EXPECT_EQ(step.type.find("BagRows"), std::string::npos) << step.type;
    updates += step.type.find("SgdUpdateRows") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(updates, 1u);
}

// Weights that are a variable have their next version before the table has: the rows are written out for the table.
TEST(BagTraining, WeightsMayBeTrainedBesideTheirTable) {
  Bags b(3);
  const ValueId weights = b.variable("a weights", blob(Shape{2, 2}, {1, 2, 3, 4}), true);
  const ValueId indices = square_of_ints(b, "indices", Shape{2, 2}, {0, 2, 2, 2});
  const ValueId y = b.add1("EmbeddingBag", "y", {b.table, indices, {}, weights}, {}, "heddle");
  b.loss(b.weighted("y", y, Shape{2, 2}, {1, 2, -1, 1}));
  auto net = trained_bags(b.finish(), "sgd");
  ASSERT_TRUE(net.ok()) << net.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
  ASSERT_TRUE(session.run(std::vector<TensorView>()).ok());
  // Products of rows [1, 2] and [5, 6] with [1, 2] and [-1, 1], and the weights times these, an eighth of each.
  EXPECT_EQ(numbers_of<double>(*session.read_variable("a weights")),
            (std::vector<double>{1 - 5 / 8., 2 - 17 / 8., 3 - 1 / 8., 4 - 1 / 8.}));
  EXPECT_EQ(numbers_of<double>(*session.read_variable("table")),
            (std::vector<double>{1 - 1 / 8., 2 - 2 / 8., 3, 4, 5 - (2 - 7) / 8., 6 - (4 + 7) / 8.}));
}

// FEATURES E5: an index out of bounds is an error that names it, its bound and the operator, and so are lengths that do not match the
// indices; in these cases no variable has changed.
TEST(BagTraining, WhatIsOutOfBoundsLeavesAllVariablesAsTheyWere) {
  const auto net = [] {
    Bags b(5);
    const ValueId w = b.variable("w", blob(Shape{2}, {1, 2}), true);
    const ValueId beside = b.add1("ReduceSum", "beside", {b.add1("Mul", "squares", {w, w})}, {{"keepdims", int64_t{0}}});
    const ValueId indices = b.input("indices", DType::i64, Shape{3}), lengths = b.input("lengths", DType::i64, Shape{2});
    const ValueId y = b.add1("SparseLengthsSum", "lookup", {b.table, indices, lengths}, {}, "heddle");
    b.loss(beside, b.weighted("y", y, Shape{2, 2}, {1, 2, 3, 4}));
    return b.finish();
  };
  for (const char* optimizer : {"sgd", "adagrad"})
    for (const int threads : {1, 2}) {
      auto trains = trained_bags(net(), optimizer);
      ASSERT_TRUE(trains.ok()) << trains.status().text();
      Session session = testing_nets::open(testing_nets::runtime(threads), std::move(*trains));
      const auto run = [&](const Ints& indices, const Ints& lengths) {
        return session.run(
            {testing_nets::view(indices.data(), DType::i64, Shape{3}), testing_nets::view(lengths.data(), DType::i64, Shape{2})});
      };
      ASSERT_TRUE(run({0, 4, 4}, {1, 2}).ok());
      const auto before = all_variables(session);
      const auto expect_refused = [&](const Ints& indices, const Ints& lengths, const std::string& words) {
        const auto failed = run(indices, lengths);
        ASSERT_FALSE(failed.ok());
        for (const std::string& part : {words, std::string("\"lookup\""), std::string("SparseLengthsSum")})
          EXPECT_NE(failed.status().text().find(part), std::string::npos) << failed.status().text();
        EXPECT_EQ(all_variables(session), before) << words;
      };
      for (const int64_t index : {int64_t{5}, int64_t{-1}, INT64_MAX, INT64_MIN})
        expect_refused({0, 1, index}, {1, 2}, "index " + std::to_string(index) + " of lookup 2 is outside [0, 5)");
      expect_refused({0, 1, 2}, {1, 1}, "lengths add up to 2, and there are 3 indices");
      expect_refused({0, 1, 2}, {2, 2}, "lengths add up to 4, and there are 3 indices");
      expect_refused({0, 1, 2}, {4, -1}, "length -1 of bag 1 is negative");
      EXPECT_TRUE(run({0, 4, 4}, {1, 2}).ok());
      EXPECT_NE(all_variables(session), before);
    }
}

}  // namespace
}  // namespace heddle
