// Whether a number is an address that the process may read.
#pragma once

namespace heddle::cuda::standin {

// Of the heap, a stack or a library. Numbers below all of these, such as counts, are none.
bool is_host_memory(const void* address);

}  // namespace heddle::cuda::standin
