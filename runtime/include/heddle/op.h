// Everything an operator author needs: declare an operator, write plain functions, list them in HEDDLE_PLUGIN.
//
//   static Status relu(In<float> x, Out<float> y) {
//     for (int64_t i = 0; i < x.size; ++i) y[i] = std::max(x[i], 0.0f);
//     return {};
//   }
//   HEDDLE_PLUGIN("mine", "1.0", plugin) {
//     plugin.add(Op("Relu", "mine").in("x").out("y", same_as("x")).in_place("y", "x")
//                    .gradient("ReluGrad", {"y", "dy"}, {"dx"}).cpu<relu>().elementwise());
//   }
//
// Arity and dtype checks come from the functions' signatures. C++17, header-only, links to nothing; also under nvcc. Exceptions
// thrown inside a function become error texts at the boundary.
#pragma once

#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// ---------------------------------------------------------------- status

// Ok, or a code and a sentence. Allocates only on failure.
struct [[nodiscard]] Status {
  heddle_status code = HEDDLE_OK;
  std::string text;
  Status() = default;
  Status(heddle_status c, std::string message) : code(c), text(std::move(message)) {}
  bool ok() const { return code == HEDDLE_OK; }
};
inline Status invalid(std::string text) {
  return {HEDDLE_ERROR_INVALID, std::move(text)};
}
inline Status unsupported(std::string text) {
  return {HEDDLE_ERROR_UNSUPPORTED, std::move(text)};
}

// ---------------------------------------------------------------- dtypes

// 16-bit floats as storage; arithmetic goes through float.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};
template <class T>
struct dtype_of;
#define HEDDLE_DTYPE_OF_(type, value)         \
  template <>                                 \
  struct dtype_of<type> {                     \
    static constexpr heddle_dtype id = value; \
  };
HEDDLE_DTYPE_OF_(f16, HEDDLE_F16)
HEDDLE_DTYPE_OF_(bf16, HEDDLE_BF16)
HEDDLE_DTYPE_OF_(float, HEDDLE_F32)
HEDDLE_DTYPE_OF_(double, HEDDLE_F64)
HEDDLE_DTYPE_OF_(int8_t, HEDDLE_I8)
HEDDLE_DTYPE_OF_(int16_t, HEDDLE_I16)
HEDDLE_DTYPE_OF_(int32_t, HEDDLE_I32)
HEDDLE_DTYPE_OF_(int64_t, HEDDLE_I64)
HEDDLE_DTYPE_OF_(uint8_t, HEDDLE_U8)
HEDDLE_DTYPE_OF_(uint16_t, HEDDLE_U16)
HEDDLE_DTYPE_OF_(uint32_t, HEDDLE_U32)
HEDDLE_DTYPE_OF_(uint64_t, HEDDLE_U64)
HEDDLE_DTYPE_OF_(bool, HEDDLE_BOOL)
#undef HEDDLE_DTYPE_OF_

template <class... T>
constexpr heddle_dtype_set dtypes() {
  return (HEDDLE_DTYPE_BIT(dtype_of<T>::id) | ... | 0u);
}
constexpr heddle_dtype_set any_dtype = ((1u << HEDDLE_DTYPE_COUNT) - 1u) & ~1u;
constexpr heddle_dtype_set float_dtypes = dtypes<f16, bf16, float, double>();
constexpr heddle_dtype_set signed_dtypes = float_dtypes | dtypes<int8_t, int16_t, int32_t, int64_t>();
constexpr heddle_dtype_set integer_dtypes = dtypes<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>();
constexpr heddle_dtype_set numeric_dtypes = float_dtypes | integer_dtypes;
constexpr heddle_dtype_set index_dtypes = dtypes<int32_t, int64_t>();
inline size_t byte_width(heddle_dtype d) {
  switch (d) {
    case HEDDLE_I8:
    case HEDDLE_U8:
    case HEDDLE_BOOL:
      return 1;
    case HEDDLE_F16:
    case HEDDLE_BF16:
    case HEDDLE_I16:
    case HEDDLE_U16:
      return 2;
    case HEDDLE_F32:
    case HEDDLE_I32:
    case HEDDLE_U32:
      return 4;
    case HEDDLE_F64:
    case HEDDLE_I64:
    case HEDDLE_U64:
      return 8;
    default:
      return 0;
  }
}

// ---------------------------------------------------------------- views

// The extents of a tensor; borrowed.
struct Dims {
  const int64_t* data = nullptr;
  int rank = 0;
  int64_t operator[](int i) const { return data[i < 0 ? i + rank : i]; }
  const int64_t* begin() const { return data; }
  const int64_t* end() const { return data + rank; }
  int64_t count(int first, int last) const {
    int64_t n = 1;
    for (int i = first; i < last; ++i) n *= data[i];
    return n;
  }
};

// A required input; `In<void>` takes any dtype.
template <class T>
struct In {
  using element = T;
  const T* data = nullptr;
  int64_t size = 0;
  Dims dims;
  const heddle_tensor* tensor = nullptr;
  const T& operator[](int64_t i) const { return data[i]; }
};
// An input that may be absent: test with `if (x)`.
template <class T>
struct OptionalIn : In<T> {
  explicit operator bool() const { return this->tensor != nullptr; }
};
// The values of a variadic last port.
template <class T>
struct Ins {
  using element = T;
  const heddle_tensor* const* tensors = nullptr;
  uint32_t count = 0;
  In<T> operator[](uint32_t i) const {
    const heddle_tensor* t = tensors[i];
    return {static_cast<const T*>(t->data), t->element_count, {t->dims, t->rank}, t};
  }
};
template <class T>
struct Out {
  using element = T;
  T* data = nullptr;
  int64_t size = 0;
  Dims dims;
  heddle_tensor* tensor = nullptr;
  T& operator[](int64_t i) const { return data[i]; }
};
template <class T>
struct Outs {
  using element = T;
  heddle_tensor* const* tensors = nullptr;
  uint32_t count = 0;
  Out<T> operator[](uint32_t i) const {
    heddle_tensor* t = tensors[i];
    return {static_cast<T*>(t->data), t->element_count, {t->dims, t->rank}, t};
  }
};

