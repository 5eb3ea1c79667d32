// Numbers by which the collectives between processes decide how their elements go (collective/rank_collectives.h). Predictions count with
// the same numbers (runtime/session/predict_ranks.cc); a test compares the two.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// A collective of no more bytes than these is a short one; short ones go along a tree if there are at least so many ranks.
constexpr int64_t short_bytes = 16 << 10;
constexpr int32_t tree_from = 9;
// Chunks of long ones have so many bytes, or `part_bytes` for each rank if that is more.
constexpr int64_t min_chunk_bytes = 1 << 20, part_bytes = 64 << 10;

}  // namespace heddle::cpu
