// Operators that between them use every part of the boundary, written for clarity: naive loops, f32. tests/plugin/awkward_test.cc runs
// them.
#include <algorithm>
#include <cmath>

#include "../counter.h"
#include "../windows.h"
#include "heddle/op.h"
#include "heddle/op/philox.h"
using namespace heddle::plugin;

namespace {

// y[i] = max(x[i], 0): a plain function, tiled by elementwise().
Status relu(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = std::max(x[i], 0.0f);
  return {};
}

// c = a + b with NumPy's broadcast.
int64_t source_index(int64_t index, Dims out, Dims in) {
  int64_t source = 0, stride = 1;
  for (int d = out.rank - 1, k = in.rank - 1; k >= 0; --d, --k) {
    if (in.data[k] != 1) source += index % out.data[d] * stride;
    stride *= in.data[k];
    index /= out.data[d];
  }
  return source;
}
Status add(In<float> a, In<float> b, Out<float> c) {
  for (int64_t i = 0; i < c.size; ++i) c[i] = a[source_index(i, c.dims, a.dims)] + b[source_index(i, c.dims, b.dims)];
  return {};
}

// c = a b, [m, k] x [k, n]. A kernel class: one tile a row; a constant b is packed by columns once.
Status infer_matmul(InferContext& c) {
  const Dims a = c.dims(0), b = c.dims(1);
  if (a.rank != 2 || b.rank != 2) return invalid("a is " + dims_text(a) + " and b is " + dims_text(b) + ", expected two matrices");
  if (a[1] != b[0])
    return invalid("a " + dims_text(a) + " has " + std::to_string(a[1]) + " columns but b " + dims_text(b) + " has other rows");
  c.set_dims(0, {a[0], b[1]});
  return {};
}
class MatMul {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor &a = *c.input(0), &b = *c.input(1);
    k_ = a.dims[1];
    n_ = b.dims[1];
    packed_ = nullptr;
    if (b.data) {
      packed_ =
          static_cast<const float*>(c.prepack(1, "columns", b.byte_size, [&](void* to) { pack(static_cast<const float*>(b.data), to); }));
      if (!packed_) return {HEDDLE_ERROR_OUT_OF_MEMORY, ""};
    }
    c.set_tiles(a.dims[0]);
    c.set_cost_ns(static_cast<double>(a.dims[0] * k_ * n_));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> a = input<float>(c, 0), b = input<float>(c, 1);
    const Out<float> y = output<float>(c, 0);
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n_; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < k_; ++k) sum += a[i * k_ + k] * (packed_ ? packed_[j * k_ + k] : b[k * n_ + j]);
        y[i * n_ + j] = sum;
      }
    return {};
  }

 private:
  void pack(const float* b, void* to) const {
    for (int64_t j = 0; j < n_; ++j)
      for (int64_t k = 0; k < k_; ++k) static_cast<float*>(to)[j * k_ + k] = b[k * n_ + j];
  }
  int64_t k_ = 0, n_ = 0;
  const float* packed_ = nullptr;
};

// y = x * w + b over NCHW windows (windows.h); x [n, c, h, w], w [m, c, kh, kw], optional b [m]. One tile an output plane.
Status infer_conv(InferContext& c) {
  const Windows windows(c.attributes);
  if (c.dims(0).rank != 4 || c.dims(1).rank != 4)
    return invalid("x is " + dims_text(c.dims(0)) + " and w is " + dims_text(c.dims(1)) + ", expected rank 4");
  if (c.dims(0)[1] != c.dims(1)[1])
    return invalid("x has " + std::to_string(c.dims(0)[1]) + " channels, w takes " + std::to_string(c.dims(1)[1]));
  const int64_t height = windows.extent(c.dims(0)[2], c.dims(1)[2], 0), width = windows.extent(c.dims(0)[3], c.dims(1)[3], 1);
  if (height < 1 || width < 1) return invalid("the window " + dims_text(c.dims(1)) + " does not fit into x " + dims_text(c.dims(0)));
  c.set_dims(0, {c.dims(0)[0], c.dims(1)[0], height, width});
  return {};
}
class Conv {
 public:
  Status create(const CreateContext& c) {
    windows_ = Windows(c.attributes);
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_tiles(c.output(0)->dims[0] * c.output(0)->dims[1]);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0), w = input<float>(c, 1), b = input<float>(c, 2);
    const Out<float> y = output<float>(c, 0);
    const int64_t planes = w.dims[0], plane = y.dims[2] * y.dims[3];
    for (int64_t tile = begin; tile < end; ++tile)
      for (int64_t at = 0; at < plane; ++at) {
        const int64_t n = tile / planes, m = tile % planes;
        y[tile * plane + at] = windows_.sum(x, w, n, m, at / y.dims[3], at % y.dims[3]) + (b.tensor ? b[m] : 0.0f);
      }
    return {};
  }

 private:
  Windows windows_;
};