// ---------------------------------------------------------------- attributes

// The checked attributes of one node, by name. Look them up in create, never in run.
class Attributes {
 public:
  Attributes(const heddle_operator* op, const heddle_attribute* const* values, uint32_t count) : op_(op), values_(values), count_(count) {}
  const heddle_attribute* find(const char* name) const {
    for (uint32_t i = 0; i < count_ && i < op_->attribute_count; ++i)
      if (std::strcmp(op_->attributes[i]->name, name) == 0) return values_[i];
    return nullptr;
  }
  bool has(const char* name) const { return find(name) != nullptr; }
  int64_t i(const char* name, int64_t otherwise = 0) const {
    const heddle_attribute* a = find(name);
    return a ? a->i : otherwise;
  }
  double f(const char* name, double otherwise = 0) const {
    const heddle_attribute* a = find(name);
    return a ? a->f : otherwise;
  }
  std::string s(const char* name, const char* otherwise = "") const {
    const heddle_attribute* a = find(name);
    return a && a->s ? std::string(a->s, a->count) : std::string(otherwise);
  }
  std::vector<int64_t> ints(const char* name) const {
    const heddle_attribute* a = find(name);
    return a ? std::vector<int64_t>(a->ints, a->ints + a->count) : std::vector<int64_t>();
  }
  std::vector<double> floats(const char* name) const {
    const heddle_attribute* a = find(name);
    return a ? std::vector<double>(a->floats, a->floats + a->count) : std::vector<double>();
  }
  const heddle_tensor* tensor(const char* name) const {
    const heddle_attribute* a = find(name);
    return a ? a->tensor : nullptr;
  }
  const heddle_subnet* subnet(const char* name) const {
    const heddle_attribute* a = find(name);
    return a ? a->subnet : nullptr;
  }

 private:
  const heddle_operator* op_;
  const heddle_attribute* const* values_;
  uint32_t count_;
};

// ---------------------------------------------------------------- contexts

// Shape inference of one node. Inputs carry data only when their content is known (shape operands, constants).
class InferContext {
 public:
  explicit InferContext(const heddle_infer_context* c) : attributes(c->op, c->attributes, c->attribute_count), c_(c) {}
  Attributes attributes;
  uint32_t input_count() const { return c_->input_count; }
  uint32_t output_count() const { return c_->output_count; }
  bool has_input(uint32_t i) const { return i < c_->input_count && c_->inputs[i]; }
  bool wants_output(uint32_t i) const { return i < c_->output_count && c_->outputs[i]; }
  const heddle_tensor& input(uint32_t i) const { return *c_->inputs[i]; }
  Dims dims(uint32_t i) const { return {c_->inputs[i]->dims, c_->inputs[i]->rank}; }
  bool known(uint32_t i) const { return has_input(i) && (c_->inputs[i]->data || c_->inputs[i]->element_count == 0); }
  // Content of an i32 or i64 input whose content is known.
  std::vector<int64_t> ints(uint32_t i) const {
    std::vector<int64_t> r;
    const heddle_tensor& t = input(i);
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
  // The dim along `axis` is only an upper bound.
  void set_bounded(uint32_t output, int axis) {
    if (wants_output(output)) c_->outputs[output]->bounded_axis = axis;
  }
  // Nothing but the rank is known before the operator ran.
  void set_dynamic(uint32_t output, int rank) {
    if (!wants_output(output)) return;
    heddle_type* t = c_->outputs[output];
    t->flags |= HEDDLE_TYPE_DYNAMIC;
    t->rank = rank;
    for (int i = 0; i < rank; ++i) t->dims[i] = HEDDLE_DYNAMIC_DIM;
  }
  const heddle_infer_context* raw() const { return c_; }

 private:
  const heddle_infer_context* c_;
};

class CreateContext {
 public:
  explicit CreateContext(const heddle_create_context* c) : attributes(c->op, c->attributes, c->attribute_count), c_(c) {}
  Attributes attributes;
  const heddle_type* input(uint32_t i) const { return i < c_->input_count ? c_->inputs[i] : nullptr; }
  const heddle_type* output(uint32_t i) const { return i < c_->output_count ? c_->outputs[i] : nullptr; }
  void* resource(const char* name) const { return c_->host->resource(c_, name); }
  const heddle_create_context* raw() const { return c_; }

