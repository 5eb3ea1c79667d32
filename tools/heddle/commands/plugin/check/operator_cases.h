// The calls that `heddle plugin check` makes of an operator: its examples, and inputs that its declaration allows.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "commands/plugin/example.h"
#include "plugin/registry.h"

namespace heddle::tool {

struct OperatorCase {
  OperatorCall call;
  std::vector<ExampleTensor> expected;  // of an example; contents null where it does not say them
  bool may_refuse = true;               // not what an example says
  std::string about;                    // for reports: what the inputs are
  // Not examined where it gives more than this: made-up inputs may be multiplied into one another.
  int64_t max_output_bytes = std::numeric_limits<int64_t>::max();

  bool is_example() const { return !may_refuse; }
};

struct OperatorCases {
  std::vector<OperatorCase> examples;
  // In the order in which refusals say most: the one with the most dimensions last.
  std::vector<OperatorCase> generic;
};

// Generic: every dtype of the declaration on scalars, odd, empty, square and large shapes, the same for all inputs; then other numbers of
// optional inputs and outputs, and other values of attributes, where there are any. Indices are below their bounds, and once fewer than
// what they index. Errors: an example that can't be read. `host` answers the calls; null: what asks for it fails.
Result<OperatorCases> operator_cases(const OperatorSchema& schema, uint64_t seed, CallHost* host);

// Small whole numbers, which every dtype holds, in f32 or what the first input takes in its place.
std::vector<OperatorCase> whole_number_cases(const OperatorSchema& schema, uint64_t seed);

// The call in another dtype of input `port`: what shares a type variable with it has it too, with the same numbers as far as it can hold
// them. What is expected stays where the numbers do: among floats, among integers, and for whole numbers from floats to integers. False: it
// can't be had.
bool in_dtype(const OperatorSchema& schema, uint32_t port, DType dtype, OperatorCase& of);

// How much of a value an example's elements may be off, by the rounding of the dtype.
double precision_of(DType dtype);

// Whether examples say that equal numbers in another dtype of the first input give other ones: between two sorts of dtypes, as a division
// does of integers and reals; of one sort, as an operator of bytes does, and then of all.
class DtypeDependence {
 public:
  explicit DtypeDependence(const std::vector<OperatorCase>& examples);
  bool between(DType a, DType b) const;

 private:
  bool depends_[3][3] = {}, of_bytes_ = false;
};

// What the declaration allows and no call has shown so far.
class Coverage {
 public:
  Coverage(const RegistrySnapshot& registry, const OperatorSchema& schema);
  void ran(const OperatorCall& call);
  // "optional input \"b\"", "attribute \"axis\" other than its default", "f16 of \"x\""; empty: all of it has run.
  std::vector<std::string> missing() const;
  // That input `port` may have; with `unseen`, and has not had so far.
  std::vector<DType> dtypes(uint32_t port, bool unseen = false) const;

 private:
  const OperatorSchema& schema_;
  std::vector<heddle_dtype_set> dtypes_;      // by input port: what kernels take
  std::vector<heddle_dtype_set> ran_dtypes_;  // likewise
  std::vector<char> inputs_, outputs_, attributes_;
};

}  // namespace heddle::tool
