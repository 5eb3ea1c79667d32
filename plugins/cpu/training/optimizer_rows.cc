// Optimizers of tables, whose gradients are rows: SgdUpdateRows, MomentumUpdateRows, AdagradUpdateRows, AdamUpdateRows. Rows that no index
// names are unchanged, and so are their states. Gradients of one row are added first, in the order of their indices. The gradients of
// lookups in bags are the rows of their bags, times a weight: if the bags are inputs they need not be written out for each lookup
// (heddle::BagRows).
//
// A tile owns the rows that hash to it, and reads all indices to find them: with ranges of rows one tile would get most of the work, as
// rows that are named often lie together in most tables. So each row is updated by one tile, and the result does not depend on the number
// of threads.
#include <algorithm>

#include "families.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "training/applied_update.h"
#include "training/optimizer_rule.h"
#include "training/row_groups.h"
#include "vector/prefetch.h"

namespace heddle::cpu {
namespace {

// The gradients, of type T, of the indices, by their positions.
template <class T>
class GivenRows {
 public:
  // Null `bags`: each index has its own row; null `weights`: all are 1.
  GivenRows(const heddle_tensor& values, const heddle_tensor* bags, const heddle_tensor* weights, int64_t length)
      : rows_(static_cast<const T*>(values.data)),
        bags_(bags),
        weights_(weights ? static_cast<const T*>(weights->data) : nullptr),
        bag_count_(values.dims[0]),
        length_(length) {}

  // Errors: a bag is outside. Without branches, as every tile checks.
  Status check(CancellationPoll& poll) const {
    if (!bags_) return {};
    const bool inside = bags_->dtype == HEDDLE_I32 ? all_inside(static_cast<const int32_t*>(bags_->data), poll)
                                                   : all_inside(static_cast<const int64_t*>(bags_->data), poll);
    int64_t i = 0;
    while (!inside && !poll.stops(1) && integer_at(*bags_, i) >= 0 && integer_at(*bags_, i) < bag_count_) ++i;
    if (inside || poll.stopped()) return poll.status();
    return invalid("bag " + std::to_string(integer_at(*bags_, i)) + " of index " + std::to_string(i) + " is outside [0, " +
                   std::to_string(bag_count_) + "), the rows of values");
  }
  const T* row(int64_t position) const { return rows_ + (bags_ ? integer_at(*bags_, position) : position) * length_; }
  // sum = a + the gradient; a null `a` means zeros.
  void add(const T* a, int64_t position, T* sum) const {
    if (weights_)
      add_scaled(a, weights_[position], row(position), sum);
    else
      add_plain(a, row(position), sum);
  }
  bool weighted() const { return weights_ != nullptr; }

 private:
  template <class I>
  bool all_inside(const I* bags, CancellationPoll& poll) const {
    constexpr int64_t stretch = 4096;
    const auto last = static_cast<uint64_t>(bag_count_) - 1;
    uint64_t outside = 0;  // its sign bit: a bag is below 0 or past the last one
    for (int64_t first = 0; first < bags_->element_count && !poll.stops(stretch); first += stretch)
      for (int64_t i = first; i < std::min(bags_->element_count, first + stretch); ++i) {
        const auto bag = static_cast<uint64_t>(static_cast<int64_t>(bags[i]));
        outside |= bag | (last - bag);
      }
    return static_cast<int64_t>(outside) >= 0;
  }
  void add_plain(const float* a, const float* b, float* sum) const { isa_optimizers().f32_add(a, b, sum, length_); }
  void add_plain(const double* a, const double* b, double* sum) const { isa_optimizers().f64_add(a, b, sum, length_); }
  void add_scaled(const float* a, float factor, const float* b, float* sum) const {
    isa_optimizers().f32_add_scaled(a, factor, b, sum, length_);
  }
  void add_scaled(const double* a, double factor, const double* b, double* sum) const {
    isa_optimizers().f64_add_scaled(a, factor, b, sum, length_);
  }

