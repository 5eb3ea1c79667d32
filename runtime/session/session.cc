#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>

#include "base/exceptions.h"
#include "base/random.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "infer/shape_operands.h"
#include "net/batch_parts.h"
#include "plugin/host.h"
#include "plugin/schema.h"
#include "session/describe_plan.h"
#include "session/plain_values.h"
#include "session/plan_footprint.h"
#include "session/session_impl.h"
#include "weights/attach.h"
#include "weights/referenced_files.h"

namespace heddle {
namespace {

PortInfo port_info(const Net& net, ValueId id) {
  const Value& value = net[id];
  PortInfo info;
  info.name = value.name;
  info.dtype = value.type.dtype;
  info.ranked = value.type.ranked;
  for (const Dim& dim : value.type.dims) {
    info.shape.push_back(dim.kind == Dim::Kind::constant || dim.kind == Dim::Kind::bounded ? dim.value : -1);
    info.symbols.push_back(dim.symbol);
  }
  return info;
}

// Returns the number of rows that an input used as indices may name, from the schemas of its readers, or of those of its rows
// (heddle::Shard); 0: it is not used as indices.
int64_t index_bound(const Net& net, ValueId input) {
  int64_t bound = 0;
  for (const Node& node : net.nodes)
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == input && is_shard(node) && !node.outputs.empty()) {
        const int64_t of_rows = index_bound(net, node.outputs[0]);
        bound = bound == 0 || of_rows == 0 ? std::max(bound, of_rows) : std::min(bound, of_rows);
      }
      const heddle_port* port = node.schema ? node.schema->input_port(k) : nullptr;
      if (node.inputs[k] != input || !port || port->index_bound_port < 0) continue;
      const auto of = static_cast<size_t>(port->index_bound_port);
      if (of >= node.inputs.size() || !node.inputs[of].valid()) continue;
      const Value& data = net[node.inputs[of]];
      const int64_t axis = port->index_bound_axis >= 0 ? port->index_bound_axis : node.int_attribute("axis", 0);
      const DeclaredType& type = data.kind == Value::Kind::variable ? net[data.variable].type : data.type;
      const auto rank = static_cast<int64_t>(type.dims.size());
      const int64_t at = axis < 0 ? axis + rank : axis;
      const int64_t extent =
          at >= 0 && at < rank && type.dims[static_cast<size_t>(at)].value > 0 ? type.dims[static_cast<size_t>(at)].value : 1;
      bound = bound == 0 ? extent : std::min(bound, extent);
    }
  return bound;
}

}  // namespace

uint64_t deadline_of(const RunOptions& options) {
  RunSettings settings;
  settings.deadline_ns = options.deadline_ns;
  return settings.deadline();
}

ExecutionOptions Session::Impl::execution_options() const {
  ExecutionOptions o;
  o.executor = runtime->executor;
  o.max_threads = runtime->threads;
  o.scheduler = scheduler;
  o.outstanding = runtime->outstanding;
  o.communicators = communicators;
  return o;
}

Result<std::unique_ptr<Execution>> Session::Impl::take(PlanEntry& entry, Workspace& workspace) {
  Status reserved = reserve(workspace, *entry.plan);
  if (reserved.code() == Code::out_of_memory) {  // idle workspaces may hold the missing memory
    runtime->workspaces.trim(0);
    reserved = reserve(workspace, *entry.plan);
  }
  HEDDLE_CHECK(reserved);
  std::unique_ptr<Execution> execution = entry.last_idle.exchange();
  if (!execution) {
    const MutexLock lock(entry.mutex);
    if (!entry.idle.empty()) {
      execution = std::move(entry.idle.back());
      entry.idle.pop_back();
    }
  }
  if (execution) {
    HEDDLE_CHECK(execution->follow(workspace));
    return execution;
  }
  ExecutionOptions o = execution_options();
  o.workspace = &workspace;
  return Execution::create(entry.plan, variables, o);
}

void Session::Impl::give_back(PlanEntry& entry, std::unique_ptr<Execution> execution, std::shared_ptr<Workspace>& workspace) {
  if (!execution->look_for_answers()) {
    runtime->outstanding->sweep();
    runtime->outstanding->keep(std::move(execution), std::move(workspace));
    return;
  }
  if (options.idle_contexts <= 0) return;
  std::unique_ptr<Execution> other = entry.last_idle.exchange(std::move(execution));
  if (!other) return;
  // An execution that does not fit, or that there is no memory to keep, is destroyed after the lock is released.
  without_exceptions([&] {
    const MutexLock lock(entry.mutex);
    if (entry.idle.size() + 1 < static_cast<size_t>(options.idle_contexts)) entry.idle.push_back(std::move(other));
  });
}

