// Random points of a square, and which of them lie in a ring: what examples/hosts teaches a net.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "heddle/dataset.h"

// Points of [-1, 1] x [-1, 1], and whether each lies in the ring.
struct Points {
  Points(unsigned seed, int64_t count) : xy(static_cast<size_t>(2 * count)), labels(static_cast<size_t>(count)) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < labels.size(); ++i) {
      for (size_t k = 2 * i; k < 2 * i + 2; ++k) xy[k] = static_cast<float>(random() >> 8) / (1 << 23) - 1;
      const float square = xy[2 * i] * xy[2 * i] + xy[2 * i + 1] * xy[2 * i + 1];
      labels[i] = square > 0.2f && square < 0.7f;
    }
  }
  // By the names of the net's inputs; they are read where they are.
  heddle::Result<std::shared_ptr<const heddle::Dataset>> dataset() {
    const auto count = static_cast<int64_t>(labels.size());
    return heddle::Dataset::of_arrays(
        {{"points", {heddle::DType::f32, {count, 2}, xy.data()}}, {"labels", {heddle::DType::i64, {count}, labels.data()}}});
  }
  std::vector<float> xy;
  std::vector<int64_t> labels;
};
