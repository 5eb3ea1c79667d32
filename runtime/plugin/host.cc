#include "plugin/host.h"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <new>

#include "base/checked.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "plugin/abi_attributes.h"

namespace heddle {
namespace {

Mutex log_mutex;
LogSink log_sink HEDDLE_GUARDED_BY(log_mutex) = nullptr;
void* log_user HEDDLE_GUARDED_BY(log_mutex) = nullptr;

void log_function(heddle_log_level level, const char* text, size_t length) {
  const MutexLock lock(log_mutex);
  const LogSink sink = log_sink;
  void* const user = log_user;
  if (!sink) return;
  try {
    const std::string line = printable_line(text ? std::string_view(text, length) : std::string_view());
    sink(user, level, line.data(), line.size());
  } catch (...) {  // out of memory, or from the program's function: nothing may be thrown through a plugin that logs
    constexpr std::string_view lost = "a line of the log was lost";
    without_exceptions([&] { sink(user, HEDDLE_LOG_WARNING, lost.data(), lost.size()); });
  }
}

// Makes a plugin's text, which may quote data, one printable line.
std::string printable(const std::string& text) {
  const std::string escaped = quoted(text);
  std::string clean = escaped.substr(1, escaped.size() - 2);
  for (size_t i = clean.find("\\\""); i != std::string::npos; i = clean.find("\\\"", i)) clean.erase(i, 1);
  return clean;
}

// ---------------------------------------------------------------- the table

// Returns the call that a plugin names; null: none, or a token of an earlier run of the step. A completed step is found until its next run.
heddle_call* find(const heddle_call* call) {
  if (!TokenSlot::is_token(call)) [[likely]]
    return const_cast<heddle_call*>(call);
  return static_cast<heddle_call*>(TokenSlot::object_of(call));
}

void set_error(const heddle_call* call, heddle_status code, const char* text, size_t length) {
  // Without its call the plugin still fails with its status.
  if (heddle_call* const called = find(call)) called->set_error(code, kept_text(text, length));
}
// Refuses a request; `called` must not be null.
heddle_status refuse(heddle_call* called, std::string_view what) {
  called->refuse(what);
  return HEDDLE_ERROR_INVALID;
}
heddle_status need(const heddle_call* call, const heddle_resource_need* need, uint32_t* slot) {
  heddle_call* const called = find(call);
  if (!called) return HEDDLE_ERROR_INVALID;
  if (!need || !HEDDLE_HAS(heddle_resource_need, need, option_count)) return refuse(called, "asks for a resource by nothing");
  if (!slot) return refuse(called, "asks for a resource and has no place for its slot");
  return called->need(*need, slot);
}
void* resource(const heddle_call* call, uint32_t slot) {
  heddle_call* const called = find(call);
  return called ? called->resource(slot) : nullptr;
}
const void* prepack(const heddle_call* call, uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user) {
  heddle_call* const called = find(call);
  if (!called) return nullptr;
  if (key && fill) return called->prepack(input, key, bytes, fill, user);
  refuse(called, key ? "packs a constant with no function that fills it" : "packs a constant under no key");
  return nullptr;
}
void* thread_scratch(const heddle_call* call) {
  heddle_call* const called = find(call);
  return called ? called->thread_scratch() : nullptr;
}
uint32_t thread_index(const heddle_call* call) {
  heddle_call* const called = find(call);
  return called ? called->thread_index() : HEDDLE_NO_THREAD;
}
int32_t cancelled(const heddle_call* call) {
  heddle_call* const called = find(call);
  return called && called->cancelled() ? 1 : 0;
}
// The step of a token may be over, and its context destroyed.
heddle_status complete(const heddle_call* call, heddle_status status, const char* text, size_t length) {
  if (!call) return HEDDLE_ERROR_INVALID;
  if (!TokenSlot::is_token(call)) return const_cast<heddle_call*>(call)->complete(status, kept_text(text, length));
  TokenSlot* const slot = TokenSlot::of(call);
  if (!slot) return HEDDLE_ERROR_INVALID;
  const bool current = slot->is_current(call), pending = status == HEDDLE_PENDING;
  if (!pending && slot->claim(call)) return static_cast<heddle_call*>(slot->object())->complete(status, kept_text(text, length));
  if (current) slot->count_refusal();
  without_exceptions([&] {
    const std::string name = slot->owner_name(call);
    log_line(HEDDLE_LOG_WARNING,
             fmt::format("{} completes {}, which is refused; complete each step that was started once, with how it ended",
                         name.empty() ? "an operator that is gone" : name,
                         !current  ? "a step of a run that is over"
                         : pending ? "its step as pending, and that is no end"
                                   : "its step a second time"));
  });
  return HEDDLE_ERROR_INVALID;
}
void* allocate_output(const heddle_call* call, uint32_t output, const int64_t* dims, int32_t rank) {
  heddle_call* const called = find(call);
  return called ? called->allocate_output(output, dims, rank) : nullptr;
}
bool is_view(const heddle_tensor& t) {
  return t.rank >= 0 && t.rank <= HEDDLE_MAX_RANK && (t.rank == 0 || t.dims) && t.dtype > HEDDLE_DTYPE_NONE && t.dtype < HEDDLE_DTYPE_COUNT;
}
// Describes the mistake in a subnet and the views that are to be its inputs; null: none. Null views are absent inputs.
const char* wrong_inputs(const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t count) {
  if (!subnet) return "asks for a subnet that is null";
  if (count > 0 && !inputs) return "gives a subnet inputs that are null";
  for (uint32_t i = 0; i < count; ++i)
    if (inputs[i] && !is_view(*inputs[i])) return "gives a subnet an input that is no tensor: its rank, dims or dtype are wrong";
  return nullptr;
}
// Likewise for the views of the results; those without data are filled.
const char* wrong_outputs(heddle_tensor* const* outputs, uint32_t count) {
  if (count > 0 && !outputs) return "gives a subnet outputs that are null";
  for (uint32_t i = 0; i < count; ++i) {
    const heddle_tensor* const t = outputs[i];
    if (!t || !t->data) continue;
    if (!is_view(*t)) return "gives a subnet an output that is no tensor: its rank, dims or dtype are wrong";
    int64_t bytes = 0;
    if (!checked_byte_size(static_cast<DType>(t->dtype), Shape(t->dims, t->rank), &bytes) || static_cast<uint64_t>(bytes) != t->byte_size)
      return "gives a subnet an output with another byte_size than its dims have";
  }
  return nullptr;
}
heddle_status run_subnet(const heddle_call* call, const heddle_subnet* subnet, uint64_t trip, const heddle_tensor* const* inputs,
                         uint32_t input_count, heddle_tensor* const* outputs, uint32_t output_count) {
  heddle_call* const called = find(call);
  if (!called) return HEDDLE_ERROR_UNSUPPORTED;
  if (const char* const wrong = wrong_inputs(subnet, inputs, input_count)) return refuse(called, wrong);
  if (const char* const wrong = wrong_outputs(outputs, output_count)) return refuse(called, wrong);
  for (uint32_t i = 0; i < input_count; ++i)
    if (inputs[i] && !inputs[i]->data && inputs[i]->byte_size > 0) return refuse(called, "gives a subnet an input without data in run");
  return called->run_subnet(subnet, trip, {inputs, input_count}, {outputs, output_count});
}
heddle_status move(const heddle_call* call, uint32_t flags, void* destination, const void* source, uint64_t bytes) {
  heddle_call* const called = find(call);
  return called ? called->move(flags, destination, source, bytes) : HEDDLE_ERROR_UNSUPPORTED;
}
heddle_status infer_subnet(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                           heddle_type* const* outputs, uint32_t output_count) {
  heddle_call* const called = find(call);
  if (!called) return HEDDLE_ERROR_UNSUPPORTED;
  if (const char* const wrong = wrong_inputs(subnet, inputs, input_count)) return refuse(called, wrong);
  if (output_count > 0 && !outputs) return refuse(called, "asks for types of a subnet's outputs and has no place for them");
  return called->infer_subnet(subnet, {inputs, input_count}, {outputs, output_count});
}
heddle_status declare_subnet(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs,
                             uint32_t input_count) {
  heddle_call* const called = find(call);
  if (!called) return HEDDLE_ERROR_UNSUPPORTED;
  if (const char* const wrong = wrong_inputs(subnet, inputs, input_count)) return refuse(called, wrong);
  return called->declare_subnet(subnet, {inputs, input_count});
}

}  // namespace

const heddle_host* host_table() {
  static const heddle_host table = [] {
    heddle_host h = {};
    h.struct_size = sizeof(h);
    h.abi_major = HEDDLE_ABI_MAJOR;
    h.abi_minor = HEDDLE_ABI_MINOR;
    h.set_error = set_error;
    h.log = log_function;
    h.need = need;
    h.resource = resource;
    h.prepack = prepack;
    h.thread_scratch = thread_scratch;
    h.thread_index = thread_index;
    h.cancelled = cancelled;
    h.allocate_output = allocate_output;
    h.run_subnet = run_subnet;
    h.infer_subnet = infer_subnet;
    h.declare_subnet = declare_subnet;
    h.abi_hash = HEDDLE_ABI_HASH;
    h.complete = complete;
    h.move = move;
    return h;
  }();
  return &table;
}

// ---------------------------------------------------------------- calls

std::string HostCall::reason() const {
  return error.text.empty() ? "it gave no reason" : printable(error.text);
}

void HostCall::say(std::string_view text) noexcept {
  try {
    error.text = text;
    if (!error.text.empty()) error.cause = Status();
  } catch (...) {
    // The status is reported without its text.
  }
}

void HostCall::refuse(std::string_view what) noexcept {
  const MutexLock lock(mutex_);
  error.misused = true;
  without_exceptions([&] { error.missing = Status(Code::plugin_invalid, std::string(what), "see what heddle/abi.h says of heddle_host"); });
}

void HostCall::set_error(heddle_status code, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  error.code = code;
  say(text);
}

Result<uint32_t> CallServices::need(const heddle_resource_need& need) {
  return Status(Code::missing_resource, fmt::format("resource {} needs a session", quoted(need.name ? need.name : "")));
}

// Never returns "unsupported", which would make the host look for another kernel.
heddle_status HostCall::need(const heddle_resource_need& need, uint32_t* slot) noexcept {
  try {
    CallServices none;
    const Result<uint32_t> found = (services_ ? services_ : &none)->need(need);
    const MutexLock lock(mutex_);
    if (found.ok()) return *slot = *found, HEDDLE_OK;
    error.misused = found.status().code() == Code::plugin_invalid;
    error.missing = found.status();
  } catch (...) {  // exceptions must not cross the plugin boundary
    const MutexLock lock(mutex_);
    error.missing = status_of_exception();
  }
  return HEDDLE_ERROR_INVALID;
}

const void* CallServices::prepack(uint32_t, const std::string&, uint64_t, heddle_prepack_fill, void*, std::string& error) {
  error = "constants are packed in prepare";
  return nullptr;
}

Status CallServices::infer_subnet(const heddle_subnet*, heddle_call::Views, std::span<heddle_type* const>) {
  return {Code::unsupported, "types of subnets are asked for in infer"};
}

Status CallServices::declare_subnet(const heddle_subnet*, heddle_call::Views) {
  return {Code::unsupported, "what a subnet is run with is declared in subnets"};
}

template <class Answer>
heddle_status HostCall::ask_about(const heddle_subnet* subnet, Views inputs, const Answer& answer) noexcept {
  if (!services_) return HEDDLE_ERROR_UNSUPPORTED;
  try {
    Status status;
    // A pointer of the plugin's is not dereferenced before it is known.
    const std::vector<Attribute>* const attributes = services_->attributes();
    const std::shared_ptr<const Net> net = attributes ? subnet_attribute(*attributes, from_abi(subnet)) : nullptr;
    if (!net) status = not_its_subnet();
    for (size_t i = 0; i < inputs.size() && status.ok(); ++i)
      if (!inputs[i])
        status = {Code::subnet_mismatch, fmt::format("input {} of subnet {} is absent", i, quoted(net->name)),
                  "give the operator a value for it"};
    if (status.ok()) status = answer();
    if (status.ok()) return HEDDLE_OK;
    const MutexLock lock(mutex_);
    error.code = status_of(status.code());
    error.misused = error.misused || status.code() == Code::plugin_invalid;
    if (error.cause.ok())
      error.cause = std::move(status);
    else  // both branches are wrong
      error.cause.diagnostic().attached.push_back(std::move(status.diagnostic()));
    return error.code;
  } catch (...) {
    return status_of(status_of_exception().code());
  }
}

heddle_status HostCall::infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) noexcept {
  return ask_about(subnet, inputs, [&] { return services_->infer_subnet(subnet, inputs, outputs); });
}

