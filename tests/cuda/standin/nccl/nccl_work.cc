// The work of NCCL's collectives: on each stream two pieces, one that posts what the rank gives, and one that waits until all have, and
// reads. A rank that does not come lets the others wait until they are aborted: "device loops wait on memory flags without any time limit"
// (NCCL, prims_simple.h).
//
// Sums of floats are made in the order of a ring: of chunk c ((x[c+1] + x[c+2]) + ...) + x[c], modulo the number of ranks (NCCL,
// device/all_reduce.h).
#include <algorithm>
#include <cstring>
#include <map>

#include "nccl/nccl_objects.h"
#include "process.h"

namespace heddle::cuda::standin {
namespace {

using nccl::DataType;
using nccl::Operation;

template <class T>
T combined(T a, T b, Operation operation) {
  switch (operation) {
    case Operation::prod:
      return static_cast<T>(a * b);
    case Operation::max:
      return std::max(a, b);
    case Operation::min:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

// Elements [first, first + count) of what all ranks have posted, of `total`.
template <class T>
void combine_as(const NcclComm& comm, Operation operation, uint64_t first, uint64_t count, uint64_t total, std::byte* to) {
  const auto ranks = static_cast<uint64_t>(comm.ranks);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t chunk = (first + i) * ranks / total;
    T value = {};
    for (uint64_t k = 1; k <= ranks; ++k) {
      T next;
      std::memcpy(&next, comm.board->posted(static_cast<int>((chunk + k) % ranks)) + (first + i) * sizeof(T), sizeof(T));
      value = k == 1 ? next : combined(value, next, operation);
    }
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

// Unsigned, integers wrap as they do on devices; their order is that of signed ones where they are compared.
void combine(const NcclComm& comm, const NcclCall& call, uint64_t first, uint64_t count, uint64_t total, std::byte* to) {
  const auto operation = static_cast<Operation>(call.operation);
  const bool compares = operation == Operation::max || operation == Operation::min;
  switch (static_cast<DataType>(call.type)) {
    case DataType::i8:
      return compares ? combine_as<int8_t>(comm, operation, first, count, total, to)
                      : combine_as<uint8_t>(comm, operation, first, count, total, to);
    case DataType::u8:
      return combine_as<uint8_t>(comm, operation, first, count, total, to);
    case DataType::i32:
      return compares ? combine_as<int32_t>(comm, operation, first, count, total, to)
                      : combine_as<uint32_t>(comm, operation, first, count, total, to);
    case DataType::u32:
      return combine_as<uint32_t>(comm, operation, first, count, total, to);
    case DataType::i64:
      return compares ? combine_as<int64_t>(comm, operation, first, count, total, to)
                      : combine_as<uint64_t>(comm, operation, first, count, total, to);
    case DataType::u64:
      return combine_as<uint64_t>(comm, operation, first, count, total, to);
    case DataType::f32:
      return combine_as<float>(comm, operation, first, count, total, to);
    default:
      return combine_as<double>(comm, operation, first, count, total, to);
  }
}

NcclBoardHeader::Rank& own(const NcclComm& comm) {
  return comm.board->header().of[static_cast<size_t>(comm.rank)];
}

void complain(Rule rule, int rank, const char* what) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.rules.add(rule, std::string(what) + " of rank " + std::to_string(rank));
}

// Whether the device of another rank had come from the same collective of another communicator. Those of other ranks than these are left
// out.
void check_order(const NcclComm& comm, const NcclCall& mine, const NcclCall& other, int rank) {
  const bool comparable = mine.before_ranks == comm.ranks && other.before_ranks == comm.ranks;
  if (comparable && (mine.before_id != other.before_id || mine.before_number != other.before_number))
    complain(Rule::nccl_order, rank, "after another collective of another communicator than that");
}

// Whether each rank has said of a collective what this one says.
void check_alike(const NcclComm& comm, const NcclCall& mine) {
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const NcclCall& other = comm.board->header().of[static_cast<size_t>(rank)].call;
    if (!mine.is_like(other)) complain(Rule::nccl_alike, rank, "another collective than that");
    check_order(comm, mine, other, rank);
  }
}

void write_result(const NcclPending& p) {
  const NcclComm& comm = *p.comm;
  const uint64_t width = width_of(p.call.type), count = p.call.count;
  const auto ranks = static_cast<uint64_t>(comm.ranks), rank = static_cast<uint64_t>(comm.rank);
  switch (p.call.kind) {
    case nccl_all_reduce:
      return combine(comm, p.call, 0, count, count, p.to);
    case nccl_reduce:
      return comm.rank == p.call.root ? combine(comm, p.call, 0, count, count, p.to) : void();
    case nccl_reduce_scatter:
      return combine(comm, p.call, rank * count, count, ranks * count, p.to);
    case nccl_broadcast:
      std::memcpy(p.to, comm.board->posted(p.call.root), count * width);
      return;
    default:
      for (uint64_t r = 0; r < ranks; ++r) std::memcpy(p.to + r * count * width, comm.board->posted(static_cast<int>(r)), count * width);
  }
}

// This is what an aborted kernel leaves is anything.
void spoil(const NcclPending& p) {
  constexpr int anything = 0xab;
  if (p.to) std::memset(p.to, anything, p.to_bytes);
}

struct Step {
  std::function<bool()> ready;
  std::function<void()> work;
};

void enqueue(const std::shared_ptr<NcclComm>& comm, Stream& stream, const Step& step) {
  ++comm->jobs;
  Process::get().engine.enqueue_when(
      stream, [comm, ready = step.ready] { return comm->ended || ready(); },
      [comm, work = step.work] { return work(), --comm->jobs, cudaSuccess; });
}

void enqueue_collective(const NcclPending& p) {
  const uint64_t number = ++p.comm->collectives;
  const std::shared_ptr<NcclComm> comm = p.comm;
  const auto all = [comm](std::atomic<uint64_t> NcclBoardHeader::Rank::*what, uint64_t value) {
    for (int r = 0; r < comm->ranks; ++r)
      if ((comm->board->header().of[static_cast<size_t>(r)].*what).load(std::memory_order_acquire) < value) return false;
    return true;
  };
  enqueue(comm, *p.stream,
          {[all, number] { return all(&NcclBoardHeader::Rank::done, number - 1); },
           [p, number] {
             if (p.comm->ended) return;
             const bool gives = p.call.kind != nccl_broadcast || p.call.root == p.comm->rank;
             if (gives) std::memcpy(p.comm->board->posted(p.comm->rank), p.from, p.from_bytes);
             own(*p.comm).call = p.call;
             own(*p.comm).posted.store(number, std::memory_order_release);
           }});
  enqueue(comm, *p.stream,
          {[all, number] { return all(&NcclBoardHeader::Rank::posted, number); },
           [p, number] {
             if (p.comm->ended) return spoil(p);
             check_alike(*p.comm, p.call);
             write_result(p);
             own(*p.comm).done.store(number, std::memory_order_release);
           }});
}

// All transfers of a communicator in one group, which are under way together.
struct Batch {
  std::shared_ptr<NcclComm> comm;
  std::map<int, std::vector<NcclPending>> sent, received;  // by peer
  NcclCall call;                                           // what was before it
  NcclBoardHeader::Mailbox& mail(int from, int to) const {
    return comm->board->header().mail[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }
};

bool may_post(const Batch& batch) {
  return std::all_of(batch.sent.begin(), batch.sent.end(), [&](const auto& entry) {
    const NcclBoardHeader::Mailbox& box = batch.mail(batch.comm->rank, entry.first);
    return box.taken.load(std::memory_order_acquire) == box.posted.load(std::memory_order_relaxed);
  });
}

void post(const Batch& batch) {
  if (batch.comm->ended) return;
  for (const auto& [peer, messages] : batch.sent) {
    NcclBoardHeader::Mailbox& box = batch.mail(batch.comm->rank, peer);
    std::byte* to = batch.comm->board->mail(batch.comm->rank, peer);
    box.bytes = 0;
    box.messages = static_cast<uint32_t>(messages.size());
    box.call = batch.call;
    for (const NcclPending& message : messages) {
      std::memcpy(to + box.bytes, message.from, message.from_bytes);
      box.bytes += message.from_bytes;
    }
    box.posted.fetch_add(1, std::memory_order_release);
  }
}

bool has_come(const Batch& batch) {
  return std::all_of(batch.received.begin(), batch.received.end(), [&](const auto& entry) {
    const NcclBoardHeader::Mailbox& box = batch.mail(entry.first, batch.comm->rank);
    return box.posted.load(std::memory_order_acquire) > box.taken.load(std::memory_order_relaxed);
  });
}

void take(const Batch& batch) {
  for (const auto& [peer, messages] : batch.received) {
    if (batch.comm->ended) {
      for (const NcclPending& message : messages) spoil(message);
      continue;
    }
    NcclBoardHeader::Mailbox& box = batch.mail(peer, batch.comm->rank);
    const std::byte* from = batch.comm->board->mail(peer, batch.comm->rank);
    check_order(*batch.comm, batch.call, box.call, peer);
    uint64_t bytes = 0;
    for (const NcclPending& message : messages) bytes += message.to_bytes;
    if (bytes != box.bytes || messages.size() != box.messages) {
      Process& process = Process::get();
      const Lock lock(process.mutex);
      process.rules.add(Rule::nccl_pairs, std::to_string(bytes) + " bytes are received of " + std::to_string(box.bytes) + " from rank " +
                                              std::to_string(peer));
    } else {
      for (const NcclPending& message : messages) {
        std::memcpy(message.to, from, message.to_bytes);
        from += message.to_bytes;
      }
    }
    box.taken.fetch_add(1, std::memory_order_release);
  }
}

void enqueue_batch(const std::shared_ptr<Batch>& batch, Stream& stream) {
  enqueue(batch->comm, stream, {[batch] { return may_post(*batch); }, [batch] { post(*batch); }});
  enqueue(batch->comm, stream, {[batch] { return has_come(*batch); }, [batch] { take(*batch); }});
  // This is what is sent is done when it was received.
  enqueue(batch->comm, stream, {[batch] { return may_post(*batch); }, [] {}});
}

// The last collective of each device, of any communicator.
struct Last {
  std::shared_ptr<NcclComm> comm;
  uint64_t number = 0;
};

}  // namespace

void enqueue_nccl_calls(std::vector<NcclPending>& calls) {
  static std::map<int, std::vector<Last>>& last = *new std::map<int, std::vector<Last>>();
  const auto note_before = [&](const std::shared_ptr<NcclComm>& comm, NcclCall* call) {
    std::vector<Last>& here = last[comm->device];
    std::erase_if(here, [](const Last& l) { return l.comm->ended.load(); });
    const auto other = std::find_if(here.rbegin(), here.rend(), [&](const Last& l) { return l.comm != comm; });
    if (other == here.rend()) return;
    call->before_id = other->comm->board->number();
    call->before_number = other->number;
    call->before_ranks = other->comm->ranks;
  };
  const auto note_last = [&](const std::shared_ptr<NcclComm>& comm) {
    std::vector<Last>& here = last[comm->device];
    std::erase_if(here, [&](const Last& l) { return l.comm == comm; });
    here.push_back({comm, comm->collectives});
  };
  std::map<NcclComm*, std::shared_ptr<Batch>> batches;
  std::map<NcclComm*, Stream*> streams;
  for (NcclPending& p : calls) {
    if (p.call.kind == nccl_send || p.call.kind == nccl_receive) {
      std::shared_ptr<Batch>& batch = batches[p.comm.get()];
      if (!batch) {
        batch = std::make_shared<Batch>(Batch{p.comm, {}, {}, {}});
        note_before(p.comm, &batch->call);
      }
      (p.call.kind == nccl_send ? batch->sent : batch->received)[p.peer].push_back(p);
      streams[p.comm.get()] = p.stream.get();
    } else {
      note_before(p.comm, &p.call);
      enqueue_collective(p);
    }
    note_last(p.comm);
  }
  for (const auto& [comm, batch] : batches) enqueue_batch(batch, *streams.at(comm));
}

}  // namespace heddle::cuda::standin
