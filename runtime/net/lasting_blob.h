// Bytes that live as long as a session and are read from anywhere in it: packed weights, variables.
#pragma once

#include <memory>

#include "net/net.h"

namespace heddle {

// As Blob::allocate, in huge pages where the system gives them: rows of a table that lie anywhere cost several times as much in small
// ones, of which the processor has to look one up for each. Whole huge pages only, so that none is wasted. Not for what comes and goes: so
// aligned it would leave holes in the heap.
std::shared_ptr<Blob> lasting_blob(DType dtype, const Shape& shape, std::byte** mutable_data);

}  // namespace heddle
