#include <flatbuffers/flatbuffers.h>

#include <map>

#include "load/earlier_variables.h"
#include "load/flatbuffer.h"
#include "net_generated.h"

namespace heddle {
namespace {

using flatbuffers::Offset;
template <class T>
using Vector = flatbuffers::Vector<T>;
using TextOffset = Offset<flatbuffers::String>;

// FlatBuffers end at 2 GiB and abort beyond; a whole operator without its lists fits into the margin.
constexpr uint64_t payload_limit_bytes = (uint64_t{1} << 31) - (uint64_t{1} << 20);
// Longer texts are not shared, so that a file never expands to much more than its size (Decoder::budget_).
constexpr size_t shared_text_bytes = 64;

class Encoder {
 public:
  explicit Encoder(const ContentReferences& references) : references_(references) {}

  Status run(std::span<const Net> nets, const std::function<Status(std::span<const std::byte>)>& sink) {
    std::vector<Offset<file::Net>> others;
    for (size_t i = 1; i < nets.size(); ++i) {
      earlier_.add(nets[i - 1]);
      others.push_back(encode(nets[i], {}));
    }
    earlier_ = {};
    file::FinishNetBuffer(builder_, encode(nets[0], optional_list(others)));
    if (full_)
      return Status(Code::limit_exceeded, "the net takes more than 2 GiB in its file", "let less content stand inline (inline_bytes)");
    return sink(std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize())));
  }

 private:
  // Whether `bytes` more fit. Once they do not, only small things are still added, and run() refuses.
  bool room(uint64_t bytes) {
    if (builder_.GetSize() + bytes > payload_limit_bytes) full_ = true;
    return !full_;
  }
  TextOffset text(const std::string& s) { return room(s.size()) ? builder_.CreateString(s) : builder_.CreateString(""); }
  TextOffset optional_text(const std::string& s) { return s.empty() ? TextOffset() : text(s); }
  // For texts that many operators have.
  TextOffset shared_text(const std::string& s) {
    if (s.size() > shared_text_bytes) return text(s);
    const auto [at, added] = shared_.try_emplace(s);
    if (added) at->second = text(s);
    return at->second;
  }
  TextOffset optional_shared_text(const std::string& s) { return s.empty() ? TextOffset() : shared_text(s); }
  template <class T>
  Offset<Vector<T>> list(const std::vector<T>& v) {
    return room(v.size() * sizeof(T)) ? builder_.CreateVector(v) : Offset<Vector<T>>();
  }
  template <class T>
  Offset<Vector<T>> optional_list(const std::vector<T>& v) {
    return v.empty() ? Offset<Vector<T>>() : list(v);
  }
  template <class Id>
  Offset<Vector<uint32_t>> ids(const std::vector<Id>& v) {
    if (v.empty() || !room(v.size() * sizeof(uint32_t))) return {};
    uint32_t* out = nullptr;
    const Offset<Vector<uint32_t>> offset = builder_.CreateUninitializedVector(v.size(), &out);
    for (size_t i = 0; i < v.size(); ++i) flatbuffers::WriteScalar(out + i, v[i].index);
    return offset;
  }
  Offset<Vector<uint8_t>> bytes(const void* data, size_t size) {
    return room(size) ? builder_.CreateVector(static_cast<const uint8_t*>(data), size) : Offset<Vector<uint8_t>>();
  }
  Offset<file::Strings> strings(const std::vector<std::string>& v) {
    std::string all;
    std::vector<uint32_t> ends;
    for (const std::string& s : v) {
      if (!room(all.size() + s.size() + ends.size() * 4)) return {};
      all += s;
      ends.push_back(static_cast<uint32_t>(all.size()));
    }
    const auto text_bytes = bytes(all.data(), all.size());
    return file::CreateStrings(builder_, text_bytes, list(ends));
  }

