#include "net/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "net/literal.h"

namespace heddle {
namespace {

constexpr int64_t max_elements = 16, shown_elements = 4;

std::string content_text(const Blob& blob) {
  Blob shown = blob;
  const bool cut = blob.shape.element_count() > max_elements;
  if (cut) shown.bytes = std::min(blob.bytes, shown_elements * byte_width(blob.dtype));
  std::string text;
  append_literal(text, shown);
  if (cut) text.replace(text.size() - 1, 1, ", ...]");
  return text;
}

std::string content_text(const Content& content) {
  if (content.blob) return content_text(*content.blob);
  if (content.reference->file.empty()) return "nothing";
  return fmt::format("{} of {}", quoted(content.reference->tensor), quoted(content.reference->file));
}

std::string dim_text(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::constant:
      return fmt::to_string(dim.value);
    case Dim::Kind::symbol:
      return word(dim.symbol);
    case Dim::Kind::bounded:
      return fmt::format("<={}", dim.value);
    case Dim::Kind::dynamic:
      break;
  }
  return "?";
}

std::string type_text(DType dtype, const std::vector<std::string>& dims) {
  return fmt::format("{}[{}]", dtype == DType::none ? "?" : to_string(dtype), fmt::join(dims, ", "));
}

// Empty when nothing is declared.
std::string type_text(const DeclaredType& type) {
  if (!type.ranked) return type.dtype == DType::none ? "" : to_string(type.dtype);
  std::vector<std::string> dims;
  for (const Dim& dim : type.dims) dims.push_back(dim_text(dim));
  return type_text(type.dtype, dims);
}

std::string type_text(const TensorType& type) {
  if (type.dtype == DType::none) return "?";
  std::vector<std::string> dims;
  for (int i = 0; i < type.shape.rank(); ++i) {
    const int64_t extent = type.shape[i];
    dims.push_back(extent < 0 ? "?" : fmt::format("{}{}", i == type.bounded_axis ? "<=" : "", extent));
  }
  if (type.dynamic && dims.empty()) return fmt::format("{} dynamic", to_string(type.dtype));
  return fmt::format("{}{}", type_text(type.dtype, dims), type.follows_bounded ? " late" : "");
}

const char* operand_text(int32_t kind) {
  switch (kind) {
    case HEDDLE_OPERAND_SCALAR:
      return "scalar";
    case HEDDLE_OPERAND_LAST_DIMENSION:
      return "last dimension";
    case HEDDLE_OPERAND_PER_CHANNEL:
      return "per channel";
    case HEDDLE_OPERAND_SAME_SHAPE:
      return "same shape";
    default:
      return "of no kind";
  }
}

// Attributes of ONNX are f32: 0.1f is printed as "0.1", not as the nearest double.
std::string number_text(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value ? shortest(narrow) : shortest(value);
}

// A dash alone means no value.
std::string name_text(const std::string& name) {
  return name == "-" ? quoted(name) : word(name);
}

class NetPrinter {
 public:
  // `typed`: the typed net that contains `net`, null for a net that was not inferred.
  NetPrinter(const Net& net, const TypedNet* typed, std::string indent) : net_(net), typed_(typed), indent_(std::move(indent)) {}

  std::string run() {
    line(fmt::format("{}({}) -> ({})", word(net_.name), values(net_.inputs, true), values(net_.outputs, false)));
    for (size_t i = 0; i < net_.values.size(); ++i)
      if (net_.values[i].kind == Value::Kind::constant)
        line(fmt::format("{} = {}", value(ValueId(i), true), content_text(net_.values[i].content)));
    for (const Variable& v : net_.variables) variable(v);
    for (const Node& n : net_.nodes) node(n);
    for (const SparseLink& link : net_.sparse_links)
      line(fmt::format("sparse {} of {}: indices={} values={} rows={}{}{}", word(link.kind), value(link.of, false),
                       value(link.indices, false), value(link.values, false), link.rows, link.unique ? " unique" : "",
                       link.sorted ? " sorted" : ""));
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += indent_ + text + "\n"; }
  void variable(const Variable& v) {
    const std::string last = v.last == v.first ? std::string() : fmt::format(" -> {}", value(v.last, false));
    const auto input = std::find(net_.inputs.begin(), net_.inputs.end(), v.first);
    if (input != net_.inputs.end())  // in a subnet: a value of the net around it
      line(fmt::format("variable {}: input {}{}", word(v.name), input - net_.inputs.begin(), last));
    else
      line(fmt::format("variable {}: {} = {}{}{}", word(v.name), type_text(v.type), first_content(v), v.trainable ? " trainable" : "",
                       last));
  }

