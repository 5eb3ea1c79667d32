#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_document.h"
#include "base/text/name_index.h"
#include "base/text/text.h"
#include "load/earlier_variables.h"
#include "load/json.h"
#include "load/json_fields.h"
#include "load/json_parts.h"
#include "load/structure.h"

namespace heddle {
namespace {

using Kind = JsonValue::Kind;

// Arrays and objects that one level of subnets adds: net, nodes, node, attributes, attribute.
constexpr int64_t json_per_level = 5;

// Reads nets out of a document; all of them report to one list of findings.
class NetReader {
 public:
  explicit NetReader(const Limits& limits) : limits_(limits) {}

  // All nets of a text.
  std::vector<Net> read_file(JsonValue root);
  Status status() && { return std::move(findings_).status(); }

 private:
  friend class NamedParts;
  void add(const Net& net, Status status, const Node* node = nullptr) {
    if (node != nullptr) status = std::move(status).at(node->name, node->type);
    findings_.add(std::move(status).in_net(net.name));
  }
  // Adds "value "x": ..." when `status` is a failure. Then the structure is not checked, as errors that follow from text that was not
  // understood would only confuse.
  void malformed(const Net& net, Status status, std::string_view what = {}) {
    if (status.ok()) return;
    if (!what.empty()) status.diagnostic().message = fmt::format("{}: {}", what, status.diagnostic().message);
    add(net, std::move(status));
    understood_ = false;
  }

  void read(JsonValue in, int64_t depth, Net* net);
  void read_header(const JsonFields& fields, bool top, Net* net);
  void read_variables(const JsonFields& fields, Net* net);
  void read_values(const JsonFields& fields, Net* net);
  void read_nodes(const JsonFields& fields, int64_t depth, Net* net);
  void read_attributes(JsonValue in, int64_t depth, const Net& net, Node* node);

  EarlierVariables earlier_;
  bool is_further_ = false;  // the net that is read is not the first
  const Limits& limits_;
  int64_t nodes_ = 0;
  bool understood_ = true;
  Findings findings_;
};

std::vector<std::string_view> names_of(const auto& things) {
  std::vector<std::string_view> names;
  names.reserve(things.size());
  for (const auto& thing : things) names.emplace_back(thing.name);
  return names;
}

// The references by name of one net: node inputs and outputs, control, boundary, links. Outputs that "values" does not list
// are declared by being written.
class NamedParts {
 public:
  NamedParts(NetReader& reader, const JsonFields& fields, Net* net)
      : reader_(reader), fields_(fields), net_(net), declared_(net->values.size()) {}

  void resolve() {
    Status status;
    const std::optional<JsonValue> nodes = fields_.get("nodes", Kind::array, &status);
    index_values(nodes);
    size_t i = 0;
    if (nodes) {
      for (const JsonValue node : *nodes) resolve_node(node, i++);
    }
    resolve_list("inputs", &net_->inputs);
    resolve_list("outputs", &net_->outputs);
    resolve_versions();
    resolve_links();
  }

 private:
  std::optional<ValueId> find(std::string_view name) const {
    const std::optional<uint32_t> position = values_.find(name);
    if (!position) return std::nullopt;
    return *position < declared_ ? ValueId(*position) : undeclared_[*position - declared_];
  }
  void dangling(std::string what, const Node* node = nullptr) {
    reader_.add(*net_, Status(Code::dangling_input, std::move(what), "check the name"), node);
  }

  // Positions of the index: first the listed values, then every output of every node.
  void index_values(const std::optional<JsonValue>& nodes) {
    // Names in the order of the document: values move when values are added.
    std::vector<std::string_view> names;
    Status status;
    if (const std::optional<JsonValue> values = fields_.get("values", Kind::array, &status)) {
      names.reserve(values->size());
      for (const JsonValue value : *values) {
        const std::optional<JsonValue> name = value.find("name");
        names.push_back(name ? name->text() : std::string_view());
      }
    }
    std::vector<std::string_view> outputs;
    if (nodes) {
      for (const JsonValue node : *nodes) {
        const std::optional<JsonValue> list = node.find("outputs");
        if (!list || !list->is(Kind::array)) continue;
        for (const JsonValue output : *list)
          if (output.is(Kind::string)) outputs.push_back(output.text());
      }
    }
    names.insert(names.end(), outputs.begin(), outputs.end());
    values_ = NameIndex(std::move(names));
    undeclared_.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint32_t first = *values_.find(outputs[i]);
      if (first < declared_) continue;
      ValueId& id = undeclared_[first - declared_];
      if (id.valid()) continue;
      id = ValueId(net_->values.size());
      net_->values.emplace_back().name = std::string(outputs[i]);
    }
  }

