#include "train/checkpoint_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "base/element.h"
#include "base/exceptions.h"
#include "base/file.h"
#include "base/text/text.h"
#include "base/threads/once_answered.h"
#include "base/threads/signals.h"

namespace heddle {

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::prepare() {
  if (is_prepared_ || options_.folder.empty()) return;
  is_prepared_ = true;
  start([this]() -> Status {
    without_exceptions([this] { remove_unfinished(); });
    without_exceptions([this] { memory_ = store_->snapshot_memory(); });  // else each checkpoint makes its own
    return {};
  });
}

Status CheckpointWriter::begin(CheckpointInfo info) {
  prepare();
  HEDDLE_CHECK(wait());
  info.path = (std::filesystem::path(options_.folder) / checkpoint_name(info.step)).string();
  std::optional<PendingSnapshot> begun;
  HEDDLE_CHECK(once_answered([&]() -> Status {
    HEDDLE_TRY(PendingSnapshot one, store_->begin_snapshot({}, memory_));
    begun.emplace(std::move(one));
    return {};
  }));
  memory_.clear();
  const int64_t step = info.step;
  start([this, snapshot = std::make_shared<PendingSnapshot>(*std::move(begun)), info = std::move(info)] { return write(*snapshot, info); });
  newest_ = step;
  return {};
}

void CheckpointWriter::start(std::function<Status()> work) {
  const auto run = [this, work = std::move(work)]() noexcept {
    try {
      result_ = work();
    } catch (...) {
      result_ = status_of_exception();
    }
    ended_.store(true);
  };
  ended_.store(false);
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread(run);
  } catch (...) {  // there is no thread, or no memory for one: the training waits
    run();
  }
}

Status CheckpointWriter::poll() {
  return ended_.load() ? wait() : Status();
}

Status CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (!result_.ok()) newest_ = -1;
  return std::exchange(result_, Status());
}

Status CheckpointWriter::write(PendingSnapshot& snapshot, const CheckpointInfo& info) {
  const std::string doing = fmt::format("while the checkpoint of step {} was written", info.step);
  HEDDLE_TRY(memory_, snapshot.finish(), doing);
  HEDDLE_CHECK(check_numbers(), doing);
  HEDDLE_CHECK(write_checkpoint(*store_, memory_, info, info.path), doing);
  return remove_old(info).during(doing);
}

// A training could only continue from such a checkpoint to end at once.
Status CheckpointWriter::check_numbers() const {
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (!memory_[i] || learned_.count(store_->name(i)) == 0) continue;
    const TensorView view = {memory_[i]->dtype, memory_[i]->shape, const_cast<std::byte*>(memory_[i]->data)};
    // Infinity may be meant, as where a least number begins with it.
    for (int64_t at = first_not_finite(view); at >= 0; at = first_not_finite(view, at + 1))
      if (std::isnan(element(view, at)))
        return {Code::numerics,
                fmt::format("variable {} holds what is no number: there is no checkpoint of this step", quoted(store_->name(i))),
                "take a smaller learning rate, or clip gradients"};
  }
  return {};
}

// Removes what processes that were killed had begun to write. Checkpoints of the same steps would replace these files, but a training that
// is over, or writes checkpoints of other steps, makes none of that name.
void CheckpointWriter::remove_unfinished() const {
  FileReplacement::remove_left_over(options_.folder, [](const std::string& name) { return step_of_checkpoint(name).has_value(); });
}

// Removes all but the newest ones and the best one. Files of later steps, which a training that was continued from an older checkpoint has
// left, are replaced when it gets there.
Status CheckpointWriter::remove_old(const CheckpointInfo& newest) const {
  if (options_.keep == 0) return {};
  HEDDLE_TRY(const std::vector<std::string> names, names_in(options_.folder));
  std::vector<int64_t> steps;
  for (const std::string& name : names)
    if (const std::optional<int64_t> step = step_of_checkpoint(name); step && *step <= newest.step) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = static_cast<size_t>(options_.keep); i < steps.size(); ++i) {
    if (steps[i] == newest.best_step) continue;
    const std::filesystem::path path = std::filesystem::path(options_.folder) / checkpoint_name(steps[i]);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != EISDIR)
      return {Code::file_unwritable, fmt::format("could not remove {}: {}", quoted(path.native()), errno_text(errno)),
              "look at the folder"};
  }
  return {};
}

}  // namespace heddle
