#include "commands/train/bad_sample_warnings.h"

#include <fmt/format.h>

namespace heddle::tool {

std::optional<Diagnostic> BadSampleWarnings::take(const std::string& sample, const Status& error) {
  if (count_++ >= max_shown) return std::nullopt;
  Diagnostic warning = error.diagnostic();
  warning.severity = Severity::warning;
  warning.message = fmt::format("sample {} is left out: {}", sample, warning.message);
  return warning;
}

std::string BadSampleWarnings::summary() const {
  if (count_ == 0) return {};
  return fmt::format("{} {} left out{}", count_, count_ == 1 ? "sample that could not be read was" : "samples that could not be read were",
                     count_ > max_shown ? fmt::format("; the first {} are named above", max_shown) : "");
}

}  // namespace heddle::tool
