// lower_einsum: a sum of products over named dimensions becomes sums, permutations and products of matrices, for which there are kernels
// that do better than general loops. The loops keep the cases that only they can do: extents that only the run knows, and a diagonal, whose
// label an operand names twice.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "edit/editor.h"
#include "place/place.h"
#include "plugin/kernel_call.h"
#include "plugin/registry.h"
#include "transform/einsum_equation.h"
#include "transform/matrix_form.h"
#include "transform/transform.h"

namespace heddle {
namespace {

bool is_einsum(const Node& node) {
  const bool is_whole = !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(), [](ValueId id) { return id.valid(); });
  return node.domain.empty() && node.type == "Einsum" && node.epilogue->empty() && is_whole;
}

bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

// A value and the labels of its dimensions, of which none has one element and none occurs twice. The value itself may have further
// dimensions of one element, or several labels in one dimension: as_shape corrects that where it matters.
struct Operand {
  ValueId value;
  std::string labels;
};

// Lowers one node. The nodes that it adds are placed right before that node.
class EinsumLowering {
 public:
  EinsumLowering(Editor& editor, NodeId at) : editor_(editor), at_(at), dtype_(editor.net().type(editor.node(at).inputs[0]).dtype) {}
  // Returns the value that replaces the node's output; none: the node stays as it is.
  Result<std::optional<ValueId>> value();
  const std::vector<NodeId>& added() const { return added_; }

 private:
  bool has_known_extents() const;
  bool has_operators() const;
  bool read_equation();
  // Reads operand `k`, whose dimensions have these labels.
  void read_operand(size_t k, const std::string& labels);
  // True if the device has a kernel of its own for Einsum, which multiplies matrices where they lie in a few calls of a library, and reads
  // operands in any order for purely elementwise products.
  bool is_left_to_kernel(const Operand& a, const Operand& b, const MatrixForm& form) const;
  Shape shape_of(const std::string& labels) const;

  Result<ValueId> add(const char* type, std::vector<ValueId> inputs, std::vector<Attribute> attributes = {});
  ValueId integers(const char* what, const std::vector<int64_t>& values);
  Result<ValueId> as_shape(ValueId value, const Shape& shape);
  Result<Operand> permuted(const Operand& operand, const std::string& order);
  // Sums the operand over the labels that are not in `kept`.
  Result<Operand> summed(const Operand& operand, const std::string& kept);
  Result<Operand> elementwise(const Operand& a, const Operand& b, const std::string& output);
  Result<Operand> matrix_product(const Operand& a, const Operand& b, MatrixForm form);
  // Multiplies two operands and sums over the labels not in `output`. `ordered`: the output's order matters. None: better left to the
  // loops.
  Result<std::optional<Operand>> product(Operand a, Operand b, const std::string& output, bool ordered);
  Result<std::optional<Operand>> product_of_all();
  // Returns the labels of the product with the fewest elements, and in `first` and `second` the pair of operands that makes it.
  std::string smallest_pair(size_t* first, size_t* second) const;

