#include <fmt/format.h>

#include <utility>

#include "base/text/text.h"
#include "load/earlier_variables.h"
#include "load/json.h"
#include "net/literal.h"

namespace heddle {
namespace {

// Writes a net; members with their default value are left out.
class JsonWriter {
 public:
  JsonWriter(std::string& out, const ContentReferences& references) : out_(out), references_(references) {}

  void file(std::span<const Net> nets) { net(nets[0], 1, nets); }

 private:
  // `margin`: spaces before the members. `file`: all nets, where this is the first of a file.
  void net(const Net& net, size_t margin, std::span<const Net> file = {}) {
    out_ += "{";
    first_member_ = true;
    if (margin == 1) member(margin, "heddle", [&] { out_ += fmt::to_string(net_json_version); });
    if (!net.name.empty()) member(margin, "name", [&] { text(net.name); });
    if (!net.doc.empty()) member(margin, "doc", [&] { text(net.doc); });
    if (!net.operator_sets.empty())
      member(margin, "operator_sets", [&] {
        list(net.operator_sets, [&](const OperatorSetVersion& set) {
          out_ += "{\"domain\": ";
          text(set.domain);
          out_ += fmt::format(", \"version\": {}}}", set.version);
        });
      });
    if (!net.metadata.empty())
      member(margin, "metadata", [&] {
        out_ += '{';
        const char* separator = "";
        for (const auto& [key, value] : net.metadata) {
          out_ += std::exchange(separator, ", ");
          text(key);
          out_ += ": ";
          text(value);
        }
        out_ += '}';
      });
    member(margin, "inputs", [&] { list(net.inputs, [&](ValueId id) { text(net[id].name); }); });
    member(margin, "outputs", [&] { list(net.outputs, [&](ValueId id) { text(net[id].name); }); });
    if (net.step_counter.valid()) member(margin, "step_counter", [&] { text(net[net.step_counter].name); });
    if (!net.variables.empty()) member(margin, "variables", [&] { lines(net.variables, margin, [&](const Variable& v) { variable(v); }); });
    if (!net.values.empty()) member(margin, "values", [&] { lines(net.values, margin, [&](const Value& v) { value(net, v); }); });
    if (!net.nodes.empty()) member(margin, "nodes", [&] { lines(net.nodes, margin, [&](const Node& n) { node(net, n, margin); }); });
    if (!net.sparse_links.empty())
      member(margin, "sparse_links", [&] { lines(net.sparse_links, margin, [&](const SparseLink& link) { sparse_link(net, link); }); });
    if (file.size() > 1)
      member(margin, "nets", [&] {
        const Net* before = file.data();
        lines(file.subspan(1), margin, [&](const Net& other) {
          earlier_.add(*std::exchange(before, &other));
          this->net(other, margin + 2);
        });
      });
    out_ += "\n" + std::string(margin - 1, ' ') + "}";
  }

  void text(std::string_view s) { out_ += quoted(s); }
  template <class Value>
  void member(size_t margin, const char* key, Value value) {
    out_ += first_member_ ? "\n" : ",\n";
    out_.append(margin, ' ').append("\"").append(key).append("\": ");
    value();
    first_member_ = false;  // after nested nets, which start over
  }
  template <class List, class Each>
  void list(const List& items, Each each) {
    out_ += '[';
    const char* separator = "";
    for (const auto& item : items) {
      out_ += std::exchange(separator, ", ");
      each(item);
    }
    out_ += ']';
  }
  template <class List, class Each>
  void lines(const List& items, size_t margin, Each each) {
    const char* separator = "[\n";
    for (const auto& item : items) {
      out_ += std::exchange(separator, ",\n");
      out_.append(margin + 1, ' ');
      each(item);
    }
    out_.append("\n").append(margin, ' ').append("]");
  }