 private:
  const heddle_create_context* c_;
};

class PrepareContext {
 public:
  explicit PrepareContext(heddle_prepare_context* c) : c_(c) {}
  const heddle_tensor* input(uint32_t i) const { return i < c_->input_count ? c_->inputs[i] : nullptr; }
  const heddle_tensor* output(uint32_t i) const { return i < c_->output_count ? c_->outputs[i] : nullptr; }
  uint32_t max_threads() const { return c_->max_threads; }
  void set_tiles(int64_t n) { c_->tile_count = n; }
  void set_scratch(uint64_t step_bytes, uint64_t thread_bytes = 0) {
    c_->scratch_bytes = step_bytes;
    c_->thread_scratch_bytes = thread_bytes;
  }
  void set_cost_ns(double ns) { c_->cost_ns = ns; }
  // Packed form of constant input `i`; `fill(void* destination)` writes it once per distinct content and key.
  template <class Fill>
  const void* prepack(uint32_t i, const std::string& key, uint64_t bytes, Fill fill) {
    return c_->host->prepack(
        c_, i, key.c_str(), bytes,
        [](void* user, void* destination) -> heddle_status {
          try {
            (*static_cast<Fill*>(user))(destination);
            return HEDDLE_OK;
          } catch (...) {
            return HEDDLE_ERROR_INTERNAL;
          }
        },
        &fill);
  }
  heddle_prepare_context* raw() const { return c_; }

