// An LSTM as a Loop, the same in every test.
#pragma once

#include <string>
#include <vector>

#include "device_support.h"
#include "small_nets.h"

namespace heddle::testing_devices {

inline ValueId number(NetBuilder& b, const char* name, int64_t value) {
  return b.constant(name, Blob::copy_of(DType::i64, Shape{}, &value));
}

// An LSTM cell run step by step: the row of each trip, hidden and cell state carried, the hidden states stacked.
inline Net lstm_loop(int64_t trips = 60) {
  constexpr int64_t batch = 2, width = 4;
  NetBuilder body("cell"), b("lstm");
  const ValueId turn = body.input("turn", DType::i64, Shape{});
  const ValueId goes_on = body.input("go_on", DType::boolean, Shape{});
  const ValueId h = body.input("h", DType::f32, Shape{batch, width}), c = body.input("c", DType::f32, Shape{batch, width});
  const ValueId rows = body.input("rows", DType::f32, Shape{trips, batch, width});
  const ValueId row = body.add1("Gather", "row", {rows, turn}, {{"axis", int64_t{0}}});
  int seed = 0;
  const auto gate = [&](const char* activation, const std::string& name) {
    const auto product = [&](const std::string& of, ValueId x) {
      const ValueId w = body.constant("w" + name + of, whole_numbers(Shape{width, width}, ++seed, 3));
      return body.add1("MatMul", name + of, {x, w});
    };
    return body.add1(activation, name, {body.add1("Add", name + "sum", {product("x", row), product("h", h)})});
  };
  const ValueId kept = body.add1("Mul", "kept", {gate("Sigmoid", "forget"), c});
  const ValueId added = body.add1("Mul", "added", {gate("Sigmoid", "in"), gate("Tanh", "cell")});
  const ValueId next_c = body.add1("Add", "next_c", {kept, added});
  const ValueId next_h = body.add1("Mul", "next_h", {gate("Sigmoid", "out"), body.add1("Tanh", "squashed", {next_c})});
  body.output(body.add1("Identity", "still", {goes_on}));
  for (const ValueId out : {next_h, next_c, next_h}) body.output(out);
  const std::vector<ValueId> outputs =
      b.add("Loop", "loop",
            {number(b, "trips", trips), testing_nets::yes(b), b.input("h", DType::f32, Shape{batch, width}),
             b.input("c", DType::f32, Shape{batch, width}), b.input("x", DType::f32, Shape{trips, batch, width})},
            3, {{"body", testing_nets::subnet(body)}, {"captured", int64_t{1}}});
  for (const ValueId out : outputs) b.output(b.add1("Neg", "turned" + std::to_string(out.index), {out}));
  return b.finish();
}

}  // namespace heddle::testing_devices
