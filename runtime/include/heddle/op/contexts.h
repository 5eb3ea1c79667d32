// The contexts that infer, create, prepare and run are called with. A context and its copies are valid during that call only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/dtypes.h"
#include "heddle/op/mistake.h"
#include "heddle/op/plugin_status.h"
#include "heddle/op/tensor_view.h"
#include "heddle/op/views.h"

namespace heddle {
namespace plugin {

// The context of shape inference for one node. Inputs have data only if their content is known (shape operands, constants).
class InferContext {
 public:
  explicit InferContext(const heddle_infer_context* c, detail::Mistakes* mistakes = nullptr)
      : attributes(c->op, c->attributes, c->attribute_count, mistakes), c_(c), mistakes_(mistakes) {}
  Attributes attributes;
  uint32_t input_count() const { return c_->input_count; }
  uint32_t output_count() const { return c_->output_count; }
  bool has_input(uint32_t i) const { return i < c_->input_count && c_->inputs[i]; }
  bool wants_output(uint32_t i) const { return i < c_->output_count && c_->outputs[i]; }
  // Returns all inputs; null entries are absent.
  const heddle_tensor* const* inputs() const { return c_->inputs; }
  const heddle_operator& op() const { return *c_->op; }
  // Returns input i. Reading an absent input is a mistake of the plugin (op/mistake.h) and becomes the node's error.
  const heddle_tensor& input(uint32_t i) const {
    if (has_input(i)) return *c_->inputs[i];
    detail::make_mistake(mistakes_, "infer reads input " + std::to_string(i) + ", which is absent");
    return detail::no_tensor();
  }
  Dims dims(uint32_t i) const { return {input(i).dims, input(i).rank}; }
  bool known(uint32_t i) const { return has_input(i) && (c_->inputs[i]->data || c_->inputs[i]->element_count == 0); }
  // Returns the content of an i32 or i64 input. Requires known(i); to read another input in this way is a mistake of the plugin.
  std::vector<int64_t> ints(uint32_t i) const {
    std::vector<int64_t> r;
    const heddle_tensor& t = input(i);
    const bool is_known = known(i);
    if (!is_known || (t.dtype != HEDDLE_I32 && t.dtype != HEDDLE_I64)) {
      const std::string which = "input " + std::to_string(i);
      detail::make_mistake(
          mistakes_, is_known ? "infer reads " + which + " as integers" : "infer reads the content of " + which + ", which is not known");
      r.assign(2 * HEDDLE_MAX_RANK, 0);
      return r;
    }
    for (int64_t k = 0; k < t.element_count; ++k)
      r.push_back(t.dtype == HEDDLE_I32 ? static_cast<const int32_t*>(t.data)[k] : static_cast<const int64_t*>(t.data)[k]);
    return r;
  }
  void set_dims(uint32_t output, const int64_t* dims, int rank) {
    if (!wants_output(output)) return;
    heddle_type* t = c_->outputs[output];
    t->rank = rank;
    for (int i = 0; i < rank && i < HEDDLE_MAX_RANK; ++i) t->dims[i] = dims[i];
  }
  void set_dims(uint32_t output, Dims dims) { set_dims(output, dims.data, dims.rank); }
  void set_dims(uint32_t output, const std::vector<int64_t>& dims) { set_dims(output, dims.data(), static_cast<int>(dims.size())); }
  void set_dtype(uint32_t output, heddle_dtype dtype) {
    if (wants_output(output)) c_->outputs[output]->dtype = dtype;
  }
  // Sets the whole type of an output, for example to the type of an output of a subnet.
  void set_type(uint32_t output, const heddle_type& type) {
    if (!wants_output(output)) return;
    heddle_type& t = *c_->outputs[output];
    t.dtype = type.dtype;
    t.bounded_axis = type.bounded_axis;
    t.flags = type.flags & HEDDLE_TYPE_DYNAMIC;
    set_dims(output, {type.dims, type.rank});
  }
  // Declares that the dim along `axis` is only an upper bound.
  void set_bounded(uint32_t output, int axis) {
    if (wants_output(output)) c_->outputs[output]->bounded_axis = axis;
  }
  // Declares that only the rank of the output is known before the operator has run.
  void set_dynamic(uint32_t output, int rank) {
    if (!wants_output(output)) return;
    heddle_type* t = c_->outputs[output];
    t->flags |= HEDDLE_TYPE_DYNAMIC;
    t->rank = rank;
    for (int i = 0; i < rank && i < HEDDLE_MAX_RANK; ++i) t->dims[i] = HEDDLE_DYNAMIC_DIM;
  }
  const heddle_infer_context* raw() const { return c_; }

