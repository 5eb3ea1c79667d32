#include <atomic>
#include <condition_variable>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "plugin/host.h"
#include "run/session_impl.h"

namespace heddle {

Tensor::Tensor(DType dtype, const Shape& shape) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  view_ = {dtype, shape, data};
  owner_ = std::const_pointer_cast<void>(std::shared_ptr<const void>(blob, blob->data));
}

Tensor Tensor::copy_of(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  if (view.byte_size() > 0 && view.data) std::memcpy(tensor.data(), view.data, static_cast<size_t>(view.byte_size()));
  return tensor;
}

// A run on another thread. Lives until it has called back, whatever happens to the context's handle.
struct Context::State::Async : HelperTask, std::enable_shared_from_this<Context::State::Async> {
  Context::State* state = nullptr;
  RunSettings settings;
  std::function<void(Status)> done;
  std::mutex mutex;
  std::condition_variable finished;
  bool running = false;
  std::atomic<bool> cancelled{false};

  void execute() noexcept override {                         // NOLINT(bugprone-exception-escape): a callback that throws ends the process
    const std::shared_ptr<Async> self = shared_from_this();  // the context may go as soon as it is told
    const Status status = state->run(settings);
    const std::function<void(Status)> callback = std::move(done);
    {
      const std::lock_guard lock(mutex);
      running = false;
      finished.notify_all();
    }
    if (callback)
      callback(status);
    else if (!status.ok())
      log_line(HEDDLE_LOG_ERROR, status.text());
  }
  void wait() {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return !running; });
  }
};

int64_t bytes_of_output(const Plan& plan, size_t i) {
  const PlanValue& value = plan.values[plan.outputs[i].index];
  return value.placement.kind == Placement::Kind::unplanned ? -1 : value.type.byte_size();
}

Status check_output_buffer(const Plan& plan, size_t i, int64_t bytes) {
  const int64_t most = bytes_of_output(plan, i);
  if (most >= 0 && (bytes < 0 || bytes >= most)) return {};  // the way of every run: nothing is allocated
  const std::string name = "output " + quoted(plan.values[plan.outputs[i].index].name);
  if (most < 0)
    return {Code::unsupported, name + " has no bound before it is there, no buffer is large enough for it",
            "leave it unbound and read it with output()"};
  return {Code::invalid_argument, name + " takes up to " + std::to_string(most) + " bytes, the buffer has " + std::to_string(bytes),
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
  state_->async->wait();
  if (!state_->workspace || !state_->execution) return;
  // What was built serves the next context of the same plan, the memory that of any plan.
  for (size_t i = 0; i < input_count(); ++i) state_->execution->bind_input(i, nullptr);
  for (size_t i = 0; i < output_count(); ++i) state_->execution->bind_output(i, nullptr);
  state_->session->give_back(*state_->entry, std::move(state_->execution));
  if (!state_->shared) state_->session->runtime->workspaces.give_back(std::move(state_->workspace));
}

Result<Context::State::Turn> Context::State::enter(const RunSettings& settings) {
  if (!shared) return Turn();
  const uint64_t deadline = settings.deadline(), now = deadline ? ticks() : 0;
  const int64_t ns = deadline ? static_cast<int64_t>(ticks_to_ns(deadline > now ? deadline - now : 0)) : -1;
  if (!workspace->turns().lock_within(ns, settings.cancelled)) {
    if (settings.cancelled && settings.cancelled->load())
      return Status(Code::cancelled, "the run was cancelled while it waited for its turn");
    return Status(Code::deadline_exceeded, "the deadline passed while the run waited for its turn in shared memory",
                  "allow more time, or let fewer contexts share it");
  }
  Turn turn(workspace->turns(), std::adopt_lock);
  HEDDLE_CHECK(workspace->reserve(*entry->plan));
  execution->follow(*workspace);
  return turn;
}

Status Context::State::run(const RunSettings& settings) {
  HEDDLE_TRY(const auto turn, enter(settings));
  return execution->run(settings);
}

// What the caller asked for, from now on.
RunSettings Context::State::settings(const RunOptions& options) const {
  RunSettings made;
  made.seed = options.seed.value_or(session->options.seed);
  made.deadline_ns = options.deadline_ns;
  if (made.deadline_ns > 0) made.asked_ticks = ticks();
  made.cancelled = &async->cancelled;
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
  if (i >= output_count()) return {};
  const auto turn = state_->enter();
  return turn.ok() ? state_->execution->output(i) : TensorView();
}

Status Context::bind_input(size_t i, const void* data) {
  if (i >= input_count())
    return {Code::invalid_argument, "the net has " + std::to_string(input_count()) + " inputs, there is no input " + std::to_string(i)};
  state_->execution->bind_input(i, data);
  return {};
}

int64_t Context::output_bytes(size_t i) const {
  const Plan& plan = *state_->entry->plan;
  return i < output_count() ? bytes_of_output(plan, i) : -1;
}

Status Context::bind_output(size_t i, void* data, int64_t bytes) {
  if (i >= output_count())
    return {Code::invalid_argument, "the net has " + std::to_string(output_count()) + " outputs, there is no output " + std::to_string(i)};
  if (data) HEDDLE_CHECK(check_output_buffer(*state_->entry->plan, i, bytes));
  state_->execution->bind_output(i, data);
  return {};
}

Status Context::run(const RunOptions& options) {
  state_->async->cancelled.store(false, std::memory_order_relaxed);
  return state_->run(state_->settings(options));
}

Status Context::run_async(std::function<void(Status)> done, const RunOptions& options) {
  Executor* executor = state_->session->runtime->executor;
  if (!executor)
    return {Code::unsupported, "run_async needs an executor, this runtime has one thread",
            "create the runtime with two threads or more, or with an executor"};
  State::Async& async = *state_->async;
  {
    const std::lock_guard lock(async.mutex);
    if (async.running) return {Code::busy, "this context is running already", "wait for its callback"};
    async.running = true;
  }
  async.state = state_.get();
  async.settings = state_->settings(options);
  async.cancelled.store(false, std::memory_order_relaxed);
  async.done = std::move(done);
  executor->submit(async);
  return {};
}

void Context::cancel() {
  state_->async->cancelled.store(true);
  state_->execution->cancel();
  if (state_->shared) state_->workspace->turns().wake();
}
int64_t Context::planned_bytes() const {
  return state_->entry->plan->context_bytes();
}

}  // namespace heddle
