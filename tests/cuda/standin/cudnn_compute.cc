// What a graph of cuDNN's computes: plain loops over elements in the order of their dims, sums in double.
#include <cmath>
#include <cstring>

#include "cudnn_objects.h"
#include "heddle/op/half_floats.h"

namespace heddle::cuda::standin {
namespace {

using Values = std::vector<double>;  // row-major by dims, however they are stored

// Calls body(element's place in the tensor's order, place in memory) for each.
template <class Body>
void for_each(const TensorInfo& t, const Body& body) {
  std::vector<int64_t> at(t.dims.size(), 0);
  for (int64_t i = 0; i < t.element_count(); ++i) {
    int64_t place = 0;
    for (size_t k = 0; k < at.size(); ++k) place += at[k] * t.strides[k];
    body(static_cast<size_t>(i), place);
    for (size_t k = at.size(); k-- > 0;) {
      if (++at[k] < t.dims[k]) break;
      at[k] = 0;
    }
  }
}

double load(const TensorInfo& t, const void* memory, int64_t place) {
  if (t.dtype == CUDNN_DATA_DOUBLE) return static_cast<const double*>(memory)[place];
  if (t.dtype == CUDNN_DATA_FLOAT) return static_cast<double>(static_cast<const float*>(memory)[place]);
  if (t.dtype == CUDNN_DATA_HALF) return static_cast<double>(static_cast<float>(static_cast<const plugin::f16*>(memory)[place]));
  return static_cast<double>(static_cast<float>(static_cast<const plugin::bf16*>(memory)[place]));
}

void store(const TensorInfo& t, void* memory, int64_t place, double value) {
  if (t.dtype == CUDNN_DATA_DOUBLE) static_cast<double*>(memory)[place] = value;
  if (t.dtype == CUDNN_DATA_FLOAT) static_cast<float*>(memory)[place] = static_cast<float>(value);
  if (t.dtype == CUDNN_DATA_HALF) static_cast<plugin::f16*>(memory)[place] = plugin::f16(static_cast<float>(value));
  if (t.dtype == CUDNN_DATA_BFLOAT16) static_cast<plugin::bf16*>(memory)[place] = plugin::bf16(static_cast<float>(value));
}

// With ten bits behind the point, as tensor cores read a float.
double narrowed(double value) {
  const auto f = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof(bits));
  bits &= ~uint32_t{0x1fff};
  float back = 0;
  std::memcpy(&back, &bits, sizeof(back));
  return static_cast<double>(back);
}

// Places of a convolution's taps: calls body(place in x, place in w, place in y) for each product.
template <class Body>
void for_each_product(const OperationInfo& o, const Body& body) {
  const size_t spatial = o.stride.size();
  int64_t ext[3][3];  // of x, w, y; a dimension of extent 1 stands before two
  int64_t stride[3], dilation[3], begin[3];
  for (size_t i = 0; i < 3; ++i) {
    const bool there = i + spatial >= 3;
    const size_t k = there ? i + spatial - 3 : 0;
    ext[0][i] = there ? o.x.dims[k + 2] : 1;
    ext[1][i] = there ? o.w.dims[k + 2] : 1;
    ext[2][i] = there ? o.y.dims[k + 2] : 1;
    stride[i] = there ? o.stride[k] : 1;
    dilation[i] = there ? o.dilation[k] : 1;
    begin[i] = there ? o.pad_begin[k] : 0;
  }
  const int64_t channels = o.x.dims[1], filters = o.y.dims[1], of_group = o.w.dims[1], groups = channels / of_group;
  const auto place = [](const int64_t(&e)[3], int64_t a, int64_t b, int64_t c) { return (a * e[1] + b) * e[2] + c; };
  const auto size = [](const int64_t(&e)[3]) { return e[0] * e[1] * e[2]; };
  for (int64_t n = 0; n < o.x.dims[0]; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t out = 0; out < size(ext[2]); ++out)
        for (int64_t c = 0; c < of_group; ++c)
          for (int64_t tap = 0; tap < size(ext[1]); ++tap) {
            int64_t at[3], rest_out = out, rest_tap = tap;
            bool inside = true;
            for (size_t i = 3; i-- > 0;) {
              at[i] = rest_out % ext[2][i] * stride[i] - begin[i] + rest_tap % ext[1][i] * dilation[i];
              rest_out /= ext[2][i];
              rest_tap /= ext[1][i];
              inside = inside && at[i] >= 0 && at[i] < ext[0][i];
            }
            if (!inside) continue;
            const int64_t channel = f / (filters / groups) * of_group + c;
            body((n * channels + channel) * size(ext[0]) + place(ext[0], at[0], at[1], at[2]), (f * of_group + c) * size(ext[1]) + tap,
                 (n * filters + f) * size(ext[2]) + out);
          }
}

double pointwise(const OperationInfo& o, double x, double b) {
  switch (o.mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-x));
    case CUDNN_POINTWISE_RELU_FWD:
      if (x <= o.lower) return o.lower + o.slope * (x - o.lower);
      return o.has_upper && x > o.upper ? o.upper : x;
    default:
      return NAN;  // no engine is offered for it
  }
}

