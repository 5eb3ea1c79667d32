// The nets of make_parity.py, with the same names of inputs, variables and losses. The contents of their variables come from a file; their
// batch is a symbol.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/net.h"

namespace heddle::testing_derive {

class ParityNet : public NetBuilder {
 public:
  // Returns the content of a variable by its name.
  using Contents = std::function<std::shared_ptr<const Blob>(const std::string&)>;
  ParityNet(const std::string& name, Contents contents) : NetBuilder(name), contents_(std::move(contents)) {
    if (name == "mlp") mlp();
    if (name == "convolution") convolution();
    if (name == "embedding") embedding();
    if (name == "transformer") transformer();
    if (name == "inception") inception();
    if (name == "lstm") lstm();
    if (name == "residual") residual();
    if (name == "bags") bags();
  }

 private:
  using Ints = std::vector<int64_t>;

  ValueId trainable(const std::string& name) { return variable(name, contents_(name), true); }
  // An input whose first extent is N.
  ValueId batch(const std::string& name, DType dtype, const Ints& dims) {
    DeclaredType type;
    type.dtype = dtype;
    type.ranked = true;
    type.dims = {Dim::named("N")};
    for (const int64_t dim : dims) type.dims.push_back(Dim::of(dim));
    return input(name, type);
  }
  ValueId number(const std::string& name, double value) { return constant(name, Blob::copy_of(DType::f64, Shape{}, &value)); }
  ValueId cross_entropy(const std::string& name, ValueId scores, ValueId labels) {
    return add1("SoftmaxCrossEntropyLoss", name, {scores, labels});
  }
  // x W + b, over the last dimension.
  ValueId projected(const std::string& name, ValueId x, const std::string& w, const std::string& b) {
    return add1("Add", name, {add1("MatMul", name + ".product", {x, trainable(w)}), trainable(b)});
  }

  void mlp() {
    const ValueId x = batch("x", DType::f64, {5}), labels = batch("labels", DType::i64, {});
    const ValueId hidden = add1("Gemm", "hidden", {x, trainable("w1"), trainable("b1")}, {{"transB", int64_t{1}}});
    const ValueId scores = add1("Gemm", "scores", {add1("Relu", "relu", {hidden}), trainable("w2"), trainable("b2")});
    cross_entropy("loss", scores, labels);
  }

  // Normalises by the batch; updates the running statistics <name>.mean and <name>.variance.
  ValueId normalized_by_batch(const std::string& name, ValueId x) {
    const ValueId mean = variable(name + ".mean", contents_(name + ".mean"));
    const ValueId variance = variable(name + ".variance", contents_(name + ".variance"));
    const std::vector<ValueId> y =
        add("BatchNormalization", name, {x, trainable(name + ".scale"), trainable(name + ".bias"), mean, variance}, 3,
            {{"training_mode", int64_t{1}}, {"momentum", 0.9}, {"epsilon", 1e-5}});
    updates(add1("Assign", name + ".next mean", {mean, y[1]}, {}, "heddle"), mean);
    updates(add1("Assign", name + ".next variance", {variance, y[2]}, {}, "heddle"), variance);
    return y[0];
  }