 private:
  const heddle_infer_context* c_;
  detail::Mistakes* mistakes_;
};

// The context in which an operator declares what the inputs of its subnets are. The node's outputs have no types here and none can be set.
class SubnetContext : public InferContext {
 public:
  explicit SubnetContext(const heddle_infer_context* c, detail::Mistakes* mistakes = nullptr) : InferContext(c, mistakes) {}
  // Declares that runs of the node may run the subnet attribute `name` with inputs of these types: views, with data where the content is
  // the same in every run. A failing status has an empty text, because the error text is already set in the host.
  Status declare(const char* name, InputViews inputs) const {
    const heddle_status status = raw()->host->declare_subnet(raw()->call, attributes.subnet(name), inputs.data(), inputs.size());
    return status == HEDDLE_OK ? Status() : Status(status, "");  // the host knows why
  }
};

// The context in which an operator declares what one run of a node costs, from its shapes. Inputs have no data here.
class CostContext {
 public:
  CostContext(const heddle_infer_context* c, heddle_cost* cost, detail::Mistakes* mistakes = nullptr)
      : attributes(c->op, c->attributes, c->attribute_count, mistakes), c_(c), cost_(cost), mistakes_(mistakes) {}
  Attributes attributes;
  bool has_input(uint32_t i) const { return i < c_->input_count && c_->inputs[i]; }
  // Returns the dims of an input or output. Reading an absent one is a mistake of the plugin and becomes the node's error.
  Dims dims(uint32_t i) const {
    if (has_input(i)) return {c_->inputs[i]->dims, c_->inputs[i]->rank};
    return absent("input", i);
  }
  Dims output_dims(uint32_t i) const {
    if (i < c_->output_count && c_->outputs[i]) return {c_->outputs[i]->dims, c_->outputs[i]->rank};
    return absent("output", i);
  }
  double elements(uint32_t i) const { return elements_of(dims(i)); }
  double output_elements(uint32_t i) const { return elements_of(output_dims(i)); }
  // Sets the number of floating-point (or integer) operations; a multiplication followed by an addition counts as two.
  void set_flops(double flops) { cost_->flops = flops; }
  // Sets the number of bytes read and written. Default: every input and output once.
  void set_bytes(double bytes) { cost_->bytes = bytes; }