heddle_status HostCall::declare_subnet(const heddle_subnet* subnet, Views inputs) noexcept {
  return ask_about(subnet, inputs, [&] { return services_->declare_subnet(subnet, inputs); });
}

const void* PrepareCall::prepack(uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user) noexcept {
  if (!services_) return nullptr;
  try {
    std::string why;
    const void* packed = nullptr;
    if (bytes > std::numeric_limits<int64_t>::max() / 2)
      why = fmt::format("{} bytes for a packed constant do not fit in memory", bytes);
    else
      packed = services_->prepack(input, key, bytes, fill, user, why);
    const MutexLock lock(mutex_);
    if (!packed) say(why);
    return packed;
  } catch (...) {
    const MutexLock lock(mutex_);
    say("no memory for a packed constant");
    return nullptr;
  }
}

void set_log_sink(LogSink sink, void* user) {
  const MutexLock lock(log_mutex);
  log_sink = sink;
  log_user = user;
}

void log_line(heddle_log_level level, const std::string& text) {
  log_function(level, text.data(), text.size());
}

heddle_status status_of(Code code) {
  switch (code) {
    case Code::ok:
      return HEDDLE_OK;
    case Code::limit_exceeded:
    case Code::out_of_memory:
      return HEDDLE_ERROR_OUT_OF_MEMORY;
    case Code::cancelled:
      return HEDDLE_ERROR_CANCELLED;
    case Code::unsupported:
      return HEDDLE_ERROR_UNSUPPORTED;
    case Code::device_lost:
      return HEDDLE_ERROR_DEVICE_LOST;
    default:
      return HEDDLE_ERROR_INVALID;
  }
}

