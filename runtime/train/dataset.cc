#include "heddle/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "session/plain_values.h"

namespace heddle {

struct Batch::State {
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    int64_t size = 0;
  };
  std::vector<TensorView> values;
  std::vector<Memory> memories;  // likewise
  void reach(size_t i) {
    if (i < values.size()) return;
    memories.resize(i + 1);
    values.resize(i + 1);
  }
};

Batch::Batch() = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

const std::vector<TensorView>& Batch::values() const {
  static const std::vector<TensorView> none;
  return state_ ? state_->values : none;
}

Result<void*> Batch::make(size_t i, DType dtype, const Shape& shape) try {
  int64_t bytes = 0;
  if (!checked_byte_size(dtype, shape, &bytes))
    return Status(Code::limit_exceeded, fmt::format("{}{} has more bytes than fit in memory", to_string(dtype), shape.text()));
  if (!state_) state_ = std::make_unique<State>();
  state_->reach(i);
  State::Memory& memory = state_->memories[i];
  if (memory.size < bytes || !memory.bytes) {
    memory = {};  // before the other is made: never both
    memory.bytes.reset(new std::byte[static_cast<size_t>(std::max<int64_t>(bytes, 1))]);
    memory.size = bytes;
  }
  state_->values[i] = {dtype, shape, memory.bytes.get()};
  return static_cast<void*>(memory.bytes.get());
} catch (...) {
  return status_of_exception();
}

Status Batch::refer(size_t i, const TensorView& memory) try {
  if (!state_) state_ = std::make_unique<State>();
  state_->reach(i);
  state_->values[i] = memory;
  return {};
} catch (...) {
  return status_of_exception();
}

int64_t Batch::owned_bytes() const {
  int64_t sum = 0;
  if (state_)
    for (const State::Memory& memory : state_->memories) sum += memory.size;
  return sum;
}

Dataset::~Dataset() = default;

std::string Dataset::identity() const {
  return {};
}

std::string Dataset::sample_name(int64_t sample) const {
  return or_empty("no memory for the name of a sample", [&] { return fmt::to_string(sample); });
}

namespace {

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(std::vector<std::string> names, std::vector<TensorView> arrays) : names_(std::move(names)), arrays_(std::move(arrays)) {}
  const std::vector<std::string>& names() const override { return names_; }
  int64_t samples() const override { return arrays_[0].shape[0]; }
  bool is_in_memory() const override { return true; }
  Status read(const BatchRequest& request, Batch& batch) const override {
    bool consecutive = request.count > 0;
    for (int64_t k = 0; k < request.count; ++k) {
      consecutive = consecutive && request.samples[k] == request.samples[0] + k;
      if (request.samples[k] < 0 || request.samples[k] >= samples())
        return {Code::invalid_argument, fmt::format("there is no sample {}: the arrays have {}", request.samples[k], samples())};
    }
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const TensorView& array = arrays_[i];
      const int64_t row = samples() == 0 ? 0 : array.byte_size() / samples();
      const auto* const rows = static_cast<const std::byte*>(array.data);
      TensorView value = array;
      value.shape[0] = request.count;
      if (consecutive) {
        value.data = const_cast<std::byte*>(rows + request.samples[0] * row);
        HEDDLE_CHECK(batch.refer(i, value));
        continue;
      }
      HEDDLE_TRY(void* const made, batch.make(i, value.dtype, value.shape));
      for (int64_t k = 0; k < request.count; ++k)
        std::memcpy(static_cast<std::byte*>(made) + k * row, rows + request.samples[k] * row, static_cast<size_t>(row));
    }
    return {};
  }

 private:
  const std::vector<std::string> names_;
  const std::vector<TensorView> arrays_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> Dataset::of_arrays(std::vector<std::pair<std::string, TensorView>> arrays) try {
  if (arrays.empty())
    return Status(Code::invalid_argument, "a dataset without arrays has no samples", "give one for each input of the net");
  std::vector<std::string> names;
  std::vector<TensorView> views;
  for (auto& [name, view] : arrays) {
    if (std::find(names.begin(), names.end(), name) != names.end())
      return Status(Code::duplicate_name, fmt::format("there are two arrays for {}", quoted(name)), "give each input one");
    int64_t bytes = 0;
    if (view.dtype == DType::none || view.shape.rank() == 0 || !checked_byte_size(view.dtype, view.shape, &bytes) ||
        (bytes > 0 && !view.data))
      return Status(
          Code::invalid_argument,
          fmt::format("the array for {}, {}{}, has no rows, no dtype or no data", quoted(name), to_string(view.dtype), view.shape.text()),
          "give a view whose axis 0 is that of the samples");
    if (!views.empty() && view.shape[0] != views[0].shape[0])
      return Status(Code::shape_mismatch,
                    fmt::format("{} has {} samples, {} has {}", quoted(names[0]), views[0].shape[0], quoted(name), view.shape[0]),
                    "give as many of each");
    names.push_back(std::move(name));
    views.push_back(view);
  }
  return std::shared_ptr<const Dataset>(std::make_shared<ArrayDataset>(std::move(names), std::move(views)));
} catch (...) {
  return status_of_exception();
}

}  // namespace heddle
