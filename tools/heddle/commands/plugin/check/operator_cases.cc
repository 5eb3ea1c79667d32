#include "commands/plugin/check/operator_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "base/text/text.h"
#include "tensors/compare.h"
#include "tensors/convert.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

const Shape shapes[] = {Shape{},        Shape{1},          Shape{7},    Shape{2, 3},    Shape{0, 3},
                        Shape{3, 1, 5}, Shape{2, 3, 5, 4}, Shape{4, 4}, Shape{300, 257}};
const DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean};

bool allows(const heddle_port& port, DType dtype) {
  return (port.dtypes & HEDDLE_DTYPE_BIT(static_cast<int>(dtype))) != 0;
}

// A dtype that the input's schema allows, for one that does not allow `dtype`.
DType fitting(const heddle_port& port, DType dtype) {
  if (allows(port, dtype)) return dtype;
  for (const DType other : {DType::i64, DType::f32, DType::boolean})
    if (allows(port, other)) return other;
  return dtype;
}

uint32_t required_outputs(const OperatorSchema& schema) {
  uint32_t count = 0;
  while (count < schema.op->output_count && !(schema.op->outputs[count]->flags & HEDDLE_PORT_OPTIONAL)) ++count;
  return count;
}

uint32_t required_inputs(const OperatorSchema& schema) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    if (!(schema.op->inputs[i]->flags & HEDDLE_PORT_OPTIONAL)) count = i + 1;
  return count;
}

// Shapes of the inputs, by port.
using InputShapes = std::vector<Shape>;

// Shapes of ports when their names have the extents `extents`.
InputShapes declared_shapes(const std::vector<DeclaredDims::Port>& ports, const std::vector<int64_t>& extents, const Shape& rest) {
  InputShapes made;
  for (const DeclaredDims::Port& port : ports)
    made.push_back(port.declared ? DeclaredDims::shape_of(port, extents, rest)
                                 : Shape(extents.data(), std::min<int>(2, static_cast<int>(extents.size()))));
  return made;
}

// Whether the shape is too large for a check of many runs.
bool is_large(const Shape& shape) {
  int64_t bytes = 0;
  return !checked_byte_size(DType::u8, shape, &bytes) || bytes > 300'000;
}

// Returns the shapes with the extents of the last names made small where an input would be large: the first ones are unchanged. Empty: an
// input is large all the same.
InputShapes bounded_shapes(const std::vector<DeclaredDims::Port>& ports, std::vector<int64_t> extents, const Shape& rest) {
  InputShapes made = declared_shapes(ports, extents, rest);
  for (size_t n = extents.size(); n-- > 0 && std::any_of(made.begin(), made.end(), is_large); made = declared_shapes(ports, extents, rest))
    extents[n] = std::min<int64_t>(extents[n], 2);
  return std::any_of(made.begin(), made.end(), is_large) ? InputShapes() : made;
}

