#include "collective/rank_collectives.h"

#include <algorithm>
#include <cstring>

#include "shared/dtype_dispatch.h"

namespace heddle::cpu {
namespace {

// Combining never stops half-way: a chunk is combined in a millisecond.
struct NeverStops {
  static bool stops(int64_t) { return false; }
};

int64_t width_of(heddle_dtype dtype) {
  return static_cast<int64_t>(byte_width(dtype));
}

}  // namespace

// With many ranks a chunk has more bytes, so that the parts of ranks do not become short messages.
int64_t RankCollectives::chunk_bytes() const {
  return std::max(min_chunk_bytes, part_bytes * size_);
}

char* RankCollectives::sized(std::vector<char>& buffer, uint64_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer.data();
}

// ---------------------------------------------------------------- sums of short tensors

Status RankCollectives::exchange_whole(const Elements& x) {
  const auto bytes = static_cast<uint64_t>(x.count * width_of(x.sent));
  char* const slots = sized(slots_, bytes * static_cast<uint64_t>(size_));
  const auto slot = [&](int32_t rank) { return slots + static_cast<uint64_t>(rank) * bytes; };
  HEDDLE_PLUGIN_CHECK(swap(
      bytes, [&](int32_t) { return x.in; }, slot));
  std::memcpy(slot(rank_), x.in, bytes);
  struct Slots {
    const char* first;
    uint64_t bytes;
  } const user = {slots, bytes};
  const auto data = [](const void* of, size_t part) -> const void* {
    const auto& all = *static_cast<const Slots*>(of);
    return all.first + part * all.bytes;
  };
  NeverStops never;
  const PartReducer reducer(x.reduction, {&user, data, static_cast<size_t>(size_)}, x.sent, x.dtype, x.divisor);
  reducer.reduce(0, x.count, never, [&](const void* elements, int64_t at, int64_t count) {
    std::memcpy(x.out + at * width_of(x.dtype), elements, static_cast<size_t>(count * width_of(x.dtype)));
  });
  return {};
}

// Rank r combines what it has with what rank r + 1 has, then with that of r + 2, r + 4, as long as r is a multiple of twice as many; else
// it gives its part to the rank before, and is done. This is the tree of one process. Partial results go in the dtype of the computation.
Status RankCollectives::along_tree(const Elements& x) {
  const heddle_dtype partial = compute_dtype(x.dtype);
  const auto bytes = static_cast<uint64_t>(x.count * width_of(partial));
  char* const slots = sized(slots_, 2 * bytes);
  struct Two {
    const void* data[2];
  };
  const auto data = [](const void* of, size_t part) { return static_cast<const Two*>(of)->data[part]; };
  NeverStops never;
  const auto combine = [&](const Two& two, size_t parts, Reduction reduction, heddle_dtype from, heddle_dtype to, int64_t divisor,
                           char* out) {
    PartReducer(reduction, {&two, data, parts}, from, to, divisor)
        .reduce(0, x.count, never, [&](const void* elements, int64_t at, int64_t n) {
          std::memcpy(out + at * width_of(to), elements, static_cast<size_t>(n * width_of(to)));
        });
  };
  const Reduction inner = x.reduction == Reduction::mean ? Reduction::sum : x.reduction;
  combine({{x.in, nullptr}}, 1, inner, x.sent, partial, 1, slots);
  for (int32_t step = 1; step < size_; step *= 2) {
    if (rank_ % (2 * step) != 0) {
      HEDDLE_PLUGIN_CHECK(send(rank_ - step, slots, bytes, 0, bytes, 0));
      HEDDLE_PLUGIN_CHECK(wait(rank_ - step, slots, bytes));
      break;
    }
    if (rank_ + step >= size_) continue;
    HEDDLE_PLUGIN_CHECK(receive(rank_ + step, slots + bytes, bytes, 0, bytes, 0));
    HEDDLE_PLUGIN_CHECK(wait(rank_ + step, slots + bytes, bytes));
    combine({{slots, slots + bytes}}, 2, inner, partial, partial, 1, slots);
  }
  if (rank_ == 0) combine({{slots, nullptr}}, 1, x.reduction, partial, x.dtype, x.divisor, x.out);
  return give_along_tree(x.out, static_cast<uint64_t>(x.count * width_of(x.dtype)), 0);
}

// ---------------------------------------------------------------- sums of long ones

// Elements that ranks combine in chunks: chunk c of rank r are the elements range(c, r), and all are range(-1, 0). What a rank receives of
// a chunk has a place for each rank, and chunks take turns with two of these.
template <class RangeOf>
class RankCollectives::Chunks {
 public:
  Chunks(RankCollectives& ranks, const Elements& x, int64_t chunks, const RangeOf& range)
      : ranks_(ranks), x_(x), range_(range), sent_(width_of(x.sent)), width_(width_of(x.dtype)), count_(range(-1, 0).count) {
    int64_t longest = 0;
    for (int64_t c = 0; c < chunks; ++c) longest = std::max(longest, range(c, ranks.rank_).count);
    slot_bytes_ = static_cast<uint64_t>(longest * sent_);
    slots_ = sized(ranks.slots_, 2 * slot_bytes_ * static_cast<uint64_t>(ranks.size_));
  }
  // Begins to give each rank what it combines of a chunk, and to receive what this one does.
  Status begin(int64_t chunk) {
    const auto own = static_cast<uint64_t>(range_(chunk, ranks_.rank_).count * sent_);
    HEDDLE_PLUGIN_CHECK(
        each_peer([&](int32_t, int32_t from) { return ranks_.receive(from, slot(chunk, from), slot_bytes_, 0, own, 2 * chunk); }));
    return each_peer([&](int32_t to, int32_t) {
      const ElementRange theirs = range_(chunk, to);
      return ranks_.send(to, x_.in, bytes(count_, sent_), bytes(theirs.first, sent_), bytes(theirs.count, sent_), 2 * chunk);
    });
  }
  // Combines this rank's part of a chunk, once all have given theirs.
  Status combine(int64_t chunk, char* out) {
    HEDDLE_PLUGIN_CHECK(each_peer([&](int32_t, int32_t from) { return ranks_.wait(from, slot(chunk, from), slot_bytes_); }));
    const ElementRange own = range_(chunk, ranks_.rank_);
    const Given given = {slot(chunk, 0), slot_bytes_, static_cast<size_t>(ranks_.rank_), x_.in + own.first * sent_};
    const auto data = [](const void* of, size_t part) -> const void* {
      const auto& all = *static_cast<const Given*>(of);
      return part == all.rank ? all.own : all.slots + part * all.slot_bytes;
    };
    NeverStops never;
    const PartReducer reducer(x_.reduction, {&given, data, static_cast<size_t>(ranks_.size_)}, x_.sent, x_.dtype, x_.divisor);
    reducer.reduce(0, own.count, never, [&](const void* elements, int64_t at, int64_t count) {
      std::memcpy(out + at * width_, elements, static_cast<size_t>(count * width_));
    });
    return {};
  }
  // Begins to give what was combined in its place in x.out to all, or to one.
  Status give_to_all(int64_t chunk) {
    return each_peer([&](int32_t to, int32_t from) {
      HEDDLE_PLUGIN_CHECK(take(chunk, from));
      return give(chunk, to);
    });
  }
  Status give_to(int64_t chunk, int32_t root) {
    if (ranks_.rank_ != root) return give(chunk, root);
    return each_peer([&](int32_t, int32_t from) { return take(chunk, from); });
  }
  Status finish() {
    return each_peer([&](int32_t peer, int32_t) {
      HEDDLE_PLUGIN_CHECK(ranks_.wait(peer, x_.in, bytes(count_, sent_)));
      return ranks_.wait(peer, x_.out, bytes(count_, width_));
    });
  }

