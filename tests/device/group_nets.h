// Nets with collectives that two devices launch together (tests/plugins/groups.cc).
#pragma once

#include <string>

#include "device/device_support.h"

namespace heddle::testing_devices {

inline const std::string both_devices = "both";  // the communicator

inline ValueId sum_of_both(NetBuilder& b, const std::string& name, int device, ValueId x) {
  return on(b, device_name(device), b.add1("Sum", name, {x}, {{"communicator", both_devices}}, "groups"));
}

inline SessionOptions with_both_devices(int streams = 2) {
  SessionOptions options = silent(streams);
  options.communicators.emplace_back().devices = {device_name(0), device_name(1)};
  return options;
}

// On each device: x times a matrix, the sum of that over both, and again.
inline Net two_rounds() {
  NetBuilder b("rounds");
  const Shape matrix{8, 8};
  const ValueId x = b.input("x", DType::f32, matrix);
  for (const int d : {0, 1}) {
    const std::string device = std::to_string(d);
    const ValueId w = b.constant("w" + device, whole_numbers(matrix, d, 3));
    ValueId y = x;
    for (const std::string round : {"a", "b"}) {
      y = on(b, device_name(d), b.add1("MatMul", round + "product" + device, {y, w}));
      y = sum_of_both(b, round + "sum" + device, d, on(b, device_name(d), b.add1("Softmax", round + "soft" + device, {y})));
    }
    b.output(y);
  }
  return b.finish();
}

}  // namespace heddle::testing_devices
