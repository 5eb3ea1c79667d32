// The interference of a net's buffers: "before" between buffers, answered from the clocks. Private to liveness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/liveness/liveness_chains.h"

namespace heddle {

// The steps that bound one buffer's life. A set of aliases has several definitions.
struct BufferLife {
  std::vector<uint32_t> definitions;  // the first on each chain
  std::vector<uint32_t> uses;         // the last on each chain; definitions count
  bool from_start = false;
  bool to_end = false;
};

class PartialOrder final : public offsets::Interference {
 public:
  // Takes over `clocks`. `lives` and `intervals` (serial lives, for the order of definitions) belong to the same buffers.
  PartialOrder(const ChainCover& cover, ForwardClocks clocks, std::span<const BufferLife> lives,
               const std::vector<offsets::Buffer>& intervals, uint32_t steps);

  bool interferes(uint32_t a, uint32_t b) const override { return first_[a] <= first_[b] ? !before(a, b) : !before(b, a); }
  int64_t settled(uint32_t a) const override { return settled_[a]; }
  // True if every use of a happens before every definition of b.
  bool before(uint32_t a, uint32_t b) const {
    if (is_open_[a] || is_given_[b]) return false;
    const uint32_t* dead = dead_row(a);
    for (uint32_t i = place_begin_[b]; i < place_begin_[b + 1]; ++i)
      if (places_[i].position < dead[places_[i].chain]) return false;
    return true;
  }
  // Returns the first position on each chain at which `a` is dead; all that follow on the chain are after it too.
  std::span<const uint32_t> dead_from(uint32_t a) const { return {dead_row(a), chains_}; }
  bool is_open(uint32_t a) const { return is_open_[a] != 0; }    // used to the end
  bool is_given(uint32_t a) const { return is_given_[a] != 0; }  // exists from the start

 private:
  struct Place {
    uint32_t chain, position;
  };
  const uint32_t* dead_row(uint32_t a) const {
    return merged_[a] == UINT32_MAX ? clocks_.row(last_use_[a]) : merged_rows_.data() + static_cast<size_t>(merged_[a]) * chains_;
  }

  size_t chains_;
  ForwardClocks clocks_;
  std::vector<uint32_t> last_use_;     // the one use that all others happen before, if there is one
  std::vector<uint32_t> merged_;       // else: the row of merged_rows_; UINT32_MAX: none
  std::vector<uint32_t> merged_rows_;  // for buffers with several last uses: the later on each chain
  std::vector<uint32_t> place_begin_;
  std::vector<Place> places_;  // the places of definitions
  std::vector<int64_t> first_, settled_;
  std::vector<uint8_t> is_open_, is_given_;
};

}  // namespace heddle
