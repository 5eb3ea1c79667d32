// Lookups in bags: the refused inputs, and the errors.
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

Tensor index_list(const std::vector<int64_t>& v) {
  return tensor<int64_t>({static_cast<int64_t>(v.size())}, v);
}
Tensor small_table() {
  return tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
}

void expect_lookup_refused(const char* type, const std::vector<Tensor>& inputs, const std::vector<Attribute>& attributes,
                           const std::string& words) {
  OperatorCall call = call_of(type, inputs, attributes);
  call.domain = "heddle";
  const auto outputs = run_operator(cpu_registry(), call);
  ASSERT_FALSE(outputs.ok()) << words;
  EXPECT_NE(outputs.status().text().find(words), std::string::npos) << outputs.status().text();
}

TEST(Lookup, SaysWhatDoesNotFit) {
  const Tensor indices = index_list({3, 1, 1, 0}), square = tensor<int64_t>({2, 2}, {3, 1, 1, 0}),
               weights = tensor<float>({4}, {1, 2, 3, 4});
  const Attribute with_end = {"include_last_offset", int64_t{1}};
  const auto mode = [](const char* text) { return std::vector<Attribute>{{"mode", std::string(text)}}; };
  expect_lookup_refused("EmbeddingBag", {small_table(), square}, mode("max"), "mode is \"max\", expected \"sum\" or \"mean\"");
  expect_lookup_refused("EmbeddingBag", {small_table(), square}, mode("median"), "mode is \"median\", expected \"sum\" or \"mean\"");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0}), weights}, mode("mean"),
                        "weights of lookups go with \"sum\" alone");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices}, {}, "expected [bags, lookups of each] where there are no offsets");
  expect_lookup_refused("EmbeddingBag", {small_table(), square, index_list({0})}, {}, "expected one dimension beside offsets");
  expect_lookup_refused("EmbeddingBag", {small_table(), square}, {with_end}, "include_last_offset is set, and there are no offsets");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0}), tensor<float>({2}, {1, 2})}, {},
                        "weights has shape [2], expected [4], that of indices");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, square}, {}, "offsets has shape [2, 2], expected one dimension");
  expect_lookup_refused("EmbeddingBag", {small_table(), index_list({}), index_list({})}, {with_end}, "offsets is empty");
  expect_lookup_refused("EmbeddingBag", {tensor<float>({}, {1}), indices, index_list({0})}, {}, "the table is a scalar");
}

TEST(Lookup, SaysWhereOffsetsGoWrong) {
  const Tensor indices = index_list({3, 1, 1, 0});
  const Attribute with_end = {"include_last_offset", int64_t{1}};
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({1, 2})}, {}, "offsets begins with 1, expected 0");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0, 3, 2})}, {}, "bag 1 is from 3 to 2 of 4 indices");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0, 5})}, {}, "bag 0 is from 0 to 5 of 4 indices");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0, -1})}, {}, "bag 0 is from 0 to -1 of 4 indices");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({})}, {}, "offsets names no bag for 4 indices");
  expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0, 2, 3})}, {with_end},
                        "the last of offsets is 3, expected the number of indices, 4");
}

// Every index, of either width, is checked against the number of rows; negative ones do not count from the end.
TEST(Lookup, NamesAnIndexThatIsOutside) {
  for (const int64_t wrong : {int64_t{-1}, int64_t{4}, INT64_MAX, INT64_MIN}) {
    const std::string words = "index " + std::to_string(wrong) + " of lookup 2 is outside [0, 4), the rows of the table";
    const Tensor indices = index_list({3, 1, wrong, 0});
    expect_lookup_refused("EmbeddingBag", {small_table(), indices, index_list({0, 1})}, {}, words);
    expect_lookup_refused("EmbeddingBag", {small_table(), tensor<int64_t>({2, 2}, {3, 1, wrong, 0})}, {}, words);
    expect_lookup_refused("SparseLengthsSum", {small_table(), indices, index_list({4})}, {}, words);
    expect_lookup_refused("SparseLengthsMean", {small_table(), indices, index_list({4})}, {}, words);
    expect_lookup_refused("SparseLengthsWeightedSum", {small_table(), tensor<float>({4}, {0, 0, 0, 0}), indices, index_list({4})}, {},
                          words);
  }
  expect_lookup_refused("EmbeddingBag", {small_table(), tensor<int32_t>({3}, {0, 1, -1}), index_list({0})}, {},
                        "index -1 of lookup 2 is outside [0, 4)");
  expect_lookup_refused("EmbeddingBag", {tensor<float>({2, 0}, {}), index_list({0, 2}), index_list({0})}, {},
                        "index 2 of lookup 1 is outside [0, 2)");
}

TEST(Lookup, NamesLengthsThatAreNotThoseOfTheIndices) {
  const Tensor indices = index_list({3, 1, 1, 0});
  expect_lookup_refused("SparseLengthsSum", {small_table(), indices, index_list({2, 3})}, {},
                        "lengths add up to 5, and there are 4 indices");
  expect_lookup_refused("SparseLengthsMean", {small_table(), indices, index_list({2})}, {}, "lengths add up to 2, and there are 4 indices");
  expect_lookup_refused("SparseLengthsSum", {small_table(), indices, index_list({INT64_MAX, INT64_MAX})}, {}, "and there are 4 indices");
  expect_lookup_refused("SparseLengthsSum", {small_table(), indices, index_list({5, -1})}, {}, "length -1 of bag 1 is negative");
}

}  // namespace
}  // namespace heddle::testing