  Editor& editor_;
  const NodeId at_;
  const DType dtype_;
  std::vector<Operand> operands_;
  std::vector<std::string> diagonals_;  // by operand: the equation that takes its diagonal; empty: it names no label twice
  std::string output_;                  // labels of more than one element
  LabelExtents extents_ = {};
  std::vector<NodeId> added_;
};

bool EinsumLowering::has_known_extents() const {
  const Node& node = editor_.node(at_);
  std::vector<ValueId> values = node.inputs;
  values.push_back(node.outputs[0]);
  return std::all_of(values.begin(), values.end(), [&](ValueId id) {
    const TensorType& type = editor_.net().type(id);
    return !type.late() && type.shape.element_count() > 0;
  });
}

bool EinsumLowering::has_operators() const {
  const auto takes = [&](const char* type) {
    const OperatorSchema* const schema = editor_.net().registry->find_operator("", type);
    return schema && (schema->op->inputs[0]->dtypes & HEDDLE_DTYPE_BIT(static_cast<int>(dtype_))) != 0;
  };
  return takes("MatMul") && takes("Gemm") && takes("Mul") && takes("ReduceSum") && takes("Transpose") && takes("Reshape");
}

bool EinsumLowering::read_equation() {
  const Node& node = editor_.node(at_);
  std::vector<int> ranks;
  for (const ValueId id : node.inputs) ranks.push_back(editor_.net().type(id).shape.rank());
  const AttributeValue* const text = node.find("equation");
  if (!text) return false;
  const EinsumEquation equation = einsum_equation(std::get<std::string>(*text), ranks);
  extents_.fill(1);
  for (size_t k = 0; k < node.inputs.size(); ++k) read_operand(k, equation.operands[k]);
  if (operands_.size() == 1 && !diagonals_[0].empty()) return false;
  for (const char label : equation.output)
    if (extents_[static_cast<size_t>(label)] != 1) output_ += label;
  return true;
}

void EinsumLowering::read_operand(size_t k, const std::string& labels) {
  Operand operand = {editor_.node(at_).inputs[k], {}};
  // `once` has each label once; the equation that takes the diagonal has letters of its own, as an ellipsis has none.
  std::string once, all, kept;
  for (size_t d = 0; d < labels.size(); ++d) {
    if (!has_label(once, labels[d])) once += labels[d];
    all += static_cast<char>('a' + once.find(labels[d]));
    const int64_t extent = editor_.net().type(operand.value).shape[static_cast<int>(d)];
    if (extent == 1) continue;  // counts for every element along the label
    extents_[static_cast<size_t>(labels[d])] = extent;
    if (has_label(operand.labels, labels[d])) continue;
    operand.labels += labels[d];
    kept += all.back();
  }
  diagonals_.push_back(once.size() == labels.size() ? "" : all + "->" + kept);
  operands_.push_back(std::move(operand));
}

bool EinsumLowering::is_left_to_kernel(const Operand& a, const Operand& b, const MatrixForm& form) const {
  constexpr int64_t max_calls = 64;
  const Node& node = editor_.node(at_);
  const bool is_float = is_narrow(dtype_) || dtype_ == DType::f32 || dtype_ == DType::f64;
  if (node.placed == host_device || node.inputs.size() != 2 || !is_float) return false;
  const std::string& device = editor_.net().device_of(node);
  const KernelEntry* const kernel = KernelCall(editor_.net(), node, device, 1).find();
  if (!kernel || is_launched(*kernel->kernel, device)) return false;
  int64_t calls = 0;
  return form.depth.empty() || (lies_as_matrices(a.labels, b.labels, output_, extents_, &calls) && calls <= max_calls);
}

Shape EinsumLowering::shape_of(const std::string& labels) const {
  Shape shape;
  for (const char label : labels) shape.push_back(extents_[static_cast<size_t>(label)]);
  return shape;
}

Result<ValueId> EinsumLowering::add(const char* type, std::vector<ValueId> inputs, std::vector<Attribute> attributes) {
  const std::string name = fmt::format("{}/{}{}", editor_.node(at_).name, type, added_.size());
  HEDDLE_TRY(const ValueId value, editor_.add_node(at_, type, name, std::move(inputs), std::move(attributes)));
  added_.push_back(editor_.graph()[value].producer);
  return value;
}

ValueId EinsumLowering::integers(const char* what, const std::vector<int64_t>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return editor_.add_constant(fmt::format("{}/{}{}", editor_.node(at_).name, what, added_.size()),
                              Blob::copy_of(DType::i64, shape, values.data()));
}

Result<ValueId> EinsumLowering::as_shape(ValueId value, const Shape& shape) {
  if (editor_.net().type(value).shape == shape) return value;
  return add("Reshape", {value, integers("shape", {shape.begin(), shape.end()})});
}

Result<Operand> EinsumLowering::permuted(const Operand& operand, const std::string& order) {
  if (operand.labels == order) return operand;
  std::vector<int64_t> permutation;
  for (const char label : order) permutation.push_back(static_cast<int64_t>(operand.labels.find(label)));
  HEDDLE_TRY(const ValueId shaped, as_shape(operand.value, shape_of(operand.labels)));
  HEDDLE_TRY(const ValueId value, add("Transpose", {shaped}, {{"perm", permutation}}));
  return Operand{value, order};
}

Result<Operand> EinsumLowering::summed(const Operand& operand, const std::string& kept) {
  std::vector<int64_t> axes;
  Operand result;
  for (size_t d = 0; d < operand.labels.size(); ++d) {
    if (has_label(kept, operand.labels[d]))
      result.labels += operand.labels[d];
    else
      axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return operand;
  HEDDLE_TRY(const ValueId shaped, as_shape(operand.value, shape_of(operand.labels)));
  HEDDLE_TRY(result.value, add("ReduceSum", {shaped, integers("axes", axes)}, {{"keepdims", int64_t{0}}}));
  return result;
}

// Multiplies without a sum: operands in the output's order, with one element along the labels that they lack after their first label.
Result<Operand> EinsumLowering::elementwise(const Operand& a, const Operand& b, const std::string& output) {
  std::vector<ValueId> inputs;
  for (const Operand* operand : {&a, &b}) {
    std::string order;
    Shape shape;
    for (const char label : output) {
      const bool mine = has_label(operand->labels, label);
      if (mine) order += label;
      if (mine || shape.rank() > 0) shape.push_back(mine ? extents_[static_cast<size_t>(label)] : 1);
    }
    HEDDLE_TRY(const Operand in_order, permuted(*operand, order));
    HEDDLE_TRY(const ValueId shaped, as_shape(in_order.value, shape));
    inputs.push_back(shaped);
  }
  HEDDLE_TRY(const ValueId value, add("Mul", inputs));
  return Operand{value, output};
}

// Dimensions of the batch, and without one those of the rows, stay separate: MatMul takes them so, and readers of the result need no
// Reshape.
Result<Operand> EinsumLowering::matrix_product(const Operand& a, const Operand& b, MatrixForm form) {
  const Operand &first = form.swapped ? b : a, &second = form.swapped ? a : b;
  // A constant is transposed before the run.
  form.left_turned = form.left_turned && !editor_.is_constant(first.value);
  form.right_turned = form.right_turned && !editor_.is_constant(second.value);
  HEDDLE_TRY(const Operand left, permuted(first, form.left()));
  HEDDLE_TRY(const Operand right, permuted(second, form.right()));
  const auto shape = [&](const std::string& apart, const std::string& outer, const std::string& inner) {
    Shape dims = shape_of(apart);
    dims.push_back(element_count(outer, extents_));
    dims.push_back(element_count(inner, extents_));
    return dims;
  };
  const bool turns = form.left_turned || form.right_turned;
  const bool rows_apart = form.batch.empty() && !turns && form.rows.size() > 1;
  const std::string apart = rows_apart ? form.rows.substr(0, form.rows.size() - 1) : form.batch;
  const std::string rows = rows_apart ? form.rows.substr(form.rows.size() - 1) : form.rows;
  HEDDLE_TRY(const ValueId x, as_shape(left.value, form.left_turned ? shape("", form.depth, rows) : shape(apart, rows, form.depth)));
  HEDDLE_TRY(const ValueId w,
             as_shape(right.value, form.right_turned ? shape("", form.columns, form.depth) : shape(form.batch, form.depth, form.columns)));
  std::vector<Attribute> attributes;
  if (form.left_turned) attributes.push_back({"transA", int64_t{1}});
  if (form.right_turned) attributes.push_back({"transB", int64_t{1}});
  HEDDLE_TRY(const ValueId value, add(turns ? "Gemm" : "MatMul", {x, w}, attributes));
  return Operand{value, form.result()};
}

Result<std::optional<Operand>> EinsumLowering::product(Operand a, Operand b, const std::string& output, bool ordered) {
  const auto is_alone = [&](const Operand& in, const Operand& other) {
    return std::any_of(in.labels.begin(), in.labels.end(), [&](char c) { return !has_label(other.labels, c) && !has_label(output, c); });
  };
  // Rounded to 16 bits, such a sum would have lost precision that the product needs.
  const bool sums_alone = is_alone(a, b) || is_alone(b, a);
  if (sums_alone && is_narrow(dtype_)) return std::optional<Operand>();
  HEDDLE_TRY(a, summed(a, output + b.labels));
  HEDDLE_TRY(b, summed(b, output + a.labels));
  const MatrixForm form = matrix_form(a.labels, b.labels, output, ordered, extents_);
  if (!sums_alone && is_left_to_kernel(a, b, form)) return std::optional<Operand>();
  // Measured: for one row by one column, matrix products take up to five times as long as multiplying elements and summing; for one column
  // by one row they take less.
  const bool is_dot = form.rows.empty() && form.columns.empty() && !is_narrow(dtype_);
  const bool is_outer = form.batch.empty() && !form.rows.empty() && !form.columns.empty() && form.moved == 0 && dtype_ == DType::f32;
  if (form.depth.empty() ? is_outer : !is_dot) {
    HEDDLE_TRY(const Operand result, matrix_product(a, b, form));
    return std::optional(result);
  }
  HEDDLE_TRY(const Operand products, elementwise(a, b, form.depth.empty() ? output : a.labels));
  HEDDLE_TRY(const Operand result, summed(products, output));
  return std::optional(result);
}

std::string EinsumLowering::smallest_pair(size_t* first, size_t* second) const {
  std::string best;
  int64_t fewest = INT64_MAX;
  for (size_t i = 0; i < operands_.size(); ++i)
    for (size_t k = i + 1; k < operands_.size(); ++k) {
      std::string needed = output_, kept;
      for (size_t other = 0; other < operands_.size(); ++other)
        if (other != i && other != k) needed += operands_[other].labels;
      for (const char label : operands_[i].labels + operands_[k].labels)
        if (has_label(needed, label) && !has_label(kept, label)) kept += label;
      const int64_t elements = element_count(kept, extents_);
      if (elements >= fewest) continue;
      fewest = elements;
      best = kept;
      *first = i;
      *second = k;
    }
  return best;
}

// Multiplies two operands at a time. Intermediate products must not be much larger than the inputs and the output.
Result<std::optional<Operand>> EinsumLowering::product_of_all() {
  constexpr int64_t max_growth = 4;
  if (operands_.size() > 2 && is_narrow(dtype_)) return std::optional<Operand>();
  int64_t largest = element_count(output_, extents_);
  for (const Operand& operand : operands_) largest = std::max(largest, element_count(operand.labels, extents_));
  while (operands_.size() > 2) {
    size_t first = 0, second = 1;
    const std::string kept = smallest_pair(&first, &second);
    if (element_count(kept, extents_) / max_growth > largest || kept.size() > static_cast<size_t>(max_rank))
      return std::optional<Operand>();
    HEDDLE_TRY(const std::optional<Operand> pair, product(operands_[first], operands_[second], kept, false));
    if (!pair) return pair;
    operands_[first] = *pair;
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return product(operands_[0], operands_[1], output_, true);
}

Result<std::optional<ValueId>> EinsumLowering::value() {
  if (!has_known_extents() || !has_operators() || !read_equation()) return std::optional<ValueId>();
  for (size_t k = 0; k < operands_.size(); ++k) {
    if (diagonals_[k].empty()) continue;
    HEDDLE_TRY(operands_[k].value, add("Einsum", {operands_[k].value}, {{"equation", diagonals_[k]}}));
  }
  std::optional<Operand> result = operands_[0];
  if (operands_.size() > 1) {
    HEDDLE_TRY(result, product_of_all());
    if (!result) return std::optional<ValueId>();
  }
  HEDDLE_TRY(result, summed(*result, output_));
  HEDDLE_TRY(result, permuted(*result, output_));
  HEDDLE_TRY(ValueId value, as_shape(result->value, editor_.net().type(editor_.node(at_).outputs[0]).shape));
  if (added_.empty()) {
    HEDDLE_TRY(value, add("Identity", {value}));
  }
  return std::optional(value);
}

Status lower(Editor& editor, NodeId at) {
  EinsumLowering lowering(editor, at);
  HEDDLE_TRY(const std::optional<ValueId> value, lowering.value());
  const std::vector<NodeId>& added = lowering.added();
  const bool runs = std::all_of(added.begin(), added.end(), [&](NodeId id) { return runs_where_it_is(editor.net(), editor.node(id)); });
  if (value && runs) {
    editor.replace(editor.node(at).outputs[0], *value);
    editor.remove(at);
  } else {
    for (const NodeId id : added) editor.remove(id);
  }
  return {};
}

}  // namespace

Result<TypedNet> lower_einsum(TypedNet net) {
  if (std::none_of(net.net.nodes.begin(), net.net.nodes.end(), is_einsum)) return net;
  Editor editor(std::move(net));
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node& node = editor.node(NodeId(i));
    if (is_einsum(node) && node.control.empty()) HEDDLE_CHECK(lower(editor, NodeId(i)));
  }
  return editor.finish();
}

}  // namespace heddle
