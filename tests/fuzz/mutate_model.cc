#include "fuzz/mutate_model.h"

#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t largest_model = 16 << 10;

// A model with an If in an If, whose branches capture different values, in a Loop.
::onnx::ModelProto nested_model() {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("nested");
  const auto input = [](::onnx::GraphProto& g, const std::string& name, int type, std::initializer_list<int64_t> dims) {
    auto* value = g.add_input();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const int64_t dim : dims) tensor->mutable_shape()->add_dim()->set_dim_value(dim);
  };
  const auto node = [](::onnx::GraphProto& g, const std::string& type, std::initializer_list<std::string> in,
                       std::initializer_list<std::string> out) {
    auto* n = g.add_node();
    n->set_op_type(type);
    for (const auto& name : in) n->add_input(name);
    for (const auto& name : out) n->add_output(name);
    return n;
  };
  const auto subgraph = [](::onnx::NodeProto* n, const std::string& name) -> ::onnx::GraphProto& {
    auto* attribute = n->add_attribute();
    attribute->set_name(name);
    attribute->set_type(::onnx::AttributeProto::GRAPH);
    attribute->mutable_g()->set_name(name);
    return *attribute->mutable_g();
  };
  for (const char* name : {"a", "b", "c", "d"}) input(graph, name, ::onnx::TensorProto::FLOAT, {2, 3});
  input(graph, "cond", ::onnx::TensorProto::BOOL, {});
  auto* w = graph.add_initializer();
  w->set_name("w");
  w->set_data_type(::onnx::TensorProto::FLOAT);
  w->add_dims(3);
  w->set_raw_data(std::string(12, '\0'));
  auto* choice = node(graph, "If", {"cond"}, {"y"});
  auto& first = subgraph(choice, "then_branch");
  node(first, "Add", {"a", "b"}, {"s"});
  node(first, "Mul", {"s", "w"}, {"t"});
  first.add_output()->set_name("t");
  auto& second = subgraph(choice, "else_branch");
  auto* inner = node(second, "If", {"cond"}, {"u"});
  auto& third = subgraph(inner, "then_branch");
  node(third, "Sub", {"c", "d"}, {"p"});
  third.add_output()->set_name("p");
  auto& fourth = subgraph(inner, "else_branch");
  node(fourth, "Div", {"a", "c"}, {"q"});
  node(fourth, "Add", {"q", "b"}, {"r"});
  fourth.add_output()->set_name("r");
  second.add_output()->set_name("u");
  graph.add_output()->set_name("y");
  return model;
}

void add_models(const fs::path& folder, std::vector<::onnx::ModelProto>& models) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path() / "model.onnx");
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    ::onnx::ModelProto model;
    if (!bytes.empty() && bytes.size() <= largest_model && model.ParsePartialFromString(bytes)) models.push_back(std::move(model));
  }
}

bool has_subgraph(const ::onnx::ModelProto& model) {
  for (const auto& node : model.graph().node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) return true;
  return false;
}

// Appends every message within `message`, itself included.
void collect(Message* message, std::vector<Message*>& all) {
  all.push_back(message);
  const Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) collect(reflection->MutableRepeatedMessage(message, field, i), all);
  }
}

// Returns how often messages of a kind are chosen: most often those of which the importer has most to check.
size_t weight_of(const Message& message) {
  const std::string name = message.GetDescriptor()->name();
  if (name == "TensorProto" || name == "AttributeProto") return 8;
  if (name == "GraphProto" || name == "NodeProto") return 4;
  return 1;
}

class ModelMutation {
 public:
  ModelMutation(::onnx::ModelProto& model, const std::vector<::onnx::ModelProto>& others, Dice& dice)
      : model_(model), others_(others), dice_(dice) {}

  void one_change() {
    std::vector<Message*> all;
    collect(&model_, all);
    size_t total = 0;
    for (const Message* m : all) total += weight_of(*m);
    size_t at = dice_.below(total);
    for (Message* m : all) {
      const size_t weight = weight_of(*m);
      if (at < weight) return change(*m, all);
      at -= weight;
    }
  }

