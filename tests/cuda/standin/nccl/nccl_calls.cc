// Implements NCCL: communicators, groups, collectives. All calls are checked as NCCL checks them or, where it does not, as its guide
// demands (rules.inc). A call on a non-blocking communicator is in progress for some questions longer than it takes.
#include <unistd.h>

#include <algorithm>
#include <string>

#include "nccl/nccl_objects.h"
#include "process.h"

namespace standin = heddle::cuda::standin;
using heddle::nccl::Comm;
using heddle::nccl::Config;
using heddle::nccl::DataType;
using heddle::nccl::Operation;
using heddle::nccl::Result;
using heddle::nccl::UniqueId;
using standin::Block;
using standin::Lock;
using standin::NcclBoard;
using standin::NcclBoardHeader;
using standin::NcclCall;
using standin::NcclComm;
using standin::NcclGroup;
using standin::NcclPending;
using standin::Process;
using standin::Rule;
using standin::Stream;
using Handle = Comm*;

namespace heddle::cuda::standin {

NcclGroup& this_nccl_group() {
  static thread_local NcclGroup group;
  return group;
}

std::vector<NcclGroup*>& open_nccl_groups() {
  static std::vector<NcclGroup*>& open = *new std::vector<NcclGroup*>();
  return open;
}

}  // namespace heddle::cuda::standin

