// A host for tests of If, Loop and Scan alone: subnets are C++ functions on tensors, everything else goes through the ABI as it does in the
// runtime. Inference runs a subnet on zeros and takes the types of its results.
#pragma once

#include <cstring>
#include <deque>
#include <functional>

#include "guarded_memory.h"
#include "operators/pointwise_support.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"

namespace heddle::testing {

using SubnetFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct ControlCall {
  std::string type;
  std::vector<Tensor> inputs;                                      // null: absent
  std::vector<size_t> known;                                       // inputs whose content inference has
  std::vector<std::pair<std::string, SubnetFunction>> subnets;     // attributes
  std::vector<std::pair<std::string, std::vector<int64_t>>> ints;  // attributes; one entry for INT, any number for INTS
  size_t output_count = 1;
  std::vector<Tensor> run_with = {};  // inputs of the run, instead of `inputs`; same shapes
  std::optional<Guard> guard = {};    // planned outputs lie beside a page without access
};

struct ControlResult {
  std::string error;  // empty when it worked
  std::vector<Tensor> outputs;
  std::vector<heddle_type> types;
  size_t runs = 0;  // of subnets
};

class SubnetHost final : public heddle_call {
 public:
  explicit SubnetHost(const ControlCall& call) : call_(call) {}

  ControlResult run() {
    ControlResult result;
    schema_ = cpu_registry().snapshot()->find_operator("", call_.type);
    EXPECT_NE(schema_, nullptr);
    if (schema_) execute();
    result.error = error_;
    result.types = types_;
    result.runs = runs_;
    if (error_.empty()) result.outputs.assign(outputs_.begin(), outputs_.end());
    return result;
  }

 private:
  void set_error(heddle_status, std::string_view text) noexcept override { error_ = text; }
  void* allocate_output(uint32_t output, const int64_t* dims, int32_t rank) noexcept override {
    std::byte* data = nullptr;
    const Shape shape(dims, rank);
    outputs_[output] = Blob::allocate(static_cast<DType>(types_[output].dtype), shape, &data);
    return data;
  }
  static const SubnetFunction& function_of(const heddle_subnet* subnet) { return *reinterpret_cast<const SubnetFunction*>(subnet); }
  static Tensor blob_of(const heddle_tensor& view, bool zeros) {
    const Shape shape(view.dims, view.rank);
    if (zeros && !view.data) {
      std::byte* data = nullptr;
      return Blob::allocate(static_cast<DType>(view.dtype), shape, &data);
    }
    return Blob::copy_of(static_cast<DType>(view.dtype), shape, view.data);
  }