  Offset<file::Type> type(const DeclaredType& t, std::map<std::string, int64_t>& symbols, std::vector<std::string>& symbol_names) {
    std::vector<file::Dim> dims;
    for (const Dim& dim : t.dims) {
      int64_t value = dim.kind == Dim::Kind::dynamic ? 0 : dim.value;
      if (dim.kind == Dim::Kind::symbol) {
        const auto [at, added] = symbols.try_emplace(dim.symbol, static_cast<int64_t>(symbol_names.size()));
        if (added) symbol_names.push_back(dim.symbol);
        value = at->second;
      }
      dims.emplace_back(value, static_cast<file::DimKind>(dim.kind));
    }
    const auto offset = dims.empty() ? Offset<Vector<const file::Dim*>>() : builder_.CreateVectorOfStructs(dims);
    return file::CreateType(builder_, static_cast<file::DType>(t.dtype), t.ranked, offset);
  }
  Offset<file::Content> content(const Content& c) {
    const WeightReference* reference = references_(c);
    if (reference == nullptr) return file::CreateContent(builder_, bytes(c.blob->data, static_cast<size_t>(c.blob->bytes)));
    const TextOffset name = shared_text(reference->file);
    const TextOffset tensor = text(reference->tensor);
    return file::CreateContent(builder_, 0, name, tensor, reference->checksum, reference->identity.high, reference->identity.low);
  }

  static file::ValueKind kind_of(Value::Kind kind) {
    switch (kind) {
      case Value::Kind::input:
        return file::ValueKind::input;
      case Value::Kind::constant:
        return file::ValueKind::constant;
      case Value::Kind::variable:
        return file::ValueKind::variable;
      case Value::Kind::node_output:
        break;
    }
    return file::ValueKind::node_output;
  }
  Offset<file::Value> value(const Value& v, std::map<std::string, int64_t>& symbols, std::vector<std::string>& symbol_names) {
    const TextOffset name = text(v.name);
    const bool typed = v.kind != Value::Kind::variable && v.type != DeclaredType{};
    const auto type_offset = typed ? type(v.type, symbols, symbol_names) : Offset<file::Type>();
    const auto content_offset = v.kind == Value::Kind::constant ? content(v.content) : Offset<file::Content>();
    return file::CreateValue(builder_, name, kind_of(v.kind), type_offset, v.variable.index, v.version, content_offset);
  }
  Offset<file::Variable> variable(const Variable& v, std::map<std::string, int64_t>& symbols, std::vector<std::string>& symbol_names) {
    const TextOffset name = text(v.name);
    const auto type_offset = type(v.type, symbols, symbol_names);
    const bool had = earlier_.have(v);
    const auto content_offset = had || !v.initial.any() ? file::CreateContent(builder_) : content(v.initial);
    const TextOffset initializer = had || v.initializer.empty() ? TextOffset() : text(v.initializer);
    const TextOffset replica_of = v.replica_of.empty() ? TextOffset() : text(v.replica_of);
    return file::CreateVariable(builder_, name, type_offset, content_offset, v.trainable, initializer, replica_of);
  }

  // Builds what the attribute's value points to, then the attribute itself.
  Offset<file::Attribute> attribute(const Attribute& a) {
    const TextOffset name = shared_text(a.name);
    const auto made = [&](file::AttributeKind kind, auto add) {
      file::AttributeBuilder attribute(builder_);
      add(attribute);
      attribute.add_name(name);
      attribute.add_kind(kind);
      return attribute.Finish();
    };
    using Kind = file::AttributeKind;
    using Builder = file::AttributeBuilder;
    if (const auto* v = std::get_if<int64_t>(&a.value)) return made(Kind::integer, [&](Builder& b) { b.add_integer(*v); });
    if (const auto* v = std::get_if<double>(&a.value)) return made(Kind::real, [&](Builder& b) { b.add_real(*v); });
    if (const auto* v = std::get_if<std::string>(&a.value)) {
      const auto offset = bytes(v->data(), v->size());
      return made(Kind::text, [&](Builder& b) { b.add_text(offset); });
    }
    if (const auto* v = std::get_if<std::vector<int64_t>>(&a.value)) {
      const auto offset = list(*v);
      return made(Kind::integers, [&](Builder& b) { b.add_integers(offset); });
    }
    if (const auto* v = std::get_if<std::vector<double>>(&a.value)) {
      const auto offset = list(*v);
      return made(Kind::reals, [&](Builder& b) { b.add_reals(offset); });
    }
    if (const auto* v = std::get_if<std::vector<std::string>>(&a.value)) {
      const auto offset = strings(*v);
      return made(Kind::texts, [&](Builder& b) { b.add_texts(offset); });
    }
    if (const auto* v = std::get_if<std::shared_ptr<const Blob>>(&a.value)) {
      const auto offset = tensor(**v);
      return made(Kind::tensor, [&](Builder& b) { b.add_tensor(offset); });
    }
    const auto offset = encode(*std::get<std::shared_ptr<const Net>>(a.value), {});
    return made(Kind::subnet, [&](Builder& b) { b.add_subnet(offset); });
  }
  Offset<file::Tensor> tensor(const Blob& blob) {
    const auto shape = builder_.CreateVector(blob.shape.data(), static_cast<size_t>(blob.shape.rank()));
    const auto data = bytes(blob.data, static_cast<size_t>(blob.bytes));
    return file::CreateTensor(builder_, static_cast<file::DType>(blob.dtype), shape, data);
  }
  Offset<file::Node> node(const Node& n) {
    const TextOffset name = text(n.name);
    const TextOffset domain = optional_shared_text(n.domain);
    const TextOffset type_text = shared_text(n.type);
    const TextOffset device = optional_shared_text(n.device);
    const auto inputs = ids(n.inputs);
    const auto outputs = ids(n.outputs);
    std::vector<Offset<file::Attribute>> attributes;
    for (const Attribute& a : n.attributes) attributes.push_back(attribute(a));
    const auto attribute_list = optional_list(attributes);
    return file::CreateNode(builder_, name, domain, type_text, n.version, device, inputs, outputs, attribute_list, ids(n.control),
                            n.random_stream);
  }

