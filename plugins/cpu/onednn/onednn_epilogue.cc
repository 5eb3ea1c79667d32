// Fused stages. See onednn_epilogue.h.
#include "onednn/onednn_epilogue.h"

#include <algorithm>

#include "onednn/epilogue_loops.h"

namespace heddle::cpu::onednn {
namespace {

constexpr int64_t chunk_elements = 4096;  // of a tile, passed through all stages before the next: 16 KiB

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

// Whether one of the stages [first, index) is the same algorithm with other numbers.
bool clashes(const Epilogue& epilogue, size_t first, size_t index) {
  const MatchedPostOp& own = epilogue[index].post_op;
  if (own.kind != MatchedPostOp::Kind::eltwise) return false;
  return std::any_of(
      epilogue.begin() + static_cast<ptrdiff_t>(first), epilogue.begin() + static_cast<ptrdiff_t>(index), [&](const Stage& s) {
        const MatchedPostOp& other = s.post_op;
        return other.kind == own.kind && other.algorithm == own.algorithm && !(other.alpha == own.alpha && other.beta == own.beta);
      });
}

// Appends the post-ops of one stage; false when it has none.
Status append_stage(const Epilogue& epilogue, size_t index, const OperandLayouts& layouts, int* post_op_count, FusedStages* fused,
                    bool* done) {
  *done = false;
  const Stage& stage = epilogue[index];
  const MatchedPostOp& match = stage.post_op;
  if (match.kind == MatchedPostOp::Kind::none || clashes(epilogue, fused->first, index)) return {};
  const bool same_shape = stage.operand_kind == HEDDLE_OPERAND_SAME_SHAPE;
  const bool drops_nan = match.drops_nan || fused->nan_safe < fused->count;
  if (drops_nan && (same_shape || fused->same_shape)) return {};
  if (match.kind == MatchedPostOp::Kind::eltwise) {
    HEDDLE_PLUGIN_CHECK(fused->post_ops.eltwise(match.algorithm, match.alpha, match.beta));
  } else {
    const MemoryDesc* layout = layout_of(layouts, stage.operand_kind);
    if (!layout) return {};
    if (same_shape && layouts.add_by_sum) {
      if (match.algorithm != dnnl_binary_add || fused->sum_stage >= 0) return {};
      HEDDLE_PLUGIN_CHECK(fused->post_ops.sum());
      fused->sum_stage = static_cast<int32_t>(index);
    } else {
      if (fused->arguments.size() + 6 > Call::most_arguments) return {};
      HEDDLE_PLUGIN_CHECK(fused->post_ops.binary(match.algorithm, *layout));
      fused->arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(*post_op_count) | DNNL_ARG_SRC_1, *layout});
      fused->stage_indices.push_back(index);
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

Status make_stage(const std::string& text, int32_t operand_input, int32_t operand_kind, Stage* stage) {
  stage->text = text;
  stage->operand_input = operand_input;
  stage->operand_kind = operand_kind;
  stage->expression = {};
  std::string error;
  if (!expression::parse(text, {}, stage->expression, error)) return invalid("epilogue \"" + text + "\": " + error);
  ProgramText program;
  program.text = text;
  program.inputs = {"acc", "operand"};
  program.input_dtypes = {HEDDLE_F32, HEDDLE_F32};
  program.output_dtype = HEDDLE_F32;
  stage->post_op = match_post_op(stage->expression);
  stage->clamps = is_clamp(stage->post_op, &stage->lower, &stage->upper);
  return Program::compile(program, &stage->program);
}

Status read_epilogue(const CreateContext& context, Epilogue* epilogue) {
  epilogue->clear();
  for (uint32_t i = 0; i < context.stage_count(); ++i) {
    const heddle_epilogue_stage& given = context.stage(i);
    HEDDLE_PLUGIN_CHECK(make_stage(given.expression, given.operand_input, given.operand_kind, &epilogue->emplace_back()));
  }
  return {};
}

bool accepts(const CreateContext& context, std::initializer_list<int32_t> kinds) {
  const heddle_type* output = context.output(0);
  if (!output || output->dtype != HEDDLE_F32) return false;
  Epilogue epilogue;
  if (!read_epilogue(context, &epilogue).ok()) return false;
  for (const Stage& stage : epilogue) {
    if (std::find(kinds.begin(), kinds.end(), stage.operand_kind) == kinds.end()) return false;
    if (stage.operand_kind == HEDDLE_OPERAND_NONE) continue;
    const heddle_type* operand = context.input(static_cast<uint32_t>(stage.operand_input));
    if (!operand || operand->dtype != HEDDLE_F32) return false;
  }
  return true;
}

Status fuse_stages(const Epilogue& epilogue, size_t first, size_t last, const OperandLayouts& layouts, FusedStages* fused) {
  HEDDLE_PLUGIN_CHECK(fused->post_ops.create());
  fused->first = first;
  int post_op_count = 0;
  for (size_t i = first; i < last; ++i) {
    bool done = false;
    HEDDLE_PLUGIN_CHECK(append_stage(epilogue, i, layouts, &post_op_count, fused, &done));
    if (!done) break;
  }
  return {};
}

bool is_bias(const Stage& stage, int32_t kind) {
  if (stage.operand_kind != kind) return false;
  return stage.post_op.kind == MatchedPostOp::Kind::binary && stage.post_op.algorithm == dnnl_binary_add;
}

namespace {

void apply_stage(const Stage& stage, const float* operand, const TileRegion& region, void* scratch) {
  if (stage.clamps) return isa_epilogue().clamp(region.data, region.row_stride, region.rows, region.columns, stage.lower, stage.upper);
  Source source = {operand, 0, 0};
  bool by_position = false;  // of the row or column
  switch (stage.operand_kind) {
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
  stage.program.run_rows(sources, region.data, region.row_stride, rows, columns, scratch);
}

}  // namespace

void apply_stages(const Epilogue& epilogue, size_t first, const float* const* operands, const TileRegion& region, void* scratch) {
  if (first >= epilogue.size() || region.columns == 0) return;
  // Alone it needs no chunks that stay in the cache for the next one.
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
      apply_stage(epilogue[i], operand, chunk, scratch);
    }
  }
}

uint64_t epilogue_scratch_bytes(const Epilogue& epilogue) {
  uint64_t bytes = 0;
  for (const Stage& stage : epilogue) bytes = std::max(bytes, stage.program.scratch_bytes());
  return bytes;
}

}  // namespace heddle::cpu::onednn
