#include "heddle/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "session/session_impl.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

std::vector<float> floats_of(const Tensor& t) {
  const auto* p = static_cast<const float*>(t.data());
  return {p, p + t.shape().element_count()};
}

std::vector<float> run_once(Session session, const Shape& shape) {
  const auto x = blob(shape, -1.0f, 0.03f);
  auto result = session.run({{DType::f32, shape, const_cast<std::byte*>(x->data)}});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? floats_of((*result)[0]) : std::vector<float>();
}

TEST(Session, FusedNetAgreesWithTheNetAsItStands) {
  const Runtime r = runtime();
  Session optimized = open(r, convolution_net());
  Session plain = open(r, convolution_net());
  Internals::of(plain).pipeline.transform.fold_batch_normalization = false;
  Internals::of(plain).pipeline.transform.fuse_epilogues = false;
  Internals::of(plain).pipeline.transform.fuse_pointwise = false;
  Internals::of(plain).pipeline.compile.assign_layouts = false;
  const auto a = run_once(optimized, Shape{1, 8, 14, 14}), b = run_once(plain, Shape{1, 8, 14, 14});
  ASSERT_EQ(a.size(), 5u);
  ASSERT_EQ(b.size(), 5u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f);
}

TEST(Session, BindsCallersMemoryWithoutACopy) {
  const Runtime r = runtime();
  Session session = open(r, convolution_net());
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  EXPECT_EQ(context->run().code(), Code::missing_input);
  const auto x = blob(Shape{1, 8, 14, 14}, -1.0f, 0.03f);
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  std::vector<float> out(5, -1.0f);
  ASSERT_TRUE(context->bind_output(0, out.data()).ok());
  ASSERT_TRUE(context->run().ok());
  EXPECT_EQ(out, run_once(session, Shape{1, 8, 14, 14}));
  EXPECT_EQ(context->output(0).data, out.data());
  EXPECT_EQ(context->bind_input(1, x->data).code(), Code::invalid_argument);
}

TEST(Session, RunsInTheCallersTransientBuffer) {
  const Runtime r = runtime();
  Session session = open(r, convolution_net());
  auto bytes = session.transient_bytes();
  ASSERT_TRUE(bytes.ok());
  std::byte* memory = nullptr;
  const auto buffer = Blob::allocate(DType::u8, Shape{*bytes}, &memory);
  EXPECT_EQ(session.prepare_in(memory, *bytes - 1).status().code(), Code::invalid_argument);
  auto context = session.prepare_in(memory, *bytes);
  ASSERT_TRUE(context.ok());
  const auto x = blob(Shape{1, 8, 14, 14}, -1.0f, 0.03f);
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  ASSERT_TRUE(context->run().ok());
  const TensorView out = context->output(0);
  EXPECT_GE(out.data, static_cast<void*>(memory));
  EXPECT_LT(out.data, static_cast<void*>(memory + *bytes));
}

TEST(Session, PlansAreKeyedByShapesAndTrimmed) {
  NetBuilder b("relu");
  DeclaredType type;
  type.dtype = DType::f32;
  type.ranked = true;
  type.dims = {Dim::named("n"), Dim::of(3)};
  b.output(b.add1("Softmax", "y", {b.input("x", type)}));
  const Runtime r = runtime();
  SessionOptions options;
  options.plan_cache = 2;
  Session session = open(r, b.finish(), options);
  EXPECT_EQ(session.prepare().status().code(), Code::unbound_symbol);
  for (const int64_t n : {1, 2, 3, 1, 2, 3}) EXPECT_EQ(run_once(session, Shape{n, 3}).size(), static_cast<size_t>(3 * n));
  EXPECT_EQ(kept_plans(session), 2u);
  session.trim();
  EXPECT_EQ(kept_plans(session), 0u);
  EXPECT_EQ(run_once(session, Shape{4, 3}).size(), 12u);
}

// A net of open length, as a server or a decoding loop runs it.
Net open_length() {
  NetBuilder b("lengths");
  DeclaredType type;
  type.dtype = DType::f32;
  type.ranked = true;
  type.dims = {Dim::named("n"), Dim::of(3)};
  b.output(b.add1("Softmax", "y", {b.input("x", type)}));
  return b.finish();
}

