// Indices that are out of range. Every operator of the registry that the host refuses one in must refuse it on a device too, with the same
// code, operator, index and bounds, and before any variable is changed. The list of operators comes from the registry: each integer input
// of each example is tried, and what the host says is out of range is expected of the device.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "commands/plugin/example.h"
#include "device/device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(IndexFaults);

// The bounds of an index.
struct Bounds {
  std::string lower, upper;
  bool operator==(const Bounds&) const = default;
};

// Reads "is outside [-5, 4]" or "is outside [0, 5)"; nullopt: the text says nothing of the kind.
std::optional<Bounds> bounds_in(const std::string& text) {
  const std::string says = " is outside [";
  const size_t at = text.find(says);
  if (at == std::string::npos) return std::nullopt;
  const size_t comma = text.find(", ", at), end = text.find_first_of("])", comma);
  if (comma == std::string::npos || end == std::string::npos) return std::nullopt;
  Bounds found = {text.substr(at + says.size(), comma - at - says.size()), text.substr(comma + 2, end - comma - 2)};
  if (text[end] == ')') found.upper = std::to_string(std::stoll(found.upper) - 1);
  return found;
}

bool names(const std::string& text, int64_t number) {
  return text.find(" " + std::to_string(number) + " ") != std::string::npos;
}

std::shared_ptr<const Blob> with_element(const Blob& blob, int64_t at, int64_t number) {
  std::byte* data = nullptr;
  auto changed = Blob::allocate(blob.dtype, blob.shape, &data);
  std::copy_n(blob.data, blob.bytes, data);
  if (blob.dtype == DType::i32)
    reinterpret_cast<int32_t*>(data)[at] = static_cast<int32_t>(number);
  else
    reinterpret_cast<int64_t*>(data)[at] = number;
  return changed;
}

// The operator, beside an update that depends on nothing, which must not be made either. Integer inputs that are no shapes are fed.
Net net_of(const OperatorSchema& schema, const OperatorCall& call, std::vector<size_t>* feeds) {
  NetBuilder b("index");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string name = "input" + std::to_string(i);
    const heddle_port* const port = schema.input_port(i);
    if (!call.inputs[i]) {
      inputs.emplace_back();
    } else if (schema.updating_output(i) >= 0) {
      inputs.push_back(b.variable(name, call.inputs[i]));
    } else if (port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND)) {
      inputs.push_back(b.constant(name, call.inputs[i]));
    } else {
      inputs.push_back(b.input(name, call.inputs[i]->dtype, call.inputs[i]->shape));
      feeds->push_back(i);
    }
  }
  const std::vector<ValueId> outputs = b.add(call.type, "operator", inputs, call.output_count, call.attributes, call.domain);
  for (const ValueId output : outputs)
    if (output.valid()) b.output(output);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const int output = schema.updating_output(i); inputs[i].valid() && output >= 0)
      b.updates(outputs[static_cast<size_t>(output)], inputs[i]);
  const float ones[3] = {1, 1, 1};
  const ValueId other = b.variable("other", Blob::copy_of(DType::f32, Shape{3}, ones));
  const ValueId next = b.add1("AccumulateAdd", "next", {other, b.constant("one", Blob::copy_of(DType::f32, Shape{3}, ones))}, {}, "heddle");
  b.updates(next, other);
  b.net().operator_sets = {{call.domain, call.version}};
  return b.finish();
}

// One net on one device.
class Run {
 public:
  Run(const Runtime& runtime, const OperatorSchema& schema, const OperatorCall& call, const std::string& device) {
    SessionOptions options = silent();
    options.device = device;
    auto session = runtime.open(net_of(schema, call, &feeds_), options);
    auto context = session.ok() ? session->prepare() : Result<Context>(session.status());
    why_not_ = context.status();
    if (!context.ok()) return;
    session_.emplace(std::move(*session));
    context_.emplace(std::move(*context));
  }
  bool is_made() const { return context_.has_value(); }
  const Status& why_not() const { return why_not_; }
  bool is_there(const OperatorCall& call) {
    for (const PlanStep& step : Internals::execution(*context_).plan().steps)
      if (step.name == "operator" && step.type == call.type) return step.on_device != nullptr;
    return false;
  }
  Status operator()(const OperatorCall& call) {
    for (size_t i = 0; i < feeds_.size(); ++i) {
      Status bound = context_->bind_input(i, call.inputs[feeds_[i]]->data);
      if (!bound.ok()) return bound;
    }
    RunOptions options;  // a large number of trips is no index
    options.deadline_ns = 1'000'000'000;
    return context_->run(options);
  }
  // The bytes of all variables.
  std::vector<std::vector<char>> variables(const OperatorSchema& schema, const OperatorCall& call) const {
    std::vector<std::string> names = {"other"};
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i] && schema.updating_output(i) >= 0) names.push_back("input" + std::to_string(i));
    std::vector<std::vector<char>> all;
    for (const std::string& name : names) {
      auto value = session_->read_variable(name);
      EXPECT_TRUE(value.ok()) << value.status().text();
      if (value.ok()) all.push_back(bytes({value->dtype(), value->shape(), const_cast<void*>(value->data())}));
    }
    return all;
  }
  std::vector<std::vector<char>> results() const { return outputs(*context_); }

 private:
  std::vector<size_t> feeds_;
  Status why_not_;
  std::optional<Session> session_;
  std::optional<Context> context_;
};