  std::string first_content(const Variable& v) const {
    if (!v.replica_of.empty()) return fmt::format("replica of {}", word(v.replica_of));
    return v.initial.any() || v.initializer.empty() ? content_text(v.initial) : v.initializer;
  }

  std::string value(ValueId id, bool with_type) const {
    if (!id.valid()) return "-";
    if (id.index >= net_.values.size()) return fmt::format("<value {} of {}>", id.index, net_.values.size());
    const Value& v = net_[id];
    const bool versioned = v.kind == Value::Kind::variable && v.variable.valid() && v.variable.index < net_.variables.size();
    std::string text = versioned ? fmt::format("{}@{}", word(net_[v.variable].name), v.version) : name_text(v.name);
    if (!with_type) return text;
    const std::string type = typed_ ? type_text(typed_->type(id)) : type_text(v.type);
    if (!type.empty()) text += fmt::format(": {}", type);
    if (typed_ && v.kind != Value::Kind::constant && typed_->known[id.index])
      text += fmt::format(" known {}", content_text(*typed_->known[id.index]));
    return text;
  }
  std::string values(const std::vector<ValueId>& ids, bool with_types) const {
    std::vector<std::string> texts;
    for (const ValueId id : ids) texts.push_back(value(id, with_types));
    return join(texts, ", ");
  }

  std::string attribute(const AttributeValue& given) const {
    struct Visitor {
      const std::string& indent;
      std::string operator()(int64_t v) const { return fmt::to_string(v); }
      std::string operator()(double v) const { return number_text(v); }
      std::string operator()(const std::string& v) const { return quoted(v); }
      std::string operator()(const std::vector<int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
      std::string operator()(const std::vector<double>& v) const {
        std::vector<std::string> texts;
        for (const double number : v) texts.push_back(number_text(number));
        return fmt::format("[{}]", fmt::join(texts, ", "));
      }
      std::string operator()(const std::vector<std::string>& v) const { return fmt::format("[{}]", all_quoted(v)); }
      std::string operator()(const std::shared_ptr<const Blob>& v) const {
        return v ? fmt::format("{}{}{}", to_string(v->dtype), v->shape.text(), content_text(*v)) : "nothing";
      }
      std::string operator()(const std::shared_ptr<const Net>& v) const {
        return v ? fmt::format("{{\n{}{}}}", NetPrinter(*v, nullptr, fmt::format("{}  ", indent)).run(), indent) : "nothing";
      }
    };
    return std::visit(Visitor{indent_}, given);
  }

  // The device that placement chose, in a typed net with several devices; else the one that the node declares, if any.
  std::string device(const Node& n) const {
    if (!typed_ || typed_->devices.size() == 1) return n.device.empty() ? "" : fmt::format(" @{}", word(n.device));
    return fmt::format(" @{}", word(typed_->device_of(n)));
  }

  void node(const Node& n) {
    const std::string type = n.domain.empty() ? n.type.text() : fmt::format("{}::{}", n.domain, n.type);
    const std::string version = n.version > 0 ? fmt::format("/{}", n.version) : "";
    std::string text = fmt::format("{} = {}{}({})", values(n.outputs, true), word(type), version, values(n.inputs, false));
    for (const Attribute& a : n.attributes) text += fmt::format(" {}={}", word(a.name), attribute(a.value));
    text += device(n);
    if (!n.control.empty()) {
      std::vector<std::string> names;
      for (const NodeId id : n.control) names.push_back(id.valid() && id.index < net_.nodes.size() ? net_[id].name : "nothing");
      text += fmt::format(" after({})", words(names, ", "));
    }
    for (const EpilogueOp& epilogue_op : *n.epilogue) {
      text += fmt::format(" then {}({})", word(epilogue_op.type), epilogue_op.expression);
      const auto operand = static_cast<size_t>(epilogue_op.operand_input);
      if (epilogue_op.operand_input >= 0 && operand < n.inputs.size())
        text += fmt::format(" operand={} {}", value(n.inputs[operand], false), operand_text(epilogue_op.operand_kind));
    }
    const bool named_by_output = !n.outputs.empty() && value(n.outputs[0], false) == name_text(n.name);
    line(named_by_output ? text : fmt::format("{} # {}", text, name_text(n.name)));
  }

  const Net& net_;
  const TypedNet* const typed_;
  const std::string indent_;
  std::string out_;
};

}  // namespace

std::string print(const Net& net) {
  return NetPrinter(net, nullptr, "").run();
}

std::string print(const TypedNet& net) {
  return NetPrinter(net.net, &net, "").run();
}

}  // namespace heddle
