// Examples of operators (heddle_example): one call as text, which documentation shows and `heddle plugin check` runs.
//
//   f32[2,3] = 1 2 3 4 5 6, i64[2] = 2 0; axis=1 -> f32[2,2] = 3 1 6 4
//
// Inputs are in the order of the ports, "-" for one that is absent; then attributes, then outputs. A tensor is its dtype, its dims, and its
// elements in row-major order, one for all of them, or LOW..HIGH for random ones (high excluded where they are integers); without elements
// an input is random, and only dtype and dims of an output are compared. Numbers are written as in nets: 1.5, -inf, nan. An attribute is an
// integer, a number (with a point or an exponent), "text", a list of these, a tensor, or a net in braces: docs/net_format.md, where the
// version, names of nets and operators, and the values that are inputs may be left out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator_runner/operator_runner.h"
#include "plugin/schema.h"

namespace heddle::tool {

// A tensor of an example as it is written.
struct ExampleTensor {
  bool absent = false;
  DType dtype = DType::none;
  Shape shape;
  std::shared_ptr<const Blob> content;  // null: not given
};

struct Example {
  OperatorCall call;  // with random content where none is given
  std::vector<ExampleTensor> outputs;
  bool says_outputs = false;
};

// `seed` determines random content. Errors: syntax, naming the place; unknown_attribute, attribute_mismatch, arity_mismatch.
Result<Example> parse_example(const OperatorSchema& schema, std::string_view text, uint64_t seed);

// One attribute, NAME=VALUE. Errors: syntax, unknown_attribute.
Result<Attribute> parse_example_attribute(const OperatorSchema& schema, std::string_view text, uint64_t seed);

// Parses tensors alone, for a rewrite rule. Errors: syntax.
Result<std::vector<ExampleTensor>> parse_example_tensors(std::string_view text, uint64_t seed);

// Returns the extent that the indices in input `input` must be below, as declared; none: it holds no indices. 1 where the indexed input has
// no such axis.
std::optional<int64_t> index_bound(const OperatorSchema& schema, const OperatorCall& call, size_t input);
// Fills the input, where it holds such indices, with random ones; with zeros where none is valid.
void draw_indices(const OperatorSchema& schema, OperatorCall& call, size_t input, uint64_t seed);

// The tensor as an example writes it, which is read back as the same bits: "f32[2] = 1 2.5".
std::string example_text(const Blob& blob);
// The call with its outputs as an example; contents of more than `most` elements are left out.
std::string example_text(const OperatorCall& call, const std::vector<std::shared_ptr<const Blob>>& outputs, int64_t most);

}  // namespace heddle::tool
