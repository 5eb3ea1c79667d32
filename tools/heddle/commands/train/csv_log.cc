#include "commands/train/csv_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace heddle::tool {
namespace {

constexpr std::string_view step_columns = "step,epoch,loss,step_ns,read_ns,learning_rate,gradient_norm";
constexpr size_t step_column_count = 7, loss_column = 2, rate_column = 5, norm_column = 6;

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string cell(const std::optional<double>& number) {
  return number ? shortest(*number) : std::string();
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t begin = 0;;) {
    const size_t end = line.find(',', begin);
    cells.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return cells;
    begin = end + 1;
  }
}

// Returns the number of a cell, if it has one.
std::optional<double> number_of(std::string_view cell) {
  double number = 0;
  return parse_float(cell, &number) ? std::optional(number) : std::nullopt;
}

void add(int64_t step, std::string_view cell, Series* series) {
  if (const auto number = number_of(cell)) series->add(step, *number);
}

}  // namespace

CsvLog::CsvLog(const std::vector<std::string>& means) : means_(means), header_(step_columns) {
  for (const std::string& mean : means) header_ += "," + cell("test_" + mean);
  header_ += "\n";
}

// Returns the end of a line whose numbers of the step, and the comma after them, were written.
std::string CsvLog::without_means() const {
  return std::string(means_.empty() ? 0 : means_.size() - 1, ',') + "\n";
}

Result<size_t> CsvLog::continue_after(int64_t steps, std::string_view log, TrainingCurves* curves) {
  open_.reset();
  if (!log.starts_with(header_)) {
    if (std::string_view(header_).starts_with(log)) return size_t{0};  // it ended before the first step
    return Status(Code::invalid_argument,
                  fmt::format("the log has the columns {}, and those of this training are {}",
                              quoted(log.substr(0, std::min(log.find('\n'), size_t{256}))), quoted(header_.substr(0, header_.size() - 1))),
                  "name another file, or train with the tests and metrics that it has");
  }
  size_t kept = header_.size();
  while (kept < log.size()) {
    const size_t end = log.find('\n', kept);
    const std::string_view line = log.substr(kept, end - kept);
    const std::vector<std::string_view> cells = cells_of(line);
    const bool is_open = end == std::string_view::npos && !means_.empty() && cells.size() == step_column_count + 1 && cells.back().empty();
    int64_t step = 0;
    const bool is_whole = end != std::string_view::npos && cells.size() == step_column_count + means_.size();
    if (!(is_whole || is_open) || !parse_int(cells[0], &step) || step > steps) break;
    add(step, cells[loss_column], &curves->loss);
    add(step, cells[rate_column], &curves->learning_rate);
    add(step, cells[norm_column], &curves->gradient_norm);
    for (size_t i = 0; is_whole && i < means_.size(); ++i)
      if (const auto mean = number_of(cells[step_column_count + i])) curves->add_test(means_[i], step, *mean);
    const bool is_untested = std::all_of(cells.begin() + step_column_count, cells.end(), [](std::string_view c) { return c.empty(); });
    if (!means_.empty() && is_untested && (step == steps || is_open)) {
      open_ = step;
      return static_cast<size_t>(cells[step_column_count].data() - log.data());
    }
    kept = end + 1;
  }
  return kept;
}

std::string CsvLog::step(const TrainingStep& step, bool test_follows) {
  std::string text = complete();
  text += fmt::format("{},{},{},{},{},{},{}", step.step, step.epoch, shortest(step.loss), step.run_ns, step.read_ns,
                      cell(step.learning_rate), cell(step.gradient_norm));
  if (!means_.empty()) text += ',';
  if (test_follows && !means_.empty())
    open_ = step.step;
  else
    text += without_means();
  return text;
}

std::string CsvLog::test(const Evaluation& test, int64_t epoch) {
  if (means_.empty()) return {};
  std::string text;
  if (open_ != test.step) text = complete() + fmt::format("{},{},,,,,,", test.step, epoch);  // no line of its step is there
  for (size_t i = 0; i < means_.size(); ++i) {
    const auto found = std::find_if(test.means.begin(), test.means.end(), [&](const auto& mean) { return mean.first == means_[i]; });
    text += (i > 0 ? "," : "") + (found == test.means.end() ? std::string() : shortest(found->second));
  }
  open_.reset();
  return text + "\n";
}

std::string CsvLog::complete() {
  if (!open_) return {};
  open_.reset();
  return without_means();
}

}  // namespace heddle::tool