 private:
  heddle_prepare_context* c_;
};

// The ABI's own struct is what run functions see: inputs[], outputs[], scratch, stream, info, host.
using RunContext = heddle_run_context;
template <class T>
inline In<T> input(const RunContext& c, uint32_t i) {
  const heddle_tensor* t = i < c.input_count ? c.inputs[i] : nullptr;
  if (!t) return {};
  return {static_cast<const T*>(t->data), t->element_count, {t->dims, t->rank}, t};
}
template <class T>
inline Out<T> output(const RunContext& c, uint32_t i) {
  heddle_tensor* t = i < c.output_count ? c.outputs[i] : nullptr;
  if (!t) return {};
  return {static_cast<T*>(t->data), t->element_count, {t->dims, t->rank}, t};
}
inline Status cancelled() {
  return {HEDDLE_ERROR_CANCELLED, "cancelled"};
}

namespace detail {

inline heddle_status report(const heddle_host* host, const void* context, const Status& status) {
  if (!status.ok()) host->set_error(context, status.code, status.text.data(), status.text.size());
  return status.code;
}

// Runs `body`, turns what it throws into a status. The only place where an exception can meet the boundary.
template <class Body>
heddle_status guard(const heddle_host* host, const void* context, Body&& body) noexcept {
  try {
    try {
      return report(host, context, body());
    } catch (const std::bad_alloc&) {
      host->set_error(context, HEDDLE_ERROR_OUT_OF_MEMORY, "out of memory", 13);
      return HEDDLE_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      return report(host, context, {HEDDLE_ERROR_INTERNAL, std::string("exception: ") + e.what()});
    }
  } catch (...) {
    const char text[] = "exception of unknown type";
    host->set_error(context, HEDDLE_ERROR_INTERNAL, text, sizeof(text) - 1);
    return HEDDLE_ERROR_INTERNAL;
  }
}

// What a parameter of a kernel function stands for.
enum class Role { input, optional_input, inputs, output, outputs, state, context };
template <class P>
struct Parameter {
  static constexpr Role role = Role::state;  // anything constructible from Attributes
  using type = std::remove_cv_t<std::remove_reference_t<P>>;
};
template <class T>
struct Parameter<In<T>> {
  static constexpr Role role = Role::input;
};
template <class T>
struct Parameter<OptionalIn<T>> {
  static constexpr Role role = Role::optional_input;
};
template <class T>
struct Parameter<Ins<T>> {
  static constexpr Role role = Role::inputs;
};
template <class T>
struct Parameter<Out<T>> {
  static constexpr Role role = Role::output;
};
template <class T>
struct Parameter<Outs<T>> {
  static constexpr Role role = Role::outputs;
};
template <>
struct Parameter<const RunContext&> {
  static constexpr Role role = Role::context;
};
constexpr bool is_input(Role r) {
  return r == Role::input || r == Role::optional_input || r == Role::inputs;
}
constexpr bool is_output(Role r) {
  return r == Role::output || r == Role::outputs;
}

template <class T>
constexpr heddle_dtype_set set_of() {
  if constexpr (std::is_void_v<T>)
    return any_dtype;
  else
    return dtypes<T>();
}

template <auto F>
struct Function;
template <class... P, Status (*F)(P...)>
struct Function<F> {
  static constexpr size_t count = sizeof...(P);
  static constexpr Role roles[count + 1] = {Parameter<P>::role..., Role::context};
  static constexpr uint32_t port(size_t position, bool inputs) {
    uint32_t n = 0;
    for (size_t i = 0; i < position; ++i) n += inputs ? is_input(roles[i]) : is_output(roles[i]);
    return n;
  }
  template <size_t I>
  using P_ = std::tuple_element_t<I, std::tuple<P...>>;
  static constexpr int state_position() {
    for (size_t i = 0; i < count; ++i)
      if (roles[i] == Role::state) return static_cast<int>(i);
    return -1;
  }
  static constexpr bool has_state = state_position() >= 0;
  struct Nothing {};
  template <int Position, class = void>
  struct StateAt {
    using type = Nothing;
  };
  template <int Position>
  struct StateAt<Position, std::enable_if_t<(Position >= 0)>> {
    using type = typename Parameter<P_<static_cast<size_t>(Position)>>::type;
  };
  using State = typename StateAt<state_position()>::type;
  // Slices [first, first + n) of elements; n < 0: everything.
  template <size_t I>
  static decltype(auto) argument(const RunContext& c, int64_t first, int64_t n) {
    using A = P_<I>;
    constexpr Role role = roles[I];
    if constexpr (role == Role::context) {
      return (c);
    } else if constexpr (role == Role::state) {
      return *static_cast<const typename Parameter<A>::type*>(c.state);
    } else if constexpr (role == Role::inputs) {
      constexpr uint32_t p = port(I, true);
      return A{c.inputs + p, c.input_count - p};
    } else if constexpr (role == Role::outputs) {
      constexpr uint32_t p = port(I, false);
      return A{c.outputs + p, c.output_count - p};
    } else if constexpr (role == Role::output) {
      A a = output<typename A::element>(c, port(I, false));
      if (n >= 0 && a.tensor) a.data += first, a.size = n;
      return a;
    } else {
      A a;
      static_cast<In<typename A::element>&>(a) = input<typename A::element>(c, port(I, true));
      if constexpr (!std::is_void_v<typename A::element>)
        if (n >= 0 && a.tensor) a.data += first, a.size = n;
      return a;
    }
  }
  template <size_t... I>
  static Status call(const RunContext& c, int64_t first, int64_t n, std::index_sequence<I...>) {
    return F(argument<I>(c, first, n)...);
  }
  static heddle_status run(const heddle_run_context* c, int64_t, int64_t) {
    return guard(c->host, c, [&] { return call(*c, 0, -1, std::index_sequence_for<P...>()); });
  }
  static constexpr int64_t slice = 16384;  // elements of one elementwise tile
  static heddle_status run_elementwise(const heddle_run_context* c, int64_t begin, int64_t end) {
    return guard(c->host, c, [&] {
      const int64_t size = c->outputs[0]->element_count;
      const int64_t last = end * slice < size ? end * slice : size;
      return call(*c, begin * slice, last - begin * slice, std::index_sequence_for<P...>());
    });
  }
  static heddle_status prepare_elementwise(heddle_prepare_context* c) {
    c->tile_count = (c->outputs[0]->element_count + slice - 1) / slice;
    return HEDDLE_OK;
  }
  static heddle_status create(const heddle_create_context* c, void** state) {
    return guard(c->host, c, [&]() -> Status {
      if constexpr (has_state) {
        *state = new State(Attributes(c->op, c->attributes, c->attribute_count));
      }
      return {};
    });
  }
  static void destroy(void* state) { delete static_cast<State*>(state); }
  template <size_t I>
  static void append(std::vector<heddle_dtype_set>& inputs, std::vector<heddle_dtype_set>& outputs) {
    constexpr Role role = roles[I];
    if constexpr (is_input(role)) inputs.push_back(set_of<typename P_<I>::element>());
    if constexpr (is_output(role)) outputs.push_back(set_of<typename P_<I>::element>());
  }
  template <size_t... I>
  static void sets(std::vector<heddle_dtype_set>& inputs, std::vector<heddle_dtype_set>& outputs, std::index_sequence<I...>) {
    (append<I>(inputs, outputs), ...);
  }
};

// Which stages a kernel class has.
template <class K, class = void>
struct has_create : std::false_type {};
template <class K>
struct has_create<K, std::void_t<decltype(std::declval<K&>().create(std::declval<const CreateContext&>()))>> : std::true_type {};
template <class K, class = void>
struct has_prepare : std::false_type {};
template <class K>
struct has_prepare<K, std::void_t<decltype(std::declval<K&>().prepare(std::declval<PrepareContext&>()))>> : std::true_type {};
template <class K, class = void>
struct has_finish : std::false_type {};
template <class K>
struct has_finish<K, std::void_t<decltype(std::declval<const K&>().finish(std::declval<const RunContext&>()))>> : std::true_type {};
template <class K, class = void>
struct has_formats : std::false_type {};
template <class K>
struct has_formats<K, std::void_t<decltype(K::formats(std::declval<const CreateContext&>()))>> : std::true_type {};
template <class K, class = void>
struct has_epilogue : std::false_type {};
template <class K>
struct has_epilogue<K, std::void_t<decltype(K::accepts_epilogue(std::declval<const CreateContext&>()))>> : std::true_type {};

template <class K>
struct ClassKernel {
  static heddle_status create(const heddle_create_context* c, void** state) {
    return guard(c->host, c, [&]() -> Status {
      K* kernel = new K();
      *state = kernel;
      if constexpr (has_create<K>::value) {
        Status s = kernel->create(CreateContext(c));
        if (!s.ok()) {
          delete kernel;
          *state = nullptr;
        }
        return s;
      } else {
        return {};
      }
    });
  }
  static heddle_status prepare(heddle_prepare_context* c) {
    return guard(c->host, c, [&]() -> Status {
      if constexpr (has_prepare<K>::value) {
        PrepareContext context(c);
        return static_cast<K*>(c->state)->prepare(context);
      } else {
        return {};
      }
    });
  }
  static heddle_status run(const heddle_run_context* c, int64_t begin, int64_t end) {
    return guard(c->host, c, [&]() -> Status { return static_cast<const K*>(c->state)->run(*c, begin, end); });
  }
  static heddle_status finish(const heddle_run_context* c) {
    return guard(c->host, c, [&]() -> Status {
      if constexpr (has_finish<K>::value)
        return static_cast<const K*>(c->state)->finish(*c);
      else
        return {};
    });
  }
  static void destroy(void* state) { delete static_cast<K*>(state); }
  static uint32_t formats(const heddle_create_context* c, heddle_format* choices, uint32_t capacity) {
    uint32_t n = 0;
    if constexpr (has_formats<K>::value) {
      guard(c->host, c, [&]() -> Status {
        for (const heddle_format& f : K::formats(CreateContext(c)))
          if (n < capacity) choices[n++] = f;
        return {};
      });
    }
    return n;
  }
  static int32_t accepts_epilogue(const heddle_create_context* c) {
    int32_t yes = 0;
    if constexpr (has_epilogue<K>::value) {
      guard(c->host, c, [&]() -> Status {
        yes = K::accepts_epilogue(CreateContext(c)) ? 1 : 0;
        return {};
      });
    }
    return yes;
  }
};

}  // namespace detail

// ---------------------------------------------------------------- declaring operators

// Shape rules for .out(): the dims of an input port.
struct ShapeRule {
  enum Kind { none, same, broadcast_all } kind = none;
  const char* port = nullptr;
};
inline ShapeRule same_as(const char* input_port) {
  return {ShapeRule::same, input_port};
}
// NumPy-style broadcast of all inputs.
inline ShapeRule broadcast() {
  return {ShapeRule::broadcast_all, nullptr};
}

// Merges `b` into `a` by NumPy's rule; false when they do not fit.
inline bool broadcast_dims(std::vector<int64_t>& a, Dims b) {
  const size_t rank = static_cast<size_t>(b.rank);
  if (rank > a.size()) a.insert(a.begin(), rank - a.size(), 1);
  const size_t shift = a.size() - rank;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t y = b.data[i];
    int64_t& x = a[shift + i];
    if (x == y || y == 1) continue;
    if (x != 1) return false;
    x = y;
  }
  return true;
}
inline std::string dims_text(Dims d) {
  std::string s = "[";
  for (int i = 0; i < d.rank; ++i) s += (i ? ", " : "") + std::to_string(d.data[i]);
  return s + "]";
}

