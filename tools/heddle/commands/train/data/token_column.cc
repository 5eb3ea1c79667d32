#include "commands/train/data/token_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text/text.h"
#include "tensors/convert.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

class TokenColumn final : public SampleColumn {
 public:
  TokenColumn(std::shared_ptr<const Blob> tokens, DType dtype, int64_t length, int64_t shift, int64_t max_shift)
      : tokens_(std::move(tokens)),
        dtype_(dtype),
        length_(length),
        shift_(shift),
        samples_(std::max<int64_t>(0, tokens_->shape[0] - max_shift) / length) {}
  int64_t samples() const override { return samples_; }
  Status read(const BatchRequest& request, size_t i, Batch& batch) const override {
    HEDDLE_TRY(void* const made, batch.make(i, dtype_, {request.count, length_}));
    const TensorView tokens = {tokens_->dtype, tokens_->shape, const_cast<std::byte*>(tokens_->data)};
    for (int64_t k = 0; k < request.count; ++k)
      for (int64_t t = 0; t < length_; ++t) {
        int64_t token = 0;
        if (!whole_element(tokens, request.samples[k] * length_ + shift_ + t, &token) || !store_whole(made, dtype_, k * length_ + t, token))
          return {Code::invalid_argument,
                  fmt::format("token {} is {}, which no {} is", request.samples[k] * length_ + shift_ + t, token, to_string(dtype_)),
                  "look at the data"};
      }
    return {};
  }

 private:
  const std::shared_ptr<const Blob> tokens_;
  const DType dtype_;
  const int64_t length_, shift_, samples_;
};

}  // namespace

Result<std::shared_ptr<const Blob>> read_tokens(const std::string& option, const std::string& file, const Limits& limits) {
  if (file.ends_with(".txt")) {
    HEDDLE_TRY(const FileBytes bytes, read_file(file, limits.weight_file_bytes, "weight_file_bytes"), option);
    return std::shared_ptr<const Blob>(Blob::copy_of(DType::u8, {static_cast<int64_t>(bytes.size)}, bytes.data.get()));
  }
  HEDDLE_TRY(std::shared_ptr<const Blob> read, read_tensor(file, limits), option);
  if (read->shape.rank() != 1)
    return Status(Code::shape_mismatch,
                  fmt::format("{}: {} has shape {}, and tokens are one row", option, quoted(file), read->shape.text()),
                  "save them as one row");
  if (!is_whole(read->dtype))
    return Status(Code::dtype_mismatch,
                  fmt::format("{}: {} has numbers of {}, and tokens are whole", option, quoted(file), to_string(read->dtype)),
                  "save them as integers");
  return read;
}

Result<std::shared_ptr<const SampleColumn>> token_column(const std::string& option, const PortInfo& input,
                                                         std::shared_ptr<const Blob> tokens, int64_t shift, int64_t max_shift) {
  if (!input.ranked || input.shape.rank() != 2 || input.shape[1] < 1)
    return Status(
        Code::unbound_symbol,
        fmt::format("{}: input {} has no fixed length, {}, into which tokens could be cut", option, quoted(input.name), input.shape.text()),
        "make the input [batch, length]");
  if (!takes_whole(input.dtype))
    return Status(Code::dtype_mismatch,
                  fmt::format("{}: input {} is {}, and takes no tokens", option, quoted(input.name), to_string(input.dtype)),
                  "make it i64 or i32");
  if (tokens->shape[0] - max_shift < input.shape[1])
    return Status(Code::invalid_argument,
                  fmt::format("{}: there are {} tokens, fewer than one sample of {} and {} after it", option, tokens->shape[0],
                              input.shape[1], max_shift),
                  "give more tokens");
  return std::shared_ptr<const SampleColumn>(
      std::make_shared<TokenColumn>(std::move(tokens), input.dtype, input.shape[1], shift, max_shift));
}

}  // namespace heddle::tool
