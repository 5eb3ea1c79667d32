#include "process/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/text/text.h"

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

double median_ns(std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  return quantile(ns, 0.5);
}

std::string latency_text(std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  return fmt::format("median {} (min {}, {})", milliseconds(quantile(ns, 0.5)), milliseconds(ns[0]),
                     counted(static_cast<int64_t>(ns.size()), "run"));
}

Json instruction_set(const Runtime& runtime) {
  for (const PluginInfo& plugin : runtime.plugins())
    if (const size_t plus = plugin.version.find('+'); plugin.name == "cpu" && plus != std::string::npos)
      return plugin.version.substr(plus + 1);
  return nullptr;
}

}  // namespace heddle::tool
