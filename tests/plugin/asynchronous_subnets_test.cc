// Asynchronous steps in branches and loop bodies: the step around them releases its thread, and continues on any thread with work.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "small_nets.h"
#include "started_crew.h"

namespace heddle {
namespace {

using testing_nets::blob;
using testing_nets::subnet;
using testing_nets::view;

constexpr int64_t rows = 5, columns = 8;
const Shape matrix = {rows, columns};

ValueId matrix_input(NetBuilder& b, const char* name) {
  return b.input(name, DType::f32, matrix);
}
ValueId turns(NetBuilder& b, const std::string& name, int64_t count) {
  return b.constant(name, Blob::copy_of(DType::i64, Shape{}, &count));
}
// Adds the first ports of a Loop's body.
void begin_trip(NetBuilder& body) {
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
}

// Functions that add a subnet operator named `name`, [rows, columns] -> the same. The steps that the crew completes all have number 0.
using Make = ValueId (*)(NetBuilder& b, const std::string& name, ValueId x, Crew& crew);

ValueId branch(NetBuilder& b, const std::string& name, ValueId x, Crew& crew) {
  NetBuilder then_branch("then"), else_branch("else");
  const ValueId taken = matrix_input(then_branch, "x");
  const ValueId softmax = then_branch.add1("Softmax", "softmax", {started(then_branch, "inside", {taken}, crew, 0)});
  then_branch.output(then_branch.add1("Add", "sum", {softmax, then_branch.add1("Exp", "beside", {taken})}));
  else_branch.output(else_branch.add1("Neg", "neg", {matrix_input(else_branch, "x")}));
  const ValueId known = b.add1("Less", name + "less", {b.constant_float(name + "zero", 0), b.constant_float(name + "one", 1)});
  // The condition is not a compile-time constant, as if it were fed.
  const ValueId condition =
      b.add1("And", name + "and",
             {known, b.add1("Less", name + "any",
                            {b.constant_float(name + "low", -1e30F), b.add1("ReduceMax", name + "max", {x}, {{"keepdims", int64_t{0}}})})});
  return b.add1("If", name, {condition, x}, {{"then_branch", subnet(then_branch)}, {"else_branch", subnet(else_branch)}});
}

// A branch in each of three trips; scan outputs and values from outside are read as well.
ValueId loop(NetBuilder& b, const std::string& name, ValueId x, Crew& crew) {
  NetBuilder body("body");
  begin_trip(body);
  const ValueId carried = matrix_input(body, "carried"), outside = matrix_input(body, "outside");
  const ValueId next = started(body, "next", {branch(body, "either", carried, crew), outside}, crew, 0);
  body.output(next);
  body.output(body.add1("Neg", "slice", {next}));
  const auto out =
      b.add("Loop", name, {turns(b, name + "turns", 3), b.constant(name + "yes", Blob::copy_of(DType::boolean, Shape{}, "\1")), x, x}, 2,
            {{"body", subnet(body)}, {"captured", int64_t{1}}});
  return b.add1("Add", name + "sum",
                {out[0], b.add1("ReduceSum", name + "slices", {out[1], b.constant_ints(name + "axis", {0})}, {{"keepdims", int64_t{0}}})});
}

// A Scan over columns, which are copied into slices.
ValueId scan(NetBuilder& b, const std::string& name, ValueId x, Crew& crew) {
  NetBuilder body("body");
  const ValueId state = body.input("state", DType::f32, Shape{rows}), column = body.input("column", DType::f32, Shape{rows});
  const ValueId next = started(body, "next", {state, column}, crew, 0);
  body.output(next);
  body.output(body.add1("Add", "slice", {started(body, "again", {column}, crew, 0), body.add1("Sigmoid", "beside", {column})}));
  const std::vector<int64_t> second = {1};
  const auto out =
      b.add("Scan", name, {b.constant(name + "state", blob(Shape{rows}, 0, 1)), x}, 2,
            {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"scan_input_axes", second}, {"scan_output_axes", second}});
  return b.add1("Add", name + "sum", {out[1], b.add1("Unsqueeze", name + "wide", {out[0], b.constant_ints(name + "axis", {1})})});
}

// A value that grows from trip to trip: neither the loop nor its body is planned.
ValueId growing(NetBuilder& b, const std::string& name, ValueId x, Crew& crew) {
  NetBuilder body("body");
  begin_trip(body);
  const ValueId grown = body.input("grown", DeclaredType{DType::f32, true, {Dim(), Dim::of(columns)}}),
                outside = matrix_input(body, "outside");
  const ValueId more = body.add1("Concat", "more", {grown, outside}, {{"axis", int64_t{0}}});
  body.output(started(body, "next", {more}, crew, 0));
  const auto out =
      b.add("Loop", name, {turns(b, name + "turns", 3), b.constant(name + "yes", Blob::copy_of(DType::boolean, Shape{}, "\1")), x, x}, 1,
            {{"body", subnet(body)}, {"captured", int64_t{1}}});
  const ValueId sum = b.add1("ReduceSum", name + "sums", {out[0], b.constant_ints(name + "axis", {0})}, {{"keepdims", int64_t{1}}});
  return b.add1("Add", name + "sum", {x, sum});
}

// Slices whose extents the body computes.
ValueId found(NetBuilder& b, const std::string& name, ValueId x, Crew& crew) {
  NetBuilder body("body");
  const ValueId state = body.input("state", DType::f32, Shape{1}), row = body.input("row", DType::f32, Shape{columns});
  body.output(body.add1("Add", "next", {state, body.constant("one", blob(Shape{1}, 1, 0))}));
  const ValueId where = body.add1("NonZero", "where", {body.add1("Exp", "positive", {row})});
  body.output(started(body, "places", {body.add1("Cast", "floats", {where}, {{"to", int64_t{1}}})}, crew, 0));
  const auto out = b.add("Scan", name, {b.constant(name + "state", blob(Shape{1}, 0, 0)), x}, 2,
                         {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}});
  const ValueId sum = b.add1("ReduceSum", name + "sums", {out[1]}, {{"keepdims", int64_t{0}}});
  return b.add1("Add", name + "sum", {b.add1("Add", name + "both", {x, sum}), out[0]});
}

