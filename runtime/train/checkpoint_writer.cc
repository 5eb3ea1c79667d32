#include "train/checkpoint_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/text/text.h"
#include "base/threads/signals.h"

namespace heddle {
CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

Status CheckpointWriter::begin(CheckpointInfo info) {
  HEDDLE_CHECK(wait());
  info.path = (std::filesystem::path(options_.folder) / checkpoint_name(info.step)).string();
  HEDDLE_TRY(PendingSnapshot begun, store_->begin_snapshot());
  newest_ = info.step;
  const auto snapshot = std::make_shared<PendingSnapshot>(std::move(begun));
  ended_.store(false);
  const auto work = [this, snapshot, info = std::move(info)]() noexcept {
    try {
      result_ = write(*snapshot, info);
    } catch (...) {
      result_ = status_of_exception();
    }
    ended_.store(true);
  };
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread(work);
  } catch (const std::system_error&) {  // there is no thread: the training waits
    work();
  }
  return {};
}

Status CheckpointWriter::poll() {
  return ended_.load() ? wait() : Status();
}

Status CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (!result_.ok()) newest_ = -1;
  return std::exchange(result_, Status());
}

Status CheckpointWriter::write(PendingSnapshot& snapshot, const CheckpointInfo& info) const {
  const std::string doing = fmt::format("while the checkpoint of step {} was written", info.step);
  HEDDLE_TRY(const std::vector<std::shared_ptr<const Blob>> contents, snapshot.finish(), doing);
  HEDDLE_CHECK(write_checkpoint(*store_, contents, info, info.path), doing);
  return remove_old(info).during(doing);
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
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return {Code::file_unwritable, fmt::format("could not remove {}: {}", quoted(path.native()), errno_text(errno)),
              "look at the folder"};
  }
  return {};
}

}  // namespace heddle