namespace {

void tell_from_outside(Diagnostic& d, const std::string& subnet, const std::string& net, const std::string& node, const std::string& type) {
  d.net = net;
  if (d.node.empty()) d.type = type;
  d.node = d.node.empty() ? node : node + "/" + d.node;
  d.context.push_back(fmt::format("in subnet {}", quoted(subnet)));
  for (Diagnostic& other : d.attached) tell_from_outside(other, subnet, net, node, type);
}

}  // namespace

Status from_subnet(Status inner, const std::string& subnet, const std::string& net, const std::string& node, const std::string& type) {
  tell_from_outside(inner.diagnostic(), subnet, net, node, type);
  return inner;
}

Status check_move(uint32_t flags, const void* destination, const void* source, uint64_t bytes) {
  if (!destination || !source)
    return {Code::kernel_failed, fmt::format("the kernel moves {} bytes {} nowhere", bytes, destination ? "from" : "to"),
            "give heddle_host::move a source and a destination"};
  if ((flags & HEDDLE_MOVE_VALUE) != 0 && bytes > static_cast<uint64_t>(max_value_bytes))
    return {Code::kernel_failed, fmt::format("the kernel moves a value of {} bytes, at most {} are possible", bytes, max_value_bytes),
            "move it from a constant, or in parts"};
  return {};
}

