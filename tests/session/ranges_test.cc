// Options out of their range: an error that names option, value and range; no other value is used instead.
#include <gtest/gtest.h>

#include <climits>

#include "heddle/limits.h"
#include "net/net.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

// Claims that number of threads, and has none.
class Claims final : public Executor {
 public:
  explicit Claims(int threads) : threads_(threads) {}
  int concurrency() const noexcept override { return threads_; }
  void submit(HelperTask& task) noexcept override { task.execute(); }

 private:
  int threads_;
};

RuntimeOptions options() {
  RuntimeOptions o;
  o.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
  o.default_plugins = false;
  return o;
}

void expect_refused(const Status& status, const std::string& option, int64_t value, const std::string& range) {
  EXPECT_EQ(status.code(), Code::invalid_argument) << status.text();
  EXPECT_NE(status.text().find(option + " is " + std::to_string(value) + ", not from " + range), std::string::npos) << status.text();
}

TEST(Ranges, ThreadsOfARuntime) {
  for (const int threads : {-1, INT_MIN, max_threads + 1, INT_MAX}) {
    RuntimeOptions o = options();
    o.threads = threads;
    expect_refused(Runtime::create(o).status(), "RuntimeOptions::threads", threads, "0 to 64");
  }
  RuntimeOptions o = options();
  const auto runtime = Runtime::create(o);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  EXPECT_GE(runtime->threads(), 1);
  EXPECT_LE(runtime->threads(), max_threads);
}

TEST(Ranges, ConcurrencyOfAnExecutor) {
  for (const int threads : {0, -1, INT_MIN, max_threads + 1, INT_MAX}) {
    Claims executor(threads);
    RuntimeOptions o = options();
    o.executor = &executor;
    expect_refused(Runtime::create(o).status(), "the executor's concurrency()", threads, "1 to 64");
  }
  Claims executor(max_threads);
  RuntimeOptions o = options();
  o.executor = &executor;
  const auto runtime = Runtime::create(o);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  EXPECT_EQ(runtime->threads(), max_threads);
}

TEST(Ranges, StreamsAndPlansOfASession) {
  const auto runtime = Runtime::create(options());
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  const auto open = [&](const SessionOptions& o) {
    NetBuilder b("net");
    b.output(b.add1("Relu", "y", {b.input("x", DType::f32, Shape{4})}));
    return runtime->open(b.finish(), o).status();
  };
  for (const int streams : {0, -1, INT_MIN, max_streams + 1, INT_MAX}) {
    SessionOptions o;
    o.streams = streams;
    expect_refused(open(o), "SessionOptions::streams", streams, "1 to 64");
  }
  for (const int plans : {0, -1, INT_MIN}) {
    SessionOptions o;
    o.plan_cache = plans;
    expect_refused(open(o), "SessionOptions::plan_cache", plans, "1 to 2147483647");
  }
  SessionOptions negative;
  negative.plan_cache_bytes = -1;
  EXPECT_EQ(open(negative).code(), Code::invalid_argument);
  SessionOptions most;
  most.streams = max_streams;
  EXPECT_TRUE(open(most).ok()) << open(most).text();
}

}  // namespace
}  // namespace heddle