// Shapes that fit together where the ports declare their dims (heddle_port::dims); else the same for all.
std::vector<InputShapes> input_shapes(const OperatorSchema& schema) {
  std::vector<InputShapes> all;
  const std::vector<DeclaredDims::Port>& ports = schema.declared_dims.inputs();
  if (ports.empty()) {
    for (const Shape& shape : shapes) all.emplace_back(std::max(schema.op->input_count, 1u), shape);
    // Takes only a few of the largest shape, where each of its elements would pick all of it.
    InputShapes few = all.back();
    for (uint32_t i = 0; i < schema.op->input_count; ++i)
      if (schema.op->inputs[i]->index_bound_port >= 0) few[i] = Shape{65};
    if (few != all.back()) all.push_back(std::move(few));
    return all;
  }
  // Extents of the names in order, again from the front where there are more.
  const std::vector<int64_t> rounds[] = {{1}, {7, 3, 5}, {2, 3, 4, 5}, {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {4}, {65, 33, 17}, {300, 257, 3}};
  int max_rest_rank = max_rank;  // the most dims that "..." may stand for, so that no port gets too many
  const bool varies = std::any_of(ports.begin(), ports.end(), [](const auto& port) { return port.has_rest; });
  for (const DeclaredDims::Port& port : ports)
    if (port.has_rest) max_rest_rank = std::min(max_rest_rank, max_rank - port.min_rank);
  for (const std::vector<int64_t>& round : rounds)
    for (const Shape& rest : {Shape{}, Shape{2}, Shape{3, 1}}) {
      if (rest.rank() > (varies ? max_rest_rank : 0)) break;
      std::vector<int64_t> extents(schema.declared_dims.name_count());
      for (size_t n = 0; n < extents.size(); ++n) extents[n] = round[n % round.size()];
      if (InputShapes made = bounded_shapes(ports, std::move(extents), rest); !made.empty()) all.push_back(std::move(made));
    }
  return all;
}

// These shapes for all inputs; for ports that declare their dims, three that fit.
std::vector<InputShapes> few_shapes(const OperatorSchema& schema, const std::vector<Shape>& same_for_all) {
  std::vector<InputShapes> few;
  if (!schema.declared_dims.inputs().empty()) {
    few = input_shapes(schema);
    few.resize(std::min<size_t>(few.size(), 3));
    return few;
  }
  for (const Shape& shape : same_for_all) few.emplace_back(std::max(schema.op->input_count, 1u), shape);
  return few;
}

OperatorCase generic_case(const OperatorSchema& schema, const InputShapes& of, DType dtype, uint64_t seed, uint32_t inputs,
                          uint32_t outputs) {
  OperatorCase made;
  OperatorCall& call = made.call;
  call.domain = schema.domain;
  call.type = schema.name;
  call.version = schema.version;
  call.random_seed = seed;
  call.output_count = outputs;
  for (uint32_t i = 0; i < inputs; ++i) call.inputs.push_back(random_blob(fitting(*schema.op->inputs[i], dtype), of[i], seed + i));
  for (uint32_t i = 0; i < inputs; ++i) draw_indices(schema, call, i, seed + i);
  std::string texts;
  for (uint32_t i = 0; i < std::max(inputs, 1u) && i < of.size(); ++i)
    if (i == 0 || of[i] != of[0])
      texts += fmt::format("{}{}{}", i > 0 ? ", " : "", to_string(i < call.inputs.size() ? call.inputs[i]->dtype : dtype), of[i].text());
  made.max_output_bytes = int64_t{16} << 20;
  made.about = fmt::format("{}, seed {}", texts.empty() ? to_string(dtype) : texts, seed);
  return made;
}

// Further numbers for an attribute, besides its default.
std::vector<AttributeValue> other_values(const heddle_attribute_schema& attribute) {
  if (attribute.type == HEDDLE_ATTRIBUTE_INT) return {int64_t{1}, int64_t{0}, int64_t{-1}, int64_t{2}};
  if (attribute.type == HEDDLE_ATTRIBUTE_FLOAT) return {0.5, 2.0, -1.0};
  return {};
}

bool is_default(const heddle_attribute_schema& attribute, const AttributeValue& value) {
  const heddle_attribute* const given = attribute.default_value;
  if (!given) return false;
  if (const auto* i = std::get_if<int64_t>(&value)) return given->type == HEDDLE_ATTRIBUTE_INT && given->i == *i;
  if (const auto* f = std::get_if<double>(&value)) return given->type == HEDDLE_ATTRIBUTE_FLOAT && given->f == *f;
  if (const auto* s = std::get_if<std::string>(&value))
    return given->type == HEDDLE_ATTRIBUTE_STRING && given->s && *s == std::string(given->s, given->count);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
    return given->type == HEDDLE_ATTRIBUTE_INTS && std::equal(list->begin(), list->end(), given->ints, given->ints + given->count);
  return false;
}

void add_options(const OperatorSchema& schema, uint64_t seed, DType dtype, std::vector<OperatorCase>& cases) {
  const uint32_t inputs = required_inputs(schema), outputs = required_outputs(schema);
  for (const InputShapes& shape : few_shapes(schema, {Shape{7}, Shape{4, 4}, Shape{3, 1, 5}})) {
    for (uint32_t i = inputs; i < schema.op->input_count; ++i) cases.push_back(generic_case(schema, shape, dtype, seed, i + 1, outputs));
    for (uint32_t o = outputs; o < schema.op->output_count; ++o) cases.push_back(generic_case(schema, shape, dtype, seed, inputs, o + 1));
    for (uint32_t a = 0; a < schema.op->attribute_count; ++a)
      for (AttributeValue& value : other_values(*schema.op->attributes[a])) {
        if (is_default(*schema.op->attributes[a], value)) continue;
        OperatorCase made = generic_case(schema, shape, dtype, seed, inputs, outputs);
        made.call.attributes.push_back({schema.op->attributes[a]->name, std::move(value)});
        made.about = example_text(made.call, {}, 0);
        cases.push_back(std::move(made));
      }
  }
}

double number_at(const Blob& blob, int64_t i) {
  return element({blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)}, i);
}

