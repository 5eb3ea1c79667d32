#include "generate/reduce/reduce_source.h"

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"
#include "generate/reduce/reduce_fold.h"

namespace heddle::cuda {

using plugin::Status;

bool needs_shift(ReduceKind kind) {
  return kind == ReduceKind::log_sum_exp || kind == ReduceKind::softened || kind == ReduceKind::softened_log ||
         kind == ReduceKind::moments || kind == ReduceKind::moments_beside;
}

ReduceKind shift_of(ReduceKind kind) {
  if (kind == ReduceKind::log_sum_exp) return ReduceKind::finite_shift;
  return kind == ReduceKind::moments || kind == ReduceKind::moments_beside ? ReduceKind::mean_shift : ReduceKind::largest_shift;
}

bool is_for_rows(ReduceKind kind) {
  return kind >= ReduceKind::mean_shift;
}

bool of_floats_only(ReduceKind kind) {
  return kind == ReduceKind::power || kind >= ReduceKind::log_sum_exp;
}

std::string sum_type(heddle_dtype input, const std::string& computed) {
  return (input == HEDDLE_F32 && computed == "float" ? "Compensated<" : "Plain<") + computed + ">";
}

heddle_dtype computed_in(const ReduceShape& shape) {
  const bool is_real = HEDDLE_DTYPE_BIT(shape.input) & plugin::float_dtypes;
  if (is_real && shape.working == HEDDLE_F64) return HEDDLE_F64;
  return shape.input;
}

namespace {

void constants(const ReduceGeometry& g, KernelText* text) {
  text->constant("SPLIT", g.split);
  text->constant("LINEAR", g.linear);
  text->constant("WIDTH", g.width);
  text->constant("LANES", g.lanes);
  text->constant("THREADS", g.threads);
  text->constant("KEPT", g.kept);
  text->constant("REDUCED", g.reduced);
}

}  // namespace

void reduce_parameters(const ReduceShape& shape, const ReduceNumbers& n, ParameterWriter& writer) {
  const ReduceGeometry& g = shape.geometry;
  const bool known = is_for_rows(shape.kind);
  writer.address("", known ? "R" : stored_type(shape.output), "y", n.result.of, n.result.index, n.result.offset);
  writer.address("const ", stored_type(shape.input), "x", Address::input, n.input);
  if (needs_shift(shape.kind)) writer.address("const ", "Shift", "shifts", Address::scratch, 0, n.shifts);
  if (g.split) writer.address("", "A", "partial", Address::scratch, 0, n.partial);
  FusedExpressionText(shape.prologue, "prologue").parameters(writer);
  FusedExpressionText(shape.epilogue, "epilogue").parameters(writer);
  writer.number("outputs", n.outputs);
  writer.number("folded", n.folded);
  writer.number("parts", n.parts);
  writer.number("part", n.part);
  writer.number("row", n.row);
  writer.number("divisor", n.divisor);
  writer.number("epsilon", n.epsilon);
  writer.numbers("kept_extents", n.kept_extents, g.kept);
  writer.numbers("kept_strides", n.kept_strides, g.kept);
  writer.numbers("kept_places", n.kept_places, g.kept);
  writer.numbers("reduced_extents", n.reduced_extents, g.reduced);
  writer.numbers("reduced_strides", n.reduced_strides, g.reduced);
}

Status reduce_source(const ReduceShape& shape, const std::string& name, KernelSource* source) {
  const ReduceGeometry& g = shape.geometry;
  const bool is_real = HEDDLE_DTYPE_BIT(shape.input) & plugin::float_dtypes;
  if (!is_real && of_floats_only(shape.kind)) return plugin::invalid("is not defined for integers");
  const FoldText fold = fold_text(shape);
  const FusedExpressionText prologue(shape.prologue, "prologue"), epilogue(shape.epilogue, "epilogue");
  KernelText text(name, g.wide);
  HEDDLE_PLUGIN_CHECK(prologue.function(shape.input, &text.helpers));
  if (!shape.epilogue.empty()) HEDDLE_PLUGIN_CHECK(epilogue.function(shape.output, &text.helpers));
  text.type("C", compute_type(computed_in(shape)));
  text.type("A", fold.folded);
  const bool known = is_for_rows(shape.kind);
  if (known) text.type("R", fold.result);
  text.type("Shift", shift_of(shape.kind) == ReduceKind::mean_shift ? "Mean<C>" : "C");
  constants(g, &text);
  text.function("A start()", "return " + fold.start + ";");
  text.function("A add(A a, C x, Index position, const Shift& shift)", "return " + fold.add + ";");
  text.function("A combine(A a, A b)", "return " + fold.combine + ";");
  text.function("Shift shift(const Parameters& p, Index output)", needs_shift(shape.kind) ? "return p.shifts[output];" : "return (C)0;");
  text.functions += load_member(shape.input, prologue);
  text.function(
      "void store(const Parameters& p, Index output, Index place, A a)",
      std::string(shape.epilogue.operands.empty() ? "" : "constexpr int W = 1, e = 0; ") +
          (needs_shift(shape.kind) ? "const Shift shift = F::shift(p, output); " : "") + epilogue.reads("place") + "p.y[place] = " +
          (known ? fold.value
                 : "Stored<" + std::string(stored_type(shape.output)) + ">::of(" + epilogue.call(fold.value, shape.output) + ")") +
          ";");
  text.function("void keep(const Parameters& p, Index slot, A a)", g.split ? "p.partial[slot] = a;" : "");
  reduce_parameters(shape, {}, text.parameters);
  text.block_kernel("", g.columns ? "reduce_columns<F>" : "reduce_rows<F>", g.threads);
  if (g.split) text.block_kernel("parts", "reduce_parts<F>", g.threads);
  text.write({"block", "folds", "reduce"}, source);
  return {};
}

}  // namespace heddle::cuda