 private:
  struct Given {
    const char* slots;
    uint64_t slot_bytes;
    size_t rank;  // whose elements are in `own`
    const char* own;
  };
  static uint64_t bytes(int64_t count, int64_t width) { return static_cast<uint64_t>(count * width); }
  char* slot(int64_t chunk, int32_t rank) const { return slots_ + static_cast<uint64_t>(chunk % 2 * ranks_.size_ + rank) * slot_bytes_; }
  // In an order in which no rank is the first of all others.
  template <class Act>
  Status each_peer(const Act& act) {
    const int32_t rank = ranks_.rank_, size = ranks_.size_;
    for (int32_t after = 1; after < size; ++after) HEDDLE_PLUGIN_CHECK(act((rank + after) % size, (rank + size - after) % size));
    return {};
  }
  Status give(int64_t chunk, int32_t to) {
    const ElementRange own = range_(chunk, ranks_.rank_);
    return ranks_.send(to, x_.out, bytes(count_, width_), bytes(own.first, width_), bytes(own.count, width_), 2 * chunk + 1);
  }
  Status take(int64_t chunk, int32_t from) {
    const ElementRange theirs = range_(chunk, from);
    return ranks_.receive(from, x_.out, bytes(count_, width_), bytes(theirs.first, width_), bytes(theirs.count, width_), 2 * chunk + 1);
  }