// The sum of one or more tensors of one shape.
Status infer_sum(InferContext& c) {
  for (uint32_t i = 1; i < c.input_count(); ++i)
    if (dims_text(c.dims(i)) != dims_text(c.dims(0)))
      return invalid("input " + std::to_string(i) + " is " + dims_text(c.dims(i)) + ", input 0 is " + dims_text(c.dims(0)));
  c.set_dims(0, c.dims(0));
  return {};
}
Status sum(Ins<float> xs, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) {
    float total = 0;
    for (uint32_t k = 0; k < xs.count; ++k) total += xs[k][i];
    y[i] = total;
  }
  return {};
}

// Rows of x, cut into as many equal parts as outputs are asked for.
Status infer_split(InferContext& c) {
  std::vector<int64_t> dims(c.dims(0).begin(), c.dims(0).end());
  if (dims.empty() || dims[0] % c.output_count() != 0)
    return invalid("x is " + dims_text(c.dims(0)) + ", its first extent does not divide by " + std::to_string(c.output_count()));
  dims[0] /= c.output_count();
  for (uint32_t i = 0; i < c.output_count(); ++i) c.set_dims(i, dims);
  return {};
}
Status split(In<float> x, Outs<float> parts) {
  const float* from = x.data;
  for (uint32_t i = 0; i < parts.count; ++i) {
    const int64_t size = x.size / parts.count;
    if (parts.tensors[i]) std::copy_n(from, size, parts[i].data);
    from += size;
  }
  return {};
}

// x with other extents; one of them may be -1. A view: nothing runs when the runtime aliases it.
Status infer_reshape(InferContext& c) {
  if (!c.known(1)) {
    c.set_dynamic(0, c.dims(1).rank == 1 ? static_cast<int>(c.dims(1)[0]) : 0);
    return {};
  }
  std::vector<int64_t> dims = c.ints(1);
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (dims[i] < 0)
      return invalid("shape has " + std::to_string(dims[i]) + " at " + std::to_string(i));
    else
      known *= dims[i];
  }
  const int64_t count = c.input(0).element_count;
  if (open >= 0 && known > 0) dims[static_cast<size_t>(open)] = count / known;
  if (open >= 0 ? known == 0 || count % known != 0 : known != count)
    return invalid("x " + dims_text(c.dims(0)) + " does not reshape to " + dims_text({dims.data(), static_cast<int>(dims.size())}));
  c.set_dims(0, dims);
  return {};
}
Status reshape(In<void> x, In<int64_t>, Out<void> y) {
  if (y.data != x.data) std::memcpy(y.data, x.data, x.tensor->byte_size);
  return {};
}

// Indices of the elements that are not zero, [rank, at most x.size]: the extent is known when it ran.
Status infer_nonzero(InferContext& c) {
  c.set_dims(0, {c.dims(0).rank, c.input(0).element_count});
  c.set_bounded(0, 1);
  return {};
}
Status nonzero(In<float> x, Out<int64_t> y) {
  int64_t found = 0;
  for (int64_t i = 0; i < x.size; ++i) found += x[i] != 0;
  int64_t at = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    if (x[i] == 0) continue;
    int64_t rest = i;
    for (int d = x.dims.rank - 1; d >= 0; --d) {
      y[d * found + at] = rest % x.dims[d];
      rest /= x.dims[d];
    }
    ++at;
  }
  *y.tensor->extent = found;
  return {};
}

// w@1 = w - rate * dw; w is a variable.
Status sgd(In<float> w, In<float> dw, In<float> rate, Out<float> next) {
  for (int64_t i = 0; i < w.size; ++i) next[i] = w[i] - rate[0] * dw[i];
  return {};
}