  Offset<Vector<Offset<file::OperatorSet>>> operator_sets(const Net& net) {
    std::vector<Offset<file::OperatorSet>> sets;
    for (const OperatorSetVersion& set : net.operator_sets)
      sets.push_back(file::CreateOperatorSet(builder_, optional_text(set.domain), set.version));
    return optional_list(sets);
  }
  Offset<Vector<Offset<file::Entry>>> metadata(const Net& net) {
    std::vector<Offset<file::Entry>> entries;
    for (const auto& [key, value] : net.metadata) {
      const TextOffset key_text = text(key);
      entries.push_back(file::CreateEntry(builder_, key_text, text(value)));
    }
    return optional_list(entries);
  }
  Offset<Vector<Offset<file::SparseLink>>> sparse_links(const Net& net) {
    std::vector<Offset<file::SparseLink>> links;
    for (const SparseLink& link : net.sparse_links)
      links.push_back(file::CreateSparseLink(builder_, link.of.index, shared_text(link.kind), link.indices.index, link.values.index,
                                             link.rows, link.unique, link.sorted));
    return optional_list(links);
  }

  Offset<file::Net> encode(const Net& net, Offset<Vector<Offset<file::Net>>> others) {
    std::map<std::string, int64_t> symbols;
    std::vector<std::string> symbol_names;
    std::vector<Offset<file::Value>> values;
    values.reserve(net.values.size());
    for (const Value& v : net.values) values.push_back(value(v, symbols, symbol_names));
    std::vector<Offset<file::Variable>> variables;
    for (const Variable& v : net.variables) variables.push_back(variable(v, symbols, symbol_names));
    std::vector<Offset<file::Node>> nodes;
    nodes.reserve(net.nodes.size());
    for (const Node& n : net.nodes) nodes.push_back(node(n));
    const TextOffset name = optional_text(net.name);
    const TextOffset doc = optional_text(net.doc);
    const auto sets = operator_sets(net);
    const auto symbol_list = symbol_names.empty() ? Offset<file::Strings>() : strings(symbol_names);
    const auto value_list = optional_list(values);
    const auto node_list = optional_list(nodes);
    const auto variable_list = optional_list(variables);
    const auto inputs = ids(net.inputs);
    const auto outputs = ids(net.outputs);
    const auto links = sparse_links(net);
    const auto entries = metadata(net);
    return file::CreateNet(builder_, name, doc, sets, symbol_list, value_list, node_list, variable_list, inputs, outputs, links, entries,
                           net.step_counter.index, others);
  }

  const ContentReferences& references_;
  flatbuffers::FlatBufferBuilder builder_;
  std::map<std::string, TextOffset, std::less<>> shared_;
  EarlierVariables earlier_;
  bool full_ = false;
};

}  // namespace

Status nets_to_flatbuffer(std::span<const Net> nets, const ContentReferences& references,
                          const std::function<Status(std::span<const std::byte>)>& sink) {
  return Encoder(references).run(nets, sink);
}

}  // namespace heddle
