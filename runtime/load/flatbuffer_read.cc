#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "load/earlier_variables.h"
#include "load/flatbuffer.h"
#include "load/structure.h"
#include "net/literal.h"
#include "net_generated.h"

namespace heddle {
namespace {

// Tables that one level of subnets adds: Net, Node, Attribute.
constexpr int64_t tables_per_level = 3;

template <class T>
uint32_t length(const T* vector) {
  return vector != nullptr ? vector->size() : 0;
}

std::span<const std::byte> bytes_of(const flatbuffers::Vector<uint8_t>* vector) {
  return std::as_bytes(std::span(vector->data(), vector->size()));
}

// The verifier checks the position of a vector, not the alignment of its elements. The builder does not align an empty one.
template <class T>
bool aligned(const T* vector) {
  return vector == nullptr || vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(int64_t) == 0;
}

// Reads verified tables. Parts of a flatbuffer may be shared, so a small file can describe something huge; `budget_` bounds what
// is made of it to a multiple of the file.
class Decoder {
 public:
  Decoder(const Limits& limits, int64_t payload_bytes) : limits_(limits), budget_(payload_bytes * 16 + 65536) {}

  // All nets of a file.
  std::vector<Net> decode_file(const file::Net& root) {
    std::vector<Net> nets(1);
    const auto count = length(root.nets());
    if (count > max_nets - 1)
      fail(nets[0], nullptr, Code::limit_exceeded, fmt::format("the file has {} nets, {} at most may be in one", count + 1, max_nets));
    if (count > max_nets - 1) return nets;
    nets.reserve(count + 1);  // earlier_ refers to them
    decode(root, 0, nets.data());
    for (uint32_t i = 0; i < count && !stopped_; ++i) {
      earlier_.add(nets.back());
      if (length(root.nets()->Get(i)->nets()) > 0)
        fail(nets.back(), nullptr, Code::file_corrupt, "a net of the file that is not the first one has further nets");
      decode(*root.nets()->Get(i), 0, &nets.emplace_back());
    }
    return nets;
  }
  void decode(const file::Net& in, int64_t depth, Net* net) {
    text(in.name(), &net->name);
    text(in.doc(), &net->doc);
    if (depth > limits_.subnet_depth) return stop(&Limits::subnet_depth, "subnets nest too deep");
    nodes_ += length(in.nodes());
    if (nodes_ > limits_.nodes) return stop(&Limits::nodes, "the net has too many operators");
    std::vector<std::string> symbol_names;
    if (in.symbols() != nullptr) strings(*in.symbols(), *net, &symbol_names);
    const std::vector<SharedText> symbols(symbol_names.begin(), symbol_names.end());
    decode_values(in, symbols, net);
    decode_variables(in, symbols, net);
    if (in.nodes() != nullptr) {
      net->nodes.reserve(in.nodes()->size());
      for (const file::Node* node : *in.nodes()) {
        if (stopped_) return;
        decode_node(*node, depth, net);
      }
    }
    decode_rest(in, net);
    if (depth == 0) earlier_.complete(*net);
    if (!stopped_) link_net(*net, depth == 0, limits_, findings_);
  }
  Status status() && { return std::move(findings_).status(); }

 private:
  void stop(int64_t Limits::*limit, std::string what) {
    if (!stopped_) findings_.add(over_limit(limits_, limit, std::move(what)));
    stopped_ = true;
  }
  bool spend(size_t bytes) {
    budget_ -= static_cast<int64_t>(bytes);
    if (budget_ >= 0) return true;
    if (!stopped_)
      findings_.add(Status(Code::file_corrupt, "the file shares its parts so often that the net would be many times its size"));
    stopped_ = true;
    return false;
  }
  void fail(const Net& net, const file::Node* node, Code code, std::string message) {
    Status status(code, std::move(message));
    if (node != nullptr) status = std::move(status).at(node->name()->str(), node->type()->str());
    findings_.add(std::move(status).in_net(net.name));
  }

