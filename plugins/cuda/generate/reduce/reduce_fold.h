// Gives the parts of each kind of reduction as text. Used only by reduce_source.cc.
#pragma once

#include <string>

#include "generate/reduce/reduce_source.h"

namespace heddle::cuda {

// Texts in terms of x (an element, of type C), a and b (folded values, of type A), `position` and `shift`.
struct FoldText {
  std::string folded;   // the type A
  std::string start;    // fold of no elements
  std::string add;      // fold of a and x
  std::string combine;  // fold of a and b
  std::string value;    // result of a, with p and `shift`
  std::string result;   // type of the result, if it is no element of a tensor; "": it is one
};

FoldText fold_text(const ReduceShape& shape);

}  // namespace heddle::cuda