bool same_number(const Blob& a, const Blob& b, int64_t i) {
  const double x = number_at(a, i), y = number_at(b, i);
  return x == y || (std::isnan(x) && std::isnan(y));
}

bool same_numbers(const Blob& a, const Blob& b) {
  for (int64_t i = 0; i < a.shape.element_count(); ++i)
    if (!same_number(a, b, i)) return false;
  return true;
}

// Null: no content is given, or the dtype can't hold these numbers; floats are rounded.
std::shared_ptr<const Blob> as_expected(const std::shared_ptr<const Blob>& from, DType dtype) {
  if (!from || dtype == DType::boolean || from->dtype == DType::boolean || (is_float(dtype) && !is_float(from->dtype))) return nullptr;
  auto there = converted(*from, dtype);
  return is_float(dtype) || same_numbers(*from, *there) ? there : nullptr;
}

Result<OperatorCases> cases_of(const OperatorSchema& schema, uint64_t seed) {
  OperatorCases cases;
  for (uint32_t i = 0; i < schema.op->example_count; ++i) {
    const heddle_example& said = *schema.op->examples[i];
    HEDDLE_TRY(Example example, parse_example(schema, said.text, seed));
    OperatorCase& made = cases.examples.emplace_back();
    made.call = std::move(example.call);
    made.expected = std::move(example.outputs);
    made.may_refuse = false;
    made.about = fmt::format("example {}: {}", i + 1, said.text);
  }
  const uint32_t inputs = required_inputs(schema), outputs = required_outputs(schema);
  if (outputs == 0) return cases;
  DType first = DType::none;
  for (const DType dtype : dtypes) {
    if (inputs > 0 && !allows(*schema.op->inputs[0], dtype) && first != DType::none) continue;
    if (first == DType::none) first = inputs > 0 ? fitting(*schema.op->inputs[0], dtype) : dtype;
    for (const InputShapes& shape : input_shapes(schema))
      cases.generic.push_back(generic_case(schema, shape, dtype, seed, inputs, outputs));
  }
  add_options(schema, seed, first, cases.generic);
  return cases;
}

}  // namespace

Result<OperatorCases> operator_cases(const OperatorSchema& schema, uint64_t seed, CallHost* host) {
  HEDDLE_TRY(OperatorCases cases, cases_of(schema, seed));
  for (auto* list : {&cases.examples, &cases.generic})
    for (OperatorCase& one : *list) one.call.host = host;
  return cases;
}

std::vector<OperatorCase> whole_number_cases(const OperatorSchema& schema, uint64_t seed) {
  const uint32_t inputs = required_inputs(schema), outputs = required_outputs(schema);
  std::vector<OperatorCase> cases;
  if (inputs == 0 || outputs == 0) return cases;
  for (const int64_t low : {0, -3})
    for (const InputShapes& shape : few_shapes(schema, {Shape{7}, Shape{2, 3}, Shape{4, 4}})) {
      OperatorCase made = generic_case(schema, shape, fitting(*schema.op->inputs[0], DType::f32), seed, inputs, outputs);
      for (uint32_t i = 0; i < inputs; ++i) {
        auto& input = made.call.inputs[i];
        if (!is_float(input->dtype)) continue;
        std::vector<double> numbers(static_cast<size_t>(input->shape.element_count()));
        for (size_t n = 0; n < numbers.size(); ++n)
          numbers[n] = static_cast<double>(low + static_cast<int64_t>((seed + i + 7 * n * n + n) % static_cast<uint64_t>(4 - low)));
        input = blob_of_numbers(input->dtype, Shape(input->shape), numbers);
      }
      made.about = example_text(made.call, {}, 16);
      cases.push_back(std::move(made));
    }
  return cases;
}

