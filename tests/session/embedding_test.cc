// The features that an embedding program relies on: asynchronous runs, memory of its own, trimming, and destruction in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "heddle/session.h"
#include "schedule/reluctant_executor.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;
using testing::ReluctantExecutor;

const Shape image_shape{1, 8, 14, 14};

std::shared_ptr<const Blob> image() {
  return blob(image_shape, -1.0F, 0.03F);
}

std::vector<float> floats(const TensorView& view) {
  const auto* p = static_cast<const float*>(view.data);
  return {p, p + view.shape.element_count()};
}

std::vector<float> expected() {
  const auto x = image();
  auto result = open(runtime(1), convolution_net()).run({{DType::f32, image_shape, const_cast<std::byte*>(x->data)}});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return floats((*result)[0].view());
}

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/" + library) != std::string::npos) return true;
  return false;
}

Session open_with(Executor& executor, Net net) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
  options.default_plugins = false;
  options.executor = &executor;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return open(*made, std::move(net));
}

// ---------------------------------------------------------------- streams of the caller

// A net that runs on the host alone would not wait for the stream: the caller's data might be read before it is written.
TEST(CallerStreams, AreRefusedWhereTheNetRunsOnTheHost) {
  const auto x = image();
  const TensorView feed = {DType::f32, image_shape, const_cast<std::byte*>(x->data)};
  Session session = open(runtime(1), convolution_net());
  auto context = session.prepare({feed});
  ASSERT_TRUE(context.ok()) << context.status().text();
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  const CallerStream given = {"cuda:0", nullptr};
  RunOptions run;
  run.streams = &given;
  run.stream_count = 1;
  TensorView y;
  for (const Status& refused : {context->run(run), session.run({feed}, run).status(), session.run(&feed, 1, &y, 1, run)}) {
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.text().find("a stream of \"cuda:0\" was given, where nothing of the net runs"), std::string::npos) << refused.text();
  }
  EXPECT_TRUE(context->run().ok());
}

// ---------------------------------------------------------------- asynchronous runs

TEST(AsynchronousRun, ItsCallbackMayStartTheNext) {
  const auto x = image();
  const std::vector<float> right = expected();
  const Runtime r = runtime(2);
  Session session = open(r, convolution_net());
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  std::atomic<int> wrong{0}, frames{0};
  std::function<void(Status)> next = [&](const Status& status) {
    if (!status.ok() || floats(context->output(0)) != right) ++wrong;
    if (frames.load() == 99 || !context->run_async(next).ok()) wrong += frames.load() == 99 ? 0 : 1;
    ++frames;
  };
  ASSERT_TRUE(context->run_async(next).ok());
  while (frames.load() < 100) std::this_thread::yield();
  EXPECT_EQ(wrong, 0);
}

TEST(AsynchronousRun, IsRefusedWhileOneIsUnderWayAndWithoutAnExecutor) {
  const auto x = image();
  ReluctantExecutor executor;
  {
    Session session = open_with(executor, convolution_net());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok());
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    int done = 0;
    ASSERT_TRUE(context->run_async([&](const Status& status) { done += status.ok() ? 1 : 100; }).ok());
    EXPECT_EQ(context->run_async([&](const Status&) { done += 1000; }).code(), Code::busy);
    executor.run_all();
    EXPECT_EQ(done, 1);
  }
  executor.run_all();  // helpers that were submitted meanwhile
  Session alone = open(runtime(1), convolution_net());
  EXPECT_EQ(alone.prepare()->run_async([](const Status&) {}).code(), Code::unsupported);
}

TEST(AsynchronousRun, CancelledBeforeItBegins) {
  const auto x = image();
  ReluctantExecutor executor;
  {
    Session session = open_with(executor, convolution_net());
    auto context = session.prepare();
    ASSERT_TRUE(context.ok());
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    std::vector<Code> codes;
    ASSERT_TRUE(context->run_async([&](const Status& status) { codes.push_back(status.code()); }).ok());
    context->cancel();
    executor.run_all();
    ASSERT_TRUE(context->run_async([&](const Status& status) { codes.push_back(status.code()); }).ok());
    executor.run_all();
    EXPECT_EQ(codes, (std::vector<Code>{Code::cancelled, Code::ok}));
  }
  executor.run_all();
}

TEST(AsynchronousRun, ContextsWaitForTheirsWhenTheyGo) {
  const auto x = image();
  const Runtime r = runtime(2);
  Session session = open(r, convolution_net());
  std::atomic<int> done{0};
  for (int i = 1; i <= 50; ++i) {
    {
      auto context = session.prepare();
      ASSERT_TRUE(context.ok());
      ASSERT_TRUE(context->bind_input(0, x->data).ok());
      ASSERT_TRUE(context->run_async([&](const Status& status) { done += status.ok() ? 1 : 1000; }).ok());
    }
    while (done.load() < i) std::this_thread::yield();
    EXPECT_EQ(done, i);
  }
}

// ---------------------------------------------------------------- going away