 private:
  static double elements_of(Dims d) {
    double n = 1;
    for (const int64_t dim : d) n *= static_cast<double>(dim);
    return n;
  }
  Dims absent(const char* what, uint32_t i) const {
    detail::make_mistake(mistakes_, std::string("cost reads ") + what + " " + std::to_string(i) + ", which is absent");
    return {detail::no_tensor().dims, 0};
  }
  const heddle_infer_context* c_;
  heddle_cost* cost_;
  detail::Mistakes* mistakes_;
};

class CreateContext {
 public:
  explicit CreateContext(const heddle_create_context* c, detail::Mistakes* mistakes = nullptr)
      : attributes(c->op, c->attributes, c->attribute_count, mistakes), c_(c) {}
  Attributes attributes;
  const heddle_type* input(uint32_t i) const { return i < c_->input_count ? c_->inputs[i] : nullptr; }
  const heddle_type* output(uint32_t i) const { return i < c_->output_count ? c_->outputs[i] : nullptr; }
  uint32_t input_count() const { return c_->input_count; }
  uint32_t output_count() const { return c_->output_count; }
  const heddle_operator& op() const { return *c_->op; }
  // Returns the index of the device that the node runs on: 1 for "cuda:1", 0 if the name has none.
  int device_index() const {
    int index = 0;
    for (const char* at = c_->device; *at; ++at) index = *at == ':' ? 0 : *at >= '0' && *at <= '9' ? 10 * index + (*at - '0') : 0;
    return index;
  }
  // Returns the largest number of executing threads of a run, for pools made in advance. Results must not depend on it.
  uint32_t max_threads() const { return c_->max_threads; }
  // The ops of the epilogue fused into this node, in the order in which they apply.
  uint32_t epilogue_op_count() const { return c_->epilogue_op_count; }
  const heddle_epilogue_op& epilogue_op(uint32_t i) const { return *c_->epilogue_ops[i]; }
  const heddle_create_context* raw() const { return c_; }

 private:
  const heddle_create_context* c_;
};

class PrepareContext {
 public:
  explicit PrepareContext(heddle_prepare_context* c) : c_(c) {}
  const heddle_tensor* input(uint32_t i) const { return i < c_->input_count ? c_->inputs[i] : nullptr; }
  const heddle_tensor* output(uint32_t i) const { return i < c_->output_count ? c_->outputs[i] : nullptr; }
  uint32_t input_count() const { return c_->input_count; }
  uint32_t output_count() const { return c_->output_count; }
  // Returns all inputs; null entries are absent.
  const heddle_tensor* const* inputs() const { return c_->inputs; }
  // True if input `i` is absent, or has the same content in every run of the session and that content is readable here.
  bool is_constant(uint32_t i) const {
    const heddle_tensor* t = input(i);
    return !t || ((t->flags & HEDDLE_TENSOR_CONSTANT) && (t->data || t->element_count == 0));
  }
  // Returns the bytes of constant input `i` in host memory, row-major, even if the step works on a device; null if it is not a constant.
  const void* host_data(uint32_t i) const { return i < c_->input_count ? c_->host_data[i] : nullptr; }
  // Returns the most bytes that the step's scratch may have. A kernel without an algorithm within this limit returns unsupported().
  uint64_t scratch_budget() const { return c_->scratch_budget; }
  // For a step on a device: declares the inputs, by number, that run() reads on the host. Default: all inputs that are in host memory, such
  // as those declared on_host().
  void reads_on_host(std::initializer_list<uint32_t> inputs) {
    c_->reads_host = 0;
    for (const uint32_t i : inputs) c_->reads_host |= uint64_t{1} << (i < 63 ? i : 63);
  }
  // For a kernel with run_group: returns the number of parts of the step's group, and which of them the step is; 0 on "cpu".
  uint32_t group_size() const { return c_->group_size; }
  uint32_t group_index() const { return c_->group_index; }
  // Likewise: returns the rank of this process in the node's communicator, and how many there are; 0 on "cpu".
  uint32_t rank() const { return c_->rank; }
  uint32_t rank_count() const { return c_->rank_count; }
  void set_tiles(int64_t n) { c_->tile_count = n; }
  int64_t tiles() const { return c_->tile_count; }
  void set_scratch(uint64_t step_bytes, uint64_t thread_bytes = 0) {
    c_->scratch_bytes = step_bytes;
    c_->thread_scratch_bytes = thread_bytes;
  }
  // For a kernel with HEDDLE_KERNEL_MOVES_ONLY: requests scratch in the memory of the node's device, where the node's values are. run()
  // finds it in RunContext::data_scratch.
  void set_data_scratch(uint64_t bytes) { c_->data_scratch_bytes = bytes; }
  void set_cost_ns(double ns) { c_->cost_ns = ns; }
  // Returns the packed form of constant input `i`, or null on failure. fill(void* destination) writes the packed form; it is called once
  // for each distinct pair of content and key.
  template <class Fill>
  const void* prepack(uint32_t i, const std::string& key, uint64_t bytes, Fill fill) {
    return c_->host->prepack(
        c_->call, i, key.c_str(), bytes,
        [](void* user, void* destination) -> heddle_status {
#if HEDDLE_PLUGIN_EXCEPTIONS
          try {
            (*static_cast<Fill*>(user))(destination);
          } catch (...) {
            return HEDDLE_ERROR_INTERNAL;
          }
#else
          (*static_cast<Fill*>(user))(destination);
#endif
          return HEDDLE_OK;
        },
        &fill);
  }
  heddle_prepare_context* raw() const {
    return c_;
  }

