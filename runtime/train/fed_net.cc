#include "train/fed_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "session/session_impl.h"
#include "train/sample_text.h"

namespace heddle {
namespace {

constexpr size_t kept_contexts = 8;  // shapes of batches; the session keeps the plans of more

std::vector<std::string> names_of(const std::vector<PortInfo>& ports) {
  std::vector<std::string> names;
  for (const PortInfo& port : ports) names.push_back(port.name);
  return names;
}

}  // namespace

// Checks that an input takes the weights of samples.
Status FedNet::take_weights(const PortInfo& input, size_t i) {
  if (input.dtype != DType::f32)
    return {Code::dtype_mismatch, fmt::format("input {} of the weights is {}", quoted(input.name), to_string(input.dtype)), "make it f32"};
  const int rank = input.ranked ? input.shape.rank() : 1;
  if (rank < 1 || rank > 2 || (rank == 2 && input.shape[1] > 1))
    return {Code::shape_mismatch, fmt::format("input {} of the weights is {}", quoted(input.name), input.shape.text()),
            "make it [batch] or [batch, 1]"};
  weights_input_ = i;
  weights_rank_ = rank;
  return {};
}

Result<FedNet> FedNet::create(const Session& session, std::shared_ptr<const Dataset> data, const std::string& weights) {
  if (!data) return Status(Code::invalid_argument, "there is no dataset", "give one");
  FedNet net(session, std::move(data));
  const std::vector<PortInfo> inputs = Internals::of(session).inputs();
  const std::vector<std::string> names = names_of(inputs), &given = net.data_->names();
  for (const std::string& name : given)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Status(Code::unknown_name, fmt::format("the data has {}, and net {} has no such input", quoted(name), quoted(session.name())),
                    suggestion(name, names));
  const auto& placed = Internals::of(session).options.placed_ports;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PortInfo& input = inputs[i];
    net.decides_shapes_ = net.decides_shapes_ || input.decides_shapes;
    if (!weights.empty() && input.name == weights) {
      HEDDLE_CHECK(net.take_weights(input, i));
      net.value_of_input_.push_back(0);
      continue;
    }
    const auto found = std::find(given.begin(), given.end(), input.name);
    if (found == given.end())
      return Status(Code::missing_input,
                    fmt::format("the data has nothing for input {} of net {}", quoted(input.name), quoted(session.name())),
                    "give it values for each sample");
    if (std::any_of(placed.begin(), placed.end(), [&](const auto& port) { return port.first == input.name; }))
      return Status(Code::invalid_argument, fmt::format("input {} is on a device, and samples are on the host", quoted(input.name)),
                    "open the session without that placed port");
    net.value_of_input_.push_back(static_cast<size_t>(found - given.begin()));
  }
  net.outputs_ = Internals::of(session).outputs();
  net.input_names_ = names;
  net.inputs_.resize(inputs.size());
  return net;
}

std::optional<size_t> FedNet::output(const std::string& name) const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].name == name) return i;
  return std::nullopt;
}

std::optional<size_t> FedNet::input(const std::string& name) const {
  const auto found = std::find(input_names_.begin(), input_names_.end(), name);
  return found == input_names_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - input_names_.begin()));
}

Status FedNet::feed(const SampleBatch& read) {
  read_ = &read;
  const std::vector<TensorView>& values = read.batch.values();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (i == weights_input_) {
      inputs_[i] = weights_of(read);
      continue;
    }
    const size_t of = value_of_input_[i];
    if (of >= values.size() || values[of].dtype == DType::none)
      return {Code::internal, fmt::format("the dataset has read no value for {}", quoted(data_->names()[of])), "mend Dataset::read"};
    inputs_[i] = values[of];
  }
  return {};
}

TensorView FedNet::weights_of(const SampleBatch& read) {
  weights_.assign(read.samples.size(), 1);
  std::fill(weights_.end() - static_cast<std::ptrdiff_t>(read.padding), weights_.end(), 0.0F);
  Shape shape = {static_cast<int64_t>(weights_.size())};
  if (weights_rank_ == 2) shape.push_back(1);
  return {DType::f32, shape, weights_.data()};
}

bool FedNet::fits(const Prepared& prepared) const {
  return std::equal(inputs_.begin(), inputs_.end(), prepared.types.begin(), prepared.types.end(),
                    [](const TensorView& a, const TensorView& b) { return a.dtype == b.dtype && a.shape == b.shape; });
}

Result<Context*> FedNet::prepare(const SharedMemory& memory) {
  if (decides_shapes_) contexts_.clear();
  auto found = std::find_if(contexts_.begin(), contexts_.end(), [&](const Prepared& prepared) { return fits(prepared); });
  if (found == contexts_.end()) {
    HEDDLE_TRY(Context made, session_.prepare_on(memory, inputs_));
    if (contexts_.size() == kept_contexts) contexts_.pop_back();
    contexts_.push_front({inputs_, std::move(made)});
    found = contexts_.begin();
  }
  contexts_.splice(contexts_.begin(), contexts_, found);
  Context& context = contexts_.front().context;
  for (size_t i = 0; i < inputs_.size(); ++i) HEDDLE_CHECK(context.bind_input(i, inputs_[i].data));
  return &context;
}

std::shared_ptr<const PlanInfo> FedNet::plan() const {
  return contexts_.empty() ? nullptr : contexts_.front().context.plan();
}

std::string FedNet::not_finite_text() const {
  return heddle::not_finite_text({*data_, read_->samples, read_->batch});
}

Status FedNet::with_samples(Status error, const std::string& during) const {
  const std::string sample = sample_text({*data_, read_->samples, read_->batch}, error.diagnostic().message);
  return std::move(error).during(fmt::format("{}, {}of samples {}", during, sample.empty() ? "" : fmt::format("in {}, ", sample),
                                             samples_text({*data_, read_->samples, read_->batch})));
}

}  // namespace heddle