  void convolution() {
    const ValueId x = batch("x", DType::f64, {2, 6, 6}), labels = batch("labels", DType::i64, {});
    const ValueId mean = variable("mean", contents_("mean")), variance = variable("variance", contents_("variance"));
    const ValueId filtered = add1("Conv", "conv", {x, trainable("filter")}, {{"pads", Ints{1, 1, 1, 1}}});
    const std::vector<ValueId> normalized =
        add("BatchNormalization", "normalized", {filtered, trainable("scale"), trainable("bias"), mean, variance}, 3,
            {{"training_mode", int64_t{1}}, {"momentum", 0.9}, {"epsilon", 1e-5}});
    updates(add1("Assign", "next mean", {mean, normalized[1]}, {}, "heddle"), mean);
    updates(add1("Assign", "next variance", {variance, normalized[2]}, {}, "heddle"), variance);
    const ValueId pooled =
        add1("MaxPool", "pool", {add1("Relu", "relu", {normalized[0]})}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    const ValueId flat = add1("Flatten", "flat", {pooled});
    cross_entropy("loss", add1("Gemm", "scores", {flat, trainable("w"), trainable("b")}, {{"transB", int64_t{1}}}), labels);
  }

  void embedding() {
    const ValueId first = batch("first", DType::i64, {3}), second = batch("second", DType::i64, {2});
    const ValueId labels = batch("labels", DType::i64, {}), table = trainable("table");
    const auto rows = [&](const std::string& name, ValueId indices) {
      return add1("Flatten", name + ".flat", {add1("Gather", name + ".rows", {table, indices})});
    };
    const ValueId joined = add1("Concat", "joined", {rows("first", first), rows("second", second)}, {{"axis", int64_t{1}}});
    const ValueId hidden = add1("Relu", "relu", {add1("Gemm", "hidden", {joined, trainable("w1"), trainable("b1")})});
    cross_entropy("loss", add1("Gemm", "scores", {hidden, trainable("w2"), trainable("b2")}), labels);
  }

  ValueId layer_normalized(const std::string& which, ValueId x) {
    return add1("LayerNormalization", "normalized" + which, {x, trainable("scale" + which), trainable("bias" + which)},
                {{"axis", int64_t{-1}}, {"epsilon", 1e-5}});
  }
  // [N, 5, 4] -> [N, 2, 5, 2]
  ValueId heads(const std::string& name, ValueId x) {
    const ValueId parts = add1("Reshape", name + ".parts", {x, constant_ints(name + ".extents", {0, 5, 2, 2})});
    return add1("Transpose", name + ".heads", {parts}, {{"perm", Ints{0, 2, 1, 3}}});
  }
  void transformer() {
    const ValueId input = batch("x", DType::f64, {5, 4}), labels = batch("labels", DType::i64, {});
    ValueId x = add1("Add", "placed", {input, trainable("position")});
    const ValueId y = layer_normalized("1", x);
    const ValueId q = heads("q", projected("query", y, "wq", "bq")), k = heads("k", add1("MatMul", "key", {y, trainable("wk")}));
    const ValueId v = heads("v", projected("value", y, "wv", "bv"));
    const ValueId products = add1("MatMul", "products", {q, add1("Transpose", "k.turned", {k}, {{"perm", Ints{0, 1, 3, 2}}})});
    const ValueId weights = add1("Softmax", "weights", {add1("Mul", "scaled", {products, number("scale", 0.5)})}, {{"axis", int64_t{-1}}});
    const ValueId read = add1("Transpose", "read", {add1("MatMul", "attention", {weights, v})}, {{"perm", Ints{0, 2, 1, 3}}});
    const ValueId whole = add1("Reshape", "whole", {read, constant_ints("whole.extents", {0, 5, 4})});
    x = add1("Add", "attended", {x, projected("out", whole, "wo", "bo")});
    const ValueId hidden = add1("Gelu", "gelu", {projected("hidden", layer_normalized("2", x), "w1", "b1")});
    x = add1("Add", "done", {x, projected("narrow", hidden, "w2", "b2")});
    const ValueId mean = add1("ReduceMean", "mean", {x, constant_ints("axes", {1})}, {{"keepdims", int64_t{0}}});
    cross_entropy("loss", add1("Gemm", "scores", {mean, trainable("w"), trainable("b")}), labels);
  }

  ValueId convolved(const std::string& name, ValueId x, std::vector<Attribute> attributes) {
    return add1("Conv", name, {x, trainable(name + ".filter"), trainable(name + ".bias")}, std::move(attributes));
  }
  void inception() {
    const ValueId x = batch("x", DType::f64, {2, 6, 6}), labels = batch("labels", DType::i64, {});
    const Attribute pads = {"pads", Ints{1, 1, 1, 1}}, window = {"kernel_shape", Ints{3, 3}};
    const ValueId one = convolved("one", x, {}), three = convolved("three", x, {pads});
    const ValueId average = convolved("average", add1("AveragePool", "average.pool", {one}, {window, pads}), {});
    const ValueId largest = convolved("largest", add1("MaxPool", "largest.pool", {three}, {window, pads}), {});
    const ValueId joined = add1("Relu", "relu", {add1("Concat", "joined", {one, three, average, largest}, {{"axis", int64_t{1}}})});
    const auto loss_of = [&](const std::string& name, ValueId y, const std::string& prefix) {
      const ValueId flat = add1("Flatten", name + ".flat", {add1("GlobalAveragePool", name + ".pool", {y})});
      const ValueId scores =
          add1("Gemm", name + ".scores", {flat, trainable(prefix + "w"), trainable(prefix + "b")}, {{"transB", int64_t{1}}});
      return cross_entropy(name, scores, labels);
    };
    loss_of("loss", add1("Relu", "main.relu", {convolved("main", joined, {pads, {"strides", Ints{2, 2}}})}), "");
    add1("Mul", "auxiliary", {loss_of("beside", joined, "beside."), number("quarter", 0.25)});
  }

  void lstm() {
    const ValueId x = batch("x", DType::f64, {5, 3}), labels = batch("labels", DType::i64, {});
    const ValueId turned = add1("Transpose", "time first", {x}, {{"perm", Ints{1, 0, 2}}});
    const std::vector<ValueId> y = add("LSTM", "lstm", {turned, trainable("W"), trainable("R"), trainable("B")}, 2,
                                       {{"hidden_size", int64_t{3}}, {"direction", std::string("bidirectional")}});
    const ValueId mean = add1("ReduceMean", "mean", {y[0], constant_ints("time", {0})}, {{"keepdims", int64_t{0}}});
    const ValueId both = add1("Transpose", "both", {add1("Add", "states", {mean, y[1]})}, {{"perm", Ints{1, 0, 2}}});
    cross_entropy("loss", add1("Gemm", "scores", {add1("Flatten", "flat", {both}), trainable("w"), trainable("b")}), labels);
  }

  // ResNet-18 with fewer channels.
  void residual() {
    const ValueId input = batch("x", DType::f64, {2, 8, 8}), labels = batch("labels", DType::i64, {});
    const auto conv = [&](const std::string& name, ValueId x, const std::string& norm, int64_t stride, int64_t pad) {
      return normalized_by_batch(norm, add1("Conv", name, {x, trainable(name + ".filter")},
                                            {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}}));
    };
    ValueId x = add1("Relu", "relu", {conv("conv", input, "bn", 1, 1)});
    for (const int stage : {1, 2, 3, 4})
      for (const int i : {0, 1}) {
        const std::string name = "layer" + std::to_string(stage) + "." + std::to_string(i);
        const bool narrows = i == 0 && (stage == 2 || stage == 3);
        ValueId y = add1("Relu", name + ".relu1", {conv(name + ".conv1", x, name + ".bn1", narrows ? 2 : 1, 1)});
        y = conv(name + ".conv2", y, name + ".bn2", 1, 1);
        if (narrows) x = conv(name + ".conv3", x, name + ".bn3", 2, 0);
        x = add1("Relu", name + ".relu2", {add1("Add", name + ".sum", {x, y})});
      }
    const ValueId flat = add1("Flatten", "flat", {add1("GlobalAveragePool", "pool", {x})});
    cross_entropy("loss", add1("Gemm", "scores", {flat, trainable("w"), trainable("b")}), labels);
  }

