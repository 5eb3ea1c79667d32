// Stores compiled programs on disk, by a key. If the folder or a file is unusable, it is treated as missing.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::cuda {

// Returns the folder; empty: none is to be used.
std::string cache_folder();
// Returns false if there is no file that may be trusted.
bool read_cached(const std::string& key, std::string* code);
// Writes a program, and keeps the folder within `max_bytes`: the least recently read files are removed first.
void write_cached(const std::string& key, const std::string& code, uint64_t max_bytes = uint64_t{1} << 30);
// Returns the XXH3-128 of the text, in hexadecimal digits.
std::string hash_text(const std::string& text);

}  // namespace heddle::cuda
