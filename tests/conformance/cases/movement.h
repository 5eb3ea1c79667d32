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
// For picked(): what Slice takes of a tensor of the shape, its operands from input `first` on, and what Pad shows of one.
std::vector<Ints> sliced_coordinates(const Call& call, const Shape& shape, size_t first);
std::vector<Ints> padded_coordinates(const Call& call, const Shape& shape, size_t pads, size_t axes);
Shape shape_of(const Ints& dims);

inline const std::pair<const Kind, std::string> one_input = {Kind::broadcast, "it has one tensor"};
inline const std::pair<const Kind, std::string> takes_no_steps = {Kind::strided, "it takes whole tensors"};

}  // namespace heddle::conformance
