// Fused operators. See onednn_epilogue.h.
#include "onednn/onednn_epilogue.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "onednn/epilogue_loops.h"

namespace heddle::cpu::onednn {
namespace {

constexpr int64_t chunk_elements = 4096;  // of a tile, passed through all epilogue ops before the next: 16 KiB

const MemoryDesc* layout_of(const OperandLayouts& layouts, int32_t operand_kind) {
  switch (operand_kind) {
    case HEDDLE_OPERAND_SAME_SHAPE:
      return layouts.same_shape;
    case HEDDLE_OPERAND_PER_CHANNEL:
    case HEDDLE_OPERAND_LAST_DIMENSION:
      return layouts.per_column;
    case HEDDLE_OPERAND_SCALAR:
      return layouts.scalar;
    case operand_per_row:
      return layouts.per_row;
    default:
      return nullptr;
  }
}

// True if one of the epilogue ops [first, index) is the same algorithm with other numbers.
bool clashes(const Epilogue& epilogue, size_t first, size_t index) {
  const MatchedPostOp& own = epilogue[index].post_op;
  if (own.kind != MatchedPostOp::Kind::eltwise) return false;
  return std::any_of(
      epilogue.begin() + static_cast<ptrdiff_t>(first), epilogue.begin() + static_cast<ptrdiff_t>(index), [&](const EpilogueOp& s) {
        const MatchedPostOp& other = s.post_op;
        return other.kind == own.kind && other.algorithm == own.algorithm && !(other.alpha == own.alpha && other.beta == own.beta);
      });
}

// Appends the post-ops of one epilogue op; false when it has none.
Status append_epilogue_op(const Epilogue& epilogue, size_t index, const OperandLayouts& layouts, int* post_op_count, FusedEpilogue* fused,
                          bool* done) {
  *done = false;
  const EpilogueOp& epilogue_op = epilogue[index];
  const MatchedPostOp& match = epilogue_op.post_op;
  if (match.kind == MatchedPostOp::Kind::none || clashes(epilogue, fused->first, index)) return {};
  const bool same_shape = epilogue_op.operand_kind == HEDDLE_OPERAND_SAME_SHAPE;
  const bool drops_nan = match.drops_nan || fused->nan_safe < fused->count;
  if (drops_nan && (same_shape || fused->same_shape)) return {};
  if (match.kind == MatchedPostOp::Kind::eltwise) {
    HEDDLE_PLUGIN_CHECK(fused->post_ops.eltwise(match.algorithm, match.alpha, match.beta));
  } else {
    const MemoryDesc* layout = layout_of(layouts, epilogue_op.operand_kind);
    if (!layout) return {};
    if (same_shape && layouts.add_by_sum) {
      if (match.algorithm != dnnl_binary_add || fused->sum_epilogue_op >= 0) return {};
      HEDDLE_PLUGIN_CHECK(fused->post_ops.sum());
      fused->sum_epilogue_op = static_cast<int32_t>(index);
    } else {
      if (fused->arguments.size() + 6 > Call::max_arguments) return {};
      HEDDLE_PLUGIN_CHECK(fused->post_ops.binary(match.algorithm, *layout));
      fused->arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(*post_op_count) | DNNL_ARG_SRC_1, *layout});
      fused->epilogue_op_indices.push_back(index);
    }
  }
  ++*post_op_count;
  ++fused->count;
  if (!drops_nan) ++fused->nan_safe;
  fused->same_shape = fused->same_shape || same_shape;
  *done = true;
  return {};
}

}  // namespace

namespace {

// Programs by their text. Nets have few different epilogues and many nodes with each; and whether a kernel accepts one is asked again and
// again while a net is compiled. Keeps no program alive.
class EpiloguePrograms {
 public:
  Status find(const std::string& text, std::shared_ptr<const Program>* program) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = by_text_.find(text); at != by_text_.end()) *program = at->second.lock();
    if (*program) return {};
    auto made = std::make_shared<Program>();
    HEDDLE_PLUGIN_CHECK(Program::compile(
        {.text = text, .inputs = {"acc", "operand"}, .input_dtypes = {HEDDLE_F32, HEDDLE_F32}, .output_dtype = HEDDLE_F32}, made.get()));
    if (by_text_.size() >= max_texts) std::erase_if(by_text_, [](const auto& known) { return known.second.expired(); });
    if (by_text_.size() >= max_texts) by_text_.clear();
    by_text_[text] = made;
    *program = std::move(made);
    return {};
  }

 private:
  static constexpr size_t max_texts = 256;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Program>> by_text_;
};

}  // namespace

Status make_epilogue_op(const std::string& text, int32_t operand_input, int32_t operand_kind, EpilogueOp* epilogue_op) {
  static EpiloguePrograms programs;
  epilogue_op->operand_input = operand_input;
  epilogue_op->operand_kind = operand_kind;
  expression::Program parsed;
  std::string error;
  if (!expression::parse(text, {}, parsed, error)) return invalid("epilogue \"" + text + "\": " + error);
  epilogue_op->post_op = match_post_op(parsed);
  epilogue_op->clamps = is_clamp(epilogue_op->post_op, &epilogue_op->lower, &epilogue_op->upper);
  epilogue_op->program.reset();
  return programs.find(text, &epilogue_op->program);
}