namespace {

constexpr const char* operation_names[] = {"ncclAllReduce",     "ncclReduce", "ncclBroadcast", "ncclAllGather",
                                           "ncclReduceScatter", "ncclSend",   "ncclRecv"};

// A call that fails, since a test asks for it: in a group the error is the group's, and its end drops all calls.
Result fail(const char* name, Result result) {
  NcclGroup& group = standin::this_nccl_group();
  if (group.depth > 0 && group.failure == Result::success) group.failure = result;
  if (name == std::string("ncclGroupEnd")) {
    std::erase(standin::open_nccl_groups(), &group);
    group = {};
  }
  return result;
}

// body(process, lock) gives the answer of a call.
template <class Body>
Result nccl_api(const char* name, const Body& body) {
  Process& process = Process::get();
  Lock lock(process.mutex);
  ++process.calls.made;
  if (process.calls.on) process.calls.names.push_back(name);
  int answer = 0;
  if (standin::fails_call(process, name, &answer)) return fail(name, static_cast<Result>(answer));
  return body(process, lock);
}

std::shared_ptr<NcclComm> comm_of(Process& process, Handle handle, const char* call) {
  std::shared_ptr<NcclComm> comm = process.nccl_comms.find(handle);
  if (!comm) process.rules.add(Rule::nccl_unknown, call);
  return comm;
}

// Whether all ranks have come. With a seed, communicators are in progress for some questions after that.
bool is_complete(NcclComm& comm) {
  if (!comm.initialised) comm.initialised = comm.board->header().attached.load(std::memory_order_acquire) >= comm.ranks;
  return comm.initialised;
}

Result state_of(NcclComm& comm) {
  if (comm.failure != Result::success) return comm.failure;
  return !is_complete(comm) || comm.busy_polls > 0 ? Result::in_progress : Result::success;
}

void free_streams(NcclComm& comm) {
  for (const std::shared_ptr<Stream>& stream : comm.busy_streams) --stream->nccl_calls;
  comm.busy_streams.clear();
}

// This is what is wrong with using a communicator now; success: nothing.
Result check_usable(Process& process, NcclComm& comm, const char* call) {
  if (comm.revoked) return process.rules.add(Rule::nccl_revoked, call), Result::invalid_usage;
  if (comm.failure != Result::success) return process.rules.add(Rule::nccl_failed, call), comm.failure;
  const bool in_init = !comm.initialised && standin::this_nccl_group().depth > 0;
  const auto& inits = standin::this_nccl_group().inits;
  if (in_init && std::any_of(inits.begin(), inits.end(), [&](const auto& init) { return init.get() == &comm; }))
    return process.rules.add(Rule::nccl_init_with_calls, call), Result::invalid_argument;
  if (state_of(comm) == Result::in_progress) return process.rules.add(Rule::nccl_busy, call), Result::invalid_argument;
  return Result::success;
}

void enter_group() {
  NcclGroup& group = standin::this_nccl_group();
  if (group.depth++ == 0) standin::open_nccl_groups().push_back(&group);
}

Result begin_calls(Process& process, const std::vector<NcclPending>& calls) {
  bool blocking = true;
  for (const NcclPending& p : calls) {
    blocking = blocking && p.comm->blocking;
    if (p.comm->blocking || std::count(p.comm->busy_streams.begin(), p.comm->busy_streams.end(), p.stream) > 0) continue;
    p.comm->busy_streams.push_back(p.stream);
    ++p.stream->nccl_calls;
    p.comm->busy_polls = process.settings.seed == 0 ? 1 : static_cast<int>(1 + (process.settings.seed + p.comm->collectives) % 4);
  }
  return blocking ? Result::success : Result::in_progress;
}

Result leave_group(Process& process, Lock& lock) {
  NcclGroup& group = standin::this_nccl_group();
  if (--group.depth > 0) return Result::success;
  std::erase(standin::open_nccl_groups(), &group);
  std::vector<NcclPending> calls = std::exchange(group.calls, {});
  const std::vector<std::shared_ptr<NcclComm>> inits = std::exchange(group.inits, {});
  const Result failure = std::exchange(group.failure, Result::success);
  if (failure != Result::success) return failure;  // all calls of the group are dropped
  if (!calls.empty() && std::any_of(calls.begin(), calls.end(), [&](const auto& p) { return p.comm->blocking != calls[0].comm->blocking; }))
    process.rules.add(Rule::nccl_blocking_mixed, "ncclGroupEnd");
  standin::enqueue_nccl_calls(calls);
  Result result = begin_calls(process, calls);
  for (const std::shared_ptr<NcclComm>& init : inits) {
    if (!init->blocking) {
      result = Result::in_progress;
      continue;
    }
    while (!is_complete(*init) && !init->ended) {
      lock.unlock();
      ::usleep(200);
      lock.lock();
    }
  }
  return result;
}

// An error of a call in a group is the group's, too.
Result answer(Result result) {
  NcclGroup& group = standin::this_nccl_group();
  if (result != Result::success && result != Result::in_progress && group.failure == Result::success) group.failure = result;
  return result;
}

// ---------------------------------------------------------------- communicators

Result check_config(Process& process, const Config* config) {
  const Config initial;
  const bool is_made = config && config->magic == initial.magic && config->size >= 16 && config->version >= 21400;
  const auto is_flag = [](int32_t value) { return value == INT_MIN || value == 0 || value == 1; };
  if (is_made && is_flag(config->blocking) && is_flag(config->split_share) &&
      (config->min_ctas == INT_MIN || (config->min_ctas > 0 && config->max_ctas >= config->min_ctas)))
    return Result::success;
  process.rules.add(Rule::nccl_config, "ncclCommInitRankConfig");
  return Result::invalid_argument;
}

// A rank comes to the board of its communicator.
Result attach(Process& process, NcclComm& comm) {
  NcclBoardHeader& header = comm.board->header();
  int32_t none = 0;
  if (!header.ranks.compare_exchange_strong(none, comm.ranks) && none != comm.ranks)
    return process.rules.add(Rule::nccl_ranks, "ncclCommInitRankConfig: " + std::to_string(comm.ranks) + " ranks, where another says " +
                                                   std::to_string(none)),
           Result::success;  // it waits, and no one comes
  if (header.attached.load() >= comm.ranks) return process.rules.add(Rule::nccl_id_reused, "ncclCommInitRankConfig"), Result::remote_error;
  NcclBoardHeader::Rank& own = header.of[static_cast<size_t>(comm.rank)];
  if (own.is_there.exchange(1) != 0)
    return process.rules.add(Rule::nccl_ranks, "ncclCommInitRankConfig: rank " + std::to_string(comm.rank) + " twice"), Result::success;
  own.process = ::getpid();
  own.device = comm.device;
  for (int r = 0; r < comm.ranks; ++r) {
    const NcclBoardHeader::Rank& other = header.of[static_cast<size_t>(r)];
    if (r != comm.rank && other.is_there.load() != 0 && other.process == own.process && other.device == own.device)
      return process.rules.add(Rule::nccl_duplicate_device, "ncclCommInitRankConfig"), Result::invalid_usage;
  }
  header.attached.fetch_add(1, std::memory_order_release);
  return Result::success;
}

Result init(Process& process, Handle* handle, int32_t ranks, const UniqueId& id, int32_t rank, const Config* config) {
  if (!handle || ranks < 1 || rank < 0 || rank >= ranks || ranks > standin::max_nccl_ranks)
    return process.rules.add(Rule::nccl_init_arguments, "ncclCommInitRankConfig"), Result::invalid_argument;
  *handle = nullptr;
  if (const Result wrong = check_config(process, config); wrong != Result::success) return wrong;
  if (!standin::this_nccl_group().calls.empty()) process.rules.add(Rule::nccl_init_with_calls, "ncclCommInitRankConfig");
  auto comm = std::make_shared<NcclComm>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->device = standin::this_thread().device;
  comm->blocking = config->blocking != 0;
  comm->board = NcclBoard::open(id);
  if (!comm->board) return process.rules.add(Rule::nccl_init_arguments, "ncclCommInitRankConfig: an id that is none"), Result::remote_error;
  const auto& inits = standin::this_nccl_group().inits;
  if (std::any_of(inits.begin(), inits.end(), [&](const auto& other) { return other->blocking != comm->blocking; })) {
    process.rules.add(Rule::nccl_blocking_mixed, "ncclCommInitRankConfig");
    return Result::invalid_argument;
  }
  *handle = process.nccl_comms.add(comm);
  comm->failure = attach(process, *comm);
  comm->busy_polls = comm->blocking ? 0 : static_cast<int>(1 + process.settings.seed % 3);
  if (comm->failure == Result::success) standin::this_nccl_group().inits.push_back(comm);
  return comm->failure;
}

// This is what is on the streams does nothing more; returns when it has not.
void end_work(Process& process, Lock& lock, NcclComm& comm) {
  for (const NcclGroup* const group : standin::open_nccl_groups())
    if (std::any_of(group->calls.begin(), group->calls.end(), [&](const auto& p) { return p.comm.get() == &comm; }))
      process.rules.add(Rule::nccl_abort_during_call, "a group with calls of the communicator is open");
  comm.ended = true;
  free_streams(comm);
  comm.busy_polls = 0;
  process.engine.look_again();
  while (comm.jobs > 0 && process.engine.lost() == cudaSuccess) {
    lock.unlock();
    ::usleep(100);
    lock.lock();
  }
}

// ---------------------------------------------------------------- calls

bool is_of_device(Process& process, const NcclComm& comm, const void* data, uint64_t bytes) {
  const Block* const block = process.memory.block_at(data);
  return block && block->device == comm.device && static_cast<const std::byte*>(data) + bytes <= block->data + block->bytes;
}

// Returns what is wrong with where a call reads and writes.
Result check_memory(Process& process, const NcclPending& p, uint64_t width, const char* call) {
  struct Side {
    const std::byte* data;
    uint64_t bytes;
  };
  for (const auto& [data, bytes] : {Side{p.from, p.from_bytes}, Side{p.to, p.to_bytes}}) {
    if (bytes == 0) continue;
    if (!is_of_device(process, *p.comm, data, bytes)) return process.rules.add(Rule::nccl_memory, call), Result::unhandled_cuda_error;
    if (reinterpret_cast<uintptr_t>(data) % width != 0) return process.rules.add(Rule::nccl_alignment, call), Result::unhandled_cuda_error;
    process.use(*process.memory.block_at(data), *p.stream, call);
  }
  if (p.from_bytes == 0 || p.to_bytes == 0) return Result::success;
  const auto rank = static_cast<uint64_t>(p.comm->rank);
  const std::byte* in_place = p.to;  // where `from` may be within `to`, or around it
  if (p.call.kind == standin::nccl_all_gather) in_place = p.to + rank * p.from_bytes;
  if (p.call.kind == standin::nccl_reduce_scatter) in_place = p.to - rank * p.to_bytes;
  const bool overlaps = p.from < p.to + p.to_bytes && p.to < p.from + p.from_bytes;
  if (overlaps && p.from != in_place) process.rules.add(Rule::nccl_in_place, call);
  return Result::success;
}

// A collective, or one side of a transfer. `parts`: how many times `count` elements are read and written.
Result add_call(int32_t kind, const void* from, void* to, uint64_t count, uint64_t from_parts, uint64_t to_parts, DataType type,
                Operation operation, int32_t root, Handle handle, Stream* stream_handle) {
  const char* const name = operation_names[kind];
  return nccl_api(name, [&](Process& process, Lock& lock) -> Result {
    enter_group();
    const auto check = [&]() -> Result {
      const std::shared_ptr<NcclComm> comm = comm_of(process, handle, name);
      if (!comm) return Result::invalid_argument;
      if (const Result wrong = check_usable(process, *comm, name); wrong != Result::success) return wrong;
      if (root < 0 || root >= comm->ranks) return process.rules.add(Rule::nccl_root, name), Result::invalid_argument;
      const auto number_of_type = static_cast<int32_t>(type), number_of_operation = static_cast<int32_t>(operation);
      if (number_of_type < 0 || number_of_type > 11 || number_of_operation < 0 || number_of_operation > 4)
        return process.rules.add(Rule::nccl_type, name), Result::invalid_argument;
      const bool sums = kind == standin::nccl_all_reduce || kind == standin::nccl_reduce || kind == standin::nccl_reduce_scatter;
      if (sums && (number_of_type > 8 || type == DataType::f16 || operation == Operation::avg))
        return Result::internal_error;  // not done here
      if (count == 0 && kind != standin::nccl_send && kind != standin::nccl_receive) return Result::success;
      NcclPending p;
      p.comm = comm;
      p.stream = process.streams.find(reinterpret_cast<cudaStream_t>(stream_handle));
      if (!p.stream) return process.rules.add(Rule::unknown_stream, name), Result::invalid_argument;
      if (p.stream->device != comm->device) return process.rules.add(Rule::nccl_stream, name), Result::invalid_usage;
      const bool is_transfer = kind == standin::nccl_send || kind == standin::nccl_receive;
      p.call = {kind, number_of_type, number_of_operation, is_transfer ? 0 : root, count};
      p.peer = is_transfer ? root : -1;
      p.from = static_cast<const std::byte*>(from);
      p.to = static_cast<std::byte*>(to);
      const uint64_t bytes = count * standin::width_of(number_of_type);
      const auto parts = [&](uint64_t all) { return all == UINT64_MAX ? static_cast<uint64_t>(comm->ranks) : all; };
      p.from_bytes = from ? bytes * parts(from_parts) : 0;
      p.to_bytes = to ? bytes * parts(to_parts) : 0;
      if (kind == standin::nccl_reduce && comm->rank != root) p.to_bytes = 0, p.to = nullptr;
      if (kind == standin::nccl_broadcast && comm->rank != root) p.from_bytes = 0;
      if (const Result wrong = check_memory(process, p, standin::width_of(number_of_type), name); wrong != Result::success) return wrong;
      const int32_t own = ::getpid();
      int here = 0;
      for (int r = 0; r < comm->ranks; ++r) here += comm->board->header().of[static_cast<size_t>(r)].process == own;
      if (standin::this_nccl_group().depth == 1 && here > 1) process.rules.add(Rule::nccl_group_needed, name);
      standin::this_nccl_group().calls.push_back(std::move(p));
      return Result::success;
    };
    const Result result = answer(check());
    const Result ended = leave_group(process, lock);
    return result == Result::success ? ended : result;
  });
}

constexpr uint64_t all_ranks = UINT64_MAX;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result ncclGetVersion(int32_t* number) {
  return nccl_api(__func__, [&](Process& process, Lock&) { return *number = process.settings.nccl_version, Result::success; });
}

const char* ncclGetErrorString(Result result) {
  constexpr const char* texts[] = {"no error",
                                   "unhandled cuda error",
                                   "unhandled system error",
                                   "internal error",
                                   "invalid argument",
                                   "invalid usage",
                                   "remote process exited or there was a network error",
                                   "NCCL operation in progress"};
  return texts[static_cast<int32_t>(result)];
}

const char* ncclGetLastError(Handle) {
  return "";
}

Result ncclGetUniqueId(UniqueId* id) {
  return nccl_api(__func__, [&](Process& process, Lock&) { return process.nccl_boards.push_back(NcclBoard::make(id)), Result::success; });
}

Result ncclCommInitRankConfig(Handle* handle, int32_t ranks, UniqueId id, int32_t rank, Config* config) {
  return nccl_api(__func__, [&](Process& process, Lock& lock) -> Result {
    enter_group();
    const Result result = answer(init(process, handle, ranks, id, rank, config));
    const Result ended = leave_group(process, lock);
    return result == Result::success ? ended : result;
  });
}

Result ncclCommGetAsyncError(Handle handle, Result* state) {
  return nccl_api(__func__, [&](Process& process, Lock&) -> Result {
    const std::shared_ptr<NcclComm> comm = comm_of(process, handle, "ncclCommGetAsyncError");
    if (!comm || !state) return Result::invalid_argument;
    *state = state_of(*comm);
    if (is_complete(*comm) && comm->busy_polls > 0 && --comm->busy_polls == 0) free_streams(*comm);
    return Result::success;
  });
}

Result ncclCommDestroy(Handle handle) {
  return nccl_api(__func__, [&](Process& process, Lock& lock) -> Result {
    if (!handle) return Result::success;
    const std::shared_ptr<NcclComm> comm = comm_of(process, handle, "ncclCommDestroy");
    if (!comm) return Result::invalid_argument;
    if (comm->failure != Result::success) return process.rules.add(Rule::nccl_failed, "ncclCommDestroy"), comm->failure;
    if (!comm->revoked && state_of(*comm) == Result::in_progress)
      return process.rules.add(Rule::nccl_busy, "ncclCommDestroy"), Result::invalid_argument;
    while (comm->jobs > 0 && process.engine.lost() == cudaSuccess) {
      lock.unlock();
      ::usleep(100);
      lock.lock();
    }
    comm->ended = true;
    process.nccl_comms.remove(handle);
    return Result::success;
  });
}

Result ncclCommAbort(Handle handle) {
  return nccl_api(__func__, [&](Process& process, Lock& lock) -> Result {
    if (!handle) return Result::success;
    const std::shared_ptr<NcclComm> comm = comm_of(process, handle, "ncclCommAbort");
    if (!comm) return Result::invalid_argument;
    end_work(process, lock, *comm);
    process.nccl_comms.remove(handle);
    return Result::success;
  });
}

Result ncclCommRevoke(Handle handle, int32_t flags) {
  return nccl_api(__func__, [&](Process& process, Lock& lock) -> Result {
    if (!handle) return Result::success;
    const std::shared_ptr<NcclComm> comm = comm_of(process, handle, "ncclCommRevoke");
    if (!comm) return Result::invalid_argument;
    if (flags != 0 || comm->revoked) return process.rules.add(Rule::nccl_revoke, "ncclCommRevoke"), Result::invalid_argument;
    comm->revoked = true;
    end_work(process, lock, *comm);
    return comm->blocking ? Result::success : Result::in_progress;
  });
}

Result ncclGroupStart() {
  return nccl_api(__func__, [&](Process&, Lock&) { return enter_group(), Result::success; });
}

Result ncclGroupEnd() {
  return nccl_api(__func__, [&](Process& process, Lock& lock) -> Result {
    if (standin::this_nccl_group().depth == 0) return process.rules.add(Rule::nccl_group_end, "ncclGroupEnd"), Result::invalid_usage;
    return leave_group(process, lock);
  });
}

Result ncclAllReduce(const void* x, void* y, size_t count, DataType type, Operation operation, Handle comm, Stream* stream) {
  return add_call(standin::nccl_all_reduce, x, y, count, 1, 1, type, operation, 0, comm, stream);
}

Result ncclReduce(const void* x, void* y, size_t count, DataType type, Operation operation, int32_t root, Handle comm, Stream* stream) {
  return add_call(standin::nccl_reduce, x, y, count, 1, 1, type, operation, root, comm, stream);
}

Result ncclReduceScatter(const void* x, void* y, size_t count, DataType type, Operation operation, Handle comm, Stream* stream) {
  return add_call(standin::nccl_reduce_scatter, x, y, count, all_ranks, 1, type, operation, 0, comm, stream);
}

Result ncclBroadcast(const void* x, void* y, size_t count, DataType type, int32_t root, Handle comm, Stream* stream) {
  return add_call(standin::nccl_broadcast, x, y, count, 1, 1, type, Operation::sum, root, comm, stream);
}

Result ncclAllGather(const void* x, void* y, size_t count, DataType type, Handle comm, Stream* stream) {
  return add_call(standin::nccl_all_gather, x, y, count, 1, all_ranks, type, Operation::sum, 0, comm, stream);
}

Result ncclSend(const void* from, size_t count, DataType type, int32_t to, Handle comm, Stream* stream) {
  return add_call(standin::nccl_send, from, nullptr, count, 1, 0, type, Operation::sum, to, comm, stream);
}

Result ncclRecv(void* to, size_t count, DataType type, int32_t from, Handle comm, Stream* stream) {
  return add_call(standin::nccl_receive, nullptr, to, count, 0, 1, type, Operation::sum, from, comm, stream);
}

}  // extern "C"
#pragma GCC visibility pop
