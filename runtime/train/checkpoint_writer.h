// CheckpointWriter: writes the checkpoints of one training into a folder, beside the steps that follow.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "heddle/trainer.h"
#include "state/checkpoint_file.h"
#include "state/variables.h"

namespace heddle {

// Writes one checkpoint at a time, on a thread of its own. Threads: one at a time.
class CheckpointWriter {
 public:
  // `learned`: the variables that the training updates, which must hold numbers.
  CheckpointWriter(std::shared_ptr<VariableStore> store, const CheckpointOptions& options, std::set<std::string> learned)
      : store_(std::move(store)), options_(options), learned_(std::move(learned)) {}
  // Waits for the thread.
  ~CheckpointWriter();
  // Lets the thread remove the temporary files of writers that were killed, and make the memory for the copy of the variables, which is
  // kept from checkpoint to checkpoint. Does nothing when it is called again.
  void prepare();
  // Begins to write the variables as they are now, after waiting for the checkpoint before, so that there is at most one copy of the
  // variables. Errors: those of the checkpoint before; those of VariableStore::begin_snapshot().
  Status begin(CheckpointInfo info);
  // Returns the error of a checkpoint that has ended, once. poll() does not wait for one in progress.
  Status poll();
  Status wait();
  // Returns the step of the newest checkpoint that was begun and has not failed; -1: none.
  int64_t newest() const { return newest_; }
  void set_newest(int64_t step) { newest_ = step; }

 private:
  void start(std::function<Status()> work);
  Status write(PendingSnapshot& snapshot, const CheckpointInfo& info);
  Status check_numbers() const;
  void remove_unfinished() const;
  Status remove_old(const CheckpointInfo& newest) const;

  std::shared_ptr<VariableStore> store_;
  const CheckpointOptions options_;
  const std::set<std::string> learned_;
  std::thread thread_;
  std::atomic<bool> ended_{true};
  Status result_;  // written by the thread before ended_, as is memory_
  std::vector<std::shared_ptr<const Blob>> memory_;
  bool is_prepared_ = false;
  int64_t newest_ = -1;
};

}  // namespace heddle
