// heddle plugin run OP: one operator on given or random inputs.
#include <fmt/format.h>

#include "base/text.h"
#include "commands/plugin/plugin_commands.h"
#include "plugin/operator_runner.h"
#include "plugin/search.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct OperatorArguments {
  std::string name;
  std::vector<std::string> files, shapes, attributes;
  uint64_t seed = 1;
  std::string dtype = "f32";
};

// NAME=VALUE as the schema's type.
Status parse_attribute(const OperatorSchema& schema, const std::string& text, std::vector<Attribute>& attributes) {
  HEDDLE_TRY(const NameValue given, split_name_value("--attribute", text));
  const int index = schema.attribute_index(given.first);
  if (index < 0)
    return {Code::unknown_attribute, fmt::format("the operator has no attribute {}", quoted(given.first)),
            "see heddle inspect of its plugin"};
  const heddle_attribute_type type = schema.op->attributes[index]->type;
  int64_t i = 0;
  double f = 0;
  if (type == HEDDLE_ATTRIBUTE_INT && parse_int(given.second, &i)) {
    attributes.push_back({given.first, i});
  } else if (type == HEDDLE_ATTRIBUTE_FLOAT && parse_float(given.second, &f)) {
    attributes.push_back({given.first, f});
  } else if (type == HEDDLE_ATTRIBUTE_STRING) {
    attributes.push_back({given.first, given.second});
  } else if (type == HEDDLE_ATTRIBUTE_INTS) {
    std::vector<int64_t> list;
    for (size_t at = 0; at <= given.second.size();) {
      const size_t end = std::min(given.second.find(',', at), given.second.size());
      if (!parse_int(std::string_view(given.second).substr(at, end - at), &i))
        return {Code::attribute_mismatch, fmt::format("--attribute {} is no list of integers", quoted(text))};
      list.push_back(i);
      at = end + 1;
    }
    attributes.push_back({given.first, list});
  } else {
    return {Code::attribute_mismatch, fmt::format("--attribute {} is not {}", quoted(text), attribute_type_name(type)),
            "integers, numbers, strings and lists of integers can be given here"};
  }
  return {};
}

Result<Shape> parse_plain_shape(const std::string& text) {
  Shape shape;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t dim = 0;
    if (!parse_int(std::string_view(text).substr(at, end - at), &dim) || dim < 0 || shape.rank() == max_rank)
      return Status(Code::invalid_argument, fmt::format("--shape {} is not a shape", quoted(text)), "write it like 2x3");
    shape.push_back(dim);
    at = end + 1;
  }
  return shape;
}

Status run_one(const OperatorArguments& o, Report& report) {
  Registry plugins;
  HEDDLE_CHECK(load_plugins(plugins, runtime_options(report.common)));
  const auto registry = plugins.snapshot();
  OperatorCall call;
  const size_t colon = o.name.find("::");
  call.domain = colon == std::string::npos ? "" : o.name.substr(0, colon);
  call.type = colon == std::string::npos ? o.name : o.name.substr(colon + 2);
  const OperatorSchema* schema = registry->find_operator(call.domain, call.type);
  if (!schema)
    return {Code::unknown_operator, fmt::format("no loaded plugin has operator {}", quoted(o.name)),
            suggestion(call.type, registry->operator_names(call.domain))};
  for (const std::string& text : o.attributes) HEDDLE_CHECK(parse_attribute(*schema, text, call.attributes));
  for (const std::string& file : o.files) {
    HEDDLE_TRY(auto blob, read_tensor(file));
    call.inputs.push_back(std::move(blob));
  }
  const DType dtype = dtype_from_string(o.dtype);
  if (dtype == DType::none) return {Code::invalid_argument, fmt::format("--dtype {} is none", quoted(o.dtype)), "like f32 or i64"};
  for (const std::string& text : o.shapes) {
    HEDDLE_TRY(const Shape shape, parse_plain_shape(text));
    call.inputs.push_back(random_blob(dtype, shape, o.seed + call.inputs.size()));
  }
  call.output_count = std::max<uint32_t>(1, schema->op->output_count);
  for (uint32_t i = 1; i < schema->op->output_count; ++i)
    if (schema->op->outputs[i]->flags & HEDDLE_PORT_OPTIONAL) {
      call.output_count = i;
      break;
    }
  call.random_seed = o.seed;
  HEDDLE_TRY(const auto outputs, run_operator(*registry, call));
  Json list = Json::array();
  for (const auto& blob : outputs) {
    const TensorView view{blob->dtype, blob->shape, const_cast<std::byte*>(blob->data)};
    report.say_lines(tensor_text(view));
    Json shape = Json::array();
    for (const int64_t d : blob->shape) shape.push_back(d);
    list.push_back(
        {{"dtype", to_string(blob->dtype)}, {"shape", shape}, {"sha256", sha256_hex(blob->data, static_cast<size_t>(blob->bytes))}});
  }
  report.json["outputs"] = list;
  return {};
}

}  // namespace

Run declare_plugin_run(CLI::App& app) {
  auto o = std::make_shared<OperatorArguments>();
  app.add_option("operator", o->name, "Name, or domain::Name")->required()->type_name("OP");
  app.add_option("--input", o->files, "an input's file, in order (.npy, .safetensors[:TENSOR], .pb)")->type_name("FILE");
  app.add_option("--shape", o->shapes, "a random input of this shape, behind the files")->type_name("2x3");
  app.add_option("--dtype", o->dtype, "of random inputs")->type_name("DTYPE");
  app.add_option("--seed", o->seed, "of random inputs")->check(whole_number());
  app.add_option("--attribute", o->attributes, "an attribute")->type_name("NAME=VALUE");
  return [o](Report& report) { return report.finish_with(run_one(*o, report)); };
}

}  // namespace heddle::tool
