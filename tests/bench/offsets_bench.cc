// Measures the offset planner: height and speed. Prints one JSON object a line: instance, buffers, height over lower bound, processor time.
//   heddle_offsets_bench [SECONDS a planted instance, default 10] [CSV...]   measures problems from files (header id,lower,upper,size)
//   instead
// HEDDLE_OFFSETS_CAPACITY=BYTES: stops at the first packing that is not higher.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "memory/buffers_csv.h"
#include "memory/offsets/offsets_check.h"
#include "offsets_instances.h"

namespace {

using namespace heddle;

// Returns the seconds of processor time of this thread: other programs on the machine do not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The largest problem that the quadratic judge checks.
constexpr size_t judged = 20'000;

bool measure(const std::string& name, const offsets::Problem& problem, double seconds) {
  const double start = processor_seconds();
  const auto elapsed = [&] { return processor_seconds() - start; };
  offsets::PackOptions options;
  if (const char* const capacity = std::getenv("HEDDLE_OFFSETS_CAPACITY")) options.capacity = std::strtoll(capacity, nullptr, 10);
  if (seconds > 0) {
    options.effort = INT64_MAX / 4;
    options.stop = [&] { return elapsed() > seconds; };
  }
  const Result<offsets::Solution> solution = offsets::pack(problem, options);
  const double took = elapsed();
  if (!solution.ok()) {
    std::fprintf(stderr, "%s\n", solution.status().text().c_str());
    return false;
  }
  std::printf(
      "{\"instance\": \"%s\", \"buffers\": %zu, \"height_bytes\": %lld, \"lower_bound_bytes\": %lld, \"ratio\": %.4f, \"optimal\": %s, "
      "\"method\": \"%s\", \"cpu_ns\": %.0f}\n",
      name.c_str(), problem.buffers.size(), static_cast<long long>(solution->height), static_cast<long long>(solution->lower_bound),
      static_cast<double>(solution->height) / static_cast<double>(std::max<int64_t>(1, solution->lower_bound)),
      solution->optimal ? "true" : "false", solution->method, took * 1e9);
  std::fflush(stdout);
  if (problem.buffers.size() > judged) return true;
  const Status verdict = offsets::check(problem, *solution);
  if (!verdict.ok()) std::fprintf(stderr, "%s\n", verdict.text().c_str());
  return verdict.ok();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 10;
  bool good = true;
  for (int i = 2; i < argc; ++i) {
    const Result<BufferTable> table = load_buffers_csv(argv[i]);
    if (!table.ok()) {
      std::fprintf(stderr, "%s\n", table.status().text().c_str());
      return 1;
    }
    good &= measure(argv[i], table->problem, seconds);
  }
  if (argc > 2) return good ? 0 : 1;
  if (seconds == 0) return 0;
  good &= measure("serial net", offsets::serial_net(10'000, 0, 1), 0);
  good &= measure("training step", offsets::serial_net(10'000, 2, 2), 0);
  good &= measure("random lives", offsets::random_lives(10'000, 20'000, 100, 100'000, 3), 0);
  good &= measure("serial net", offsets::serial_net(1'000'000, 0, 4), 0);
  good &= measure("training step", offsets::serial_net(1'000'000, 2, 5), 0);
  for (const size_t count : {150, 200, 300, 450})
    for (uint64_t seed = 1; seed <= 3; ++seed)
      good &= measure("planted, seed " + std::to_string(seed), offsets::planted(count, 1000, 1 << 20, 1024, 12, seed), seconds);
  return good ? 0 : 1;
}