bool in_dtype(const OperatorSchema& schema, uint32_t port, DType dtype, OperatorCase& of) {
  const heddle_port* const varied = schema.input_port(port);
  if (!varied || !allows(*varied, dtype) || of.call.inputs.size() <= port || !of.call.inputs[port]) return false;
  const auto same_variable = [&](const heddle_port* other) {
    return other == varied ||
           (other && other->type_variable && varied->type_variable && std::strcmp(other->type_variable, varied->type_variable) == 0);
  };
  const DType before = of.call.inputs[port]->dtype;
  if (before == dtype) return false;
  bool same = true;
  for (size_t i = 0; i < of.call.inputs.size(); ++i) {
    auto& input = of.call.inputs[i];
    if (!input || input->dtype != before || !same_variable(schema.input_port(i))) continue;
    auto there = converted(*input, dtype);
    // Examples are written in numbers that f16 and bf16 hold, or nearly so.
    same = same && (is_float(before) && is_float(dtype) ? true : same_numbers(*input, *there));
    input = std::move(there);
  }
  for (size_t o = 0; o < of.expected.size(); ++o)
    if (same_variable(schema.output_port(o)) && of.expected[o].dtype == before) {
      of.expected[o].dtype = dtype;
      of.expected[o].content = as_expected(of.expected[o].content, dtype);
    } else if (of.expected[o].dtype == before) {
      of.expected[o].absent = true;  // it may depend on the input without being declared so
    }
  if (!same) of.expected.clear();
  of.may_refuse = true;
  of.about = port == 0 ? fmt::format("in {}, {}", to_string(dtype), of.about)
                       : fmt::format("with {} of input {}, {}", to_string(dtype), port, of.about);
  return true;
}

namespace {

bool same_attributes(const OperatorCall& a, const OperatorCall& b) {
  return std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(),
                    [](const Attribute& x, const Attribute& y) { return x.name == y.name && x.value == y.value; });
}

bool same_inputs_but_for_dtypes(const std::vector<std::shared_ptr<const Blob>>& a, const std::vector<std::shared_ptr<const Blob>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x && y ? x->shape == y->shape && same_numbers(*x, *y) : x == y; });
}

// Whether outputs differ by more than the rounding of the coarser dtype.
bool other_outputs(const std::vector<ExampleTensor>& a, const std::vector<ExampleTensor>& b) {
  const auto wide = [](const ExampleTensor& tensor) { return converted(*tensor.content, DType::f64); };
  const auto view = [](const Blob& blob) { return TensorView{blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)}; };
  for (size_t o = 0; o < std::min(a.size(), b.size()); ++o) {
    if (!a[o].content || !b[o].content) continue;
    const double relative = std::max(precision_of(a[o].content->dtype), precision_of(b[o].content->dtype));
    if (a[o].shape != b[o].shape || !compare(view(*wide(a[o])), view(*wide(b[o])), relative, relative / 10).equal) return true;
  }
  return false;
}

enum Domain : uint8_t { reals, integers, booleans };
Domain domain_of(DType dtype) {
  return is_float(dtype) ? reals : dtype == DType::boolean ? booleans : integers;
}

}  // namespace

double precision_of(DType dtype) {
  return dtype == DType::bf16 ? 1e-2 : dtype == DType::f16 ? 2e-3 : 1e-5;
}

