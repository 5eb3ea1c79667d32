#include "derive/data_parallel/reduce_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/text/text.h"
#include "derive/data_parallel/replica_choice.h"
#include "derive/emitter.h"

namespace heddle {
namespace {

class Reduction {
 public:
  Reduction(DerivedNet& derived, const RegistrySnapshot& registry, const DataParallelOptions& options,
            const std::vector<std::vector<std::string>>& variables)
      : net_(derived.net), options_(options), emitter_(net_, registry) {
    size_t next = 0;
    for (const std::vector<std::string>& names : variables) {
      replicas_ = std::max(replicas_, names.size());
      gradients_.emplace_back(derived.gradients.begin() + static_cast<std::ptrdiff_t>(next),
                              derived.gradients.begin() + static_cast<std::ptrdiff_t>(next + names.size()));
      next += names.size();
    }
    for (uint32_t v = 0; v < net_.values.size(); ++v) by_name_.emplace(net_.values[v].name, ValueId(v));
  }

  Result<ReplicaGradients> run() {
    HEDDLE_CHECK(sort());
    for (const std::vector<size_t>& bucket : buckets()) HEDDLE_CHECK(reduce(bucket));
    for (const size_t v : by_rows_) HEDDLE_CHECK(gather(v));
    ReplicaGradients all(replicas_);
    for (const std::vector<Gradient>& of_variable : gradients_)
      for (size_t k = 0; k < replicas_; ++k) all[k].push_back(k < of_variable.size() ? of_variable[k] : Gradient());
    return all;
  }

 private:
  ValueId value(const std::string& name) const { return by_name_.at(name); }
  // The device that a replica's collectives name, and the updates after them: its own, also where its gradient is made on the host. Those
  // of ranks with one replica are where the gradient is.
  std::string collective_place(size_t replica, ValueId gradient) const {
    const bool is_one_of_rank = options_.ranks > 1 && options_.devices.size() == 1;
    return is_one_of_rank || options_.devices.empty() ? device_of(gradient) : place_of_replica(options_.devices[replica]);
  }
  const std::string& device_of(ValueId value) const { return net_[net_[value].producer].device; }

  // Whether the gradients of all replicas of this variable are to be summed: they are not where the derivation has done so, in one process.
  bool has_peers(const std::vector<Gradient>& of_variable) const { return of_variable.size() > 1 || options_.ranks > 1; }

  // Finds what each variable needs, by the place of the gradient's producer in the backward pass.
  Status sort() {
    for (size_t v = 0; v < gradients_.size(); ++v) {
      const std::vector<Gradient>& own = gradients_[v];
      if (!own[0].any() || !has_peers(own)) continue;
      const bool dense = !own[0].dense.empty();
      for (const Gradient& gradient : own)
        if (!gradient.any() || gradient.dense.empty() == dense)
          return {Code::unsupported,
                  fmt::format("the gradients of {} and of {} are of different forms", quoted(own[0].of), quoted(gradient.of)),
                  "let all replicas use the variable alike"};
      (dense ? dense_ : by_rows_).push_back(v);
    }
    std::stable_sort(dense_.begin(), dense_.end(), [&](size_t a, size_t b) { return made_at(a) < made_at(b); });
    return {};
  }
  uint32_t made_at(size_t variable) const { return net_[value(gradients_[variable][0].dense)].producer.index; }

  int64_t bytes_of(size_t variable) const {
    const DeclaredType& type = variable_of(variable).type;
    return byte_width(type.dtype) * type.fixed_shape()->element_count();
  }
  DType dtype_of(size_t variable) const { return variable_of(variable).type.dtype; }
  const Variable& variable_of(size_t variable) const {
    return *std::find_if(net_.variables.begin(), net_.variables.end(),
                         [&](const Variable& v) { return v.name == gradients_[variable][0].of; });
  }

  // Dense gradients of one dtype, in their order: a bucket ends once it is large enough.
  std::vector<std::vector<size_t>> buckets() {
    constexpr int64_t min_bytes = 256 << 10, max_bytes = 25 << 20, parts = 8;
    int64_t all = 0;
    for (const size_t v : dense_) all += bytes_of(v);
    const int64_t enough = options_.bucket_bytes > 0 ? options_.bucket_bytes : std::clamp(all / parts, min_bytes, max_bytes);
    say_rule(options_.bucket_bytes > 0
                 ? fmt::format("a bucket of gradients ends at {}, as was asked for", human_bytes(enough))
                 : fmt::format("a bucket of gradients ends at {}: 1/{} of all {}, but at least {} and at most {}", human_bytes(enough),
                               parts, human_bytes(all), human_bytes(min_bytes), human_bytes(max_bytes)));
    std::vector<std::vector<size_t>> buckets;
    int64_t bytes = enough;
    for (const size_t v : dense_) {
      const bool fits =
          !buckets.empty() && dtype_of(buckets.back()[0]) == dtype_of(v) && gradients_[buckets.back()[0]].size() == gradients_[v].size();
      if (bytes >= enough || !fits) {
        buckets.emplace_back();
        bytes = 0;
      }
      buckets.back().push_back(v);
      bytes += bytes_of(v);
    }
    return buckets;
  }

  // Plans show it.
  void say_rule(std::string rule) {
    const std::string key = buckets_key(options_.communicator);
    std::erase_if(net_.metadata, [&](const auto& entry) { return entry.first == key; });
    if (!dense_.empty()) net_.metadata.emplace_back(key, std::move(rule));
  }