class Builder;

// One operator: schema, rules and kernels. A fluent value; HEDDLE_PLUGIN's builder turns it into the ABI's tables.
// All `const char*` given to it must be literals or outlive the plugin.
class Op {
 public:
  // `domain` "" is ONNX's; your own operators take your plugin's name. `version`: the ONNX since-version, or your own count.
  explicit Op(const char* name, const char* domain = "", int32_t version = 1) : name_(name), domain_(domain), version_(version) {}
  Op& doc(const char* text) { return doc_ = text, *this; }
  // Ports. Ports with one type variable agree in dtype ("T" unless said otherwise).
  Op& in(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") { return port(inputs_, name, set, variable, 0); }
  Op& optional(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    return port(inputs_, name, set, variable, HEDDLE_PORT_OPTIONAL);
  }
  Op& variadic(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    return port(inputs_, name, set, variable, HEDDLE_PORT_VARIADIC);
  }
  // Variadic values of any number (none too), each of its own dtype.
  Op& any_number(const char* name) {
    return port(inputs_, name, any_dtype, nullptr, HEDDLE_PORT_VARIADIC | HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HETEROGENEOUS);
  }
  // A small host tensor whose content decides output shapes.
  Op& shape_operand(const char* name, heddle_dtype_set set = dtypes<int64_t>(), bool is_optional = false) {
    uint32_t flags = HEDDLE_PORT_SHAPE_OPERAND | HEDDLE_PORT_HOST;
    if (is_optional) flags |= HEDDLE_PORT_OPTIONAL;
    return port(inputs_, name, set, nullptr, flags);
  }
  Op& out(const char* name, ShapeRule rule = {}, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    rules_.push_back(rule);
    return port(outputs_, name, set, variable, 0);
  }
  // An output with a dtype of its own.
  Op& out_as(const char* name, heddle_dtype dtype, ShapeRule rule = {}) {
    rules_.push_back(rule);
    port(outputs_, name, HEDDLE_DTYPE_BIT(dtype), nullptr, 0);
    outputs_.back().default_dtype = dtype;
    return *this;
  }
  Op& optional_out(const char* name, ShapeRule rule = {}, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    out(name, rule, set, variable);
    outputs_.back().flags |= HEDDLE_PORT_OPTIONAL;
    return *this;
  }
  Op& variadic_out(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    rules_.push_back({});
    uint32_t flags = HEDDLE_PORT_VARIADIC;
    if (!variable) flags |= HEDDLE_PORT_HETEROGENEOUS;
    return port(outputs_, name, set, variable, flags);
  }
  // The last declared input lives on the host.
  Op& on_host() { return inputs_.back().flags |= HEDDLE_PORT_HOST, *this; }
  // The last declared input holds indices into input `port` along `axis` (-1: the attribute "axis").
  Op& indexes(const char* of_port, int axis) {
    inputs_.back().index_bound_port = index(inputs_, of_port);
    inputs_.back().index_bound_axis = axis;
    return *this;
  }
  Op& in_place(const char* output, const char* input) {
    return outputs_[static_cast<size_t>(index(outputs_, output))].may_alias = index(inputs_, input), *this;
  }
  // `output` is the next version of the variable given as `input`; it shares its bytes.
  Op& updates(const char* output, const char* input) {
    heddle_port& p = outputs_[static_cast<size_t>(index(outputs_, output))];
    p.updates = p.may_alias = index(inputs_, input);
    return *this;
  }
  // Attributes with defaults, or without (`required` / `maybe`).
  Op& attribute(const char* name, int64_t v) { return with_default(name, HEDDLE_ATTRIBUTE_INT).i = v, *this; }
  Op& attribute(const char* name, int v) { return attribute(name, static_cast<int64_t>(v)); }
  Op& attribute(const char* name, double v) { return with_default(name, HEDDLE_ATTRIBUTE_FLOAT).f = v, *this; }
  Op& attribute(const char* name, const char* v) {
    heddle_attribute& a = with_default(name, HEDDLE_ATTRIBUTE_STRING);
    a.s = v;
    a.count = std::strlen(v);
    return *this;
  }
  Op& required(const char* name, heddle_attribute_type type) { return declare(name, type, 1), *this; }
  Op& maybe(const char* name, heddle_attribute_type type) { return declare(name, type, 0), *this; }
  Op& traits(uint32_t bits) { return traits_ |= bits, *this; }
  Op& precision(heddle_precision_class c) { return precision_ = c, *this; }
  // The shape rule as a function; dtypes come from the type variables unless it sets them.
  Op& infer(Status (*rule)(InferContext&)) { return infer_ = rule, *this; }
  // Output 0 as an expression of inputs and float attributes: "max(x, 0)". Gives the kernel, fusion and, unless other rules
  // are given, broadcast shapes.
  Op& pointwise(const char* expression) { return pointwise_ = expression, *this; }
  // One emitted operator of the gradient; call again for more. Roles: port names, "d" + port name, t0, t1, ...
  Op& gradient(const char* op_name, std::initializer_list<const char*> inputs, std::initializer_list<const char*> outputs,
               const char* domain = nullptr) {
    gradients_.push_back({op_name, domain, inputs, outputs});
    return *this;
  }
  Op& gradient(heddle_gradient_function callback) { return gradient_callback_ = callback, *this; }
  Op& cost(heddle_cost_function f) { return cost_ = f, *this; }
  // A kernel from a plain function; its parameters are In, OptionalIn, Ins, Out, Outs in port order, and optionally one type
  // constructible from `const Attributes&` and `const RunContext&`.
  template <auto F>
  Op& kernel(const char* device) {
    using Fn = detail::Function<F>;
    KernelData k;
    k.device = device;
    k.run = Fn::run;
    if (Fn::has_state) k.create = Fn::create, k.destroy = Fn::destroy;
    Fn::sets(k.inputs, k.outputs, std::make_index_sequence<Fn::count>());
    k.run_elementwise = Fn::run_elementwise;
    k.prepare_elementwise = Fn::prepare_elementwise;
    kernels_.push_back(std::move(k));
    return *this;
  }
  template <auto F>
  Op& cpu() {
    return kernel<F>("cpu");
  }
  // The last kernel computes every element alone and may be given any slice: tiles for free.
  Op& elementwise() {
    kernels_.back().run = kernels_.back().run_elementwise;
    kernels_.back().prepare = kernels_.back().prepare_elementwise;
    return *this;
  }
  // A kernel class: any of create(const CreateContext&), prepare(PrepareContext&), run(const RunContext&, begin, end) const,
  // finish(const RunContext&) const, static formats(const CreateContext&), static accepts_epilogue(const CreateContext&).
  // The sets restrict ports by position; missing ones allow what the schema allows.
  template <class K>
  Op& kernel(const char* device, std::vector<heddle_dtype_set> input_sets = {}, std::vector<heddle_dtype_set> output_sets = {}) {
    using C = detail::ClassKernel<K>;
    KernelData k;
    k.device = device;
    k.create = C::create;
    k.destroy = C::destroy;
    k.run = C::run;
    if (detail::has_prepare<K>::value) k.prepare = C::prepare;
    if (detail::has_finish<K>::value) k.finish = C::finish;
    if (detail::has_formats<K>::value) k.formats = C::formats;
    if (detail::has_epilogue<K>::value) k.accepts_epilogue = C::accepts_epilogue;
    k.inputs = std::move(input_sets);
    k.outputs = std::move(output_sets);
    kernels_.push_back(std::move(k));
    return *this;
  }
  template <class K>
  Op& cpu(std::vector<heddle_dtype_set> input_sets = {}, std::vector<heddle_dtype_set> output_sets = {}) {
    return kernel<K>("cpu", std::move(input_sets), std::move(output_sets));
  }
  // Flags, name and priority of the last kernel.
  Op& kernel_flags(uint32_t flags) { return kernels_.back().flags |= flags, *this; }
  Op& kernel_name(const char* name) { return kernels_.back().name = name, *this; }
  Op& priority(int32_t p) { return kernels_.back().priority = p, *this; }
  // This declaration only adds kernels to an operator that another plugin declares.
  Op& kernels_only() { return kernels_only_ = true, *this; }

 private:
  friend class Builder;
  struct KernelData {
    const char* device = nullptr;
    const char* name = nullptr;
    std::vector<heddle_dtype_set> inputs, outputs;
    uint32_t flags = 0;
    int32_t priority = 0;
    heddle_status (*create)(const heddle_create_context*, void**) = nullptr;
    heddle_status (*prepare)(heddle_prepare_context*) = nullptr;
    heddle_run_function run = nullptr;
    heddle_finish_function finish = nullptr;
    void (*destroy)(void*) = nullptr;
    uint32_t (*formats)(const heddle_create_context*, heddle_format*, uint32_t) = nullptr;
    int32_t (*accepts_epilogue)(const heddle_create_context*) = nullptr;
    heddle_run_function run_elementwise = nullptr;
    heddle_status (*prepare_elementwise)(heddle_prepare_context*) = nullptr;
  };
  struct GradientData {
    const char* name;
    const char* domain;
    std::vector<const char*> inputs, outputs;
  };
  Op& port(std::vector<heddle_port>& ports, const char* name, heddle_dtype_set set, const char* variable, uint32_t flags) {
    heddle_port p = {};
    p.struct_size = sizeof(p);
    p.flags = flags;
    p.name = name;
    p.type_variable = variable;
    p.dtypes = set;
    p.updates = p.may_alias = p.index_bound_port = p.index_bound_axis = -1;
    ports.push_back(p);
    return *this;
  }
  static int32_t index(const std::vector<heddle_port>& ports, const char* name) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (std::strcmp(ports[i].name, name) == 0) return static_cast<int32_t>(i);
    return -1;
  }
  heddle_attribute_schema& declare(const char* name, heddle_attribute_type type, uint32_t is_required) {
    heddle_attribute_schema s = {};
    s.struct_size = sizeof(s);
    s.type = type;
    s.required = is_required;
    s.name = name;
    attributes_.push_back(s);
    defaults_.emplace_back();
    return attributes_.back();
  }
  heddle_attribute& with_default(const char* name, heddle_attribute_type type) {
    declare(name, type, 0);
    heddle_attribute& a = defaults_.back();
    a = {};
    a.struct_size = sizeof(a);
    a.type = type;
    a.name = name;
    return a;
  }

