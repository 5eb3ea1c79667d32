// Checks that a file is a complete shared library for this machine, before the dynamic loader maps it.
#pragma once

#include <filesystem>
#include <string>

#include "heddle/status.h"

namespace heddle {

// The loader checks little: a truncated library maps well and kills the process with SIGBUS while it is relocated. Reads the ELF header and
// the program headers only. `shown` is the path as errors name it. Code::plugin_unreadable when it is no file, no 64-bit x86-64 shared
// library, or shorter than its segments require.
Status check_elf(const std::filesystem::path& file, const std::string& shown);

}  // namespace heddle