TEST(Session, PlansAreKeptByTheirBytes) {
  const Runtime r = runtime();
  Session session = open(r, open_length());
  // Loops over more lengths than any small number of plans: each is planned once.
  for (int round = 0; round < 3; ++round)
    for (int64_t n = 1; n <= 200; ++n) EXPECT_EQ(run_once(session, Shape{n, 3}).size(), static_cast<size_t>(3 * n));
  const Session::PlanCounts counts = session.plan_counts();
  EXPECT_EQ(counts.made, 200);
  EXPECT_EQ(counts.kept, 200);
  EXPECT_GT(counts.kept_bytes, 0);
  EXPECT_LE(counts.kept_bytes, SessionOptions().plan_cache_bytes);
}

// There are 50 shapes, and room for 8 plans.
TEST(Session, HitsMissesAndEvictionsAreCounted) {
  const Runtime r = runtime();
  SessionOptions options;
  options.plan_cache = 8;
  Session session = open(r, open_length(), options);
  const auto counts = [&] {
    const Session::PlanCounts c = session.plan_counts();
    return std::vector<int64_t>{c.made, c.kept, c.hits, c.misses, c.evicted};
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(counts(), (Counts{0, 0, 0, 0, 0}));
  for (int64_t n = 1; n <= 50; ++n)
    for (int again = 0; again < 3; ++again) run_once(session, Shape{n, 3});
  EXPECT_EQ(counts(), (Counts{50, 8, 100, 50, 42}));
  for (int64_t n = 43; n <= 50; ++n) run_once(session, Shape{n, 3});  // those that are kept
  EXPECT_EQ(counts(), (Counts{50, 8, 108, 50, 42}));
  run_once(session, Shape{1, 3});
  EXPECT_EQ(counts(), (Counts{51, 8, 108, 51, 43}));
  session.trim();
  EXPECT_EQ(counts(), (Counts{51, 0, 108, 51, 51}));
  // A refused plan counts as a miss, and not as made.
  EXPECT_FALSE(session.plan({{DType::f32, Shape{2, 4}, nullptr}}).ok());
  EXPECT_EQ(counts(), (Counts{51, 0, 108, 52, 51}));
}

TEST(Session, PlansThatHaveNoRoomAreMadeAgainAndThatIsToldOnce) {
  static std::vector<std::string> lines;
  lines.clear();
  const Runtime r = runtime();
  SessionOptions options;
  options.plan_cache_bytes = 0;  // only the last one is kept
  Session session = open(r, open_length(), options);
  set_log_function([](void*, int, const char* text, size_t length) { lines.emplace_back(text, length); }, nullptr);
  for (int round = 0; round < 3; ++round)
    for (const int64_t n : {5, 6}) EXPECT_EQ(run_once(session, Shape{n, 3}).size(), static_cast<size_t>(3 * n));
  set_log_function(nullptr, nullptr);
  EXPECT_EQ(session.plan_counts().made, 6);
  EXPECT_EQ(session.plan_counts().kept, 1);
  const auto says = [](const std::string& line) { return line.find("are made again and again") != std::string::npos; };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), says), 1);
  // The plan reports it as well: it is the seventh of the net.
  const TensorView input = {DType::f32, Shape{5, 3}, nullptr};
  const auto context = session.prepare({input});
  ASSERT_TRUE(context.ok()) << context.status().text();
  EXPECT_EQ(context->plan()->plans_made, 7);
}

TEST(Session, ShapeOperandsThatAreInputsArePartOfThePlan) {
  NetBuilder b("reshape");
  const ValueId x = b.input("x", DType::f32, Shape{2, 6});
  const ValueId shape = b.input("shape", DType::i64, Shape{2});
  b.output(b.add1("Reshape", "y", {x, shape}));
  const Runtime r = runtime();
  Session session = open(r, b.finish());
  const auto data = blob(Shape{2, 6}, 0, 1);
  for (const auto& wanted : {Shape{3, 4}, Shape{4, 3}, Shape{12, 1}}) {
    std::vector<int64_t> dims(wanted.begin(), wanted.end());
    auto result = session.run({{DType::f32, Shape{2, 6}, const_cast<std::byte*>(data->data)}, {DType::i64, Shape{2}, dims.data()}});
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_EQ((*result)[0].shape(), wanted);
    EXPECT_EQ(std::memcmp((*result)[0].data(), data->data, 48), 0);
  }
}

