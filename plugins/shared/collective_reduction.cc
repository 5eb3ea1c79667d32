#include "shared/collective_reduction.h"

#include <string>
#include <utility>

namespace heddle::operators {

Status read_reduction(const Attributes& attributes, Reduction* reduction) {
  const std::string name = attributes.s("reduction");
  constexpr std::pair<const char*, Reduction> known[] = {
      {"sum", Reduction::sum}, {"mean", Reduction::mean}, {"min", Reduction::min}, {"max", Reduction::max}, {"prod", Reduction::prod}};
  for (const auto& [text, value] : known)
    if (name == text) return *reduction = value, Status();
  return invalid("reduction is \"" + name + "\", expected sum, mean, min, max or prod");
}

}  // namespace heddle::operators
