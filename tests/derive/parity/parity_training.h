// Trains parity_nets.h with the data that make_parity.py has written.
#pragma once

#include "derive/derived_run.h"
#include "derive/parity/parity_file.h"
#include "derive/parity/parity_nets.h"
#include "derive/training_net.h"

namespace heddle::testing_derive {

inline Net net_of(const std::string& name, const ParityFile& file) {
  return ParityNet(name,
                   [&](const std::string& variable) {
                     const Numbers& numbers = file.variables.at(variable);
                     return blob(numbers.shape, numbers.data);
                   })
      .finish();
}

inline Result<Net> trained(const Net& net, const ParityRun& run) {
  TrainingOptions options;
  for (const auto& [loss, values] : run.losses) options.losses.push_back(loss);
  options.optimizer = run.optimizer;
  options.settings = run.settings;
  HEDDLE_TRY(options.learning_rate, LearningRate::parse(run.rate, run.schedule, run.warm_up));
  options.clip_norm = run.clip_norm;
  options.dense = run.dense;
  return trained(net, options);
}

// A batch as the net's inputs: numbers, and indices of i64.
class Feed {
 public:
  Feed(const Net& net, const NamedNumbers& batch) {
    for (const ValueId input : net.inputs) {
      const Numbers& numbers = batch.at(net[input].name);
      const DType dtype = net[input].type.dtype;
      const std::vector<int64_t> whole(numbers.data.begin(), numbers.data.end());
      blobs_.push_back(
          Blob::copy_of(dtype, numbers.shape, dtype == DType::i64 ? static_cast<const void*>(whole.data()) : numbers.data.data()));
      views_.push_back(testing_nets::view(blobs_.back()->data, dtype, numbers.shape));
    }
  }
  const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<std::shared_ptr<const Blob>> blobs_;
  std::vector<TensorView> views_;
};

// Returns the first `count` outputs, which are scalars.
inline std::vector<double> losses_of(Session& session, const Feed& feed, size_t count) {
  const auto ran = session.run(feed.views());
  EXPECT_TRUE(ran.ok()) << ran.status().text();
  std::vector<double> losses;
  for (size_t i = 0; ran.ok() && i < count; ++i) losses.push_back(*static_cast<const double*>((*ran)[i].data()));
  return losses;
}

inline std::vector<double> variable_of(const Session& session, const std::string& name) {
  const auto read = session.read_variable(name);
  EXPECT_TRUE(read.ok()) << read.status().text();
  if (!read.ok()) return {};
  const auto* const data = static_cast<const double*>(read->data());
  return {data, data + read->shape().element_count()};
}

}  // namespace heddle::testing_derive
