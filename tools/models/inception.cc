// Inception v3 (Szegedy et al., 2015) as torchvision builds it; its auxiliary head is for training alone.
#include "models/builders.h"
#include "models/layers.h"

namespace heddle::models {
namespace {

// One block under construction: its branches start at `x` and their names with `name`.
class Block {
 public:
  Block(LayerBuilder& b, std::string name, ValueId x) : b_(b), name_(std::move(name)), x_(x) {}
  ValueId x() const { return x_; }

  ValueId conv(const std::string& label, ValueId x, const ConvSpec& spec) const {
    const std::string full = name_.empty() ? label : name_ + "." + label;
    const ValueId y = b_.batch_norm(full + ".bn", b_.conv(full + ".conv", x, spec), spec.out, 1, 1e-3);
    return b_.relu(full + ".relu", y);
  }
  // 1 x n and n x 1, padded to keep the size
  ValueId row(const std::string& label, ValueId x, int64_t in, int64_t out, int64_t n) const {
    return conv(label, x, {in, out, 1, n, 1, 0, n / 2, 1});
  }
  ValueId column(const std::string& label, ValueId x, int64_t in, int64_t out, int64_t n) const {
    return conv(label, x, {in, out, n, 1, 1, n / 2, 0, 1});
  }
  ValueId max_pool() const { return b_.pool(name_ + ".max_pool", x_, Pool::max, 3, 2); }
  ValueId pooled(int64_t in, int64_t out) const {
    return conv("branch_pool", b_.pool(name_ + ".average_pool", x_, Pool::average, 3, 1, 1), ConvSpec::square(in, out, 1));
  }
  ValueId concat(const std::string& label, std::vector<ValueId> branches) const {
    return b_.net().add1("Concat", name_ + "." + label, std::move(branches), {{"axis", int64_t{1}}});
  }

