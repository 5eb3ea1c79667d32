// A runtime with the devices under test, their settings, and nets whose results have the same bits everywhere.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build_folder.h"
#include "device/device_kinds.h"
#include "load/temporary_folder.h"
#include "session/session_impl.h"

namespace heddle::testing_devices {

// Sets a variable of the environment for its lifetime.
class Setting {
 public:
  Setting(const std::string& name, const std::string& value) : name_(name) { ::setenv(name_.c_str(), value.c_str(), 1); }
  ~Setting() { ::unsetenv(name_.c_str()); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

// A setting of the kind under test: its plugin reads it when it is loaded or a device is opened, others never do.
class DeviceSetting : public Setting {
 public:
  DeviceSetting(const std::string& name, const std::string& value) : Setting(kind().setting(name), value) {}
};

// The reason that a kind gives if its setting DEVICES is 0.
inline std::string said_of_none(const DeviceSetting& devices) {
  return kind().said_of_none.empty() ? devices.name() + " is 0" : kind().said_of_none;
}

// While it is closed, the streams of devices that are opened during its lifetime begin no work.
class Gate {
 public:
  Gate() : file_((folder_.path() / "hold").string()), setting_("HOLD", file_) {}
  ~Gate() { open(); }
  void close() const { std::ofstream(file_) << "held"; }
  void open() const { std::filesystem::remove(file_); }

 private:
  const testing::TemporaryFolder folder_;
  const std::string file_;
  const DeviceSetting setting_;
};

// Places `node` on `device`.
inline ValueId on(NetBuilder& b, const std::string& device, ValueId node) {
  b.net()[b.net()[node].producer].device = device;
  return node;
}

// A step that returns its input, f32, but fails the first `times` times: on the device, or at its launch. Must be made before the device is
// opened.
class FaultyStep {
 public:
  enum class When { at_launch, later };
  FaultyStep(When when, int64_t times) : when_(when), times_(times) {
    if (kind().has_fault_rules)
      setting_.emplace("FAULTS", std::string(when == When::later ? "late" : "enqueue") + ":Max*" + std::to_string(times));
  }
  ValueId add(NetBuilder& b, ValueId x) const {
    if (kind().has_fault_rules) return on(b, device_name(0), b.add1("Max", "fault", {x}));
    const int64_t later = when_ == When::later ? 1 : 0;
    return on(b, device_name(0), b.add1("Fault", "fault", {x}, {{"later", later}, {"times", times_}}, kind().name));
  }
  static std::string type() { return kind().has_fault_rules ? "Max" : kind().name + "::Fault"; }

 private:
  const When when_;
  const int64_t times_;
  std::optional<DeviceSetting> setting_;
};

// Loads the cpu plugin, that of the kind under test, and an operator without a kernel for any device: host_only::Through. `others`: test
// plugins by name.
inline Runtime device_runtime(int threads = 1, const std::vector<std::string>& others = {}) {
  RuntimeOptions options;
  options.plugins = {testing::build_folder() + "/lib/cpu.so", testing::build_folder() + "/lib/test/host_only.so", kind().library};
  for (const std::string& other : others) options.plugins.push_back(testing::build_folder() + "/lib/test/" + other + ".so");
  options.default_plugins = false;
  options.threads = threads;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline std::shared_ptr<const Blob> whole_numbers(const Shape& shape, int first, int step) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((first + step * static_cast<int>(i)) % 13 - 6);
  return Blob::copy_of(DType::f32, shape, values.data());
}

inline TensorView view(const Blob& blob) {
  return {blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)};
}

inline std::vector<char> bytes(const TensorView& t) {
  const auto* data = static_cast<const char*>(t.data);
  return {data, data + t.byte_size()};
}

inline std::vector<std::vector<char>> outputs(const Context& context) {
  std::vector<std::vector<char>> all;
  for (size_t i = 0; i < context.output_count(); ++i) all.push_back(bytes(context.output(i)));
  return all;
}

// A session of a net, a context with its inputs bound, and the objects that they refer to.
struct Prepared {
  Session session;
  Context context;
  std::vector<std::shared_ptr<const Blob>> inputs;
  const Plan& plan() { return Internals::execution(context).plan(); }
};

inline std::vector<std::shared_ptr<const Blob>> inputs_of(const Session& session) {
  std::vector<std::shared_ptr<const Blob>> blobs;
  for (const PortInfo& port : session.inputs()) blobs.push_back(whole_numbers(port.shape, 3 + static_cast<int>(blobs.size()), 5));
  return blobs;
}

inline Result<Prepared> prepare(const Runtime& runtime, Net net, const SessionOptions& options) {
  HEDDLE_TRY(Session session, runtime.open(std::move(net), options));
  HEDDLE_TRY(Context context, session.prepare());
  Prepared prepared{std::move(session), std::move(context), {}};
  prepared.inputs = inputs_of(prepared.session);
  for (size_t i = 0; i < prepared.inputs.size(); ++i) HEDDLE_CHECK(prepared.context.bind_input(i, prepared.inputs[i]->data));
  return prepared;
}

// Two contexts that work in one memory, with their inputs bound, each of which has run once.
struct Sharing {
  SharedMemory memory;
  Context first, second;
  std::vector<std::shared_ptr<const Blob>> inputs;
};

inline Result<Sharing> share_memory(Result<Session>& one, Result<Session>& two) {
  HEDDLE_CHECK(one.ok() ? two.status() : one.status());
  SharedMemory memory;
  HEDDLE_TRY(Context first, one->prepare_on(memory));
  HEDDLE_TRY(Context second, two->prepare_on(memory));
  Sharing sharing{std::move(memory), std::move(first), std::move(second), inputs_of(*one)};
  for (Context* context : {&sharing.first, &sharing.second}) {
    HEDDLE_CHECK(context->bind_input(0, sharing.inputs[0]->data));
    HEDDLE_CHECK(context->run());
  }
  return sharing;
}

inline SessionOptions silent(int streams = 1) {
  SessionOptions options;
  options.copies = Copies::automatic;
  options.streams = streams;
  return options;
}

// x -> product -> Relu on the device, the host in between, two branches that join again on the device.
inline Net mixed_net(const std::string& device = device_name(0)) {
  NetBuilder b("mixed");
  const ValueId x = b.input("x", DType::f32, Shape{8, 16});
  const ValueId w = b.constant("w", whole_numbers(Shape{16, 16}, 1, 3));
  const ValueId a = on(b, device, b.add1("MatMul", "a", {x, w}));
  const ValueId r = on(b, device, b.add1("Relu", "r", {a}));
  const ValueId left = on(b, device, b.add1("Add", "left", {r, x}));
  const ValueId turned = b.add1("Neg", "turned", {r});
  const ValueId right = on(b, device, b.add1("Add", "right", {turned, a}));
  const ValueId joined = on(b, device, b.add1("Add", "joined", {left, right}));
  b.output(on(b, device, b.add1("MatMul", "y", {joined, w})));
  b.output(b.add1("Transpose", "z", {left}));
  return b.finish();
}

inline Net on_the_host(Net net) {
  for (Node& node : net.nodes) node.device = {};
  return net;
}

}  // namespace heddle::testing_devices
