// The host's side of each call into a plugin: the object that a token (heddle_call) stands for, and the one table of host functions, which
// forward to it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/lasting_tokens.h"
#include "base/threads/mutex.h"
#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"

// One call of the host into a plugin, or a step while it runs: the target of the host's functions. The default of each function is that the
// kind of call does not support it. May be called by any thread, by several at once; throws nothing.
struct heddle_call {
  using Views = std::span<const heddle_tensor* const>;
  virtual void set_error(heddle_status code, std::string_view text) noexcept = 0;
  // The plugin has passed arguments that the host's functions do not accept: a mistake of its own, reported beside whatever text it has.
  virtual void refuse(std::string_view what) noexcept { set_error(HEDDLE_ERROR_INVALID, what); }
  virtual heddle_status need(const heddle_resource_need&, uint32_t*) noexcept { return HEDDLE_ERROR_UNSUPPORTED; }
  virtual void* resource(uint32_t) noexcept { return nullptr; }
  virtual const void* prepack(uint32_t, const char*, uint64_t, heddle_prepack_fill, void*) noexcept { return nullptr; }
  virtual void* thread_scratch() const noexcept { return nullptr; }
  virtual uint32_t thread_index() const noexcept { return HEDDLE_NO_THREAD; }
  virtual bool cancelled() const noexcept { return false; }
  // Completes an asynchronous step, once, while its token (base/lasting_tokens.h) shows that it is running; for other calls a mistake.
  virtual heddle_status complete(heddle_status, std::string_view) noexcept { return HEDDLE_ERROR_INVALID; }
  // Finishes a step that needs more than the kernel's finish function: see finish_by_call.
  virtual heddle_status finish_step() noexcept { return HEDDLE_OK; }
  virtual void* allocate_output(uint32_t, const int64_t* /*dims*/, int32_t /*rank*/) noexcept { return nullptr; }
  virtual heddle_status run_subnet(const heddle_subnet*, uint64_t, Views, std::span<heddle_tensor* const>) noexcept {
    return HEDDLE_ERROR_UNSUPPORTED;
  }
  virtual heddle_status move(uint32_t, void*, const void*, uint64_t) noexcept { return HEDDLE_ERROR_UNSUPPORTED; }
  virtual heddle_status infer_subnet(const heddle_subnet*, Views, std::span<heddle_type* const>) noexcept {
    return HEDDLE_ERROR_UNSUPPORTED;
  }
  virtual heddle_status declare_subnet(const heddle_subnet*, Views) noexcept { return HEDDLE_ERROR_UNSUPPORTED; }

 protected:
  heddle_call() = default;
  heddle_call(const heddle_call&) = default;
  heddle_call& operator=(const heddle_call&) = default;
  ~heddle_call() = default;
};

namespace heddle {

// Receives the text of a failure.
struct CallError {
  heddle_status code = HEDDLE_OK;
  std::string text;
  Status cause;          // error in a subnet that the plugin inferred or ran: reported in full, unless the plugin has a text of its own
  Status missing{};      // failed request to the host, for a resource or memory for an output: reported beside the plugin's own text
  bool misused = false;  // `missing` or `cause` is a mistake of the plugin's, whatever its inputs
};

// Returns the part of a plugin's text that is kept. `text` may be null.
inline std::string_view kept_text(const char* text, size_t length) {
  return text ? std::string_view(text, std::min<size_t>(length, 4096)) : std::string_view();
}

// Log lines of plugins and of the runtime go here; null: dropped. Set by the embedding program; must be callable from any thread.
using LogSink = void (*)(void* user, heddle_log_level level, const char* text, size_t length);
void set_log_sink(LogSink sink, void* user);
void log_line(heddle_log_level level, const std::string& text);

// The table that every plugin is given. Its functions forward to the call in their arguments; without a call they return nothing or an
// error.
const heddle_host* host_table();

// Answers to host calls that need more than the call itself. Implemented by the stage that makes the call (inference, compiler).
class CallServices {
 public:
  virtual ~CallServices() = default;
  // Returns the slot of a resource; resource() returns the object in it. Errors: missing_resource, or the reason why it could not be
  // created.
  virtual Result<uint32_t> need(const heddle_resource_need& need);
  virtual void* resource(uint32_t) { return nullptr; }
  // Memory for a packed constant; see heddle_host::prepack.
  virtual const void* prepack(uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill, void* user,
                              std::string& error);
  // The attributes of the node of the call, which has no subnets except those among them. Null: it has none.
  virtual const std::vector<Attribute>* attributes() const { return nullptr; }
  // Infers a subnet of the node. Errors inside the subnet are returned as from_subnet() rewrites them.
  virtual Status infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs);
  virtual Status declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs);
};

