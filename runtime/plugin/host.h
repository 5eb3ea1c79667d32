// The host's side of each call into a plugin: what a token (heddle_call) stands for, and the one table of host functions, which ask it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/lasting_tokens.h"
#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"

// One call of the host into a plugin, or a step while it runs: the host's functions end here. What a kind of call has no answer to it
// answers with nothing. Any thread may ask, several at once; nothing is thrown.
struct heddle_call {
  using Views = std::span<const heddle_tensor* const>;
  virtual void set_error(heddle_status code, std::string_view text) noexcept = 0;
  // The plugin has handed over what the host's functions do not take: a mistake of its own, told beside whatever text it has.
  virtual void refuse(std::string_view what) noexcept { set_error(HEDDLE_ERROR_INVALID, what); }
  virtual heddle_status need(const heddle_resource_need&, uint32_t*) noexcept { return HEDDLE_ERROR_UNSUPPORTED; }
  virtual void* resource(uint32_t) noexcept { return nullptr; }
  virtual const void* prepack(uint32_t, const char*, uint64_t, heddle_prepack_fill, void*) noexcept { return nullptr; }
  virtual void* thread_scratch() const noexcept { return nullptr; }
  virtual uint32_t thread_index() const noexcept { return HEDDLE_NO_THREAD; }
  virtual bool cancelled() const noexcept { return false; }
  // Of an asynchronous step, whose token (base/lasting_tokens.h) says that it is under way, once; of other calls a mistake.
  virtual heddle_status complete(heddle_status, std::string_view) noexcept { return HEDDLE_ERROR_INVALID; }
  // Of a step whose end takes more than the kernel's finish function: see finish_by_call.
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

// Where the text of a failure goes.
struct CallError {
  heddle_status code = HEDDLE_OK;
  std::string text;
  Status cause;          // of a subnet that the plugin asked about: the whole story, unless the plugin has a text of its own
  Status missing{};      // what it asked the host for in vain, a resource or memory for an output: told beside the plugin's own text
  bool misused = false;  // `missing` or `cause` is a mistake of the plugin's, whatever its inputs
};

// What of a plugin's text is kept. `text` may be null.
inline std::string_view kept_text(const char* text, size_t length) {
  return text ? std::string_view(text, std::min<size_t>(length, 4096)) : std::string_view();
}

// Log lines of plugins and of the runtime go here; null: dropped. Set by the embedding program; must be callable from any thread.
using LogSink = void (*)(void* user, heddle_log_level level, const char* text, size_t length);
void set_log_sink(LogSink sink, void* user);
void log_line(heddle_log_level level, const std::string& text);

// The table that every plugin is given. Its functions ask the call they are given; one without a call gets nothing.
const heddle_host* host_table();

// Answers to host calls that need more than the call itself. Implemented by the stage that makes the call (inference, compiler).
class CallServices {
 public:
  virtual ~CallServices() = default;
  // The slot of a resource, and what is in it. Errors: missing_resource, or what kept it from being made.
  virtual Result<uint32_t> need(const heddle_resource_need& need);
  virtual void* resource(uint32_t) { return nullptr; }
  // Memory for a packed constant; see heddle_host::prepack.
  virtual const void* prepack(uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill, void* user,
                              std::string& error);
  // Of the node that is asked about: it has no other subnets. Null: it has none.
  virtual const std::vector<Attribute>* attributes() const { return nullptr; }
  // One of its own. What is wrong inside the subnet comes back as from_subnet() tells it.
  virtual Status infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs);
  virtual Status declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs);
};

// Query and initialize of a plugin, and what every other call is made of: it remembers the error, and asks its services.
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

  // Once the call has returned.
  CallError error;
  // What a failing one said, for a sentence.
  std::string reason() const;

 protected:
  // Remembers a text; under the lock.
  void say(std::string_view text) noexcept;
  // What `services` answer about a subnet, whose inputs are all there.
  template <class Answer>
  heddle_status ask_about(const heddle_subnet* subnet, Views inputs, const Answer& answer) noexcept;
  CallServices* const services_;
  std::mutex mutex_;  // of `error` while the call lasts
};

// A call with a context of the ABI. A copy for each call: what is left behind belongs to this call alone.
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

// The call that a context of ours carries, a token or not; of a step that is being called.
inline heddle_call* call_of(const heddle_run_context& context) {
  if (!TokenSlot::is_token(context.call)) [[likely]]
    return const_cast<heddle_call*>(context.call);
  return static_cast<heddle_call*>(TokenSlot::of(context.call)->object());
}

// Stands for a kernel's finish function where the step's call knows more of how it ends.
inline heddle_status finish_by_call(const heddle_run_context* context) {
  return call_of(*context)->finish_step();
}

// Of prepack: why a constant was not packed.
inline constexpr const char* own_packing = "the function that packs a constant asks for what it is packing";
inline constexpr const char* threw_packing = "the function that packs a constant threw an exception across the plugin boundary";

// What HEDDLE_MOVE_VALUE and HEDDLE_COPY_VALUE_TO_DEVICE take, in bytes (heddle/abi.h, heddle/device_plugin.h).
inline constexpr int64_t max_value_bytes = 64;

// Whether a kernel may move so many bytes there (heddle_host::move). Errors: kernel_failed.
Status check_move(uint32_t flags, const void* destination, const void* source, uint64_t bytes);

// A failing plugin call as a Status: what a subnet said; else `otherwise` is the code unless the plugin's own status says more.
Status plugin_error(Code otherwise, heddle_status code, const CallError& error);
// The error of a plugin that answers HEDDLE_ERROR_CANCELLED where nobody had cancelled anything.
Status cancelled_untold();
// plugin_error of create or prepare, which nobody cancels.
Status compile_error(heddle_status code, const CallError& error);
// The plugin's side of a code.
heddle_status status_of(Code code);

// What is wrong inside the net that is an attribute of a node, told from outside: codes and hints stay, operators are called
// "node/operator of the subnet", and so are the findings attached.
Status from_subnet(Status inner, const std::string& subnet, const std::string& net, const std::string& node, const std::string& type);

}  // namespace heddle
