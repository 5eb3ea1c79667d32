#include "commands/run/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/threads/clock.h"

namespace heddle::tool {
namespace {

constexpr int64_t extent = 1024, elements = int64_t{1} << 23;  // 2.1 GFLOP; 3 times 32 MiB

// A net of one operator of two inputs of these dims.
std::string net_of(const char* type, int64_t rows, int64_t columns) {
  return fmt::format(
      R"({{"heddle": 1, "name": "roofline", "inputs": ["a", "b"], "outputs": ["c"], "operator_sets": [{{"domain": "", "version": 17}}],
  "values": [{{"name": "a", "kind": "input", "dtype": "f32", "dims": [{0}, {1}]}},
             {{"name": "b", "kind": "input", "dtype": "f32", "dims": [{0}, {1}]}}, {{"name": "c"}}],
  "nodes": [{{"name": "c", "type": "{2}", "inputs": ["a", "b"], "outputs": ["c"]}}]}})",
      rows, columns, type);
}

// Returns how long the fastest of several runs takes, in nanoseconds.
Result<double> min_run_ns(const Runtime& runtime, const std::string& net, int64_t count) {
  constexpr int runs = 5;
  HEDDLE_TRY(Session session, runtime.open_bytes(net.data(), net.size(), "."));
  HEDDLE_TRY(Context context, session.prepare());
  const std::vector<float> a(static_cast<size_t>(count), 0.5F), b(static_cast<size_t>(count), 0.25F);
  HEDDLE_CHECK(context.bind_input(0, a.data()));
  HEDDLE_CHECK(context.bind_input(1, b.data()));
  double min_ns = 0;
  for (int i = 0; i < runs; ++i) {
    const uint64_t begin = ticks();
    HEDDLE_CHECK(context.run());
    const double ns = ticks_to_ns(ticks() - begin);
    min_ns = i == 0 ? ns : std::min(min_ns, ns);
  }
  return std::max(1.0, min_ns);
}

}  // namespace

double Roofline::min_ns(const PlanInfo::Step& step) const {
  const Rates& at = rates(step);
  return 1e9 * std::max(step.flops.value_or(0) / at.flops_per_second, static_cast<double>(step.bytes) / at.bytes_per_second);
}

bool Roofline::is_memory_bound(const PlanInfo::Step& step) const {
  const Rates& at = rates(step);
  return static_cast<double>(step.bytes) / at.bytes_per_second >= step.flops.value_or(0) / at.flops_per_second;
}

Result<Roofline::Rates> measure_rates(const Runtime& runtime) {
  Roofline::Rates made;
  HEDDLE_TRY(const double product_ns, min_run_ns(runtime, net_of("MatMul", extent, extent), extent * extent),
             "while the machine's rate of products was measured");
  HEDDLE_TRY(const double sum_ns, min_run_ns(runtime, net_of("Add", elements / extent, extent), elements),
             "while the machine's rate of bytes was measured");
  made.flops_per_second = 2.0 * extent * extent * extent / product_ns * 1e9;
  made.bytes_per_second = 3.0 * sizeof(float) * elements / sum_ns * 1e9;
  return made;
}

}  // namespace heddle::tool