  const T* const rows_;
  const heddle_tensor* const bags_;
  const T* const weights_;
  const int64_t bag_count_, length_;
};

// The inputs are w, the states, indices, values, lr, perhaps step, and where indices are lookups in bags these and their weights.
template <const OptimizerSchema& schema>
struct RowsPorts {
  static constexpr uint32_t states = schema.state_count(), indices = states + 1, values = states + 2, rate = states + 3;
  static constexpr uint32_t bags = rate + (schema.has_step() ? 2 : 1), weights = bags + 1;
};

// For each index: a gradient is read, and the weights and the states are read and written.
constexpr double rows_moved(uint32_t states) {
  return 2 * (states + 1) + 1;
}

template <const OptimizerSchema& schema>
heddle_status rows_cost(const heddle_infer_context* context, heddle_cost* cost) {
  using Ports = RowsPorts<schema>;
  cost->bytes = row_update_bytes(*context->inputs[0], *context->inputs[Ports::indices], rows_moved(Ports::states));
  return HEDDLE_OK;
}

template <const OptimizerSchema& schema>
class RowsUpdate : RowsPorts<schema> {
  using Ports = RowsPorts<schema>;
  using Ports::states, Ports::indices, Ports::values, Ports::rate, Ports::bags, Ports::weights;

 public:
  Status create(const CreateContext& context) {
    rowwise_ = context.attributes.declares("rowwise") && context.attributes.i("rowwise") != 0;
    return rule_.create(context.attributes, schema.rule);
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& w = *context.input(0);
    rows_ = w.dims[0];
    length_ = dims_of(w).count(1, w.rank);
    const int64_t row_bytes = length_ * static_cast<int64_t>(byte_width(w.dtype));
    sum_bytes_ = whole_lines(row_bytes);
    at_once_ = std::clamp<int64_t>(bytes_fetched_ahead / (sum_bytes_ + 1), 1, RowStretch<float>::max_rows);
    return plan_row_update(context, *context.input(indices), row_bytes, rows_moved(states), at_once_ * sum_bytes_, &tiles_);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return context.outputs[0]->dtype == HEDDLE_F64 ? run_as<double>(context, begin, end) : run_as<float>(context, begin, end);
  }

 private:
  static double squares(const float* w, const float* g, int64_t n, float decay) { return isa_optimizers().f32_squares(w, g, n, decay); }
  static double squares(const double* w, const double* g, int64_t n, double decay) { return isa_optimizers().f64_squares(w, g, n, decay); }

  template <class T>
  Status run_as(const RunContext& context, int64_t begin, int64_t end) const {
    UpdateNumbers<T> numbers;
    HEDDLE_PLUGIN_CHECK(
        rule_.numbers(number_at(*context.inputs[rate], 0), schema.has_step() ? context.inputs[rate + 1] : nullptr, true, &numbers));
    char* scratch = thread_scratch<char>(context);
    CancellationPoll poll(context);
    const auto optional = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    const GivenRows<T> given(*context.inputs[values], optional(bags), optional(weights), length_);
    HEDDLE_PLUGIN_CHECK(given.check(poll));
    RowGroups groups(scratch + at_once_ * sum_bytes_, *context.inputs[indices], rows_);
    const OwnedRows owned(begin, end, tiles_);
    HEDDLE_PLUGIN_CHECK(groups.find(owned, poll));
    for (uint32_t o = 0; o < context.output_count; ++o) copy_owned_rows(*context.inputs[o], *context.outputs[o], rows_, owned, poll);
    RowStretch<T> now, next;
    name(groups, given, 0, &next);
    for (int64_t group = 0; group < groups.count() && !poll.stops((states + 2) * length_ * next.count); group += now.count) {
      now = next;
      add(groups, given, group, scratch, &now, poll);
      name(groups, given, group + now.count, &next);
      update(context, now, next, numbers);
    }
    return poll.status();
  }

  template <class T>
  void name(const RowGroups& groups, const GivenRows<T>& given, int64_t group, RowStretch<T>* stretch) const {
    stretch->count = std::min(at_once_, groups.count() - group);
    for (int64_t i = 0; i < stretch->count; ++i) {
      stretch->rows[i] = groups.row(group + i);
      stretch->gradients[i] = given.row(groups.first(group + i));
    }
  }

  // Adds up the gradients of rows; a row's only gradient is used in place.
  template <class T>
  void add(const RowGroups& groups, const GivenRows<T>& given, int64_t group, char* sums, RowStretch<T>* stretch,
           CancellationPoll& poll) const {
    for (int64_t i = 0; i < stretch->count; ++i) {
      int32_t at = groups.first(group + i), behind = groups.behind(at);
      if (behind == RowGroups::none && !given.weighted()) continue;
      T* const sum = reinterpret_cast<T*>(sums + i * sum_bytes_);
      if (given.weighted()) given.add(nullptr, at, sum), stretch->gradients[i] = sum;
      for (at = behind; at != RowGroups::none && !poll.stops(length_); at = behind) {
        behind = groups.behind(at);
        if (behind != RowGroups::none) __builtin_prefetch(given.row(behind));
        given.add(stretch->gradients[i], at, sum);
        stretch->gradients[i] = sum;
      }
    }
  }

