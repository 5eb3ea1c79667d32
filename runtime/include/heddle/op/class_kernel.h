// Kernels from classes. The class has run or start, and may have create, prepare, finish, abort, formats and accepts_epilogue.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "heddle/op/completion.h"
#include "heddle/op/contexts.h"
#include "heddle/op/guard.h"

namespace heddle {
namespace plugin {

namespace detail {

// has_<function> is true if the kernel class K has a function of that name.
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
struct has_start : std::false_type {};
template <class K>
struct has_start<K, std::void_t<decltype(std::declval<const K&>().start(std::declval<const RunContext&>(), std::declval<Completion>()))>>
    : std::true_type {};
// With `using moves_only = void;` a class declares that its kernels have HEDDLE_KERNEL_MOVES_ONLY.
template <class K, class = void>
struct is_mover : std::false_type {};
template <class K>
struct is_mover<K, std::void_t<typename K::moves_only>> : std::true_type {
  static_assert(std::is_void<typename K::moves_only>::value, "it is said by `using moves_only = void;`");
};
template <class K, class = void>
struct has_abort : std::false_type {};
template <class K>
struct has_abort<K, std::void_t<decltype(std::declval<const K&>().abort(std::declval<const RunContext&>()))>> : std::true_type {};
template <class K, class = void>
struct has_run_group : std::false_type {};
template <class K>
struct has_run_group<K, std::void_t<decltype(std::declval<const K&>().run_group(std::declval<const RunGroup&>()))>> : std::true_type {};
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
    return guard(*c, [&]([[maybe_unused]] Mistakes& mistakes) -> Status {
      auto kernel = std::make_unique<K>();
      if constexpr (has_create<K>::value) {
        Status s = mistakes.status(kernel->create(CreateContext(c, &mistakes)));
        if (!s.ok()) return s;
      }
      *state = kernel.release();
      return {};
    });
  }
  template <bool Host>
  static heddle_status prepare(heddle_prepare_context* c) {
    return guard(*c, [&]() -> Status {
      if constexpr (Host)
        if (Status status = check_host_memory(*c); !status.ok()) return status;
      if constexpr (has_prepare<K>::value) {
        PrepareContext context(c);
        return static_cast<K*>(c->state)->prepare(context);
      } else {
        return {};
      }
    });
  }
  static heddle_status run(const heddle_run_context* c, int64_t begin, int64_t end) {
    return guard(*c, [&]() -> Status {
      if constexpr (has_start<K>::value)
        return static_cast<void>(begin), static_cast<void>(end), static_cast<const K*>(c->state)->start(*c, Completion(*c));
      else
        return static_cast<const K*>(c->state)->run(*c, begin, end);
    });
  }
  static void abort(const heddle_run_context* c) {
    if constexpr (has_abort<K>::value)
      guard(*c, [&]() -> Status {
        static_cast<const K*>(c->state)->abort(*c);
        return {};
      });
  }
  static heddle_status run_group(const heddle_run_context* const* parts, uint32_t count) {
    return guard(*parts[0], [&]() -> Status {
      if constexpr (has_run_group<K>::value)
        return static_cast<const K*>(parts[0]->state)->run_group(RunGroup(parts, count));
      else
        return {};
    });
  }
  static heddle_status finish(const heddle_run_context* c) {
    return guard(*c, [&]() -> Status {
      if constexpr (has_finish<K>::value)
        return static_cast<const K*>(c->state)->finish(*c);
      else
        return {};
    });
  }
  static void destroy(void* state) { delete static_cast<K*>(state); }
  static heddle_status formats(const heddle_create_context* c, heddle_format* const* choices, uint32_t capacity, uint32_t* count) {
    return guard(*c, [&]([[maybe_unused]] Mistakes& mistakes) -> Status {
      *count = 0;
      if constexpr (has_formats<K>::value)
        for (const heddle_format& f : K::formats(CreateContext(c, &mistakes)))
          if (*count < capacity) *choices[(*count)++] = f;
      return {};
    });
  }
  static int32_t accepts_epilogue(const heddle_create_context* c) {
    int32_t yes = 0;
    if constexpr (has_epilogue<K>::value) {
      const heddle_status status = guard(*c, [&](Mistakes& mistakes) -> Status {
        yes = K::accepts_epilogue(CreateContext(c, &mistakes)) ? 1 : 0;
        return {};
      });
      if (status != HEDDLE_OK) return 0;
    }
    return yes;
  }
};

}  // namespace detail

}  // namespace plugin
}  // namespace heddle