  void resolve_node(JsonValue in, size_t i) {
    Node& node = net_->nodes[i];
    if (const std::optional<JsonValue> inputs = in.find("inputs")) {
      node.inputs.reserve(inputs->size());
      for (const JsonValue input : *inputs) {
        node.inputs.emplace_back();
        if (input.is(Kind::null)) continue;
        const std::optional<ValueId> id = find(input.text());
        if (id)
          node.inputs.back() = *id;
        else
          dangling(fmt::format("input {} is {}, which nothing defines", node.inputs.size() - 1, quoted(input.text())), &node);
      }
    }
    if (const std::optional<JsonValue> outputs = in.find("outputs")) {
      node.outputs.reserve(outputs->size());
      for (const JsonValue output : *outputs) node.outputs.push_back(output.is(Kind::string) ? *find(output.text()) : ValueId());
    }
    if (const std::optional<JsonValue> control = in.find("control")) {
      if (!node_index_) node_index_ = NameIndex(names_of(net_->nodes));
      for (const JsonValue before : *control) {
        const std::optional<uint32_t> id = node_index_->find(before.text());
        if (id)
          node.control.emplace_back(*id);
        else
          dangling(fmt::format("it waits for operator {}, which does not exist", quoted(before.text())), &node);
      }
    }
  }
  void resolve_list(const char* key, std::vector<ValueId>* out) {
    Status status;
    const std::optional<JsonValue> list = fields_.get(key, Kind::array, &status);
    reader_.malformed(*net_, std::move(status));
    if (!list) return;
    for (const JsonValue value : *list) {
      const std::optional<ValueId> id = value.is(Kind::string) ? find(value.text()) : std::nullopt;
      if (id)
        out->push_back(*id);
      else
        dangling(fmt::format("the {} of the net name {}, which is no value", key, quoted(value.text())));
    }
  }
  void resolve_versions() {
    const NameIndex variables(names_of(net_->variables));
    Status status;
    const std::optional<JsonValue> list = fields_.get("values", Kind::array, &status);
    size_t i = 0;
    if (list) {
      for (const JsonValue in : *list) {
        Value& value = net_->values[i++];
        if (value.kind != Value::Kind::variable) continue;
        const std::optional<JsonValue> name = in.find("variable");
        const std::optional<uint32_t> id = name ? variables.find(name->text()) : std::nullopt;
        if (id)
          value.variable = VariableId(*id);
        else
          reader_.malformed(*net_, Status(Code::dangling_input, "its variable is not listed", "check the name"),
                            fmt::format("value {}", quoted(value.name)));
      }
    }
    const std::string_view counter = fields_.text("step_counter", &status);
    reader_.malformed(*net_, std::move(status));
    if (!fields_.get("step_counter")) return;
    const std::optional<uint32_t> id = variables.find(counter);
    if (id)
      net_->step_counter = VariableId(*id);
    else
      dangling(fmt::format("the step counter {} is no variable", quoted(counter)));
  }
  void resolve_links() {
    static constexpr std::string_view keys[] = {"of", "kind", "indices", "values", "rows", "unique", "sorted"};
    Status status;
    const std::optional<JsonValue> links = fields_.get("sparse_links", Kind::array, &status);
    reader_.malformed(*net_, std::move(status));
    if (!links) return;
    for (const JsonValue in : *links) {
      const JsonFields fields(in, keys);
      status = fields.status();
      SparseLink& link = net_->sparse_links.emplace_back();
      link.of = find(fields.text("of", &status)).value_or(ValueId());
      link.kind = std::string(fields.text("kind", &status));
      link.indices = find(fields.text("indices", &status)).value_or(ValueId());
      link.values = find(fields.text("values", &status)).value_or(ValueId());
      link.rows = fields.integer("rows", 0, INT64_MAX, 0, &status);
      link.unique = fields.boolean("unique", &status);
      link.sorted = fields.boolean("sorted", &status);
      reader_.malformed(*net_, std::move(status), "a sparse link");
    }
  }