  template <class T>
  void update(const RunContext& context, const RowStretch<T>& stretch, const RowStretch<T>& next, const UpdateNumbers<T>& numbers) const {
    UpdatedRows<T> rows = {static_cast<T*>(context.outputs[0]->data), {}, length_, stretch, next};
    if (!rowwise_) {
      for (uint32_t s = 0; s < states; ++s) rows.states[s] = static_cast<T*>(context.outputs[s + 1]->data);
      return rule_.rows_loop(T())(rows, numbers);
    }
    for (int64_t i = 0; i < stretch.count; ++i) {
      if (i < next.count) prefetch_row(rows.w + next.rows[i] * length_, length_ * static_cast<int64_t>(sizeof(T)));
      T* const w = rows.w + stretch.rows[i] * length_;
      T& mean = static_cast<T*>(context.outputs[1]->data)[stretch.rows[i]];
      const auto here = length_ > 0 ? squares(w, stretch.gradients[i], length_, numbers.decay) / static_cast<double>(length_) : 0;
      mean = static_cast<T>(static_cast<double>(mean) + here);
      UpdateNumbers<T> of_row = numbers;
      of_row.rate = numbers.rate / (std::sqrt(mean) + numbers.epsilon);
      plain(T())(w, nullptr, stretch.gradients[i], w, nullptr, length_, of_row);
    }
  }
  static UpdateLoop<float> plain(float) { return isa_optimizers().f32[update_plain]; }
  static UpdateLoop<double> plain(double) { return isa_optimizers().f64[update_plain]; }

  OptimizerRule rule_;
  bool rowwise_ = false;
  int64_t rows_ = 0, length_ = 0, tiles_ = 1, at_once_ = 1, sum_bytes_ = 0;
};

template <const OptimizerSchema& schema>
Status infer_rows_update(InferContext& context) {
  using Ports = RowsPorts<schema>;
  const Dims w = context.dims(0), named = context.dims(Ports::indices), values = context.dims(Ports::values);
  if (w.rank < 1) return invalid("w is a scalar, expected a table of rows");
  const bool rowwise = context.attributes.declares("rowwise") && context.attributes.i("rowwise") != 0;
  const Dims of_state = rowwise ? Dims{w.data, 1} : w;
  for (uint32_t i = 1; i <= schema.state_count(); ++i)
    HEDDLE_PLUGIN_CHECK(expect_shape(context, i, of_state, rowwise ? "one for each row of w" : "that of w"));
  if (named.rank != 1) return invalid("indices has shape " + dims_text(named) + ", expected one dimension");
  for (const uint32_t i : {Ports::bags, Ports::weights}) HEDDLE_PLUGIN_CHECK(expect_shape(context, i, named, "that of indices"));
  const bool has_bags = context.has_input(Ports::bags);
  std::vector<int64_t> expected = vector_of(w);
  expected[0] = !has_bags ? named[0] : values.rank > 0 ? values[0] : 0;
  HEDDLE_PLUGIN_CHECK(expect_shape(context, Ports::values, expected, has_bags ? "a row of w for each bag" : "a row of w for each index"));
  HEDDLE_PLUGIN_CHECK(check_rule(context, Ports::rate, schema));
  HEDDLE_PLUGIN_CHECK(check_apply(context, Ports::weights + 1));
  context.set_dims(0, w);
  for (uint32_t o = 1; o <= schema.state_count(); ++o) context.set_dims(o, of_state);
  return {};
}

template <const OptimizerSchema& schema>
Op rows_update_operator(const char* name) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "heddle");
  op.in("w", floats);
  for (uint32_t s = 0; s < schema.state_count(); ++s) op.in(schema.states[s], floats);
  op.in("indices", index_dtypes, nullptr).indexes("w", 0).in("values", floats).in("lr", float_dtypes, nullptr);
  if (schema.has_step()) op.in("step", dtypes<int64_t>(), nullptr);
  op.optional("bags", index_dtypes, nullptr).indexes("values", 0).optional("weights", floats);
  op.optional("apply", dtypes<bool>(), nullptr);
  op.out("new_w", {}, floats).updates("new_w", "w");
  for (uint32_t s = 0; s < schema.state_count(); ++s)
    op.out(schema.next_states[s], {}, floats).updates(schema.next_states[s], schema.states[s]);
  declare_attributes(op, schema);
  if (schema.rule == update_adagrad) op.attribute("rowwise", 0);
  op.infer(infer_rows_update<schema>)
      .cost(rows_cost<schema>)
      .template cpu<AppliedUpdate<RowsUpdate<schema>, RowsPorts<schema>::weights + 1>>();
  return op;
}

}  // namespace

