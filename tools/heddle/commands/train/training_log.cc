#include "commands/train/training_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text/text.h"
#include "common/command.h"

namespace heddle::tool {

namespace {

constexpr int64_t max_log_bytes = int64_t{1} << 32;

constexpr std::string_view test_prefix = "test_";

// Adds what of a line of a log is there, and a number.
void add(const Json& line, int64_t step, TrainingCurves* curves) {
  const std::pair<const char*, Series*> series[] = {
      {"loss", &curves->loss}, {"learning_rate", &curves->learning_rate}, {"gradient_norm", &curves->gradient_norm}};
  for (const auto& [key, numbers] : series)
    if (const auto found = line.find(key); found != line.end() && found->is_number()) numbers->add(step, found->get<double>());
  for (const auto& [key, value] : line.items())
    if (key.starts_with(test_prefix) && value.is_number()) curves->add_test(key.substr(test_prefix.size()), step, value.get<double>());
}

// Returns how much of a log of JSON is of the first `steps` steps: whole lines, up to the first that is of a later one or no line of a log.
size_t json_to_keep(std::string_view text, int64_t steps, TrainingCurves* curves) {
  size_t kept = 0;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', kept)) {
    const Json line = Json::parse(text.substr(kept, end - kept), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer() || line["step"].get<int64_t>() > steps) break;
    add(line, line["step"].get<int64_t>(), curves);
    kept = end + 1;
  }
  return kept;
}

}  // namespace

TrainingLog::TrainingLog(std::string file, const std::vector<std::string>& means)
    : file_(std::move(file)), is_table_(is_table(file_)), table_(means) {}

Result<size_t> TrainingLog::bytes_to_keep(std::string_view text, int64_t steps, TrainingCurves* curves) {
  return is_table_ ? table_.continue_after(steps, text, curves) : Result<size_t>(json_to_keep(text, steps, curves));
}

Status TrainingLog::open(int64_t steps, TrainingCurves* curves) {
  if (file_.empty()) return {};
  // Opening a pipe without a reader would block.
  std::error_code error;
  if (std::filesystem::is_fifo(file_, error) && !FileDescriptor(::open(file_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid())
    return {Code::file_unwritable, fmt::format("{} is a pipe that no program reads", quoted(file_)), "start its reader first"};
  size_t kept = 0;
  if (steps > 0 && std::filesystem::is_regular_file(file_, error)) {
    HEDDLE_TRY(const FileBytes bytes, read_file(file_, max_log_bytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data.get()), bytes.size);
    HEDDLE_TRY(kept, bytes_to_keep(text, steps, curves), fmt::format("while --log {} was continued", quoted(file_)));
    HEDDLE_TRY(FileReplacement shorter, FileReplacement::create(file_));
    HEDDLE_CHECK(shorter.write(text.substr(0, kept)));
    HEDDLE_CHECK(shorter.commit());
    stream_.open(file_, std::ios::app);
  } else {
    stream_.open(file_, std::ios::trunc);
  }
  if (!stream_) return {Code::file_unwritable, fmt::format("could not open {}", quoted(file_)), "look at the folder"};
  return is_table_ && kept == 0 ? write_text(table_.header()) : Status();
}

Status TrainingLog::write_text(const std::string& text) {
  stream_ << text << std::flush;
  return stream_ ? Status() : Status(Code::file_unwritable, fmt::format("could not write {}", quoted(file_)), "look at the disk");
}

Status TrainingLog::write(const TrainingStep& step, bool test_follows) {
  if (!stream_.is_open()) return {};
  if (is_table_) return write_text(table_.step(step, test_follows));
  Json line = {{"step", step.step},         {"epoch", step.epoch},
               {"loss", number(step.loss)}, {"step_ns", step.run_ns},
               {"read_ns", step.read_ns},   {"learning_rate", step.learning_rate ? number(*step.learning_rate) : Json()}};
  if (step.gradient_norm) line["gradient_norm"] = number(*step.gradient_norm);
  return write_text(line.dump() + "\n");
}

Status TrainingLog::write(const Evaluation& test, int64_t epoch) {
  if (!stream_.is_open()) return {};
  if (is_table_) return write_text(table_.test(test, epoch));
  Json line = {{"step", test.step}, {"epoch", epoch}};
  for (const auto& [name, value] : test.means) line["test_" + name] = number(value);
  return write_text(line.dump() + "\n");
}

Status TrainingLog::finish() {
  return stream_.is_open() && is_table_ && stream_ ? write_text(table_.complete()) : Status();
}

}  // namespace heddle::tool
