// ReduceSum, ReduceMean, ReduceMax, ... over any axes of any layout.
//
// A tile folds a part of the elements of a part of the outputs into accumulators (double or 64-bit integers). When the elements were
// divided, accumulators are partial results in scratch, [folded part][output], and finish combines them in order: results do not depend
// on threads. Dtypes that have no loops of their own are converted a stretch at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "families.h"
#include "reduce/accumulator.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/reduce_plan.h"
#include "shared/tile_cap.h"
#include "support/cost.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

enum class Ending { none, mean, log, square_root, log_sum_exp };

struct Reduction {
  Fold fold;
  Ending ending;
};
constexpr Reduction reduce_sum = {fold_sum, Ending::none}, reduce_mean = {fold_sum, Ending::mean}, reduce_max = {fold_max, Ending::none},
                    reduce_min = {fold_min, Ending::none}, reduce_product = {fold_product, Ending::none},
                    reduce_l1 = {fold_abs, Ending::none}, reduce_l2 = {fold_square, Ending::square_root},
                    reduce_log_sum = {fold_sum, Ending::log}, reduce_log_sum_exp = {fold_exp, Ending::log_sum_exp},
                    reduce_sum_square = {fold_square, Ending::none};

constexpr int64_t chunk = 512;  // columns, or converted elements, at a time

// The dimensions that `axes` names, as bits; none given means all, or none with noop_with_empty_axes.
Status reduced_set(int rank, const heddle_tensor* axes, bool keep_when_empty, uint32_t* set) {
  HEDDLE_PLUGIN_CHECK(axis_set("axes", axes, rank, set));
  if ((!axes || axes->element_count == 0) && !keep_when_empty) *set = (1u << rank) - 1;
  return {};
}
void reduced_extents(Dims from, uint32_t set, bool keeps_dims, Extents* to) {
  for (int i = 0; i < from.rank; ++i) {
    if (!(set >> i & 1))
      to->push(from[i]);
    else if (keeps_dims)
      to->push(1);
  }
}

class Reduce {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;
  Status finish(const RunContext& context) const;

 protected:
  Status create(const CreateContext& context, Reduction reduction);
  // The rest of prepare; without a set it is found in each run.
  Status plan(PrepareContext& context, std::optional<uint32_t> set);

 private:
  // The memory of one executing thread.
  struct Scratch {
    Accumulator accumulators[chunk], shifts[chunk];
    Accumulator converted[chunk], results[chunk];
  };
  // Outputs [first_output, last_output) and which of their elements to fold. Accumulators and shifts begin at first_output.
  struct Work {
    const char* input;
    int64_t first_output, last_output, first_folded, last_folded;
    Accumulator* accumulators;
    const Accumulator* shifts;
    Accumulator* converted;
    CancellationPoll* poll;
  };

