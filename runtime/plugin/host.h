// The host's side of each call into a plugin: the contexts that carry an ABI struct as their first member, and the tables of host
// functions that find their way back from it.
//
// A function table per kind of context lets set_error(context) know what `context` is without a lookup or thread-local state.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/abi.h"
#include "heddle/status.h"

namespace heddle {

// What every context has behind its ABI struct: where the text of a failure goes.
struct CallError {
  heddle_status code = HEDDLE_OK;
  std::string text;
  Status cause;      // of a subnet that the plugin asked about: the whole story, unless the plugin has a text of its own
  Status missing{};  // the resource that it asked for in vain, told beside the plugin's own text
};

// What of a plugin's text is kept. `text` may be null.
inline std::string_view kept_text(const char* text, size_t length) {
  return text ? std::string_view(text, std::min<size_t>(length, 4096)) : std::string_view();
}

// Log lines of plugins and of the runtime go here; null: dropped. Set by the embedding program; must be callable from any thread.
using LogSink = void (*)(void* user, heddle_log_level level, const char* text, size_t length);
void set_log_sink(LogSink sink, void* user);
void log_line(heddle_log_level level, const std::string& text);

// Table for calls whose errors are not read: only log works.
const heddle_host* base_host();

// A table for query, initialize and resource creation, which have no other context: set_error(the table itself, ...) is remembered, log
// works, everything else answers with nothing (but resource() for resources: compile/resources.cc). Must outlive what it is given to; not
// movable once given away.
struct LoadCall {
  LoadCall();
  heddle_host abi;
  CallError error;
};

// Answers to host calls that need more than the context itself. Implemented by the stage that makes the call (inference, compiler).
class CallServices {
 public:
  virtual ~CallServices() = default;
  // A session-long resource by name. Errors: missing_resource, or what kept it from being made.
  virtual Result<void*> resource(const std::string& name) = 0;
  // Memory for a packed constant; see heddle_host::prepack.
  virtual const void* prepack(uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill, void* user,
                              std::string& error) = 0;
  // What is wrong inside the subnet comes back as from_subnet() tells it.
  virtual Status infer_subnet(const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t count, heddle_type* const* outputs,
                              uint32_t output_count) = 0;
};

struct InferCall {
  heddle_infer_context abi = {};
  CallError error;
  CallServices* services = nullptr;
};
struct CreateCall {
  heddle_create_context abi = {};
  CallError error;
  CallServices* services = nullptr;
};
struct PrepareCall {
  heddle_prepare_context abi = {};
  CallError error;
  CallServices* services = nullptr;
};
const heddle_host* infer_host();
const heddle_host* create_host();
const heddle_host* prepare_host();

// A failing plugin call as a Status: what a subnet said; else `otherwise` is the code unless the plugin's own status says more.
Status plugin_error(Code otherwise, heddle_status code, const CallError& error);
// The plugin's side of a code.
heddle_status status_of(Code code);

// What is wrong inside the net that is an attribute of a node, told from outside: codes and hints stay, operators are called
// "node/operator of the subnet", and so are the findings attached.
Status from_subnet(Status inner, const std::string& subnet, const std::string& net, const std::string& node, const std::string& type);

}  // namespace heddle