  const char* name_;
  const char* domain_;
  int32_t version_;
  const char* doc_ = "";
  std::vector<heddle_port> inputs_, outputs_;
  std::vector<ShapeRule> rules_;
  std::vector<heddle_attribute_schema> attributes_;
  std::vector<heddle_attribute> defaults_;  // beside attributes_; struct_size 0: none
  uint32_t traits_ = 0;
  heddle_precision_class precision_ = HEDDLE_PRECISION_ANY;
  Status (*infer_)(InferContext&) = nullptr;
  const char* pointwise_ = nullptr;
  std::vector<GradientData> gradients_;
  heddle_gradient_function gradient_callback_ = nullptr;
  heddle_cost_function cost_ = nullptr;
  std::vector<KernelData> kernels_;
  bool kernels_only_ = false;
};

// Collects operators and turns them into the ABI's tables; owns the tables until the plugin closes.
class Builder {
 public:
  Builder(const char* name, const char* version) {
    plugin_ = {};
    plugin_.struct_size = sizeof(plugin_);
    plugin_.abi_major = HEDDLE_ABI_MAJOR;
    plugin_.abi_minor = HEDDLE_ABI_MINOR;
    plugin_.name = name;
    plugin_.version = version;
  }
  void add(const Op& op) {
    ops_.emplace_back(op);
    OpTables& t = tables_.emplace_back();
    Op& o = ops_.back();
    for (heddle_port& p : o.inputs_) t.inputs.push_back(&p);
    for (heddle_port& p : o.outputs_) t.outputs.push_back(&p);
    for (size_t i = 0; i < o.attributes_.size(); ++i) {
      if (o.defaults_[i].struct_size) o.attributes_[i].default_value = &o.defaults_[i];
      t.attributes.push_back(&o.attributes_[i]);
    }
    for (const Op::GradientData& g : o.gradients_) {
      heddle_gradient_node n = {};
      n.struct_size = sizeof(n);
      n.input_count = static_cast<uint32_t>(g.inputs.size());
      n.output_count = static_cast<uint32_t>(g.outputs.size());
      n.copy_attributes = 1;
      n.domain = g.domain ? g.domain : o.domain_;
      n.operator_name = g.name;
      n.inputs = g.inputs.data();
      n.outputs = g.outputs.data();
      t.gradients.push_back(n);
    }
    for (heddle_gradient_node& n : t.gradients) t.gradient_pointers.push_back(&n);
    if (!o.kernels_only_) {
      heddle_operator& a = t.op;
      a = {};
      a.struct_size = sizeof(a);
      a.version = o.version_;
      a.domain = o.domain_;
      a.name = o.name_;
      a.doc = o.doc_;
      a.inputs = t.inputs.data();
      a.outputs = t.outputs.data();
      a.attributes = t.attributes.data();
      a.input_count = static_cast<uint32_t>(t.inputs.size());
      a.output_count = static_cast<uint32_t>(t.outputs.size());
      a.attribute_count = static_cast<uint32_t>(t.attributes.size());
      a.traits = o.traits_;
      a.precision = o.precision_;
      a.gradient_node_count = static_cast<uint32_t>(t.gradient_pointers.size());
      a.infer = infer;
      a.cost = o.cost_;
      a.gradient_nodes = t.gradient_pointers.data();
      a.gradient = o.gradient_callback_;
      a.pointwise = o.pointwise_;
      a.user = &o;
      operators_.push_back(&a);
    }
    for (const Op::KernelData& k : o.kernels_) {
      heddle_kernel n = {};
      n.struct_size = sizeof(n);
      n.version = o.version_;
      n.domain = o.domain_;
      n.operator_name = o.name_;
      n.device_kind = k.device;
      n.name = k.name;
      n.input_dtypes = k.inputs.empty() ? nullptr : k.inputs.data();
      n.output_dtypes = k.outputs.empty() ? nullptr : k.outputs.data();
      n.input_dtype_count = static_cast<uint32_t>(k.inputs.size());
      n.output_dtype_count = static_cast<uint32_t>(k.outputs.size());
      n.flags = k.flags;
      n.priority = k.priority;
      n.create = k.create;
      n.prepare = k.prepare;
      n.run = k.run;
      n.finish = k.finish;
      n.destroy = k.destroy;
      n.formats = k.formats;
      n.accepts_epilogue = k.accepts_epilogue;
      kernel_data_.push_back(n);
      kernels_.push_back(&kernel_data_.back());
    }
  }
  void add(const heddle_resource* resource) { resources_.push_back(resource); }
  void add(const heddle_device_backend* backend) { devices_.push_back(backend); }
  void add(const heddle_rewrite_rule* rule) { rules_.push_back(rule); }
  void initialize(heddle_status (*f)(const heddle_host*)) { plugin_.initialize = f; }
  void on_shutdown(void (*f)()) { shutdown_ = f; }
  const heddle_plugin* finish(void (*shutdown)()) {
    plugin_.operators = operators_.data();
    plugin_.kernels = kernels_.data();
    plugin_.resources = resources_.data();
    plugin_.rules = rules_.data();
    plugin_.devices = devices_.data();
    plugin_.operator_count = static_cast<uint32_t>(operators_.size());
    plugin_.kernel_count = static_cast<uint32_t>(kernels_.size());
    plugin_.resource_count = static_cast<uint32_t>(resources_.size());
    plugin_.rule_count = static_cast<uint32_t>(rules_.size());
    plugin_.device_count = static_cast<uint32_t>(devices_.size());
    plugin_.shutdown = shutdown;
    return &plugin_;
  }
  void call_shutdown() const {
    if (shutdown_) shutdown_();
  }

