// The variables of a store as a file: safetensors, one tensor for each, under its name, with a checksum (docs/net_format.md).
// Threads: any. Files are written and read outside of the store's turns.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "heddle/session.h"
#include "state/variables.h"
#include "weights/safetensors.h"

namespace heddle {

// Replaces `path` by a file with the contents of all variables at one point between runs. Errors: those of VariableStore::snapshot() and
// of write_safetensors().
Status save_variables(const VariableStore& store, const std::filesystem::path& path, const Interruption& until = {});

// The parts of which these two consist, for files that hold more than variables (state/checkpoint_file.h). Contents are in the order of the
// store's variables, null for replicas.
std::vector<TensorToWrite> tensors_to_write(const VariableStore& store, const std::vector<std::shared_ptr<const Blob>>& contents);
Result<Safetensors> open_variables_file(const std::filesystem::path& path, const Limits& limits);
// Reads a tensor into memory. Errors: those of Safetensors::blob(); file_corrupt, if its checksum does not match.
Result<std::shared_ptr<const Blob>> read_checked(const Safetensors& file, const TensorEntry& entry);
// Reads all variables into memory and checks their checksums. Errors: as Session::load_variables.
Result<std::vector<std::shared_ptr<const Blob>>> read_variables(const VariableStore& store, const Safetensors& file,
                                                                const LoadVariablesOptions& what = {});

// Sets all variables to the contents of the file, in one turn; changes nothing if there is an error. Errors: as Session::load_variables.
Status load_variables(VariableStore& store, const std::filesystem::path& path, const LoadVariablesOptions& what = {},
                      const Limits& limits = {}, const Interruption& until = {});

}  // namespace heddle
