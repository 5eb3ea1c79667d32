#include "latency.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace heddle::tool {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

std::string milliseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof(text), ns < 1e6 ? "%.1f us" : "%.2f ms", ns < 1e6 ? ns * 1e-3 : ns * 1e-6);
  return text;
}

}  // namespace

Json latency_json(std::vector<double> ns) {
  if (ns.empty()) return {{"min", nullptr}, {"median", nullptr}, {"p90", nullptr}, {"p99", nullptr}, {"runs", 0}};
  std::sort(ns.begin(), ns.end());
  const auto whole = [](double v) { return static_cast<int64_t>(v); };
  return {{"min", whole(ns[0])},
          {"median", whole(quantile(ns, 0.5))},
          {"p90", whole(quantile(ns, 0.9))},
          {"p99", ns.size() >= 100 ? Json(whole(quantile(ns, 0.99))) : Json(nullptr)},
          {"runs", ns.size()}};
}

std::string latency_text(std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  return "median " + milliseconds(quantile(ns, 0.5)) + " (min " + milliseconds(ns[0]) + ", " + std::to_string(ns.size()) + " runs)";
}

// The cpu plugin chooses by the same rules (plugins/cpu/isa.cc), and oneDNN by much the same.
const char* instruction_set() {
#if defined(__x86_64__)
  const char* wanted = std::getenv("HEDDLE_CPU_ISA");
  const std::string_view most = wanted ? wanted : "";
  if (most == "v2" || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return "sse";
  if (most == "v3" || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512cd") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return "avx2";
  return "avx512";
#else
  return "sse";
#endif
}

}  // namespace heddle::tool
