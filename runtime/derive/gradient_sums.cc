#include "derive/gradient_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

std::string shown(const Net& net, NodeId node) {
  return node.valid() ? fmt::format("{} ({})", quoted(net[node].name), display_name(net[node].domain, net[node].type)) : "a loss";
}

std::string shown_device(const Net& net, NodeId node) {
  return net[node].device.empty() ? "the session's own" : quoted(net[node].device);
}

// A tensor of the shape of `table` with the rows added to where they belong.
Result<ValueId> spread_rows(const GradientPart& part, ValueId table, const PolymorphicTypes& types, Emitter& emitter) {
  HEDDLE_TRY(const ValueId zeros, filled_like(emitter, types, table, 0));
  HEDDLE_TRY(const ValueId wide, emitter.emit_cast(part.indices, DType::i64));
  HEDDLE_TRY(const ValueId columns, emitter.emit1("", "Unsqueeze", {wide, emitter.constant_ints({1})}));
  return emitter.emit1("", "ScatterND", {zeros, columns, part.values}, {{"reduction", std::string("add")}});
}

// Of the whole numbers that a reader takes: indices are of the first of them. none: it takes none.
DType index_dtype(const Net& net, const PolymorphicTypes& types, NodeId reader) {
  if (reader.valid())
    for (const ValueId input : net[reader].inputs)
      if (input.valid() && (types.dtype(input) == DType::i32 || types.dtype(input) == DType::i64)) return types.dtype(input);
  return DType::none;
}

}  // namespace

Status GradientSum::check_rows(const Net& net, ValueId of) const {
  if (parts_.size() < 2) return {};
  const auto by_rows = [](const Part& p) { return p.part.by_rows(); };
  const auto rows = std::find_if(parts_.begin(), parts_.end(), by_rows), whole = std::find_if_not(parts_.begin(), parts_.end(), by_rows);
  if (rows != parts_.end() && whole != parts_.end())
    return {Code::unsupported,
            fmt::format("{} gives {} a gradient by rows and {} one of its whole shape", shown(net, rows->from), quoted(net[of].name),
                        shown(net, whole->from)),
            fmt::format("ask for a dense gradient of {}, or read it in one way", quoted(net[of].name))};
  for (const Part& p : parts_)
    if (p.part.by_rows() && net[p.from].device != net[parts_.front().from].device)
      return {Code::unsupported,
              fmt::format("{} and {} take rows of {} on two devices, {} and {}", shown(net, parts_.front().from), shown(net, p.from),
                          quoted(net[of].name), shown_device(net, parts_.front().from), shown_device(net, p.from)),
              "put the lookups of a table on one device"};
  return {};
}

Result<GradientPart> GradientSum::joined(const Net& net, ValueId of, const PolymorphicTypes& types, Emitter& emitter) const {
  if (parts_.size() == 1) return parts_[0].part;
  GradientPart sum;
  if (!parts_[0].part.by_rows()) {
    sum.dense = parts_[0].part.dense;
    for (size_t i = 1; i < parts_.size(); ++i) {
      HEDDLE_TRY(sum.dense, emitter.emit1("", "Add", {sum.dense, parts_[i].part.dense}));
    }
    return sum;
  }
  HEDDLE_CHECK(check_rows(net, of));
  const DType dtype = index_dtype(net, types, parts_[0].from);
  const bool differ = std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return index_dtype(net, types, p.from) != dtype; });
  std::vector<ValueId> indices, values;
  for (const Part& p : parts_) {
    ValueId own = p.part.indices;
    if (differ) {
      HEDDLE_TRY(own, emitter.emit_cast(own, DType::i64));
    }
    indices.push_back(own);
    values.push_back(p.part.values);
  }
  HEDDLE_TRY(sum.indices, emitter.emit1("", "Concat", std::move(indices), {{"axis", int64_t{0}}}));
  HEDDLE_TRY(sum.values, emitter.emit1("", "Concat", std::move(values), {{"axis", int64_t{0}}}));
  return sum;
}

Result<GradientPart> GradientSum::total(const Net& net, ValueId of, const PolymorphicTypes& types, Form form, Emitter& emitter) {
  std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
    return (a.from.valid() ? a.from.index : UINT32_MAX) < (b.from.valid() ? b.from.index : UINT32_MAX);
  });
  if (form == Form::dense) {
    for (Part& p : parts_) {
      if (!p.part.by_rows()) continue;
      HEDDLE_TRY(const ValueId whole, spread_rows(p.part, of, types, emitter));
      p.part = {whole, {}, {}, false, false};
    }
  } else {
    HEDDLE_CHECK(check_rows(net, of));
  }
  return joined(net, of, types, emitter);
}

}  // namespace heddle