 private:
  void change(Message& message, const std::vector<Message*>& all) {
    if (dice_.one_in(10)) return replace(message, all);
    const Descriptor* type = message.GetDescriptor();
    if (type->field_count() == 0) return;
    const Reflection* reflection = message.GetReflection();
    std::vector<const FieldDescriptor*> present;
    reflection->ListFields(message, &present);
    const FieldDescriptor* field = present.empty() || dice_.one_in(4)
                                       ? type->field(static_cast<int>(dice_.below(static_cast<size_t>(type->field_count()))))
                                       : dice_.pick(present);
    if (field->is_repeated()) return change_list(message, field);
    if (dice_.one_in(5)) return reflection->ClearField(&message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      reflection->MutableMessage(&message, field);
      return;
    }
    set(message, field, -1);
  }

  // Replaces all of a message by one of the same kind from elsewhere in this model or in another.
  void replace(Message& message, const std::vector<Message*>& all) {
    std::vector<Message*> same;
    ::onnx::ModelProto other;
    std::vector<Message*> theirs;
    if (dice_.one_in(2)) {
      other = dice_.pick(others_);
      collect(&other, theirs);
    }
    for (const std::vector<Message*>* list : {&all, static_cast<const std::vector<Message*>*>(&theirs)})
      for (Message* m : *list)
        if (m != &message && m->GetDescriptor() == message.GetDescriptor()) same.push_back(m);
    if (same.empty() || message.GetDescriptor()->name() == "ModelProto") return;
    const std::unique_ptr<Message> copy(dice_.pick(same)->New());
    copy->CopyFrom(*dice_.pick(same));
    if (copy->ByteSizeLong() < largest_model) message.CopyFrom(*copy);
  }

  void change_list(Message& message, const FieldDescriptor* field) {
    const Reflection* reflection = message.GetReflection();
    const int size = reflection->FieldSize(message, field);
    const auto any = [&] { return static_cast<int>(dice_.below(static_cast<size_t>(size))); };
    switch (dice_.below(6)) {
      case 0:
        if (size > 0) reflection->RemoveLast(&message, field);
        return;
      case 1:
        if (size > 1) reflection->SwapElements(&message, field, any(), any());
        return;
      case 2:
        if (size > 200) return;
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return set(message, field, size);
        if (size > 0) {
          const std::unique_ptr<Message> copy(reflection->GetRepeatedMessage(message, field, any()).New());
          copy->CopyFrom(reflection->GetRepeatedMessage(message, field, any()));
          reflection->AddMessage(&message, field)->CopyFrom(*copy);
        } else {
          reflection->AddMessage(&message, field);
        }
        return;
      default:
        if (size > 0 && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return set(message, field, any());
    }
  }

  std::string text(const std::string& now) {
    static const char* const words[] = {"",       "x",          "y",    "a",        "axes",    "then_branch", "body",
                                        "NOTSET", "SAME_UPPER", "../x", "location", "ai.onnx", "linear"};
    std::string changed = now;
    switch (dice_.below(6)) {
      case 0:
        return dice_.pick(words);
      case 1:
        return dice_.pick(names());
      case 2:  // shorter or longer: raw data that no longer fit their dims
        changed.resize(dice_.below(changed.size() + 1));
        return changed;
      case 3:
        changed.append(1 + dice_.below(64), static_cast<char>(dice_.below(256)));
        return changed;
      default:
        if (!changed.empty()) changed[dice_.below(changed.size())] = static_cast<char>(dice_.below(256));
        return changed;
    }
  }

  // Names of values and of operators.
  const std::vector<std::string>& names() {
    if (names_.empty()) {
      names_.emplace_back("Identity");
      for (const auto& node : model_.graph().node()) {
        names_.push_back(node.op_type());
        for (const auto& name : node.input()) names_.push_back(name);
        for (const auto& name : node.output()) names_.push_back(name);
      }
      for (const auto& tensor : model_.graph().initializer()) names_.push_back(tensor.name());
      const auto& other = dice_.pick(others_);
      for (const auto& node : other.graph().node()) names_.push_back(node.op_type());
    }
    return names_;
  }

  // `index` is -1 for a single field, and the size of the list to append to it.
  void set(Message& message, const FieldDescriptor* field, int index) {
    const Reflection* r = message.GetReflection();
    const bool add = index >= 0 && index == r->FieldSize(message, field);
    const auto put = [&](auto setter, auto repeated, auto adder, auto value) {
      if (index < 0) {
        (r->*setter)(&message, field, value);
      } else if (add) {
        (r->*adder)(&message, field, value);
      } else {
        (r->*repeated)(&message, field, index, value);
      }
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, &Reflection::AddInt32, static_cast<int32_t>(dice_.integer()));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64, dice_.integer());
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, &Reflection::AddUInt64, static_cast<uint64_t>(dice_.integer()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&Reflection::SetFloat, &Reflection::SetRepeatedFloat, &Reflection::AddFloat, static_cast<float>(dice_.real()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, &Reflection::AddDouble, dice_.real());
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* type = field->enum_type();
        const int value = type->value(static_cast<int>(dice_.below(static_cast<size_t>(type->value_count()))))->number();
        if (index < 0) r->SetEnumValue(&message, field, value);
        return;
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string now;
        if (index < 0) now = r->GetString(message, field);
        if (index >= 0 && !add) now = r->GetRepeatedString(message, field, index);
        return put(&Reflection::SetString, &Reflection::SetRepeatedString, &Reflection::AddString, text(now));
      }
      default:
        return;
    }
  }

  ::onnx::ModelProto& model_;
  const std::vector<::onnx::ModelProto>& others_;
  Dice& dice_;
  std::vector<std::string> names_;
};

}  // namespace

