#include "plugin/operator_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <thread>

#include "base/checked.h"
#include "base/text.h"
#include "plugin/infer_operator.h"
#include "plugin/kernel_instance.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

using Memory = CallObserver::Memory;

constexpr int64_t behind = 64;  // bytes that a Blob has at least behind its end

// What a call needs beside its inputs: its own, or its observer's, who looks at what is around it.
struct CallBytes {
  CallBytes(const CallConditions& conditions, Memory of, uint32_t index, DType dtype, const Shape& shape, std::optional<uint8_t> with)
      : fill(with) {
    if (!conditions.observer) {
      blob = Blob::allocate(dtype, shape, &data);
      if (fill) std::memset(data, *fill, static_cast<size_t>(blob->bytes + behind));
      return;
    }
    blob = std::make_shared<Blob>();
    blob->dtype = dtype;
    blob->shape = shape;
    blob->bytes = byte_size_of(dtype, shape);
    data = conditions.observer->allocate(of, index, blob->bytes);
    blob->data = data;
    if (blob->bytes > 0) std::memset(data, fill.value_or(0), static_cast<size_t>(blob->bytes));
    fill.reset();
  }
  CallBytes(const CallConditions& conditions, Memory of, uint32_t index, int64_t bytes, std::optional<uint8_t> with = {})
      : CallBytes(conditions, of, index, DType::u8, Shape{bytes}, with) {}
  bool overrun() const {
    const std::byte* const end = data + blob->bytes;
    return fill && std::any_of(end, end + behind, [&](std::byte b) { return b != std::byte{*fill}; });
  }

  std::byte* data = nullptr;
  std::shared_ptr<Blob> blob;
  std::optional<uint8_t> fill;  // that is compared

 private:
  static int64_t byte_size_of(DType dtype, const Shape& shape) {
    int64_t bytes = 0;
    return checked_byte_size(dtype, shape, &bytes) ? bytes : 0;
  }
};

// One run of a kernel, on the calling thread.
class RunCall final : public HostCall {
 public:
  RunCall(std::span<heddle_tensor* const> outputs, int64_t limit_bytes, CallObserver* observer)
      : dynamic_outputs(outputs.size()), outputs_(outputs), limit_bytes_(limit_bytes), observer_(observer) {}
  void* thread_scratch() const noexcept override { return std::this_thread::get_id() == thread_ ? thread_scratch_ : nullptr; }
  uint32_t thread_index() const noexcept override { return std::this_thread::get_id() == thread_ ? index_ : HEDDLE_NO_THREAD; }
  // Who runs from here on.
  void set_thread(uint32_t index, void* scratch) {
    index_ = index;
    thread_scratch_ = scratch;
  }
  heddle_status complete(heddle_status status, std::string_view text) noexcept override;
  heddle_status move(uint32_t, void* destination, const void* source, uint64_t bytes) noexcept override {
    if (bytes > 0 && destination != source) std::memcpy(destination, source, bytes);
    return HEDDLE_OK;
  }
  void* allocate_output(uint32_t output, std::span<const int64_t> dims) noexcept override;
  // Behind a run() that only started its work: until it is complete.
  heddle_status wait();

  std::vector<std::shared_ptr<Blob>> dynamic_outputs;

 private:
  const std::span<heddle_tensor* const> outputs_;
  const int64_t limit_bytes_;
  CallObserver* const observer_;
  uint32_t index_ = 0;
  void* thread_scratch_ = nullptr;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::condition_variable completed_;
  bool complete_ = false;
  heddle_status status_ = HEDDLE_OK;
};

heddle_status RunCall::complete(heddle_status status, std::string_view text) noexcept {
  const std::lock_guard lock(mutex_);
  if (complete_) return HEDDLE_ERROR_INVALID;
  complete_ = true;
  status_ = status;
  if (status != HEDDLE_OK && !text.empty()) say(text);
  completed_.notify_all();
  return HEDDLE_OK;
}

heddle_status RunCall::wait() {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return complete_; });
  return status_;
}

