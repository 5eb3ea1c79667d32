#include "plugin/operator_runner.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <random>

#include "base/checked.h"
#include "base/text.h"
#include "infer/infer_operator.h"
#include "plugin/kernel_guard.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(uint64_t bytes) : memory(Blob::allocate(DType::u8, Shape{static_cast<int64_t>(bytes)}, &data)) {}
  std::byte* data = nullptr;
  std::shared_ptr<Blob> memory;
};

// One call's run context with what the host functions need behind it.
struct RunCall {
  heddle_run_context abi = {};
  CallError error;
  void* thread_scratch = nullptr;
  std::vector<std::shared_ptr<Blob>> dynamic_outputs;
  std::vector<heddle_tensor*> outputs;
  int64_t limit_bytes = 0;
};

RunCall& call_of(const void* context) {
  return *static_cast<RunCall*>(const_cast<void*>(context));
}

void set_error(const void* context, heddle_status code, const char* text, size_t length) {
  if (!context) return;
  call_of(context).error = {code, std::string(text ? text : "", text ? std::min<size_t>(length, 4096) : 0)};
}

void* thread_scratch(const void* context) {
  return call_of(context).thread_scratch;
}

void* allocate_output(const void* context, uint32_t output, const int64_t* dims, int32_t rank) {
  RunCall& call = call_of(context);
  if (output >= call.outputs.size() || rank < 0 || rank > max_rank) return nullptr;
  for (int32_t i = 0; i < rank; ++i)
    if (dims[i] < 0) return nullptr;
  heddle_tensor& view = *call.outputs[output];
  int64_t bytes = 0;
  if (!checked_byte_size(static_cast<DType>(view.dtype), Shape(dims, rank), &bytes) || bytes > call.limit_bytes) return nullptr;
  std::byte* data = nullptr;
  auto blob = Blob::allocate(static_cast<DType>(view.dtype), Shape(dims, rank), &data);
  view.data = data;
  call.dynamic_outputs[output] = std::move(blob);
  return data;
}

const heddle_host* run_host() {
  static const heddle_host host = [] {
    heddle_host h = *base_host();
    h.set_error = set_error;
    h.thread_scratch = thread_scratch;
    h.allocate_output = allocate_output;
    return h;
  }();
  return &host;
}

// Packed constants of this one call.
class Packs : public CallServices {
 public:
  void* resource(const std::string& name, std::string& error) override {
    error = "resource " + quoted(name) + " needs a session";
    return nullptr;
  }
  const void* prepack(uint32_t, const std::string&, uint64_t bytes, heddle_prepack_fill fill, void* user, std::string& error) override {
    AlignedBytes& memory = packs_.emplace_back(bytes);
    if (fill(user, memory.data) != HEDDLE_OK) {
      error = "packing a constant failed";
      return nullptr;
    }
    return memory.data;
  }
  heddle_status infer_subnet(const heddle_subnet*, const heddle_tensor* const*, uint32_t, heddle_type* const*, uint32_t,
                             std::string& error) override {
    error = "subnets need a session";
    return HEDDLE_ERROR_UNSUPPORTED;
  }

 private:
  std::deque<AlignedBytes> packs_;
};

// Everything one run of one operator holds.
struct Runner {
  Runner(const RegistrySnapshot& snapshot, const OperatorCall& operator_call)
      : registry(snapshot), call(operator_call), attributes(operator_call.attributes) {}
  const RegistrySnapshot& registry;
  const OperatorCall& call;
  const OperatorSchema* schema = nullptr;
  std::vector<Attribute> attributes;
  AttributeTable table;
  std::vector<heddle_tensor> input_views;
  std::vector<const heddle_tensor*> inputs;
  std::vector<TensorType> output_types;
  std::vector<std::shared_ptr<Blob>> output_blobs;
  std::vector<heddle_tensor> output_views;
  std::vector<heddle_tensor*> outputs;
  std::deque<int64_t> extents;
  const KernelEntry* kernel = nullptr;
  void* state = nullptr;
  Packs packs;
  heddle_prepare_context prepared = {};

  // Operands of an epilogue lie behind the schema's own inputs.
  size_t own_inputs() const {
    size_t own = call.stages.empty() ? inputs.size() : std::min<size_t>(inputs.size(), schema->op->input_count);
    for (const OperatorCall::Stage& s : call.stages)
      if (s.operand_input >= 0) own = std::min(own, static_cast<size_t>(s.operand_input));
    return own;
  }
  Status infer();
  Status select();
  Status create();
  Status check_output_sizes() const;
  Status prepare();
  Status run();
  ~Runner() {
    if (kernel) destroy_state(*kernel, state);
  }
};

Status Runner::infer() {
  table = AttributeTable(*schema, attributes);
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
  return infer_operator(*schema, table, std::span(inputs).first(own_inputs()), wanted, output_types, &packs);
}

