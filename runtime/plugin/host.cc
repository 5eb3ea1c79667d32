#include "plugin/host.h"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <new>

#include "base/text.h"
#include "plugin/abi_attributes.h"

namespace heddle {
namespace {

std::mutex log_mutex;
LogSink log_sink = nullptr;
void* log_user = nullptr;

void log_function(heddle_log_level level, const char* text, size_t length) {
  const std::lock_guard lock(log_mutex);
  if (!log_sink) return;
  try {
    const std::string line = printable_line(text ? std::string_view(text, length) : std::string_view());
    log_sink(log_user, level, line.data(), line.size());
  } catch (const std::bad_alloc&) {  // a plugin that logs must not be thrown through
    constexpr std::string_view lost = "no memory for a line of the log";
    log_sink(log_user, HEDDLE_LOG_WARNING, lost.data(), lost.size());
  }
}

template <class Call>
Call& call_of(const void* context) {
  return *static_cast<Call*>(const_cast<void*>(context));
}

template <class Call>
void set_error(const void* context, heddle_status code, const char* text, size_t length) {
  if (!context) return;  // a plugin that lost its context still fails with its status
  CallError& error = call_of<Call>(context).error;
  error.code = code;
  error.text = kept_text(text, length);
  if (!error.text.empty()) error.cause = Status();
}

template <class Call>
void* resource(const void* context, const char* name) {
  Call& call = call_of<Call>(context);
  if (!call.services) return nullptr;
  try {
    Result<void*> found = call.services->resource(name ? name : "");
    if (found.ok()) return *found;
    call.error.missing = found.status();
  } catch (const std::bad_alloc&) {  // nothing is thrown across the boundary
    call.error.text = "no memory to find a resource";
  }
  return nullptr;
}

template <class Call>
heddle_status infer_subnet(const void* context, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t count,
                           heddle_type* const* outputs, uint32_t output_count) {
  Call& call = call_of<Call>(context);
  if (!call.services) return HEDDLE_ERROR_UNSUPPORTED;
  Status status;
  for (uint32_t i = 0; i < count && status.ok(); ++i)
    if (!inputs[i])
      status = {Code::subnet_mismatch, fmt::format("input {} of subnet {} is absent", i, quoted(from_abi(subnet)->name)),
                "give the operator a value for it"};
  if (status.ok()) status = call.services->infer_subnet(subnet, inputs, count, outputs, output_count);
  if (status.ok()) return HEDDLE_OK;
  CallError& error = call.error;
  error.code = status_of(status.code());
  if (error.cause.ok())
    error.cause = std::move(status);
  else  // both branches are wrong
    error.cause.diagnostic().attached.push_back(std::move(status.diagnostic()));
  return error.code;
}

const void* prepack(const void* context, uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user) {
  auto& call = call_of<PrepareCall>(context);
  if (!call.services) return nullptr;
  if (bytes > std::numeric_limits<int64_t>::max() / 2) {
    call.error.text = fmt::format("{} bytes for a packed constant do not fit in memory", bytes);
    return nullptr;
  }
  try {
    return call.services->prepack(input, key, bytes, fill, user, call.error.text);
  } catch (const std::bad_alloc&) {  // nothing is thrown across the boundary
    call.error.text = fmt::format("no memory for a packed constant of {}", human_bytes(static_cast<int64_t>(bytes)));
    return nullptr;
  }
}

// Calls that make no sense for a kind of context answer with nothing.
void no_error(const void*, heddle_status, const char*, size_t) {}
void* no_resource(const void*, const char*) {
  return nullptr;
}
const void* no_prepack(const void*, uint32_t, const char*, uint64_t, heddle_prepack_fill, void*) {
  return nullptr;
}
void* no_scratch(const void*) {
  return nullptr;
}
uint32_t no_index(const void*) {
  return 0;
}
int32_t not_cancelled(const void*) {
  return 0;
}
void* no_output(const void*, uint32_t, const int64_t*, int32_t) {
  return nullptr;
}
heddle_status no_subnet_run(const void*, const heddle_subnet*, const heddle_tensor* const*, uint32_t, heddle_tensor* const*, uint32_t) {
  return HEDDLE_ERROR_UNSUPPORTED;
}
heddle_status no_subnet_infer(const void*, const heddle_subnet*, const heddle_tensor* const*, uint32_t, heddle_type* const*, uint32_t) {
  return HEDDLE_ERROR_UNSUPPORTED;
}

heddle_host make_base() {
  heddle_host h = {};
  h.struct_size = sizeof(h);
  h.abi_major = HEDDLE_ABI_MAJOR;
  h.abi_minor = HEDDLE_ABI_MINOR;
  h.set_error = no_error;
  h.log = log_function;
  h.resource = no_resource;
  h.prepack = no_prepack;
  h.thread_scratch = no_scratch;
  h.thread_index = no_index;
  h.cancelled = not_cancelled;
  h.allocate_output = no_output;
  h.run_subnet = no_subnet_run;
  h.infer_subnet = no_subnet_infer;
  h.abi_hash = HEDDLE_ABI_HASH;
  return h;
}

template <class Call>
heddle_host make_host() {
  heddle_host h = make_base();
  h.set_error = set_error<Call>;
  h.resource = resource<Call>;
  h.infer_subnet = infer_subnet<Call>;
  if constexpr (std::is_same_v<Call, PrepareCall>) h.prepack = prepack;
  return h;
}

}  // namespace

void set_log_sink(LogSink sink, void* user) {
  const std::lock_guard lock(log_mutex);
  log_sink = sink;
  log_user = user;
}

void log_line(heddle_log_level level, const std::string& text) {
  log_function(level, text.data(), text.size());
}

LoadCall::LoadCall() : abi(make_base()) {
  abi.set_error = set_error<LoadCall>;
}

const heddle_host* base_host() {
  static const heddle_host host = make_base();
  return &host;
}
const heddle_host* infer_host() {
  static const heddle_host host = make_host<InferCall>();
  return &host;
}
const heddle_host* create_host() {
  static const heddle_host host = make_host<CreateCall>();
  return &host;
}
const heddle_host* prepare_host() {
  static const heddle_host host = make_host<PrepareCall>();
  return &host;
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

namespace {

// A plugin's text, which may quote data: one line, printable.
std::string printable(const std::string& text) {
  const std::string escaped = quoted(text);
  std::string clean = escaped.substr(1, escaped.size() - 2);
  for (size_t i = clean.find("\\\""); i != std::string::npos; i = clean.find("\\\"", i)) clean.erase(i, 1);
  return clean;
}

}  // namespace

Status plugin_error(Code otherwise, heddle_status code, const CallError& error) {
  if (!error.cause.ok()) return error.cause;
  // A plugin that can do without the resource says that the call is not for it, or does not fail.
  if (!error.missing.ok() && code != HEDDLE_ERROR_UNSUPPORTED) {
    Status missing = error.missing;
    if (!error.text.empty()) missing.diagnostic().message = fmt::format("{}: {}", printable(error.text), missing.diagnostic().message);
    return missing;
  }
  Code kind = otherwise;
  if (code == HEDDLE_ERROR_UNSUPPORTED) kind = Code::unsupported;
  if (code == HEDDLE_ERROR_OUT_OF_MEMORY) kind = Code::out_of_memory;
  if (code == HEDDLE_ERROR_DEVICE) kind = Code::device_failed;
  if (code == HEDDLE_ERROR_CANCELLED) kind = Code::cancelled;
  return {kind, printable(error.text.empty() ? fmt::format("failed with status {} and no text", code) : error.text)};
}

}  // namespace heddle