Status read_epilogue(const CreateContext& context, Epilogue* epilogue) {
  epilogue->clear();
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
    const heddle_epilogue_op& given = context.epilogue_op(i);
    HEDDLE_PLUGIN_CHECK(make_epilogue_op(given.expression, given.operand_input, given.operand_kind, &epilogue->emplace_back()));
  }
  return {};
}

bool accepts(const CreateContext& context, std::initializer_list<int32_t> kinds) {
  const heddle_type* output = context.output(0);
  if (!output || output->dtype != HEDDLE_F32) return false;
  Epilogue epilogue;
  if (!read_epilogue(context, &epilogue).ok()) return false;
  for (const EpilogueOp& epilogue_op : epilogue) {
    if (std::find(kinds.begin(), kinds.end(), epilogue_op.operand_kind) == kinds.end()) return false;
    if (epilogue_op.operand_kind == HEDDLE_OPERAND_NONE) continue;
    const heddle_type* operand = context.input(static_cast<uint32_t>(epilogue_op.operand_input));
    if (!operand || operand->dtype != HEDDLE_F32) return false;
  }
  return true;
}

Status fuse_epilogue_ops(const Epilogue& epilogue, size_t first, size_t last, const OperandLayouts& layouts, FusedEpilogue* fused) {
  HEDDLE_PLUGIN_CHECK(fused->post_ops.create());
  fused->first = first;
  int post_op_count = 0;
  for (size_t i = first; i < last; ++i) {
    bool done = false;
    HEDDLE_PLUGIN_CHECK(append_epilogue_op(epilogue, i, layouts, &post_op_count, fused, &done));
    if (!done) break;
  }
  return {};
}

bool is_bias(const EpilogueOp& epilogue_op, int32_t kind) {
  if (epilogue_op.operand_kind != kind) return false;
  return epilogue_op.post_op.kind == MatchedPostOp::Kind::binary && epilogue_op.post_op.algorithm == dnnl_binary_add;
}

namespace {

void apply_epilogue_op(const EpilogueOp& epilogue_op, const float* operand, const TileRegion& region, void* scratch) {
  if (epilogue_op.clamps)
    return isa_epilogue().clamp(region.data, region.row_stride, region.rows, region.columns, epilogue_op.lower, epilogue_op.upper);
  Source source = {operand, 0, 0};
  bool by_position = false;  // the operand is selected by the row or column
  switch (epilogue_op.operand_kind) {
    case HEDDLE_OPERAND_SAME_SHAPE:
      source = {operand, region.row_stride, 1};
      break;
    case HEDDLE_OPERAND_PER_CHANNEL:
    case HEDDLE_OPERAND_LAST_DIMENSION:
      source = {operand + region.first_column, 0, 1};
      by_position = true;
      break;
    case operand_per_row:
      source = {operand + region.first_row, 1, 0};
      by_position = true;
      break;
    default:
      break;
  }
  const Source sources[] = {{region.data, region.row_stride, 1}, source};
  const bool one_row = !by_position && region.row_stride == region.columns;
  const int64_t rows = one_row ? 1 : region.rows, columns = one_row ? region.rows * region.columns : region.columns;
  epilogue_op.program->run_rows(sources, region.data, region.row_stride, rows, columns, scratch);
}

}  // namespace

void apply_epilogue_ops(const Epilogue& epilogue, size_t first, const float* const* operands, const TileRegion& region, void* scratch) {
  if (first >= epilogue.size() || region.columns == 0) return;
  // A single epilogue op needs no chunks that stay in the cache for the next one.
  const bool one = first + 1 == epilogue.size();
  const int64_t chunk_rows = one ? std::max<int64_t>(1, region.rows) : std::max<int64_t>(1, chunk_elements / region.columns);
  for (int64_t row = 0; row < region.rows; row += chunk_rows) {
    TileRegion chunk = region;
    chunk.data += row * region.row_stride;
    chunk.rows = std::min(chunk_rows, region.rows - row);
    chunk.first_row += row;
    for (size_t i = first; i < epilogue.size(); ++i) {
      const float* operand = operands[i];
      if (epilogue[i].operand_kind == HEDDLE_OPERAND_SAME_SHAPE) operand += row * region.row_stride;
      apply_epilogue_op(epilogue[i], operand, chunk, scratch);
    }
  }
}

uint64_t epilogue_scratch_bytes(const Epilogue& epilogue) {
  uint64_t bytes = 0;
  for (const EpilogueOp& epilogue_op : epilogue) bytes = std::max(bytes, epilogue_op.program->scratch_bytes());
  return bytes;
}

}  // namespace heddle::cpu::onednn