DtypeDependence::DtypeDependence(const std::vector<OperatorCase>& examples) {
  for (const OperatorCase& a : examples)
    for (const OperatorCase& b : examples)
      if (!a.call.inputs.empty() && !b.call.inputs.empty() && a.call.inputs[0] && b.call.inputs[0] &&
          a.call.inputs[0]->dtype != b.call.inputs[0]->dtype && same_attributes(a.call, b.call) &&
          same_inputs_but_for_dtypes(a.call.inputs, b.call.inputs) && other_outputs(a.expected, b.expected))
        depends_[domain_of(a.call.inputs[0]->dtype)][domain_of(b.call.inputs[0]->dtype)] = true;
  of_bytes_ = depends_[reals][reals] || depends_[integers][integers];
}

bool DtypeDependence::between(DType a, DType b) const {
  return of_bytes_ || depends_[domain_of(a)][domain_of(b)];
}

// ---------------------------------------------------------------- coverage

Coverage::Coverage(const RegistrySnapshot& registry, const OperatorSchema& schema)
    : schema_(schema),
      dtypes_(schema.op->input_count),
      ran_dtypes_(schema.op->input_count),
      inputs_(schema.op->input_count),
      outputs_(schema.op->output_count),
      attributes_(schema.op->attribute_count) {
  bool has_kernel = false;
  for (const auto& plugin : registry.plugins())
    for (const KernelEntry& entry : plugin->kernels) {
      const heddle_kernel& kernel = *entry.kernel;
      if (schema.name != kernel.operator_name || schema.domain != (kernel.domain ? kernel.domain : "") ||
          std::strcmp(kernel.device_kind, "cpu") != 0 || kernel.version > schema.version)
        continue;
      has_kernel = true;
      for (uint32_t i = 0; i < schema.op->input_count; ++i)
        dtypes_[i] |= kernel.input_dtypes && i < kernel.input_dtype_count ? kernel.input_dtypes[i] : ~heddle_dtype_set{0};
    }
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    dtypes_[i] = (has_kernel && !schema.op->pointwise ? dtypes_[i] : ~heddle_dtype_set{0}) & schema.op->inputs[i]->dtypes;
}

void Coverage::ran(const OperatorCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const size_t port = std::min<size_t>(i, schema_.op->input_count - 1);
    if (!call.inputs[i]) continue;
    inputs_[port] = 1;
    ran_dtypes_[port] |= HEDDLE_DTYPE_BIT(static_cast<int>(call.inputs[i]->dtype));
  }
  for (size_t o = 0; o < std::min<size_t>(call.output_count, outputs_.size()); ++o) outputs_[o] = 1;
  for (const Attribute& a : call.attributes)
    if (const int index = schema_.attribute_index(a.name); index >= 0 && !is_default(*schema_.op->attributes[index], a.value))
      attributes_[static_cast<size_t>(index)] = 1;
}

std::vector<DType> Coverage::dtypes(uint32_t port, bool unseen) const {
  std::vector<DType> allowed;
  if (port >= dtypes_.size()) return allowed;
  const heddle_dtype_set set = unseen ? dtypes_[port] & ~ran_dtypes_[port] : dtypes_[port];
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d)
    if (set & HEDDLE_DTYPE_BIT(d)) allowed.push_back(static_cast<DType>(d));
  return allowed;
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> missing;
  const heddle_operator& op = *schema_.op;
  for (uint32_t i = 0; i < op.input_count; ++i) {
    if (!inputs_[i]) {
      missing.push_back(fmt::format("input {}", quoted(op.inputs[i]->name)));
      continue;
    }
    std::vector<std::string> names;
    for (const DType dtype : dtypes(i, true)) names.emplace_back(to_string(dtype));
    if (!names.empty()) missing.push_back(fmt::format("{} of {}", join(names, ", "), quoted(op.inputs[i]->name)));
  }
  for (uint32_t o = 0; o < op.output_count; ++o)
    if (!outputs_[o]) missing.push_back(fmt::format("output {}", quoted(op.outputs[o]->name)));
  for (uint32_t a = 0; a < op.attribute_count; ++a)
    if (!attributes_[a]) missing.push_back(fmt::format("attribute {} other than its default", quoted(op.attributes[a]->name)));
  return missing;
}

}  // namespace heddle::tool
