// Tables from which rows are taken: gradients by rows, of several lookups, refusals, and training with them.
#include "derive/derived_run.h"
#include "derive/training_net.h"

namespace heddle {
namespace {

using namespace testing_derive;
using Ints = std::vector<int64_t>;

// A table of `rows` rows of two numbers, 1, 2, 3, ..., and lookups whose indices are inputs. Each element of a lookup has its own weight in
// the loss, which is an input too: the weight is its gradient.
class Lookups : public NetBuilder {
 public:
  explicit Lookups(int64_t rows) : NetBuilder("lookups") {
    std::vector<double> content;
    for (int64_t i = 0; i < 2 * rows; ++i) content.push_back(static_cast<double>(i + 1));
    table = variable("table", blob(Shape{rows, 2}, content), true);
  }
  // Returns the weighted sum of the rows that were looked up.
  ValueId lookup(const std::string& name, int64_t count, DType indices = DType::i64, const std::string& device = {}) {
    const ValueId rows = on(device, add1("Gather", name, {table, input(name + ".indices", indices, Shape{count})}));
    return on(device, weighted(name, rows, Shape{count, 2}));
  }
  ValueId weighted(const std::string& name, ValueId value, const Shape& shape) {
    const ValueId product = add1("Mul", name + ".product", {value, input(name + ".weights", DType::f64, shape)});
    return add1("ReduceSum", name + ".sum", {product}, {{"keepdims", int64_t{0}}});
  }
  ValueId on(const std::string& device, ValueId value) {
    net()[net()[value].producer].device = device;
    return value;
  }
  void loss(ValueId a, ValueId b) { output(add1("Add", "loss", {a, b})); }
  void loss(ValueId a) { output(add1("Identity", "loss", {a})); }

  ValueId table;
};

// The inputs of a run, in the order in which they are added.
class LookupInputs {
 public:
  LookupInputs& indices(const Ints& values) {
    blobs_.push_back(Blob::copy_of(DType::i64, Shape{static_cast<int64_t>(values.size())}, values.data()));
    return *this;
  }
  LookupInputs& narrow_indices(const std::vector<int32_t>& values) {
    blobs_.push_back(Blob::copy_of(DType::i32, Shape{static_cast<int64_t>(values.size())}, values.data()));
    return *this;
  }
  LookupInputs& weights(const Shape& shape, const std::vector<double>& values) {
    blobs_.push_back(blob(shape, values));
    return *this;
  }
  std::vector<TensorView> views() const {
    std::vector<TensorView> all;
    for (const auto& b : blobs_) all.push_back(testing_nets::view(b->data, b->dtype, b->shape));
    return all;
  }

