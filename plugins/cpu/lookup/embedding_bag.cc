// EmbeddingBag and the SparseLengths operators: sums and means of rows of a table, one for each bag of lookups.
//
// A tile has a range of bags, or of columns of bags where rows are long, and checks the indices that it looks up. Rows are added in the
// order of their indices, so results do not depend on the tiles. 16-bit floats are added up as f32.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "lookup/bag_bounds.h"
#include "lookup/bag_loops.h"
#include "lookup/lookup_cost.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"
#include "support/gradients.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t no_port = UINT32_MAX;

// The differences between the operators. `list`: the input with offsets or lengths.
struct BagOperator {
  uint32_t indices, list, weights;
  bool by_lengths, is_mean;
};
constexpr BagOperator embedding_bag = {.indices = 1, .list = 2, .weights = 3, .by_lengths = false, .is_mean = false};
constexpr BagOperator lengths_sum = {.indices = 1, .list = 2, .weights = no_port, .by_lengths = true, .is_mean = false};
constexpr BagOperator lengths_mean = {.indices = 1, .list = 2, .weights = no_port, .by_lengths = true, .is_mean = true};
constexpr BagOperator lengths_weighted_sum = {.indices = 2, .list = 3, .weights = 1, .by_lengths = true, .is_mean = false};
constexpr uint32_t bags_port = 1, lengths_port = 2;  // numbers of outputs

BagList list_of(const BagOperator& op, const Attributes& attributes, bool has_list) {
  if (op.by_lengths) return BagList::lengths;
  if (!has_list) return BagList::none;
  return attributes.i("include_last_offset") != 0 ? BagList::offsets_and_end : BagList::offsets;
}
bool is_mean(const BagOperator& op, const Attributes& attributes) {
  return op.by_lengths ? op.is_mean : attributes.s("mode") == "mean";
}

Status check_mode(const Attributes& attributes, bool weighted) {
  const std::string mode = attributes.s("mode");
  if (mode == "max") return invalid("mode is \"max\", expected \"sum\" or \"mean\"; Gather and ReduceMax give maxima");
  if (mode != "sum" && mode != "mean") return invalid("mode is \"" + mode + "\", expected \"sum\" or \"mean\"");
  if (weighted && mode != "sum") return invalid("mode is \"" + mode + "\": weights of lookups go with \"sum\" alone");
  return {};
}

template <const BagOperator& op>
Status infer_bags(InferContext& context) {
  const Dims table = context.dims(0), indices = context.dims(op.indices);
  const bool has_list = context.has_input(op.list), weighted = context.has_input(op.weights);
  if (table.rank < 1) return invalid("the table is a scalar, expected rows");
  if (!op.by_lengths) HEDDLE_PLUGIN_CHECK(check_mode(context.attributes, weighted));
  const BagList list = list_of(op, context.attributes, has_list);
  if (list == BagList::none && context.attributes.i("include_last_offset") != 0)
    return invalid("include_last_offset is set, and there are no offsets");
  if (list == BagList::none && indices.rank != 2)
    return invalid("indices has shape " + dims_text(indices) + ", expected [bags, lookups of each] where there are no offsets");
  if (list != BagList::none && indices.rank != 1)
    return invalid("indices has shape " + dims_text(indices) + ", expected one dimension beside " +
                   std::string(context.op().inputs[op.list]->name));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, op.weights, indices, "that of indices"));
  int64_t bags = indices.rank > 0 ? indices[0] : 0;
  if (has_list) {
    const Dims listed = context.dims(op.list);
    if (listed.rank != 1)
      return invalid(std::string(context.op().inputs[op.list]->name) + " has shape " + dims_text(listed) + ", expected one dimension");
    bags = listed[0] - (list == BagList::offsets_and_end ? 1 : 0);
    if (bags < 0) return invalid("offsets is empty, expected the number of indices at its end");
  }
  std::vector<int64_t> dims = vector_of(table);
  dims[0] = bags;
  context.set_dims(0, dims);
  const int64_t lookups = context.input(op.indices).element_count;
  context.set_dims(bags_port, &lookups, 1);
  context.set_dims(lengths_port, &bags, 1);
  return {};
}

