// Shard: the rows of a batch that one of several replicas works on.
#include <cstring>
#include <string>

#include "families.h"
#include "shared/dims.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// The rows of part `part`: parts are as equal as may be, and the first ones have one more. The runtime draws random numbers by the same
// rule (runtime/net/batch_parts.h).
struct RowsOfPart {
  RowsOfPart(int64_t rows, int64_t part, int64_t parts)
      : first(part * (rows / parts) + (part < rows % parts ? part : rows % parts)), count(rows / parts + (part < rows % parts ? 1 : 0)) {}
  int64_t first, count;
};

Status infer_shard(InferContext& context) {
  const int64_t part = context.attributes.i("part"), parts = context.attributes.i("parts");
  if (parts < 1 || part < 0 || part >= parts) return invalid("part is " + std::to_string(part) + " of " + std::to_string(parts));
  std::vector<int64_t> dims = vector_of(context.dims(0));
  if (dims.empty()) return invalid("x is a scalar, expected rows");
  if (dims[0] < parts) return invalid(std::to_string(dims[0]) + " rows are not enough for " + std::to_string(parts) + " parts");
  dims[0] = RowsOfPart(dims[0], part, parts).count;
  context.set_dims(0, dims);
  return {};
}

class Shard {
 public:
  Status create(const CreateContext& context) {
    part_ = context.attributes.i("part");
    parts_ = context.attributes.i("parts");
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    if (y.byte_size == 0) return {};
    const auto bytes = static_cast<int64_t>(x.byte_size) / x.dims[0];
    const Tiling::Range range = tiling_.range(static_cast<int64_t>(y.byte_size), begin, end);
    const char* const from = static_cast<const char*>(x.data) + RowsOfPart(x.dims[0], part_, parts_).first * bytes;
    std::memcpy(static_cast<char*>(y.data) + range.first, from + range.first, static_cast<size_t>(range.last - range.first));
    return {};
  }

 private:
  int64_t part_ = 0, parts_ = 1;
  Tiling tiling_;
};

}  // namespace

void add_shard(Builder& plugin) {
  plugin.add(Op("Shard", "heddle")
                 .doc("Takes part `part` of `parts` of the rows of x. Parts are as equal as possible, and the first ones have one row "
                      "more; each has one row at least. With a communicator the batch of each rank is one part of a common batch, and "
                      "random numbers are numbered through the whole of it.")
                 .shapes("y has the dims of x, with the rows of the part")
                 .in("x")
                 .not_differentiable()
                 .out("y")
                 .required("part", HEDDLE_ATTRIBUTE_INT)
                 .required("parts", HEDDLE_ATTRIBUTE_INT)
                 .maybe("communicator", HEDDLE_ATTRIBUTE_STRING)
                 .infer(infer_shard)
                 .cpu<Shard>()
                 .example("f32[5] = 1 2 3 4 5; part=0, parts=2 -> f32[3] = 1 2 3", "by hand")
                 .example("f32[1] = 1; part=0, parts=1, communicator=\"world\" -> f32[1] = 1", "by hand")
                 .example("i64[5,1] = 1 2 3 4 5; part=1, parts=2 -> i64[2,1] = 4 5", "by hand"));
}

}  // namespace heddle::cpu
