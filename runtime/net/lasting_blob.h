// Memory that lives as long as a session and is read at random positions: packed weights, variables.
#pragma once

#include <memory>

#include "net/net.h"

namespace heddle {

// Allocates like Blob::allocate, in huge pages where the system provides them: reading rows at random positions of a table costs several
// times as much in small pages, as the processor has to look up a page for each. Only whole huge pages are used, so that none is wasted.
// Not for short-lived memory: with this alignment it would leave holes in the heap.
std::shared_ptr<Blob> lasting_blob(DType dtype, const Shape& shape, std::byte** mutable_data);

}  // namespace heddle