Status Runner::select() {
  std::vector<DType> in, out;
  for (const auto& blob : call.inputs) in.push_back(blob ? blob->dtype : DType::none);
  for (const TensorType& type : output_types) out.push_back(type.dtype);
  kernel = registry.find_kernel(*schema, "cpu", std::span(in).first(own_inputs()), out, kernel);
  return {};
}

Status Runner::create() {
  if (!kernel->kernel->create) return {};
  std::vector<heddle_type> types;
  types.reserve(inputs.size() + output_types.size());
  std::vector<const heddle_type*> in, out;
  for (const auto& blob : call.inputs) {
    if (!blob) {
      in.push_back(nullptr);
      continue;
    }
    types.push_back(to_abi(TensorType{blob->dtype, blob->shape}));
    in.push_back(&types.back());
  }
  for (const TensorType& type : output_types) {
    types.push_back(to_abi(type));
    out.push_back(&types.back());
  }
  std::vector<heddle_epilogue_stage> stages;
  std::vector<const heddle_epilogue_stage*> stage_pointers;
  stages.reserve(call.stages.size());
  for (const OperatorCall::Stage& s : call.stages) {
    stages.push_back({sizeof(heddle_epilogue_stage), s.operand_input, s.operand_kind, 0, s.expression.c_str()});
    stage_pointers.push_back(&stages.back());
  }
  CreateCall create;
  create.services = &packs;
  heddle_create_context& c = create.abi;
  c.struct_size = sizeof(c);
  c.input_count = static_cast<uint32_t>(in.size());
  c.output_count = static_cast<uint32_t>(out.size());
  c.attribute_count = table.size();
  c.host = create_host();
  c.inputs = in.data();
  c.outputs = out.data();
  c.attributes = table.data();
  c.op = schema->op;
  c.node_name = call.type.c_str();
  c.device = "cpu:0";
  c.max_threads = 1;
  c.stage_count = static_cast<uint32_t>(stages.size());
  c.stages = stage_pointers.data();
  void* created = nullptr;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    if (!stages.empty() && (!kernel->kernel->accepts_epilogue || !kernel->kernel->accepts_epilogue(&c)))
      return {Code::unsupported, "kernel " + kernel->name + " does not accept this epilogue"};
    status = kernel->kernel->create(&c, &created);
  } catch (...) {
    create.error.text = "create threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, create.error);
  state = created;
  return {};
}

Status Runner::check_output_sizes() const {
  int64_t total = 0;
  for (const TensorType& type : output_types) {
    int64_t bytes = 0;
    const bool fits = type.dynamic || (checked_byte_size(type.dtype, type.shape, &bytes) && checked_add(total, bytes, &total));
    if (!fits || total > call.limit_bytes)
      return {Code::limit_exceeded, "the outputs would take more than " + human_bytes(call.limit_bytes),
              "use smaller shapes or raise the limit"};
  }
  return {};
}

Status Runner::prepare() {
  const bool dynamic = (kernel->kernel->flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS) != 0;
  HEDDLE_CHECK(check_output_sizes());
  output_views.reserve(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    const TensorType& type = output_types[i];
    if (type.dynamic && !dynamic)
      return {Code::unsupported, "output " + std::to_string(i) + " has no known extents before the operator ran"};
    std::byte* data = nullptr;
    output_blobs.push_back(type.dynamic ? nullptr : Blob::allocate(type.dtype, type.shape, &data));
    heddle_tensor view = tensor_view(type.dtype, type.shape, data);
    if (i < call.output_layouts.size()) view.layout = call.output_layouts[i];
    view.extent_axis = type.bounded_axis;
    if (type.bounded_axis >= 0) view.extent = &extents.emplace_back(type.shape[type.bounded_axis]);
    output_views.push_back(view);
    outputs.push_back(&output_views.back());
  }
  for (heddle_tensor& view : input_views)
    if (call.constant_inputs) view.flags |= HEDDLE_TENSOR_CONSTANT;
  prepared.struct_size = sizeof(prepared);
  prepared.input_count = static_cast<uint32_t>(inputs.size());
  prepared.output_count = static_cast<uint32_t>(outputs.size());
  prepared.max_threads = 1;
  prepared.tile_count = 1;
  if (!kernel->kernel->prepare) return {};
  // Only constants may be read in prepare.
  std::vector<heddle_tensor> blind(input_views);
  std::vector<const heddle_tensor*> blind_inputs;
  size_t next = 0;
  for (const heddle_tensor* input : inputs) {
    if (!input) {
      blind_inputs.push_back(nullptr);
      continue;
    }
    if (!call.constant_inputs) blind[next].data = nullptr;
    blind_inputs.push_back(&blind[next++]);
  }
  PrepareCall prepare;
  prepare.services = &packs;
  prepare.abi = prepared;
  prepare.abi.host = prepare_host();
  prepare.abi.inputs = blind_inputs.data();
  prepare.abi.outputs = outputs.data();
  prepare.abi.state = state;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = kernel->kernel->prepare(&prepare.abi);
  } catch (...) {
    prepare.error.text = "prepare threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, prepare.error);
  prepared = prepare.abi;
  return check_prepared(*kernel, prepared, call.limit_bytes);
}

