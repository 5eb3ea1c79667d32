// The facts about a value that are known while a model is being imported: its dtype and rank, never more. Legalising old operators needs
// ranks (legacy broadcast aligns an operand at an axis) and dtypes (bounds of Clip become typed constants). The runtime infers types again
// in full; a missing hint only means that a legalisation takes its general form or reports that it is not possible.
#pragma once

#include <string_view>
#include <vector>

#include "net/net.h"

namespace heddle::importer {

struct Hint {
  DType dtype = DType::none;
  int rank = -1;  // -1: unknown
};

// Hint of output 0 of a node in its newest semantics. `inputs[i]` is all unknown for absent inputs; `contents[i]` is the constant
// content of input i or null.
Hint hint_of(std::string_view type, const std::vector<Hint>& inputs, const std::vector<const Blob*>& contents,
             const std::vector<Attribute>& attributes);

}  // namespace heddle::importer
