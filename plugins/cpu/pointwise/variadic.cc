// Sum, Mean, Max and Min: any number of inputs folded with one function, from the left.
//
// A few inputs are one pointwise program. Many are folded a chunk at a time, block by block, with an accumulator in scratch: the program
// and the scratch stay as large as a chunk however many inputs there are, and the result has the same bits.
#include <algorithm>
#include <string>

#include "families.h"
#include "pointwise/pointwise.h"
#include "shared/fold_text.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t chunk = 64;                 // inputs of one program, the accumulator among them
constexpr int64_t block = 1024;                // elements that are folded to the end before the next ones
constexpr int64_t bytes_of_a_tile = 16 << 20;  // read by one tile: cancellation is checked after each tile

// Data that fold_chunk needs besides the program's scratch.
struct alignas(64) Frame {
  Region::Input storage[2 * chunk];
  const heddle_tensor* inputs[chunk];
  const void* data[chunk];
};

// 16-bit floats are rounded once, when the result is stored. All other types hold every intermediate value as it is.
heddle_dtype accumulator_of(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16 ? HEDDLE_F32 : dtype;
}

// Returns the address of element 0 for memory that holds only elements from `first` on.
char* element_zero(char* memory, int64_t first, heddle_dtype dtype) {
  const int64_t offset = first * static_cast<int64_t>(byte_width(dtype));
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(memory) - static_cast<uintptr_t>(offset));
}

// The number of inputs that the next step takes after `done` inputs.
uint32_t next_count(uint32_t done, uint32_t inputs) {
  return std::min(done == 0 ? chunk : chunk - 1, inputs - done);
}

class VariadicKernel : public PointwiseKernel {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  // `function` is "+" or one of two arguments; `ending` is appended to the folded value: " / 3".
  Status create(const CreateContext& context, const std::string& function, const std::string& ending = "");

 private:
  Status create_chunks(heddle_dtype dtype, const std::string& function, const std::string& ending);
  // Folds inputs [from, from + count) into `accumulated`, elements [begin, end); `memory` holds the program's scratch and a Frame.
  Status fold_chunk(const RunContext& context, const Program& program, const heddle_tensor* accumulated, uint32_t from, uint32_t count,
                    void* output, int64_t begin, int64_t end, char* memory) const;
  uint64_t program_bytes() const;

  uint32_t input_count_ = 0;
  // For more inputs than a chunk has: first_ folds a whole chunk, middle_ the accumulator and a chunk, last_ the accumulator and the rest.
  Program first_, middle_, last_;
  heddle_dtype accumulator_ = HEDDLE_DTYPE_NONE;
  int64_t tile_elements_ = 1;
};

Status VariadicKernel::create(const CreateContext& context, const std::string& function, const std::string& ending) {
  input_count_ = context.input_count();
  if (input_count_ > chunk) return create_chunks(context.output(0)->dtype, function, ending);
  std::vector<std::string> names;
  const std::string port = context.op().inputs[0]->name;
  for (uint32_t i = 0; i < input_count_; ++i) names.push_back(port + std::to_string(i));
  return compile_node(context, fold_text(names, function, ending), HEDDLE_DTYPE_NONE, &program_, &input_map_);
}

Status VariadicKernel::create_chunks(heddle_dtype dtype, const std::string& function, const std::string& ending) {
  accumulator_ = accumulator_of(dtype);
  const auto compile = [&](bool accumulated, uint32_t count, bool is_last, Program* program) {
    ProgramText text;
    text.arithmetic = dtype;
    text.output_dtype = is_last ? dtype : accumulator_;
    if (accumulated) {
      text.inputs.emplace_back("accumulated");
      text.input_dtypes.push_back(accumulator_);
    }
    for (uint32_t i = 0; i < count; ++i) {
      text.inputs.push_back("x" + std::to_string(i));
      text.input_dtypes.push_back(dtype);
    }
    text.text = fold_text(text.inputs, function, is_last ? ending : "");
    return Program::compile(text, program);
  };
  if (Status s = compile(false, chunk, false, &first_); !s.ok()) return s;
  if (Status s = compile(true, chunk - 1, false, &middle_); !s.ok()) return s;
  uint32_t left = (input_count_ - chunk) % (chunk - 1);
  if (left == 0) left = chunk - 1;
  return compile(true, left, true, &last_);
}

