// EyeLike: ones on a diagonal.
#include <algorithm>

#include "families.h"
#include "shared/dtype_dispatch.h"
#include "shared/onnx_dtype.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_eye_like(InferContext& context) {
  const Dims dims = context.dims(0);
  if (dims.rank != 2) return invalid("input has shape " + dims_text(dims) + ", expected a matrix");
  heddle_dtype dtype = context.input(0).dtype;
  HEDDLE_PLUGIN_CHECK(dtype_attribute(context.attributes, "dtype", &dtype));
  context.set_dtype(0, dtype);
  context.set_dims(0, dims);
  return {};
}

class EyeLike {
 public:
  Status create(const CreateContext& context) {
    k_ = context.attributes.i("k");
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<double>(context.output(0)->byte_size), 1.0);
    return {};
  }
  // Tiles are ranges of elements.
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    const Tiling::Range range = tiling_.range(y.element_count, begin, end);
    if (range.first == range.last) return {};
    with_width(byte_width(y.dtype), [&](auto tag) {
      using W = typename decltype(tag)::type;
      W* data = static_cast<W*>(y.data);
      std::fill(data + range.first, data + range.last, W(0));
      const int64_t rows = y.dims[0], columns = y.dims[1];
      const int64_t first = k_ < 0 ? (k_ < -rows ? rows : -k_) : 0;
      for (int64_t r = std::max(first, range.first / columns); r < rows && r < columns - k_; ++r) {
        const int64_t at = r * columns + r + k_;
        if (at >= range.last) break;
        if (at >= range.first) data[at] = static_cast<W>(one_of(y.dtype));
      }
    });
    return {};
  }

 private:
  int64_t k_ = 0;
  Tiling tiling_;
};

}  // namespace

void add_eye_like(Builder& plugin) {
  plugin.add(Op("EyeLike", "", 9)
                 .doc("Makes a matrix of zeros with ones on the k-th diagonal.")
                 .shapes("output has the dims of input, a matrix")
                 .in("input", any_dtype, nullptr)
                 .not_differentiable()
                 .out("output", {}, any_dtype, nullptr)
                 .maybe("dtype", HEDDLE_ATTRIBUTE_INT)
                 .attribute("k", 0)
                 .infer(infer_eye_like)
                 .cpu<EyeLike>()
                 .example("f32[2,3] = 0 -> f32[2,3] = 1 0 0 0 1 0", "ONNX Runtime")
                 .example("f32[3,3] = 0; k=1, dtype=7 -> i64[3,3] = 0 1 0 0 0 1 0 0 0", "ONNX Runtime")
                 .example("i32[3,2] = 0; k=-1 -> i32[3,2] = 0 0 1 0 0 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