struct ModelMaterial::Parts {
  std::vector<::onnx::ModelProto> models;
  std::vector<size_t> with_subgraphs;
};

ModelMaterial::ModelMaterial() : parts_(new Parts) {
  parts_->models.push_back(nested_model());
  const fs::path data = "/usr/share/libonnx-testdata/data";
  for (const char* folder : {"node", "simple", "pytorch-operator", "pytorch-converted"}) add_models(data / folder, parts_->models);
  for (size_t i = 0; i < parts_->models.size(); ++i)
    if (has_subgraph(parts_->models[i])) parts_->with_subgraphs.push_back(i);
}

ModelMaterial::~ModelMaterial() {
  delete parts_;
}

size_t ModelMaterial::count() const {
  return parts_->models.size();
}

std::string ModelMaterial::make(Dice& dice) const {
  ::onnx::ModelProto model = parts_->models[dice.one_in(4) ? dice.pick(parts_->with_subgraphs) : dice.below(parts_->models.size())];
  // Turns some inputs into initialisers, so that their dims and bytes can be wrong too.
  if (dice.one_in(3))
    for (const auto& input : model.graph().input()) {
      if (dice.one_in(2) || model.graph().initializer_size() > 20) continue;
      auto* tensor = model.mutable_graph()->add_initializer();
      tensor->set_name(input.name());
      tensor->set_data_type(input.type().tensor_type().elem_type());
      for (const auto& dim : input.type().tensor_type().shape().dim()) tensor->add_dims(dim.dim_value());
      tensor->set_raw_data(std::string(dice.below(512), static_cast<char>(dice.below(3))));
    }
  ModelMutation mutation(model, parts_->models, dice);
  for (size_t left = 1 + dice.below(dice.one_in(3) ? 6 : 2); left > 0; --left) mutation.one_change();
  std::string bytes;
  if (!model.SerializePartialToString(&bytes)) bytes.clear();
  for (size_t left = dice.one_in(12) ? 1 + dice.below(4) : 0; left > 0 && !bytes.empty(); --left)
    bytes[dice.below(bytes.size())] = static_cast<char>(dice.below(256));
  return bytes;
}

}  // namespace heddle::fuzz