TEST(Shutdown, InAnyOrder) {
  const auto x = image();
  const std::vector<float> right = expected();
  std::array<int, 4> order = {0, 1, 2, 3};  // runtime, session, a context that ran, a context that did not
  do {
    std::optional<Runtime> r = runtime(2);
    std::optional<Session> session = open(*r, convolution_net());
    Internals::of(*session).scheduler.mode = ScheduleMode::parallel;  // so that there are helpers
    std::optional<Context> used, unused;
    for (std::optional<Context>* context : {&used, &unused}) {
      auto made = session->prepare();
      ASSERT_TRUE(made.ok());
      context->emplace(std::move(*made));
      ASSERT_TRUE((*context)->bind_input(0, x->data).ok());
    }
    ASSERT_TRUE(used->run().ok());
    for (const int which : order) {
      if (which == 0) r.reset();
      if (which == 1) session.reset();
      if (which == 2) used.reset();
      if (which == 3) unused.reset();
      // The remaining objects still work.
      for (std::optional<Context>* context : {&used, &unused})
        if (*context) {
          ASSERT_TRUE((*context)->run().ok());
          ASSERT_EQ(floats((*context)->output(0)), right);
        }
      EXPECT_TRUE(!session || session->prepare().ok());
      EXPECT_TRUE(!r || r->threads() == 2);
    }
    ASSERT_FALSE(is_mapped("cpu.so"));  // nothing is left
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Shutdown, TheLastHandlesMayGoInACallback) {
  const auto x = image();
  for (int i = 0; i < 20; ++i) {
    auto r = std::make_unique<Runtime>(runtime(2));
    auto session = std::make_unique<Session>(open(*r, convolution_net()));
    std::optional<Context> context;
    {
      auto made = session->prepare();
      ASSERT_TRUE(made.ok());
      context.emplace(std::move(*made));
    }
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    std::atomic<bool> context_gone{false}, all_gone{false};
    auto done = [&, r = std::shared_ptr<Runtime>(std::move(r)),
                 session = std::shared_ptr<Session>(std::move(session))](const Status&) mutable {
      while (!context_gone.load()) std::this_thread::yield();
      session.reset();
      r.reset();  // ends the runtime's threads, on one of them
      all_gone = true;
    };
    ASSERT_TRUE(context->run_async(std::move(done)).ok());
    context.reset();
    context_gone = true;
    while (!all_gone.load()) std::this_thread::yield();
  }
}

// ---------------------------------------------------------------- memory

TEST(CallersMemory, NetsShareABufferInTurns) {
  const auto x = image();
  const std::vector<float> right = expected();
  const Runtime r = runtime(2);
  Session convolution = open(r, convolution_net());
  NetBuilder b("softmax");
  b.output(b.add1("Softmax", "y", {b.add1("Exp", "e", {b.input("x", DType::f32, Shape{100, 300})})}));
  Session softmax = open(r, b.finish());
  const auto rows = blob(Shape{100, 300}, -1, 0.02F);
  const int64_t bytes = std::max(*convolution.transient_bytes(), *softmax.transient_bytes());
  EXPECT_LT(bytes, *convolution.transient_bytes() + *softmax.transient_bytes());
  std::byte* memory = nullptr;
  const auto buffer = Blob::allocate(DType::u8, Shape{bytes}, &memory);
  auto one = convolution.prepare_in(memory, bytes), other = softmax.prepare_in(memory, bytes);
  ASSERT_TRUE(one.ok()) << one.status().text();
  ASSERT_TRUE(other.ok()) << other.status().text();
  ASSERT_TRUE(one->bind_input(0, x->data).ok());
  ASSERT_TRUE(other->bind_input(0, rows->data).ok());
  std::vector<float> first;
  for (int i = 0; i < 20; ++i) {
    std::fill_n(memory, bytes, std::byte{0xff});
    ASSERT_TRUE(one->run().ok());
    EXPECT_EQ(floats(one->output(0)), right);
    ASSERT_TRUE(other->run().ok());
    const std::vector<float> now = floats(other->output(0));
    if (first.empty()) first = now;
    EXPECT_EQ(now, first);
  }
  EXPECT_EQ(convolution.prepare_in(memory + 1, bytes).status().code(), Code::invalid_argument);
}

TEST(Trim, NeverTouchesWhatIsInUse) {
  const auto x = image();
  const std::vector<float> right = expected();
  const Runtime r = runtime(2);
  Session session = open(r, convolution_net());
  std::atomic<bool> end{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      auto context = session.prepare();
      if (!context.ok() || !context->bind_input(0, x->data).ok()) return void(++wrong);
      while (!end) {
        if (!context->run().ok() || floats(context->output(0)) != right) ++wrong;
        auto result = session.run({{DType::f32, image_shape, const_cast<std::byte*>(x->data)}});
        if (!result.ok() || floats((*result)[0].view()) != right) ++wrong;
      }
    });
  for (int i = 0; i < 30; ++i) {
    session.trim();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  end = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  session.trim();
  EXPECT_EQ(kept_plans(session), 0u);
  EXPECT_TRUE(session.prepare().ok());
}

// ---------------------------------------------------------------- variables and failures

// w@1 = w - rate * g; the lookup after it fails when its index is out of range.
Net failing_net() {
  NetBuilder b("failing");
  const ValueId w = b.variable("w", blob(Shape{3}, 1, 0), true);
  const ValueId g = b.input("g", DType::f32, Shape{3});
  const ValueId index = b.input("index", DType::i64, Shape{1});
  b.output(b.add1("SgdUpdate", "update", {w, g, b.constant_float("rate", 0.5F)}, {}, "heddle"));
  b.output(b.add1("Gather", "lookup", {b.constant("table", blob(Shape{4}, 0, 1)), index}));
  return b.finish();
}

class Commit : public ::testing::TestWithParam<int> {
 protected:
  Session open_failing(bool late) {
    SessionOptions options;
    options.commit_late = late;
    return open(runtime(GetParam()), failing_net(), options);
  }
  Status run(Session& session, int64_t index) {
    return session.run({{DType::f32, Shape{3}, gradient.data()}, {DType::i64, Shape{1}, &index}}).status();
  }
  static float first(Session& session) { return floats(session.read_variable("w")->view())[0]; }
  std::vector<float> gradient = {1, 1, 1};
};
INSTANTIATE_TEST_SUITE_P(Threads, Commit, ::testing::Values(1, 2));

TEST_P(Commit, LateLeavesVariablesAsTheyWere) {
  Session session = open_failing(true);
  EXPECT_TRUE(run(session, 3).ok());
  EXPECT_EQ(first(session), 0.5F);
  EXPECT_EQ(run(session, 9).code(), Code::kernel_failed);
  EXPECT_EQ(first(session), 0.5F);
  EXPECT_TRUE(run(session, 0).ok());
  EXPECT_EQ(first(session), 0.0F);
}

TEST_P(Commit, EarlyTearsThemAndSaysSoUntilTheyAreWritten) {
  Session session = open_failing(false);
  EXPECT_TRUE(run(session, 3).ok());
  EXPECT_EQ(first(session), 0.5F);
  EXPECT_EQ(run(session, 9).code(), Code::kernel_failed);
  for (int i = 0; i < 2; ++i) {
    const Status refused = run(session, 3);
    EXPECT_EQ(refused.code(), Code::hazard);
    EXPECT_NE(refused.text().find("\"w\""), std::string::npos) << refused.text();
  }
  std::vector<float> fresh = {7, 7, 7};
  ASSERT_TRUE(session.write_variable("w", {DType::f32, Shape{3}, fresh.data()}).ok());
  EXPECT_TRUE(run(session, 3).ok());
  EXPECT_EQ(first(session), 6.5F);
}

// v@1 = v - rate * g, and rows of a table are updated by indices. No step before the updates reads the indices.
Net rows_net() {
  NetBuilder b("rows");
  const ValueId v = b.variable("v", blob(Shape{3}, 1, 0), true), table = b.variable("table", blob(Shape{4, 2}, 1, 0), true);
  const ValueId g = b.input("g", DType::f32, Shape{3}), index = b.input("index", DType::i64, Shape{2});
  const ValueId rate = b.constant_float("rate", 0.5F);
  b.output(b.add1("SgdUpdate", "update", {v, g, rate}, {}, "heddle"));
  b.add1("SgdUpdateRows", "rows", {table, index, b.constant("values", blob(Shape{2, 2}, 1, 0)), rate}, {}, "heddle");
  b.add1("ScatterAssign", "assign", {b.variable("marks", blob(Shape{4}, 0, 0)), index, b.constant("ones", blob(Shape{2}, 1, 0))}, {},
         "heddle");
  return b.finish();
}

// The index is out of range in the net's own update: that is found before the first variable is written, and the next run works.
TEST_P(Commit, ABadIndexOfAnUpdateLeavesVariablesUsable) {
  Session session = open(runtime(GetParam()), rows_net());
  const auto run = [&](int64_t first, int64_t second) {
    int64_t index[] = {first, second};
    return session.run({{DType::f32, Shape{3}, gradient.data()}, {DType::i64, Shape{2}, index}}).status();
  };
  const auto now = [&](const char* name) { return floats(session.read_variable(name)->view()); };
  ASSERT_TRUE(run(0, -1).ok());
  const auto v = now("v"), table = now("table"), marks = now("marks");
  EXPECT_EQ(table, (std::vector<float>{0.5F, 0.5F, 1, 1, 1, 1, 0.5F, 0.5F}));
  for (const int64_t bad : {4, -5, 1000000}) {
    const Status refused = run(1, bad);
    EXPECT_EQ(refused.code(), Code::kernel_failed) << refused.text();
    EXPECT_NE(refused.text().find("index " + std::to_string(bad) + " is outside [-4, 3]: axis 0 has 4 elements"), std::string::npos)
        << refused.text();
    EXPECT_EQ(now("v"), v);
    EXPECT_EQ(now("table"), table);
    EXPECT_EQ(now("marks"), marks);
  }
  EXPECT_TRUE(run(1, 2).ok());
  EXPECT_EQ(now("v"), std::vector<float>(3, 0));
}

}  // namespace
}  // namespace heddle
