// NonMaxSuppression: keeps, of boxes that overlap more than a threshold, the one with the highest score, batch by batch and class by class.
#include <algorithm>

#include "families.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"
#include "support/ordered_key.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t max_port = 2, overlap_port = 3, score_port = 4;

// boxes [batches, boxes, 4], scores [batches, classes, boxes] -> [selected, 3] rows of batch, class, box; bounded.
Status infer_non_max_suppression(InferContext& context) {
  const Dims boxes = context.dims(0), scores = context.dims(1);
  if (boxes.rank != 3 || boxes[2] != 4) return invalid("boxes has shape " + dims_text(boxes) + ", expected [batches, boxes, 4]");
  if (scores.rank != 3 || scores[0] != boxes[0] || scores[2] != boxes[1])
    return invalid("scores has shape " + dims_text(scores) + ", expected [" + std::to_string(boxes[0]) + ", classes, " +
                   std::to_string(boxes[1]) + "]");
  for (uint32_t i = max_port; i <= score_port; ++i)
    if (context.has_input(i) && context.input(i).element_count != 1)
      return invalid("input " + std::to_string(i) + " has shape " + dims_text(context.dims(i)) + ", expected a scalar");
  int64_t most = context.has_input(max_port) ? boxes[1] : 0;
  if (context.has_input(max_port) && context.known(max_port)) most = std::clamp<int64_t>(context.ints(max_port)[0], 0, boxes[1]);
  context.set_dims(0, std::vector<int64_t>{scores[0] * scores[1] * most, 3});
  context.set_bounded(0, 0);
  return {};
}

struct Box {
  float low[2], high[2], area;
  Box(float y0, float x0, float y1, float x1) : low{y0, x0}, high{y1, x1}, area((y1 - y0) * (x1 - x0)) {}
};

float overlap(const Box& a, const Box& b) {
  float shared = 1;
  for (int i = 0; i < 2; ++i) {
    shared *= std::max(0.0f, std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]));
    if (shared == 0) return 0;  // most boxes are apart
  }
  const float all = a.area + b.area - shared;
  return all > 0 ? shared / all : 0;
}

struct Kept {
  Box box;
  int64_t index;
};
// A box by its score. The best is the first that leaves a heap: the lower index of equal scores.
struct Candidate {
  uint32_t score;
  int64_t index;
  bool operator<(const Candidate& other) const { return score != other.score ? score < other.score : index > other.index; }
};