Session::Impl::~Impl() {
  plans.clear();
  runtime->outstanding->sweep();
  if (--runtime->sessions == 0) runtime->workspaces.trim(0);
}

ExecutionLoan::ExecutionLoan(Session::Impl& session, PlanEntry& entry)
    : session_(session), entry_(entry), workspace_(session.runtime->workspaces.take(entry.needs)) {
  auto taken = session_.take(entry_, *workspace_);
  if (taken.ok())
    execution_ = std::move(*taken);
  else
    status_ = std::move(taken).status();
}

ExecutionLoan::~ExecutionLoan() {
  if (execution_) session_.give_back(entry_, std::move(execution_), workspace_);
  if (workspace_) session_.runtime->workspaces.give_back(std::move(workspace_));
}

// ---------------------------------------------------------------- session

Session Internals::make(std::shared_ptr<Session::Impl> impl) {
  return Session(std::move(impl));
}
Result<Context> Internals::prepare(const std::shared_ptr<Session::Impl>& session, std::shared_ptr<PlanEntry> entry) {
  auto state = std::make_unique<Context::State>();
  state->workspace = session->runtime->workspaces.take(entry->needs);
  HEDDLE_TRY(state->execution, session->take(*entry, *state->workspace));
  state->execution->unbind();
  state->session = session;
  state->entry = std::move(entry);
  return Context(std::move(state));
}

// In a forked child the workspace is not destroyed: its devices could not free memory there.
SharedMemory::SharedMemory() {
  without_exceptions([&] {  // prepare_on() reports it
    workspace_ = std::shared_ptr<Workspace>(new Workspace(), [made = MadeInThisProcess()](Workspace* w) { delete_unless_forked(w, made); });
  });
}
int64_t SharedMemory::bytes() const {
  if (!workspace_) return 0;
  FairSharedMutex::Hold turn;  // if this thread holds the turn already, that is sufficient
  turn.enter(workspace_->turns(), FairSharedMutex::Use::alone);
  return workspace_->bytes();
}

std::vector<std::string> Session::nets() const {
  return or_empty("no memory for the names of nets", [&] {
    std::vector<std::string> names;
    for (const auto& net : impl_->model->nets) names.push_back(net->net.name);
    return names;
  });
}

const std::string& Session::name() const {
  return impl_->net.name;
}

Result<Session> Session::net(const std::string& name) const try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  for (const auto& net : impl_->model->nets)
    if (net->net.name == name) return Session(std::shared_ptr<Impl>(impl_, net.get()));
  return Status(Code::unknown_name, fmt::format("the session has no net {}", quoted(name)), suggestion(name, nets()));
} catch (...) {
  return status_of_exception();
}

std::vector<PortInfo> Session::Impl::inputs() const {
  std::vector<PortInfo> ports;
  for (const ValueId id : net.inputs) {
    ports.push_back(port_info(net, id));
    ports.back().index_bound = index_bound(net, id);
  }
  for (const uint32_t i : shape_inputs) ports[i].decides_shapes = true;
  return ports;
}

std::vector<PortInfo> Session::Impl::outputs() const {
  std::vector<PortInfo> ports;
  for (const ValueId id : net.outputs) ports.push_back(port_info(net, id));
  return ports;
}

std::vector<PortInfo> Session::inputs() const {
  return or_empty("no memory for the list of inputs", [&] { return impl_->inputs(); });
}

std::vector<PortInfo> Session::outputs() const {
  return or_empty("no memory for the list of outputs", [&] { return impl_->outputs(); });
}

Result<Context> Session::prepare(const std::vector<TensorView>& inputs) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(auto entry, impl_->find_plan_to_run(inputs.data(), inputs.size()));
  return Internals::prepare(impl_, std::move(entry));
} catch (...) {
  return status_of_exception();
}