void* RunCall::allocate_output(uint32_t output, std::span<const int64_t> dims) noexcept {
  if (output >= outputs_.size() || std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) return nullptr;
  heddle_tensor& view = *outputs_[output];
  const Shape shape(dims.data(), static_cast<int>(dims.size()));
  int64_t bytes = 0;
  if (!checked_byte_size(static_cast<DType>(view.dtype), shape, &bytes) || bytes > limit_bytes_) return nullptr;
  std::byte* data = nullptr;
  if (observer_) observer_->run_ended();
  try {
    dynamic_outputs[output] = Blob::allocate(static_cast<DType>(view.dtype), shape, &data);
  } catch (const std::bad_alloc&) {
    data = nullptr;  // nothing may be thrown across a plugin
  }
  if (observer_) observer_->run_begins();
  if (!data) return nullptr;
  view.data = data;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_DYNAMIC);
  return data;
}

// Packed constants of this one call.
class Packs : public CallServices {
 public:
  explicit Packs(const CallConditions& conditions) : conditions_(conditions) {}
  const void* prepack(uint32_t, const std::string&, uint64_t bytes, heddle_prepack_fill fill, void* user, std::string& error) override {
    const CallBytes& memory =
        packs_.emplace_back(conditions_, Memory::packed, static_cast<uint32_t>(packs_.size()), static_cast<int64_t>(bytes));
    if (fill(user, memory.data) != HEDDLE_OK) {
      error = "packing a constant failed";
      return nullptr;
    }
    return memory.data;
  }
  Status infer_subnet(const heddle_subnet*, heddle_call::Views, std::span<heddle_type* const>) override {
    return {Code::unsupported, "subnets need a session"};
  }

 private:
  const CallConditions& conditions_;
  std::deque<CallBytes> packs_;
};

// Everything one run of one operator holds.
struct Runner {
  Runner(const RegistrySnapshot& snapshot, const OperatorCall& operator_call, CallEnd& call_end)
      : call(operator_call), end(call_end), packs(operator_call.conditions) {
    net.registry = std::shared_ptr<const RegistrySnapshot>(std::shared_ptr<void>(), &snapshot);  // the caller's
  }
  const OperatorCall& call;
  CallEnd& end;
  // The call as the one node of a net: inputs and outputs are values 0, 1, ...
  TypedNet net;
  Node node;
  AttributeTable table;
  std::vector<heddle_tensor> input_views;
  std::vector<const heddle_tensor*> inputs;
  std::vector<TensorType> output_types;
  std::vector<std::optional<CallBytes>> output_bytes;  // none: dynamic
  std::vector<std::shared_ptr<Blob>> output_blobs;
  std::vector<heddle_tensor> output_views;
  std::vector<heddle_tensor*> outputs;
  std::deque<int64_t> extents;
  Packs packs;
  std::optional<KernelCall> kernel_call;  // outlives the state
  KernelInstance made;

  // Operands of an epilogue lie behind the schema's own inputs.
  size_t own_inputs() const {
    size_t own = call.stages.empty() ? inputs.size() : std::min<size_t>(inputs.size(), node.schema->op->input_count);
    for (const OperatorCall::Stage& s : call.stages)
      if (s.operand_input >= 0) own = std::min(own, static_cast<size_t>(s.operand_input));
    return own;
  }
  Status infer();
  const KernelEntry* select();
  Status allocate_outputs();
  Status share(uint32_t output, uint32_t input);
  Status make(const KernelEntry& first);
  Status run();
};

Status Runner::infer() {
  table = AttributeTable(*node.schema, call.attributes);
  input_views.reserve(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& blob = call.inputs[i];
    if (!blob) {
      inputs.push_back(nullptr);
      continue;
    }
    heddle_tensor view = tensor_view(blob->dtype, blob->shape, const_cast<std::byte*>(blob->data));
    if (i < call.input_layouts.size()) view.layout = call.input_layouts[i];
    input_views.push_back(view);
    inputs.push_back(&input_views.back());
  }
  output_types.resize(call.output_count);
  const std::vector<char> wanted(call.output_count, 1);
  return infer_operator(*node.schema, table, std::span(inputs).first(own_inputs()), wanted, output_types, &packs, &end);
}