 private:
  LayerBuilder& b_;
  std::string name_;
  ValueId x_;
};

// 35 x 35, in → 224 + pool
ValueId mixed_a(const Block& k, int64_t in, int64_t pool) {
  const ValueId one = k.conv("branch1x1", k.x(), ConvSpec::square(in, 64, 1));
  ValueId five = k.conv("branch5x5_1", k.x(), ConvSpec::square(in, 48, 1));
  five = k.conv("branch5x5_2", five, ConvSpec::square(48, 64, 5, 1, 2));
  ValueId three = k.conv("branch3x3dbl_1", k.x(), ConvSpec::square(in, 64, 1));
  three = k.conv("branch3x3dbl_2", three, ConvSpec::square(64, 96, 3, 1, 1));
  three = k.conv("branch3x3dbl_3", three, ConvSpec::square(96, 96, 3, 1, 1));
  return k.concat("concat", {one, five, three, k.pooled(in, pool)});
}

// 35 x 35 x 288 → 17 x 17 x 768
ValueId reduce_to_17(const Block& k) {
  const ValueId three = k.conv("branch3x3", k.x(), ConvSpec::square(288, 384, 3, 2));
  ValueId twice = k.conv("branch3x3dbl_1", k.x(), ConvSpec::square(288, 64, 1));
  twice = k.conv("branch3x3dbl_2", twice, ConvSpec::square(64, 96, 3, 1, 1));
  twice = k.conv("branch3x3dbl_3", twice, ConvSpec::square(96, 96, 3, 2));
  return k.concat("concat", {three, twice, k.max_pool()});
}

// 17 x 17 x 768 → the same, by rows and columns of 7
ValueId mixed_c(const Block& k, int64_t width) {
  const ValueId one = k.conv("branch1x1", k.x(), ConvSpec::square(768, 192, 1));
  ValueId seven = k.conv("branch7x7_1", k.x(), ConvSpec::square(768, width, 1));
  seven = k.row("branch7x7_2", seven, width, width, 7);
  seven = k.column("branch7x7_3", seven, width, 192, 7);
  ValueId twice = k.conv("branch7x7dbl_1", k.x(), ConvSpec::square(768, width, 1));
  twice = k.column("branch7x7dbl_2", twice, width, width, 7);
  twice = k.row("branch7x7dbl_3", twice, width, width, 7);
  twice = k.column("branch7x7dbl_4", twice, width, width, 7);
  twice = k.row("branch7x7dbl_5", twice, width, 192, 7);
  return k.concat("concat", {one, seven, twice, k.pooled(768, 192)});
}

// 17 x 17 x 768 → 8 x 8 x 1280
ValueId reduce_to_8(const Block& k) {
  ValueId three = k.conv("branch3x3_1", k.x(), ConvSpec::square(768, 192, 1));
  three = k.conv("branch3x3_2", three, ConvSpec::square(192, 320, 3, 2));
  ValueId seven = k.conv("branch7x7x3_1", k.x(), ConvSpec::square(768, 192, 1));
  seven = k.row("branch7x7x3_2", seven, 192, 192, 7);
  seven = k.column("branch7x7x3_3", seven, 192, 192, 7);
  seven = k.conv("branch7x7x3_4", seven, ConvSpec::square(192, 192, 3, 2));
  return k.concat("concat", {three, seven, k.max_pool()});
}

// 8 x 8, in → 2048
ValueId mixed_e(const Block& k, int64_t in) {
  const ValueId one = k.conv("branch1x1", k.x(), ConvSpec::square(in, 320, 1));
  const ValueId three = k.conv("branch3x3_1", k.x(), ConvSpec::square(in, 384, 1));
  const ValueId wide = k.concat("branch3x3", {k.row("branch3x3_2a", three, 384, 384, 3), k.column("branch3x3_2b", three, 384, 384, 3)});
  ValueId twice = k.conv("branch3x3dbl_1", k.x(), ConvSpec::square(in, 448, 1));
  twice = k.conv("branch3x3dbl_2", twice, ConvSpec::square(448, 384, 3, 1, 1));
  const ValueId wider =
      k.concat("branch3x3dbl", {k.row("branch3x3dbl_3a", twice, 384, 384, 3), k.column("branch3x3dbl_3b", twice, 384, 384, 3)});
  return k.concat("concat", {one, wide, wider, k.pooled(in, 192)});
}

ValueId stem(LayerBuilder& b) {
  const Block k(b, "", ValueId());
  ValueId x = k.conv("Conv2d_1a_3x3", b.image(3, 299), ConvSpec::square(3, 32, 3, 2));
  x = k.conv("Conv2d_2a_3x3", x, ConvSpec::square(32, 32, 3));
  x = k.conv("Conv2d_2b_3x3", x, ConvSpec::square(32, 64, 3, 1, 1));
  x = b.pool("maxpool1", x, Pool::max, 3, 2);
  x = k.conv("Conv2d_3b_1x1", x, ConvSpec::square(64, 80, 1));
  x = k.conv("Conv2d_4a_3x3", x, ConvSpec::square(80, 192, 3));
  return b.pool("maxpool2", x, Pool::max, 3, 2);
}

// The auxiliary head, which provides a loss half-way up: 17 x 17 x 768 → logits
ValueId auxiliary_head(LayerBuilder& b, ValueId x) {
  const Block k(b, "AuxLogits", x);
  x = k.conv("conv0", b.pool("AuxLogits.average_pool", x, Pool::average, 5, 3), ConvSpec::square(768, 128, 1));
  x = k.conv("conv1", x, ConvSpec::square(128, 768, 5));
  x = b.net().add1("Flatten", "AuxLogits.flatten", {b.net().add1("GlobalAveragePool", "AuxLogits.avgpool", {x})});
  return b.linear("AuxLogits.fc", x, 768, 1000);
}

}  // namespace

Net inception_v3(const RecipeOptions& options) {
  LayerBuilder b("inception_v3", options);
  ValueId x = mixed_a({b, "Mixed_5b", stem(b)}, 192, 32);
  x = mixed_a({b, "Mixed_5c", x}, 256, 64);
  x = mixed_a({b, "Mixed_5d", x}, 288, 64);
  x = reduce_to_17({b, "Mixed_6a", x});
  x = mixed_c({b, "Mixed_6b", x}, 128);
  x = mixed_c({b, "Mixed_6c", x}, 160);
  x = mixed_c({b, "Mixed_6d", x}, 160);
  x = mixed_c({b, "Mixed_6e", x}, 192);
  const ValueId half_way = x;
  x = reduce_to_8({b, "Mixed_7a", x});
  x = mixed_e({b, "Mixed_7b", x}, 1280);
  x = mixed_e({b, "Mixed_7c", x}, 2048);
  const ValueId logits = b.linear("fc", b.global_pool("avgpool", x), 2048, 1000);
  return b.finish(logits, "logits", options.purpose == Purpose::training ? auxiliary_head(b, half_way) : ValueId());
}

}  // namespace heddle::models
