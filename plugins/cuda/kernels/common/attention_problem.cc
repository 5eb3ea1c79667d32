#include "kernels/common/attention_problem.h"

#include <string>
#include <utility>

namespace heddle::cuda {

using namespace heddle::plugin;

Status resolve_attention(int64_t heads_axis, Dims query, Dims key, Dims value, AttentionProblem* problem) {
  if (heads_axis != 1 && heads_axis != 2) return invalid("heads_axis is " + std::to_string(heads_axis) + ", expected 1 or 2");
  const auto head = static_cast<int>(heads_axis), row = 3 - head;
  const std::pair<const char*, Dims> all[] = {{"query", query}, {"key", key}, {"value", value}};
  for (const auto& [name, dims] : all) {
    const std::string what = std::string(name) + " is " + dims_text(dims) + ", expected ";
    if (dims.rank != 4) return invalid(what + "four dimensions");
    if (dims[0] != query[0]) return invalid(what + "dimension 0 to be " + std::to_string(query[0]) + ", the query's");
    if (dims[head] != query[head])
      return invalid(what + "dimension " + std::to_string(head) + " to be " + std::to_string(query[head]) + ", the query's heads");
  }
  if (key[3] != query[3])
    return invalid("key is " + dims_text(key) + ", expected dimension 3 to be " + std::to_string(query[3]) + ", the query's columns");
  if (value[row] != key[row])
    return invalid("value is " + dims_text(value) + ", expected dimension " + std::to_string(row) + " to be " + std::to_string(key[row]) +
                   ", the key's rows");
  problem->heads_axis = heads_axis;
  problem->batch = query[0];
  problem->heads = query[head];
  problem->queries = query[row];
  problem->keys = key[row];
  problem->depth = query[3];
  problem->width = value[3];
  return {};
}

double read_scale(const void* content, heddle_dtype dtype, bool divides) {
  if (!content) return 1;
  const double scale = dtype == HEDDLE_F64   ? *static_cast<const double*>(content)
                       : dtype == HEDDLE_F32 ? static_cast<double>(*static_cast<const float*>(content))
                       : dtype == HEDDLE_F16 ? static_cast<double>(static_cast<float>(*static_cast<const f16*>(content)))
                                             : static_cast<double>(static_cast<float>(*static_cast<const bf16*>(content)));
  return divides ? 1 / scale : scale;
}

}  // namespace heddle::cuda