 private:
  struct OpTables {
    heddle_operator op;
    std::vector<const heddle_port*> inputs, outputs;
    std::vector<const heddle_attribute_schema*> attributes;
    std::vector<heddle_gradient_node> gradients;
    std::vector<const heddle_gradient_node*> gradient_pointers;
  };
  static heddle_status infer(const heddle_infer_context* c) {
    return detail::guard(c->host, c, [&]() -> Status {
      const Op& o = *static_cast<const Op*>(c->op->user);
      InferContext context(c);
      for (uint32_t i = 0; i < c->output_count && i < o.rules_.size(); ++i) {
        ShapeRule rule = o.rules_[i];
        if (rule.kind == ShapeRule::none && o.pointwise_ && !o.infer_) rule.kind = ShapeRule::broadcast_all;
        if (rule.kind == ShapeRule::same) {
          const int32_t port = Op::index(o.inputs_, rule.port);
          context.set_dims(i, context.dims(static_cast<uint32_t>(port)));
        } else if (rule.kind == ShapeRule::broadcast_all) {
          std::vector<int64_t> dims;
          for (uint32_t k = 0; k < c->input_count; ++k)
            if (c->inputs[k] && !broadcast_dims(dims, context.dims(k)))
              return invalid("input " + std::to_string(k) + " " + dims_text(context.dims(k)) + " does not broadcast to " +
                             dims_text({dims.data(), static_cast<int>(dims.size())}));
          context.set_dims(i, dims);
        }
      }
      return o.infer_ ? o.infer_(context) : Status();
    });
  }