  // One AllReduce on each device, with one tensor for each variable.
  Status reduce(const std::vector<size_t>& bucket) {
    for (size_t k = 0; k < gradients_[bucket[0]].size(); ++k) {
      std::vector<ValueId> parts;
      for (const size_t v : bucket) parts.push_back(value(gradients_[v][k].dense));
      const std::string more = bucket.size() > 1 ? fmt::format("+{}", bucket.size() - 1) : std::string();
      emitter_.derive_from(gradients_[bucket[0]][k].dense + more, collective_place(k, parts[0]));
      HEDDLE_TRY(const std::vector<ValueId> sums,
                 emitter_.emit("heddle", "AllReduce", parts, parts.size(), {{"communicator", options_.communicator}}));
      for (size_t i = 0; i < bucket.size(); ++i) {
        Gradient& gradient = gradients_[bucket[i]][k];
        emitter_.rename(sums[i], gradient.dense + ".sum");
        gradient.dense = net_[sums[i]].name;
        by_name_.emplace(gradient.dense, sums[i]);
      }
    }
    return {};
  }

  // Gives each device the rows of all, in the order of replicas.
  Status gather(size_t variable) {
    std::vector<Gradient>& own = gradients_[variable];
    std::vector<ValueId> indices, values;
    for (const Gradient& gradient : own) {
      indices.push_back(value(gradient.indices));
      values.push_back(value(gradient.values));
    }
    for (size_t k = 0; k < own.size(); ++k) {
      const std::string device = own.size() > 1 && options_.ranks > 1 ? place_of_replica(options_.devices[k]) : device_of(values[k]);
      HEDDLE_TRY(const ValueId all_indices, gathered(indices, k, own[k].of + ".gradient.indices.all", device));
      HEDDLE_TRY(const ValueId all_values, gathered(values, k, own[k].of + ".gradient.values.all", device));
      own[k].indices = net_[all_indices].name;
      own[k].values = net_[all_values].name;
    }
    return {};
  }
  // `parts`: of the replicas of this process, on their devices. Parts that were gathered for another variable are not gathered again.
  Result<ValueId> gathered(const std::vector<ValueId>& parts, size_t replica, const std::string& name, const std::string& device) {
    for (const Gathered& known : gathered_)
      if (known.replica == replica && std::equal(parts.begin(), parts.end(), known.parts.begin(), known.parts.end(),
                                                 [&](ValueId a, ValueId b) { return has_content_of(a, b); }))
        return known.all;
    ValueId all = parts[0];
    emitter_.derive_from(name, device);
    if (options_.ranks == 1) {
      HEDDLE_TRY(all, emitter_.emit1("", "Concat", parts, {{"axis", int64_t{0}}}));
    } else {
      const int64_t size = options_.ranks * static_cast<int64_t>(parts.size());
      HEDDLE_TRY(all, emitter_.emit1("heddle", "AllGather", {parts[replica]}, {{"communicator", options_.communicator}, {"size", size}}));
    }
    emitter_.rename(all, name);
    by_name_.emplace(net_[all].name, all);
    gathered_.push_back({replica, parts, all});
    return all;
  }
  // Whether both are computed alike from the same values: each lookup makes a vector of its indices.
  bool has_content_of(ValueId a, ValueId b) const {
    if (a == b) return true;
    const Value &one = net_[a], &other = net_[b];
    if (one.kind != other.kind) return false;
    if (one.kind == Value::Kind::constant) {
      const auto &x = one.content.blob, &y = other.content.blob;
      return x && y && x->dtype == y->dtype && x->shape == y->shape && std::memcmp(x->data, y->data, static_cast<size_t>(x->bytes)) == 0;
    }
    if (!one.producer.valid() || !other.producer.valid() || one.output != other.output || one.variable.valid()) return false;
    const Node &x = net_[one.producer], &y = net_[other.producer];
    constexpr uint32_t differs = HEDDLE_TRAIT_IMPURE | HEDDLE_TRAIT_RANDOM;
    const auto same_attribute = [](const Attribute& p, const Attribute& q) {
      return p.name == q.name && static_cast<const AttributeVariant&>(p.value) == static_cast<const AttributeVariant&>(q.value);
    };
    return x.schema == y.schema && x.schema && (x.schema->op->traits & differs) == 0 && x.device == y.device &&
           std::equal(x.attributes.begin(), x.attributes.end(), y.attributes.begin(), y.attributes.end(), same_attribute) &&
           std::equal(x.inputs.begin(), x.inputs.end(), y.inputs.begin(), y.inputs.end(),
                      [&](ValueId i, ValueId k) { return i.valid() && k.valid() && has_content_of(i, k); });
  }

  struct Gathered {
    size_t replica = 0;
    std::vector<ValueId> parts;
    ValueId all;
  };

  Net& net_;
  const DataParallelOptions& options_;
  Emitter emitter_;
  size_t replicas_ = 0;
  std::vector<std::vector<Gradient>> gradients_;  // by variable, and replica
  std::vector<size_t> dense_, by_rows_;           // variables
  std::map<std::string, ValueId> by_name_;
  std::vector<Gathered> gathered_;
};

}  // namespace

Result<ReplicaGradients> reduce_gradients(DerivedNet& derived, const RegistrySnapshot& registry, const DataParallelOptions& options,
                                          const std::vector<std::vector<std::string>>& variables) {
  return Reduction(derived, registry, options, variables).run();
}

}  // namespace heddle
