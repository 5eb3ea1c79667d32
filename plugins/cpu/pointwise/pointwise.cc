// The operator heddle.Pointwise: an expression over any number of inputs, into which fusion merges chains of elementwise operators.
#include "pointwise/pointwise.h"

#include <algorithm>
#include <cstring>

#include "families.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

using expression::Opcode;

std::string numbered(const char* name, size_t i) {
  return name + std::to_string(i);
}

bool parse_numbered(const std::string& text, size_t input_count, expression::Program* program, std::string* error) {
  for (size_t i = 0; i < input_count; ++i) program->inputs.push_back(numbered("x", i));
  return expression::parse(text, {}, *program, *error);
}

Status infer_pointwise(InferContext& context) {
  heddle_dtype dtype = HEDDLE_BOOL;
  std::vector<int64_t> dims;
  for (uint32_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) return invalid("input " + std::to_string(i) + " is absent");
    const heddle_dtype own = context.input(i).dtype;
    // Conditions may be bool; all other inputs have one dtype.
    if (own != HEDDLE_BOOL && dtype != HEDDLE_BOOL && own != dtype) return invalid("inputs that are not bool must have one dtype");
    if (own != HEDDLE_BOOL) dtype = own;
    if (!broadcast_dims(dims, context.dims(i)))
      return invalid("input " + std::to_string(i) + " " + dims_text(context.dims(i)) + " does not broadcast to " +
                     dims_text(dims_of(dims)));
  }
  const std::string text = context.attributes.s("program");
  expression::Program program;
  std::string error;
  if (!parse_numbered(text, context.input_count(), &program, &error)) return invalid("program \"" + text + "\": " + error);
  if (program.inputs.size() > context.input_count())
    return invalid("program \"" + text + "\": \"" + program.inputs.back() + "\" is no input");
  if (is_predicate(text, context.input_count())) dtype = HEDDLE_BOOL;
  const int64_t given = context.attributes.i("dtype", HEDDLE_DTYPE_NONE);
  if (given < 0 || given >= HEDDLE_DTYPE_COUNT) return invalid("dtype " + std::to_string(given) + " is no dtype");
  context.set_dtype(0, given != HEDDLE_DTYPE_NONE ? static_cast<heddle_dtype>(given) : dtype);
  context.set_dims(0, dims);
  return {};
}

void pointwise_cost(CostContext& context) {
  expression::Program program;
  std::string error;
  if (parse_numbered(context.attributes.s("program"), 0, &program, &error))
    context.set_flops(expression::operations(program) * context.output_elements(0));
}

class Pointwise : public PointwiseKernel {
 public:
  Status create(const CreateContext& context) {
    ProgramText text;
    text.text = context.attributes.s("program");
    text.output_dtype = context.output(0)->dtype;
    for (uint32_t i = 0; i < context.input_count(); ++i) {
      text.inputs.push_back(numbered("x", i));
      text.input_dtypes.push_back(context.input(i)->dtype);
      input_map_.push_back(i);
    }
    return Program::compile(text, &program_);
  }
};

}  // namespace

bool is_predicate(const std::string& text, size_t input_count) {
  expression::Program program;
  std::string error;
  if (!parse_numbered(text, input_count, &program, &error) || program.code.empty()) return false;
  switch (program.code.back().op) {
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::logical_and:
    case Opcode::logical_or:
    case Opcode::logical_xor:
    case Opcode::logical_not:
    case Opcode::isnan:
    case Opcode::isinf:
      return true;
    default:
      return false;
  }
}

// Properties that a node fixes (attributes, inputs that are absent) become constants, so that the compiled program tests none of them per
// element.
expression::Constants bind_names(const CreateContext& context, const std::string& text) {
  expression::Constants constants;
  for (uint32_t i = 0; i < context.attributes.size(); ++i) {
    const heddle_attribute* a = context.attributes[i];
    if (!a) continue;
    if (a->type == HEDDLE_ATTRIBUTE_INT) constants.emplace_back(a->name, static_cast<double>(a->i));
    if (a->type == HEDDLE_ATTRIBUTE_FLOAT) constants.emplace_back(a->name, a->f);
    if (a->type != HEDDLE_ATTRIBUTE_STRING) continue;
    const std::string prefix = std::string(a->name) + "_is_", value(a->s, a->count);
    for (const std::string& word : expression::mentioned(text, prefix)) constants.emplace_back(prefix + word, word == value ? 1.0 : 0.0);
  }
  for (uint32_t i = 0; i < context.op().input_count; ++i) {
    const bool present = context.input(i) != nullptr;
    const char* name = context.op().inputs[i]->name;
    constants.emplace_back(std::string("has_") + name, present ? 1.0 : 0.0);
    if (!present) constants.emplace_back(name, 0.0);
  }
  return constants;
}