  heddle_plugin plugin_;
  std::deque<Op> ops_;
  std::deque<OpTables> tables_;
  std::deque<heddle_kernel> kernel_data_;
  std::vector<const heddle_operator*> operators_;
  std::vector<const heddle_kernel*> kernels_;
  std::vector<const heddle_resource*> resources_;
  std::vector<const heddle_device_backend*> devices_;
  std::vector<const heddle_rewrite_rule*> rules_;
  void (*shutdown_)() = nullptr;
};

// The version rule of ABI 0.x, in one place: both numbers match exactly.
inline bool abi_accepts(uint32_t host_major, uint32_t host_minor) {
  return host_major == HEDDLE_ABI_MAJOR && host_minor == HEDDLE_ABI_MINOR;
}

}  // namespace plugin
}  // namespace heddle

// Defines the plugin's one exported function. The block that follows adds operators to `builder`; it runs once, at load.
#define HEDDLE_PLUGIN(name, version, builder)                                                  \
  static void heddle_plugin_build_(::heddle::plugin::Builder& builder);                        \
  static ::heddle::plugin::Builder* heddle_plugin_builder_ = nullptr;                          \
  static void heddle_plugin_shutdown_() {                                                      \
    if (heddle_plugin_builder_) heddle_plugin_builder_->call_shutdown();                       \
    delete heddle_plugin_builder_;                                                             \
    heddle_plugin_builder_ = nullptr;                                                          \
  }                                                                                            \
  extern "C" HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host* host) { \
    if (!host) return nullptr;                                                                 \
    if (!::heddle::plugin::abi_accepts(host->abi_major, host->abi_minor)) {                    \
      static heddle_plugin refused;                                                            \
      refused = {};                                                                            \
      refused.struct_size = sizeof(refused);                                                   \
      refused.abi_major = HEDDLE_ABI_MAJOR;                                                    \
      refused.abi_minor = HEDDLE_ABI_MINOR;                                                    \
      return &refused;                                                                         \
    }                                                                                          \
    try {                                                                                      \
      delete heddle_plugin_builder_;                                                           \
      heddle_plugin_builder_ = new ::heddle::plugin::Builder(name, version);                   \
      heddle_plugin_build_(*heddle_plugin_builder_);                                           \
      return heddle_plugin_builder_->finish(heddle_plugin_shutdown_);                          \
    } catch (...) {                                                                            \
      return nullptr;                                                                          \
    }                                                                                          \
  }                                                                                            \
  static void heddle_plugin_build_([[maybe_unused]] ::heddle::plugin::Builder& builder)
