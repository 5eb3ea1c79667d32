#include "commands/plugin/call_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

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

// Parses an attribute like an example does; a text may omit its quotes and a list its brackets.
Result<Attribute> parse_attribute(const OperatorSchema& schema, const std::string& text, uint64_t seed) {
  HEDDLE_TRY(const NameValue given, split_name_value("--attribute", text));
  const int index = schema.attribute_index(given.first);
  const heddle_attribute_type type = index < 0 ? HEDDLE_ATTRIBUTE_INT : schema.op->attributes[index]->type;
  const bool plain = given.second.find_first_of("\"[{") == std::string::npos;
  if (plain && type == HEDDLE_ATTRIBUTE_STRING) return Attribute{given.first, given.second};
  const bool list = type == HEDDLE_ATTRIBUTE_INTS || type == HEDDLE_ATTRIBUTE_FLOATS;
  return parse_example_attribute(schema, plain && list ? fmt::format("{}=[{}]", given.first, given.second) : text, seed);
}

// One for all random inputs, or one for each.
Result<std::vector<DType>> dtypes_of(const CallArguments& arguments) {
  std::vector<DType> dtypes;
  for (const std::string& text : arguments.dtypes) {
    dtypes.push_back(dtype_from_string(text));
    if (dtypes.back() == DType::none)
      return Status(Code::invalid_argument, fmt::format("--dtype {} is none", quoted(text)), "like f32 or i64");
  }
  const size_t count = arguments.shapes.size();
  if (dtypes.empty()) dtypes.push_back(DType::f32);
  if (dtypes.size() == 1) dtypes.resize(count, dtypes[0]);
  if (dtypes.size() != count)
    return Status(Code::invalid_argument, fmt::format("--dtype is given {} times, --shape {}", dtypes.size(), count),
                  "give one --dtype for all random inputs, or one for each");
  return dtypes;
}

}  // namespace

void add_call_options(CLI::App& app, CallArguments& arguments) {
  app.add_option("--input", arguments.files, "an input's file, in order (.npy, .safetensors[:TENSOR], .pb)")->type_name("FILE");
  app.add_option("--shape", arguments.shapes, "a random input of this shape, after the files")->type_name("2x3");
  app.add_option("--dtype", arguments.dtypes, "of random inputs: one, or one for each")->type_name("DTYPE");
  app.add_option("--attribute", arguments.attributes, "an attribute")->type_name("NAME=VALUE");
  app.add_option("--example", arguments.example, "all of it as an example: \"f32[2] = 1 2, i64[1]; axis=0\"")->type_name("TEXT");
}

std::string call_options_text(const CallArguments& arguments) {
  std::string text;
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) text += fmt::format(" {} {}", option, word(value));
  };
  add("--input", arguments.files);
  add("--shape", arguments.shapes);
  add("--dtype", arguments.dtypes);
  add("--attribute", arguments.attributes);
  if (!arguments.example.empty()) add("--example", {arguments.example});
  return text;
}

Result<Example> parse_call(const OperatorSchema& schema, const CallArguments& arguments, uint64_t seed) {
  if (!arguments.example.empty()) {
    if (!arguments.files.empty() || !arguments.shapes.empty() || !arguments.dtypes.empty() || !arguments.attributes.empty())
      return Status(Code::invalid_argument, "--example is given with --input, --shape, --dtype or --attribute",
                    "an example says inputs and attributes itself");
    return parse_example(schema, arguments.example, seed);
  }
  // An empty example gives the outputs that the schema declares.
  HEDDLE_TRY(Example made, parse_example(schema, "", seed));
  OperatorCall& call = made.call;
  for (const std::string& file : arguments.files) {
    HEDDLE_TRY(auto blob, read_tensor(file));
    call.inputs.push_back(std::move(blob));
  }
  HEDDLE_TRY(const auto dtypes, dtypes_of(arguments));
  for (const std::string& text : arguments.attributes) {
    HEDDLE_TRY(Attribute attribute, parse_attribute(schema, text, seed));
    call.attributes.push_back(std::move(attribute));
  }
  const size_t first = call.inputs.size();
  for (size_t i = 0; i < arguments.shapes.size(); ++i) {
    HEDDLE_TRY(const Shape shape, parse_plain_shape(arguments.shapes[i]));
    call.inputs.push_back(random_blob(dtypes[i], shape, seed + first + i));
  }
  // Indices are drawn again, now that the inputs they index are known.
  for (size_t i = first; i < call.inputs.size(); ++i) draw_indices(schema, call, i, seed + i);
  return made;
}

}  // namespace heddle::tool