// The input shows the bytes of the output, which begin as its own.
Status Runner::share(uint32_t output, uint32_t input) {
  if (output >= output_blobs.size() || input >= inputs.size() || !inputs[input] || !output_blobs[output] ||
      output_blobs[output]->bytes != call.inputs[input]->bytes)
    return {Code::invalid_argument, fmt::format("output {} can not take the bytes of input {}", output, input)};
  void* const bytes = output_views[output].data;
  if (output_blobs[output]->bytes > 0) std::memcpy(bytes, call.inputs[input]->data, static_cast<size_t>(output_blobs[output]->bytes));
  input_views[static_cast<size_t>(inputs[input] - input_views.data())].data = bytes;
  return {};
}

// Null: no kernel fits.
const KernelEntry* Runner::select() {
  const auto add = [&](const TensorType& type) {
    net.types.push_back(type);
    return ValueId(net.types.size() - 1);
  };
  node.name = call.type;
  node.attributes = call.attributes;
  for (const auto& blob : call.inputs) node.inputs.push_back(blob ? add({blob->dtype, blob->shape}) : ValueId());
  for (const TensorType& type : output_types) node.outputs.push_back(add(type));
  for (const OperatorCall::Stage& s : call.stages) {
    EpilogueStage& stage = node.epilogue.emplace_back();
    stage.expression = s.expression;
    stage.operand_input = s.operand_input;
    stage.operand_kind = s.operand_kind;
  }
  kernel_call.emplace(net, node, "cpu:0", call.conditions.max_threads);
  return kernel_call->find();
}

Status Runner::allocate_outputs() {
  end = {OperatorStage::allocate, HEDDLE_OK};
  int64_t total = 0;
  for (const TensorType& type : output_types) {
    int64_t bytes = 0;
    const bool fits = type.dynamic || (checked_byte_size(type.dtype, type.shape, &bytes) && checked_add(total, bytes, &total));
    if (!fits || total > call.limit_bytes)
      return {Code::limit_exceeded, fmt::format("the outputs would take more than {}", human_bytes(call.limit_bytes)),
              "use smaller shapes"};
  }
  output_views.reserve(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    const TensorType& type = output_types[i];
    auto& bytes = output_bytes.emplace_back();
    if (!type.dynamic)
      bytes.emplace(call.conditions, Memory::output, static_cast<uint32_t>(i), type.dtype, type.shape, call.conditions.output_fill);
    output_blobs.push_back(bytes ? bytes->blob : nullptr);
    heddle_tensor view = tensor_view(type.dtype, type.shape, bytes ? bytes->data : nullptr);
    if (i < call.output_layouts.size()) view.layout = call.output_layouts[i];
    view.extent_axis = type.bounded_axis;
    if (type.dynamic) view.flags |= HEDDLE_TENSOR_DYNAMIC;
    if (type.bounded_axis >= 0)
      view.extent = &extents.emplace_back(call.conditions.clears_extents ? INT64_MIN : type.shape[type.bounded_axis]);
    output_views.push_back(view);
    outputs.push_back(&output_views.back());
  }
  for (const auto& [output, input] : call.in_place) HEDDLE_CHECK(share(output, input));
  return {};
}

Status Runner::make(const KernelEntry& first) {
  if (!call.stages.empty() && !kernel_call->accepts(first))
    return {Code::unsupported, fmt::format("kernel {} does not accept this epilogue", first.name)};
  for (heddle_tensor& view : input_views)
    if (call.constant_inputs) view.flags |= HEDDLE_TENSOR_CONSTANT;
  // Only constants may be read in prepare.
  std::vector<heddle_tensor> blind(input_views);
  std::vector<const heddle_tensor*> blind_inputs;
  size_t next = 0;
  for (const heddle_tensor* input : inputs) {
    if (input && !call.constant_inputs) blind[next].data = nullptr;
    blind_inputs.push_back(input ? &blind[next++] : nullptr);
  }
  const std::vector<const heddle_tensor*> const_outputs(outputs.begin(), outputs.end());
  PrepareRequest request;
  request.inputs = blind_inputs;
  request.outputs = const_outputs;
  request.max_threads = call.conditions.max_threads;
  request.scratch_limit = call.limit_bytes;
  const auto other = [&](const KernelEntry& refused) {
    const KernelEntry* kernel = kernel_call->find(&refused);
    while (kernel && !call.stages.empty() && !kernel_call->accepts(*kernel)) kernel = kernel_call->find(kernel);
    return kernel;
  };
  HEDDLE_CHECK(make_kernel(*kernel_call, first, other, &request, &packs, &made, &end));
  for (size_t i = 0; i < output_types.size(); ++i)
    if (output_types[i].dynamic && !(made.kernel->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS)) {
      end.answer = HEDDLE_ERROR_INTERNAL;
      return {Code::unsupported, fmt::format("output {} has no known extents before the operator ran", i)};
    }
  return {};
}