class NonMaxSuppression {
 public:
  Status create(const CreateContext& context) {
    centered_ = context.attributes.i("center_point_box") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& scores = *context.input(1);
    const int64_t boxes = scores.dims[2];
    context.set_scratch(static_cast<uint64_t>(boxes) * (sizeof(Candidate) + sizeof(Kept)));
    context.set_cost_ns(200.0 + 100.0 * static_cast<double>(scores.element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const auto operand = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    const heddle_tensor &boxes = *context.inputs[0], &scores = *context.inputs[1], &selected = *context.outputs[0];
    const int64_t count = boxes.dims[1], classes = scores.dims[1];
    const int64_t most = operand(max_port) ? std::clamp<int64_t>(integer_at(*operand(max_port), 0), 0, count) : 0;
    const Limits limits = {most, operand(overlap_port) ? static_cast<float>(number_at(*operand(overlap_port), 0)) : 0,
                           operand(score_port) != nullptr,
                           operand(score_port) ? static_cast<float>(number_at(*operand(score_port), 0)) : 0};
    if (const int64_t rows = selected.dims[0]; most > 0 && boxes.dims[0] * classes > rows / most)
      return invalid("with max_output_boxes_per_class [" + std::to_string(integer_at(*operand(max_port), 0)) + "] the output could have " +
                     std::to_string(boxes.dims[0] * classes * most) + " rows, but it was prepared as [" + std::to_string(rows) +
                     ", 3]: prepare again with this content");
    auto* candidates = step_scratch<Candidate>(context);
    auto* kept = reinterpret_cast<Kept*>(candidates + count);
    auto* row = static_cast<int64_t*>(selected.data);
    CancellationPoll poll(context);
    for (int64_t batch = 0; batch < boxes.dims[0] && most > 0; ++batch)
      for (int64_t c = 0; c < classes; ++c) {
        const float* score = static_cast<const float*>(scores.data) + (batch * classes + c) * count;
        const int64_t n = select(static_cast<const float*>(boxes.data) + batch * count * 4, score, count, limits, candidates, kept, poll);
        if (poll.stopped()) return cancelled();
        for (int64_t i = 0; i < n; ++i, row += 3) row[0] = batch, row[1] = c, row[2] = kept[i].index;
      }
    if (selected.extent) *selected.extent = (row - static_cast<int64_t*>(selected.data)) / 3;
    return {};
  }

 private:
  struct Limits {
    int64_t most;
    float overlap;
    bool has_score;
    float score;
  };
  Box box_at(const float* p) const {
    if (centered_) return {p[0] - p[2] / 2, p[1] - p[3] / 2, p[0] + p[2] / 2, p[1] + p[3] / 2};
    return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
  }
  // Writes the boxes of one class, best first, to `kept`. No more candidates are put in order than are looked at.
  int64_t select(const float* boxes, const float* score, int64_t count, const Limits& limits, Candidate* candidates, Kept* kept,
                 CancellationPoll& poll) const {
    int64_t left = 0, n = 0;
    for (int64_t i = 0; i < count && !poll.stops(1); ++i)
      if (!limits.has_score || score[i] > limits.score) candidates[left++] = {ordered_key(score[i]), i};
    for (int64_t i = 1; i <= left && !poll.stops(4); ++i) std::push_heap(candidates, candidates + i);
    for (; left > 0 && n < limits.most && !poll.stops(4 * n + 20); --left) {
      std::pop_heap(candidates, candidates + left);
      const int64_t index = candidates[left - 1].index;
      const Box box = box_at(boxes + index * 4);
      const bool covered = std::any_of(kept, kept + n, [&](const Kept& k) { return overlap(box, k.box) > limits.overlap; });
      if (!covered) kept[n++] = {box, index};
    }
    return n;
  }
  bool centered_ = false;
};

}  // namespace

void add_non_max_suppression(Builder& plugin) {
  plugin.add(Op("NonMaxSuppression", "", 11)
                 .doc("Selects the best boxes of each class, and drops those that overlap a better one by more than iou_threshold. It "
                      "selects at most max_output_boxes_per_class for each batch entry and class: none without that input.")
                 .shapes("selected_indices is [count, 3]: batch entry, class and box")
                 .in("boxes", dtypes<float>(), nullptr)
                 .in("scores", dtypes<float>(), nullptr)
                 .shape_operand("max_output_boxes_per_class", dtypes<int64_t>(), true)
                 .optional("iou_threshold", dtypes<float>(), nullptr)
                 .optional("score_threshold", dtypes<float>(), nullptr)
                 .out_as("selected_indices", HEDDLE_I64)
                 .attribute("center_point_box", 0)
                 .infer(infer_non_max_suppression)
                 .cpu<NonMaxSuppression>()
                 .example("f32[1,3,4] = 0 0 1 1 0 0.1 1 1.1 0 2 1 3, f32[1,1,3] = 0.9 0.75 0.6, i64[1] = 3, f32[1] = 0.5, f32[1] = 0 -> "
                          "i64[2,3] = 0 0 0 0 0 2",
                          "ONNX Runtime")
                 .example("f32[1,3,4] = 0.5 0.5 1 1 0.5 0.6 1 1 0.5 2.5 1 1, f32[1,1,3] = 0.9 0.75 0.6, i64[1] = 2, f32[1] = 0.5, f32[1] = "
                          "0.7; center_point_box=1 -> i64[1,3] = 0",
                          "ONNX Runtime"));
}

}  // namespace heddle::cpu