  ReducePlan plan_of(const heddle_tensor& input, uint32_t set) const;
  void fold(const ReducePlan& plan, Fold kind, const Work& work) const;
  void fold_rows(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const;
  void fold_columns(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const;
  void combine(Accumulator* into, const Accumulator* from, int64_t count) const;
  void end(const ReducePlan& plan, Accumulator* accumulators, const Accumulator* shifts, int64_t count) const;
  void store(const ReducePlan& plan, const Accumulator* accumulators, int64_t first, int64_t count, Accumulator* results,
             const heddle_tensor& output) const;
  void run_outputs(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const;
  void run_partial(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const;

  Reduction reduction_ = reduce_sum;
  bool keep_when_empty_ = false, keeps_dims_ = true;
  bool known_axes_ = false;
  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE, folded_dtype_ = HEDDLE_DTYPE_NONE;
  ReducePlan plan_;
};

Status Reduce::create(const CreateContext& context, Reduction reduction) {
  reduction_ = reduction;
  const auto is_set = [&](const char* name) { return context.attributes.declares(name) && context.attributes.i(name) != 0; };
  keep_when_empty_ = is_set("noop_with_empty_axes");
  keeps_dims_ = is_set("keepdims");
  dtype_ = context.input(0)->dtype;
  folded_dtype_ = compute_dtype(dtype_);
  // The squares of integers whose root fits their type may not.
  if (reduction.ending == Ending::square_root && folded_dtype_ != HEDDLE_F32) folded_dtype_ = HEDDLE_F64;
  if (!isa_folds().functions[fold_type(folded_dtype_)][reduction.fold].row) return invalid("is not defined for integers");
  return {};
}

ReducePlan Reduce::plan_of(const heddle_tensor& input, uint32_t set) const {
  const double cost =
      static_cast<double>(input.byte_size) / 10 + (reduction_.fold == fold_exp ? static_cast<double>(input.element_count) : 0);
  return plan_reduction(input, set, cost, reduction_.ending != Ending::log_sum_exp);
}

// Axes that are not known before the run (neither constant nor given to prepare) leave one tile, planned when it runs.
Status Reduce::prepare(PrepareContext& context) {
  const heddle_tensor& input = *context.input(0);
  const heddle_tensor* axes = context.input(1);
  uint32_t set = 0;
  if (input.extent || (axes && !axes->data && axes->element_count > 0)) return plan(context, std::nullopt);
  if (Status s = reduced_set(input.rank, axes, keep_when_empty_, &set); !s.ok()) return s;
  return plan(context, set);
}

Status Reduce::plan(PrepareContext& context, std::optional<uint32_t> set) {
  const heddle_tensor& input = *context.input(0);
  known_axes_ = set.has_value();
  uint64_t partial_bytes = 0;
  if (set) {
    plan_ = plan_of(input, *set);
    context.set_tiles(plan_.tiles());
    if (plan_.folded_parts > 1) partial_bytes = static_cast<uint64_t>(plan_.folded_parts * plan_.outputs) * sizeof(Accumulator);
  }
  context.set_scratch(partial_bytes, sizeof(Scratch));
  context.set_cost_ns(50 + static_cast<double>(input.byte_size) / 10);
  return {};
}

Status Reduce::run(const RunContext& context, int64_t begin, int64_t end) const {
  CancellationPoll poll(context);
  if (!known_axes_) {
    const heddle_tensor& input = *context.inputs[0];
    uint32_t set = 0;
    const heddle_tensor* axes = context.input_count > 1 ? context.inputs[1] : nullptr;
    HEDDLE_PLUGIN_CHECK(check_planned({{"axes", axes}}, *context.outputs[0], [&](Extents* to) -> Status {
      HEDDLE_PLUGIN_CHECK(reduced_set(input.rank, axes, keep_when_empty_, &set));
      reduced_extents(dims_of(input), set, keeps_dims_, to);
      return {};
    }));
    ReducePlan plan = plan_of(input, set);
    plan.output_parts = std::min<int64_t>(plan.output_parts, 1);
    plan.folded_parts = 1;
    for (int64_t part = 0; part < plan.output_parts; ++part) run_outputs(plan, context, part, poll);
    return poll.status();
  }
  for (int64_t tile = begin; tile < end; ++tile) {
    if (plan_.folded_parts > 1)
      run_partial(plan_, context, tile, poll);
    else
      run_outputs(plan_, context, tile, poll);
  }
  return poll.status();
}

void Reduce::fold(const ReducePlan& plan, Fold kind, const Work& work) const {
  const Accumulator start = start_of(kind, dtype_);
  std::fill(work.accumulators, work.accumulators + (work.last_output - work.first_output), start);
  if (work.first_folded >= work.last_folded) return;
  const FoldFunctions& functions = isa_folds().functions[fold_type(folded_dtype_)][kind];
  plan.columns ? fold_columns(plan, functions, work) : fold_rows(plan, functions, work);
}

void Reduce::fold_rows(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const {
  const int64_t width = static_cast<int64_t>(byte_width(dtype_));
  const bool convert_first = dtype_ != folded_dtype_;
  for (int64_t o = work.first_output; o < work.last_output; ++o) {
    const char* base = work.input + plan.input_of(o) * width;
    Accumulator* accumulator = work.accumulators + (o - work.first_output);
    const Accumulator* shift = work.shifts ? work.shifts + (o - work.first_output) : nullptr;
    for (int64_t r = work.first_folded; r < work.last_folded;) {
      const char* data = base + plan.folded_at(r) * width;
      int64_t n = std::min({plan.row - r % plan.row, work.last_folded - r, CancellationPoll::between});
      if (work.poll->stops(n)) return;
      if (convert_first) {
        n = std::min(n, chunk);
        convert(dtype_, data, folded_dtype_, work.converted, n);
        functions.row(work.converted, n, shift, accumulator);
      } else {
        functions.row(data, n, shift, accumulator);
      }
      r += n;
    }
  }
}

void Reduce::fold_columns(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const {
  const int64_t width = static_cast<int64_t>(byte_width(dtype_));
  const bool convert_first = dtype_ != folded_dtype_;
  for (int64_t o = work.first_output; o < work.last_output;) {
    const int64_t n = std::min({plan.row - o % plan.row, work.last_output - o, chunk});
    const char* base = work.input + plan.input_of(o) * width;
    Accumulator* accumulators = work.accumulators + (o - work.first_output);
    const Accumulator* shifts = work.shifts ? work.shifts + (o - work.first_output) : nullptr;
    for (int64_t r = work.first_folded; r < work.last_folded; ++r) {
      if (work.poll->stops(n)) return;
      const char* data = base + plan.folded_at(r) * width;
      if (convert_first) convert(dtype_, data, folded_dtype_, work.converted, n);
      functions.column(convert_first ? static_cast<const void*>(work.converted) : data, n, shifts, accumulators);
    }
    o += n;
  }
}

// Adds the partial results of the next elements.
void Reduce::combine(Accumulator* into, const Accumulator* from, int64_t count) const {
  const heddle_dtype dtype = accumulator_dtype(folded_dtype_);
  const FoldType type = dtype == HEDDLE_F64 ? fold_f64 : (dtype == HEDDLE_U64 ? fold_u64 : fold_i64);
  const bool itself = reduction_.fold == fold_product || reduction_.fold == fold_max || reduction_.fold == fold_min;
  isa_folds().functions[type][itself ? reduction_.fold : fold_sum].column(from, count, nullptr, into);
}

// What is left to do with a folded value.
void Reduce::end(const ReducePlan& plan, Accumulator* accumulators, const Accumulator* shifts, int64_t count) const {
  if (reduction_.ending == Ending::none) return;
  const heddle_dtype dtype = accumulator_dtype(folded_dtype_);
  for (int64_t i = 0; i < count; ++i) {
    Accumulator& a = accumulators[i];
    if (reduction_.ending == Ending::mean && dtype != HEDDLE_F64) {
      // In integers, towards zero: a double holds no sum of more than 53 bits.
      if (plan.folded > 0) dtype == HEDDLE_U64 ? a.u /= static_cast<uint64_t>(plan.folded) : a.u = static_cast<uint64_t>(a.i / plan.folded);
      continue;
    }
    double value = dtype == HEDDLE_F64 ? a.f : (dtype == HEDDLE_U64 ? static_cast<double>(a.u) : static_cast<double>(a.i));
    if (reduction_.ending == Ending::mean) value /= static_cast<double>(plan.folded);
    if (reduction_.ending == Ending::square_root) value = std::sqrt(value);
    if (reduction_.ending == Ending::log) value = std::log(value);
    if (reduction_.ending == Ending::log_sum_exp) value = shifts[i].f + std::log(value);
    convert(HEDDLE_F64, &value, dtype, &a, 1);
  }
}

void Reduce::store(const ReducePlan& plan, const Accumulator* accumulators, int64_t first, int64_t count, Accumulator* results,
                   const heddle_tensor& output) const {
  const heddle_dtype dtype = accumulator_dtype(folded_dtype_);
  const size_t width = byte_width(output.dtype);
  char* to = static_cast<char*>(output.data);
  if (plan.linear) return convert(dtype, accumulators, output.dtype, to + static_cast<size_t>(first) * width, count);
  convert(dtype, accumulators, output.dtype, results, count);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + static_cast<size_t>(plan.written_at(first + i)) * width,
                reinterpret_cast<const char*>(results) + static_cast<size_t>(i) * width, width);
}

void Reduce::run_outputs(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const {
  Scratch& scratch = *thread_scratch<Scratch>(context);
  const char* input = static_cast<const char*>(context.inputs[0]->data);
  for (int64_t first = plan.output_begin(part), last = plan.output_begin(part + 1); first < last && !poll.stopped();) {
    const int64_t n = std::min(chunk, last - first);
    Work work = {input, first, first + n, 0, plan.folded, scratch.accumulators, nullptr, scratch.converted, &poll};
    if (reduction_.ending == Ending::log_sum_exp) {
      work.accumulators = scratch.shifts;
      fold(plan, fold_max, work);
      for (int64_t i = 0; i < n; ++i)
        if (!std::isfinite(scratch.shifts[i].f)) scratch.shifts[i].f = 0;
      work.accumulators = scratch.accumulators;
      work.shifts = scratch.shifts;
    }
    fold(plan, reduction_.fold, work);
    end(plan, scratch.accumulators, scratch.shifts, n);
    store(plan, scratch.accumulators, first, n, scratch.results, *context.outputs[0]);
    first += n;
  }
}

void Reduce::run_partial(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const {
  Scratch& scratch = *thread_scratch<Scratch>(context);
  const int64_t folded_part = part / plan.output_parts, output_part = part % plan.output_parts;
  const int64_t first = plan.output_begin(output_part), last = plan.output_begin(output_part + 1);
  Accumulator* partial = step_scratch<Accumulator>(context) + folded_part * plan.outputs;
  fold(plan, reduction_.fold,
       {static_cast<const char*>(context.inputs[0]->data), first, last, plan.folded_begin(folded_part), plan.folded_begin(folded_part + 1),
        partial + first, nullptr, scratch.converted, &poll});
}

Status Reduce::finish(const RunContext& context) const {
  if (!known_axes_ || plan_.folded_parts <= 1) return {};
  Scratch& scratch = *thread_scratch<Scratch>(context);
  Accumulator* partial = step_scratch<Accumulator>(context);
  for (int64_t part = 1; part < plan_.folded_parts; ++part) combine(partial, partial + part * plan_.outputs, plan_.outputs);
  end(plan_, partial, nullptr, plan_.outputs);
  for (int64_t first = 0; first < plan_.outputs; first += chunk)
    store(plan_, partial + first, first, std::min(chunk, plan_.outputs - first), scratch.results, *context.outputs[0]);
  return {};
}

template <const Reduction& reduction>
class ReduceKernel : public Reduce {
 public:
  Status create(const CreateContext& context) { return Reduce::create(context, reduction); }
  // Spatial reductions of channels-last images need no reorder.
  static std::vector<heddle_format> formats(const CreateContext& context) {
    std::vector<heddle_format> choices = uniform_formats(context, 1, 0);
    return choices;
  }
};

Status infer_reduce(InferContext& context) {
  const Dims dims = context.dims(0);
  const bool keep = context.attributes.i("keepdims") != 0, noop = context.attributes.i("noop_with_empty_axes") != 0;
  const heddle_tensor* axes = context.has_input(1) ? &context.input(1) : nullptr;
  if (axes && !context.known(1)) {
    context.set_dynamic(0, keep ? dims.rank : std::max<int>(0, dims.rank - static_cast<int>(axes->element_count)));
    return {};
  }
  uint32_t set = 0;
  if (Status s = reduced_set(dims.rank, axes, noop, &set); !s.ok()) return s;
  Extents to;
  reduced_extents(dims, set, keep, &to);
  context.set_dims(0, to.dims());
  return {};
}

// What belongs to an output, beside all elements that were folded into it: their dimensions are 1 again.
GradientValue beside_folded(GradientContext& g, GradientValue value) {
  return g.attributes().i("keepdims") != 0 || !g.x(1) ? value : g.emit("Unsqueeze", {value, g.x(1)});
}

// How many elements were folded into each output, as a number of dy's dtype; counted in f64, which has them exactly.
GradientValue one_part(GradientContext& g, GradientValue dy) {
  const GradientValue outputs = cast(g, g.emit("Size", {g.y(0)}), HEDDLE_F64), elements = cast(g, g.emit("Size", {g.x(0)}), HEDDLE_F64);
  return g.emit("CastLike", {g.emit("Div", {outputs, elements}), dy});
}

// Equal extremes have equal parts of it, as in PyTorch's amax.
GradientValue of_extreme(GradientContext& g, GradientValue x, GradientValue y, GradientValue dy) {
  const GradientValue is_extreme = pointwise(g, "select(eq(x0, x1), 1, 0)", {x, y});
  const GradientValue count = g.emit("ReduceSum", {is_extreme, g.x(1)}, {{"keepdims", 1}, g.same("noop_with_empty_axes")});
  return pointwise(g, "x0 * (x1 / x2)", {is_extreme, dy, count});
}

// The product of all others: where one of them is zero it is not what a division gives.
GradientValue of_product(GradientContext& g, GradientValue x, GradientValue y, GradientValue dy) {
  const GradientAttribute keeps("keepdims", 1), noop = g.same("noop_with_empty_axes");
  const GradientValue zeros = g.emit("ReduceSum", {pointwise(g, "select(eq(x0, 0), 1, 0)", {x}), g.x(1)}, {keeps, noop});
  const GradientValue others = g.emit("ReduceProd", {pointwise(g, "select(eq(x0, 0), 1, x0)", {x}), g.x(1)}, {keeps, noop});
  return pointwise(g, "x3 * select(eq(x2, 0), x1 / x0, select(eq(x2, 1), select(eq(x0, 0), x4, 0), 0))", {x, y, zeros, dy, others});
}

template <const Reduction& reduction>
Status reduction_gradient(GradientContext& g) {
  const GradientValue x = g.x(0), y = beside_folded(g, g.y(0)), dy = beside_folded(g, g.dy(0));
  if (&reduction == &reduce_sum) {
    g.give(0, g.emit("Expand", {dy, shape_of(g, x)}));
  } else if (&reduction == &reduce_mean) {
    g.give(0, g.emit("Expand", {g.emit("Mul", {dy, one_part(g, dy)}), shape_of(g, x)}));
  } else if (&reduction == &reduce_log_sum) {
    g.give(0, g.emit("Expand", {pointwise(g, "x0 / exp(x1)", {dy, y}), shape_of(g, x)}));
  } else if (&reduction == &reduce_max || &reduction == &reduce_min) {
    g.give(0, of_extreme(g, x, y, dy));
  } else if (&reduction == &reduce_product) {
    g.give(0, of_product(g, x, y, dy));
  } else {
    g.give(0, pointwise(g,
                        &reduction == &reduce_l1            ? "sign(x0) * x2"
                        : &reduction == &reduce_l2          ? "select(eq(x1, 0), 0, x0 / x1 * x2)"
                        : &reduction == &reduce_log_sum_exp ? "exp(x0 - x1) * x2"
                                                            : "2 * x0 * x2",
                        {x, y, dy}));
  }
  return {};
}

// Over what broadcasting to the input's shape repeated: the other way round of Expand.
class SumTo : public Reduce {
 public:
  Status create(const CreateContext& context) { return Reduce::create(context, reduce_sum); }
  Status prepare(PrepareContext& context) {
    uint32_t set = 0;
    const Dims from = dims_of(*context.input(0)), to = dims_of(*context.output(0));
    HEDDLE_PLUGIN_CHECK(spread_set(from, to, &set));
    return plan(context, set);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[1]}}, *context.outputs[0],
                                      [&](Extents* to) { return extents_in(*context.inputs[1], to); }));
    return Reduce::run(context, begin, end);
  }
  static Status extents_in(const heddle_tensor& shape, Extents* to) {
    for (int64_t i = 0; i < shape.element_count; ++i) to->push(static_cast<const int64_t*>(shape.data)[i]);
    return {};
  }
  // The dimensions of `from` that are 1 in `to`, or not there.
  static Status spread_set(Dims from, Dims to, uint32_t* set) {
    const int missing = from.rank - to.rank;
    for (int i = 0; i < from.rank; ++i) {
      const int64_t extent = i < missing ? 1 : to[i - missing];
      if (extent != from[i] || i < missing) *set |= 1u << i;
      if (extent != from[i] && extent != 1) return invalid("dims " + dims_text(to) + " do not broadcast to " + dims_text(from));
    }
    return missing < 0 ? invalid("dims " + dims_text(to) + " do not broadcast to " + dims_text(from)) : Status();
  }
};

Status infer_sum_to(InferContext& context) {
  if (context.dims(1).rank != 1) return not_one_dimensional("shape", context.dims(1));
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(context.dims(1)[0])));
  if (!context.known(1)) return context.set_dynamic(0, static_cast<int>(context.dims(1)[0])), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(SumTo::extents_in(context.input(1), &to));
  uint32_t set = 0;
  HEDDLE_PLUGIN_CHECK(SumTo::spread_set(context.dims(0), to.dims(), &set));
  context.set_dims(0, to.dims());
  return {};
}

template <const Reduction& reduction, int operations = 1>
void add_reduction(Builder& plugin, const char* name, int32_t version, heddle_dtype_set set, std::initializer_list<const char*> examples) {
  Op op(name, "", version);
  op.in("data", set)
      .shape_operand("axes", dtypes<int64_t>(), true)
      .out("reduced", {}, set)
      .attribute("keepdims", 1)
      .attribute("noop_with_empty_axes", 0)
      .precision(HEDDLE_PRECISION_FULL)
      .infer(infer_reduce);
  op.cost<per_input_element<operations>>();
  op.gradient<reduction_gradient<reduction>>();
  op.cpu<ReduceKernel<reduction>>();
  for (const char* text : examples) op.example(text, "ONNX Runtime");
  plugin.add(op);
}

}  // namespace

