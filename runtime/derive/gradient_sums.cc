#include "derive/gradient_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "derive/scattered_gradient.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

std::string shown(const Net& net, NodeId node) {
  return node.valid() ? fmt::format("{} ({})", quoted(net[node].name), display_name(net[node].domain, net[node].type)) : "a loss";
}

std::string shown_device(const Net& net, NodeId node) {
  return net[node].device.empty() ? "the session's own" : quoted(net[node].device);
}

// Adds the rows to their places in `sum`, or in zeros of the shape of `table` where there is no sum yet.
Result<ValueId> spread_rows(const GradientPart& part, ValueId sum, ValueId table, const PolymorphicTypes& types, Emitter& emitter) {
  if (!sum.valid()) {
    HEDDLE_TRY(sum, filled_like(emitter, types, table, 0));
  }
  HEDDLE_TRY(const ValueId wide, emitter.emit_cast(part.indices, DType::i64));
  HEDDLE_TRY(const ValueId columns, emitter.emit1("", "Unsqueeze", {wide, emitter.constant_ints({1})}));
  return emitter.emit1("", "ScatterND", {sum, columns, part.values}, {{"reduction", std::string("add")}});
}

// Returns the dtype of the reader's first integer input, which holds the indices; none: it has no such input.
DType index_dtype(const Net& net, const PolymorphicTypes& types, NodeId reader) {
  if (reader.valid())
    for (const ValueId input : net[reader].inputs)
      if (input.valid() && (types.dtype(input) == DType::i32 || types.dtype(input) == DType::i64)) return types.dtype(input);
  return DType::none;
}

}  // namespace

Status GradientSum::add(const Net& net, const GradientPart& part, NodeId from, bool alone, Emitter& emitter) {
  dense_from_ = from;  // the reverse pass goes from the last reader to the first
  chosen_ = chosen_ && part.chosen;
  if (!dense_.valid()) {
    dense_ = part.dense;
    return {};
  }
  std::optional<ValueId> scattered;
  if (alone) {
    HEDDLE_TRY(scattered, scattered_into(net, part.dense, dense_, emitter));
  }
  if (scattered) {
    dense_ = *scattered;
    return {};
  }
  HEDDLE_TRY(dense_, emitter.emit1("", "Add", {dense_, part.dense}));
  return {};
}

Status GradientSum::check_rows(const Net& net, ValueId of) const {
  if (rows_.empty()) return {};
  if (dense_.valid())
    return {Code::unsupported,
            fmt::format("{} gives {} a gradient by rows and {} one of its whole shape", shown(net, rows_.front().from),
                        quoted(net[of].name), shown(net, dense_from_)),
            fmt::format("ask for a dense gradient of {}, or read it in one way", quoted(net[of].name))};
  for (const Rows& p : rows_)
    if (p.from.valid() && net[p.from].device != net[rows_.front().from].device)
      return {Code::unsupported,
              fmt::format("{} and {} take rows of {} on two devices, {} and {}", shown(net, rows_.front().from), shown(net, p.from),
                          quoted(net[of].name), shown_device(net, rows_.front().from), shown_device(net, p.from)),
              "put the lookups of a table on one device"};
  return {};
}

Result<GradientPart> GradientSum::joined_rows(const Net& net, const PolymorphicTypes& types, Emitter& emitter) const {
  if (rows_.size() == 1) return rows_[0].part;
  const DType dtype = index_dtype(net, types, rows_[0].from);
  const bool differ = std::any_of(rows_.begin(), rows_.end(), [&](const Rows& p) { return index_dtype(net, types, p.from) != dtype; });
  std::vector<ValueId> indices, values;
  for (const Rows& p : rows_) {
    ValueId own = p.part.indices;
    if (differ) {
      HEDDLE_TRY(own, emitter.emit_cast(own, DType::i64));
    }
    indices.push_back(own);
    values.push_back(p.part.values);
  }
  GradientPart sum;
  HEDDLE_TRY(sum.indices, emitter.emit1("", "Concat", std::move(indices), {{"axis", int64_t{0}}}));
  HEDDLE_TRY(sum.values, emitter.emit1("", "Concat", std::move(values), {{"axis", int64_t{0}}}));
  return sum;
}

Result<GradientPart> GradientSum::total(const Net& net, ValueId of, const PolymorphicTypes& types, Form form, Emitter& emitter) {
  // Sorts the rows by the order of their readers, whatever the order in which the reverse pass visits them.
  std::stable_sort(rows_.begin(), rows_.end(), [](const Rows& a, const Rows& b) {
    return (a.from.valid() ? a.from.index : UINT32_MAX) < (b.from.valid() ? b.from.index : UINT32_MAX);
  });
  if (form == Form::dense) {
    chosen_ = chosen_ && rows_.empty();
    for (const Rows& p : rows_) {
      HEDDLE_TRY(dense_, spread_rows(p.part, dense_, of, types, emitter));
    }
    rows_.clear();
  } else {
    HEDDLE_CHECK(check_rows(net, of));
  }
  if (rows_.empty()) return GradientPart{dense_, {}, {}, false, false, dense_.valid() && chosen_};
  HEDDLE_TRY(const GradientPart joined, joined_rows(net, types, emitter));
  rows_ = {{joined, NodeId()}};
  return joined;
}

}  // namespace heddle