  void text(const flatbuffers::String* in, std::string* out) {
    if (in != nullptr && spend(in->size())) out->assign(in->data(), in->size());
  }
  // Checks the alignment of a vector of 8-byte elements or structs.
  bool straight(bool is_aligned) {
    if (!is_aligned && !stopped_)
      findings_.add(Status(Code::file_corrupt, "a list of the flatbuffer is misaligned", "fetch the file again"));
    stopped_ = stopped_ || !is_aligned;
    return is_aligned;
  }
  // Equal texts of a net share one.
  SharedText shared(const flatbuffers::String* in) {
    if (in == nullptr || !spend(in->size())) return {};
    const std::string_view wanted(in->data(), in->size());
    const auto at = texts_.find(wanted);
    if (at != texts_.end()) return at->second;
    const SharedText made(wanted);
    texts_.emplace(made.text(), made);
    return made;
  }
  template <class T>
  void list(const flatbuffers::Vector<T>* in, std::vector<T>* out) {
    if (in != nullptr && straight(aligned(in)) && spend(in->size() * sizeof(T))) out->assign(in->begin(), in->end());
  }
  template <class Id>
  void ids(const flatbuffers::Vector<uint32_t>* in, std::vector<Id>* out) {
    if (in == nullptr || !spend(in->size() * sizeof(Id))) return;
    out->reserve(in->size());
    for (const uint32_t index : *in) out->emplace_back(index);
  }
  bool strings(const file::Strings& in, const Net& net, std::vector<std::string>* out) {
    const std::string_view bytes = in.bytes() != nullptr
                                       ? std::string_view(reinterpret_cast<const char*>(in.bytes()->data()), in.bytes()->size())
                                       : std::string_view();
    if (!spend(length(in.ends()) * sizeof(std::string) + bytes.size())) return false;
    uint32_t begin = 0;
    bool ordered = true;
    for (uint32_t i = 0; i < length(in.ends()) && ordered; ++i) {
      const uint32_t end = in.ends()->Get(i);
      ordered = end >= begin && end <= bytes.size();
      if (ordered) out->emplace_back(bytes.substr(begin, end - begin));
      begin = end;
    }
    if (ordered && begin == bytes.size()) return true;
    fail(net, nullptr, Code::file_corrupt, "the ends of a list of strings do not fit its bytes");
    return false;
  }

  void type(const file::Type& in, const std::vector<SharedText>& symbols, const Net& net, DeclaredType* out) {
    out->dtype = static_cast<DType>(in.dtype());
    out->ranked = in.ranked();
    if (in.dims() == nullptr || !straight(aligned(in.dims())) || !spend(in.dims()->size() * sizeof(Dim))) return;
    out->dims.reserve(in.dims()->size());
    for (const file::Dim* dim : *in.dims()) {
      Dim made;
      made.kind = static_cast<Dim::Kind>(dim->kind());
      if (made.kind == Dim::Kind::symbol) {
        const auto index = static_cast<uint64_t>(dim->value());
        if (index >= symbols.size())
          return fail(net, nullptr, Code::file_corrupt, fmt::format("a dim names symbol {}, which does not exist", index));
        if (!spend(symbols[index].size())) return;
        made.symbol = symbols[index];
      } else if (made.kind != Dim::Kind::dynamic) {
        made.value = dim->value();
      }
      out->dims.push_back(std::move(made));
    }
  }
  // Bytes of the wrong number stay as they are: the structure check names them.
  void content(const file::Content& in, const DeclaredType& declared, Content* out) {
    WeightReference reference;
    text(in.file(), &reference.file);
    text(in.tensor(), &reference.tensor);
    reference.checksum = in.checksum();
    reference.identity = {in.identity_high(), in.identity_low()};
    if (reference != WeightReference()) out->reference = std::move(reference);
    if (in.data() == nullptr || !spend(in.data()->size())) return;
    Shape shape;
    for (const Dim& dim : declared.dims) shape.push_back(dim.value);
    out->blob = literal_blob(declared.dtype, shape, bytes_of(in.data()));
  }

