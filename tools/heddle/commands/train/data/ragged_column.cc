#include "commands/train/data/ragged_column.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text/text.h"
#include "tensors/convert.h"

namespace heddle::tool {
namespace {

int64_t offset_at(const Blob& offsets, int64_t i) {
  int64_t offset = 0;
  whole_element({offsets.dtype, offsets.shape, const_cast<std::byte*>(offsets.data)}, i, &offset);
  return offset;
}

class OffsetsColumn final : public SampleColumn {
 public:
  explicit OffsetsColumn(std::shared_ptr<const SampleOffsets> offsets) : offsets_(std::move(offsets)) {}
  int64_t samples() const override { return offsets_->samples; }
  Status read(const BatchRequest& request, size_t i, Batch& batch) const override {
    const DType dtype = offsets_->given->dtype;
    const int64_t count = request.count + (offsets_->has_end() ? 1 : 0);
    HEDDLE_TRY(void* const made, batch.make(i, dtype, {count}));
    int64_t at = 0;
    for (int64_t k = 0; k < count; ++k) {
      if (!store_whole(made, dtype, k, at))
        return {Code::invalid_argument, "a batch has more values than i32 offsets can count", "take a smaller batch"};
      if (k == request.count) break;
      const auto [begin, end] = offsets_->range(request.samples[k]);
      at += end - begin;
    }
    return {};
  }

 private:
  const std::shared_ptr<const SampleOffsets> offsets_;
};

class RaggedColumn final : public SampleColumn {
 public:
  RaggedColumn(std::shared_ptr<const Blob> values, std::shared_ptr<const SampleOffsets> offsets)
      : values_(std::move(values)), offsets_(std::move(offsets)) {}
  int64_t samples() const override { return offsets_->samples; }
  Status read(const BatchRequest& request, size_t i, Batch& batch) const override {
    Shape shape = values_->shape;
    shape[0] = 0;
    for (int64_t k = 0; k < request.count; ++k) {
      const auto [begin, end] = offsets_->range(request.samples[k]);
      shape[0] += end - begin;
    }
    HEDDLE_TRY(void* const made, batch.make(i, values_->dtype, shape));
    const int64_t rows = values_->shape[0], row = rows == 0 ? 0 : values_->bytes / rows;
    auto* to = static_cast<std::byte*>(made);
    for (int64_t k = 0; k < request.count; ++k) {
      const auto [begin, end] = offsets_->range(request.samples[k]);
      if (begin == end) continue;
      std::memcpy(to, values_->data + begin * row, static_cast<size_t>((end - begin) * row));
      to += (end - begin) * row;
    }
    return {};
  }

 private:
  const std::shared_ptr<const Blob> values_;
  const std::shared_ptr<const SampleOffsets> offsets_;
};

}  // namespace

std::pair<int64_t, int64_t> SampleOffsets::range(int64_t sample) const {
  const bool is_last = sample + 1 == given->shape[0];
  return {offset_at(*given, sample), is_last ? values : offset_at(*given, sample + 1)};
}

Result<std::shared_ptr<const SampleOffsets>> sample_offsets(const std::string& option, const std::string& name,
                                                            std::shared_ptr<const Blob> offsets, int64_t values, int64_t samples) {
  const bool is_row = offsets->shape.rank() == 1 && takes_whole(offsets->dtype);
  const int64_t count = is_row ? offsets->shape[0] : 0;
  if (!is_row || count < 1 || (samples >= 0 && count != samples && count != samples + 1))
    return Status(Code::shape_mismatch,
                  fmt::format("{}: {} is {}{}, expected an offset for each sample{}", option, quoted(name), to_string(offsets->dtype),
                              offsets->shape.text(), samples < 0 ? "" : fmt::format(", of which there are {}", samples)),
                  "give an offset for each sample, and perhaps the number of values at the end");
  auto made = std::make_shared<SampleOffsets>();
  const bool ends_with_all = count > 1 && offset_at(*offsets, count - 1) == values;  // of a sample it would say that it has none
  made->samples = samples >= 0 ? samples : ends_with_all ? count - 1 : count;
  made->values = values;
  int64_t before = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = offset_at(*offsets, i);
    const bool is_end = i == made->samples;
    if ((i == 0 && at != 0) || at < before || at > values || (is_end && at != values))
      return Status(
          Code::invalid_argument,
          fmt::format("{}: offset {} of {} is {}, after {}, where there are {} values", option, i, quoted(name), at, before, values),
          "offsets ascend from 0 to the number of values");
    before = at;
  }
  made->given = std::move(offsets);
  return std::shared_ptr<const SampleOffsets>(std::move(made));
}

std::shared_ptr<const SampleColumn> offsets_column(std::shared_ptr<const SampleOffsets> offsets) {
  return std::make_shared<OffsetsColumn>(std::move(offsets));
}

std::shared_ptr<const SampleColumn> ragged_column(std::shared_ptr<const Blob> values, std::shared_ptr<const SampleOffsets> offsets) {
  return std::make_shared<RaggedColumn>(std::move(values), std::move(offsets));
}

}  // namespace heddle::tool
