#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/alarm.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "plugin/host.h"
#include "session/plain_values.h"
#include "session/session_impl.h"

namespace heddle {

Tensor::Tensor(DType dtype, const Shape& shape) {
  without_exceptions([&] {  // on failure it stays empty, which the caller can see
    std::byte* data = nullptr;
    auto blob = Blob::allocate(dtype, shape, &data);
    owner_ = std::const_pointer_cast<void>(std::shared_ptr<const void>(blob, blob->data));
    view_ = {dtype, shape, data};
  });
}

Tensor Tensor::copy_of(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (view.byte_size() > 0 && view.data && tensor.data()) std::memcpy(tensor.data(), view.data, static_cast<size_t>(view.byte_size()));
  return tensor;
}

// A run on an executor's thread, and on no thread while it waits only for asynchronous steps. Lives until it has called back, whatever
// happens to the context's handle.
struct Context::State::Async : HelperTask, std::enable_shared_from_this<Context::State::Async> {
  Context::State* state = nullptr;
  RunSettings settings;
  std::function<void(Status)> done;
  Mutex mutex;
  Condition finished;
  bool running HEDDLE_GUARDED_BY(mutex) = false;
  std::atomic<bool> cancelled{false};
  bool begun = false;          // the run has been started: the next call resumes it
  FairSharedMutex::Hold turn;  // in shared memory

  void execute() noexcept override {
    const std::shared_ptr<Async> self = shared_from_this();  // the context may be destroyed as soon as `finished` is notified
    Status status;
    bool over = true;
    try {
      over = go_on(&status);
    } catch (...) {  // the run has not left this thread: once it has, nothing throws
      status = status_of_exception();
    }
    if (over) end(std::move(status));
  }
  // Starts or resumes the run. True: it is over. False: another thread may be running it already.
  bool go_on(Status* status) {
    if (std::exchange(begun, true)) return state->execution->resume(status);
    // The turn entered here may be left on another thread: it must not depend on what this thread holds.
    const FairSharedMutex::Helping nothing(nullptr);
    *status = state->enter(turn, settings);
    if (!status->ok()) return true;
    const auto submit = [](void* self) {
      auto& run = *static_cast<Async*>(self);
      run.state->session->runtime->executor->submit(run);
    };
    return state->execution->start(settings, {submit, this}, status);
  }
  void end(Status status) {
    state->leave(turn);
    const std::function<void(Status)> callback = std::move(done);
    {
      const MutexLock lock(mutex);
      running = false;
      state->reserved.store(false, std::memory_order_release);
      finished.notify_all();
    }
    // The thread is the executor's, which handles no errors: exceptions of the callback end here.
    const bool told = without_exceptions([&] {
      if (callback)
        callback(std::move(status));
      else if (!status.ok())
        log_line(HEDDLE_LOG_ERROR, status.text());
    });
    if (told) return;
    constexpr std::string_view threw = "the callback of run_async threw an exception";
    host_table()->log(HEDDLE_LOG_ERROR, threw.data(), threw.size());
  }
  void wait() {
    const MutexLock lock(mutex);
    while (running) finished.wait(mutex);
  }
};

int64_t bytes_of_output(const Plan& plan, size_t i) {
  const PlanValue& value = plan.values[plan.outputs[i].index];
  return value.place.kind == MemoryPlace::Kind::unplanned ? -1 : value.type.byte_size();
}

Status check_address(const Plan& plan, ValueId value, const void* data) {
  const PlanValue& v = plan.values[value.index];
  if (v.place.device == 0 || reinterpret_cast<uintptr_t>(data) % arena_alignment == 0) return {};  // the path of every run
  return {Code::invalid_argument,
          fmt::format("{} lies on {}, where what is bound to it is to begin at a multiple of {} bytes", quoted(v.name),
                      quoted(plan.devices[v.place.device - 1u].device->name()), arena_alignment),
          "give it memory of its own"};
}

Status check_output_buffer(const Plan& plan, size_t i, int64_t bytes) {
  const int64_t most = bytes_of_output(plan, i);
  if (most >= 0 && (bytes < 0 || bytes >= most)) return {};  // the path of every run: nothing is allocated
  const std::string name = quoted(plan.values[plan.outputs[i].index].name);
  if (most < 0)
    return {Code::unsupported, fmt::format("output {} has no bound before it is there, no buffer is large enough for it", name),
            "leave it unbound and read it with output()"};
  return {Code::invalid_argument, fmt::format("output {} takes up to {} bytes, the buffer has {}", name, most, bytes),
          "ask output_bytes() first"};
}

Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->async = std::make_shared<State::Async>();
}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&& other) noexcept {
  if (this == &other) return *this;
  const Context before(std::move(*this));  // waits for its run and gives back what it has
  state_ = std::move(other.state_);
  return *this;
}

