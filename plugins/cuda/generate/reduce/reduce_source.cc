#include "generate/reduce/reduce_source.h"

#include "generate/dtype_names.h"
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

heddle_dtype computed_in(const ReduceShape& shape) {
  const bool is_real = HEDDLE_DTYPE_BIT(shape.input) & plugin::float_dtypes;
  if (is_real && shape.working == HEDDLE_F64) return HEDDLE_F64;
  return shape.input;
}

namespace {

// The members of F that are one expression each.
std::string fold_members(const FoldText& fold, const ReduceShape& shape) {
  const std::string combine = "    return " + fold.combine + ";\n";
  return "  HEDDLE_INLINE_MEMBER A start() { return " + fold.start +
         "; }\n  HEDDLE_INLINE_MEMBER A add(A a, C x, Index position, C shift) {\n    return " + fold.add +
         ";\n  }\n  HEDDLE_INLINE_MEMBER A combine(A a, A b) {\n" + combine +
         "  }\n  HEDDLE_INLINE_MEMBER C shift(const Parameters& p, Index output) { return " +
         (needs_shift(shape.kind) ? "p.shifts[output]" : "(C)0") + "; }\n";
}

std::string constants(const ReduceGeometry& g) {
  const auto constant = [](const char* type, const char* name, int value) {
    return std::string("  static constexpr ") + type + " " + name + " = " + std::to_string(value) + ";\n";
  };
  return constant("bool", "SPLIT", g.split) + constant("bool", "LINEAR", g.linear) + constant("int", "WIDTH", g.width) +
         constant("int", "LANES", g.lanes) + constant("int", "THREADS", g.threads) + constant("int", "KEPT", g.kept) +
         constant("int", "REDUCED", g.reduced);
}

}  // namespace

void reduce_parameters(const ReduceShape& shape, const ReduceNumbers& n, ParameterWriter& writer) {
  const ReduceGeometry& g = shape.geometry;
  const bool known = is_for_rows(shape.kind);
  writer.address("", known ? "R" : stored_type(shape.output), "y", n.result.of, n.result.index, n.result.offset);
  writer.address("const ", stored_type(shape.input), "x", Address::input, n.input);
  if (needs_shift(shape.kind)) writer.address("const ", "C", "shifts", Address::scratch, 0, n.shifts);
  if (g.split) writer.address("", "A", "partial", Address::scratch, 0, n.partial);
  ChainText(shape.before, "before").parameters(writer);
  ChainText(shape.behind, "behind").parameters(writer);
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
  const std::string C = compute_type(computed_in(shape)), entry = source->entry(name);
  const ChainText before(shape.before, "before"), behind(shape.behind, "behind");
  std::string chains, members;
  HEDDLE_PLUGIN_CHECK(before.function(shape.input, &chains));
  if (!shape.behind.empty()) HEDDLE_PLUGIN_CHECK(behind.function(shape.output, &chains));
  ParameterWriter writer(&members, nullptr);
  reduce_parameters(shape, {}, writer);
  const std::string result = is_for_rows(shape.kind) ? fold.result : "";
  const std::string value =
      result.empty() ? "Stored<" + std::string(stored_type(shape.output)) + ">::of(" + behind.call(fold.value, shape.output) + ")"
                     : fold.value;
  const std::string walk = g.columns ? "reduce_columns" : "reduce_rows";
  source->use("block");
  source->use("folds");
  source->use("reduce");
  source->text +=
      "namespace " + entry + "_scope {\ntypedef " + (g.wide ? "u64" : "u32") + " Index;\ntypedef " + C + " C;\ntypedef " + fold.folded +
      " A;\n" + (result.empty() ? "" : "typedef " + result + " R;\n") + "struct Parameters {\n" + members + "};\n" + chains +
      "struct F {\n  typedef " + entry + "_scope::Index Index;\n  typedef " + entry + "_scope::C C;\n  typedef " + entry +
      "_scope::A A;\n" + constants(g) + fold_members(fold, shape) + load_member(shape.input, before) +
      "  HEDDLE_INLINE_MEMBER void store(const Parameters& p, Index output, Index place, A a) {\n" +
      (shape.behind.operands.empty() ? "" : "    constexpr int W = 1, e = 0;\n") +
      (needs_shift(shape.kind) ? "    const C shift = F::shift(p, output);\n" : "") + behind.reads("place") + "    p.y[place] = " + value +
      ";\n  }\n  HEDDLE_INLINE_MEMBER void keep(const Parameters& p, Index slot, A a) {" + (g.split ? " p.partial[slot] = a; " : "") +
      "}\n};\nHEDDLE_BOUNDED_KERNEL(" + entry + ", Parameters, p, F::THREADS) {\n  " + walk + "<F>(p);\n}\n";
  if (g.split)
    source->text +=
        "HEDDLE_BOUNDED_KERNEL(" + source->entry(name + "_parts") + ", Parameters, p, F::THREADS) {\n  reduce_parts<F>(p);\n}\n";
  source->text += "}\n";
  return {};
}

}  // namespace heddle::cuda