// The call for query and initialize of a plugin, and the base of all other calls: stores the error, and forwards to its services.
class HostCall : public heddle_call {
 public:
  explicit HostCall(CallServices* services = nullptr) : services_(services) {}
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  void set_error(heddle_status code, std::string_view text) noexcept override;
  void refuse(std::string_view what) noexcept override;
  heddle_status need(const heddle_resource_need& need, uint32_t* slot) noexcept override;
  void* resource(uint32_t slot) noexcept override { return services_ ? services_->resource(slot) : nullptr; }
  heddle_status infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) noexcept override;
  heddle_status declare_subnet(const heddle_subnet* subnet, Views inputs) noexcept override;

  // During the call it is read and written under mutex_, once the call has returned without: hence it is not annotated.
  CallError error;
  // The text of a failed call, as part of a sentence.
  std::string reason() const;

 protected:
  // Stores a text.
  void say(std::string_view text) noexcept HEDDLE_REQUIRES(mutex_);
  // Forwards a request about a subnet, whose inputs are all present, to `services`.
  template <class Answer>
  heddle_status ask_about(const heddle_subnet* subnet, Views inputs, const Answer& answer) noexcept;
  CallServices* const services_;
  Mutex mutex_;  // guards `error` during the call, and what calls of runs add
};

// A call with a context of the ABI. Each call has its own copy: changes to it affect this call alone.
template <class Context>
class ContextCall : public HostCall {
 public:
  explicit ContextCall(const Context& context, CallServices* services = nullptr) : HostCall(services), abi(context) {
    abi.host = host_table();
    abi.call = this;
  }
  Context abi;
};
using InferCall = ContextCall<heddle_infer_context>;
using CreateCall = ContextCall<heddle_create_context>;
class PrepareCall final : public ContextCall<heddle_prepare_context> {
 public:
  using ContextCall::ContextCall;
  const void* prepack(uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user) noexcept override;
};

// Returns the call of a context made by the host, a token or not; REQUIRES: its step is being called.
inline heddle_call* call_of(const heddle_run_context& context) {
  if (!TokenSlot::is_token(context.call)) [[likely]]
    return const_cast<heddle_call*>(context.call);
  return static_cast<heddle_call*>(TokenSlot::of(context.call)->object());
}

// Used instead of a kernel's finish function where the step's call has more to do at its end.
inline heddle_status finish_by_call(const heddle_run_context* context) {
  return call_of(*context)->finish_step();
}

// Errors of prepack: why a constant was not packed.
inline constexpr const char* own_packing = "the function that packs a constant asks for what it is packing";
inline constexpr const char* threw_packing = "the function that packs a constant threw an exception across the plugin boundary";

// The largest value for HEDDLE_MOVE_VALUE and HEDDLE_COPY_VALUE_TO_DEVICE, in bytes (heddle/abi.h, heddle/device_plugin.h).
inline constexpr int64_t max_value_bytes = 64;

// Whether a kernel may move so many bytes there (heddle_host::move). Errors: kernel_failed.
Status check_move(uint32_t flags, const void* destination, const void* source, uint64_t bytes);

// Converts a failed plugin call to a Status: the error of a subnet, if there is one; else `otherwise` is the code unless the plugin's own
// status is more specific.
Status plugin_error(Code otherwise, heddle_status code, const CallError& error);
// The error of a plugin that returns HEDDLE_ERROR_CANCELLED where nothing was cancelled.
Status cancelled_untold();
// plugin_error of create or prepare, which are never cancelled.
Status compile_error(heddle_status code, const CallError& error);
// Converts a code to a status of the ABI.
heddle_status status_of(Code code);

// Rewrites an error inside the net that is an attribute of a node for the net around it: codes and hints stay, operators are called
// "node/operator of the subnet", also in the findings attached.
Status from_subnet(Status inner, const std::string& subnet, const std::string& net, const std::string& node, const std::string& type);

}  // namespace heddle
