// Implements cuda::Attention: the operator, the rules that find it in nets of ONNX's operators, and its kernels.
#include "kernels/common/attention_kernels.h"
#include "kernels/kernel_families.h"
#include "shared/dims.h"

namespace heddle::cuda {

Status AttentionKernel::begin(const CreateContext& context) {
  heads_axis_ = context.attributes.i("heads_axis");
  divides_ = context.attributes.i("divides") != 0;
  return on(context);
}

Status AttentionKernel::read_problem(PrepareContext& context) {
  using operators::dims_of;
  context.reads_on_host({});
  HEDDLE_PLUGIN_CHECK(resolve_attention(heads_axis_, dims_of(*context.input(query)), dims_of(*context.input(key)),
                                        dims_of(*context.input(value)), &problem_));
  context.set_tiles(context.output(0)->element_count == 0 ? 0 : 1);
  return {};
}

double AttentionKernel::factor(const PrepareContext& context) const {
  const heddle_tensor* const given = context.input(scale);
  return given ? read_scale(context.host_data(scale), given->dtype, divides_) : 1;
}

namespace {

Status infer_attention(InferContext& context) {
  AttentionProblem problem;
  HEDDLE_PLUGIN_CHECK(resolve_attention(context.attributes.i("heads_axis"), context.dims(0), context.dims(1), context.dims(2), &problem));
  if (context.has_input(3) && context.input(3).element_count != 1)
    return invalid("scale is " + dims_text(context.dims(3)) + ", expected one number");
  std::vector<int64_t> dims(context.dims(0).begin(), context.dims(0).end());
  dims[3] = problem.width;
  context.set_dims(0, dims);
  return {};
}

void attention_cost(CostContext& context) {
  AttentionProblem problem;
  if (!resolve_attention(context.attributes.i("heads_axis"), context.dims(0), context.dims(1), context.dims(2), &problem).ok()) return;
  context.set_flops(problem.scores() * static_cast<double>(2 * problem.depth + 2 * problem.width + 5));
}

// ---------------------------------------------------------------- rules

// Writes the nodes of a rule's net, one after the other.
class RuleText {
 public:
  explicit RuleText(const char* dtype) : dtype_(dtype) {}
  RuleText& input(const char* name, const char* dims) {
    add(&inputs_, std::string("\"") + name + "\"");
    add(&values_, std::string(R"({"name": ")") + name + R"(", "kind": "input", "dtype": ")" + dtype_ + R"(", "dims": [)" + dims + "]}");
    return *this;
  }
  // `inputs` is written as `"a", "b"`; `attributes` as `"axis": {"int": -1}`. The output has the node's name.
  RuleText& node(const char* type, const char* name, const char* inputs, const std::string& attributes = "", const char* domain = "") {
    add(&nodes_, std::string(R"({"type": ")") + type + R"(", "domain": ")" + domain + R"(", "name": ")" + name + R"(", "inputs": [)" +
                     inputs + R"(], "outputs": [")" + name + R"("], "attributes": {)" + attributes + "}}");
    return *this;
  }
  std::string net(const char* output) const {
    return R"({"heddle": 1, "inputs": [)" + inputs_ + R"(], "outputs": [")" + output + R"("], "values": [)" + values_ + R"(], "nodes": [)" +
           nodes_ + "]}";
  }

 private:
  static void add(std::string* list, const std::string& item) { *list += (list->empty() ? "" : ", ") + item; }
  const std::string dtype_;
  std::string inputs_, values_, nodes_;
};

struct AttentionRule {
  const char* dtype;
  const char* scaling;  // "Mul", "Div"; null: none
  bool splits_heads;    // query, key and value are transposed to it, and its output is transposed back
};

constexpr const char* swapped_middle = R"("perm": {"ints": [0, 2, 1, 3]})";

RuleText inputs_of(const AttentionRule& rule) {
  RuleText text(rule.dtype);
  const bool split = rule.splits_heads;
  text.input("query", split ? R"("B", "Q", "H", "D")" : R"("B", "H", "Q", "D")");
  text.input("key", split ? R"("B", "K", "H", "D")" : R"("B", "H", "K", "D")");
  text.input("value", split ? R"("B", "K", "H", "E")" : R"("B", "H", "K", "E")");
  if (rule.scaling) text.input("scale", "");
  return text;
}

std::string pattern_of(const AttentionRule& rule) {
  RuleText text = inputs_of(rule);
  const bool split = rule.splits_heads;
  if (split) text.node("Transpose", "q", R"("query")", swapped_middle).node("Transpose", "v", R"("value")", swapped_middle);
  text.node("Transpose", "k", R"("key")", split ? R"("perm": {"ints": [0, 2, 3, 1]})" : R"("perm": {"ints": [0, 1, 3, 2]})");
  text.node("MatMul", "scores", split ? R"("q", "k")" : R"("query", "k")");
  if (rule.scaling) text.node(rule.scaling, "scaled", R"("scores", "scale")");
  text.node("Softmax", "weights", rule.scaling ? R"("scaled")" : R"("scores")", R"("axis": {"int": -1})");
  text.node("MatMul", split ? "mixed" : "output", split ? R"("weights", "v")" : R"("weights", "value")");
  if (split) text.node("Transpose", "output", R"("mixed")", swapped_middle);
  return text.net("output");
}

std::string replacement_of(const AttentionRule& rule) {
  const std::string attributes = std::string(R"("heads_axis": {"int": )") + (rule.splits_heads ? "2" : "1") + R"(}, "divides": {"int": )" +
                                 (rule.scaling && std::string(rule.scaling) == "Div" ? "1" : "0") + "}";
  return inputs_of(rule)
      .node("Attention", "output", rule.scaling ? R"("query", "key", "value", "scale")" : R"("query", "key", "value")", attributes, "cuda")
      .net("output");
}

// Static, because the host keeps pointers to the rules' texts.
void add_rules(Builder& plugin) {
  struct Text {
    std::string name, pattern, replacement;
  };
  static const std::vector<Text> texts = [] {
    std::vector<Text> all;
    for (const char* dtype : {"f16", "bf16"})
      for (const char* scaling : {static_cast<const char*>(nullptr), "Mul", "Div"})
        for (const bool splits_heads : {true, false}) {
          const AttentionRule rule = {dtype, scaling, splits_heads};
          const std::string name =
              std::string("attention-") + dtype + (scaling ? std::string("-") + scaling : "") + (splits_heads ? "-split-heads" : "");
          all.push_back({name, pattern_of(rule), replacement_of(rule)});
        }
    return all;
  }();
  for (const Text& text : texts) plugin.rule(text.name.c_str(), text.pattern.c_str(), text.replacement.c_str());
}

}  // namespace

void add_attention(Builder& plugin) {
  constexpr heddle_dtype_set taken = dtypes<f16, bf16, float, double>(), fused = dtypes<f16, bf16>();
  const auto of_all = [](heddle_dtype_set set) { return std::vector<heddle_dtype_set>(4, set); };
  Op attention("Attention", "cuda", 1);
  attention
      .doc(
          "Computes scaled dot-product attention (Vaswani et al. 2017) for each head of each sequence. Nets of f16 and bf16 numbers on a "
          "GPU get it in place of their products and softmax. With divides 1, scores are divided by the scale.")
      .formula("output = softmax(scale query key^T) value")
      .shapes(
          "query, key and value are [batches, heads, rows, columns] with heads_axis 1, and [batches, rows, heads, columns] with 2; output "
          "has the dims of query, and the columns of value");
  attention.in("query", taken)
      .in("key", taken)
      .in("value", taken)
      .optional("scale", taken)
      .out("output", {}, taken)
      .attribute("heads_axis", 1)
      .attribute("divides", 0)
      .example("f32[1,1,2,2] = 1 0 0 1, f32[1,1,1,2] = 1 1, f32[1,1,1,2] = 3 -1 -> f32[1,1,2,2] = 3 -1 3 -1",
               "by hand: one key has all the weight")
      .infer(infer_attention)
      .cost<attention_cost>();
  attention.kernel<FusedAttention>("cuda", of_all(fused)).kernel_name("cuda:cudnn_attention").priority(1);
  attention.kernel<ComposedAttention>("cuda", of_all(taken)).kernel_name("cuda:cublaslt_attention");
  plugin.add(attention);
  add_rules(plugin);
}

}  // namespace heddle::cuda
