#include "communicator/nccl_communicator.h"

#include <algorithm>
#include <utility>

#include "library/element_types.h"

namespace heddle::nccl {

using operators::Reduction;
using plugin::ResourceRequest;
using plugin::RunContext;

namespace {

// How long to sleep between questions whether NCCL has finished a call: at first none, since most calls take some microseconds.
class Pause {
 public:
  void rest() {
    if (++times_ < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(times_ < 256 ? 20 : 500));
  }

 private:
  int times_ = 0;
};

// ncclCommAbort and ncclCommDestroy wait for the devices, and a call that fails may leave its thread inside of a group: they have a thread
// of their own. If none can be made, the caller does the work.
template <class Work>
std::thread on_own_thread(const Work& work) {
  try {
    return std::thread(work);
  } catch (const std::exception&) {
    work();
    return {};
  }
}

constexpr int64_t warm_up_elements = 1 << 18;

std::string milliseconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

}  // namespace

// ---------------------------------------------------------------- its life

NcclCommunicator::NcclCommunicator(const ResourceRequest& request)
    : name_("communicator \"" + std::string(request.communicator()) + '"'), timeout_(request.timeout_ns()) {
  own_ = own_part(request);
  auto* const control = request.need<operators::RankControl>("cpu.communicator", 1);
  if (!control) {
    status_ = plugin::invalid("GPUs of " + name_ + " need the communicator of their ranks");  // the host adds why there is none
    return;
  }
  status_ = introduce(request, own_, *control, &whole_);
  if (request.size() > 1) control_ = control;
  if (control_) control_->follow(&launched_);
  if (status_.ok()) status_ = connect(request);
  launched_.has_connected();
  if (!status_.ok()) end_comms();
}

NcclCommunicator::~NcclCommunicator() {
  if (control_) control_->follow(nullptr);
  if (ends_.joinable()) {  // an abort frees them
    ends_.join();
  } else if (std::any_of(comms_.begin(), comms_.end(), [](const Comm* comm) { return comm; })) {
    on_own_thread([this] {
      for (Comm* const comm : comms_)
        if (comm) Library::get().ncclCommDestroy(comm);
    }).join();
  }
}

// Stops what is on the devices, then frees what NCCL has.
void NcclCommunicator::end_comms() {
  const std::lock_guard<std::mutex> alone(calls_);
  launched_.stop();
  for (Comm* const comm : comms_)
    if (comm && status_.ok()) Library::get().ncclCommRevoke(comm, 0);
  for (Comm*& comm : comms_)
    if (Comm* const ended = std::exchange(comm, nullptr)) Library::get().ncclCommAbort(ended);
}

void NcclCommunicator::abort(const char* why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_.exchange(true)) return;
    if (failure_.ok()) failure_ = {HEDDLE_ERROR_CANCELLED, why};
  }
  ends_ = on_own_thread([this] { end_comms(); });
}

void NcclCommunicator::fail(const Status& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = failure;
}

Status NcclCommunicator::refused() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

// ---------------------------------------------------------------- waiting

// Fails if NCCL is to be waited for no longer. At the time-out this rank leaves the others, which is how it learns who is missing.
Status NcclCommunicator::given_up(const Waiting& waiting) const {
  HEDDLE_PLUGIN_CHECK(look_for_ranks(waiting));
  if (Clock::now() < waiting.until) return {};
  const std::string late =
      "NCCL did not finish a call for " + std::to_string(whole_.participants) + " GPUs of " + name_ + " within " + milliseconds(timeout_);
  // Which rank did not come the host's communicator finds out: it asks all, and waits for their answers.
  constexpr std::chrono::seconds longest_answer(5);
  if (control_) control_->give_up(true, late);
  Pause pause;
  for (const Clock::time_point until = Clock::now() + longest_answer; control_ && Clock::now() < until; pause.rest())
    HEDDLE_PLUGIN_CHECK(look_for_ranks(waiting));
  return {HEDDLE_ERROR_DEVICE, late};
}

