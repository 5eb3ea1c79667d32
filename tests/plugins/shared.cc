// A resource of each scope, and operators that use them. Built several times, each as a plugin of its own.
#include "shared.h"

#include <atomic>
#include <string>

#include "heddle/op.h"
#include "plugin_case.h"
using namespace heddle::plugin;

namespace {

const int32_t plugin_number = test_plugin_case[0] - '0';
const std::string prefix = "shared" + std::to_string(plugin_number) + ".";
std::atomic<int64_t> numbers{0};

// The part of a resource that its users read.
struct Shared {
  int64_t number = ++numbers;  // counts the resources of this plugin
};

SharedWatch* watch_of(const ResourceRequest& request) {
  const heddle_attribute* const option = request.option("watch");
  return option ? reinterpret_cast<SharedWatch*>(option->i) : nullptr;
}

class Watched : public Shared {
 public:
  explicit Watched(const ResourceRequest& request) : watch_(watch_of(request)), name_(request.name()) {
    if (!watch_) return;
    watch_->making(watch_, plugin_number, name_);
    watch_->made(watch_, plugin_number, name_);
  }
  ~Watched() {
    if (watch_) watch_->gone(watch_, plugin_number, name_);
  }

 protected:
  SharedWatch* const watch_;

 private:
  const char* const name_;
};

// A resource of a stream that can break.
class Fragile : public Watched {
 public:
  using Watched::Watched;
  Status poll_error() const { return watch_ && watch_->lost(watch_) ? invalid("it is broken") : Status(); }
};

// A resource of the runtime that requests one of a session: refused.
class Greedy : public Shared {
 public:
  explicit Greedy(const ResourceRequest& request) {
    if (!request.need<Shared>((prefix + "session").c_str())) throw std::runtime_error("it wants a session's");
  }
};

heddle_attribute watch_option(int64_t address) {
  heddle_attribute option = {};
  option.struct_size = sizeof(option);
  option.type = HEDDLE_ATTRIBUTE_INT;
  option.name = "watch";
  option.i = address;
  return option;
}

// Outputs the number of the resource `name`, an attribute.
class Number {
 public:
  Status create(const CreateContext& context) {
    const heddle_attribute option = watch_option(context.attributes.i("watch"));
    const heddle_attribute* const options[] = {&option};
    const std::string name = prefix + context.attributes.s("name"), group = context.attributes.s("group");
    return shared_.ask(context, name.c_str(), static_cast<uint32_t>(context.attributes.i("version")), group.c_str(), options,
                       option.i ? 1 : 0);
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    output<int64_t>(context, 0)[0] = shared_(context)->number;
    return {};
  }

 private:
  Needed<Shared> shared_;
};

Status infer_number(InferContext& context) {
  context.set_dims(0, std::vector<int64_t>{});
  return {};
}

Op op(const char* name) {
  static const std::string domain = "shared" + std::to_string(plugin_number);
  Op made(name, domain.c_str());
  made.any_number("after").out_as("number", HEDDLE_I64).infer(infer_number).traits(HEDDLE_TRAIT_IMPURE);
  made.attribute("watch", 0).attribute("group", "").attribute("name", "").attribute("version", 1);
  return made;
}

}  // namespace

HEDDLE_PLUGIN(test_plugin_name, "1.0", plugin) {
  static const std::string names[] = {prefix + "runtime", prefix + "device", prefix + "session", prefix + "group",
                                      prefix + "pool",    prefix + "greedy", prefix + "fragile"};
  plugin.resource<Watched, Shared>(names[0].c_str(), HEDDLE_SCOPE_RUNTIME, 2);
  plugin.resource<Watched, Shared>(names[1].c_str(), HEDDLE_SCOPE_DEVICE, 1, "cpu");
  plugin.resource<Watched, Shared>(names[2].c_str(), HEDDLE_SCOPE_SESSION, 1);
  plugin.resource<Watched, Shared>(names[3].c_str(), HEDDLE_SCOPE_COMMUNICATOR, 1);
  plugin.resource<Watched, Shared>(names[4].c_str(), HEDDLE_SCOPE_STREAM, 1, "cpu");
  plugin.resource<Watched, Shared>(names[4].c_str(), HEDDLE_SCOPE_STREAM, 1, "sim");
  plugin.resource<Fragile, Shared>(names[6].c_str(), HEDDLE_SCOPE_STREAM, 1, "sim");
  plugin.resource<Greedy, Shared>(names[5].c_str(), HEDDLE_SCOPE_RUNTIME, 1);
  plugin.add(op("Number").cpu<Number>());
}