  // Two lookups in one table, one of them with computed weights, and one in another table.
  void bags() {
    const ValueId x = batch("x", DType::f64, {2}), first = batch("first", DType::i64, {3}), second = batch("second", DType::i64, {2});
    const ValueId third = batch("third", DType::i64, {5}), labels = batch("labels", DType::i64, {}), table = trainable("table1");
    const ValueId weights = add1("MatMul", "weights", {x, trainable("w0")});
    const ValueId sums = add1("EmbeddingBag", "sums", {table, first, {}, weights}, {}, "heddle");
    const Attribute mean = {"mode", std::string("mean")};
    const ValueId means = add1("EmbeddingBag", "means", {table, second}, {mean}, "heddle");
    const ValueId others = add1("EmbeddingBag", "others", {trainable("table2"), third}, {mean}, "heddle");
    const ValueId joined = add1("Concat", "joined", {sums, means, others}, {{"axis", int64_t{1}}});
    const ValueId hidden = add1("Relu", "relu", {add1("Gemm", "hidden", {joined, trainable("w1"), trainable("b1")})});
    cross_entropy("loss", add1("Gemm", "scores", {hidden, trainable("w2"), trainable("b2")}), labels);
  }

  const Contents contents_;
};

}  // namespace heddle::testing_derive