Status Runner::run() {
  end = {OperatorStage::allocate, HEDDLE_OK};
  const CallConditions& conditions = call.conditions;
  const CallBytes scratch(conditions, Memory::scratch, 0, made.scratch_bytes, conditions.scratch_fill);
  const uint32_t threads = conditions.other_threads ? conditions.max_threads : 1;
  std::deque<CallBytes> of_threads;
  for (uint32_t t = 0; t < threads; ++t)
    of_threads.emplace_back(conditions, Memory::thread_scratch, t, made.thread_scratch_bytes, conditions.thread_scratch_fill);
  const heddle_run_state state = {call.random_seed, call.step, 0};
  RunCall run(outputs, call.limit_bytes, conditions.observer);
  run.set_thread(0, of_threads[0].data);
  heddle_run_context c = {};
  c.struct_size = sizeof(c);
  c.input_count = static_cast<uint32_t>(inputs.size());
  c.output_count = static_cast<uint32_t>(outputs.size());
  c.inputs = inputs.data();
  c.outputs = outputs.data();
  c.state = made.state.get();
  c.scratch = scratch.data;
  c.data_scratch = made.data_scratch_bytes > 0 ? scratch.data + made.data_scratch_at : nullptr;
  c.run_state = conditions.gives_state || node.schema->has_trait(HEDDLE_TRAIT_RANDOM) ? &state : nullptr;
  c.host = host_table();
  c.call = &run;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (call.split_seed == 0) {
    if (made.tiles > 0) ranges.emplace_back(0, made.tiles);
  } else {
    std::mt19937_64 random(call.split_seed);
    for (int64_t begin = 0; begin < made.tiles;) {
      const int64_t end = std::min<int64_t>(made.tiles, begin + 1 + static_cast<int64_t>(random() % 3));
      ranges.emplace_back(begin, end);
      begin = end;
    }
    std::shuffle(ranges.begin(), ranges.end(), random);
  }
  const heddle_kernel& kernel = *made.kernel->kernel;
  heddle_status status = HEDDLE_OK;
  if (conditions.observer) conditions.observer->run_begins();
  try {
    for (size_t r = 0; r < ranges.size() && status == HEDDLE_OK; ++r) {
      // Not thread 0 first: what is right there alone shows.
      const auto thread = static_cast<uint32_t>((r + threads - 1) % threads);
      run.set_thread(thread, of_threads[thread].data);
      status = kernel.run(&c, ranges[r].first, ranges[r].second);
    }
    if (status == HEDDLE_OK && (kernel.flags & HEDDLE_KERNEL_ASYNC) && !ranges.empty()) status = run.wait();
    if (status == HEDDLE_OK && kernel.finish) status = kernel.finish(&c);
  } catch (...) {
    status = HEDDLE_ERROR_INTERNAL;
    run.error.text = "the kernel threw an exception across the plugin boundary";
  }
  if (conditions.observer) conditions.observer->run_ended();
  end = {OperatorStage::run, status};
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, run.error);
  const auto broken = [&](const std::string& what) {
    end.answer = HEDDLE_ERROR_INTERNAL;
    return Status(Code::kernel_failed, fmt::format("the kernel {}", what));
  };
  if (scratch.overrun()) return broken("wrote behind the end of its scratch");
  for (const CallBytes& bytes : of_threads)
    if (bytes.overrun()) return broken("wrote behind the end of a thread's scratch");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (output_bytes[i] && output_bytes[i]->overrun()) return broken(fmt::format("wrote behind the end of output {}", i));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (output_types[i].dynamic) {
      if (!run.dynamic_outputs[i]) return broken(fmt::format("allocated no output {}", i));
      output_blobs[i] = run.dynamic_outputs[i];
      continue;
    }
    const heddle_tensor& view = output_views[i];
    if (!view.extent) continue;
    Shape shape = output_types[i].shape;
    if (*view.extent == INT64_MIN) return broken(fmt::format("wrote no extent of output {}", i));
    if (*view.extent < 0 || *view.extent > shape[view.extent_axis])
      return broken(fmt::format("wrote extent {}, the bound is {}", *view.extent, shape[view.extent_axis]));
    shape[view.extent_axis] = *view.extent;
    output_blobs[i] = Blob::copy_of(output_types[i].dtype, shape, output_blobs[i]->data);
  }
  return {};
}