  RankCollectives& ranks_;
  const Elements& x_;
  const RangeOf& range_;
  const int64_t sent_, width_, count_;
  uint64_t slot_bytes_ = 0;
  char* slots_ = nullptr;
};

// Each rank combines its own of a chunk while the next chunk is under way. With Result::kept what is combined goes to `kept`, one chunk
// after the other.
template <class RangeOf>
Status RankCollectives::in_chunks(const Elements& x, int64_t chunks, const RangeOf& range, Result result, int32_t root, char* kept) {
  Chunks<RangeOf> all(*this, x, chunks, range);
  HEDDLE_PLUGIN_CHECK(all.begin(0));
  for (int64_t c = 0; c < chunks; ++c) {
    if (c + 1 < chunks) HEDDLE_PLUGIN_CHECK(all.begin(c + 1));
    const ElementRange own = range(c, rank_);
    HEDDLE_PLUGIN_CHECK(all.combine(c, result == Result::kept ? kept : x.out + own.first * width_of(x.dtype)));
    if (result == Result::kept) kept += own.count * width_of(x.dtype);
    if (result == Result::to_all) HEDDLE_PLUGIN_CHECK(all.give_to_all(c));
    if (result == Result::to_root) HEDDLE_PLUGIN_CHECK(all.give_to(c, root));
  }
  return all.finish();
}

Status RankCollectives::all_reduce_elements(const Elements& x) {
  if (x.count == 0) return {};
  if (x.count * width_of(x.sent) <= short_bytes) return size_ >= tree_from ? along_tree(x) : exchange_whole(x);
  const int64_t of_chunk = chunk_bytes() / width_of(x.sent), chunks = (x.count + of_chunk - 1) / of_chunk;
  const auto range = [&](int64_t chunk, int32_t rank) {
    if (chunk < 0) return ElementRange{0, x.count};
    return share_of_rank(chunk * of_chunk, std::min(of_chunk, x.count - chunk * of_chunk), rank, size_);
  };
  return in_chunks(x, chunks, range, Result::to_all, 0, nullptr);
}

// ---------------------------------------------------------------- tensors

// Combines what the devices of this rank have of a tensor, and makes *x what goes to the others: `in` is its memory, or sum_.
Status RankCollectives::reduce_whole(Parts mine, uint32_t tensor, Reduction reduction, Elements* x) {
  const heddle_tensor& input = *mine[0]->inputs[tensor];
  *x = {static_cast<const char*>(input.data),
        static_cast<char*>(mine[0]->outputs[tensor]->data),
        input.element_count,
        input.dtype,
        input.dtype,
        reduction,
        static_cast<int64_t>(participants(mine))};
  if (mine.size() == 1) return {};
  x->sent = compute_dtype(input.dtype);
  char* const sum = sized(sum_, static_cast<uint64_t>(x->count * width_of(x->sent)));
  const TensorOfParts of = {mine, tensor};
  NeverStops never;
  const PartReducer reducer(reduction == Reduction::mean ? Reduction::sum : reduction, of.elements(), input.dtype, x->sent, 1);
  reducer.reduce(0, x->count, never, [&](const void* elements, int64_t at, int64_t count) {
    std::memcpy(sum + at * width_of(x->sent), elements, static_cast<size_t>(count * width_of(x->sent)));
  });
  x->in = sum;
  return {};
}

Status RankCollectives::all_reduce(Parts mine, Reduction reduction) {
  const uint32_t tensors = mine[0]->input_count;
  const auto is_long = [&](uint32_t tensor) {
    const heddle_tensor& x = *mine[0]->inputs[tensor];
    return mine.size() > 1 || x.element_count * width_of(x.dtype) > short_bytes;
  };
  // Short ones of one dtype go together.
  for (uint32_t first = 0; first < tensors; ++first) {
    const heddle_dtype dtype = mine[0]->inputs[first]->dtype;
    const auto goes = [&](uint32_t tensor) { return mine[0]->inputs[tensor]->dtype == dtype && !is_long(tensor); };
    bool seen = false;
    for (uint32_t before = 0; before < first && !seen; ++before) seen = goes(before);
    if (seen || !goes(first)) continue;
    int64_t count = 0;
    for (uint32_t tensor = first; tensor < tensors; ++tensor)
      if (goes(tensor)) count += mine[0]->inputs[tensor]->element_count;
    const auto bytes = static_cast<uint64_t>(count * width_of(dtype));
    char *const packed = sized(packed_, bytes), *const result = sized(result_, bytes);
    const auto each = [&](const auto& copy) {
      uint64_t at = 0;
      for (uint32_t tensor = first; tensor < tensors; ++tensor) {
        if (!goes(tensor)) continue;
        const heddle_tensor& x = *mine[0]->inputs[tensor];
        if (x.byte_size > 0) copy(tensor, at, x.byte_size);
        at += x.byte_size;
      }
    };
    each([&](uint32_t tensor, uint64_t at, uint64_t n) { std::memcpy(packed + at, mine[0]->inputs[tensor]->data, n); });
    HEDDLE_PLUGIN_CHECK(all_reduce_elements({packed, result, count, dtype, dtype, reduction, static_cast<int64_t>(participants(mine))}));
    next();
    each([&](uint32_t tensor, uint64_t at, uint64_t n) { std::memcpy(mine[0]->outputs[tensor]->data, result + at, n); });
  }
  for (uint32_t tensor = 0; tensor < tensors; ++tensor) {
    if (!is_long(tensor)) continue;
    Elements x;
    HEDDLE_PLUGIN_CHECK(reduce_whole(mine, tensor, reduction, &x));
    HEDDLE_PLUGIN_CHECK(all_reduce_elements(x));
    next();
    const heddle_tensor& y = *mine[0]->outputs[tensor];
    for (size_t part = 1; part < mine.size() && y.byte_size > 0; ++part)
      std::memcpy(mine[part]->outputs[tensor]->data, y.data, y.byte_size);
  }
  return {};
}

Status RankCollectives::reduce(Parts mine, Reduction reduction, int64_t root) {
  const auto devices = static_cast<int64_t>(mine.size());
  const auto root_rank = static_cast<int32_t>(root / devices);
  for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor, next()) {
    Elements x;
    HEDDLE_PLUGIN_CHECK(reduce_whole(mine, tensor, reduction, &x));
    const int64_t of_chunk = chunk_bytes() / width_of(x.sent), chunks = (x.count + of_chunk - 1) / of_chunk;
    const auto range = [&](int64_t chunk, int32_t rank) {
      if (chunk < 0) return ElementRange{0, x.count};
      return share_of_rank(chunk * of_chunk, std::min(of_chunk, x.count - chunk * of_chunk), rank, size_);
    };
    if (x.count > 0) HEDDLE_PLUGIN_CHECK(in_chunks(x, chunks, range, Result::to_root, root_rank, nullptr));
    const uint64_t bytes = mine[0]->outputs[tensor]->byte_size;
    if (bytes == 0) continue;
    const auto chosen = static_cast<size_t>(root % devices);
    if (rank_ == root_rank && chosen != 0) std::memcpy(mine[chosen]->outputs[tensor]->data, x.out, bytes);
    for (size_t part = 0; part < mine.size(); ++part)
      if (rank_ != root_rank || part != chosen) std::memset(mine[part]->outputs[tensor]->data, 0, bytes);
  }
  return {};
}

