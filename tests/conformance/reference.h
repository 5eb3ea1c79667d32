// The reference that the conformance suite compares an operator with: a plain second implementation, and the calls to make of both.
//
// References compute in long double, which on x86-64 holds every number of every dtype exactly (64 bits of mantissa), in the most obvious
// loops, with none of the plugin's code. Each family of plugins/cpu has a file here with one row for each of its operators.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/tensor.h"
#include "net/net.h"

namespace heddle::conformance {

using Number = long double;
using Ints = std::vector<int64_t>;

// A tensor in row-major order. Booleans are 0 and 1.
struct Numbers {
  DType dtype = DType::none;
  Shape shape;
  std::vector<Number> values;
  // The magnitude that the rounding error of each value is relative to, such as the sum of the magnitudes of all terms of a sum; empty: the
  // value itself.
  std::vector<Number> scale;

  int64_t size() const { return shape.element_count(); }
};

// A sum of products, in variables of its own: through memory, a long double's addition takes several times as long. Integers are taken
// modulo 2^64, which no integer here comes near.
struct Sum {
  Number value = 0, magnitude = 0;  // magnitude: sum of the terms' magnitudes, the scale

  void add_product(Number a, Number b) {
    const Number term = a * b;
    value += term;
    magnitude += term < 0 ? -term : term;
  }
  void store(Numbers& y, size_t to) const {
    y.values[to] = value;
    y.scale[to] = magnitude;
  }
};

// Returns zeros (and no scale).
Numbers zeros(DType dtype, const Shape& shape);
Numbers numbers_of(const Blob& blob);
// Converts to the dtype: floats are rounded once to nearest even, integers keep their low bits, booleans are true if not 0.
std::shared_ptr<const Blob> blob_of(const Numbers& numbers);
// Converts one number in the same way.
Number rounded(DType dtype, Number value);
bool is_floating(DType dtype);
// Returns the dtypes by their numbers in ONNX, as attributes give them.
const std::map<int64_t, DType>& onnx_dtypes();

// One call, as a reference sees it.
class Call {
 public:
  std::vector<std::optional<Numbers>> inputs;  // nullopt: absent
  std::vector<Attribute> attributes;           // the given ones; others have the default that the reference states
  size_t output_count = 1;
  // For random operators: the values that a net with this operator alone would have.
  uint64_t seed = 0, step = 0;

  const Numbers& operator[](size_t i) const { return *inputs[i]; }
  bool has(size_t i) const { return i < inputs.size() && inputs[i].has_value(); }
  bool given(const std::string& name) const { return find(name) != nullptr; }
  int64_t i(const std::string& name, int64_t otherwise) const;
  double f(const std::string& name, double otherwise) const;
  std::string s(const std::string& name, const std::string& otherwise) const;
  Ints ints(const std::string& name, Ints otherwise = {}) const;
  std::vector<double> floats(const std::string& name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> strings(const std::string& name) const;
  std::optional<Numbers> tensor(const std::string& name) const;
  // Returns the name of a net that is given as an attribute.
  std::string net(const std::string& name) const;
  // Returns an input of integers as a list: axes, shapes, pads.
  Ints list(size_t i) const;

 private:
  const AttributeValue* find(const std::string& name) const;
};

// Computes all outputs that the call requests; those at the end that are not requested may be left out.
using Reference = std::function<std::vector<Numbers>(const Call&)>;

// The special property of a call's shapes.
enum class Kind : uint8_t {
  odd,        // extents that are no multiple of anything: vectors, blocks and tiles have tails
  empty,      // an extent is 0
  broadcast,  // inputs of different shapes
  strided,    // steps, strides, dilations, transposed or negative axes: elements that are not neighbours
  rank,       // the maximum number of dimensions: 8, or the operator's limit
  large,      // several tiles, with a ragged last one
};
constexpr int kind_count = 6;
const char* to_string(Kind kind);

struct Case {
  Kind kind;
  // A call in the notation of examples (docs/writing_an_operator.md), without outputs. A dtype "T" stands for each dtype that the first
  // input with it accepts; "U" likewise, while T is the first of its own; "T=LOW..HIGH" and the like as usual. Random numbers without a
  // range are floats in [-1, 1) and integers in [0, 100].
  std::string call;
};

// Allowed error of 16-bit floats for a kernel that computes in f32 and rounds once: the error of f32 may tip a number that is halfway
// between two of them, no other.
constexpr double rounded_once = 0.01;

struct Row {
  std::string type;
  Reference reference;
  std::vector<Case> cases;
  // Allowed error (judge.h). 0: exact, once rounded.
  double ulps = 0;
  std::string domain = "";
  // Kinds that no call of the operator can have, and why: {Kind::broadcast, "one input"}.
  std::map<Kind, std::string> without = {};
  // Dtypes with another allowed error.
  std::map<DType, double> ulps_of = {};
  // Each input and output may have a layout of its own, because the operator converts layouts: several are tried.
  bool any_layouts = false;
  // Whether the operator determines the sign of a zero: exact operators do.
  bool signed_zeros = ulps == 0;
  // The kernel has one tile whatever the shapes are.
  bool one_tile = false;
  // No call has one element in and one out.
  bool never_one_element = false;
  // No output ever has the size of the first input, unless both are empty.
  bool never_same_size = false;
};

// The rows of each family; rows() returns all of them.
std::vector<Row> pointwise_rows();
std::vector<Row> pointwise_unary_rows();
std::vector<Row> pointwise_activation_rows();
std::vector<Row> pointwise_cast_rows();
std::vector<Row> pointwise_program_rows();
std::vector<Row> pointwise_other_rows();
std::vector<Row> movement_rows();
std::vector<Row> movement_gradient_rows();
std::vector<Row> block_rows();
std::vector<Row> shape_rows();
std::vector<Row> indexing_rows();
std::vector<Row> scatter_rows();
std::vector<Row> lookup_rows();
std::vector<Row> selection_rows();
std::vector<Row> convolution_rows();
std::vector<Row> convolution_gradient_rows();
std::vector<Row> pooling_rows();
std::vector<Row> pooling_gradient_rows();
std::vector<Row> matrix_rows();
std::vector<Row> image_rows();
std::vector<Row> image_gradient_rows();
std::vector<Row> resize_rows();
std::vector<Row> collective_rows();
std::vector<Row> control_rows();
std::vector<Row> recurrent_rows();
std::vector<Row> recurrent_gradient_rows();
std::vector<Row> reduction_rows();
std::vector<Row> along_axis_rows();
std::vector<Row> normalization_rows();
std::vector<Row> normalization_channel_rows();
std::vector<Row> normalization_gradient_rows();
std::vector<Row> training_rows();
std::vector<Row> loss_gradient_rows();
std::vector<Row> optimizer_rows();
std::vector<Row> table_rows();
std::vector<Row> random_rows();
const std::vector<Row>& rows();

// ---------------------------------------------------------------- for references

// Convert between row-major positions and flat ones.
Ints position_of(int64_t flat, const Shape& shape);
int64_t flat_of(const Ints& position, const Shape& shape);
// Returns the flat position in a tensor that is broadcast (NumPy's rule) to the tensor of `position`.
int64_t broadcast_flat(const Ints& position, const Shape& shape);
Shape broadcast_of(const std::vector<Shape>& shapes);
int64_t positive_axis(int64_t axis, int rank);
// Computes f(numbers of all inputs at one position) at every position of the broadcast shape, as dtype.
Numbers elementwise(const Call& call, DType dtype, const std::function<Number(const std::vector<Number>&)>& f);

}  // namespace heddle::conformance
