// Measures how long runs of a tiny net take beside a snapshot of a GiB of other variables.
//
//   heddle_snapshot_bench [SECONDS] [MIB]
//
// Prints the median and the longest run in SECONDS (60) without a snapshot, and while one of MIB (1024) is taken, both with the number of
// runs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "heddle/training.h"
#include "must.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

Runtime runtime() {
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN};
  options.default_plugins = false;
  options.threads = 1;
  return must(Runtime::create(options));
}

// "tiny" adds x to v; "large" has the other variables.
Session open(const Runtime& runtime, int64_t mib) {
  std::vector<Net> nets;
  {
    NetBuilder b("tiny");
    const ValueId v = b.variable("v", DType::f32, Shape{4}, "constant(0)");
    b.updates(b.add1("AccumulateAdd", "next", {v, b.input("x", DType::f32, Shape{4})}, {}, "heddle"), v);
    nets.push_back(b.finish());
  }
  {
    NetBuilder b("large");
    for (int i = 0; i < 16; ++i)
      b.output(b.add1("Shape", "s" + std::to_string(i),
                      {b.variable("w" + std::to_string(i), DType::f32, Shape{mib / 16, 262144}, "constant(1)")}));
    nets.push_back(b.finish());
  }
  return must(runtime.open(must(Nets::of(std::move(nets)))));
}

// Runs until `over`, and prints what the runs took.
template <class Over>
void runs(const char* when, Context& context, const Over& over) {
  std::vector<double> us;
  us.reserve(size_t{1} << 26);
  for (Clock::time_point begin = Clock::now(); !over();) {
    must(context.run());
    const Clock::time_point end = Clock::now();
    if (us.size() < us.capacity()) us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    begin = end;
  }
  const auto middle = us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2);
  std::nth_element(us.begin(), middle, us.end());
  std::printf("%-28s %10zu runs, median %8.2f us, longest %10.1f us\n", when, us.size(), *middle, *std::max_element(us.begin(), us.end()));
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 60, mib = argc > 2 ? std::atoi(argv[2]) : 1024;
  const Runtime all = runtime();
  Session session = open(all, mib);
  Session tiny = must(session.net("tiny"));
  Context context = must(tiny.prepare());
  const float x[4] = {1, 1, 1, 1};
  must(context.bind_input(0, x));
  must(context.run());
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  runs("without a snapshot", context, [&] { return Clock::now() >= end; });
  std::atomic<bool> over{false};
  std::thread snapshot([&] {
    must(Internals::of(session).variables->snapshot());
    over = true;
  });
  runs("while a snapshot is taken", context, [&] { return over.load(); });
  snapshot.join();
  return 0;
}