  void decode_values(const file::Net& in, const std::vector<SharedText>& symbols, Net* net) {
    if (in.values() == nullptr || !spend(in.values()->size() * sizeof(Value))) return;
    net->values.reserve(in.values()->size());
    for (const file::Value* value : *in.values()) {
      Value& made = net->values.emplace_back();
      text(value->name(), &made.name);
      switch (value->kind()) {
        case file::ValueKind::node_output:
          made.kind = Value::Kind::node_output;
          break;
        case file::ValueKind::input:
          made.kind = Value::Kind::input;
          break;
        case file::ValueKind::constant:
          made.kind = Value::Kind::constant;
          break;
        case file::ValueKind::variable:
          made.kind = Value::Kind::variable;
          break;
        default:
          fail(*net, nullptr, Code::file_corrupt,
               fmt::format("value {} has the kind {}, which does not exist", quoted(made.name), static_cast<int>(value->kind())));
      }
      if (value->type() != nullptr) type(*value->type(), symbols, *net, &made.type);
      made.variable = VariableId(value->variable());
      made.version = value->version();
      if (value->content() != nullptr) content(*value->content(), made.type, &made.content);
      if (stopped_) return;
    }
  }
  void decode_variables(const file::Net& in, const std::vector<SharedText>& symbols, Net* net) {
    if (in.variables() == nullptr || !spend(in.variables()->size() * sizeof(Variable))) return;
    net->variables.reserve(in.variables()->size());
    for (const file::Variable* variable : *in.variables()) {
      Variable& made = net->variables.emplace_back();
      text(variable->name(), &made.name);
      type(*variable->type(), symbols, *net, &made.type);
      content(*variable->content(), made.type, &made.initial);
      made.trainable = variable->trainable();
      text(variable->initializer(), &made.initializer);
      text(variable->replica_of(), &made.replica_of);
      if (stopped_) return;
    }
  }

  void decode_node(const file::Node& in, int64_t depth, Net* net) {
    if (!spend(sizeof(Node))) return;
    Node& made = net->nodes.emplace_back();
    text(in.name(), &made.name);
    made.domain = shared(in.domain());
    made.type = shared(in.type());
    made.version = in.version();
    made.device = shared(in.device());
    ids(in.inputs(), &made.inputs);
    ids(in.outputs(), &made.outputs);
    ids(in.control(), &made.control);
    made.random_stream = in.random_stream();
    if (in.attributes() == nullptr || !spend(in.attributes()->size() * sizeof(Attribute))) return;
    made.attributes.reserve(in.attributes()->size());
    for (const file::Attribute* attribute : *in.attributes()) {
      if (stopped_) return;
      Attribute& out = made.attributes.emplace_back();
      text(attribute->name(), &out.name);
      if (!attribute_value(*attribute, *net, depth, &out.value) && !stopped_)
        fail(*net, &in, Code::attribute_mismatch,
             fmt::format("attribute {} does not have exactly the one value that its kind {} asks for", quoted(out.name),
                         static_cast<int>(attribute->kind())));
    }
  }
  // Returns false when the fields that are set are not the one that `kind` names.
  bool attribute_value(const file::Attribute& in, const Net& net, int64_t depth, AttributeValue* out) {
    const int set = (in.integer() ? 1 : 0) + (in.real() ? 1 : 0) + (in.text() ? 1 : 0) + (in.integers() ? 1 : 0) + (in.reals() ? 1 : 0) +
                    (in.texts() ? 1 : 0) + (in.tensor() ? 1 : 0) + (in.subnet() ? 1 : 0);
    if (set != 1) return false;
    switch (in.kind()) {
      case file::AttributeKind::integer:
        if (in.integer()) *out = *in.integer();
        return in.integer().has_value();
      case file::AttributeKind::real:
        if (in.real()) *out = *in.real();
        return in.real().has_value();
      case file::AttributeKind::text:
        if (in.text() == nullptr || !spend(in.text()->size())) return false;
        *out = std::string(reinterpret_cast<const char*>(in.text()->data()), in.text()->size());
        return true;
      case file::AttributeKind::integers:
        list(in.integers(), &out->emplace<std::vector<int64_t>>());
        return in.integers() != nullptr;
      case file::AttributeKind::reals:
        list(in.reals(), &out->emplace<std::vector<double>>());
        return in.reals() != nullptr;
      case file::AttributeKind::texts:
        return in.texts() != nullptr && strings(*in.texts(), net, &out->emplace<std::vector<std::string>>());
      case file::AttributeKind::tensor:
        return in.tensor() != nullptr && tensor(*in.tensor(), out);
      case file::AttributeKind::subnet: {
        if (in.subnet() == nullptr) return false;
        auto subnet = std::make_shared<Net>();
        decode(*in.subnet(), depth + 1, subnet.get());
        *out = std::shared_ptr<const Net>(std::move(subnet));
        return true;
      }
    }
    return false;
  }
  bool tensor(const file::Tensor& in, AttributeValue* out) {
    if (in.data() == nullptr || length(in.shape()) > max_rank || !straight(aligned(in.shape())) || !spend(in.data()->size())) return false;
    Shape shape;
    for (uint32_t i = 0; i < length(in.shape()); ++i) shape.push_back(in.shape()->Get(i));
    *out = std::shared_ptr<const Blob>(literal_blob(static_cast<DType>(in.dtype()), shape, bytes_of(in.data())));
    return true;
  }

