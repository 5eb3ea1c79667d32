#include "conformance/expectation.h"

#include <algorithm>

namespace heddle::conformance {
namespace {

Call as_reference_sees(const OperatorCall& call) {
  Call seen;
  for (const auto& input : call.inputs) seen.inputs.push_back(input ? std::optional(numbers_of(*input)) : std::nullopt);
  seen.attributes = call.attributes;
  seen.seed = call.random_seed;
  seen.step = call.step;
  return seen;
}

}  // namespace

Expectation expectation(const Row& row, const OperatorSchema& schema, const OperatorCall& call) {
  Call seen = as_reference_sees(call);
  seen.output_count = std::max<size_t>(call.output_count, schema.op->output_count);
  Expectation expected;
  expected.outputs = row.reference(seen);
  expected.dtype = !call.inputs.empty() && call.inputs[0] ? call.inputs[0]->dtype
                   : expected.outputs.empty()             ? DType::none
                                                          : expected.outputs[0].dtype;
  const auto own = row.ulps_of.find(expected.dtype);
  expected.tolerance.ulps = own == row.ulps_of.end() ? row.ulps : own->second;
  expected.tolerance.signed_zeros = row.signed_zeros;
  return expected;
}

}  // namespace heddle::conformance