  // ", "dtype": "f32", "dims": [1, "N", {"at_most": 8}, null]"
  void type(const DeclaredType& t) {
    if (t.dtype != DType::none) out_ += fmt::format(", \"dtype\": \"{}\"", to_string(t.dtype));
    if (!t.ranked) return;
    out_ += ", \"dims\": ";
    list(t.dims, [&](const Dim& dim) {
      if (dim.kind == Dim::Kind::constant) out_ += fmt::to_string(dim.value);
      if (dim.kind == Dim::Kind::symbol) text(dim.symbol);
      if (dim.kind == Dim::Kind::bounded) out_ += fmt::format("{{\"at_most\": {}}}", dim.value);
      if (dim.kind == Dim::Kind::dynamic) out_ += "null";
    });
  }
  void content(const Content& c) {
    const WeightReference* reference = references_(c);
    if (reference == nullptr) {
      out_ += ", \"data\": ";
      append_literal(out_, *c.blob);
      return;
    }
    out_ += ", \"weights\": {\"file\": ";
    text(reference->file);
    out_ += ", \"tensor\": ";
    text(reference->tensor);
    if (reference->checksum != 0) out_ += fmt::format(", \"checksum\": \"{}\"", hex(reference->checksum));
    if (reference->identity.known()) out_ += fmt::format(", \"identity\": \"{}\"", reference->identity.text());
    out_ += '}';
  }
  void variable(const Variable& v) {
    out_ += "{\"name\": ";
    text(v.name);
    type(v.type);
    if (v.trainable) out_ += ", \"trainable\": true";
    if (!v.replica_of.empty()) {
      out_ += ", \"replica_of\": ";
      text(v.replica_of);
    }
    if (!earlier_.have(v)) {
      if (!v.initializer.empty()) {
        out_ += ", \"initializer\": ";
        text(v.initializer);
      }
      if (v.initial.any()) content(v.initial);
    }
    out_ += '}';
  }
  void value(const Net& net, const Value& v) {
    out_ += "{\"name\": ";
    text(v.name);
    if (v.kind == Value::Kind::input) out_ += ", \"kind\": \"input\"";
    if (v.kind == Value::Kind::constant) out_ += ", \"kind\": \"constant\"";
    if (v.kind == Value::Kind::variable) {
      out_ += ", \"kind\": \"variable\", \"variable\": ";
      text(net[v.variable].name);
      out_ += fmt::format(", \"version\": {}", v.version);
    } else {
      type(v.type);
    }
    if (v.kind == Value::Kind::constant) content(v.content);
    out_ += '}';
  }
  void values(const Net& net, const std::vector<ValueId>& ids) {
    list(ids, [&](ValueId id) {
      if (id.valid())
        text(net[id].name);
      else
        out_ += "null";
    });
  }
  void node(const Net& net, const Node& n, size_t margin) {
    out_ += "{\"name\": ";
    text(n.name);
    out_ += ", \"type\": ";
    text(n.type);
    if (!n.domain.empty()) {
      out_ += ", \"domain\": ";
      text(n.domain);
    }
    if (n.version != 0) out_ += fmt::format(", \"version\": {}", n.version);
    if (!n.device.empty()) {
      out_ += ", \"device\": ";
      text(n.device);
    }
    out_ += ", \"inputs\": ";
    values(net, n.inputs);
    out_ += ", \"outputs\": ";
    values(net, n.outputs);
    if (!n.attributes.empty()) {
      out_ += ", \"attributes\": {";
      const char* separator = "";
      for (const Attribute& a : n.attributes) {
        out_ += std::exchange(separator, ", ");
        attribute(a, margin);
      }
      out_ += '}';
    }
    if (!n.control.empty()) {
      out_ += ", \"control\": ";
      list(n.control, [&](NodeId id) { text(net[id].name); });
    }
    if (n.random_stream != 0) out_ += fmt::format(", \"random_stream\": {}", n.random_stream);
    out_ += '}';
  }

  // Strings of attributes may hold any bytes; those that are not UTF-8 are written in hex.
  void byte_string(const std::string& s) {
    if (is_utf8(s)) return text(s);
    static constexpr char digits[] = "0123456789abcdef";
    out_ += "{\"hex\": \"";
    for (const char c : s) {
      out_ += digits[static_cast<unsigned char>(c) >> 4];
      out_ += digits[static_cast<unsigned char>(c) & 15];
    }
    out_ += "\"}";
  }
  void attribute(const Attribute& a, size_t margin) {
    text(a.name);
    if (const auto* v = std::get_if<int64_t>(&a.value)) {
      out_ += fmt::format(": {{\"int\": {}", *v);
    } else if (const auto* v = std::get_if<double>(&a.value)) {
      out_ += ": {\"float\": ";
      append_number(out_, *v);
    } else if (const auto* v = std::get_if<std::string>(&a.value)) {
      out_ += ": {\"string\": ";
      byte_string(*v);
    } else if (const auto* v = std::get_if<std::vector<int64_t>>(&a.value)) {
      out_ += ": {\"ints\": ";
      list(*v, [&](int64_t i) { out_ += fmt::to_string(i); });
    } else if (const auto* v = std::get_if<std::vector<double>>(&a.value)) {
      out_ += ": {\"floats\": ";
      list(*v, [&](double d) { append_number(out_, d); });
    } else if (const auto* v = std::get_if<std::vector<std::string>>(&a.value)) {
      out_ += ": {\"strings\": ";
      list(*v, [&](const std::string& s) { byte_string(s); });
    } else if (const auto* v = std::get_if<std::shared_ptr<const Blob>>(&a.value)) {
      out_ += fmt::format(": {{\"tensor\": {{\"dtype\": \"{}\", \"dims\": {}, \"data\": ", to_string((*v)->dtype), (*v)->shape.text());
      append_literal(out_, **v);
      out_ += '}';
    } else if (const auto* v = std::get_if<std::shared_ptr<const Net>>(&a.value)) {
      out_ += ": {\"net\": ";
      net(**v, margin + 3);
    }
    out_ += '}';
  }
  void sparse_link(const Net& net, const SparseLink& link) {
    out_ += "{\"of\": ";
    text(net[link.of].name);
    out_ += ", \"kind\": ";
    text(link.kind);
    out_ += ", \"indices\": ";
    text(net[link.indices].name);
    out_ += ", \"values\": ";
    text(net[link.values].name);
    out_ += fmt::format(", \"rows\": {}", link.rows);
    if (link.unique) out_ += ", \"unique\": true";
    if (link.sorted) out_ += ", \"sorted\": true";
    out_ += '}';
  }

  std::string& out_;
  const ContentReferences& references_;
  EarlierVariables earlier_;
  bool first_member_ = true;
};

}  // namespace

std::string nets_to_json_text(std::span<const Net> nets, const ContentReferences& references) {
  std::string out;
  JsonWriter(out, references).file(nets);
  return out + "\n";
}

}  // namespace heddle
