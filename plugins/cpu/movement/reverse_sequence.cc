// ReverseSequence: along the time axis the first sequence_lens[b] slices of batch b in reverse order, the rest as they are.
#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_reverse_sequence(InferContext& context) {
  const Dims x = context.dims(0);
  const int64_t time = context.attributes.i("time_axis"), batch = context.attributes.i("batch_axis");
  if (x.rank < 2) return invalid("input has shape " + dims_text(x) + ", expected two dimensions or more");
  if (time < 0 || time > 1 || batch != 1 - time)
    return invalid("time_axis is " + std::to_string(time) + " and batch_axis " + std::to_string(batch) + ", expected 0 and 1 or 1 and 0");
  if (context.dims(1).rank != 1 || context.dims(1)[0] != x[static_cast<int>(batch)])
    return invalid("sequence_lens has shape " + dims_text(context.dims(1)) + ", expected [" + std::to_string(x[static_cast<int>(batch)]) +
                   "]");
  context.set_dims(0, x);
  return {};
}

class ReverseSequence {
 public:
  Status create(const CreateContext& context) {
    time_axis_ = static_cast<int>(context.attributes.i("time_axis"));
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    const auto* lengths = static_cast<const int64_t*>(context.inputs[1]->data);
    const Dims dims = dims_of(x);
    const int64_t times = dims[time_axis_], batches = dims[1 - time_axis_];
    const int64_t slice = dims.count(2, dims.rank) * static_cast<int64_t>(byte_width(x.dtype));
    const int64_t time_stride = time_axis_ == 0 ? batches * slice : slice, batch_stride = time_axis_ == 0 ? slice : times * slice;
    CancellationPoll poll(context);
    const Tiling::Range range = tiling_.range(slice == 0 ? 0 : times * batches, begin, end);
    for (int64_t unit = range.first; unit < range.last; ++unit) {
      const int64_t batch = time_axis_ == 0 ? unit % batches : unit / times, time = time_axis_ == 0 ? unit / batches : unit % times;
      const int64_t length = lengths[batch];
      if (length < 0 || length > times) return outside_range("sequence_lens[" + std::to_string(batch) + "]", length, 0, times);
      const int64_t from = time < length ? length - 1 - time : time;
      copy_cancellable(static_cast<char*>(context.outputs[0]->data) + time * time_stride + batch * batch_stride,
                       static_cast<const char*>(x.data) + from * time_stride + batch * batch_stride, slice, poll);
      if (poll.stopped()) break;
    }
    return poll.status();
  }

 private:
  int time_axis_ = 0;
  Tiling tiling_;
};

}  // namespace

void add_reverse_sequence(Builder& plugin) {
  plugin.add(Op("ReverseSequence", "", 10)
                 .doc("Reverses the first sequence_lens[b] steps of batch entry b, and leaves the others where they are.")
                 .shapes("Y has the dims of input")
                 .in("input")
                 .in("sequence_lens", dtypes<int64_t>(), nullptr)
                 .out("Y")
                 .attribute("batch_axis", 1)
                 .attribute("time_axis", 0)
                 .infer(infer_reverse_sequence)
                 .gradient("ReverseSequence", {"dY", "sequence_lens"}, {"dinput"})
                 .cpu<ReverseSequence>()
                 .example("f32[3,2] = 1 2 3 4 5 6, i64[2] = 2 3 -> f32[3,2] = 3 6 1 4 5 2", "ONNX Runtime")
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 3 1; batch_axis=0, time_axis=1 -> f32[2,3] = 3 2 1 4 5 6", "ONNX Runtime"));
}

}  // namespace heddle::cpu
