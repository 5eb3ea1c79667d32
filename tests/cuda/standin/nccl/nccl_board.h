// The memory that all ranks of one of NCCL's communicators share, in one process and in several: where they meet, and where the bytes of
// collectives lie until all have read them. It belongs to the id, and goes with the last process that has it.
//
// Collectives of all ranks are numbered. A rank posts what it gives to collective k once all are done with k - 1, and is done with k when
// it has read what all others posted. What one rank sends to another goes by a mailbox of the two, which holds one batch at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nccl/library/declarations.h"

namespace heddle::cuda::standin {

constexpr int max_nccl_ranks = 16;

// This is what a rank says of a collective: all ranks have to say the same, but for the last three.
struct NcclCall {
  int32_t kind = 0, type = 0, operation = 0, root = 0;
  uint64_t count = 0;
  uint64_t before_id = 0, before_number = 0;  // of another communicator's last collective on this device
  int32_t before_ranks = 0, unused = 0;
  bool is_like(const NcclCall& other) const {
    return kind == other.kind && type == other.type && operation == other.operation && root == other.root && count == other.count;
  }
};

struct NcclBoardHeader {
  std::atomic<int32_t> ranks;  // as the first one says; 0: none has come
  std::atomic<int32_t> attached;
  struct Rank {
    std::atomic<int32_t> is_there;
    std::atomic<int32_t> process, device;
    std::atomic<uint64_t> posted, done;  // numbers of collectives
    NcclCall call;                       // of the one posted last
  };
  std::array<Rank, max_nccl_ranks> of;
  struct Mailbox {
    std::atomic<uint64_t> posted, taken;  // batches
    uint64_t bytes;
    uint32_t messages;
    NcclCall call;  // of the batch: what was before it
  };
  std::array<std::array<Mailbox, max_nccl_ranks>, max_nccl_ranks> mail;  // by sender, by receiver
};

class NcclBoard {
 public:
  // Makes one, and writes to `id` where others find it.
  static std::shared_ptr<NcclBoard> make(nccl::UniqueId* id);
  // Opens the one of an id; null if there is none, or its process has ended.
  static std::shared_ptr<NcclBoard> open(const nccl::UniqueId& id);
  ~NcclBoard();
  NcclBoard(const NcclBoard&) = delete;
  NcclBoard& operator=(const NcclBoard&) = delete;

  NcclBoardHeader& header() const { return *header_; }
  uint64_t number() const { return number_; }  // differs from that of others
  // Where a rank posts, and the mailbox from one rank to another; each has room for that many bytes.
  std::byte* posted(int rank) const;
  std::byte* mail(int from, int to) const;
  static constexpr uint64_t posted_bytes = uint64_t{256} << 20, mail_bytes = uint64_t{64} << 20;

 private:
  NcclBoard(int file, uint64_t number);
  const int file_;
  const uint64_t number_;
  NcclBoardHeader* header_ = nullptr;
  std::byte* base_ = nullptr;
};

}  // namespace heddle::cuda::standin