 private:
  std::vector<std::shared_ptr<const Blob>> blobs_;
};

template <class T>
std::vector<T> content_of(const Tensor& tensor) {
  const auto* const data = static_cast<const T*>(tensor.data());
  return {data, data + tensor.shape().element_count()};
}

DifferentiateOptions of_table() {
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.outputs = true;
  return options;
}

struct Rows {
  Ints indices;
  std::vector<double> values;
};
// Returns the table's gradient, which follows the loss in the outputs: values, then their indices.
Rows rows_of(const DerivedNet& made, const LookupInputs& inputs) {
  EXPECT_EQ(made.gradients[0].dense, "");
  EXPECT_EQ(made.net.sparse_links.size(), 1u);
  Session session = testing_nets::open(testing_nets::runtime(), Net(made.net));
  const auto ran = session.run(inputs.views());
  EXPECT_TRUE(ran.ok()) << ran.status().text();
  if (!ran.ok() || ran->size() != 3) return {};
  EXPECT_EQ((*ran)[2].dtype(), DType::i64);
  return {content_of<int64_t>((*ran)[2]), content_of<double>((*ran)[1])};
}

// FEATURES E4. The lookup that the loss reads first is the second one.
TEST(SparseGradients, LookupsOfATableStandOneBehindTheOtherInTheirOrder) {
  Lookups b(5);
  const ValueId first = b.lookup("first", 2), second = b.lookup("second", 3);
  b.loss(second, first);
  const auto made = derived(b.finish(), of_table());
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].values, "table.gradient.values");
  const LookupInputs inputs =
      LookupInputs().indices({4, 0}).weights(Shape{2, 2}, {1, 2, 3, 4}).indices({1, 4, 1}).weights(Shape{3, 2}, {5, 6, 7, 8, 9, 10});
  const Rows rows = rows_of(*made, inputs);
  EXPECT_EQ(rows.indices, (Ints{4, 0, 1, 4, 1}));
  EXPECT_EQ(rows.values, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

// The gradient does not copy the indices, whatever they count from.
TEST(SparseGradients, IndicesAreTheForwardsOwn) {
  Lookups b(5);
  b.loss(b.lookup("rows", 3));
  const auto made = derived(b.finish(), of_table());
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Rows rows = rows_of(*made, LookupInputs().indices({-1, 0, -5}).weights(Shape{3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(rows.indices, (Ints{-1, 0, -5}));
  EXPECT_EQ(rows.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(SparseGradients, IndicesOfTwoWidthsAreJoined) {
  Lookups b(5);
  const ValueId narrow = b.lookup("narrow", 2, DType::i32), wide = b.lookup("wide", 1);
  b.loss(narrow, wide);
  const auto made = derived(b.finish(), of_table());
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Rows rows =
      rows_of(*made, LookupInputs().narrow_indices({3, -1}).weights(Shape{2, 2}, {1, 2, 3, 4}).indices({2}).weights(Shape{1, 2}, {5, 6}));
  EXPECT_EQ(rows.indices, (Ints{3, -1, 2}));
  EXPECT_EQ(rows.values, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

// A value of another name can be the same variable.
TEST(SparseGradients, ATableThatIsWantedByTwoNamesHasBoth) {
  Lookups b(5);
  b.rename(b.table, "first version");
  b.loss(b.lookup("rows", 1));
  DifferentiateOptions options = of_table();
  options.wanted = {"table", "first version"};
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].values, "table.gradient.values");
  EXPECT_EQ(made->gradients[1].values, "first version.gradient.values");
  EXPECT_EQ(made->gradients[0].indices, made->gradients[1].indices);
}

// Uses rows of the table, and the table as a whole.
Net both_ways() {
  Lookups b(4);
  const ValueId rows = b.lookup("rows", 3);
  const ValueId turned = b.add1("Transpose", "turned", {b.table});
  b.loss(rows, b.weighted("whole", turned, Shape{2, 4}));
  return b.finish();
}

TEST(SparseGradients, ATableThatIsReadAsAWholeTooIsRefusedUnlessDenseIsAskedFor) {
  DifferentiateOptions options = of_table();
  const std::string said = refused(both_ways(), options);
  for (const char* part : {"\"rows\" (Gather)", "\"turned\" (Transpose)", "\"table\"", "ask for a dense gradient"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  options.dense = {"table"};
  const auto made = derived(both_ways(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ(made->gradients[0].dense, "table.gradient");
  EXPECT_TRUE(made->net.sparse_links.empty());
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  const LookupInputs inputs =
      LookupInputs().indices({2, 0, -2}).weights(Shape{3, 2}, {1, 1, 2, 2, 3, 3}).weights(Shape{2, 4}, {10, 20, 30, 40, 50, 60, 70, 80});
  const auto ran = session.run(inputs.views());
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  EXPECT_EQ(content_of<double>((*ran)[1]), (std::vector<double>{12, 52, 20, 60, 34, 74, 40, 80}));
}

// FEATURES E6.
TEST(SparseGradients, RowsThatAreNamedTwiceAreAddedInADenseGradient) {
  Lookups b(4);
  b.loss(b.lookup("rows", 3));
  DifferentiateOptions options = of_table();
  options.dense = {"table"};
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  const LookupInputs inputs = LookupInputs().indices({2, 0, 2}).weights(Shape{3, 2}, {1, 1, 2, 2, 3, 3});
  const auto ran = session.run(inputs.views());
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  EXPECT_EQ(content_of<double>((*ran)[1]), (std::vector<double>{2, 2, 0, 0, 4, 4, 0, 0}));
}

TEST(SparseGradients, LookupsOfOneTableOnTwoDevicesAreRefused) {
  const auto net = [](const std::string& first, const std::string& second) {
    Lookups b(4);
    const ValueId a = b.lookup("first", 1, DType::i64, first), c = b.lookup("second", 1, DType::i64, second);
    b.loss(a, c);
    return b.finish();
  };
  const std::string said = refused(net("cpu:0", "sim:0"), of_table(), {"../sim"});
  for (const char* part : {"\"first\" (Gather)", "\"second\" (Gather)", "\"table\"", "\"cpu:0\"", "\"sim:0\"", "on one device"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_NE(refused(net("", "cpu:0"), of_table()).find("on two devices, the session's own and \"cpu:0\""), std::string::npos);
  const auto made = derived(net("sim:0", "sim:0"), of_table(), {"../sim"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Net& with = made->net;
  EXPECT_EQ(with[with[*with.find_value("table.gradient.values")].producer].device, "sim:0");
}

Result<Net> trained_table(const Net& net, const std::string& optimizer, double rate,
                          const std::vector<std::pair<std::string, double>>& settings = {}, const std::vector<std::string>& dense = {}) {
  TrainingOptions options;
  options.dense = dense;
  options.losses = {"loss"};
  options.optimizer = optimizer;
  options.settings = settings;
  HEDDLE_TRY(options.learning_rate, LearningRate::parse(rate, "constant"));
  const auto registry = testing_stages::registry();
  const auto evaluator = make_registry_evaluator(registry);
  HEDDLE_TRY(const Net resolved, resolve(net, registry));
  return training_net(resolved, registry, *evaluator, options);
}

std::vector<char> bytes_of(const Session& session, const std::string& variable) {
  const auto read = session.read_variable(variable);
  EXPECT_TRUE(read.ok()) << read.status().text();
  const auto* const data = static_cast<const char*>(read->data());
  return {data, data + read->byte_size()};
}

// FEATURES E7: with the gradients 1 and 2 of one row applied one after the other, 0.81056 would be left; with their sum it is 0.9.
TEST(SparseTraining, GradientsOfOneRowAreAddedBeforeAdagradSeesThem) {
  for (const bool of_two_lookups : {false, true}) {
    NetBuilder b("duplicates");
    const ValueId table = b.variable("table", blob(Shape{2, 1}, {5, 1}), true);
    const auto sum_of = [&](const std::string& name, const Ints& indices, const std::vector<double>& weights) {
      const auto count = static_cast<int64_t>(indices.size());
      const ValueId rows = b.add1("Gather", name, {table, b.constant_ints(name + ".indices", indices)});
      const ValueId product = b.add1("Mul", name + ".product", {rows, b.constant(name + ".weights", blob(Shape{count, 1}, weights))});
      return b.add1("ReduceSum", name + ".sum", {product}, {{"keepdims", int64_t{0}}});
    };
    if (of_two_lookups)
      b.add1("Add", "loss", {sum_of("first", {1}, {1}), sum_of("second", {-1}, {2})});
    else
      b.add1("Identity", "loss", {sum_of("both", {1, -1}, {1, 2})});
    auto net = trained_table(b.finish(), "adagrad", 0.1, {{"epsilon", 1e-5}});
    ASSERT_TRUE(net.ok()) << net.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*net));
    const auto ran = session.run(std::vector<TensorView>());
    ASSERT_TRUE(ran.ok()) << ran.status().text();
    const std::vector<double> left = content_of<double>(*session.read_variable("table"));
    EXPECT_EQ(left[0], 5);
    EXPECT_NEAR(left[1], 1 - 0.1 * 3 / (3 + 1e-5), 1e-8);  // 0.9000003
    EXPECT_EQ(content_of<double>(*session.read_variable("table.squares")), (std::vector<double>{0, 9}));
  }
}

// One number for each row: the mean of the row's squares. Variables that have no gradient by rows keep one for each weight.
TEST(SparseTraining, AdagradMayHaveOneSumForEachRow) {
  NetBuilder b("rowwise");
  const ValueId table = b.variable("table", blob(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), true);
  const ValueId rows = b.add1("Gather", "rows", {table, b.constant_ints("indices", {2, 0, 2})});
  const ValueId weights = b.variable("weights", blob(Shape{3, 2}, {1, 0, 3, 4, 1, 0}), true);
  b.add1("ReduceSum", "loss", {b.add1("Mul", "product", {rows, weights})}, {{"keepdims", int64_t{0}}});
  const Net net = b.finish();
  auto trains = trained_table(net, "adagrad", 0.5, {{"epsilon", 0}, {"rowwise", 1}});
  ASSERT_TRUE(trains.ok()) << trains.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
  ASSERT_TRUE(session.run(std::vector<TensorView>()).ok());
  // The gradients are 3, 4 of row 0 and 1 + 1, 0 of row 2.
  EXPECT_EQ(content_of<double>(*session.read_variable("table.squares")), (std::vector<double>{12.5, 0, 2}));
  const std::vector<double> left = content_of<double>(*session.read_variable("table"));
  const std::vector<double> expected = {1 - 1.5 / std::sqrt(12.5), 2 - 2 / std::sqrt(12.5), 3, 4, 5 - 1 / std::sqrt(2.0), 6};
  for (size_t i = 0; i < left.size(); ++i) EXPECT_DOUBLE_EQ(left[i], expected[i]) << i;
  EXPECT_EQ(content_of<double>(*session.read_variable("weights.squares")).size(), 6u);
  EXPECT_NE(trained_table(net, "adagrad", 0.5, {{"rowwise", 2}}).status().text().find("rowwise is 2"), std::string::npos);
}

// For a gradient by rows, the row of each index is clipped (docs/training.md).
TEST(SparseTraining, RowsAreClippedBeforeThoseOfOneRowAreAdded) {
  NetBuilder b("clipped");
  const ValueId table = b.variable("table", blob(Shape{2, 1}, {0, 0}), true);
  const ValueId rows = b.add1("Gather", "rows", {table, b.constant_ints("indices", {1, 1, 1})});
  const ValueId weights = b.constant("weights", blob(Shape{3, 1}, {5, 0.5, -7}));
  b.add1("ReduceSum", "loss", {b.add1("Mul", "product", {rows, weights})}, {{"keepdims", int64_t{0}}});
  const Net net = b.finish();
  for (const auto& [dense, expected] : {std::pair(false, -0.5), std::pair(true, 1.0)}) {
    TrainingOptions options;
    options.losses = {"loss"};
    options.optimizer = "sgd";
    options.clip_value = 1;
    if (dense) options.dense = {"table"};
    options.learning_rate = *LearningRate::parse(1, "constant");
    auto trains = trained(net, options);
    ASSERT_TRUE(trains.ok()) << trains.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
    ASSERT_TRUE(session.run(std::vector<TensorView>()).ok());
    EXPECT_EQ(content_of<double>(*session.read_variable("table"))[1], expected);
  }
}

// FEATURES E5. The lookup is computed last; a variable that another loss updates is independent of it.
TEST(SparseTraining, AnIndexOutOfBoundsLeavesAllVariablesAsTheyWere) {
  const auto net = [] {
    Lookups b(5);
    const ValueId w = b.variable("w", blob(Shape{2}, {1, 2}), true);
    const ValueId beside = b.add1("ReduceSum", "beside", {b.add1("Mul", "squares", {w, w})}, {{"keepdims", int64_t{0}}});
    const ValueId rows = b.lookup("rows", 3);
    b.loss(beside, rows);
    return b.finish();
  };
  for (const char* optimizer : {"sgd", "momentum", "adagrad", "adam"})
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(std::string(optimizer) + ", threads: " + std::to_string(threads));
      auto trains = trained_table(net(), optimizer, 0.125);
      ASSERT_TRUE(trains.ok()) << trains.status().text();
      Session session = testing_nets::open(testing_nets::runtime(threads), std::move(*trains));
      const auto run = [&](const Ints& indices) {
        return session.run(LookupInputs().indices(indices).weights(Shape{3, 2}, {1, 2, 3, 4, 5, 6}).views());
      };
      const auto all = [&] {
        std::vector<std::vector<char>> contents;
        for (const std::string& name : session.variables()) contents.push_back(bytes_of(session, name));
        return contents;
      };
      const auto fresh = all();
      ASSERT_TRUE(run({0, 4, -1}).ok());
      const auto before = all();
      EXPECT_NE(before, fresh);
      for (const int64_t index : {int64_t{5}, int64_t{-6}, INT64_MAX, INT64_MIN}) {
        const auto failed = run({0, index, 1});
        ASSERT_FALSE(failed.ok()) << index;
        const std::string said = failed.status().text();
        for (const std::string& part :
             {std::string("\"rows\""), std::string("Gather"), "index " + std::to_string(index) + " ", std::string("[-5, 4]")})
          EXPECT_NE(said.find(part), std::string::npos) << said;
        EXPECT_EQ(all(), before) << index;
      }
      EXPECT_TRUE(run({0, 4, -1}).ok());
      EXPECT_NE(all(), before);
    }
}

// Rows that no lookup names keep their values and their states.
TEST(SparseTraining, RowsThatAreNotLookedUpStay) {
  Lookups b(4);
  b.loss(b.lookup("rows", 2));
  auto trains = trained_table(b.finish(), "momentum", 0.5, {{"momentum", 0.5}, {"weight_decay", 0.25}});
  ASSERT_TRUE(trains.ok()) << trains.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
  for (const Ints& indices : {Ints{1, 1}, Ints{-1, 1}})
    ASSERT_TRUE(session.run(LookupInputs().indices(indices).weights(Shape{2, 2}, {1, 0, 2, 4}).views()).ok());
  // Row 1: first the gradients 3, 4 and 0.75, 1 from its decay, then 2, 4 and 0.28125, 0.375. Row 3: 1, 0 and 1.75, 2.
  EXPECT_EQ(content_of<double>(*session.read_variable("table.velocity")), (std::vector<double>{0, 0, 4.15625, 6.875, 0, 0, 2.75, 2}));
  EXPECT_EQ(content_of<double>(*session.read_variable("table")), (std::vector<double>{1, 2, -0.953125, -1.9375, 5, 6, 5.625, 7}));
}

// Row 1, named twice, moves by the sum of its values; the other rows keep their values, and the optimizer's state.
TEST(SparseTraining, EveryOptimizerUpdatesTheRowsThatAreLookedUp) {
  for (const Optimizer& optimizer : optimizers()) {
    Lookups b(4);
    b.loss(b.lookup("rows", 2));
    auto trains = trained_table(b.finish(), optimizer.name, 0.5);
    ASSERT_TRUE(trains.ok()) << optimizer.name << ": " << trains.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), std::move(*trains));
    ASSERT_TRUE(session.run(LookupInputs().indices({1, 1}).weights(Shape{2, 2}, {1, 0, 2, 4}).views()).ok()) << optimizer.name;
    const std::vector<double> table = content_of<double>(*session.read_variable("table"));
    for (const size_t i : {0, 1, 4, 5, 6, 7}) EXPECT_EQ(table[i], static_cast<double>(i + 1)) << optimizer.name;
    for (const char* const state : optimizer.state)
      for (const size_t i : {0, 1, 4, 5, 6, 7})
        EXPECT_EQ(content_of<double>(*session.read_variable(std::string("table.") + state))[i], 0) << optimizer.name << " " << state;
    EXPECT_LT(table[2], 3) << optimizer.name;
    EXPECT_LT(table[3], 4) << optimizer.name;
    // The first step of these is the rate times the sum; that of the others has a fixed length whatever the sum.
    if (std::string(optimizer.name) == "sgd" || std::string(optimizer.name) == "momentum") {
      EXPECT_EQ(table[2], 3 - 0.5 * 3) << optimizer.name;
      EXPECT_EQ(table[3], 4 - 0.5 * 4) << optimizer.name;
    }
  }
}

// FEATURES E5: a device reports it as the host does.
TEST(SparseTraining, AnIndexOutOfBoundsOnADeviceNamesItsOperator) {
  Lookups b(5);
  b.loss(b.lookup("rows", 3));
  auto trains = trained_table(b.finish(), "adagrad", 0.125);
  ASSERT_TRUE(trains.ok()) << trains.status().text();
  RuntimeOptions plugins;
  plugins.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  plugins.default_plugins = false;
  const auto runtime = Runtime::create(plugins);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  SessionOptions options;
  options.device = "sim:0";
  Session session = testing_nets::open(*runtime, std::move(*trains), options);
  const auto run = [&](const Ints& indices) {
    return session.run(LookupInputs().indices(indices).weights(Shape{3, 2}, {1, 2, 3, 4, 5, 6}).views());
  };
  const auto ran = run({0, 4, -1});
  ASSERT_TRUE(ran.ok()) << ran.status().text();
  const auto table = bytes_of(session, "table"), squares = bytes_of(session, "table.squares"), step = bytes_of(session, "step");
  const auto failed = run({0, 5, 1});
  ASSERT_FALSE(failed.ok());
  for (const char* part : {"\"rows\"", "Gather", "index 5 ", "[-5, 4]"})
    EXPECT_NE(failed.status().text().find(part), std::string::npos) << failed.status().text();
  EXPECT_EQ(bytes_of(session, "table"), table);
  EXPECT_EQ(bytes_of(session, "table.squares"), squares);
  EXPECT_EQ(bytes_of(session, "step"), step);
}

}  // namespace
}  // namespace heddle
