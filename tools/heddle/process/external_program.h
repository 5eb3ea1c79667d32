// A program of the system that the tool can do without.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace heddle::tool {

// Runs a program found in PATH with `input` as its standard input, and stores its standard output. What it says on standard error is
// dropped. False: it is not installed, ended with another status than 0, or was killed because it took longer than `limit` or wrote more
// than `max_output` bytes.
bool run_external(const std::vector<std::string>& words, const std::string& input, std::chrono::milliseconds limit, size_t max_output,
                  std::string* output);

}  // namespace heddle::tool