 private:
  heddle_prepare_context* c_;
};

// Run functions see the ABI's own struct: inputs[], outputs[], scratch, stream, run_state, host, call.
using RunContext = heddle_run_context;

// The parts of a group (HEDDLE_KERNEL_GROUP): one for each device of the communicator in this process.
class RunGroup {
 public:
  RunGroup(const heddle_run_context* const* parts, uint32_t count) : parts_(parts), count_(count) {}
  uint32_t size() const { return count_; }
  const RunContext& operator[](uint32_t part) const { return *parts_[part]; }
  // Returns all parts; the array has size() elements.
  const RunContext* const* parts() const { return parts_; }

 private:
  const heddle_run_context* const* parts_;
  uint32_t count_;
};

namespace detail {

template <class T, class = void>
struct has_dtype : std::false_type {};
template <class T>
struct has_dtype<T, std::void_t<decltype(dtype_of<T>::id)>> : std::true_type {};

// True if a kernel may access elements of dtype `is` as T: T is the type of that dtype, or an unsigned integer type of the same width (to
// read bits), or void or another type without a dtype.
template <class T>
inline bool is_element(heddle_dtype is) {
  if constexpr (has_dtype<T>::value)
    return is == dtype_of<T>::id || (std::is_unsigned<T>::value && !std::is_same<T, bool>::value && byte_width(is) == sizeof(T));
  else
    return true;
}

// Fails the step because the kernel's element type does not match the dtype of its port.
inline void refuse_elements([[maybe_unused]] const RunContext& c, const char* takes, uint32_t port, heddle_dtype is, heddle_dtype as) {
  const std::string text = std::string("the port takes ") + dtype_name(is) + ", the kernel " + takes + " " + std::to_string(port) + " as " +
                           dtype_name(as) +
                           ": say which dtypes it takes, at the port or after its class, as in .cpu<Kernel>({dtypes<...>()})";
#if HEDDLE_PLUGIN_EXCEPTIONS
  throw std::logic_error(text);
#else
  if (!failed_within) c.host->set_error(c.call, HEDDLE_ERROR_INTERNAL, text.data(), text.size());  // later errors follow from the first
  failed_within = true;
#endif
}

}  // namespace detail

// Returns a view of input or output `i`; if that is absent, the view's `tensor` is null. If the elements may not be accessed as T
// (detail::is_element), the step fails with a message that names both types: this function throws, or, without exceptions, returns an empty
// view, and the step fails when the kernel returns.
template <class T>
inline In<T> input(const RunContext& c, uint32_t i) {
  const heddle_tensor* t = i < c.input_count ? c.inputs[i] : nullptr;
  if (!t) return {};
  if constexpr (detail::has_dtype<T>::value)
    if (!detail::is_element<T>(t->dtype)) return detail::refuse_elements(c, "reads input", i, t->dtype, dtype_of<T>::id), In<T>();
  return {static_cast<const T*>(t->data), t->element_count, {t->dims, t->rank}, t};
}
template <class T>
inline Out<T> output(const RunContext& c, uint32_t i) {
  heddle_tensor* t = i < c.output_count ? c.outputs[i] : nullptr;
  if (!t) return {};
  if constexpr (detail::has_dtype<T>::value)
    if (!detail::is_element<T>(t->dtype)) return detail::refuse_elements(c, "writes output", i, t->dtype, dtype_of<T>::id), Out<T>();
  return {static_cast<T*>(t->data), t->element_count, {t->dims, t->rank}, t};
}

// Returns an input that the kernel reads with host code, whatever device the node is on. The input must be declared on_host() or be a shape
// operand. Fails if the input is in device memory, where reading it would fault or, with unified memory, could see another run's value.
template <class T>
inline Status host_input(const RunContext& c, uint32_t i, In<T>* view) {
  *view = input<T>(c, i);
  if (!view->tensor || view->tensor->space == HEDDLE_SPACE_HOST) return {};
  return {HEDDLE_ERROR_INTERNAL,
          "the kernel reads input " + std::to_string(i) + " itself, which lies in device memory: declare it on_host()"};
}
#if HEDDLE_PLUGIN_EXCEPTIONS
// Like host_input() above, but throws on failure, which becomes the step's error.
template <class T>
inline In<T> host_input(const RunContext& c, uint32_t i) {
  In<T> view;
  const Status status = host_input(c, i, &view);
  if (!status.ok()) throw std::logic_error(status.text);
  return view;
}
#endif

// For a kernel with HEDDLE_KERNEL_MOVES_ONLY: copies bytes between the node's values and data_scratch, in the memory of the node's device
// (heddle_host::move).
inline Status move(const RunContext& c, void* destination, const void* source, uint64_t bytes) {
  return {c.host->move(c.call, 0, destination, source, bytes), {}};
}
// Like move(), but copies a value of at most 64 bytes from the kernel's own memory.
template <class T>
inline Status move_value(const RunContext& c, T* destination, const T& value) {
  static_assert(sizeof(T) <= 64, "larger ones lie in data_scratch");
  return {c.host->move(c.call, HEDDLE_MOVE_VALUE, destination, &value, sizeof(T)), {}};
}

// Return the memory that prepare requested with set_scratch, 64-byte aligned. step_scratch belongs to this step in this run and is shared
// by its tiles; thread_scratch belongs to the executing thread and has undefined content at entry.
template <class T>
inline T* step_scratch(const RunContext& c) {
  return static_cast<T*>(c.scratch);
}
template <class T>
inline T* thread_scratch(const RunContext& c) {
  return static_cast<T*>(c.host->thread_scratch(c.call));
}
// True if the run was cancelled or its deadline has passed: a long kernel then returns cancelled(). Costs one call of the host.
inline bool is_cancelled(const RunContext& c) {
  return c.host->cancelled(c.call) != 0;
}
// For a kernel that allocates its outputs (HEDDLE_KERNEL_DYNAMIC_OUTPUTS): returns memory for output `i` with its true extents `dims`. The
// host owns it. Null if there is no memory, or if the output is empty.
inline void* allocate_output(const RunContext& c, uint32_t i, Dims dims) {
  return c.host->allocate_output(c.call, i, dims.data, dims.rank);
}

namespace detail {

// Refuses inputs and outputs in device memory, because kernels for "cpu" can access host memory only. Called once, in prepare.
inline Status check_host_memory(const heddle_prepare_context& c) {
  const auto elsewhere = [](const heddle_tensor* const* tensors, uint32_t count) {
    uint32_t i = 0;
    while (i < count && !(tensors[i] && tensors[i]->space != HEDDLE_SPACE_HOST)) ++i;
    return i;
  };
  const uint32_t in = elsewhere(c.inputs, c.input_count), out = elsewhere(c.outputs, c.output_count);
  if (in == c.input_count && out == c.output_count) return {};
  return invalid("a kernel for \"cpu\" is given " + (in < c.input_count ? "input " + std::to_string(in) : "output " + std::to_string(out)) +
                 " in device memory, which it can not touch");
}

}  // namespace detail

}  // namespace plugin
}  // namespace heddle
