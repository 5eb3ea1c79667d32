// Keys as parts of file names and of keys of servers.
#pragma once

#include <string>

namespace heddle::rendezvous {

// Returns a text of letters, digits, '_', '-' and '%' alone that no other name has; it is not empty.
std::string escaped(const std::string& name);

// A random number of `bytes` bytes, in hexadecimal digits, that no other process of any run has.
std::string random_digits(size_t bytes);

}  // namespace heddle::rendezvous
