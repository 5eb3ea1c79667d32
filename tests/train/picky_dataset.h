// A dataset of points of which some can not be read.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "points.h"

namespace heddle::testing_train {

// Sample 5 is called "point 5", and its error does not say which one it is.
class PickyDataset final : public Dataset {
 public:
  PickyDataset(const Points& points, std::set<int64_t> bad, Code code = Code::file_corrupt)
      : points_(points), bad_(std::move(bad)), code_(code) {}
  const std::vector<std::string>& names() const override { return names_; }
  int64_t samples() const override { return static_cast<int64_t>(points_.y.size()); }
  std::string sample_name(int64_t sample) const override { return "point " + std::to_string(sample); }
  Status read(const BatchRequest& request, Batch& batch) const override {
    HEDDLE_TRY(void* const x, batch.make(0, DType::f32, Shape{request.count, 2}));
    HEDDLE_TRY(void* const y, batch.make(1, DType::f32, Shape{request.count, 1}));
    for (int64_t k = 0; k < request.count; ++k) {
      const int64_t sample = request.samples[k];
      {
        const std::lock_guard lock(mutex_);
        ++tries_[sample];
      }
      if (is_mended.load()) continue;
      if (bad_.count(sample) != 0) return {code_, "its third byte is wrong", hint};
    }
    if (together_.count(request.count) != 0) return {Code::shape_mismatch, "they differ"};
    for (int64_t k = 0; k < request.count; ++k) {
      const auto sample = static_cast<size_t>(request.samples[k]);
      std::copy_n(&points_.x[2 * sample], 2, static_cast<float*>(x) + 2 * k);
      static_cast<float*>(y)[k] = points_.y[sample];
    }
    return {};
  }
  // Batches of that many samples can not be read, whatever they are.
  void refuse_together(int64_t count) { together_.insert(count); }
  // Returns how often the sample was asked for.
  int tries(int64_t sample) const {
    const std::lock_guard lock(mutex_);
    return tries_[sample];
  }
  int all_tries() const {
    const std::lock_guard lock(mutex_);
    int sum = 0;
    for (const auto& [sample, count] : tries_) sum += count;
    return sum;
  }
  std::atomic<bool> is_mended{false};
  Hint hint;  // of its errors

 private:
  const Points& points_;
  const std::set<int64_t> bad_;
  const Code code_;
  std::set<int64_t> together_;
  const std::vector<std::string> names_ = {"x", "y"};
  mutable std::mutex mutex_;
  mutable std::map<int64_t, int> tries_;
};

}  // namespace heddle::testing_train
