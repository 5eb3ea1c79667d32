// Points of y = 3 x0 - 2 x1 + 1, as a dataset for the nets of session/line_net.h.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "heddle/trainer.h"
#include "load/temporary_folder.h"
#include "session/line_net.h"

namespace heddle::testing_train {

struct Points {
  explicit Points(int64_t count, float noise = 0) : x(static_cast<size_t>(2 * count)), y(static_cast<size_t>(count)) {
    for (size_t i = 0; i < y.size(); ++i) {
      x[2 * i] = static_cast<float>(i * 7 % 11) / 11;
      x[2 * i + 1] = static_cast<float>(i * 5 % 13) / 13;
      y[i] = 3 * x[2 * i] - 2 * x[2 * i + 1] + 1 + noise * static_cast<float>(i % 3);
    }
  }
  std::shared_ptr<const Dataset> dataset() const {
    const auto count = static_cast<int64_t>(y.size());
    auto made = Dataset::of_arrays({{"x", testing_nets::view(x.data(), DType::f32, Shape{count, 2})},
                                    {"y", testing_nets::view(y.data(), DType::f32, Shape{count, 1})}});
    EXPECT_TRUE(made.ok()) << made.status().text();
    return *made;
  }
  std::vector<float> x, y;
};

// Options of a training in batches of four with a checkpoint in the folder each `every` steps, of which the newest `keep` stay.
inline TrainerOptions checkpoints_in(const testing::TemporaryFolder& folder, int64_t steps, int64_t every, int keep = 0) {
  TrainerOptions options;
  options.steps = steps;
  options.batch = 4;
  options.checkpoints.folder = folder.path().string();
  options.checkpoints.every = every;
  options.checkpoints.keep = keep;
  return options;
}

// A session of "line" and "train", and its two nets.
struct LineSession {
  explicit LineSession(const SessionOptions& options = {}, int threads = 1, const char* optimizer = "adam")
      : LineSession(testing_nets::runtime(threads), options, optimizer) {}
  LineSession(Runtime of, const SessionOptions& options, const char* optimizer = "adam")
      : runtime(std::move(of)),
        nets(testing_line::learning_line(runtime, optimizer)),
        all(value_of(runtime.open(nets, options))),
        train(value_of(all.net("train"))),
        line(value_of(all.net("line"))) {}
  template <class T>
  static T value_of(Result<T> result) {
    EXPECT_TRUE(result.ok()) << result.status().text();
    return std::move(*result);
  }
  Trainer trainer(const std::shared_ptr<const Dataset>& data, const TrainerOptions& options) const {
    return value_of(Trainer::create(train, data, options));
  }
  Runtime runtime;
  Nets nets;
  Session all, train, line;
};

}  // namespace heddle::testing_train
