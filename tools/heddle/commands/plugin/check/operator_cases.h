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
  std::vector<ExampleTensor> expected;  // from an example; contents null where it does not give them
  bool may_refuse = true;               // false: an example gives it
  std::string about;                    // describes the inputs, for reports
  // Not examined where its outputs are larger: made-up inputs may be multiplied into one another.
  int64_t max_output_bytes = std::numeric_limits<int64_t>::max();

  bool is_example() const { return !may_refuse; }
};

struct OperatorCases {
  std::vector<OperatorCase> examples;
  // Ordered by how much a refusal tells: the one with the most dimensions last.
  std::vector<OperatorCase> generic;
};

// Generic cases: every dtype of the declaration on scalars, odd, empty, square and large shapes, the same for all inputs; then other
// numbers of optional inputs and outputs, and other values of attributes, where there are any. Indices are below their bounds, and once
// fewer than the rows they index. Errors: an example that can't be read. `host` answers the calls; null: requests to it fail.
Result<OperatorCases> operator_cases(const OperatorSchema& schema, uint64_t seed, CallHost* host);

// Cases of small whole numbers, which every dtype holds, in f32 or the dtype that the first input takes instead.
std::vector<OperatorCase> whole_number_cases(const OperatorSchema& schema, uint64_t seed);

// Converts the call to another dtype of input `port`: inputs that share a type variable with it get it too, with the same numbers as far as
// it can hold them. Expectations stay where the numbers do: among floats, among integers, and for whole numbers from floats to integers.
// False: it is not possible.
bool in_dtype(const OperatorSchema& schema, uint32_t port, DType dtype, OperatorCase& of);

// The relative error that an example's elements may have, by the rounding of the dtype.
double precision_of(DType dtype);

// Whether examples show that equal numbers in another dtype of the first input give other ones: between two kinds of dtypes, like a
// division of integers and reals; within one kind, like an operator on bytes, and then for all.
class DtypeDependence {
 public:
  explicit DtypeDependence(const std::vector<OperatorCase>& examples);
  bool between(DType a, DType b) const;

 private:
  bool depends_[3][3] = {}, of_bytes_ = false;
};

// Records which parts of the declaration no call has used so far.
class Coverage {
 public:
  Coverage(const RegistrySnapshot& registry, const OperatorSchema& schema);
  void ran(const OperatorCall& call);
  // "optional input \"b\"", "attribute \"axis\" other than its default", "f16 of \"x\""; empty: all parts have run.
  std::vector<std::string> missing() const;
  // Dtypes that input `port` may have; with `unseen`, only those that it has not had so far.
  std::vector<DType> dtypes(uint32_t port, bool unseen = false) const;

 private:
  const OperatorSchema& schema_;
  std::vector<heddle_dtype_set> dtypes_;      // by input port: what kernels take
  std::vector<heddle_dtype_set> ran_dtypes_;  // likewise
  std::vector<char> inputs_, outputs_, attributes_;
};

}  // namespace heddle::tool
