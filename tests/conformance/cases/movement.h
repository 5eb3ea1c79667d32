// Functions that the references of operators that only move elements share.
#pragma once

#include <utility>

#include "conformance/reference.h"

namespace heddle::conformance {

// Returns a tensor of the shape, with the element of `data` at from(position) at every position.
Numbers moved(const Numbers& data, const Shape& shape, const std::function<Ints(const Ints&)>& from);
// Returns the elements of `data` at the coordinates that are listed for every axis; -1 means an element that is `fill`.
Numbers picked(const Numbers& data, const std::vector<Ints>& coordinates, Number fill = 0);
// Returns 0, 1, ..., count - 1.
Ints counted(int64_t count);
// Returns the coordinates that pick every element.
std::vector<Ints> all_of(const Shape& shape);
// Returns coordinates for picked(): those that Slice takes of a tensor of the shape, its operands from input `first` on, and those that Pad
// shows of one.
std::vector<Ints> sliced_coordinates(const Call& call, const Shape& shape, size_t first);
std::vector<Ints> padded_coordinates(const Call& call, const Shape& shape, size_t pads, size_t axes);
Shape shape_of(const Ints& dims);

inline const std::pair<const Kind, std::string> one_input = {Kind::broadcast, "it has one tensor"};
inline const std::pair<const Kind, std::string> takes_no_steps = {Kind::strided, "it takes whole tensors"};

}  // namespace heddle::conformance
