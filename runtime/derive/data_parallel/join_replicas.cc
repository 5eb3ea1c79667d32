#include "derive/data_parallel/join_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text/text.h"
#include "derive/emitter.h"
#include "derive/polymorphic_types.h"

namespace heddle {
namespace {

class Joining {
 public:
  Joining(const Net& from, const PolymorphicTypes& whole, const PolymorphicTypes& parts, const RegistrySnapshot& registry,
          const DataParallelOptions& options, Replicas& replicas)
      : from_(from), whole_(whole), parts_(parts), options_(options), replicas_(replicas), net_(replicas.net), emitter_(net_, registry) {
    for (uint32_t v = 0; v < net_.values.size(); ++v) by_name_.emplace(net_.values[v].name, ValueId(v));
  }

  Result<std::vector<std::string>> run(const std::vector<std::string>& losses) {
    std::vector<ValueId> minimised;
    for (const std::string& name : losses) {
      const std::optional<ValueId> loss = from_.find_value(name);
      if (!loss) return Status(Code::unknown_name, fmt::format("the net has no value {}", quoted(name)), "look for a typing mistake");
      for (size_t k = 0; k < count(); ++k) {
        HEDDLE_TRY(const ValueId weighted, weighted_part(*loss, k));
        minimised.push_back(weighted);
      }
    }
    std::vector<ValueId> outputs = from_.outputs;
    for (const std::string& name : losses)
      if (const ValueId loss = *from_.find_value(name); std::find(outputs.begin(), outputs.end(), loss) == outputs.end())
        outputs.push_back(loss);
    for (const ValueId output : outputs) {
      HEDDLE_TRY(const ValueId joined, join(output));
      net_.outputs.push_back(joined);
    }
    std::vector<std::string> names;
    for (const ValueId value : minimised) names.push_back(net_[value].name);
    return names;
  }

 private:
  size_t count() const { return replicas_.choice.devices.size(); }
  const std::string& device(size_t replica) const { return replicas_.choice.devices[replica]; }
  std::string place(size_t replica) const { return replicas_.choice.place_of(replica); }
  ValueId part(ValueId of, size_t replica) const { return by_name_.at(replicas_.values[replica][of.index]); }

  // Whether the value has rows of the batch: its extent along `axis` is the sum of the replicas' extents, and the others are theirs.
  std::optional<int> axis_of_rows(ValueId value) const {
    std::vector<ValueId> parts;
    for (size_t k = 0; k < count(); ++k) parts.push_back(part(value, k));
    return whole_.joined_along(value, parts_, parts);
  }
  bool is_of_batch(ValueId value) const { return replicas_.choice.of_batch[value.index] != 0; }
  bool has_rows(ValueId value) const { return count() > 1 && axis_of_rows(value).has_value(); }

  // The part of the batch that a replica has, as f64 of no dims; 1: it is the whole batch, and no value.
  Result<ValueId> weight(size_t replica) {
    if (weights_.empty()) weights_.resize(count());
    if (weights_[replica].valid()) return weights_[replica];
    const auto split = std::find_if(from_.inputs.begin(), from_.inputs.end(), [&](ValueId i) { return replicas_.choice.split[i.index]; });
    if (split == from_.inputs.end())
      return Status(Code::invalid_argument, "no input of the net has rows that can be split", "leave some out of those that stay whole");
    emitter_.derive_from("weight@" + device(replica), "cpu");
    HEDDLE_TRY(const ValueId own, rows_of(part(*split, replica)));
    ValueId all;
    if (options_.ranks > 1) {
      emitter_.derive_from("rows@" + device(replica), device(replica));
      HEDDLE_TRY(all, emitter_.emit1("heddle", "AllReduce", {own}, {{"communicator", options_.communicator}}));
      emitter_.derive_from("weight@" + device(replica), place(replica));
    } else {
      HEDDLE_TRY(all, rows_of(by_name_.at(from_[*split].name)));
    }
    HEDDLE_TRY(weights_[replica], emitter_.emit1("heddle", "Pointwise", {own, all}, {{"program", std::string("x0 / x1")}}));
    return weights_[replica];
  }
  // The extent of axis 0, f64 [].
  Result<ValueId> rows_of(ValueId value) {
    HEDDLE_TRY(const ValueId shape, emitter_.emit1("", "Shape", {value}, {{"start", int64_t{0}}, {"end", int64_t{1}}}));
    constexpr int64_t first = 0;
    HEDDLE_TRY(const ValueId rows, emitter_.emit1("", "Gather", {shape, emitter_.constant(Blob::copy_of(DType::i64, Shape{}, &first))}));
    return emitter_.emit_cast(rows, DType::f64);
  }