Result<Context> Session::prepare_on(const SharedMemory& memory, const std::vector<TensorView>& inputs) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(auto entry, impl_->find_plan_to_run(inputs.data(), inputs.size()));
  auto state = std::make_unique<Context::State>();
  if (!Internals::workspace(memory)) return Status(Code::out_of_memory, "there was no memory to make the shared memory", "make it again");
  state->workspace = Internals::workspace(memory);
  state->shared = true;
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter_shared(*impl_->runtime, *state->workspace, turn));
  HEDDLE_TRY(state->execution, impl_->take(*entry, *state->workspace));
  state->execution->unbind();
  state->session = impl_;
  state->entry = std::move(entry);
  return Context(std::move(state));
} catch (...) {
  return status_of_exception();
}

Result<Context> Session::prepare_in(void* buffer, int64_t bytes, const std::vector<TensorView>& inputs) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  if (!buffer) return Status(Code::invalid_argument, "the buffer to prepare in is null", "give one of transient_bytes(), aligned to 64");
  HEDDLE_TRY(auto entry, impl_->find_plan_to_run(inputs.data(), inputs.size()));
  ExecutionOptions o = impl_->execution_options();
  o.transient = buffer;
  o.transient_bytes = bytes;
  auto state = std::make_unique<Context::State>();
  HEDDLE_TRY(state->execution, Execution::create(entry->plan, impl_->variables, o));
  state->session = impl_;
  state->entry = std::move(entry);
  return Context(std::move(state));
} catch (...) {
  return status_of_exception();
}

Result<int64_t> Session::transient_bytes(const std::vector<TensorView>& inputs) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(auto entry, impl_->find_plan(inputs.data(), inputs.size()));
  return entry->plan->context_bytes();
} catch (...) {
  return status_of_exception();
}

Status Session::run(const TensorView* inputs, size_t input_count, TensorView* outputs, size_t output_count, const RunOptions& options) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  RunSettings settings;
  settings.seed = options.seed.value_or(impl_->options.seed);
  settings.deadline_ns = options.deadline_ns;
  settings.streams = {options.streams, options.stream_count};
  if (options.deadline_ns > 0) settings.asked_ticks = ticks();
  const Interruption interruption(settings.deadline());  // making a plan is part of the run that needs it
  HEDDLE_TRY(auto entry, impl_->find_plan_to_run(inputs, input_count, interruption));
  if (output_count > entry->plan->outputs.size())
    return {Code::invalid_argument, fmt::format("the net has {} outputs, {} are asked for", entry->plan->outputs.size(), output_count)};
  const ExecutionLoan execution(*impl_, *entry);
  HEDDLE_CHECK(execution.status());
  // Whatever the run before had bound is bound anew or unbound.
  for (size_t i = 0; i < entry->plan->inputs.size(); ++i) {
    const void* const data = i < input_count ? inputs[i].data : nullptr;
    HEDDLE_CHECK(check_address(*entry->plan, entry->plan->inputs[i], data));
    execution->bind_input(i, data);
  }
  for (size_t i = output_count; i < entry->plan->outputs.size(); ++i) execution->bind_output(i, nullptr);
  for (size_t i = 0; i < output_count; ++i) {
    // A view without a type does not specify the size of its buffer.
    const int64_t bytes = outputs[i].dtype == DType::none ? -1 : outputs[i].byte_size();
    if (outputs[i].data) HEDDLE_CHECK(check_output_buffer(*entry->plan, i, bytes));
    HEDDLE_CHECK(check_address(*entry->plan, entry->plan->outputs[i], outputs[i].data));
    execution->bind_output(i, outputs[i].data);
  }
  std::optional<Observation> observation;  // most runs have none
  if (options.profile || options.observer) [[unlikely]]
    observation.emplace().begin(options, *execution.operator->(), settings);
  const Status status = execution->run(settings);
  if (observation) observation->end();
  HEDDLE_CHECK(status);
  for (size_t i = 0; i < output_count; ++i) {
    void* const data = outputs[i].data;
    outputs[i] = execution->output(i);
    outputs[i].data = data;  // the arena is used by the next run: its address is not shown
  }
  return {};
} catch (...) {
  return status_of_exception();
}

