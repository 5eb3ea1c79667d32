// Checkpoints: files from which a Trainer continues as if it had never been interrupted (heddle/trainer.h).
//
// A checkpoint is one safetensors file: all variables of the session, with the state of the optimizer and the counters of steps, as they
// are after one step, and in its metadata what CheckpointInfo says. Each tensor has a checksum, and the file has one of its own. The files
// of a folder are called step-000001200.safetensors. A file that has its name is complete: it is written under another one, synced and
// renamed, and then the folder is synced. Nothing in it depends on devices or on the number of threads.
//
// Requires C++17; needs neither RTTI nor exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heddle/dataset.h"
#include "heddle/export.h"
#include "heddle/status.h"

namespace heddle {

struct CheckpointInfo {
  std::string path;
  int64_t step = 0;  // steps that were made
  double loss = 0;   // of the last one
  // The means of the evaluation after that step; empty: there was none.
  std::vector<std::pair<std::string, double>> means;
  // The best evaluation until then (TrainerOptions::best), by "NAME=min" or "NAME=max", and how many came since that were no better.
  std::string best;
  int64_t best_step = -1;  // none
  double best_mean = 0;
  int64_t evaluations_since_best = 0;
  // From these follows which samples the next step has: TrainerOptions, and the number of samples of the dataset.
  uint64_t seed = 0;
  int64_t samples = 0, batch = 0;
  LastBatch last_batch = LastBatch::drop;
  bool shuffles = true;
  std::string data;     // Dataset::identity() of these samples; empty: not known
  std::string version;  // of the Heddle that wrote it
  std::string net;      // the checksum of the text of the net that learned, as 16 hexadecimal digits
};

// Reads what a checkpoint says of itself, without its tensors. Errors: file_not_found, file_unreadable, file_truncated, file_corrupt (also:
// the file's own checksum does not match), limit_exceeded; invalid_argument (the file is no checkpoint).
HEDDLE_API Result<CheckpointInfo> read_checkpoint_info(const std::string& path);

// The checkpoints of a folder.
struct CheckpointList {
  std::vector<CheckpointInfo> complete;  // the one of the most steps first
  std::vector<Diagnostic> damaged;       // files with the name of a checkpoint that can not be read, with the reason
};
// A folder without checkpoints is no error. Errors: file_unreadable (the folder); those of read_checkpoint_info() that do not mean that a
// file is damaged, such as file_version.
HEDDLE_API Result<CheckpointList> list_checkpoints(const std::string& folder);

}  // namespace heddle
