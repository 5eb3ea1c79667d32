#include "train/batch_sequence.h"

#include <algorithm>
#include <numeric>

#include "heddle/op/philox.h"
#include "net/batch_parts.h"

namespace heddle {
namespace {

constexpr uint32_t order_stream = 0xda7a;  // of random numbers: no operator of a net has this constant

}  // namespace

BatchSequence::BatchSequence(const Options& options)
    : options_(options),
      batches_(options.samples / options.batch + (options.last_batch != LastBatch::drop && options.samples % options.batch != 0 ? 1 : 0)) {}

int64_t BatchSequence::samples_of(int64_t number) const {
  return std::min(options_.batch, options_.samples - number % batches_ * options_.batch);
}

BatchRequest BatchSequence::request(int64_t number) {
  const int64_t epoch = number / batches_, first = number % batches_ * options_.batch;
  if (epoch != epoch_) make_order(epoch);
  const int64_t left = samples_of(number);
  const int64_t count = options_.last_batch == LastBatch::pad ? options_.batch : left;
  const int64_t own = first_row_of_part(count, options_.rank, options_.ranks),
                end = first_row_of_part(count, options_.rank + 1, options_.ranks);
  const int64_t padding = std::min(end - own, std::max<int64_t>(0, end - left));
  return {order_.data() + first + own, end - own, padding, options_.seed, options_.tests ? -1 : epoch};
}

void BatchSequence::make_order(int64_t epoch) {
  epoch_ = -1;  // until it is complete
  const auto samples = static_cast<size_t>(options_.samples);
  const bool pads = options_.last_batch == LastBatch::pad;
  order_.resize(pads ? std::max(samples, static_cast<size_t>(batches_ * options_.batch)) : samples);
  std::iota(order_.begin(), order_.end(), 0);
  const plugin::Philox philox(options_.seed, order_stream, static_cast<uint64_t>(epoch));
  for (size_t i = samples; options_.shuffle && i > 1; --i) {  // Fisher and Yates
    const plugin::Philox::Block words = philox.block(i);
    std::swap(order_[i - 1], order_[(uint64_t{words[0]} << 32 | words[1]) % i]);
  }
  std::fill(order_.begin() + static_cast<std::ptrdiff_t>(samples), order_.end(), order_[samples - 1]);
  epoch_ = epoch;
}

}  // namespace heddle