  void decode_rest(const file::Net& in, Net* net) {
    ids(in.inputs(), &net->inputs);
    ids(in.outputs(), &net->outputs);
    net->step_counter = VariableId(in.step_counter());
    for (uint32_t i = 0; i < length(in.operator_sets()) && spend(sizeof(OperatorSetVersion)); ++i) {
      OperatorSetVersion& made = net->operator_sets.emplace_back();
      text(in.operator_sets()->Get(i)->domain(), &made.domain);
      made.version = in.operator_sets()->Get(i)->version();
    }
    for (uint32_t i = 0; i < length(in.metadata()) && spend(sizeof(std::pair<std::string, std::string>)); ++i) {
      auto& [key, value] = net->metadata.emplace_back();
      text(in.metadata()->Get(i)->key(), &key);
      text(in.metadata()->Get(i)->value(), &value);
    }
    for (uint32_t i = 0; i < length(in.sparse_links()) && spend(sizeof(SparseLink)); ++i) {
      const file::SparseLink& link = *in.sparse_links()->Get(i);
      SparseLink& made = net->sparse_links.emplace_back();
      made.of = ValueId(link.of());
      text(link.kind(), &made.kind);
      made.indices = ValueId(link.indices());
      made.values = ValueId(link.values());
      made.rows = link.rows();
      made.unique = link.unique();
      made.sorted = link.sorted();
    }
  }

  const Limits& limits_;
  int64_t budget_;
  std::map<std::string_view, SharedText> texts_;
  int64_t nodes_ = 0;
  EarlierVariables earlier_;
  bool stopped_ = false;
  Findings findings_;
};

}  // namespace

Result<std::vector<Net>> nets_from_flatbuffer(std::span<const std::byte> payload, const Limits& limits) {
  if (payload.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return Status(Code::limit_exceeded,
                  fmt::format("the net has {}; flatbuffers end at 2 GiB", human_bytes(static_cast<int64_t>(payload.size()))));
  const auto size = static_cast<int64_t>(payload.size());
  flatbuffers::Verifier::Options options;
  // A few levels more than the limit, so that a net just beyond it gets the message about the limit.
  options.max_depth = static_cast<flatbuffers::uoffset_t>(tables_per_level * (std::clamp<int64_t>(limits.subnet_depth, 0, 1000) + 4) + 8);
  // Every table of a valid file has an offset that leads to it (4 bytes) and an offset of its own to its vtable (4 bytes).
  options.max_tables = static_cast<flatbuffers::uoffset_t>(size / 8 + 1);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(payload.data()), payload.size(), options);
  if (!file::VerifyNetBuffer(verifier))
    return Status(
        Code::file_corrupt,
        fmt::format("the flatbuffer is damaged: offsets out of range, misaligned, required fields missing, or nested deeper than {} tables",
                    options.max_depth),
        "fetch the file again, or write it with Heddle");
  Decoder decoder(limits, size);
  std::vector<Net> nets = decoder.decode_file(*file::GetNet(payload.data()));
  HEDDLE_CHECK(std::move(decoder).status());
  HEDDLE_CHECK(check_net_names(pointers_to(nets)));
  return nets;
}

}  // namespace heddle
