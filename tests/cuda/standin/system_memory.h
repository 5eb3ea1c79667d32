// Tells whether a number is an address that the process may read.
#pragma once

namespace heddle::cuda::standin {

// Returns true for addresses of the heap, a stack or a library. Numbers below all of these, such as counts, are not.
bool is_host_memory(const void* address);

}  // namespace heddle::cuda::standin