Context::~Context() {
  if (!state_) return;
  if (!state_->made().holds()) {
    static_cast<void>(state_.release());  // in a forked child nothing is waited for or destroyed
    return;
  }
  state_->async->wait();
  if (!state_->execution) return;
  Session::Impl& session = *state_->session;
  // An execution over the caller's buffer is not reused by another context.
  if (!state_->workspace && state_->execution->look_for_answers()) return;
  // The execution is reused by the next context of the same plan, the memory by that of any plan.
  session.give_back(*state_->entry, std::move(state_->execution), state_->workspace);
  if (!state_->shared && state_->workspace) session.runtime->workspaces.give_back(std::move(state_->workspace));
}

Status enter_shared(const Runtime::Impl& runtime, Workspace& workspace, FairSharedMutex::Hold& turn, const Interruption& until) {
  HEDDLE_CHECK(turn_status(turn.enter(workspace.turns(), FairSharedMutex::Use::alone, until), "shared memory"));
  HEDDLE_CHECK(workspace.answered());
  workspace.register_in(runtime.outstanding);
  return {};
}

Status Context::State::enter(FairSharedMutex::Hold& turn, const RunSettings& settings) {
  if (!shared) return {};
  HEDDLE_CHECK(enter_shared(*session->runtime, *workspace, turn, Interruption(settings.deadline(), settings.cancelled)));
  HEDDLE_CHECK(reserve(*workspace, *entry->plan));
  return execution->follow(*workspace);
}

void Context::State::leave(FairSharedMutex::Hold& turn) {
  turn.leave();
  observation.end();
}

Status Context::State::run_in_turn(const RunSettings& settings) {
  FairSharedMutex::Hold turn;
  Status status = enter(turn, settings);
  if (status.ok()) status = execution->run(settings);
  leave(turn);
  return status;
}

// Returns the settings of a run that is requested now.
RunSettings Context::State::settings(const RunOptions& options) {
  RunSettings made;
  observation.begin(options, *execution, made);
  made.seed = options.seed.value_or(session->options.seed);
  made.deadline_ns = options.deadline_ns;
  if (made.deadline_ns > 0) made.asked_ticks = ticks();
  made.cancelled = &async->cancelled;
  made.finite_outputs = options.finite_outputs;
  made.streams = {options.streams, options.stream_count};
  return made;
}

size_t Context::input_count() const {
  return state_->entry->plan->inputs.size();
}
size_t Context::output_count() const {
  return state_->entry->plan->outputs.size();
}

TensorView Context::input(size_t i) const {
  if (i >= input_count()) return {};
  const Plan& plan = *state_->entry->plan;
  const TensorType& type = plan.values[plan.inputs[i].index].type;
  return {type.dtype, type.shape, nullptr};
}

TensorView Context::output(size_t i) const {
  if (i >= output_count() || !state_->made().holds()) return {};
  return or_empty("no memory to show an output", [&] {
    FairSharedMutex::Hold turn;
    return state_->enter(turn).ok() ? state_->execution->output(i) : TensorView();
  });
}

Status Context::bind_input(size_t i, const void* data) try {
  if (i >= input_count()) return {Code::invalid_argument, fmt::format("the net has {} inputs, there is no input {}", input_count(), i)};
  const Plan& plan = *state_->entry->plan;
  HEDDLE_CHECK(check_address(plan, plan.inputs[i], data));
  state_->execution->bind_input(i, data);
  return {};
} catch (...) {
  return status_of_exception();
}

