// Kernels for images that offer the channels-last layout and give another result in it than in row-major. In row-major all are right. Each
// has this one mistake.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// ---------------------------------------------------------------- what they offer

heddle_layout channels_last() {
  heddle_layout layout = {};
  layout.rank = 4;
  const uint8_t order[4] = {0, 2, 3, 1};
  for (int i = 0; i < 4; ++i) layout.order[i] = order[i];
  return layout;
}
heddle_format format(double cost_ns) {
  heddle_format f = {};
  f.struct_size = sizeof(f);
  f.cost_ns = cost_ns;
  return f;
}
// Returns channels-last for the inputs whose bits are set and for the output, or row-major for all.
std::vector<heddle_format> offered(uint32_t inputs) {
  heddle_format last = format(1000);
  for (uint32_t i = 0; i < 2; ++i)
    if (inputs >> i & 1) last.inputs[i] = channels_last();
  last.outputs[0] = channels_last();
  return {last, format(2000)};
}
// Only images are accepted: [n, c, h, w], all inputs alike.
Status infer_images(InferContext& c) {
  for (uint32_t i = 0; i < c.input_count(); ++i)
    if (c.dims(i).rank != 4 || dims_text(c.dims(i)) != dims_text(c.dims(0)))
      return invalid("input " + std::to_string(i) + " is " + dims_text(c.dims(i)) + ", expected images, all alike");
  return c.set_dims(0, c.dims(0)), Status();
}

// ---------------------------------------------------------------- where an element lies

bool is_last(const heddle_tensor& t) {
  return t.layout.rank == 4;
}
int64_t place(const heddle_tensor& t, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t channels = t.dims[1], height = t.dims[2], width = t.dims[3];
  return is_last(t) ? ((n * height + h) * width + w) * channels + c : ((n * channels + c) * height + h) * width + w;
}
template <class F>
void for_each(const heddle_tensor& t, F f) {
  for (int64_t n = 0; n < t.dims[0]; ++n)
    for (int64_t c = 0; c < t.dims[1]; ++c)
      for (int64_t h = 0; h < t.dims[2]; ++h)
        for (int64_t w = 0; w < t.dims[3]; ++w) f(n, c, h, w);
}

// ---------------------------------------------------------------- kernels

struct AllLast {
  static std::vector<heddle_format> formats(const CreateContext&) { return offered(3); }
};

// x plus the number of the channel, which it computes from the place in memory as if that were row-major.
class PlusChannel : public AllLast {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const int64_t plane = x.dims[2] * x.dims[3];
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + static_cast<float>(i / plane % x.dims[1]);
    return {};
  }
};

// x plus the number of the row. In channels-last it divides by the height instead of the width: right for square images.
class PlusRow : public AllLast {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3];
    for (int64_t i = 0; i < x.size; ++i) {
      const int64_t row = is_last(*x.tensor) ? i / channels / height % height : i / width % height;
      output<float>(c, 0)[i] = x[i] + static_cast<float>(row);
    }
    return {};
  }
};

// x plus the number of the row. In channels-last it continues counting from image to image: right for one image.
class PlusRowOfOne : public AllLast {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3];
    for (int64_t i = 0; i < x.size; ++i) {
      const int64_t row = is_last(*x.tensor) ? i / channels / width : i / width % height;
      output<float>(c, 0)[i] = x[i] + static_cast<float>(row);
    }
    return {};
  }
};

// Twice x. It reads x in its layout, and writes y as row-major whatever the layout of y is.
class TwiceRowMajor : public AllLast {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    int64_t next = 0;
    for_each(*x.tensor,
             [&](int64_t n, int64_t k, int64_t h, int64_t w) { output<float>(c, 0)[next++] = 2 * x[place(*x.tensor, n, k, h, w)]; });
    return {};
  }
};

// x + r, element by element in memory order. It offers channels-last for x and y, and row-major for r.
class Residual {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0), r = input<float>(c, 1);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + r[i];
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext&) { return offered(1); }
};

// Half of x in any order of dimensions. The layout that it offers is invalid: it contains the height twice.
class HalfInNoOrder {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] / 2;
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext&) {
    heddle_format twice = offered(1)[0];
    twice.inputs[0].order[2] = twice.outputs[0].order[2] = 2;
    return {twice, format(2000)};
  }
};

// Every image mirrored, left to right. In channels-last it has another loop for more than four channels, which does not mirror.
class Mirrored : public AllLast {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const heddle_tensor& y = *c.outputs[0];
    const int64_t width = x.dims[3], channels = x.dims[1];
    for_each(*x.tensor, [&](int64_t n, int64_t k, int64_t h, int64_t w) {
      const int64_t from = is_last(*x.tensor) && channels > 4 ? w : width - 1 - w;
      output<float>(c, 0)[place(y, n, k, h, w)] = x[place(*x.tensor, n, k, h, from)];
    });
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("mistakes_layouts", "1.0", plugin) {
  const auto op = [](const char* name) {
    Op images(name, "mistakes");
    images.in("x", f32).out("y", {}, f32).infer(infer_images);
    return images;
  };
  plugin.add(op("PlusChannel").cpu<PlusChannel>());
  plugin.add(op("PlusRow").example("f32[1,3,2,2]").example("f32[1,2,3,5]").cpu<PlusRow>());
  plugin.add(op("PlusRowOfOne").example("f32[1,3,2,4]").example("f32[2,3,2,4]").cpu<PlusRowOfOne>());
  plugin.add(op("TwiceRowMajor").cpu<TwiceRowMajor>());
  plugin.add(Op("Residual", "mistakes").in("x", f32).in("r", f32).out("y", {}, f32).infer(infer_images).cpu<Residual>());
  plugin.add(op("HalfInNoOrder").cpu<HalfInNoOrder>());
  plugin.add(op("Mirrored").example("f32[1,3,2,3]").example("f32[1,8,2,3]").cpu<Mirrored>());
}