// Each element 0 with probability `ratio`, else x / (1 - ratio). The word of an element depends on seed, stream, step and position alone.
struct Ratio {
  explicit Ratio(const Attributes& attributes) : value(static_cast<float>(attributes.f("ratio"))) {}
  float value;
};
Status dropout(In<float> x, const Ratio& ratio, const RunContext& context, Out<float> y) {
  const Philox philox(*context.run_state, context.random_stream);
  for (int64_t i = 0; i < x.size; ++i) {
    const uint32_t word = philox.block(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
    y[i] = unit_float(word) < ratio.value ? 0.0f : x[i] / (1 - ratio.value);
  }
  return {};
}

// One of two subnets, which take the inputs behind the condition.
Status infer_if(InferContext& c) {
  std::vector<heddle_type> types;
  for (const char* branch : {"else_branch", "then_branch"})
    HEDDLE_PLUGIN_CHECK(Subnet(c.attributes, branch).infer(c, inputs_from(c, 1), c.output_count(), &types));
  for (uint32_t i = 0; i < c.output_count(); ++i) c.set_type(i, types[i]);
  return {};
}
Status if_subnets(const SubnetContext& c) {
  for (const char* branch : {"else_branch", "then_branch"}) HEDDLE_PLUGIN_CHECK(c.declare(branch, inputs_from(c, 1)));
  return {};
}
class If {
 public:
  Status create(const CreateContext& c) {
    branches_[0] = Subnet(c.attributes, "else_branch");
    branches_[1] = Subnet(c.attributes, "then_branch");
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const Subnet& taken = branches_[input<bool>(c, 0)[0] ? 1 : 0];
    return taken.run(c, 0, inputs_from(c, 1), {c.outputs, c.output_count});
  }

 private:
  Subnet branches_[2];
};

// The next number of a counter that another plugin publishes (awkward_provider.cc).
class Ticket {
 public:
  Status create(const CreateContext& c) { return counter_.ask(c, "awkward_provider.counter"); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    Counter* const counter = counter_(c);
    output<int64_t>(c, 0)[0] = counter->next(counter);
    return {};
  }

 private:
  Needed<Counter> counter_;
};
Status infer_ticket(InferContext& c) {
  c.set_dims(0, std::vector<int64_t>{});
  return {};
}

}  // namespace

HEDDLE_PLUGIN("awkward", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(Op("Relu", "awkward").in("x", f32).out("y", same_as("x"), f32).in_place("y", "x").cpu<relu>().elementwise());
  plugin.add(Op("Add", "awkward").in("a", f32).in("b", f32).out("c", broadcast(), f32).cpu<add>());
  plugin.add(Op("MatMul", "awkward").in("a", f32).in("b", f32).out("c", {}, f32).infer(infer_matmul).cpu<MatMul>());
  plugin.add(Op("Conv", "awkward")
                 .in("x", f32)
                 .in("w", f32)
                 .optional("b", f32)
                 .out("y", {}, f32)
                 .maybe("strides", HEDDLE_ATTRIBUTE_INTS)
                 .maybe("pads", HEDDLE_ATTRIBUTE_INTS)
                 .infer(infer_conv)
                 .cpu<Conv>());
  plugin.add(Op("Sum", "awkward").variadic("xs", f32).out("y", {}, f32).infer(infer_sum).cpu<sum>());
  plugin.add(Op("Split", "awkward").in("x", f32).variadic_out("parts", f32).infer(infer_split).cpu<split>());
  plugin.add(Op("Reshape", "awkward")
                 .in("x")
                 .shape_operand("shape")
                 .out("y")
                 .in_place("y", "x")
                 .traits(HEDDLE_TRAIT_VIEW)
                 .infer(infer_reshape)
                 .cpu<reshape>());
  plugin.add(Op("NonZero", "awkward").in("x", f32).out_as("y", HEDDLE_I64).infer(infer_nonzero).cpu<nonzero>());
  plugin.add(
      Op("SgdUpdate", "awkward").in("w", f32).in("dw", f32).in("rate", f32).out("next", same_as("w"), f32).updates("next", "w").cpu<sgd>());
  plugin.add(
      Op("Dropout", "awkward").in("x", f32).out("y", same_as("x"), f32).attribute("ratio", 0.5).traits(HEDDLE_TRAIT_RANDOM).cpu<dropout>());
  plugin.add(Op("If", "awkward")
                 .in("condition", dtypes<bool>(), nullptr)
                 .on_host()
                 .any_number("captures")
                 .variadic_out("outputs", any_dtype, nullptr)
                 .may_update()
                 .subnet("then_branch", SubnetPorts().inputs_from(1))
                 .subnet("else_branch", SubnetPorts().inputs_from(1))
                 .subnets(if_subnets)
                 .infer(infer_if)
                 .cpu<If>());
  plugin.add(Op("Ticket", "awkward").out_as("number", HEDDLE_I64).traits(HEDDLE_TRAIT_IMPURE).infer(infer_ticket).cpu<Ticket>());
}
