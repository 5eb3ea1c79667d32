// Compiled programs on disk, by a key. What is wrong with the folder or a file makes it as if it were not there.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::cuda {

// Empty: none is to be used.
std::string cache_folder();
// False: there is none that may be trusted.
bool read_cached(const std::string& key, std::string* code);
// Keeps the folder's programs within `max_bytes`: those that were not read for longest go first.
void write_cached(const std::string& key, const std::string& code, uint64_t max_bytes = uint64_t{1} << 30);
// XXH3-128 of the text, in hexadecimal digits.
std::string hash_text(const std::string& text);

}  // namespace heddle::cuda
