#include "train/sample_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/element.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// Returns the name of the sample that element `position` of value `i` belongs to; empty if its axis 0 is not that of the samples.
std::string name_of_sample(const ReadBatch& read, size_t i, int64_t position) {
  const TensorView& value = read.batch.values()[i];
  const auto count = static_cast<int64_t>(read.samples.size());
  if (count == 0 || value.shape.rank() == 0 || value.shape[0] != count) return {};
  return read.data.sample_name(read.samples[static_cast<size_t>(position / (value.shape.element_count() / count))]);
}

}  // namespace

std::string samples_text(const ReadBatch& read) {
  constexpr size_t shown = 256;
  std::vector<std::string> names;
  for (size_t k = 0; k < std::min(read.samples.size(), shown); ++k) names.push_back(read.data.sample_name(read.samples[k]));
  if (read.samples.size() > shown) names.emplace_back("...");
  return join(names, ", ");
}

std::string not_finite_text(const ReadBatch& read) {
  const std::vector<TensorView>& values = read.batch.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = first_not_finite(values[i]);
    if (at < 0) continue;
    const std::string sample = name_of_sample(read, i, at);
    return fmt::format("input {} has {}{}", quoted(read.data.names()[i]), element(values[i], at),
                       sample.empty() ? "" : fmt::format(" in sample {}", sample));
  }
  return {};
}

std::string sample_text(const ReadBatch& read, std::string_view error) {
  constexpr std::string_view marker = " at position ";
  const size_t at = error.find(marker);
  if (at == std::string_view::npos) return {};
  const std::string_view before = error.substr(0, at), after = error.substr(at + marker.size());
  int64_t number = 0, position = 0;
  if (!parse_int(before.substr(before.find_last_of(' ') + 1), &number)) return {};
  if (!parse_int(after.substr(0, after.find_first_not_of("0123456789")), &position) || position < 0) return {};
  const std::vector<TensorView>& values = read.batch.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_float(values[i].dtype) || position >= values[i].shape.element_count()) continue;
    const std::string sample = name_of_sample(read, i, position);
    if (!sample.empty() && element(values[i], position) == static_cast<double>(number))
      return fmt::format("sample {} of input {}", sample, quoted(read.data.names()[i]));
  }
  return {};
}

}  // namespace heddle