// Element `i` of a tensor of `to`'s dims in one that broadcasts to it.
size_t broadcast_place(const TensorInfo& from, const TensorInfo& to, size_t i) {
  size_t place = 0, stride = 1;
  for (size_t k = to.dims.size(); k-- > 0;) {
    const size_t position = i % static_cast<size_t>(to.dims[k]);
    i /= static_cast<size_t>(to.dims[k]);
    if (from.dims[k] > 1) place += position * stride;
    stride *= static_cast<size_t>(from.dims[k]);
  }
  return place;
}

}  // namespace

void compute(const GraphInfo& graph, const EngineInfo& engine, const std::map<int64_t, void*>& addresses) {
  std::map<int64_t, Values> values;
  const auto value_of = [&](const TensorInfo& t) -> Values& {
    Values& v = values[t.id];
    if (!v.empty()) return v;
    v.resize(static_cast<size_t>(t.element_count()));
    if (!t.is_virtual) for_each(t, [&](size_t i, int64_t place) { v[i] = load(t, addresses.at(t.id), place); });
    return v;
  };
  for (const OperationInfo& o : graph.operations) {
    const TensorInfo& to = o.written();
    Values result(static_cast<size_t>(to.element_count()), 0.0);
    const auto read = [&](double v, const TensorInfo& t) { return engine.narrows && t.dtype == CUDNN_DATA_FLOAT ? narrowed(v) : v; };
    if (o.kind == OperationInfo::Kind::pointwise) {
      const Values& x = value_of(o.x);
      const Values* const b = o.has_b ? &value_of(o.w) : nullptr;
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = pointwise(o, x[broadcast_place(o.x, to, i)], b ? (*b)[broadcast_place(o.w, to, i)] : 0);
    } else {
      const bool forward = o.kind == OperationInfo::Kind::convolution;
      const TensorInfo& from = forward ? o.x : o.y;
      const Values &w = value_of(o.w), &source = value_of(from);
      for_each_product(o, [&](int64_t x, int64_t tap, int64_t y) {
        const double factor = read(w[static_cast<size_t>(tap)], o.w);
        const auto at = static_cast<size_t>(forward ? x : y);
        result[static_cast<size_t>(forward ? y : x)] += factor * read(source[at], from);
      });
    }
    if (to.dtype == CUDNN_DATA_FLOAT)
      for (double& v : result) v = static_cast<double>(static_cast<float>(v));
    if (!to.is_virtual) for_each(to, [&](size_t i, int64_t place) { store(to, addresses.at(to.id), place, result[i]); });
    values[to.id] = std::move(result);
  }
}

}  // namespace heddle::cuda::standin