// Fails if a rank is lost, or if the run that waits has ended. While GPUs are being connected, all ranks are needed.
Status NcclCommunicator::look_for_ranks(const Waiting& waiting) const {
  if (aborted_) return refused();
  if (control_) HEDDLE_PLUGIN_CHECK(waiting.request ? control_->check_all_there() : control_->poll_error());
  if (waiting.request && waiting.request->cancelled()) return {HEDDLE_ERROR_CANCELLED, "its run has ended"};
  if (waiting.run && plugin::is_cancelled(*waiting.run)) return {HEDDLE_ERROR_CANCELLED, "the run has ended"};
  return {};
}

// Waits until NCCL has finished what was begun for all devices: before that their streams may not be used.
Status NcclCommunicator::settle(const Waiting& waiting) {
  Pause pause;
  for (Comm* const comm : comms_) {
    for (;; pause.rest()) {
      Result state = Result::success;
      const Result asked = Library::get().ncclCommGetAsyncError(comm, &state);
      if (asked != Result::success) return failed("ncclCommGetAsyncError", asked);
      if (state == Result::success) break;
      if (state != Result::in_progress) return failed("NCCL", state);
      HEDDLE_PLUGIN_CHECK(given_up(waiting));
    }
  }
  return {};
}

Status NcclCommunicator::wait_for_streams(const std::vector<Stream*>& streams, const Waiting& waiting) const {
  Pause pause;
  for (Stream* const stream : streams) {
    for (;; pause.rest()) {
      const CudaError error = Library::get().cudaStreamQuery(stream);
      if (error == cuda_success) break;
      if (error != cuda_not_ready) return failed("cudaStreamQuery", error);
      Library::get().cudaGetLastError();
      HEDDLE_PLUGIN_CHECK(given_up(waiting));
    }
  }
  return {};
}

// ---------------------------------------------------------------- connecting

Status NcclCommunicator::connect(const ResourceRequest& request) {
  const Library& library = Library::get();
  Waiting waiting;
  waiting.request = &request;
  waiting.until = Clock::now() + timeout_;
  comms_.assign(own_.devices.size(), nullptr);
  HEDDLE_PLUGIN_CHECK(launched_.make(own_.devices));
  Result result = library.ncclGroupStart();
  Status begun = result == Result::success ? Status() : failed("ncclGroupStart", result);
  for (size_t i = 0; begun.ok() && i < comms_.size(); ++i) {
    const CurrentDevice current(own_.devices[i]);
    begun = current.status();
    Config config;
    config.blocking = 0;
    if (begun.ok())
      result = library.ncclCommInitRankConfig(&comms_[i], static_cast<int32_t>(whole_.participants), whole_.id,
                                              static_cast<int32_t>(whole_.first + i), &config);
    if (begun.ok() && result != Result::success && result != Result::in_progress) begun = failed("ncclCommInitRankConfig", result);
  }
  result = library.ncclGroupEnd();
  HEDDLE_PLUGIN_CHECK(begun);
  if (result != Result::success && result != Result::in_progress) return failed("ncclGroupEnd", result);
  HEDDLE_PLUGIN_CHECK(settle(waiting));
  return warm_up(waiting);
}

// NCCL connects and allocates in the first call of a kind: that is done here, not in a run.
Status NcclCommunicator::warm_up(const Waiting& waiting) {
  const Library& library = Library::get();
  if (whole_.participants == 1) return {};
  const uint64_t bytes = std::max<uint64_t>(sizeof(float) * warm_up_elements, uint64_t{256} * whole_.participants);
  std::vector<Stream*> streams(comms_.size());
  std::vector<void*> memory(comms_.size());
  const auto work = [&]() -> Status {
    for (size_t i = 0; i < comms_.size(); ++i) {
      const CurrentDevice current(own_.devices[i]);
      HEDDLE_PLUGIN_CHECK(current.status());
      HEDDLE_NCCL_CUDA_CALL(cudaStreamCreateWithPriority, &streams[i], stream_non_blocking, 0);
      HEDDLE_NCCL_CUDA_CALL(cudaMallocAsync, &memory[i], bytes, streams[i]);
      HEDDLE_NCCL_CUDA_CALL(cudaMemsetAsync, memory[i], 0, bytes, streams[i]);
    }
    HEDDLE_PLUGIN_CHECK(warm_up_on(streams, memory, waiting));
    return wait_for_streams(streams, waiting);
  };
  Status status = work();
  streams_ = nullptr;
  if (!status.ok()) end_comms();  // what is on the streams would wait for ever
  for (size_t i = 0; i < comms_.size(); ++i) {
    const CurrentDevice current(own_.devices[i]);
    if (memory[i]) library.cudaFreeAsync(memory[i], streams[i]);
    if (streams[i]) library.cudaStreamDestroy(streams[i]);
  }
  return status;
}

