#include "shared/collective_parts.h"

#include <string>

namespace heddle::operators {

Status check_alike(Parts parts, uint32_t tensor) {
  const heddle_tensor& first = *parts[0]->inputs[tensor];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (tensor >= parts[i]->input_count) return invalid("participant " + std::to_string(i) + " gives fewer tensors than participant 0");
    const heddle_tensor& other = *parts[i]->inputs[tensor];
    if (other.dtype != first.dtype || other.element_count != first.element_count)
      return invalid("input " + std::to_string(tensor) + " of participant " + std::to_string(i) + " is " + dtype_name(other.dtype) +
                     " of " + std::to_string(other.element_count) + " elements, that of participant 0 " + dtype_name(first.dtype) + " of " +
                     std::to_string(first.element_count));
  }
  return {};
}

Status check_size(size_t participants, int64_t size) {
  if (static_cast<size_t>(size) == participants) return {};
  return invalid("size is " + std::to_string(size) + ", and the communicator has " + std::to_string(participants) + " participants");
}

Status check_root(size_t participants, int64_t root) {
  if (root >= 0 && static_cast<size_t>(root) < participants) return {};
  return invalid("root is " + std::to_string(root) + ", and the communicator has the participants 0 to " +
                 std::to_string(participants - 1));
}

}  // namespace heddle::operators