uint64_t VariadicKernel::program_bytes() const {
  const uint64_t most = std::max({first_.scratch_bytes(), middle_.scratch_bytes(), last_.scratch_bytes()});
  return (most + 63) / 64 * 64;
}

Status VariadicKernel::prepare(PrepareContext& context) {
  if (input_count_ <= chunk) return PointwiseKernel::prepare(context);
  const heddle_tensor& output = *context.output(0);
  const auto width = static_cast<int64_t>(byte_width(output.dtype));
  int64_t elements = 1;
  for (int i = 0; i < output.rank; ++i) elements *= output.dims[i];
  tile_elements_ = std::clamp<int64_t>(bytes_of_a_tile / (width * input_count_) / 64 * 64, 64, int64_t{1} << 16);
  context.set_tiles((elements + tile_elements_ - 1) / tile_elements_);
  double bytes = static_cast<double>(output.byte_size);
  for (uint32_t i = 0; i < input_count_; ++i) bytes += static_cast<double>(context.inputs()[i]->byte_size);
  const double per_element = middle_.cost_ns() * input_count_ / chunk;
  context.set_cost_ns(30 + static_cast<double>(elements) * per_element + bytes / bytes_per_ns);
  context.set_scratch(0, program_bytes() + sizeof(Frame) + block * byte_width(accumulator_));
  return {};
}

Status VariadicKernel::fold_chunk(const RunContext& context, const Program& program, const heddle_tensor* accumulated, uint32_t from,
                                  uint32_t count, void* output, int64_t begin, int64_t end, char* memory) const {
  Frame& frame = *reinterpret_cast<Frame*>(memory + program_bytes());
  uint32_t n = 0;
  if (accumulated) {
    frame.inputs[n] = accumulated;
    frame.data[n++] = accumulated->data;
  }
  for (uint32_t i = from; i < from + count; ++i) {
    frame.inputs[n] = context.inputs[i];
    frame.data[n++] = context.inputs[i]->data;
  }
  Region region;
  if (Status s = make_region(*context.outputs[0], frame.inputs, n, frame.storage, &region); !s.ok()) return s;
  program.run_region(region, frame.data, output, begin, std::min(end, region.element_count), memory);
  return {};
}

Status VariadicKernel::run(const RunContext& context, int64_t begin, int64_t end) const {
  if (input_count_ <= chunk) return PointwiseKernel::run(context, begin, end);
  const heddle_tensor& output = *context.outputs[0];
  int64_t elements = 1;  // the true extents: they may be smaller than those of prepare
  for (int i = 0; i < output.rank; ++i) elements *= output.dims[i];
  char* memory = thread_scratch<char>(context);
  char* sums = memory + program_bytes() + sizeof(Frame);
  heddle_tensor accumulated = output;
  accumulated.dtype = accumulator_;
  const int64_t last = std::min(end * tile_elements_, elements);
  for (int64_t at = begin * tile_elements_; at < last; at += block) {
    const int64_t stop = std::min(at + block, last);
    accumulated.data = element_zero(sums, at, accumulator_);
    for (uint32_t done = 0, count = 0; done < input_count_; done += count) {
      count = next_count(done, input_count_);
      const bool is_last = done + count == input_count_;
      const Program& program = done == 0 ? first_ : is_last ? last_ : middle_;
      const Status s = fold_chunk(context, program, done == 0 ? nullptr : &accumulated, done, count,
                                  is_last ? output.data : accumulated.data, at, stop, memory);
      if (!s.ok()) return s;
    }
  }
  return {};
}

class Sum : public VariadicKernel {
 public:
  Status create(const CreateContext& context) { return VariadicKernel::create(context, "+"); }
};
class Mean : public VariadicKernel {
 public:
  Status create(const CreateContext& context) {
    return VariadicKernel::create(context, "+", " / " + std::to_string(context.input_count()));
  }
};
class Max : public VariadicKernel {
 public:
  Status create(const CreateContext& context) { return VariadicKernel::create(context, "max"); }
};
class Min : public VariadicKernel {
 public:
  Status create(const CreateContext& context) { return VariadicKernel::create(context, "min"); }
};