Status RankCollectives::reduce_scatter(Parts mine, Reduction reduction) {
  for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor, next()) {
    Elements x;
    HEDDLE_PLUGIN_CHECK(reduce_whole(mine, tensor, reduction, &x));
    const int64_t each = x.count / size_;  // of the devices of a rank together
    if (each == 0) continue;
    const int64_t of_chunk = chunk_bytes() / width_of(x.sent) / size_, chunks = (each + of_chunk - 1) / of_chunk;
    const auto range = [&](int64_t chunk, int32_t rank) {
      if (chunk < 0) return ElementRange{0, x.count};
      return ElementRange{rank * each + chunk * of_chunk, std::min(of_chunk, each - chunk * of_chunk)};
    };
    const auto bytes = static_cast<uint64_t>(each * width_of(x.dtype));
    char* const kept = mine.size() == 1 ? static_cast<char*>(mine[0]->outputs[tensor]->data) : sized(result_, bytes);
    HEDDLE_PLUGIN_CHECK(in_chunks(x, chunks, range, Result::kept, 0, kept));
    const uint64_t block = bytes / mine.size();
    for (size_t part = 0; part < mine.size() && mine.size() > 1; ++part)
      std::memcpy(mine[part]->outputs[tensor]->data, kept + part * block, block);
  }
  return {};
}

