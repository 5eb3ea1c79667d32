// heddle.Reorder between orders of dimensions, all element widths.
#include "layout_support.h"

namespace heddle::testing {
namespace {

heddle_layout order(const std::vector<int>& dimensions) {
  heddle_layout layout = {};
  layout.rank = static_cast<uint8_t>(dimensions.size());
  for (size_t i = 0; i < dimensions.size(); ++i) layout.order[i] = static_cast<uint8_t>(dimensions[i]);
  return layout;
}

// Position of a logical element in a dense tensor of this layout.
int64_t position(const Shape& shape, const heddle_layout& layout, const Ints& index) {
  int64_t p = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int d = layout.rank ? layout.order[i] : i;
    p = p * shape[d] + index[static_cast<size_t>(d)];
  }
  return p;
}

template <class T>
void check(const Shape& shape, const heddle_layout& from, const heddle_layout& to) {
  std::vector<T> x(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 7 + 3);
  OperatorCall call = call_of("Reorder", {tensor<T>(shape, x)});
  call.domain = "heddle";
  call.input_layouts = {from};
  call.output_layouts = {to};
  for (uint64_t seed : {0, 1}) {
    call.split_seed = seed;
    const auto outputs = run(call);
    ASSERT_EQ(outputs.size(), 1u);
    const std::vector<T> y = values<T>(*outputs[0]);
    Ints index(static_cast<size_t>(shape.rank()), 0);
    for (size_t n = 0; n < x.size(); ++n) {
      ASSERT_EQ(y[static_cast<size_t>(position(shape, to, index))], x[static_cast<size_t>(position(shape, from, index))]);
      for (int i = shape.rank() - 1; i >= 0; --i) {
        if (++index[static_cast<size_t>(i)] < shape[i]) break;
        index[static_cast<size_t>(i)] = 0;
      }
    }
  }
}

TEST(Reorder, MovesEveryElementToItsPlace) {
  const heddle_layout row_major = {}, last = channels_last_layout(4);
  check<float>(Shape{2, 37, 29, 31}, row_major, last);
  check<float>(Shape{2, 37, 29, 31}, last, row_major);
  check<float>(Shape{1, 256, 56, 56}, last, row_major);
  check<uint8_t>(Shape{3, 5, 17, 9}, row_major, last);
  check<uint16_t>(Shape{1, 64, 33, 20}, last, row_major);
  check<int64_t>(Shape{2, 3, 4, 5}, order({3, 1, 0, 2}), order({0, 2, 3, 1}));
  check<double>(Shape{7, 12, 5}, row_major, channels_last_layout(3));
  check<float>(Shape{2, 3, 4, 5, 6}, channels_last_layout(5), row_major);
  check<float>(Shape{2, 0, 4, 5}, row_major, last);
}

TEST(Reorder, RefusesLayoutsThatAreNoOrder) {
  OperatorCall call = call_of("Reorder", {tensor<float>(Shape{1, 2, 2}, {1, 2, 3, 4})});
  call.domain = "heddle";
  call.output_layouts = {order({0, 1, 1})};
  EXPECT_NE(error_of(call).find("names a dimension twice"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
