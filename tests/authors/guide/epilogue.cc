// docs/operator_guide.md, "Epilogues": y = x w + b, and whatever pointwise operators the host fuses behind it, on each row while it is in
// the cache.
#include <algorithm>

#include "heddle/expression_evaluate.h"
#include "heddle/op.h"
using namespace heddle::plugin;
namespace expression = heddle::expression;

namespace {

// One operator behind the product: what it computes, and where its operand lies.
struct EpilogueOp {
  expression::Evaluator<float> evaluator;
  int32_t operand;  // among the node's inputs; -1: it has none
  int32_t kind;
};

// The epilogue ops that the node has, or would have; refused: those that are none of ours.
Status read_epilogue_ops(const CreateContext& c, std::vector<EpilogueOp>* epilogue_ops) {
  for (uint32_t i = 0; i < c.epilogue_op_count(); ++i) {
    const heddle_epilogue_op& of = c.epilogue_op(i);
    if (of.operand_kind == HEDDLE_OPERAND_PER_CHANNEL) return unsupported("y has no channels");
    expression::Program program;
    program.inputs = {"acc", "operand"};
    std::string error;
    if (!expression::parse(of.expression, {}, program, error)) return unsupported(of.expression + (": " + error));
    if (program.inputs.size() > 2) return unsupported("unknown value " + program.inputs[2]);
    const auto evaluator = expression::Evaluator<float>::of(program, error);
    if (!evaluator) return unsupported(error);
    epilogue_ops->push_back({*evaluator, of.operand_input, of.operand_kind});
  }
  return {};
}

class Linear {
 public:
  static bool accepts_epilogue(const CreateContext& c) {
    std::vector<EpilogueOp> epilogue_ops;
    return read_epilogue_ops(c, &epilogue_ops).ok();
  }
  Status create(const CreateContext& c) { return read_epilogue_ops(c, &epilogue_ops_); }
  Status prepare(PrepareContext& c) {
    uint64_t scratch = 0;
    for (const EpilogueOp& epilogue_op : epilogue_ops_) scratch = std::max(scratch, epilogue_op.evaluator.scratch_bytes());
    c.set_tiles(c.output(0)->dims[0]);
    c.set_scratch(0, scratch);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0), w = input<float>(c, 1), b = input<float>(c, 2);
    const int64_t inner = w.dims[0], columns = w.dims[1];
    for (int64_t i = begin; i < end; ++i) {
      float* const row = output<float>(c, 0).data + i * columns;
      std::copy_n(b.data, columns, row);
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j) row[j] += x[i * inner + k] * w[k * columns + j];
      for (const EpilogueOp& epilogue_op : epilogue_ops_) {
        const float* operand = row;  // what has none reads none
        if (epilogue_op.operand >= 0) operand = input<float>(c, static_cast<uint32_t>(epilogue_op.operand)).data;
        if (epilogue_op.kind == HEDDLE_OPERAND_SAME_SHAPE) operand += i * columns;
        const int step = epilogue_op.kind == HEDDLE_OPERAND_SCALAR ? 0 : 1;  // else SAME_SHAPE or LAST_DIMENSION: one a column
        epilogue_op.evaluator.run(columns, {{row, 1}, {operand, step}}, row, thread_scratch<float>(c));
      }
    }
    return {};
  }

 private:
  std::vector<EpilogueOp> epilogue_ops_;
};

Status infer_linear(InferContext& c) {
  const Dims x = c.dims(0), w = c.dims(1), b = c.dims(2);
  if (x.rank != 2 || w.rank != 2 || b.rank != 1 || x[1] != w[0] || w[1] != b[0])
    return invalid("x, w and b are " + dims_text(x) + ", " + dims_text(w) + " and " + dims_text(b) + ", expected [m, k], [k, n] and [n]");
  c.set_dims(0, {x[0], w[1]});
  return {};
}

}  // namespace

HEDDLE_PLUGIN("guide_epilogue", "1.0", plugin) {
  plugin.add(Op("Linear", "guide")
                 .doc("y = x w + b of f32 matrices; what is pointwise behind it runs on each row of y")
                 .in("x", dtypes<float>())
                 .in("w", dtypes<float>())
                 .in("b", dtypes<float>())
                 .out("y", {}, dtypes<float>())
                 .infer(infer_linear)
                 .cpu<Linear>()
                 .example("f32[2,3] = 1 2 3 4 5 6, f32[3,2] = 1 0 0 1 2 -2, f32[2] = 0.5 10 -> f32[2,2] = 7.5 6 16.5 3", "by hand"));
}