Status NcclCommunicator::warm_up_on(const std::vector<Stream*>& streams, const std::vector<void*>& memory, const Waiting& waiting) {
  streams_ = &streams;
  const auto each = [&](const auto& work) -> Status {
    begin();
    for (uint32_t i = 0; i < comms_.size(); ++i) work(i, static_cast<char*>(memory[i]));
    const Result result = Library::get().ncclGroupEnd();
    launching_.unlock();
    HEDDLE_PLUGIN_CHECK(failed_call_);
    if (result != Result::success && result != Result::in_progress) return failed("ncclGroupEnd", result);
    return settle(waiting);
  };
  constexpr uint64_t block = 256;
  HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) { all_gather(i, at + (whole_.first + i) * block, at, block); }));
  HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) { broadcast(i, at, at, block, 0); }));
  HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) {
    for (uint32_t other = 0; other < whole_.participants; ++other) {
      if (other == whole_.first + i) continue;
      send(i, at + (whole_.first + i) * block, block, other);
      receive(i, at + other * block, block, other);
    }
  }));
  // NCCL chooses by size how it combines.
  for (const int64_t count : {int64_t{1} << 10, warm_up_elements})
    for (const heddle_dtype dtype : {HEDDLE_I32, HEDDLE_F32}) {
      if (dtype == HEDDLE_F32 && !own_.sums_of_library) continue;
      HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) { all_reduce(i, at, at, count, dtype, Reduction::sum); }));
      HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) { reduce(i, at, at, count, dtype, Reduction::sum, 0); }));
      const int64_t part = count / whole_.participants;
      HEDDLE_PLUGIN_CHECK(each([&](uint32_t i, char* at) {
        reduce_scatter(i, at, at + (whole_.first + i) * static_cast<uint64_t>(part) * sizeof(float), part, dtype, Reduction::sum);
      }));
    }
  return {};
}

// ---------------------------------------------------------------- collectives

Status NcclCommunicator::enter(operators::Parts parts, const std::string& node) {
  HEDDLE_PLUGIN_CHECK(refused());
  if (control_) HEDDLE_PLUGIN_CHECK(control_->check_all_there());
  if (parts.size() != comms_.size())
    return plugin::invalid("a group of " + std::to_string(parts.size()) + " devices, where " + name_ + " has " +
                           std::to_string(comms_.size()) + " in this process");
  parts_ = parts;
  return launched_.begin(parts, node);
}

Status NcclCommunicator::leave() {
  return launched_.end(std::exchange(parts_, operators::Parts()));
}

Stream* NcclCommunicator::stream_of(uint32_t member) const {
  return streams_ ? (*streams_)[member] : static_cast<Stream*>(parts_[member]->stream);
}

void NcclCommunicator::begin() {
  launching_.lock();
  failed_call_ = aborted_ ? refused() : Status();
  call("ncclGroupStart", Library::get().ncclGroupStart());
}

void NcclCommunicator::call(const char* name, Result result) {
  if (failed_call_.ok() && result != Result::success && result != Result::in_progress) failed_call_ = failed(name, result);
}

#define HEDDLE_NCCL_CALL(name, ...) \
  if (failed_call_.ok()) call(#name, Library::get().name(__VA_ARGS__))

void NcclCommunicator::all_reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction) {
  HEDDLE_NCCL_CALL(ncclAllReduce, x, y, static_cast<size_t>(count), type_of(dtype), operation_of(reduction), comm_of(member),
                   stream_of(member));
}

