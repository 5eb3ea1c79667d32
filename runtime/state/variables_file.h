// The variables of a store as a file: safetensors, one tensor for each, under its name, with a checksum (docs/net_format.md).
// Threads: any. Files are written and read outside of the store's turns.
#pragma once

#include <filesystem>

#include "heddle/session.h"
#include "state/variables.h"

namespace heddle {

// Replaces `path` by a file with the contents of all variables at one point between runs. Errors: those of VariableStore::snapshot() and
// of write_safetensors().
Status save_variables(const VariableStore& store, const std::filesystem::path& path, const Interruption& until = {});

// Sets all variables to the contents of the file, in one turn; changes nothing if there is an error. Errors: as Session::load_variables.
Status load_variables(VariableStore& store, const std::filesystem::path& path, const LoadVariablesOptions& what = {},
                      const Limits& limits = {}, const Interruption& until = {});

}  // namespace heddle