Result<std::vector<std::shared_ptr<const Blob>>> run_resolved(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end);

// Without a kernel of its own: by its expression.
Result<std::vector<std::shared_ptr<const Blob>>> run_lowered(const RegistrySnapshot& registry, const OperatorCall& call,
                                                             const OperatorSchema& schema, CallEnd& end) {
  end = {};
  if (!schema.op->pointwise)
    return Status(Code::no_kernel,
                  fmt::format("operator {} has no cpu kernel for these dtypes", quoted(display_name(call.domain, call.type))),
                  "insert a Cast, or load a plugin that has one");
  std::vector<bool> present;
  for (const auto& input : call.inputs) present.push_back(input != nullptr);
  HEDDLE_TRY(std::string program, pointwise_program(schema, call.attributes, present));
  OperatorCall lowered = call;
  lowered.domain = "heddle";
  lowered.type = "Pointwise";
  lowered.version = 0;
  lowered.attributes = {{"program", program}};
  return run_resolved(registry, lowered, end);
}

Result<const OperatorSchema*> schema_of(const RegistrySnapshot& registry, const OperatorCall& call) {
  const OperatorSchema* const schema = registry.find_operator(call.domain, call.type, call.version);
  if (!schema)
    return Status(Code::unknown_operator, fmt::format("no loaded plugin has operator {}", quoted(display_name(call.domain, call.type))),
                  suggestion(call.type, registry.operator_names(call.domain)));
  return schema;
}

Result<std::vector<std::shared_ptr<const Blob>>> run_resolved(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end) {
  Runner runner(registry, call, end);
  HEDDLE_TRY(runner.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(runner.infer());
  const KernelEntry* kernel = runner.select();
  if (!kernel) return run_lowered(registry, call, *runner.node.schema, end);
  HEDDLE_CHECK(runner.allocate_outputs());
  HEDDLE_CHECK(runner.make(*kernel));
  if (call.conditions.observer) call.conditions.observer->prepared(runner.made.tiles);
  HEDDLE_CHECK(runner.run());
  return std::vector<std::shared_ptr<const Blob>>(runner.output_blobs.begin(), runner.output_blobs.end());
}

Result<std::vector<std::shared_ptr<const Blob>>> run_in_memory(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end) {
  try {
    return run_resolved(registry, call, end);
  } catch (const std::bad_alloc&) {
    end.answer = HEDDLE_OK;  // what a plugin throws does not come here
    return Status(Code::out_of_memory, "no memory for its outputs and scratch");
  }
}

}  // namespace

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd* end) {
  CallEnd unread;
  auto result = run_in_memory(registry, call, end ? *end : unread);
  if (!result.ok()) return std::move(result).status().at(call.type, display_name(call.domain, call.type));
  return result;
}

Result<OperatorCost> operator_cost(const RegistrySnapshot& registry, const OperatorCall& call) {
  CallEnd end;
  Runner runner(registry, call, end);
  HEDDLE_TRY(runner.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(runner.infer());
  runner.select();
  return operator_cost(runner.net, runner.node, runner.table);
}

Result<std::vector<heddle_format>> operator_formats(const RegistrySnapshot& registry, const OperatorCall& call) {
  CallEnd end;
  Runner runner(registry, call, end);
  HEDDLE_TRY(runner.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(runner.infer());
  const KernelEntry* kernel = runner.select();
  return kernel ? runner.kernel_call->formats(*kernel) : std::vector<heddle_format>();
}

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const Registry& registry, const OperatorCall& call) {
  return run_operator(*registry.snapshot(), call);
}

}  // namespace heddle