// The result for one operator.
struct Found {
  int refused = 0, there = 0;
  bool has_kernel = false;  // on the device, as the registry says
};

class Trial {
 public:
  Trial(const Runtime& runtime, const OperatorSchema& schema, OperatorCall call, Found* found)
      : runtime_(runtime), schema_(schema), call_(std::move(call)), found_(found) {}

  void run() {
    std::vector<size_t> inputs;
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      if (may_index(i)) inputs.push_back(i);
    if (inputs.empty()) return;
    host_.emplace(runtime_, schema_, call_, "cpu");
    if (!host_->is_made() || !(*host_)(call_).ok()) return;  // the example is no net of its own
    for (const size_t i : inputs) {
      const auto& input = call_.inputs[i];
      const bool wide = input->dtype == DType::i64;
      const int64_t least = wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
      const int64_t most = wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
      for (const int64_t at : std::set<int64_t>{0, input->shape.element_count() - 1}) {
        const auto bounds = try_index(i, at, least);
        if (!bounds) continue;
        try_index(i, at, most);
        try_index(i, at, std::stoll(bounds->lower) - 1);
        try_index(i, at, std::stoll(bounds->upper) + 1);
      }
    }
  }

 private:
  bool may_index(size_t i) const {
    const heddle_port* const port = schema_.input_port(i);
    const auto& input = call_.inputs[i];
    return input && (input->dtype == DType::i32 || input->dtype == DType::i64) && input->shape.element_count() > 0 && port &&
           !(port->flags & (HEDDLE_PORT_SHAPE_OPERAND | HEDDLE_PORT_HOST)) && schema_.updating_output(i) < 0;
  }

  // Returns what the host says of the index; nullopt: it does not refuse it.
  std::optional<Bounds> try_index(size_t input, int64_t at, int64_t number) {
    OperatorCall bad = call_;
    bad.inputs[input] = with_element(*call_.inputs[input], at, number);
    const auto before_host = host_->variables(schema_, call_);
    const Status refused = (*host_)(bad);
    if (refused.ok()) return std::nullopt;
    std::optional<Bounds> expected = bounds_in(refused.text());
    if (!expected) return std::nullopt;
    SCOPED_TRACE(refused.text());
    ++found_->refused;
    EXPECT_TRUE(names(refused.text(), number));
    EXPECT_EQ(host_->variables(schema_, call_), before_host) << "on the host";
    if (!there_) there_.emplace(runtime_, schema_, call_, device_name(0));
    Run& there = *there_;
    if (!there.is_made()) {
      EXPECT_EQ(there.why_not().code(), Code::no_kernel) << there.why_not().text();
    }
    if (!there.is_made() || !there.is_there(call_)) return expected;
    ++found_->there;
    const Status right = there(call_);
    EXPECT_TRUE(right.ok()) << right.text();
    const auto results = there.results(), before = there.variables(schema_, call_);
    const Status status = there(bad);
    EXPECT_EQ(status.code(), refused.code()) << status.text();
    EXPECT_EQ(status.diagnostic().node, refused.diagnostic().node) << status.text();
    EXPECT_EQ(status.diagnostic().type, refused.diagnostic().type) << status.text();
    const std::optional<Bounds> said = bounds_in(status.text());
    EXPECT_TRUE(said && *said == *expected && names(status.text(), number)) << status.text();
    EXPECT_EQ(there.variables(schema_, call_), before) << status.text();
    const Status again = there(call_);
    EXPECT_TRUE(again.ok()) << again.text();
    const bool updates = there.variables(schema_, call_).size() > 1;
    EXPECT_TRUE(updates || there.results() == results);
    return expected;
  }

  const Runtime& runtime_;
  const OperatorSchema& schema_;
  const OperatorCall call_;
  Found* const found_;
  std::optional<Run> host_, there_;
};

TEST_P(IndexFaults, AreRefusedAsOnTheHostInEveryOperatorOfTheRegistry) {
  if (kind().has_few_kernels) GTEST_SKIP() << "devices of kind " << kind().name << " have kernels for hardly any operator";
  const Runtime runtime = device_runtime();
  std::map<std::string, Found> all;
  const auto snapshot = Internals::of(runtime).registry.snapshot();
  for (const auto& plugin : snapshot->plugins())
    for (const OperatorSchema& schema : plugin->operators)
      for (uint32_t e = 0; e < schema.op->example_count; ++e) {
        const auto example = tool::parse_example(schema, schema.op->examples[e]->text, 1);
        if (!example.ok()) continue;
        const std::string name = display_name(schema.domain, schema.name);
        SCOPED_TRACE(name + ": " + schema.op->examples[e]->text);
        all[name].has_kernel = snapshot->has_kernel(schema, kind().name);
        Trial(runtime, schema, example->call, &all[name]).run();
      }
  std::string without;
  int refused = 0, there = 0;
  for (const auto& [name, found] : all) {
    if (found.refused == 0) continue;
    refused += 1;
    there += found.there > 0 ? 1 : 0;
    EXPECT_EQ(found.there > 0, found.has_kernel) << name;
    if (found.there == 0) without += (without.empty() ? "" : ", ") + name;
  }
  std::printf("%d operators refuse an index on the host, %d of them on %s%s\n", refused, there, kind().name.c_str(),
              without.empty() ? "" : ("; no kernel there: " + without).c_str());
  EXPECT_GE(refused, 15);
  if (kind().runs_host_kernels) {
    EXPECT_EQ(without, "");
  }
}

}  // namespace
}  // namespace heddle