Status cancelled_untold() {
  return {Code::kernel_failed, "answers that it was cancelled, and nothing had told it to end",
          "answer HEDDLE_ERROR_CANCELLED after heddle_host::cancelled said so, or abort() was called"};
}

Status compile_error(heddle_status code, const CallError& error) {
  return code != HEDDLE_ERROR_CANCELLED || !error.cause.ok() ? plugin_error(Code::kernel_failed, code, error) : cancelled_untold();
}

Status plugin_error(Code otherwise, heddle_status code, const CallError& error) {
  if (!error.cause.ok()) return error.cause;
  // A plugin that can do without the resource reports that it does not support the call, or does not fail.
  if (!error.missing.ok() && code != HEDDLE_ERROR_UNSUPPORTED) {
    Status missing = error.missing;
    if (!error.text.empty()) missing.diagnostic().message = fmt::format("{}: {}", printable(error.text), missing.diagnostic().message);
    return missing;
  }
  Code kind = otherwise;
  if (code == HEDDLE_ERROR_UNSUPPORTED) kind = Code::unsupported;
  if (code == HEDDLE_ERROR_OUT_OF_MEMORY) kind = Code::out_of_memory;
  if (code == HEDDLE_ERROR_DEVICE) kind = Code::device_failed;
  if (code == HEDDLE_ERROR_DEVICE_LOST) kind = Code::device_lost;
  if (code == HEDDLE_ERROR_CANCELLED) kind = Code::cancelled;
  if (code == HEDDLE_PENDING) return {kind, "is pending, and waits for no subnet"};
  return {kind, printable(error.text.empty() ? fmt::format("failed with status {} and no text", code) : error.text)};
}

}  // namespace heddle
