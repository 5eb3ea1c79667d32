// The variables of a store as a file: safetensors, one tensor for each, under its name, with a checksum (docs/net_format.md).
// Threads: any; writing and reading files happens outside of the store's turns.
#pragma once

#include <filesystem>

#include "heddle/session.h"
#include "state/variables.h"

namespace heddle {

// Replaces `path` by a file of what all variables are at one point between runs. Errors: those of VariableStore::snapshot() and of
// write_safetensors().
Status save_variables(const VariableStore& store, const std::filesystem::path& path, const Interruption& until = {});

// Gives all variables what the file says, in one turn; nothing when there is an error. Errors: as Session::load_variables says.
Status load_variables(VariableStore& store, const std::filesystem::path& path, const LoadVariablesOptions& what = {},
                      const Limits& limits = {}, const Interruption& until = {});

}  // namespace heddle