  // A loss or another mean of a replica's rows, weighed by their number; what has rows itself counts with all of them.
  Result<ValueId> weighted_part(ValueId value, size_t replica) {
    const ValueId own = part(value, replica);
    if (!replicas_.choice.has_peers || has_rows(value)) return own;
    if (const auto known = weighted_.find({value.index, replica}); known != weighted_.end()) return known->second;
    HEDDLE_TRY(const ValueId wide, weight(replica));
    emitter_.derive_from(net_[own].name + ".weighted", place(replica));
    HEDDLE_TRY(const ValueId factor, emitter_.emit1("", "CastLike", {wide, own}));
    HEDDLE_TRY(const ValueId weighted, emitter_.emit1("", "Mul", {own, factor}));
    weighted_[{value.index, replica}] = weighted;
    return weighted;
  }

  // The mean over the rows of all ranks, for an output that is one number; others are of the rank's own rows.
  Result<ValueId> join_ranks(ValueId output) {
    const ValueId own = part(output, 0);
    const std::optional<Shape> shape = whole_.shape(output);
    if (!shape || shape->rank() != 0 || !whole_.is_real(output)) return own;
    HEDDLE_TRY(const ValueId weighted, weighted_part(output, 0));
    const std::string name = net_[own].name;
    net_[own].name = emitter_.unused_name(name + "@rank");
    emitter_.derive_from(name + ".joined", device(0));
    HEDDLE_TRY(const ValueId joined, emitter_.emit1("heddle", "AllReduce", {weighted}, {{"communicator", options_.communicator}}));
    net_[joined].name = name;
    return joined;
  }

  // The output for the whole batch, under the name of the output of `from_`.
  Result<ValueId> join(ValueId output) {
    const ValueId first = part(output, 0);
    if (!is_of_batch(output)) return first;
    if (count() == 1) return options_.ranks > 1 ? join_ranks(output) : first;
    std::vector<ValueId> parts;
    const std::optional<int> axis = axis_of_rows(output);
    if (!axis && !whole_.is_real(output))
      return Status(Code::invalid_argument,
                    fmt::format("output {} is computed from rows of the batch, and has neither rows itself nor a mean: it is {}",
                                quoted(from_[output].name), to_string(whole_.dtype(output))),
                    "leave it out of the outputs");
    if (!axis && !whole_.same_shape(output, parts_, first))
      return Status(Code::invalid_argument,
                    fmt::format("output {} has rows of the batch along several axes, and its parts do not make up the whole",
                                quoted(from_[output].name)),
                    "leave it out of the outputs");
    for (size_t k = 0; k < count(); ++k) {
      HEDDLE_TRY(const ValueId own, weighted_part(output, k));
      parts.push_back(own);
    }
    const std::string name = net_[first].name;
    net_[first].name = emitter_.unused_name(fmt::format("{}@{}", name, device(0)));
    ValueId joined;
    for (size_t k = 0; k < count() && !axis && options_.ranks > 1; ++k) {  // each device of each rank gives its part
      emitter_.derive_from(fmt::format("{}.joined@{}", name, device(k)), device(k));
      HEDDLE_TRY(const ValueId sum, emitter_.emit1("heddle", "AllReduce", {parts[k]}, {{"communicator", options_.communicator}}));
      if (k == 0) joined = sum;
    }
    emitter_.derive_from(name + ".joined", "cpu");
    if (joined.valid()) {
      HEDDLE_TRY(joined, emitter_.emit1("", "Identity", {joined}));
    } else if (axis) {
      HEDDLE_TRY(joined, emitter_.emit1("", "Concat", std::move(parts), {{"axis", int64_t{*axis}}}));
    } else {
      HEDDLE_TRY(joined, emitter_.emit1("", "Sum", std::move(parts)));
    }
    net_[joined].name = name;
    return joined;
  }

  const Net& from_;
  const PolymorphicTypes &whole_, &parts_;
  const DataParallelOptions& options_;
  Replicas& replicas_;
  Net& net_;
  Emitter emitter_;
  std::map<std::string, ValueId> by_name_;
  std::vector<ValueId> weights_;
  std::map<std::pair<uint32_t, size_t>, ValueId> weighted_;  // by value of from_, and replica
};

}  // namespace

Result<std::vector<std::string>> join_replicas(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               Evaluator& evaluator, const DataParallelOptions& options,
                                               const std::vector<std::string>& losses,
                                               const std::vector<std::pair<std::string, int64_t>>& symbols, const Limits& limits,
                                               Replicas& replicas) {
  HEDDLE_TRY(const PolymorphicTypes whole, PolymorphicTypes::infer(net, registry, evaluator, symbols, limits));
  HEDDLE_TRY(const PolymorphicTypes parts, PolymorphicTypes::infer(replicas.net, registry, evaluator, symbols, limits),
             "in the net of the replicas");
  return Joining(net, whole, parts, *registry, options, replicas).run(losses);
}

}  // namespace heddle