void add_reduce(Builder& plugin) {
  add_reduction<reduce_sum>(
      plugin, "ReduceSum", 13, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -8", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -4",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"});
  add_reduction<reduce_mean>(
      plugin, "ReduceMean", 18, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -1.333333", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -1.333333",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"});
  add_reduction<reduce_max>(
      plugin, "ReduceMax", 18, any_dtype,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 3", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 3",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"});
  add_reduction<reduce_min>(
      plugin, "ReduceMin", 18, any_dtype,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = -4", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = -4",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"});
  add_reduction<reduce_product>(
      plugin, "ReduceProd", 18, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 1296", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 36",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"});
  add_reduction<reduce_l1, 2>(
      plugin, "ReduceL1", 18, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 20", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 10",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 4 3 3 4 3 3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"});
  add_reduction<reduce_l2, 2>(
      plugin, "ReduceL2", 18, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 8.246211", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 5.830952",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 4 3 3 4 3 3", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 1"});
  add_reduction<reduce_log_sum>(
      plugin, "ReduceLogSum", 18, numeric_dtypes,
      {"f32[2,3] = 1 3 3 1 5 7 -> f32[1,1] = 2.995732", "f32[2,3] = 1 3 3 1 5 7, i64[1] = -1; keepdims=0 -> f32[2] = 1.94591 2.564949",
       "f32[2,3] = 1 3 3 1 5 7; noop_with_empty_axes=1 -> f32[2,3] = 0 1.098612 1.098612 0 1.609438 1.94591",
       "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 0"});
  add_reduction<reduce_log_sum_exp, 3>(
      plugin, "ReduceLogSumExp", 18, float_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 3.696532", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 3.003385",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = -4 -3 3 -4 3 -3"});
  add_reduction<reduce_sum_square, 2>(
      plugin, "ReduceSumSquare", 18, numeric_dtypes,
      {"f32[2,3] = -4 -3 3 -4 3 -3 -> f32[1,1] = 68", "f32[2,3] = -4 -3 3 -4 3 -3, i64[1] = -1; keepdims=0 -> f32[2] = 34",
       "f32[2,3] = -4 -3 3 -4 3 -3; noop_with_empty_axes=1 -> f32[2,3] = 16 9 9 16 9 9", "i32[2,3] = 1, i64[1] = 0 -> i32[1,3] = 2"});
  plugin.add(Op("SumTo", "heddle")
                 .doc("the sum over what broadcasting a tensor of shape to the data's shape repeats: the gradient of Expand")
                 .in("data", numeric_dtypes)
                 .shape_operand("shape", dtypes<int64_t>())
                 .out("summed", {}, numeric_dtypes)
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_sum_to)
                 .gradient("Shape", {"data"}, {"t0"}, "")
                 .gradient("Expand", {"dsummed", "t0"}, {"ddata"}, "")
                 .cost<per_input_element<1>>()
                 .cpu<SumTo>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 2 1 -> f32[2,1] = 6 15", "by hand")
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[1] = 3 -> f32[3] = 5 7 9", "by hand")
                 .example("i32[2,1,2] = 1 2 3 4, i64[0] -> i32[] = 10", "by hand"));
}

}  // namespace heddle::cpu