constexpr Make makes[] = {branch, loop, scan, growing, found};

// One to three of them, one after another and side by side.
Net random_net(uint64_t seed, Crew& crew) {
  std::mt19937_64 random(seed);
  NetBuilder b("random");
  std::vector<ValueId> values = {matrix_input(b, "x")};
  const uint64_t count = 1 + random() % 3;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    const ValueId x = b.add1("Tanh", name + "bounded", {values[random() % values.size()]});
    values.push_back(makes[random() % std::size(makes)](b, name, x, crew));
    b.output(b.add1("Softmax", name + "out", {values.back()}));
  }
  return b.finish();
}

std::vector<float> content() {
  std::vector<float> x(static_cast<size_t>(matrix.element_count()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) * 0.3F - 0.8F;
  return x;
}

TEST(AsynchronousSubnets, RandomNetsGiveTheResultsOfTheSerialRun) {
  const Runtime serial = runtime_on(nullptr, 1), parallel = runtime_on(nullptr, 3);
  const std::vector<float> x = content();
  int failed = 0, stopped = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crew crew(seed);
    const Net net = random_net(seed, crew);
    uint64_t all = 0;
    crew.fate = [&](int64_t) { return ++all, Fate::early; };
    Session one = testing_nets::open(serial, net), several = testing_nets::open(parallel, net);
    const auto expected = one.run({view(x.data(), DType::f32, matrix)});
    ASSERT_TRUE(expected.ok()) << expected.status().text();
    if (seed % 3 == 0) Internals::of(several).scheduler.shuffle_seed = seed;
    auto context = several.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x.data()).ok());
    std::atomic<uint64_t> begun{0};
    const auto good = [&](int64_t) { return static_cast<Fate>((seed + begun++ * 5) % 3); };
    if (seed % 4 != 0) {
      const Fate fate = seed % 4 == 1 ? Fate::fails : seed % 4 == 2 ? Fate::refused : Fate::aborted;
      const uint64_t bad = seed / 4 % all;
      crew.fate = [&](int64_t) { return begun++ >= bad ? fate : good(0); };
      RunOptions options;
      if (fate == Fate::aborted) options.deadline_ns = 3'000'000;
      const Status status = context->run(options);
      EXPECT_EQ(crew.under_way, 0) << "the run is over, and a step is not";
      ASSERT_FALSE(status.ok());
      if (fate == Fate::aborted)
        EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
      else
        EXPECT_NE(status.text().find("as it was told to"), std::string::npos) << status.text();
      ++(fate == Fate::aborted ? stopped : failed);
    }
    crew.fate = good;
    for (int run = 0; run < 2; ++run) {
      const Status status = context->run();
      ASSERT_TRUE(status.ok()) << status.text();
      for (size_t i = 0; i < context->output_count(); ++i) {
        const TensorView y = context->output(i);
        ASSERT_EQ(std::memcmp(y.data, (*expected)[i].data(), static_cast<size_t>(y.byte_size())), 0) << "output " << i;
      }
    }
  }
  EXPECT_GT(failed, 100);
  EXPECT_GT(stopped, 50);
}

