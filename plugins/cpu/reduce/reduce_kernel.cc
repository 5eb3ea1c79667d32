#include "reduce/reduce_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "shared/axes.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "vector/convert.h"

namespace heddle::cpu {

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

Status Reduce::create(const CreateContext& context, Reduction reduction) {
  reduction_ = reduction;
  const auto is_set = [&](const char* name) { return context.attributes.declares(name) && context.attributes.i(name) != 0; };
  keep_when_empty_ = is_set("noop_with_empty_axes");
  keeps_dims_ = is_set("keepdims");
  dtype_ = context.input(0)->dtype;
  const bool is_half = dtype_ == HEDDLE_F16 || dtype_ == HEDDLE_BF16;
  folded_dtype_ = is_half ? dtype_ : compute_dtype(dtype_);
  // The squares of integers may exceed their type where the root does not.
  if (reduction.ending == Ending::square_root && folded_dtype_ != HEDDLE_F32 && !is_half) folded_dtype_ = HEDDLE_F64;
  if (!isa_folds().functions[fold_type(folded_dtype_)][reduction.fold].row) return invalid("is not defined for integers");
  return {};
}

ReducePlan Reduce::plan_of(const heddle_tensor& input, uint32_t set) const {
  const double cost =
      static_cast<double>(input.byte_size) / 10 + (reduction_.fold == fold_exp ? static_cast<double>(input.element_count) : 0);
  return plan_reduction(input, set, cost, reduction_.ending != Ending::log_sum_exp);
}

// Axes that are not known before the run (neither constant nor given to prepare) lead to one tile, planned when it runs.
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
        n = std::min(n, reduce_chunk);
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
  const int64_t width = static_cast<int64_t>(byte_width(dtype_)), folded_width = static_cast<int64_t>(byte_width(folded_dtype_));
  const bool convert_first = dtype_ != folded_dtype_;
  for (int64_t o = work.first_output; o < work.last_output;) {
    const int64_t n = std::min({plan.row - o % plan.row, work.last_output - o, reduce_chunk});
    const char* base = work.input + plan.input_of(o) * width;
    Accumulator* accumulators = work.accumulators + (o - work.first_output);
    const Accumulator* shifts = work.shifts ? work.shifts + (o - work.first_output) : nullptr;
    for (int64_t r = work.first_folded; r < work.last_folded;) {
      // Rows of the innermost reduced group lie a constant distance apart.
      const int64_t apart = plan.reduced.empty() ? 0 : plan.reduced.back().input_stride;
      const int64_t neighbours = plan.reduced.empty() ? 1 : plan.reduced.back().extent - r % plan.reduced.back().extent;
      const int64_t most = (convert_first ? reduce_chunk : CancellationPoll::between) / n;
      const int64_t rows = std::min({neighbours, work.last_folded - r, std::max<int64_t>(1, most)});
      if (work.poll->stops(n * rows)) return;
      const char* data = base + plan.folded_at(r) * width;
      if (convert_first) {
        const int64_t together = apart == n ? rows : 1;  // rows without a gap are converted as one
        for (int64_t k = 0; k < rows; k += together)
          convert(dtype_, data + k * apart * width, folded_dtype_, reinterpret_cast<char*>(work.converted) + k * n * folded_width,
                  n * together);
        functions.columns(work.converted, rows, n, n, shifts, accumulators);
      } else {
        functions.columns(data, rows, apart, n, shifts, accumulators);
      }
      r += rows;
    }
    o += n;
  }
}

// Adds the partial results of the next elements.
void Reduce::combine(Accumulator* into, const Accumulator* from, int64_t count) const {
  const heddle_dtype dtype = accumulator_dtype(folded_dtype_);
  const FoldType type = dtype == HEDDLE_F64 ? fold_f64 : (dtype == HEDDLE_U64 ? fold_u64 : fold_i64);
  const bool itself = reduction_.fold == fold_product || reduction_.fold == fold_max || reduction_.fold == fold_min;
  isa_folds().functions[type][itself ? reduction_.fold : fold_sum].columns(from, 1, count, count, nullptr, into);
}

// Applies the last operation to folded values.
void Reduce::end(const ReducePlan& plan, Accumulator* accumulators, const Accumulator* shifts, int64_t count) const {
  if (reduction_.ending == Ending::none) return;
  const heddle_dtype dtype = accumulator_dtype(folded_dtype_);
  for (int64_t i = 0; i < count; ++i) {
    Accumulator& a = accumulators[i];
    if (reduction_.ending == Ending::mean && dtype != HEDDLE_F64) {
      // Integers are divided as integers, towards zero: a double holds no sum of more than 53 bits.
      if (plan.folded > 0) dtype == HEDDLE_U64 ? a.u /= static_cast<uint64_t>(plan.folded) : a.u = static_cast<uint64_t>(a.i / plan.folded);
      continue;
    }
    double value = dtype == HEDDLE_F64 ? a.f : (dtype == HEDDLE_U64 ? static_cast<double>(a.u) : static_cast<double>(a.i));
    if (reduction_.ending == Ending::mean) value /= static_cast<double>(plan.folded);
    if (reduction_.ending == Ending::square_root) value = std::sqrt(value);
    if (reduction_.ending == Ending::log) value = std::log(value);
    if (reduction_.ending == Ending::log_sum_exp) value = shifts[i].f + std::log(value);
    if (dtype == HEDDLE_F64)
      a.f = value;
    else
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
    const int64_t n = std::min(reduce_chunk, last - first);
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
  for (int64_t first = 0; first < plan_.outputs; first += reduce_chunk)
    store(plan_, partial + first, first, std::min(reduce_chunk, plan_.outputs - first), scratch.results, *context.outputs[0]);
  return {};
}

}  // namespace heddle::cpu
