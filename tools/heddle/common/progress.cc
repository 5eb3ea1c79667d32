#include "common/progress.h"

#include <fmt/format.h>

#include <utility>

#include "base/threads/clock.h"

namespace heddle::tool {

Progress::Progress(const Report& report, std::string what, int64_t total)
    : report_(report), what_(std::move(what)), total_(total), begun_(ticks()), drawn_(begun_) {}

void Progress::reached(int64_t done, const std::string& now) {
  constexpr double between_ns = 2e8;
  const uint64_t at = ticks();
  if (now.empty() && ticks_to_ns(at - drawn_) < between_ns) return;
  drawn_ = at;
  if (!report_.progress()) return;
  const double seconds = ticks_to_ns(at - begun_) / 1e9, rate = static_cast<double>(done) / seconds;
  std::string text = fmt::format("{} {} of {}", what_, done, total_);
  if (!now.empty()) text += fmt::format(": {}", now);
  if (done > 0 && seconds >= between_ns / 1e9) {
    text += rate >= 1 ? fmt::format(", {:.0f}/s", rate) : fmt::format(", {:.1f} s each", 1 / rate);
    text += fmt::format(", {} left", time_left_text(static_cast<double>(total_ - done) / rate));
  }
  report_.step(text);
}

std::string time_left_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return whole >= 60 ? fmt::format("{} min {} s", whole / 60, whole % 60) : fmt::format("{} s", whole);
}

}  // namespace heddle::tool
