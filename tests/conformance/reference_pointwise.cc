// Operators of one element of each input: arithmetic, comparisons, logic, bits, functions of one number.
#include <cmath>

#include "conformance/reference.h"

namespace heddle::conformance {
namespace {

using Inputs = std::vector<Number>;

// The shapes that a broadcasting operator of two inputs is called with.
std::vector<Case> two_inputs(const std::string& range = "") {
  const auto call = [&](const std::string& a, const std::string& b) { return "T" + a + range + ", T" + b + range; };
  return {{Kind::odd, call("[7]", "[7]")},
          {Kind::odd, call("[3,5,17]", "[3,5,17]")},
          {Kind::empty, call("[0]", "[0]")},
          {Kind::empty, call("[3,0,2]", "[1]")},
          {Kind::broadcast, call("[3,1,5]", "[7,1]")},
          {Kind::broadcast, call("[]", "[2,3]")},
          {Kind::broadcast, call("[2,33]", "[33]")},
          {Kind::rank, call("[1,2,1,2,1,2,1,3]", "[2,1,2,1,2,1,2,1]")},
          {Kind::large, call("[301,257]", "[301,257]")},
          {Kind::large, call("[301,257]", "[257]")}};
}
const std::map<Kind, std::string> no_strides = {{Kind::strided, "it takes whole tensors"}};

Row add() {
  return {.type = "Add",
          .reference = [](const Call& c) { return std::vector{elementwise(c, c[0].dtype, [](const Inputs& x) { return x[0] + x[1]; })}; },
          .cases = two_inputs(),
          .ulps = 0.5,
          .without = no_strides};
}

}  // namespace

std::vector<Row> pointwise_rows() {
  return {add()};
}

}  // namespace heddle::conformance
