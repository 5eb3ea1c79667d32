// What each kind of reduction is made of, as text. Of reduce_source.cc alone.
#pragma once

#include <string>

#include "generate/reduce/reduce_source.h"

namespace heddle::cuda {

// In terms of x (an element, of type C), a and b (folded values, of type A), `position` and `shift`.
struct FoldText {
  std::string folded;   // the type A
  std::string start;    // of nothing
  std::string add;      // of a and x
  std::string combine;  // of a and b
  std::string value;    // what comes out of a, with p and `shift`
  std::string result;   // the type that it has, where it is no element of a tensor; "": it is
};

FoldText fold_text(const ReduceShape& shape);

}  // namespace heddle::cuda
