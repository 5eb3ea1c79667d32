// What the references of operators that only move elements have in common.
#pragma once

#include <utility>

#include "conformance/reference.h"

namespace heddle::conformance {

// Of the shape: at every position the element of `data` that lies at from(position).
Numbers moved(const Numbers& data, const Shape& shape, const std::function<Ints(const Ints&)>& from);
// Along every axis the elements of `data` at the coordinates that are listed for it; -1 stands for an element that is `fill`.
Numbers picked(const Numbers& data, const std::vector<Ints>& coordinates, Number fill = 0);
// 0, 1, ..., count - 1.
Ints counted(int64_t count);
// What picks everything.
std::vector<Ints> all_of(const Shape& shape);
Shape shape_of(const Ints& dims);

inline const std::pair<const Kind, std::string> one_input = {Kind::broadcast, "it has one tensor"};
inline const std::pair<const Kind, std::string> takes_no_steps = {Kind::strided, "it takes whole tensors"};

}  // namespace heddle::conformance