template <class Kernel>
Op fold_operator(const char* name, const char* output, heddle_dtype_set set) {
  Op op(name, "", 13);
  op.variadic("data_", set)
      .out(output, broadcast(), set)
      .in_place(output, "data_")
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP | HEDDLE_TRAIT_COMMUTATIVE)
      .cpu<Kernel>();
  return op;
}

Status sum_gradient(GradientContext& g) {
  for (uint32_t i = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.give(i, sum_to(g, g.dy(0), g.x(i)));
  return {};
}

Status mean_gradient(GradientContext& g) {
  const GradientValue part = pointwise(g, "x0 / " + std::to_string(g.input_count()), {g.dy(0)});
  for (uint32_t i = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.give(i, sum_to(g, part, g.x(i)));
  return {};
}

// Equal extremes share the gradient equally.
Status extreme_gradient(GradientContext& g) {
  std::vector<GradientValue> is_extreme;
  for (uint32_t i = 0; i < g.input_count(); ++i) is_extreme.push_back(pointwise(g, "select(eq(x0, x1), 1, 0)", {g.x(i), g.y(0)}));
  const GradientValue part = pointwise(g, "x0 / x1", {g.dy(0), g.emit("Sum", is_extreme)});
  for (uint32_t i = 0; i < g.input_count(); ++i)
    if (g.wants(i)) g.give(i, sum_to(g, g.emit("Mul", {part, is_extreme[i]}), g.x(i)));
  return {};
}

}  // namespace

void add_variadic(Builder& plugin) {
  plugin.add(fold_operator<Sum>("Sum", "sum", float_dtypes)
                 .doc("Adds any number of tensors element by element.")
                 .formula("sum = data_0 + data_1 + ...")
                 .gradient<sum_gradient>()
                 .example("f32[2,3] = 1.5 -2 3 0 4 -1, f32[3] = 0.5 -4 2, f32[] = 1 -> f32[2,3] = 3 -5 6 1.5 1 2", "NumPy: x0 + x1 + x2")
                 .example("f32[2] = 1.5 -2 -> f32[2] = 1.5 -2", "by hand"));
  plugin.add(fold_operator<Mean>("Mean", "mean", float_dtypes)
                 .doc("Averages any number of tensors element by element.")
                 .formula("mean = (data_0 + data_1 + ...) / count")
                 .gradient<mean_gradient>()
                 .example("f32[2,3] = 1.5 -2 3 0 4 -1, f32[3] = 0.5 -4 2, f32[] = 1"
                          " -> f32[2,3] = 1 -1.666667 2 0.5 0.3333333 0.6666667",
                          "NumPy: (x0 + x1 + x2) / 3")
                 .example("f32[2] = 1.5 -2 -> f32[2] = 1.5 -2", "by hand"));
  plugin.add(
      fold_operator<Max>("Max", "max", numeric_dtypes)
          .doc("Gives the largest of any number of tensors, element by element. NaN in one of them gives NaN.")
          .formula("max = max(data_0, data_1, ...)")
          .gradient<extreme_gradient>()
          .example("f32[2,3] = 1.5 -2 3 0 4 -1, f32[3] = 0.5 -4 2, f32[] = 1 -> f32[2,3] = 1.5 1 3 1 4 2", "NumPy: np.maximum, twice")
          .example("i32[3] = 0 3 7, i32[3] = 5 3 2 -> i32[3] = 5 3 7", "NumPy: np.maximum"));
  plugin.add(
      fold_operator<Min>("Min", "min", numeric_dtypes)
          .doc("Gives the smallest of any number of tensors, element by element. NaN in one of them gives NaN.")
          .formula("min = min(data_0, data_1, ...)")
          .gradient<extreme_gradient>()
          .example("f32[2,3] = 1.5 -2 3 0 4 -1, f32[3] = 0.5 -4 2, f32[] = 1 -> f32[2,3] = 0.5 -4 1 0 -4 -1", "NumPy: np.minimum, twice")
          .example("i32[3] = 0 3 7, i32[3] = 5 3 2 -> i32[3] = 0 3 2", "NumPy: np.minimum"));
}

}  // namespace heddle::cpu
