// The stand-in's cubins: a text that names the library which a kernel's source was compiled to.
#pragma once

#include <string>

namespace heddle::cuda::standin {

std::string write_cubin(const std::string& architecture, const std::string& file);
// Returns false if it is no such text. The text ends with a zero.
bool read_cubin(const char* code, std::string* architecture, std::string* file);

}  // namespace heddle::cuda::standin