  NetReader& reader_;
  const JsonFields& fields_;
  Net* net_;
  const size_t declared_;
  NameIndex values_;
  std::vector<ValueId> undeclared_;  // by position after the listed values
  std::optional<NameIndex> node_index_;
};

std::vector<Net> NetReader::read_file(JsonValue root) {
  std::vector<Net> nets(1);
  read(root, 0, nets.data());
  const std::optional<JsonValue> others = root.find("nets");
  if (!others) return nets;
  if (!others->is(Kind::array) || others->size() > max_nets - 1)
    malformed(nets[0], Status(Code::syntax, fmt::format("\"nets\" is no list of at most {} nets", max_nets - 1)));
  if (!understood_) return nets;
  nets.reserve(others->size() + 1);  // earlier_ refers to them
  for (const JsonValue other : *others) {
    earlier_.add(nets.back());
    is_further_ = true;
    read(other, 0, &nets.emplace_back());
  }
  return nets;
}

void NetReader::read(JsonValue in, int64_t depth, Net* net) {
  static constexpr std::string_view keys[] = {"heddle",       "name",      "doc",    "operator_sets", "metadata",     "inputs", "outputs",
                                              "step_counter", "variables", "values", "nodes",         "sparse_links", "nets"};
  if (depth > limits_.subnet_depth) return malformed(*net, over_limit(limits_, &Limits::subnet_depth, "subnets nest too deep"));
  const JsonFields fields(in, keys);
  malformed(*net, fields.status(), "a net");
  if ((depth > 0 || is_further_) && in.find("nets"))
    malformed(*net, Status(Code::syntax, "a net that is not the first of its file has \"nets\"", "list all of them in the first"));
  read_header(fields, depth == 0 && !is_further_, net);
  read_variables(fields, net);
  read_values(fields, net);
  read_nodes(fields, depth, net);
  // Names are resolved after everything was read: nodes may name parts that follow in the text. Not when a part was malformed, as its names
  // would be reported as missing too.
  if (!understood_) return;
  NamedParts(*this, fields, net).resolve();
  if (depth == 0) earlier_.complete(*net);
  if (understood_) link_net(*net, depth == 0, limits_, findings_);
}

void NetReader::read_header(const JsonFields& fields, bool top, Net* net) {
  static constexpr std::string_view set_keys[] = {"domain", "version"};
  Status status;
  net->name = std::string(fields.text("name", &status));
  net->doc = std::string(fields.text("doc", &status));
  // The outermost net states the version for all; a subnet may omit it.
  const int64_t version = fields.integer("heddle", 1, INT64_MAX, top ? 0 : net_json_version, &status);
  if (status.ok() && version == 0)
    status = Status(Code::syntax, "the member \"heddle\" is missing, which has the version of the format",
                    "begin the file with {\"heddle\": 1,");
  if (status.ok() && version > net_json_version)
    status =
        Status(Code::file_version, fmt::format("the text has format version {}, this Heddle reads up to {}", version, net_json_version),
               "use a newer Heddle");
  const std::optional<JsonValue> sets = fields.get("operator_sets", Kind::array, &status);
  if (sets) {
    for (const JsonValue in : *sets) {
      const JsonFields set(in, set_keys);
      if (status.ok()) status = set.status();
      OperatorSetVersion& made = net->operator_sets.emplace_back();
      made.domain = std::string(set.text("domain", &status));
      made.version = static_cast<int32_t>(set.integer("version", 0, INT32_MAX, 0, &status));
    }
  }
  const std::optional<JsonValue> metadata = fields.get("metadata", Kind::object, &status);
  if (metadata) {
    for (JsonValue::Iterator at = metadata->begin(); !(at == metadata->end()); ++at) {
      const std::string_view key = (*at).text();
      ++at;
      if (!(*at).is(Kind::string)) status = Status(Code::syntax, fmt::format("the metadata {} is not a string", quoted(key)));
      net->metadata.emplace_back(key, (*at).text());
    }
  }
  malformed(*net, std::move(status));
}

void NetReader::read_variables(const JsonFields& fields, Net* net) {
  static constexpr std::string_view keys[] = {"name", "dtype", "dims", "trainable", "initializer", "replica_of", "data", "weights"};
  Status status;
  const std::optional<JsonValue> list = fields.get("variables", Kind::array, &status);
  malformed(*net, std::move(status));
  if (!list) return;
  net->variables.reserve(list->size());
  for (const JsonValue in : *list) {
    const JsonFields variable(in, keys);
    status = variable.status();
    Variable& made = net->variables.emplace_back();
    made.name = std::string(variable.text("name", &status));
    made.trainable = variable.boolean("trainable", &status);
    if (const std::optional<JsonValue> rule = variable.get("initializer", Kind::string, &status))
      made.initializer = std::string(rule->text());
    if (const std::optional<JsonValue> first = variable.get("replica_of", Kind::string, &status)) made.replica_of = std::string(first->text());
    if (status.ok()) status = read_type(variable, &made.type);
    if (status.ok()) status = read_content(variable, made.type, &made.initial);
    malformed(*net, std::move(status), fmt::format("variable {}", quoted(made.name)));
  }
}

void NetReader::read_values(const JsonFields& fields, Net* net) {
  static constexpr std::string_view keys[] = {"name", "kind", "dtype", "dims", "variable", "version", "data", "weights"};
  Status status;
  const std::optional<JsonValue> list = fields.get("values", Kind::array, &status);
  malformed(*net, std::move(status));
  if (!list) return;
  net->values.reserve(list->size());
  for (const JsonValue in : *list) {
    const JsonFields value(in, keys);
    status = value.status();
    Value& made = net->values.emplace_back();
    made.name = std::string(value.text("name", &status));
    const std::string_view kind = value.text("kind", &status);
    made.kind = kind == "input"      ? Value::Kind::input
                : kind == "constant" ? Value::Kind::constant
                : kind == "variable" ? Value::Kind::variable
                                     : Value::Kind::node_output;
    if (made.kind == Value::Kind::node_output && value.get("kind") && status.ok())
      status = Status(Code::syntax, fmt::format("the kind {} does not exist", quoted(kind)),
                      "known are input, constant, variable; outputs have none");
    made.version = static_cast<uint32_t>(value.integer("version", 0, UINT32_MAX - 1, 0, &status));
    const bool versioned = value.get("variable") || value.get("version");
    if (status.ok() && versioned != (made.kind == Value::Kind::variable))
      status = Status(Code::syntax, "\"variable\" and \"version\" belong to values of kind variable, and these need them");
    if (status.ok()) status = read_type(value, &made.type);
    if (status.ok()) status = read_content(value, made.type, &made.content);
    if (!status.ok()) malformed(*net, std::move(status), fmt::format("value {}", quoted(made.name)));
  }
}

void NetReader::read_nodes(const JsonFields& fields, int64_t depth, Net* net) {
  static constexpr std::string_view keys[] = {"name",   "type",    "domain",     "version", "device",
                                              "inputs", "outputs", "attributes", "control", "random_stream"};
  Status status;
  const std::optional<JsonValue> list = fields.get("nodes", Kind::array, &status);
  malformed(*net, std::move(status));
  if (!list) return;
  // Counted over the whole document, before memory is reserved for them.
  nodes_ += list->size();
  if (nodes_ > limits_.nodes) return malformed(*net, over_limit(limits_, &Limits::nodes, "the net has too many operators"));
  net->nodes.reserve(list->size());
  for (const JsonValue in : *list) {
    const JsonFields node(in, keys);
    status = node.status();
    Node& made = net->nodes.emplace_back();
    made.name = std::string(node.text("name", &status));
    made.type = std::string(node.text("type", &status));
    made.domain = std::string(node.text("domain", &status));
    made.device = std::string(node.text("device", &status));
    made.version = static_cast<int32_t>(node.integer("version", 0, INT32_MAX, 0, &status));
    made.random_stream = static_cast<uint32_t>(node.integer("random_stream", 0, UINT32_MAX, 0, &status));
    // Only the form is checked here; resolve_node relies on it.
    for (const char* key : {"inputs", "outputs", "control"}) {
      const std::optional<JsonValue> names = node.get(key, Kind::array, &status);
      if (!names) continue;
      for (const JsonValue name : *names)
        if (!name.is(Kind::string) && !name.is(Kind::null) && status.ok())
          status = Status(Code::syntax, fmt::format("\"{}\" lists something that is no name", key));
    }
    const std::optional<JsonValue> attributes = node.get("attributes", Kind::object, &status);
    if (!status.ok()) malformed(*net, std::move(status), fmt::format("operator {}", quoted(made.name)));
    if (attributes) read_attributes(*attributes, depth, *net, &made);
  }
}

void NetReader::read_attributes(JsonValue in, int64_t depth, const Net& net, Node* node) {
  node->attributes.reserve(in.size());
  for (JsonValue::Iterator at = in.begin(); !(at == in.end()); ++at) {
    Attribute& made = node->attributes.emplace_back();
    made.name = std::string((*at).text());
    ++at;
    std::optional<JsonValue> subnet;
    Status status = read_attribute(*at, &made.value, &subnet);
    if (!status.ok()) {
      status.diagnostic().message = fmt::format("attribute {}: {}", quoted(made.name), status.diagnostic().message);
      add(net, std::move(status), node);
      understood_ = false;
    } else if (subnet) {
      auto inner = std::make_shared<Net>();
      read(*subnet, depth + 1, inner.get());
      made.value = std::shared_ptr<const Net>(std::move(inner));
    }
  }
}

}  // namespace

Result<std::vector<Net>> nets_from_json(std::string_view text, const Limits& limits) {
  // Some levels more than nets may have: the reader meets nets that nest too deep first, and its error names the limit.
  const int64_t depth = json_per_level * (std::clamp<int64_t>(limits.subnet_depth, 0, 1000) + 3) + 8;
  HEDDLE_TRY(const JsonDocument document, JsonDocument::parse(text, static_cast<int>(depth)));
  NetReader reader(limits);
  std::vector<Net> nets = reader.read_file(document.root());
  HEDDLE_CHECK(std::move(reader).status());
  HEDDLE_CHECK(check_net_names(pointers_to(nets)));
  return nets;
}

Result<Net> net_from_json(std::string_view text, const Limits& limits) {
  HEDDLE_TRY(std::vector<Net> nets, nets_from_json(text, limits));
  return only_net(std::move(nets));
}

}  // namespace heddle
