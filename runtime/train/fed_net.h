// FedNet: a net that runs on the samples of a dataset.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/dataset.h"
#include "heddle/session.h"
#include "train/batch_reader.h"

namespace heddle {

class FedNet {
 public:
  // `weights`: the input that gets the weight of each sample, if the net has it; empty: none. Errors: unknown_name (the net has no input of
  // a name of the data); missing_input; invalid_argument (an input is on a device); dtype_mismatch, shape_mismatch (of the weights).
  static Result<FedNet> create(const Session& session, std::shared_ptr<const Dataset> data, const std::string& weights);

  const Session& session() const { return session_; }
  const Dataset& data() const { return *data_; }
  const std::shared_ptr<const Dataset>& shared_data() const { return data_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }
  // Returns the number of the output of that name; none: there is none.
  std::optional<size_t> output(const std::string& name) const;
  // Does so for inputs.
  std::optional<size_t> input(const std::string& name) const;

  // Takes the values of a batch of the data, which must stay valid as long as contexts run. Errors: internal (one was left out).
  Status feed(const SampleBatch& read);
  // Returns a context for the batch that was fed, with its inputs bound; valid until the next call. Contexts for a few shapes are kept.
  // Errors: those of Session::prepare.
  Result<Context*> prepare(const SharedMemory& memory);
  // Returns what input i was fed with.
  const TensorView& fed(size_t i) const { return inputs_[i]; }
  // Returns the number of samples of the batch that was fed, and what people call its sample i.
  int64_t batch() const { return static_cast<int64_t>(read_->samples.size()); }
  std::string sample_name(int64_t i) const { return data_->sample_name(read_->samples[static_cast<size_t>(i)]); }
  // Returns the number of samples of the batch that was fed, but for those that only fill it.
  int64_t samples() const { return static_cast<int64_t>(read_->samples.size()) - read_->padding; }
  bool has_weights() const { return weights_input_.has_value(); }
  // Returns the plan of the context that prepare() returned last; null: none, or no memory for it.
  std::shared_ptr<const PlanInfo> plan() const;
  // Returns the input that has a number that is not finite, with its sample; empty: none has.
  std::string not_finite_text() const;
  // Adds to the error of a run, which happened `during`, the samples of the batch and the one that it is about.
  Status with_samples(Status error, const std::string& during) const;

 private:
  struct Prepared {
    std::vector<TensorView> types;  // of the inputs, without data
    Context context;
  };
  FedNet(const Session& session, std::shared_ptr<const Dataset> data) : session_(session), data_(std::move(data)) {}
  Status take_weights(const PortInfo& input, size_t i);
  TensorView weights_of(const SampleBatch& read);
  bool fits(const Prepared& prepared) const;

  Session session_;
  std::shared_ptr<const Dataset> data_;
  std::vector<PortInfo> outputs_;
  std::vector<std::string> input_names_;
  std::vector<size_t> value_of_input_;  // by input: which value of a batch it is given, but for the weights
  std::optional<size_t> weights_input_;
  int weights_rank_ = 1;
  std::vector<float> weights_;         // of the samples that were fed
  bool decides_shapes_ = false;        // an input does by its content: each batch needs a context of its own
  const SampleBatch* read_ = nullptr;  // the batch that was fed
  std::vector<TensorView> inputs_;     // the batch, in the order of the inputs
  std::list<Prepared> contexts_;       // the one used last first
};

}  // namespace heddle