int64_t Context::output_bytes(size_t i) const {
  const Plan& plan = *state_->entry->plan;
  return i < output_count() ? bytes_of_output(plan, i) : -1;
}

Status Context::bind_output(size_t i, void* data, int64_t bytes) try {
  if (i >= output_count()) return {Code::invalid_argument, fmt::format("the net has {} outputs, there is no output {}", output_count(), i)};
  const Plan& plan = *state_->entry->plan;
  if (data) HEDDLE_CHECK(check_output_buffer(plan, i, bytes));
  HEDDLE_CHECK(check_address(plan, plan.outputs[i], data));
  state_->execution->bind_output(i, data);
  return {};
} catch (...) {
  return status_of_exception();
}

namespace {

// Clears the reservation when the run ends, however it ends.
class Reservation {
 public:
  explicit Reservation(std::atomic<bool>& reserved) : reserved_(reserved) {}
  ~Reservation() { reserved_.store(false, std::memory_order_release); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

 private:
  std::atomic<bool>& reserved_;
};

Status busy_context() {
  return {Code::busy, "this context is running already", "use a context per thread, or wait for its callback"};
}

}  // namespace

Status Context::run(const RunOptions& options) try {
  State& state = *state_;
  HEDDLE_CHECK(state.made().check());
  if (state.reserved.exchange(true, std::memory_order_acquire)) return busy_context();
  const Reservation reservation(state.reserved);
  state.async->cancelled.store(false, std::memory_order_relaxed);
  const RunSettings settings = state.settings(options);
  // Most runs take no turn and measure nothing.
  return state.shared || options.profile ? state.run_in_turn(settings) : state.execution->run(settings);
} catch (...) {
  return status_of_exception();
}

Status Context::run_async(std::function<void(Status)> done, const RunOptions& options) try {
  State& state = *state_;
  HEDDLE_CHECK(state.made().check());
  Executor* executor = state.session->runtime->executor;
  if (!executor)
    return {Code::unsupported, "run_async needs an executor, this runtime has one thread",
            "create the runtime with two threads or more, or with an executor"};
  if (state.execution->may_leave() && !Alarm::prepare())
    return {Code::out_of_memory, "the system gives no thread to watch the deadline of a run that has none",
            "use run, or raise the limit of processes"};
  if (state.reserved.exchange(true, std::memory_order_acquire)) return busy_context();
  State::Async& async = *state.async;
  async.cancelled.store(false, std::memory_order_relaxed);
  try {
    async.settings = state.settings(options);
  } catch (...) {
    state.reserved.store(false, std::memory_order_release);
    throw;
  }
  {
    const MutexLock lock(async.mutex);
    async.running = true;
  }
  async.state = &state;
  async.done = std::move(done);
  async.begun = false;
  executor->submit(async);
  return {};
} catch (...) {
  return status_of_exception();
}

void Context::cancel() {
  if (!state_->made().holds()) return;
  state_->async->cancelled.store(true);
  without_exceptions([&] { state_->execution->cancel(); });  // the run is cancelled in any case: failures are only logged
  state_->session->variables->wake();
  if (state_->shared) state_->workspace->turns().wake();
}
int64_t Context::held_bytes(size_t device) const {
  const Plan& plan = *state_->entry->plan;
  if (device > plan.devices.size()) return 0;
  const int64_t own = state_->execution->allocated_bytes(static_cast<uint8_t>(device));
  Workspace* const workspace = state_->workspace.get();
  if (!workspace) return own;
  FairSharedMutex::Hold turn;  // another context's run may be growing it; if this thread holds the turn already, that is sufficient
  if (state_->shared) turn.enter(workspace->turns(), FairSharedMutex::Use::alone);
  return own + (device == 0 ? workspace->host_bytes() : workspace->bytes_on(*plan.devices[device - 1].device));
}
std::shared_ptr<const PlanInfo> Context::plan() const {
  if (!state_->made().holds()) return nullptr;
  return or_empty("no memory to describe a plan", [&] { return state_->entry->described(); });
}
int64_t Context::planned_bytes() const {
  return state_->entry->plan->context_bytes();
}

}  // namespace heddle