template <const BagOperator& op>
heddle_status bags_cost(const heddle_infer_context* context, heddle_cost* cost) {
  const heddle_tensor* const weights = op.weights < context->input_count ? context->inputs[op.weights] : nullptr;
  const heddle_tensor* const list = op.list < context->input_count ? context->inputs[op.list] : nullptr;
  const LookupCost lookups(*context->inputs[0], *context->inputs[op.indices]);
  cost->flops = (weights ? 2 : 1) * lookups.elements;
  cost->bytes = lookups.bytes;
  for (const heddle_tensor* const other : {weights, list}) cost->bytes += other ? static_cast<double>(other->byte_size) : 0;
  for (uint32_t o = 0; o < context->output_count; ++o)
    if (context->outputs[o]) cost->bytes += bytes_of(*context->outputs[o]);
  return HEDDLE_OK;
}

template <const BagOperator& op>
class BagSums {
 public:
  Status create(const CreateContext& context) {
    list_ = list_of(op, context.attributes, context.input(op.list) != nullptr);
    is_mean_ = is_mean(op, context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& table = *context.input(0);
    lookups_ = context.input(op.indices)->element_count;
    bags_ = context.output(0)->dims[0];
    rows_ = table.dims[0];
    length_ = dims_of(table).count(1, table.rank);
    if (bags_ > INT32_MAX) return unsupported(std::to_string(bags_) + " bags, more than " + std::to_string(INT32_MAX));
    chunks_ = std::max<int64_t>(1, length_ / max_columns);
    const double row_bytes = static_cast<double>(length_) * static_cast<double>(byte_width(table.dtype));
    tiling_.plan(context, static_cast<double>(lookups_) * row_bytes + static_cast<double>(context.output(0)->byte_size), 2);
    if (byte_width(table.dtype) == 2) context.set_scratch(0, sizeof(Narrow));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (list_ == BagList::none && lookups_ == 0 && writes_nothing(context)) return {};
    Status status;
    with_float(context.inputs[0]->dtype, [&](auto tag) { status = run_as<typename decltype(tag)::type>(context, begin, end); });
    return status;
  }

 private:
  // The columns of a unit of work, and the number of lookups that are added up between two checks for cancellation.
  static constexpr int64_t max_columns = 16384, max_lookups = 1024;
  // f32 buffers for tables of 16-bit floats.
  struct Narrow {
    float sums[2 * max_columns], weights[max_lookups];
  };

  template <class T>
  Status run_as(const RunContext& context, int64_t begin, int64_t end) const {
    const auto* const indices = context.inputs[op.indices];
    const auto output = [&](uint32_t port) { return port < context.output_count ? context.outputs[port] : nullptr; };
    const auto input = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    auto* const bag_of = output(bags_port) ? static_cast<int32_t*>(output(bags_port)->data) : nullptr;
    auto* const length_of = output(lengths_port) ? static_cast<int64_t*>(output(lengths_port)->data) : nullptr;
    const Tiling::Range units = tiling_.range(bags_ * chunks_, begin, end);
    CancellationPoll poll(context);
    BagBounds bounds(list_, input(op.list), bags_, lookups_);
    HEDDLE_PLUGIN_CHECK(bounds.start(units.first / chunks_, poll));
    for (int64_t bag = units.first / chunks_; bag * chunks_ < units.last && !poll.stops(8); ++bag) {
      int64_t first = 0, count = 0;
      HEDDLE_PLUGIN_CHECK(bounds.next(&first, &count));
      const int64_t behind = std::min(units.last - bag * chunks_, chunks_);
      for (int64_t chunk = std::max<int64_t>(units.first - bag * chunks_, 0); chunk < behind && !poll.stopped(); ++chunk) {
        const int64_t column = length_ / chunks_ * chunk, columns = chunk + 1 == chunks_ ? length_ - column : length_ / chunks_;
        HEDDLE_PLUGIN_CHECK(add_up<T>(context, *indices, input(op.weights), bag, first, count, column, columns, poll));
        if (chunk > 0) continue;
        if (bag_of) fill_cancellable(bag_of + first, count, static_cast<int32_t>(bag), poll);
        if (length_of) length_of[bag] = count;
      }
    }
    return poll.status();
  }

  template <class T>
  Status add_up(const RunContext& context, const heddle_tensor& indices, const heddle_tensor* weights, int64_t bag, int64_t first,
                int64_t count, int64_t column, int64_t columns, CancellationPoll& poll) const {
    using Sum = FloatSum<T>;
    T* const to = static_cast<T*>(context.outputs[0]->data) + bag * length_ + column;
    Narrow* narrow = nullptr;
    Sum* sums = nullptr;
    if constexpr (std::is_same_v<T, Sum>)
      sums = to;
    else
      narrow = thread_scratch<Narrow>(context), sums = narrow->sums;
    const auto width = static_cast<int64_t>(byte_width(indices.dtype));
    for (int64_t at = 0; (at < count || at == 0) && !poll.stopped(); at += max_lookups) {
      const int64_t n = std::min(count - at, max_lookups);
      if (poll.stops(n * (4 + columns / 8))) break;
      const T* const weight = weights ? static_cast<const T*>(weights->data) + first + at : nullptr;
      if (narrow && weight) convert(dtype_of<T>::id, weight, HEDDLE_F32, narrow->weights, n);
      const BagStretch stretch = {static_cast<const T*>(context.inputs[0]->data) + column,
                                  length_,
                                  rows_,
                                  columns,
                                  static_cast<const char*>(indices.data) + (first + at) * width,
                                  indices.dtype == HEDDLE_I64,
                                  n,
                                  lookups_ - first - at,
                                  weight && narrow ? static_cast<const void*>(narrow->weights) : weight};
      const int64_t inside = isa_bags().sum[dtype_of<T>::id](stretch, sums, at > 0);
      if (inside < n) return outside(integer_at(indices, first + at + inside), first + at + inside);
    }
    if (is_mean_ && count > 1)
      for (int64_t i = 0; i < columns; ++i) sums[i] /= static_cast<Sum>(count);
    if (narrow) convert(HEDDLE_F32, sums, dtype_of<T>::id, to, columns);
    return {};
  }
  Status outside(int64_t index, int64_t lookup) const {
    return invalid("index " + std::to_string(index) + " of lookup " + std::to_string(lookup) + " is outside [0, " + std::to_string(rows_) +
                   "), the rows of the table");
  }

  BagList list_ = BagList::none;
  bool is_mean_ = false;
  int64_t lookups_ = 0, bags_ = 0, rows_ = 0, length_ = 0, chunks_ = 1;
  Tiling tiling_;
};

// The gradient by the table is rows: the indices are the forward's own, and the row of each lookup is the gradient of its bag
// (heddle::BagRows, which row updates can read without writing it out). For a mean it is divided by the number of lookups first.
template <const BagOperator& op>
Status bags_gradient(GradientContext& g) {
  const heddle_type& table = g.input_type(0);
  const GradientValue given = g.x(op.indices), weights = g.x(op.weights), bags = g.needed_y(bags_port);
  const bool flat = g.input_type(op.indices).rank == 1;
  const GradientValue indices = flat ? given : reshape(g, given, g.ints({-1}));
  GradientValue dy = g.dy(0);
  if (g.wants(0)) {
    if (is_mean(op, g.attributes())) {
      const heddle_dtype exact = table.dtype == HEDDLE_F64 ? HEDDLE_F64 : HEDDLE_F32;
      const GradientValue lengths = cast(g, op.by_lengths ? g.x(op.list) : g.needed_y(lengths_port), exact);
      GradientValue share = g.emit("CastLike", {pointwise(g, "1 / max(x0, 1)", {lengths}), dy});
      std::vector<int64_t> behind;
      for (int64_t axis = 1; axis < table.rank; ++axis) behind.push_back(axis);
      if (!behind.empty()) share = g.emit("Unsqueeze", {share, g.ints(behind)});
      dy = g.emit("Mul", {dy, share});
    }
    const GradientValue flat_weights = weights && !flat ? reshape(g, weights, g.ints({-1})) : weights;
    g.give_rows(0, indices, g.emit("BagRows", {dy, bags, flat_weights}, {}, "heddle"));
  }
  if (weights && g.wants(op.weights)) {
    const GradientValue products = g.emit("BagWeightsGradient", {g.x(0), indices, bags, g.dy(0)}, {}, "heddle");
    g.give(op.weights, flat ? products : reshape(g, products, shape_of(g, weights)));
  }
  return {};
}

// Declares the outputs and callbacks that all these operators have.
template <const BagOperator& op>
void declare_sums(Op& declared) {
  declared.out("output", {}, float_dtypes).optional_out("bags", {}, dtypes<int32_t>(), nullptr);
  if (!op.by_lengths) declared.optional_out("lengths", {}, dtypes<int64_t>(), nullptr);
  declared.infer(infer_bags<op>).template gradient<bags_gradient<op>>().cost(bags_cost<op>).template cpu<BagSums<op>>();
}

template <const BagOperator& op>
Op lengths_operator(const char* name) {
  Op declared(name, "heddle");
  declared.in("data", float_dtypes);
  if (op.weights != no_port) declared.in("weights", float_dtypes);
  declared.in("indices", index_dtypes, nullptr).indexes("data", 0).in("lengths", index_dtypes, nullptr);
  declare_sums<op>(declared);
  return declared;
}

}  // namespace

