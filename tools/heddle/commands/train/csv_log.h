// The log of a training as a table (RFC 4180): one line for each step, and in it the means of the test that followed the step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/train/training_curves.h"
#include "heddle/status.h"
#include "heddle/trainer.h"

namespace heddle::tool {

// Makes the text of the table, and reads it. The numbers of a step are written at once. Where a test follows, the line stays open, and is
// completed when the test is over.
class CsvLog {
 public:
  CsvLog() = default;
  explicit CsvLog(const std::vector<std::string>& means);
  // The names of the columns: "step,epoch,loss,step_ns,read_ns,learning_rate,gradient_norm", and "test_" with the name of each mean.
  const std::string& header() const { return header_; }

  // Returns how much of `log` is of the first `steps` steps: its header and their lines, of which it adds the numbers to
  // `curves`. Where the last of them has no means, it stays open, as the test may be due. Errors: invalid_argument (other columns).
  Result<size_t> continue_after(int64_t steps, std::string_view log, TrainingCurves* curves);

  // Return what is to be written.
  std::string step(const TrainingStep& step, bool test_follows);
  std::string test(const Evaluation& test, int64_t epoch);
  std::string complete();  // an open line

 private:
  std::string without_means() const;

  std::vector<std::string> means_;
  std::string header_;
  std::optional<int64_t> open_;  // the step of the line that lacks its means
};

}  // namespace heddle::tool