  heddle_status infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) noexcept override {
    std::vector<Tensor> values;
    for (const heddle_tensor* input : inputs) values.push_back(blob_of(*input, true));
    const std::vector<Tensor> results = function_of(subnet)(values);
    if (results.size() != outputs.size()) return error_ = "the subnet has another number of outputs", HEDDLE_ERROR_INVALID;
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i]->dtype = static_cast<heddle_dtype>(results[i]->dtype);
      outputs[i]->rank = results[i]->shape.rank();
      outputs[i]->bounded_axis = -1;
      std::copy(results[i]->shape.begin(), results[i]->shape.end(), outputs[i]->dims);
    }
    return HEDDLE_OK;
  }

  heddle_status move(uint32_t, void* destination, const void* source, uint64_t bytes) noexcept override {
    if (bytes > 0) std::memcpy(destination, source, bytes);
    return HEDDLE_OK;
  }
  heddle_status run_subnet(const heddle_subnet* subnet, uint64_t, Views inputs, std::span<heddle_tensor* const> outputs) noexcept override {
    ++runs_;
    std::vector<Tensor> values;
    for (const heddle_tensor* input : inputs) values.push_back(blob_of(*input, false));
    last_ = function_of(subnet)(values);
    if (last_.empty()) return error_ = "the subnet failed", HEDDLE_ERROR_INVALID;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) continue;
      const Blob& from = *last_[i];
      if (!outputs[i]->data) {
        *outputs[i] = tensor_view(from.dtype, from.shape, const_cast<std::byte*>(from.data));
        continue;
      }
      if (outputs[i]->byte_size != static_cast<uint64_t>(from.bytes)) return error_ = "an output does not fit", HEDDLE_ERROR_INVALID;
      std::memcpy(outputs[i]->data, from.data, static_cast<size_t>(from.bytes));
    }
    return HEDDLE_OK;
  }

  void make_attributes() {
    const heddle_operator& op = *schema_->op;
    pointers_.assign(op.attribute_count, nullptr);
    for (uint32_t i = 0; i < op.attribute_count; ++i) {
      const heddle_attribute_schema& declared = *op.attributes[i];
      pointers_[i] = declared.default_value;
      for (const auto& [name, function] : call_.subnets)
        if (name == declared.name) add_attribute(i).subnet = reinterpret_cast<const heddle_subnet*>(&function);
      for (const auto& [name, values] : call_.ints) {
        if (name != declared.name) continue;
        heddle_attribute& a = add_attribute(i);
        a.i = values.empty() ? 0 : values[0];
        a.ints = values.data();
        a.count = values.size();
      }
    }
  }
  heddle_attribute& add_attribute(uint32_t i) {
    heddle_attribute& a = attributes_.emplace_back();
    a = {};
    a.struct_size = sizeof(a);
    a.type = schema_->op->attributes[i]->type;
    a.name = schema_->op->attributes[i]->name;
    pointers_[i] = &a;
    return a;
  }

  void execute() {
    make_attributes();
    std::vector<DType> dtypes;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const Tensor& input = call_.inputs[i];
      const Tensor& later = call_.run_with.empty() ? input : call_.run_with[i];
      dtypes.push_back(input ? input->dtype : DType::none);
      blind_.push_back(input ? tensor_view(input->dtype, input->shape, const_cast<std::byte*>(input->data)) : heddle_tensor{});
      views_.push_back(later ? tensor_view(later->dtype, later->shape, const_cast<std::byte*>(later->data)) : heddle_tensor{});
      if (std::find(call_.known.begin(), call_.known.end(), i) == call_.known.end()) blind_.back().data = nullptr;
      input_pointers_.push_back(input ? &views_.back() : nullptr);
      blind_pointers_.push_back(input ? &blind_.back() : nullptr);
    }
    if (!infer()) return;
    std::vector<DType> results;
    for (const heddle_type& type : types_) results.push_back(static_cast<DType>(type.dtype));
    const auto snapshot = cpu_registry().snapshot();
    const KernelEntry* entry = snapshot->find_kernel(*schema_, "cpu", dtypes, results);
    ASSERT_NE(entry, nullptr);
    run_kernel(*entry->kernel);
  }

  bool infer() {
    types_.assign(call_.output_count, {});
    std::vector<heddle_type*> types;
    for (heddle_type& type : types_) {
      type.struct_size = sizeof(type);
      type.bounded_axis = -1;
      types.push_back(&type);
    }
    heddle_infer_context c = {};
    c.struct_size = sizeof(c);
    c.input_count = static_cast<uint32_t>(call_.inputs.size());
    c.output_count = static_cast<uint32_t>(call_.output_count);
    c.attribute_count = schema_->op->attribute_count;
    c.host = host_table();
    c.call = this;
    c.inputs = blind_pointers_.data();
    c.outputs = types.data();
    c.attributes = pointers_.data();
    c.op = schema_->op;
    return schema_->op->infer(&c) == HEDDLE_OK;
  }

  void run_kernel(const heddle_kernel& kernel) {
    heddle_create_context create = {};
    create.struct_size = sizeof(create);
    create.input_count = static_cast<uint32_t>(call_.inputs.size());
    create.output_count = static_cast<uint32_t>(call_.output_count);
    create.attribute_count = schema_->op->attribute_count;
    create.host = host_table();
    create.call = this;
    create.attributes = pointers_.data();
    create.op = schema_->op;
    void* state = nullptr;
    if (kernel.create(&create, &state) != HEDDLE_OK) return;
    make_outputs();
    heddle_prepare_context prepare = {};
    prepare.struct_size = sizeof(prepare);
    prepare.input_count = create.input_count;
    prepare.output_count = create.output_count;
    prepare.host = host_table();
    prepare.call = this;
    prepare.inputs = blind_pointers_.data();
    prepare.outputs = const_output_pointers_.data();
    prepare.state = state;
    prepare.tile_count = 1;
    heddle_status status = kernel.prepare ? kernel.prepare(&prepare) : HEDDLE_OK;
    std::byte* scratch = nullptr;
    const auto memory = Blob::allocate(DType::u8, Shape{static_cast<int64_t>(prepare.scratch_bytes)}, &scratch);
    std::byte* data_scratch = nullptr;
    const auto data_memory = Blob::allocate(DType::u8, Shape{static_cast<int64_t>(prepare.data_scratch_bytes)}, &data_scratch);
    const heddle_run_state run_state = {0, 0, 0};
    heddle_run_context run = {};
    run.struct_size = sizeof(run);
    run.input_count = create.input_count;
    run.output_count = create.output_count;
    run.inputs = input_pointers_.data();
    run.outputs = output_pointers_.data();
    run.state = state;
    run.scratch = scratch;
    run.data_scratch = data_scratch;
    run.run_state = &run_state;
    run.host = host_table();
    run.call = this;
    if (status == HEDDLE_OK) status = kernel.run(&run, 0, 1);
    EXPECT_EQ(status == HEDDLE_OK, error_.empty()) << error_;
    kernel.destroy(state);
    for (size_t i = 0; i < outputs_.size() && status == HEDDLE_OK && call_.guard; ++i)
      if (outputs_[i]) outputs_[i] = Blob::copy_of(outputs_[i]->dtype, outputs_[i]->shape, output_views_[i].data);
    for (size_t i = 0; i < outputs_.size() && status == HEDDLE_OK; ++i)
      if (types_[i].bounded_axis >= 0) {
        Shape shape = outputs_[i]->shape;
        shape[types_[i].bounded_axis] = extents_[i];
        outputs_[i] = Blob::copy_of(outputs_[i]->dtype, shape, outputs_[i]->data);
      }
  }

  void make_outputs() {
    outputs_.resize(types_.size());
    extents_.assign(types_.size(), 0);
    for (size_t i = 0; i < types_.size(); ++i) {
      const heddle_type& type = types_[i];
      std::byte* data = nullptr;
      if (!(type.flags & HEDDLE_TYPE_DYNAMIC))
        outputs_[i] = Blob::allocate(static_cast<DType>(type.dtype), Shape(type.dims, type.rank), &data);
      if (data && call_.guard) data = guarded_.emplace_back(static_cast<uint64_t>(outputs_[i]->bytes), *call_.guard).data();
      heddle_tensor& view = output_views_.emplace_back();
      view = {};
      view.struct_size = sizeof(view);
      view.dtype = type.dtype;
      view.rank = type.rank;
      view.dims = type.dims;
      view.data = data;
      view.element_count = outputs_[i] ? outputs_[i]->shape.element_count() : 0;
      view.byte_size = outputs_[i] ? static_cast<uint64_t>(outputs_[i]->bytes) : 0;
      view.extent_axis = type.bounded_axis;
      if (type.flags & HEDDLE_TYPE_DYNAMIC) view.flags |= HEDDLE_TENSOR_DYNAMIC;
      if (type.bounded_axis >= 0) view.extent = &extents_[i];
      output_pointers_.push_back(&view);
      const_output_pointers_.push_back(&view);
    }
  }

  const ControlCall& call_;
  const OperatorSchema* schema_ = nullptr;
  std::string error_;
  size_t runs_ = 0;
  std::deque<heddle_attribute> attributes_;
  std::vector<const heddle_attribute*> pointers_;
  std::deque<heddle_tensor> views_, blind_, output_views_;
  std::vector<const heddle_tensor*> input_pointers_, blind_pointers_, const_output_pointers_;
  std::vector<heddle_tensor*> output_pointers_;
  std::vector<heddle_type> types_;
  std::vector<std::shared_ptr<const Blob>> outputs_;
  std::vector<int64_t> extents_;
  std::deque<GuardedMemory> guarded_;
  std::vector<Tensor> last_;
};

inline ControlResult run_control(const ControlCall& call) {
  return SubnetHost(call).run();
}

}  // namespace heddle::testing