void add_embedding_bag(Builder& plugin) {
  Op op("EmbeddingBag", "heddle");
  op.doc(
        "Adds or averages rows of a table for each bag of indices. A row of indices is a bag; or, where indices has one axis, a bag begins "
        "at each of offsets, as torch.nn.functional.embedding_bag has it. An empty bag gives zeros. Indices do not count from the end. "
        "bags gets the bag of each index, lengths how many each bag has.")
      .formula(
          "output[b] = sum over the indices i of bag b of weights[i] table[indices[i]]; with mode mean it is divided by lengths[b], and "
          "there are no weights")
      .shapes("output is [bags, ...] with the other dims of table; bags has an entry for each index, lengths has one for each bag");
  op.in("table", float_dtypes)
      .in("indices", index_dtypes, nullptr)
      .indexes("table", 0)
      .optional("offsets", index_dtypes, nullptr)
      .optional("weights", float_dtypes)
      .attribute("mode", "sum")
      .attribute("include_last_offset", 0);
  declare_sums<embedding_bag>(op);
  plugin.add(op.example("f32[4,2] = 1 2 3 4 5 6 7 8, i64[4] = 3 1 1 0, i64[3] = 0 2 2 -> f32[3,2] = 10 12 0 0 4 6", "PyTorch")
                 .example("f32[4,2] = 1 2 3 4 5 6 7 8, i64[4] = 3 1 1 0, i32[4] = 0 2 2 4; mode=\"mean\", include_last_offset=1 -> "
                          "f32[3,2] = 5 6 0 0 2 3, i32[4] = 0 0 2 2, i64[3] = 2 0 2",
                          "PyTorch")
                 .example("f32[4,2] = 1 2 3 4 5 6 7 8, i32[2,2] = 3 1 1 0 -> f32[2,2] = 10 12 4 6, i32[4] = 0 0 1 1", "PyTorch")
                 .example("f32[4,2] = 1 2 3 4 5 6 7 8, i32[2,2] = 3 1 1 0, -, f32[2,2] = 1 2 0.5 -1 -> f32[2,2] = 13 16 0.5 0", "PyTorch"));
  plugin.add(
      lengths_operator<lengths_sum>("SparseLengthsSum")
          .doc("Adds the rows of data that each bag of indices names. A bag has as many indices as its element of lengths says; an empty "
               "one gives zeros.")
          .shapes("output is [bags, ...] with the other dims of data; bags has an entry for each index")
          .example("f32[4,2] = 1 2 3 4 5 6 7 8, i64[4] = 3 1 1 0, i32[3] = 2 0 2 -> f32[3,2] = 10 12 0 0 4 6, i32[4] = 0 0 2 2", "Caffe2")
          .example("f32[4] = 1 2 3 4, i32[2] = 3 1, i64[1] = 2 -> f32[1] = 6", "by hand"));
  plugin.add(
      lengths_operator<lengths_mean>("SparseLengthsMean")
          .doc("Averages the rows of data that each bag of indices names. A bag has as many indices as its element of lengths says; an "
               "empty one gives zeros.")
          .shapes("output is [bags, ...] with the other dims of data; bags has an entry for each index")
          .example("f32[4,2] = 1 2 3 4 5 6 7 8, i64[4] = 3 1 1 0, i32[3] = 2 0 2 -> f32[3,2] = 5 6 0 0 2 3, i32[4] = 0 0 2 2", "Caffe2")
          .example("f32[4] = 1 2 3 4, i32[2] = 3 1, i64[1] = 2 -> f32[1] = 3", "by hand"));
  plugin.add(lengths_operator<lengths_weighted_sum>("SparseLengthsWeightedSum")
                 .doc("Adds the rows of data that each bag of indices names, each multiplied with the weight of its index. A bag has as "
                      "many indices as its element of lengths says; an empty one gives zeros.")
                 .shapes("output is [bags, ...] with the other dims of data; bags has an entry for each index")
                 .example("f32[4,2] = 1 2 3 4 5 6 7 8, f32[4] = 1 2 0.5 -1, i64[4] = 3 1 1 0, i32[3] = 2 0 2 -> f32[3,2] = 13 16 0 0 "
                          "0.5 0, i32[4] = 0 0 2 2",
                          "by hand")
                 .example("f32[4] = 1 2 3 4, f32[2] = 2 3, i32[2] = 3 1, i64[1] = 2 -> f32[1] = 14", "by hand"));
}

}  // namespace heddle::cpu