Status compile_node(const CreateContext& context, const std::string& text, heddle_dtype arithmetic, Program* program,
                    std::vector<uint32_t>* input_map) {
  const heddle_operator& op = context.op();
  ProgramText node;
  node.text = text;
  node.constants = bind_names(context, text);
  node.arithmetic = arithmetic;
  node.output_dtype = context.output(0)->dtype;
  input_map->clear();
  for (uint32_t i = 0; i < context.input_count(); ++i) {
    if (!context.input(i)) continue;
    const uint32_t last = op.input_count - 1;
    const heddle_port& port = *op.inputs[std::min(i, last)];
    node.inputs.push_back((port.flags & HEDDLE_PORT_VARIADIC) ? numbered(port.name, i - last) : port.name);
    node.input_dtypes.push_back(context.input(i)->dtype);
    input_map->push_back(i);
  }
  return Program::compile(node, program);
}

Status PointwiseKernel::build(const heddle_tensor* const* inputs, const heddle_tensor& output, Region::Input* storage,
                              const heddle_tensor** mapped, Region* region) const {
  for (size_t i = 0; i < input_map_.size(); ++i) mapped[i] = inputs[input_map_[i]];
  return make_region(output, mapped, static_cast<uint32_t>(input_map_.size()), storage, region);
}

Status PointwiseKernel::prepare(PrepareContext& context) {
  const heddle_tensor& output = *context.output(0);
  storage_.resize(2 * input_map_.size());
  std::vector<const heddle_tensor*> mapped(input_map_.size());
  if (Status s = build(context.inputs(), output, storage_.data(), mapped.data(), &region_); !s.ok()) return s;
  bounded_ = output.extent != nullptr;
  double bytes = static_cast<double>(output.byte_size);
  for (const heddle_tensor* input : mapped) {
    bytes += static_cast<double>(input->byte_size);
    bounded_ = bounded_ || input->extent != nullptr;
  }
  const int64_t n = region_.element_count;
  const double cost = static_cast<double>(n) * program_.cost_ns() + bytes / bytes_per_ns;
  int64_t tiles = std::clamp<int64_t>(static_cast<int64_t>(std::min(cost / 50e3, 1e9)), cost > 20e3 ? 2 : 1, max_tiles);
  // A program does about eight operations of its vectors in a nanosecond.
  tiles = std::max(tiles, min_tiles(8 * static_cast<double>(n) * program_.cost_ns(), bytes));
  // Whole grains, so that tiles begin at whole vectors. From the shape alone: the same for any number of threads.
  constexpr int64_t grain = 1024;
  tile_elements_ = std::max<int64_t>(grain, ((n + tiles - 1) / tiles + grain - 1) / grain * grain);
  context.set_tiles((n + tile_elements_ - 1) / tile_elements_);
  context.set_cost_ns(30 + cost);
  // Pointers and, for bounded values, the region of the true extents lie in scratch: run() must not allocate.
  const uint64_t run_time_region = bounded_ ? storage_.size() * sizeof(Region::Input) : 0;
  context.set_scratch(0, program_.scratch_bytes() + input_map_.size() * 2 * sizeof(void*) + run_time_region);
  return {};
}

Status PointwiseKernel::run(const RunContext& context, int64_t begin, int64_t end) const {
  const size_t n = input_map_.size();
  char* scratch = thread_scratch<char>(context);
  const void** data = reinterpret_cast<const void**>(scratch + program_.scratch_bytes());
  for (size_t i = 0; i < n; ++i) data[i] = context.inputs[input_map_[i]]->data;
  const Region* region = &region_;
  Region actual;
  if (bounded_) {  // the true extents may be smaller than those of prepare
    const heddle_tensor** mapped = reinterpret_cast<const heddle_tensor**>(data + n);
    Region::Input* storage = reinterpret_cast<Region::Input*>(mapped + n);
    if (Status s = build(context.inputs, *context.outputs[0], storage, mapped, &actual); !s.ok()) return s;
    region = &actual;
  }
  const int64_t last = std::min(end * tile_elements_, region->element_count);
  program_.run_region(*region, data, context.outputs[0]->data, begin * tile_elements_, last, scratch);
  return {};
}

void add_pointwise(Builder& plugin) {
  plugin.add(Op("Pointwise", "heddle")
                 .doc("Evaluates a program for every element: what the runtime fuses neighbouring elementwise operators to. The language "
                      "of programs is described in heddle/expression.h.")
                 .formula("y = program(x0, x1, ...)")
                 .shapes("y has the dims to which the inputs broadcast")
                 .any_number("x")
                 .out("y", {}, any_dtype, nullptr)
                 .required("program", HEDDLE_ATTRIBUTE_STRING)
                 .maybe("dtype", HEDDLE_ATTRIBUTE_INT)
                 .in_place("y", "x")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_pointwise)
                 .cost<pointwise_cost>()
                 .cpu<Pointwise>()
                 .example("bool[4] = 1 0 1 0, f32[4] = 1 2 3 4, f32[] = -0.5; program=\"t = x1 * x2; select(x0, t, t + 1)\""
                          " -> f32[4] = -0.5 0 -1.5 -1",
                          "by hand")
                 .example("f32[2,3] = 0 1 1 1 0 1, f32[3] = 1 1 0; program=\"lt(x0, x1)\" -> bool[2,3] = 1 0 0 0 1 0", "by hand")
                 .example("bool[3] = 1 0 1, f32[3] = 1.5 2 3; program=\"select(x0, x1, -x1)\", dtype=4 -> f64[3] = 1.5 -2 3", "by hand"));
}

}  // namespace heddle::cpu
