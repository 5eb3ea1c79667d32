// Net: a dataflow graph as plain values. It is what a file holds, transforms rewrite and the compiler reads.
//
// Values are in SSA form: each is a net input, a constant, a version of a variable, or one output of one node. Node order is the
// program order of the file and always a valid serial order after resolve. Everything is indexed by the ids of base/ids.h.
// A Net owns nothing outside itself but the mappings of its constants (shared). Copyable; not synchronised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/rare.h"
#include "base/text/shared_text.h"
#include "heddle/tensor.h"

namespace heddle {

struct Net;
struct OperatorSchema;  // plugin/schema.h

// One extent of a declared type.
struct Dim {
  enum class Kind : uint8_t {
    constant,  // `value`
    symbol,    // named `symbol`, bound to a number before infer
    bounded,   // at most `value`; the true extent is known after the producing operator ran
    dynamic,   // no bound
  };
  Kind kind = Kind::dynamic;
  int64_t value = -1;
  SharedText symbol;
  static Dim of(int64_t n) { return {Kind::constant, n, {}}; }
  static Dim named(SharedText name) { return {Kind::symbol, -1, std::move(name)}; }
  static Dim at_most(int64_t n) { return {Kind::bounded, n, {}}; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

// The type that a file declares for a value. `ranked` is false when only the dtype is known.
struct DeclaredType {
  DType dtype = DType::none;
  bool ranked = false;
  std::vector<Dim> dims;
  static DeclaredType of(DType dtype, const Shape& shape);
  // None: some extent is not a number.
  std::optional<Shape> fixed_shape() const;
  friend bool operator==(const DeclaredType&, const DeclaredType&) = default;
};

// Immutable tensor bytes, row-major, at least 64-byte aligned in memory. Shared between nets and sessions; the owner may be a
// mapping of a weights file.
struct Blob {
  DType dtype = DType::none;
  Shape shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<const void> owner;
  // Allocates a zero-filled, writable blob; `mutable_data` stays valid as long as the blob or a copy of it.
  static std::shared_ptr<Blob> allocate(DType dtype, const Shape& shape, std::byte** mutable_data);
  static std::shared_ptr<Blob> copy_of(DType dtype, const Shape& shape, const void* data);
};

// Identifies the weights in a file: XXH3-128 of its header, where the header has the checksum of every tensor. All zero: not known.
struct WeightsIdentity {
  uint64_t high = 0, low = 0;
  bool known() const { return (high | low) != 0; }
  std::string text() const;  // 32 hexadecimal digits
  // Returns false when `text` is something else.
  static bool parse(std::string_view text, WeightsIdentity* identity);
  friend bool operator==(const WeightsIdentity&, const WeightsIdentity&) = default;
};

// Bytes in a weights file beneath the net's folder.
struct WeightReference {
  std::string file;          // relative to the net's folder; empty: bytes are in the net itself
  std::string tensor;        // name in the safetensors file
  uint64_t checksum = 0;     // xxh64 of the tensor's bytes; 0: not recorded
  WeightsIdentity identity;  // of the file when the net was written; compared when the weights are attached
  friend bool operator==(const WeightReference&, const WeightReference&) = default;
};

// Content of a constant or the initial content of a variable: loaded bytes, and where they come from.
struct Content {
  std::shared_ptr<const Blob> blob;  // null until weights are attached
  Rare<WeightReference> reference;
  // Whether there are bytes, or a reference to a file.
  bool any() const { return blob || !reference->file.empty(); }
};

using AttributeVariant = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                                      std::shared_ptr<const Blob>, std::shared_ptr<const Net>>;

// An attribute's value. Tensors are blobs; subnets share ownership because copies of a node share them.
//
// A variant whose copies may fail: when an alternative throws while it is copied, the variant of libstdc++ destroys another one that was
// never made (it takes a variant of such alternatives for one that always has a value). So a copy is completed before it is kept.
class AttributeValue : public AttributeVariant {
 public:
  AttributeValue() noexcept = default;
  template <class T, class = std::enable_if_t<!std::is_base_of_v<AttributeVariant, std::decay_t<T>>>>
  AttributeValue(T&& value) : AttributeVariant(std::forward<T>(value)) {}  // NOLINT: implicit on purpose
  AttributeValue(AttributeValue&& other) noexcept = default;
  AttributeValue& operator=(AttributeValue&& other) noexcept = default;
  AttributeValue(const AttributeValue& other) : AttributeVariant(int64_t{0}) {
    std::visit([this](auto copy) { *this = std::move(copy); }, static_cast<const AttributeVariant&>(other));
  }
  AttributeValue& operator=(const AttributeValue& other) { return *this = AttributeValue(other); }
  ~AttributeValue() = default;
};
struct Attribute {
  std::string name;
  AttributeValue value;
};

struct Value {
  enum class Kind : uint8_t { input, constant, variable, node_output };
  std::string name;
  Kind kind = Kind::node_output;
  DeclaredType type;     // as the file declares it; for node outputs optional, checked against inference
  NodeId producer;       // node_output, and versions of a variable written by a node
  uint32_t output = 0;   // which output of the producer
  VariableId variable;   // set for every version of a variable
  uint32_t version = 0;  // of the variable; 0 is the content before the run
  Content content;       // constant
};

// One pointwise operator fused into the node before it; applied to output 0 in order. `expression` is in terms of "acc" and "operand".
struct EpilogueOp {
  std::string expression;
  int32_t operand_input = -1;  // among the node's inputs
  int32_t operand_kind = 0;    // HEDDLE_OPERAND_*
  std::string name;            // of the operator that was fused, for plans and profiles
  SharedText type;             // likewise
};

struct Node {
  std::string name;
  SharedText domain;  // "" is ONNX's
  SharedText type;
  int32_t version = 0;           // requested; 0: the newest known
  SharedText device;             // as in the file: kind[:index], perhaps with "|cpu" (base/device_name.h); empty: the default one
  std::vector<ValueId> inputs;   // invalid ids: absent optional inputs
  std::vector<ValueId> outputs;  // invalid ids: not wanted
  std::vector<Attribute> attributes;
  std::vector<NodeId> control;             // these run before this one
  Rare<std::vector<EpilogueOp>> epilogue;  // set by fusion; never in files
  DeviceId placed = host_device;           // where it runs, among TypedNet::devices; given by placement
  uint32_t random_stream = 0;              // constant id of its random stream, assigned when the net is built; kept by transforms
  const OperatorSchema* schema = nullptr;  // set by resolve; kept alive by Net::keep_alive

  const AttributeValue* find(const std::string& attribute) const;
  int64_t int_attribute(const std::string& attribute, int64_t otherwise) const;
  bool has_subnet() const;
};

// State that lives in the session: parameters, running statistics, counters.
struct Variable {
  std::string name;
  DeclaredType type;
  Content initial;
  std::string initializer;  // a rule for the first content (net/initializer.h); empty: none. Not used while there is content
  // The variable of this net that it is a replica of, on another device; empty: of none. A replica has no content or rule of its own: it
  // begins with that of the other, and whatever is written to the other from outside is written to it.
  std::string replica_of;
  ValueId first;  // version 0
  ValueId last;   // the version left after a run
  bool trainable = false;
};

// Two dense values that together are a sparse slice of a third.
struct SparseLink {
  ValueId of;        // the dense value it is a slice of (a variable or its gradient's target)
  std::string kind;  // "rows"
  ValueId indices;
  ValueId values;
  int64_t rows = 0;  // of the dense value
  bool unique = false;
  bool sorted = false;
};

struct OperatorSetVersion {
  std::string domain;
  int32_t version = 0;
  friend bool operator==(const OperatorSetVersion&, const OperatorSetVersion&) = default;
};

struct Net {
  std::string name;
  std::string doc;
  std::vector<OperatorSetVersion> operator_sets;  // default versions for nodes that have none
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Variable> variables;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<SparseLink> sparse_links;
  std::vector<std::pair<std::string, std::string>> metadata;  // keys of the runtime begin with "heddle."
  VariableId step_counter;                                    // the variable that counts steps, if any
  std::vector<std::shared_ptr<const void>> keep_alive;        // plugin libraries whose schemas the nodes point to

  Value& operator[](ValueId id) { return values[id.index]; }
  const Value& operator[](ValueId id) const { return values[id.index]; }
  Node& operator[](NodeId id) { return nodes[id.index]; }
  const Node& operator[](NodeId id) const { return nodes[id.index]; }
  Variable& operator[](VariableId id) { return variables[id.index]; }
  const Variable& operator[](VariableId id) const { return variables[id.index]; }
  // Linear search by name; for tools and tests, not for hot paths.
  std::optional<ValueId> find_value(const std::string& value_name) const;
};

// Adds a variable, whose `first` and `last` are version 0, a value of its name and type, which this gives.
ValueId add_variable(Net& net, Variable variable);
// Makes value `output` of a node the next version of the variable that `before` is a version of.
void make_next_version(Net& net, ValueId output, ValueId before);

// Steps of building a Net by hand: recipes, importer, tests. Nothing is checked while it is built: whatever the calls, finish() returns a
// Net that may be inspected, and its users check it as load checks a file (open_net, save_net: load/structure.h). Ids of values that do not
// exist, and contents that are null, are found then.
class NetBuilder {
 public:
  explicit NetBuilder(std::string name) { net_.name = std::move(name); }
  ValueId input(std::string name, DeclaredType type);
  ValueId input(std::string name, DType dtype, const Shape& shape) { return input(std::move(name), DeclaredType::of(dtype, shape)); }
  ValueId constant(std::string name, std::shared_ptr<const Blob> blob);
  ValueId constant_ints(std::string name, const std::vector<int64_t>& values);  // i64 [n]
  ValueId constant_float(std::string name, float value);                        // f32 scalar
  // Adds version 0 of a new variable.
  ValueId variable(std::string name, std::shared_ptr<const Blob> initial, bool trainable = false);
  // Adds version 0 of a new variable without content, which a rule fills (net/initializer.h).
  ValueId variable(std::string name, DType dtype, const Shape& shape, std::string initializer, bool trainable = false);
  // Adds one node; outputs are named `name` when there is one, else `name:<i>`. Empty domain: ONNX's.
  std::vector<ValueId> add(std::string type, std::string name, std::vector<ValueId> inputs, size_t output_count = 1,
                           std::vector<Attribute> attributes = {}, std::string domain = {});
  ValueId add1(std::string type, std::string name, std::vector<ValueId> inputs, std::vector<Attribute> attributes = {},
               std::string domain = {}) {
    return add(std::move(type), std::move(name), std::move(inputs), 1, std::move(attributes), std::move(domain))[0];
  }
  // Makes output `index` of `node`'s outputs the next version of `variable`.
  void updates(ValueId output, ValueId variable_version);
  void output(ValueId value) { net_.outputs.push_back(value); }
  void rename(ValueId value, std::string name) {
    if (has(value)) net_[value].name = std::move(name);
  }
  Net& net() { return net_; }
  Net finish() { return std::move(net_); }

 private:
  // Whether the value exists. If not, the net is marked as broken: an output that is no value.
  bool has(ValueId value) {
    if (value.valid() && value.index < net_.values.size()) return true;
    net_.outputs.emplace_back();
    return false;
  }
  Net net_;
};

// The key of the metadata that says by which rule gradients share the collectives of a communicator.
inline std::string buckets_key(const std::string& communicator) {
  return "heddle.buckets." + communicator;
}
// The key of the metadata that says for how many ranks of a communicator, which learn together, the net was made, if there are several.
inline std::string ranks_key(const std::string& communicator) {
  return "heddle.ranks." + communicator;
}

}  // namespace heddle