// The output of the first device gets all, and is where the other ranks' rows arrive.
Status RankCollectives::all_gather(Parts mine) {
  for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor, next()) {
    const uint64_t block = mine[0]->inputs[tensor]->byte_size, of_rank = block * mine.size();
    if (block == 0) continue;
    char* const all = static_cast<char*>(mine[0]->outputs[tensor]->data);
    const auto of = [&](int32_t rank) { return all + static_cast<uint64_t>(rank) * of_rank; };
    for (size_t part = 0; part < mine.size(); ++part) std::memcpy(of(rank_) + part * block, mine[part]->inputs[tensor]->data, block);
    HEDDLE_PLUGIN_CHECK(swap(
        of_rank, [&](int32_t) { return of(rank_); }, of));
    for (size_t part = 1; part < mine.size(); ++part)
      std::memcpy(mine[part]->outputs[tensor]->data, all, of_rank * static_cast<uint64_t>(size_));
  }
  return {};
}

// A message has the blocks of all devices of a rank for all of another: those of the first device first, each in the order of targets.
Status RankCollectives::all_to_all(Parts mine) {
  const size_t devices = mine.size();
  for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor, next()) {
    const uint64_t block = mine[0]->inputs[tensor]->byte_size / participants(mine);
    if (block == 0) continue;
    const uint64_t message = block * devices * devices;
    char *const out = sized(packed_, message * static_cast<uint64_t>(size_)), *const in =
                                                                                  sized(result_, message * static_cast<uint64_t>(size_));
    const auto each_block = [&](const auto& copy) {
      for (size_t peer = 0; peer < static_cast<size_t>(size_); ++peer)
        for (size_t own = 0; own < devices; ++own)
          for (size_t other = 0; other < devices; ++other) copy(peer, own, other);
    };
    each_block([&](size_t peer, size_t own, size_t other) {
      std::memcpy(out + peer * message + (own * devices + other) * block,
                  static_cast<const char*>(mine[own]->inputs[tensor]->data) + (peer * devices + other) * block, block);
    });
    const auto of = [&](char* all) { return [=](int32_t peer) { return all + static_cast<uint64_t>(peer) * message; }; };
    HEDDLE_PLUGIN_CHECK(swap(message, of(out), of(in)));
    std::memcpy(in + static_cast<uint64_t>(rank_) * message, out + static_cast<uint64_t>(rank_) * message, message);
    each_block([&](size_t peer, size_t own, size_t other) {
      std::memcpy(static_cast<char*>(mine[own]->outputs[tensor]->data) + (peer * devices + other) * block,
                  in + peer * message + (other * devices + own) * block, block);
    });
  }
  return {};
}

Status RankCollectives::broadcast(Parts mine, int64_t root) {
  const auto devices = static_cast<int64_t>(mine.size());
  const auto root_rank = static_cast<int32_t>(root / devices);
  for (uint32_t tensor = 0; tensor < mine[0]->input_count; ++tensor, next()) {
    const heddle_tensor& y = *mine[0]->outputs[tensor];
    if (y.byte_size == 0) continue;
    const void* const given = mine[static_cast<size_t>(root % devices)]->inputs[tensor]->data;
    if (rank_ == root_rank && given != y.data) std::memcpy(y.data, given, y.byte_size);
    HEDDLE_PLUGIN_CHECK(broadcast_bytes(static_cast<char*>(y.data), y.byte_size, root_rank));
    for (size_t part = 1; part < mine.size(); ++part) std::memcpy(mine[part]->outputs[tensor]->data, y.data, y.byte_size);
  }
  return {};
}

}  // namespace heddle::cpu
