#include "memory/liveness/liveness_order.h"

#include <algorithm>

namespace heddle {

PartialOrder::PartialOrder(const ChainCover& cover, ForwardClocks clocks, std::span<const BufferLife> lives,
                           const std::vector<offsets::Buffer>& intervals, uint32_t steps)
    : chains_(cover.chains()), clocks_(std::move(clocks)), last_use_(lives.size(), 0), merged_(lives.size(), UINT32_MAX) {
  place_begin_.push_back(0);
  for (size_t i = 0; i < lives.size(); ++i) {
    const BufferLife& life = lives[i];
    first_.push_back(intervals[i].first);
    is_open_.push_back(life.to_end);
    is_given_.push_back(life.from_start);
    for (const uint32_t step : life.definitions) places_.push_back({cover.chain[step], cover.position[step]});
    place_begin_.push_back(static_cast<uint32_t>(places_.size()));
    std::vector<uint32_t> last = life.uses;
    std::erase_if(last, [&](uint32_t use) {
      return std::any_of(life.uses.begin(), life.uses.end(), [&](uint32_t other) { return clocks_.happens_before(use, other, cover); });
    });
    if (last.size() == 1) {
      last_use_[i] = last[0];
    } else {
      merged_[i] = static_cast<uint32_t>(merged_rows_.size() / chains_);
      const size_t begin = merged_rows_.size();
      merged_rows_.resize(begin + chains_, 0);
      for (const uint32_t use : last)
        for (size_t k = 0; k < chains_; ++k) merged_rows_[begin + k] = std::max(merged_rows_[begin + k], clocks_.row(use)[k]);
    }
    // One past the last step in plan order that does not happen after all uses.
    int64_t settled = life.to_end ? static_cast<int64_t>(steps) + 1 : intervals[i].last;
    for (size_t k = 0; k < chains_ && !life.to_end; ++k)
      if (const uint32_t dead = dead_row(static_cast<uint32_t>(i))[k]; dead > 0)
        settled = std::max(settled, int64_t{cover.members[k][dead - 1]} + 1);
    settled_.push_back(settled);
  }
}

}  // namespace heddle