void add_optimizer_rows(Builder& plugin) {
  plugin.add(
      rows_update_operator<plain_rule>("SgdUpdateRows")
          .doc("Makes a step of gradient descent on the rows of w that indices name, each with the sum of its values. With bags the value "
               "of an index is the row of values of its bag, times its weight. With apply false nothing is changed.")
          .formula("for each row i that indices name: w[i] -= lr (sum of its values + weight_decay w[i])")
          .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 -1, f32[3,2] = 1 2 4 4 3 2, f32[] = 0.5 -> f32[3,2] = -1 0 3 4 3 4", "by hand")
          .example("f32[2] = 1 2, i32[1] = 1, f32[1] = 1, f32[1] = 0.5; weight_decay=0.5 -> f32[2] = 1 1", "by hand")
          .example("f32[2] = 1 2, i32[1] = 1, f32[1] = 1, f32[1] = 0.5, -, -, bool[] = 0 -> f32[2] = 1 2", "by hand")
          .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 -1, f32[2,2] = 1 2 4 4, f32[] = 0.5, i32[3] = 0 1 1 -> f32[3,2] = -1 0 3 4 2.5 3",
                   "by hand")
          .example("f32[3,1] = 1 2 3, i32[3] = 2 0 2, f32[2,1] = 2 4, f32[] = 0.5, i64[3] = 0 1 1, f32[3] = 3 0.5 -1 -> f32[3,1] = 0 2 2",
                   "by hand"));
  plugin.add(
      rows_update_operator<momentum_rule>("MomentumUpdateRows")
          .doc("Makes the step of MomentumUpdate on the rows of w and velocity that indices name, each with the sum of its values. With "
               "bags the value of an index is the row of values of its bag, times its weight. With apply false nothing is changed.")
          .example("f32[2] = 1 2, f32[2] = 4 2, i32[1] = 1, f32[1] = 1, f32[] = 0.5, -, -, bool[] = 0 -> f32[2] = 1 2, f32[2] = 4 2",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 4 4 4, i64[3] = 2 0 2, f32[3,1] = 1 2 3, f32[] = 0.5; momentum=0.5 -> f32[3,1] = -1 2 "
                   "0, f32[3,1] = 4 4 6",
                   "by hand")
          .example("f32[2,1] = 1 2, f32[2,1] = 4 -2, i32[2] = 0 -1, f32[2,1] = 1 3, f32[] = 0.5; momentum=0.5, nesterov=1, "
                   "weight_decay=0.5 -> f32[2,1] = -0.625 -0.75, f32[2,1] = 3.5 3",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 4 4 4, i64[3] = 2 0 2, f32[2,1] = 4 2, f32[] = 0.5, i32[3] = 0 1 1, f32[3] = 0.25 1 0.75; "
                   "momentum=0.5 -> f32[3,1] = -1 2 0.75, f32[3,1] = 4 4 4.5",
                   "by hand"));
  plugin.add(
      rows_update_operator<adagrad_rule>("AdagradUpdateRows")
          .doc("Makes the step of AdagradUpdate on the rows of w that indices name, each with the sum of its values. With rowwise 1, "
               "squares has one number for each row, to which the mean of the squares of the row's gradient is added. With bags the value "
               "of an index is the row of values of its bag, times its weight. With apply false nothing is changed.")
          .example("f32[2] = 1 2, f32[2] = 4 2, i32[1] = 1, f32[1] = 1, f32[] = 0.5, -, -, bool[] = 0 -> f32[2] = 1 2, f32[2] = 4 2",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 7 8 0, i64[3] = 0 2 0, f32[3,1] = 1 -2 2, f32[] = 0.5; epsilon=1 -> f32[3,1] = 0.7 2 "
                   "3.333333, f32[3,1] = 16 8 4",
                   "by hand")
          .example("f32[2,2] = 1 2 3 4, f32[2] = 9 11, i32[2] = -1 -1, f32[2,2] = 1 1 0 2, f32[] = 0.5; epsilon=0, rowwise=1 -> "
                   "f32[2,2] = 1 2 2.875 3.625, f32[2] = 9 16",
                   "by hand")
          .example("f64[1,1] = 2, f64[1] = 0, i64[1] = 0, f64[1,1] = 1, f32[] = 0.5; weight_decay=0.5, rowwise=1 -> f64[1,1] = "
                   "1.500000000025, f64[1] = 4",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 7 8 0, i64[3] = 0 2 0, f32[2,1] = 1 -2, f32[] = 0.5, i32[3] = 0 1 0, f32[3] = 1 1 2; "
                   "epsilon=1 -> f32[3,1] = 0.7 2 3.333333, f32[3,1] = 16 8 4",
                   "by hand"));
  plugin.add(
      rows_update_operator<rms_prop_rule>("RmsPropUpdateRows")
          .doc("Makes the step of RmsPropUpdate on the rows of w and squares that indices name, each with the sum of its values. With bags "
               "the value of an index is the row of values of its bag, times its weight. With apply false nothing is changed.")
          .example("f32[2] = 1 2, f32[2] = 4 2, i32[1] = 1, f32[1] = 1, f32[] = 0.5, -, -, bool[] = 0 -> f32[2] = 1 2, f32[2] = 4 2",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 7 8 0, i64[3] = 0 2 0, f32[3,1] = 2 -2 3, f32[] = 0.5; alpha=0.5, epsilon=1 -> f32[3,1] "
                   "= 0.5 2 3.414214, f32[3,1] = 16 8 2",
                   "by hand")
          .example("f32[2,1] = 5 2, f32[2,1] = 5 4, i32[1] = -1, f32[1,1] = 1, f32[] = 0.5; alpha=0, weight_decay=0.5, epsilon=0 -> "
                   "f32[2,1] = 5 1.5, f32[2,1] = 5 4",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 7 8 0, i64[3] = 0 2 0, f32[2,1] = 1 -2, f32[] = 0.5, i32[3] = 0 1 0, f32[3] = 2 1 3; "
                   "alpha=0.5, epsilon=1 -> f32[3,1] = 0.5 2 3.414214, f32[3,1] = 16 8 2",
                   "by hand"));
  plugin.add(
      rows_update_operator<adam_rule>("AdamUpdateRows")
          .doc("Makes a step of Adam on the rows of w that indices name, each with the sum of its values, as torch.optim.SparseAdam does, "
               "which knows no weight decay. With bags the value of an index is the row of values of its bag, times its weight. With apply "
               "false nothing is changed.")
          .formula("mean and squares as in AdamUpdate; w -= lr sqrt(1 - beta2^step) / (1 - beta1^step) mean / (sqrt(squares) + epsilon); "
                   "weight_decay w is added to g first, or with decoupled_weight_decay 1 w is multiplied by 1 - lr weight_decay")
          .example("f32[2] = 1 2, f32[2] = 4 2, f32[2] = 3 1, i32[1] = 1, f32[1] = 1, f32[] = 0.5, i64[] = 1, -, -, bool[] = 0 -> f32[2] = "
                   "1 2, f32[2] = 4 2, f32[2] = 3 1",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 0 0 0, f32[3,1] = 0 0 0, i64[3] = 0 2 0, f32[3,1] = 1 -2 3, f32[] = 0.5, i64[] = 1; "
                   "epsilon=0 -> f32[3,1] = 0.5 2 3.5, f32[3,1] = 0.4 0 -0.2, f32[3,1] = 0.016 0 0.004",
                   "by hand")
          .example("f32[2,1] = 5 2, f32[2,1] = 5 1, f32[2,1] = 5 12, i32[1] = -1, f32[1,1] = 2, f32[] = 0.5, i64[1] = 2; beta1=0.5, "
                   "beta2=0.5, epsilon=1, weight_decay=0.5, decoupled_weight_decay=1 -> f32[2,1] = 5 1.2738, f32[2,1] = 5 1.5, f32[2,1] = "
                   "5 8",
                   "by hand")
          .example("f32[3,1] = 1 2 3, f32[3,1] = 0 0 0, f32[3,1] = 0 0 0, i64[3] = 0 2 0, f32[2,1] = 1 -2, f32[] = 0.5, i64[] = 1, "
                   "i32[3] = 0 1 0, f32[3] = 1 1 3; epsilon=0 -> f32[3,1] = 0.5 2 3.5, f32[3,1] = 0.4 0 -0.2, f32[3,1] = 0.016 0 0.004",
                   "by hand"));
}

}  // namespace heddle::cpu