class AsynchronousSubnet : public ::testing::TestWithParam<Make> {};

TEST_P(AsynchronousSubnet, AHundredRunsAreInFlightOnTwoThreadsAndHoldNone) {
  CountingExecutor executor(2);
  Crew crew(7);
  crew.fate = [&](int64_t) { return Fate::held; };
  {
    const Runtime runtime = runtime_on(&executor, 3);
    NetBuilder b("outer");
    const ValueId x = matrix_input(b, "x");
    b.output(b.add1("Neg", "out", {GetParam()(b, "inside", x, crew)}));
    Session session = testing_nets::open(runtime, b.finish());
    const std::vector<float> numbers = content();
    std::vector<Context> contexts = contexts_of(session, 100, numbers.data());
    std::atomic<int> done{0}, good{0}, late{0}, cancelled{0};
    const auto over = [&](const Status& status) {
      good += status.ok() ? 1 : 0;
      late += status.code() == Code::deadline_exceeded ? 1 : 0;
      cancelled += status.code() == Code::cancelled ? 1 : 0;
      ++done;
    };
    for (Context& context : contexts) ASSERT_TRUE(context.run_async(over).ok());
    wait_until([&] { return crew.under_way >= 100; });
    wait_until([&] { return executor.at_work() == 0; });  // no thread waits
    EXPECT_EQ(done, 0);
    wait_until([&] { return crew.release(), done == 100; });  // trip by trip
    EXPECT_EQ(good, 100);
    for (const Context& context : contexts)
      EXPECT_EQ(std::memcmp(context.output(0).data, contexts[0].output(0).data, static_cast<size_t>(context.output(0).byte_size())), 0);
    // Deadlines and cancellations end runs that occupy no thread.
    done = 0;
    for (size_t i = 0; i < contexts.size(); ++i) {
      RunOptions options;
      if (i % 2 == 0) options.deadline_ns = 20'000'000;
      ASSERT_TRUE(contexts[i].run_async(over, options).ok());
    }
    wait_until([&] { return done == 50; });
    for (Context& context : contexts) context.cancel();
    wait_until([&] { return done == 100; });
    EXPECT_EQ(late, 50);
    EXPECT_EQ(cancelled, 50);
    EXPECT_EQ(crew.under_way, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, AsynchronousSubnet, ::testing::ValuesIn(makes), [](const auto& info) {
  return std::string(std::initializer_list<const char*>{"Branch", "Loop", "Scan", "Growing", "Found"}.begin()[info.index]);
});

// Kernels that do not resume, traced runs, and runs that hold a turn.
TEST(AsynchronousSubnets, StepsThatKeepTheirThreadGiveTheSame) {
  const Runtime runtime = runtime_on(nullptr, 2);
  Crew crew(23);
  NetBuilder body("body"), b("outer");
  body.output(started(body, "inside", {matrix_input(body, "x")}, crew, 0));
  const ValueId x = matrix_input(b, "x");
  const std::vector<int64_t> order = {2, 0, 1};
  const ValueId trips = b.add1("Trips", "trips", {b.constant_ints("order", order), x}, {{"body", subnet(body)}}, "boundary");
  b.output(b.add1("ReduceSum", "sum", {trips, b.constant_ints("first", {0})}, {{"keepdims", int64_t{0}}}));
  b.output(loop(b, "loop", x, crew));
  Session session = testing_nets::open(runtime, b.finish());
  const std::vector<float> numbers = content();
  const std::vector<TensorView> inputs = {view(numbers.data(), DType::f32, matrix)};
  const auto expected = session.run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().text();
  EXPECT_FLOAT_EQ(static_cast<const float*>((*expected)[0].data())[1], 3 * numbers[1]);
  size_t seen = 0;
  const StepObserver observer = [&](StepView&) { return ++seen, Status(); };
  RunOptions options;
  options.observer = &observer;
  const auto observed = session.run(inputs, options);
  ASSERT_TRUE(observed.ok()) << observed.status().text();
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::memcmp((*observed)[i].data(), (*expected)[i].data(), numbers.size() * sizeof(float)), 0) << i;
  EXPECT_GE(seen, 4u);
}

TEST(AsynchronousSubnets, RunsThatTakeTurnsEnd) {
  CountingExecutor executor(1);
  Crew crew(29);
  {
    const Runtime runtime = runtime_on(&executor, 2);
    NetBuilder b("updates");
    const ValueId w = b.variable("w", blob(matrix, 0, 0));
    const ValueId next = b.add1("AccumulateAdd", "next", {w, branch(b, "if", matrix_input(b, "x"), crew)}, {}, "heddle");
    b.updates(next, w);
    b.output(next);
    Session session = testing_nets::open(runtime, b.finish());
    const std::vector<float> numbers = content();
    run_by_turns(session, numbers.data());
  }
}

// A kernel's mistake with the run of a subnet ends that run with an error, and has no other effect.
TEST(AsynchronousSubnets, CarelessKernelsAreReported) {
  const Runtime runtime = runtime_on(nullptr, 2);
  for (const auto& [mistake, text] : {std::pair<int64_t, const char*>{0, ""},
                                      {1, "is done, and a subnet of it is under way"},
                                      {2, "is pending, and waits for no subnet"},
                                      {3, "another subnet is asked for than the one that is under way"},
                                      {4, "exception: thrown in the middle"},
                                      {5, "is pending, and has not asked for its subnet again"}}) {
    SCOPED_TRACE(mistake);
    Crew crew(17);
    NetBuilder first("first"), second("second"), b("outer");
    first.output(started(first, "inside", {matrix_input(first, "x")}, crew, 0));
    second.output(second.add1("Neg", "neg", {matrix_input(second, "x")}));
    const ValueId x = matrix_input(b, "x");
    std::atomic<int> pending{0};
    b.output(b.add1("Careless", "careless", {x},
                    {{"mistake", mistake},
                     {"pending", static_cast<int64_t>(reinterpret_cast<intptr_t>(&pending))},
                     {"first", subnet(first)},
                     {"second", subnet(second)}},
                    "started"));
    Session session = testing_nets::open(runtime, b.finish());
    const std::vector<float> numbers = content();
    crew.fate = [](int64_t) { return Fate::held; };
    for (int run = 0; run < 20; ++run) {
      std::atomic<bool> over{false};
      pending = 0;
      std::thread releaser([&] {
        wait_until([&] { return pending > 0 || over; });  // the run has left the subnet
        wait_until([&] { return crew.release(), over.load(); });
      });
      const auto out = session.run({view(numbers.data(), DType::f32, matrix)});
      over = true;
      releaser.join();
      EXPECT_EQ(out.ok(), mistake == 0) << out.status().text();
      if (mistake != 0) {
        EXPECT_NE(out.status().text().find(text), std::string::npos) << out.status().text();
      }
      EXPECT_EQ(crew.under_way, 0);
    }
  }
}

}  // namespace
}  // namespace heddle