TEST(Session, BoundedValuesFlowWithTheirTrueExtents) {
  NetBuilder b("nonzero");
  const ValueId x = b.input("x", DType::f32, Shape{6});
  const ValueId where = b.add1("NonZero", "where", {x});      // [1, n <= 6]
  const ValueId rows = b.add1("Transpose", "rows", {where});  // [n, 1]
  b.output(b.add1("GatherND", "picked", {x, rows}));          // [n]
  const Runtime r = runtime();
  Session session = open(r, b.finish());
  for (const auto& values :
       {std::vector<float>{0, 1, 0, 2, 3, 0}, std::vector<float>{0, 0, 0, 0, 0, 7}, std::vector<float>{0, 0, 0, 0, 0, 0}}) {
    auto result = session.run({{DType::f32, Shape{6}, const_cast<float*>(values.data())}});
    ASSERT_TRUE(result.ok()) << result.status().text();
    std::vector<float> expected;
    for (const float v : values)
      if (v != 0) expected.push_back(v);
    EXPECT_EQ(floats_of((*result)[0]), expected);
  }
}

TEST(Session, VariablesAreUpdatedAndKeptWhenARunFails) {
  NetBuilder b("sgd");
  const ValueId w = b.variable("w", blob(Shape{3}, 1, 0), true);
  const ValueId g = b.input("g", DType::f32, Shape{3});
  const ValueId rate = b.constant_float("rate", 0.5f);
  const ValueId before = b.add1("Neg", "negated", {w});
  const ValueId next = b.add1("SgdUpdate", "update", {w, g, rate}, {}, "heddle");
  b.output(before);
  b.output(next);
  const Runtime r = runtime(2);
  Session session = open(r, b.finish());
  std::vector<float> gradient = {1, 2, 3};
  for (int step = 1; step <= 3; ++step) {
    auto result = session.run({{DType::f32, Shape{3}, gradient.data()}});
    ASSERT_TRUE(result.ok()) << result.status().text();
    // The reader of version 0 got it before the update.
    EXPECT_FLOAT_EQ(floats_of((*result)[0])[1], -(1 - 0.5f * 2 * static_cast<float>(step - 1)));
    EXPECT_FLOAT_EQ(floats_of((*result)[1])[1], 1 - 0.5f * 2 * static_cast<float>(step));
  }
  auto value = session.read_variable("w");
  ASSERT_TRUE(value.ok());
  EXPECT_FLOAT_EQ(floats_of(*value)[2], 1 - 0.5f * 3 * 3);
  const std::vector<float> fresh = {9, 9, 9};
  ASSERT_TRUE(session.write_variable("w", {DType::f32, Shape{3}, const_cast<float*>(fresh.data())}).ok());
  EXPECT_EQ(floats_of(*session.read_variable("w")), fresh);
  EXPECT_EQ(session.read_variable("v").status().code(), Code::unknown_name);
}

TEST(Session, ErrorsNameOperatorShapesAndCauseAndAreNotStale) {
  NetBuilder b("gather");
  const ValueId table = b.constant("table", blob(Shape{4, 2}, 0, 1));
  const ValueId index = b.input("index", DType::i64, Shape{2});
  b.output(b.add1("Gather", "lookup", {table, index}));
  const Runtime r = runtime();
  Session session = open(r, b.finish());
  std::vector<int64_t> bad = {0, 9}, good = {3, 0};
  for (int i = 0; i < 3; ++i) {
    const auto failed = session.run({{DType::i64, Shape{2}, bad.data()}});
    ASSERT_EQ(failed.status().code(), Code::kernel_failed);
    EXPECT_NE(failed.status().text().find("\"lookup\" (Gather)"), std::string::npos) << failed.status().text();
    EXPECT_NE(failed.status().text().find('9'), std::string::npos) << failed.status().text();
    const auto fine = session.run({{DType::i64, Shape{2}, good.data()}});
    ASSERT_TRUE(fine.ok()) << fine.status().text();
    EXPECT_EQ(floats_of((*fine)[0]), (std::vector<float>{6, 7, 0, 1}));
  }
}

TEST(Session, MemoryLimitNamesTheLargestValues) {
  const Runtime r = runtime();
  SessionOptions options;
  options.memory_limit = 1000;
  Session session = open(r, convolution_net(), options);
  const Status status = session.prepare().status();
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_NE(status.text().find("largest values"), std::string::npos) << status.text();
  // A program's hint names the option as the program sets it.
  EXPECT_EQ(status.diagnostic().hint.find("raise SessionOptions::memory_limit to "), 0u) << status.text();
  EXPECT_EQ(status.diagnostic().option, "SessionOptions::memory_limit");
}