void NcclCommunicator::reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction,
                              uint32_t root) {
  HEDDLE_NCCL_CALL(ncclReduce, x, y, static_cast<size_t>(count), type_of(dtype), operation_of(reduction), static_cast<int32_t>(root),
                   comm_of(member), stream_of(member));
}

void NcclCommunicator::reduce_scatter(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction) {
  HEDDLE_NCCL_CALL(ncclReduceScatter, x, y, static_cast<size_t>(count), type_of(dtype), operation_of(reduction), comm_of(member),
                   stream_of(member));
}

void NcclCommunicator::broadcast(uint32_t member, const void* x, void* y, uint64_t bytes, uint32_t root) {
  HEDDLE_NCCL_CALL(ncclBroadcast, x, y, bytes, DataType::u8, static_cast<int32_t>(root), comm_of(member), stream_of(member));
}

void NcclCommunicator::all_gather(uint32_t member, const void* x, void* y, uint64_t bytes) {
  HEDDLE_NCCL_CALL(ncclAllGather, x, y, bytes, DataType::u8, comm_of(member), stream_of(member));
}

void NcclCommunicator::send(uint32_t member, const void* from, uint64_t bytes, uint32_t to) {
  HEDDLE_NCCL_CALL(ncclSend, from, bytes, DataType::u8, static_cast<int32_t>(to), comm_of(member), stream_of(member));
}

void NcclCommunicator::receive(uint32_t member, void* to, uint64_t bytes, uint32_t from) {
  HEDDLE_NCCL_CALL(ncclRecv, to, bytes, DataType::u8, static_cast<int32_t>(from), comm_of(member), stream_of(member));
}

#undef HEDDLE_NCCL_CALL

// A call that failed has voided its group: nothing of it is on the streams.
Status NcclCommunicator::end() {
  const Result result = Library::get().ncclGroupEnd();
  call("ncclGroupEnd", result);
  Status status = failed_call_;
  Waiting waiting;
  waiting.run = parts_[0];
  waiting.until = Clock::now() + timeout_;
  if (status.ok()) status = settle(waiting);
  launching_.unlock();
  if (!status.ok()) fail(status);
  return status;
}

// ---------------------------------------------------------------- failures

// Asks NCCL, and whether the first collective on the streams is late.
Status NcclCommunicator::check_members() {
  const std::unique_lock<std::mutex> alone(calls_, std::try_to_lock);
  if (!alone) return {};  // a thread launches, and asks
  for (size_t i = 0; i < comms_.size(); ++i) {
    Result state = Result::success;
    if (aborted_ || !comms_[i]) return {};
    const Result asked = Library::get().ncclCommGetAsyncError(comms_[i], &state);
    if (asked != Result::success) return failed("ncclCommGetAsyncError", asked);
    if (state != Result::success && state != Result::in_progress)
      return {HEDDLE_ERROR_DEVICE, "GPU " + std::to_string(own_.devices[i]) + " of " + name_ + ": " + failed("NCCL", state).text};
  }
  const Clock::time_point now = Clock::now();
  Clock::time_point since = now;
  HEDDLE_PLUGIN_CHECK(launched_.look(now, &since));
  if (now - since < timeout_) return {};
  const operators::RankPosition position = launched_.position();
  return {HEDDLE_PENDING, position.collective + " (operation " + std::to_string(position.number) + ") of " + name_ +
                              " was not done on the GPUs within " + milliseconds(timeout_)};
}

Status NcclCommunicator::poll_error() {
  HEDDLE_PLUGIN_CHECK(refused());
  if (control_) {
    if (Status lost = control_->poll_error(); !lost.ok()) return fail(lost), lost;
  }
  Status found = check_members();
  if (found.ok()) return {};
  const bool late = found.code == HEDDLE_PENDING;
  if (control_ && control_->give_up(late, found.text)) return {};  // it says soon what the ranks know
  if (late) found.code = HEDDLE_ERROR_DEVICE;
  fail(found);
  return found;
}

}  // namespace heddle::nccl
