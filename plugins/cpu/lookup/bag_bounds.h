// Assigns lookups to bags. The objects are views of a run's inputs; use one object for each walk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The form in which an operator lists its bags: the begin of each, or also the end of the last one after them, or the number of lookups of
// each, or no list: then all have the same number.
enum class BagList : uint8_t { none, offsets, offsets_and_end, lengths };

// A walk through the bags from any bag on.
class BagBounds {
 public:
  BagBounds(BagList form, const heddle_tensor* list, int64_t bags, int64_t lookups)
      : form_(form), list_(list), bags_(bags), lookups_(lookups) {}

  // Call it before next(). All lengths are read at once, as a bag begins where the previous ones end.
  Status start(int64_t bag, CancellationPoll& poll) {
    bag_ = bag;
    if (form_ == BagList::lengths) return add_lengths(poll);
    if (form_ == BagList::none) return {};
    if (bags_ == 0 && lookups_ > 0) return invalid("offsets names no bag for " + std::to_string(lookups_) + " indices");
    if (bag == 0 && list_->element_count > 0 && integer_at(*list_, 0) != 0)
      return invalid("offsets begins with " + std::to_string(integer_at(*list_, 0)) + ", expected 0");
    if (form_ == BagList::offsets_and_end && integer_at(*list_, bags_) != lookups_)
      return invalid("the last of offsets is " + std::to_string(integer_at(*list_, bags_)) + ", expected the number of indices, " +
                     std::to_string(lookups_));
    return {};
  }
  // Gives the lookups of the next bag.
  Status next(int64_t* first, int64_t* count) {
    const int64_t bag = bag_++;
    if (form_ == BagList::lengths || form_ == BagList::none) {
      *first = form_ == BagList::none ? lookups_ / bags_ * bag : begin_;
      *count = form_ == BagList::none ? lookups_ / bags_ : integer_at(*list_, bag);
      begin_ += *count;
      return {};
    }
    const int64_t begin = integer_at(*list_, bag), end = bag + 1 < list_->element_count ? integer_at(*list_, bag + 1) : lookups_;
    if (begin < 0 || begin > end || end > lookups_)
      return invalid("bag " + std::to_string(bag) + " is from " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                     std::to_string(lookups_) + " indices: offsets are to ascend within them");
    *first = begin;
    *count = end - begin;
    return {};
  }

 private:
  Status add_lengths(CancellationPoll& poll) {
    int64_t sum = 0;
    for (int64_t i = 0; i < bags_ && !poll.stops(1); ++i) {
      const int64_t length = integer_at(*list_, i);
      if (length < 0) return invalid("length " + std::to_string(length) + " of bag " + std::to_string(i) + " is negative");
      if (i == bag_) begin_ = sum;
      sum += std::min(length, INT64_MAX - sum);
    }
    if (poll.stopped() || sum == lookups_) return poll.status();
    return invalid("lengths add up to " + std::to_string(sum) + ", and there are " + std::to_string(lookups_) + " indices");
  }

  const BagList form_;
  const heddle_tensor* const list_;
  const int64_t bags_, lookups_;
  int64_t bag_ = 0, begin_ = 0;
};

}  // namespace heddle::cpu
