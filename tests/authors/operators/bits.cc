// A plugin without exceptions and RTTI: errors are returned as a Status.
#include <string>
#include <type_traits>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

template <class T>
Status bit_count(In<T> x, OptionalIn<T> mask, Out<int32_t> y) {
  using Unsigned = std::make_unsigned_t<T>;
  for (int64_t i = 0; i < x.size; ++i) {
    Unsigned bits = static_cast<Unsigned>(x[i]);
    if (mask) bits &= static_cast<Unsigned>(mask[i]);
    int32_t count = 0;
    for (; bits != 0; bits &= static_cast<Unsigned>(bits - 1)) ++count;
    y[i] = count;
  }
  return {};
}

// status() reports attributes that do not fit; it is called once, when the node is made.
struct Direction {
  explicit Direction(const Attributes& attributes) : text(attributes.s("direction")) {}
  Status status() const {
    return is_inverse() || text == "to" ? Status() : invalid("direction is \"" + text + "\", expected \"to\" or \"from\"");
  }
  bool is_inverse() const { return text == "from"; }
  std::string text;
};

template <class T>
Status gray_code(In<T> x, const Direction& direction, Out<T> y) {
  const bool is_inverse = direction.is_inverse();
  for (int64_t i = 0; i < x.size; ++i) {
    T value = static_cast<T>(x[i] ^ (x[i] >> 1));
    if (is_inverse) {
      value = x[i];
      for (size_t shift = 1; shift < 8 * sizeof(T); shift *= 2) value = static_cast<T>(value ^ (value >> shift));
    }
    y[i] = value;
  }
  return {};
}

}  // namespace

HEDDLE_PLUGIN("authors_bits", "1.0", plugin) {
  plugin.add(Op("BitCount", "authors")
                 .doc("how many bits of x, and of the mask, are set")
                 .in("x", dtypes<uint8_t, int32_t, int64_t, uint64_t>())
                 .dims("...")
                 .optional("mask", dtypes<uint8_t, int32_t, int64_t, uint64_t>())
                 .dims("...")
                 .out_as("y", HEDDLE_I32, same_as("x"))
                 .example("i32[4] = 0 1 7 100 -> i32[4] = 0 1 3 3", "by hand: 100 is 1100100")
                 .example("i32[1] = -1 -> i32[1] = 32", "by hand")
                 .example("u8[2,2] = 255 255 5 8, u8[2,2] = 15 0 4 7 -> i32[2,2] = 4 0 1 0", "by hand")
                 .cpu<bit_count<uint8_t>>()
                 .elementwise()
                 .cpu<bit_count<int32_t>>()
                 .elementwise()
                 .cpu<bit_count<int64_t>>()
                 .elementwise()
                 .cpu<bit_count<uint64_t>>()
                 .elementwise());
  plugin.add(Op("GrayCode", "authors")
                 .doc("to the reflected binary code, or from it")
                 .in("x", dtypes<uint8_t, uint32_t>())
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .attribute("direction", "to")
                 .example("u8[8] = 0 1 2 3 4 5 6 7 -> u8[8] = 0 1 3 2 6 7 5 4", "by hand")
                 .example("u32[8] = 0 1 3 2 6 7 5 4; direction=\"from\" -> u32[8] = 0 1 2 3 4 5 6 7", "by hand")
                 .cpu<gray_code<uint8_t>>()
                 .elementwise()
                 .cpu<gray_code<uint32_t>>()
                 .elementwise());
}
