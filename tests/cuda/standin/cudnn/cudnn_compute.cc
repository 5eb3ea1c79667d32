// Computes a graph of cuDNN's: plain loops over elements in the order of their dims, sums in double.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cudnn_objects.h"
#include "heddle/op/half_floats.h"

namespace heddle::cuda::standin {
namespace {

using Values = std::vector<double>;  // row-major by dims, however they are stored

// Calls body(element's place in the tensor's order, place in memory) for each element.
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

// Rounds to ten bits after the binary point, as tensor cores read a float.
double narrowed(double value) {
  const auto f = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof(bits));
  bits &= ~uint32_t{0x1fff};
  float back = 0;
  std::memcpy(&back, &bits, sizeof(back));
  return static_cast<double>(back);
}

// Products of a convolution that have one weight and lie in one row of the output: `count` of them, one element on in y and `stride` in x.
struct Row {
  size_t x, w, y;  // places of the first
  size_t count, stride;
};

// Calls body(Row) for all of a convolution's products.
template <class Body>
void for_each_row(const OperationInfo& o, const Body& body) {
  const size_t spatial = o.stride.size();
  int64_t ext[3][3];  // of x, w, y; two dimensions are preceded by one of extent 1
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
  const auto rows_of = [&](int64_t x_image, int64_t y_image, int64_t weights, int64_t tap) {
    const int64_t t[3] = {tap / ext[1][2] / ext[1][1], tap / ext[1][2] % ext[1][1], tap % ext[1][2]};
    const int64_t first = t[2] * dilation[2] - begin[2];  // in x, of the first element of an output's row
    const int64_t from = first >= 0 ? 0 : (-first + stride[2] - 1) / stride[2];
    const int64_t to = first >= ext[0][2] ? 0 : std::min(ext[2][2], (ext[0][2] - 1 - first) / stride[2] + 1);
    if (from >= to) return;
    for (int64_t i = 0; i < ext[2][0]; ++i)
      for (int64_t j = 0; j < ext[2][1]; ++j) {
        const int64_t at_i = i * stride[0] - begin[0] + t[0] * dilation[0], at_j = j * stride[1] - begin[1] + t[1] * dilation[1];
        if (at_i < 0 || at_i >= ext[0][0] || at_j < 0 || at_j >= ext[0][1]) continue;
        body(Row{static_cast<size_t>(x_image + place(ext[0], at_i, at_j, first + from * stride[2])), static_cast<size_t>(weights + tap),
                 static_cast<size_t>(y_image + place(ext[2], i, j, from)), static_cast<size_t>(to - from), static_cast<size_t>(stride[2])});
      }
  };
  for (int64_t n = 0; n < o.x.dims[0]; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t c = 0; c < of_group; ++c)
        for (int64_t tap = 0; tap < size(ext[1]); ++tap)
          rows_of((n * channels + f / (filters / groups) * of_group + c) * size(ext[0]), (n * filters + f) * size(ext[2]),
                  (f * of_group + c) * size(ext[1]), tap);
}

[[gnu::optimize("O3")]] void convolve(const OperationInfo& o, const Values& source, const Values& w, Values& result) {
  const bool forward = o.kind == OperationInfo::Kind::convolution;
  const double* const from = source.data();
  double* const to = result.data();
  for_each_row(o, [&](const Row& row) {
    const double factor = w[row.w];
    const double* const read = from + (forward ? row.x : row.y);
    double* const write = to + (forward ? row.y : row.x);
    if (row.stride == 1) {
      for (size_t i = 0; i < row.count; ++i) write[i] += factor * read[i];
    } else if (forward) {
      for (size_t i = 0; i < row.count; ++i) write[i] += factor * read[i * row.stride];
    } else {
      for (size_t i = 0; i < row.count; ++i) write[i * row.stride] += factor * read[i];
    }
  });
}

// Computes softmax(factor query key^T) value, row by row.
void attend(const OperationInfo& o, const Values& query, const Values& key, const Values& value, double factor, Values& result) {
  const auto images = static_cast<size_t>(o.x.dims[0] * o.x.dims[1]), rows = static_cast<size_t>(o.x.dims[2]),
             keys = static_cast<size_t>(o.w.dims[2]), depth = static_cast<size_t>(o.x.dims[3]), width = static_cast<size_t>(o.y.dims[3]);
  Values weights(keys);
  for (size_t row = 0; row < images * rows; ++row) {
    const size_t image = row / rows;
    for (size_t k = 0; k < keys; ++k) {
      weights[k] = 0;
      for (size_t c = 0; c < depth; ++c) weights[k] += factor * query[row * depth + c] * key[(image * keys + k) * depth + c];
    }
    const double most = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - most);
    for (size_t c = 0; c < width; ++c)
      for (size_t k = 0; k < keys; ++k) result[row * width + c] += weights[k] / sum * value[(image * keys + k) * width + c];
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

// Returns the place of element `i` of a tensor of `to`'s dims in a tensor that broadcasts to it.
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
    if (o.kind == OperationInfo::Kind::pointwise) {
      const Values& x = value_of(o.x);
      const Values* const b = o.has_b ? &value_of(o.w) : nullptr;
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = pointwise(o, x[broadcast_place(o.x, to, i)], b ? (*b)[broadcast_place(o.w, to, i)] : 0);
    } else if (o.kind == OperationInfo::Kind::attention) {
      attend(o, value_of(o.x), value_of(o.w), value_of(o.value), o.has_factor ? value_of(o.factor)[0] : 1, result);
    } else {
      const TensorInfo& from = o.kind == OperationInfo::Kind::convolution ? o.x : o.y;
      const auto as_read = [&](const TensorInfo& t) {
        Values v = value_of(t);
        if (engine.narrows && t.dtype == CUDNN_DATA_FLOAT) std::transform(v.begin(), v.end(), v.begin(), narrowed);
        return v;
      };
      convolve(o, as_read(from), as_read(o.w), result);
    }
    if (to.dtype == CUDNN_DATA_FLOAT)
      for (double& v : result) v = static_cast<double>(static_cast<float>(v));
    if (!to.is_virtual) for_each(to, [&](size_t i, int64_t place) { store(to, addresses.at(to.id), place, result[i]); });
    values[to.id] = std::move(result);
  }
}

}  // namespace heddle::cuda::standin
