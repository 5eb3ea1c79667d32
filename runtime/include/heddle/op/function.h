// Kernels from plain functions: each argument is taken from the context according to the parameter's type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/op/contexts.h"
#include "heddle/op/dtypes.h"
#include "heddle/op/guard.h"
#include "heddle/op/views.h"

namespace heddle {
namespace plugin {

namespace detail {

// The meaning of a kernel function's parameter.
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
  static constexpr bool takes_context() {
    for (size_t i = 0; i < count; ++i)
      if (roles[i] == Role::context) return true;
    return false;
  }
  static_assert(count == 0 || port(count, false) > 0 || takes_context(), "a kernel function takes at least one Out or the RunContext");
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
  // Returns the argument for parameter I, restricted to elements [first, first + n); n < 0: all elements.
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
      if constexpr (!std::is_void_v<typename A::element>)
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
    return guard(*c, [&] { return call(*c, 0, -1, std::index_sequence_for<P...>()); });
  }
  static constexpr int64_t slice = 16384;  // elements of one elementwise tile
  static heddle_status run_elementwise(const heddle_run_context* c, int64_t begin, int64_t end) {
    return guard(*c, [&] {
      const int64_t size = c->outputs[0]->element_count;
      const int64_t last = end * slice < size ? end * slice : size;
      return call(*c, begin * slice, last - begin * slice, std::index_sequence_for<P...>());
    });
  }
  static heddle_status prepare_on_host(heddle_prepare_context* c) {
    return guard(*c, [&] { return check_host_memory(*c); });
  }
  template <bool Host>
  static heddle_status prepare_elementwise(heddle_prepare_context* c) {
    return guard(*c, [&]() -> Status {
      if constexpr (Host)
        if (Status status = check_host_memory(*c); !status.ok()) return status;
      const int64_t size = c->outputs[0]->element_count;
      for (uint32_t i = 0; i < c->input_count; ++i)
        if (c->inputs[i] && c->inputs[i]->element_count != size)
          return invalid("an elementwise kernel takes inputs of its output's size, " + std::to_string(size) + " elements, but input " +
                         std::to_string(i) + " has " + std::to_string(c->inputs[i]->element_count));
      c->tile_count = (size + slice - 1) / slice;
      return {};
    });
  }
  static heddle_status create(const heddle_create_context* c, void** state) {
    return guard(*c, [&]([[maybe_unused]] Mistakes& mistakes) -> Status {
      if constexpr (has_state) {
        auto made = std::make_unique<State>(Attributes(c->op, c->attributes, c->attribute_count, &mistakes));
        Status status = mistakes.status(status_of(*made));
        if (!status.ok()) return status;
        *state = made.release();
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

}  // namespace detail

}  // namespace plugin
}  // namespace heddle
