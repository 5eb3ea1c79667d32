// Checkpoint files: what heddle/checkpoint.h says, written and read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/checkpoint.h"
#include "heddle/limits.h"
#include "state/net_contents.h"
#include "state/variables.h"
#include "weights/safetensors.h"

namespace heddle {

// Returns "drop", "keep" or "pad".
std::string_view to_string(LastBatch last_batch);

// Returns the name of the file of that step, and the step of a file's name; none: it is not called like a checkpoint.
std::string checkpoint_name(int64_t step);
std::optional<int64_t> step_of_checkpoint(std::string_view name);

// Returns `info`, but for its path, as names and texts, and back. Errors of checkpoint_info_of(): file_corrupt; invalid_argument and
// file_version, where they are not those of a checkpoint.
TextPairs texts_of(const CheckpointInfo& info);
Result<CheckpointInfo> checkpoint_info_of(const TextPairs& texts, const std::string& path);

// Writes the contents of all variables of the store, and `info` but for its path, as one file that takes the place of `path`. Errors:
// file_unwritable, invalid_argument (a name that the format does not allow).
Status write_checkpoint(const VariableStore& store, const std::vector<std::shared_ptr<const Blob>>& contents, const CheckpointInfo& info,
                        const std::string& path);

// A checkpoint that was read as a whole, and fits the variables of a store.
struct ReadCheckpoint {
  CheckpointInfo info;
  std::vector<std::shared_ptr<const Blob>> contents;  // by variable; null for replicas
};
// Errors: those of read_checkpoint_info() and of Session::load_variables.
Result<ReadCheckpoint> read_checkpoint(const VariableStore& store, const std::string& path, const Limits& limits);
// Gives the variables of nets that are not open what a checkpoint has, as Nets::take_checkpoint(). After an error some of the nets are
// changed.
Status take_checkpoint(std::vector<Net>& nets, const std::string& path, const Limits& limits);

}  // namespace heddle