TEST(Session, PlannedMemoryMeetsTheLowerBound) {
  const Runtime r = runtime();
  Session session = open(r, convolution_net());
  ASSERT_TRUE(session.prepare().ok());
  const MemoryReport m = last_plan(session)->memory;
  EXPECT_LE(static_cast<double>(m.peak_bytes), 1.05 * static_cast<double>(m.lower_bound_bytes));
  EXPECT_LT(m.peak_bytes, m.sum_bytes);
}

TEST(Session, OutlivesItsRuntimeAndItsPluginStaysLoadedAsLongAsNeeded) {
  std::unique_ptr<Context> context;
  {
    Runtime r = runtime();
    Session session = open(r, convolution_net());
    auto made = session.prepare();
    ASSERT_TRUE(made.ok());
    context = std::make_unique<Context>(std::move(*made));
    ASSERT_TRUE(r.unload_plugin("cpu").ok());
  }
  const auto x = blob(Shape{1, 8, 14, 14}, -1.0f, 0.03f);
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  EXPECT_TRUE(context->run().ok());
}

// The limits also hold for extents that only the data determine.
TEST(Session, ValuesOfUnknownExtentKeepToTheLimits) {
  NetBuilder b("growing");
  const int64_t many = 8192;  // too many to be evaluated during inference
  const ValueId x = b.input("x", DType::f32, Shape{many});
  const ValueId most = b.add1("ReduceMax", "most", {x}, {{"keepdims", int64_t{0}}});
  b.output(b.add1("Range", "range", {b.constant_float("zero", 0), most, b.constant_float("one", 1)}));
  Session session = open(runtime(), b.finish());
  Internals::of(session).target.limits.tensor_bytes = 1 << 20;
  const auto run = [&](float value) {
    const auto feed = blob(Shape{many}, value, 0);
    return session.run({{DType::f32, Shape{many}, const_cast<std::byte*>(feed->data)}});
  };
  const auto small = run(1000);
  ASSERT_TRUE(small.ok()) << small.status().text();
  EXPECT_EQ(small->at(0).shape(), Shape{1000});
  const auto large = run(1e6f);
  EXPECT_EQ(exit_status(large.status().code()), 4);
  EXPECT_NE(large.status().text().find("limit tensor_bytes is 1.0 MiB"), std::string::npos) << large.status().text();
}

// x makes 2^40 trips through a loop.
Net endless_net() {
  NetBuilder body("body");
  body.input("turn", DType::i64, Shape{});
  const ValueId go_on = body.input("go_on", DType::boolean, Shape{});
  const ValueId x = body.input("x", DType::f32, Shape{2});
  body.output(go_on);
  body.output(body.add1("Neg", "turned", {x}));
  NetBuilder b("endless");
  const int64_t turns = int64_t{1} << 40;
  const uint8_t yes = 1;
  const ValueId count = b.constant("turns", Blob::copy_of(DType::i64, Shape{}, &turns));
  const ValueId begin = b.constant("begin", Blob::copy_of(DType::boolean, Shape{}, &yes));
  b.output(b.add1("Loop", "loop", {count, begin, b.input("x", DType::f32, Shape{2})},
                  {{"body", std::shared_ptr<const Net>(std::make_shared<Net>(body.finish()))}}));
  return b.finish();
}

TEST(Session, TurnsOfLoopsAreLimited) {
  Session session = open(runtime(), endless_net());
  Internals::of(session).target.limits.loop_trips = 1000;
  const float x[2] = {1, 2};
  const auto outputs = session.run({{DType::f32, Shape{2}, const_cast<float*>(x)}});
  EXPECT_EQ(exit_status(outputs.status().code()), 4);
  EXPECT_NE(outputs.status().text().find("the limit loop_trips is 1000"), std::string::npos) << outputs.status().text();
}

TEST(Session, DeadlineAndCancelReachIntoALoop) {
  for (const int threads : {1, 2}) {
    Session session = open(runtime(threads), endless_net());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    const float x[2] = {1, 2};
    ASSERT_TRUE(context->bind_input(0, x).ok());
    RunOptions options;
    options.deadline_ns = 5'000'000;
    EXPECT_EQ(context->run(options).code(), Code::deadline_exceeded);
    std::atomic<bool> done = false;
    // A cancel before the run has begun has no effect on it: cancel is repeated until the run ends.
    std::thread canceller([&] {
      while (!done) {
        context->cancel();
        std::this_thread::yield();
      }
    });
    const Status status = context->run();
    done = true;
    canceller.join();
    EXPECT_EQ(status.code(), Code::cancelled) << status.text();
  }
}

}  // namespace
}  // namespace heddle
