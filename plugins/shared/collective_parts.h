// The parts that the participants of a collective have in it, as far as kernels on all devices see them alike. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/operator_api.h"

namespace heddle::operators {

// The contexts of all participants, in their order.
using Parts = std::span<const RunContext* const>;

// Fails unless input `tensor` has as many elements of the same dtype on all participants.
Status check_alike(Parts parts, uint32_t tensor);
// Fails unless the attribute `size` of the node, by which its shapes were inferred, is the number of participants.
Status check_size(size_t participants, int64_t size);
// Fails unless the attribute `root` of the node is the number of a participant.
Status check_root(size_t participants, int64_t root);

}  // namespace heddle::operators