Status Runner::run() {
  const AlignedBytes scratch(prepared.scratch_bytes), thread_scratch_bytes(prepared.thread_scratch_bytes);
  heddle_run_info info = {sizeof(info), 0, call.random_seed, call.step};
  RunCall run;
  run.thread_scratch = thread_scratch_bytes.data;
  run.dynamic_outputs.resize(outputs.size());
  run.outputs = outputs;
  run.limit_bytes = call.limit_bytes;
  heddle_run_context& c = run.abi;
  c.struct_size = sizeof(c);
  c.input_count = static_cast<uint32_t>(inputs.size());
  c.output_count = static_cast<uint32_t>(outputs.size());
  c.inputs = inputs.data();
  c.outputs = outputs.data();
  c.state = state;
  c.scratch = scratch.data;
  c.info = &info;
  c.host = run_host();
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (call.split_seed == 0) {
    if (prepared.tile_count > 0) ranges.emplace_back(0, prepared.tile_count);
  } else {
    std::mt19937_64 random(call.split_seed);
    for (int64_t begin = 0; begin < prepared.tile_count;) {
      const int64_t end = std::min<int64_t>(prepared.tile_count, begin + 1 + static_cast<int64_t>(random() % 3));
      ranges.emplace_back(begin, end);
      begin = end;
    }
    std::shuffle(ranges.begin(), ranges.end(), random);
  }
  heddle_status status = HEDDLE_OK;
  try {
    for (const auto& [begin, end] : ranges)
      if (status == HEDDLE_OK) status = kernel->kernel->run(&c, begin, end);
    if (status == HEDDLE_OK && kernel->kernel->finish) status = kernel->kernel->finish(&c);
  } catch (...) {
    status = HEDDLE_ERROR_INTERNAL;
    run.error.text = "the kernel threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, run.error);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (output_types[i].dynamic) {
      if (!run.dynamic_outputs[i]) return {Code::kernel_failed, "the kernel allocated no output " + std::to_string(i)};
      output_blobs[i] = run.dynamic_outputs[i];
      continue;
    }
    const heddle_tensor& view = output_views[i];
    if (!view.extent) continue;
    Shape shape = output_types[i].shape;
    if (*view.extent < 0 || *view.extent > shape[view.extent_axis])
      return {Code::kernel_failed,
              "the kernel wrote extent " + std::to_string(*view.extent) + ", the bound is " + std::to_string(shape[view.extent_axis])};
    shape[view.extent_axis] = *view.extent;
    output_blobs[i] = Blob::copy_of(output_types[i].dtype, shape, output_blobs[i]->data);
  }
  return {};
}

Result<std::vector<std::shared_ptr<const Blob>>> run_resolved(const RegistrySnapshot& registry, const OperatorCall& call) {
  Runner runner(registry, call);
  runner.schema = registry.find_operator(call.domain, call.type, call.version);
  const std::string shown = display_name(call.domain, call.type);
  if (!runner.schema)
    return Status(Code::unknown_operator, "no loaded plugin has operator " + quoted(shown),
                  suggestion(call.type, registry.operator_names(call.domain)));
  HEDDLE_CHECK(runner.infer());
  Status created;
  do {
    HEDDLE_CHECK(runner.select());
    if (!runner.kernel) break;
    created = runner.create();
  } while (created.code() == Code::unsupported);
  HEDDLE_CHECK(std::move(created));
  if (!runner.kernel) {
    if (!runner.schema->op->pointwise)
      return Status(Code::no_kernel, "operator " + quoted(shown) + " has no cpu kernel for these dtypes",
                    "insert a Cast, or load a plugin that has one");
    std::vector<bool> present;
    for (const auto& input : call.inputs) present.push_back(input != nullptr);
    HEDDLE_TRY(std::string program, pointwise_program(*runner.schema, call.attributes, present));
    OperatorCall lowered = call;
    lowered.domain = "heddle";
    lowered.type = "Pointwise";
    lowered.version = 0;
    lowered.attributes = {{"program", program}};
    return run_resolved(registry, lowered);
  }
  HEDDLE_CHECK(runner.prepare());
  HEDDLE_CHECK(runner.run());
  return std::vector<std::shared_ptr<const Blob>>(runner.output_blobs.begin(), runner.output_blobs.end());
}

Result<std::vector<std::shared_ptr<const Blob>>> run_in_memory(const RegistrySnapshot& registry, const OperatorCall& call) {
  try {
    return run_resolved(registry, call);
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "no memory for its outputs and scratch");
  }
}

}  // namespace

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const RegistrySnapshot& registry, const OperatorCall& call) {
  auto result = run_in_memory(registry, call);
  if (!result.ok()) return std::move(result).status().at(call.type, display_name(call.domain, call.type));
  return result;
}

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const Registry& registry, const OperatorCall& call) {
  return run_operator(*registry.snapshot(), call);
}

}  // namespace heddle