Result<std::vector<Tensor>> Session::run(const std::vector<TensorView>& inputs, const RunOptions& options) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  const uint64_t deadline = deadline_of(options);
  const Interruption interruption(deadline);
  HEDDLE_TRY(auto entry, impl_->find_plan_to_run(inputs.data(), inputs.size(), interruption));
  HEDDLE_TRY(Context context, Internals::prepare(impl_, std::move(entry)));
  for (size_t i = 0; i < inputs.size(); ++i) HEDDLE_CHECK(context.bind_input(i, inputs[i].data));
  RunOptions rest = options;
  if (options.deadline_ns > 0) {
    const uint64_t now = ticks();
    rest.deadline_ns = now < deadline ? static_cast<int64_t>(ticks_to_ns(deadline - now)) + 1 : -1;
  }
  const Plan& plan = Internals::execution(context).plan();
  for (const ValueId output : plan.outputs)
    if (plan.values[output.index].place.device != 0)
      return Status(Code::unsupported, fmt::format("output {} lies on a device", quoted(plan.values[output.index].name)),
                    "prepare a context, and bind it");
  HEDDLE_CHECK(context.run(rest));
  std::vector<Tensor> results;
  for (size_t i = 0; i < context.output_count(); ++i) {
    const TensorView result = context.output(i);
    results.push_back(Tensor::copy_of(result));
    if (results.back().dtype() != result.dtype) throw std::bad_alloc();
  }
  return results;
} catch (...) {
  return status_of_exception();
}

Result<std::shared_ptr<const PlanInfo>> Session::plan(const std::vector<TensorView>& inputs) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(const auto entry, impl_->find_plan(inputs.data(), inputs.size()));
  return entry->described();
} catch (...) {
  return status_of_exception();
}

std::vector<Diagnostic> Session::check(const std::vector<TensorView>& inputs) const try {
  Status status = impl_->runtime->made.check();
  if (status.ok()) status = check_count(impl_->net, inputs.size());
  if (status.ok()) status = check_sizes(impl_->net, inputs.data(), inputs.size(), impl_->target.limits);
  if (!status.ok()) return {status.diagnostic()};
  PipelineOptions p = impl_->pipeline;
  for (const TensorView& input : inputs) p.inputs.push_back({{input.dtype, input.shape}, nullptr});
  for (const uint32_t i : impl_->shape_inputs)
    if (i < inputs.size() && inputs[i].data) p.inputs[i].content = Blob::copy_of(inputs[i].dtype, inputs[i].shape, inputs[i].data);
  return check_net(impl_->net, impl_->registry, impl_->target, p).all();
} catch (...) {
  return impl_->spare_findings.take(status_of_exception());
}

std::vector<std::string> Session::symbols() const {
  return or_empty("no memory for the names of symbols", [&] { return symbol_names(impl_->net); });
}

std::vector<std::string> Session::files() const {
  return or_empty("no memory for the names of files", [&] {
    std::vector<std::string> files;
    const auto add = [&](std::string file) {
      if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(std::move(file));
    };
    for (const auto& net : impl_->model->nets) {
      if (!net->path.empty()) add(net->path);
      for (const std::string& file : referenced_files(net->net)) add((std::filesystem::path(net->folder) / file).string());
    }
    return files;
  });
}

Session::PlanCounts Session::plan_counts() const {
  if (!impl_->runtime->made.holds()) return {};
  const MutexLock lock(impl_->mutex);
  PlanCounts counts;
  counts.made = impl_->plans_made;
  counts.kept = static_cast<int64_t>(impl_->plans.size());
  counts.hits = impl_->plan_hits;
  counts.misses = impl_->plan_misses;
  counts.evicted = impl_->plans_evicted;
  for (const auto& entry : impl_->plans) counts.kept_bytes += entry->footprint;
  return counts;
}

void Session::trim(int64_t keep_bytes) {
  if (!impl_->runtime->made.holds()) return;
  // Destroyed after the locks are released, so that runs under way do not wait for it.
  std::list<std::shared_ptr<PlanEntry>> dropped;
  int64_t held = 0;
  for (const auto& net : impl_->model->nets) {
    const MutexLock lock(net->mutex);
    for (const auto& entry : net->plans) held += entry->plan->memory.persistent_bytes;
  }
  for (const auto& net : impl_->model->nets) {
    const MutexLock lock(net->mutex);
    while (!net->plans.empty() && (keep_bytes <= 0 || held > keep_bytes)) {
      held -= net->plans.back()->plan->memory.persistent_bytes;
      dropped.splice(dropped.end(), net->plans, std::prev(net->plans.end()));
      ++net->plans_evicted;
    }
  }
  impl_->runtime->workspaces.trim(keep_bytes - held);
}

}  // namespace heddle
