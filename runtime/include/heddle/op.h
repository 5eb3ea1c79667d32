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
// Arity and dtype checks come from the functions' signatures. C++17, header-only, links to nothing; also works under nvcc. Exceptions
// thrown in a function become error texts at the boundary. A plugin may be built without exceptions and without RTTI, if all files of the
// plugin are built that way.
#pragma once

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/builder.h"
#include "heddle/op/class_kernel.h"
#include "heddle/op/completion.h"
#include "heddle/op/contexts.h"
#include "heddle/op/declare.h"
#include "heddle/op/dtypes.h"
#include "heddle/op/function.h"
#include "heddle/op/guard.h"
#include "heddle/op/half_floats.h"
#include "heddle/op/kernel_data.h"
#include "heddle/op/layouts.h"
#include "heddle/op/mistake.h"
#include "heddle/op/module.h"
#include "heddle/op/needed_resources.h"
#include "heddle/op/plugin_status.h"
#include "heddle/op/shape_rules.h"
#include "heddle/op/subnet.h"
#include "heddle/op/tensor_view.h"
#include "heddle/op/tiles.h"
#include "heddle/op/views.h"

// Defines the plugin's one exported function. The block that follows adds operators to `builder`; it runs once, when the plugin is loaded.
#define HEDDLE_PLUGIN(name, version, builder)                                                                                      \
  static void heddle_plugin_build_(::heddle::plugin::Builder& builder);                                                            \
  static ::heddle::plugin::Builder* heddle_plugin_builder_ = nullptr;                                                              \
  static int heddle_plugin_users_ = 0;                                                                                             \
  static heddle_status heddle_plugin_initialize_(const heddle_host* host, const heddle_call* call) {                               \
    return heddle_plugin_builder_->call_initialize(host, call);                                                                    \
  }                                                                                                                                \
  static void heddle_plugin_shutdown_() {                                                                                          \
    ::heddle::plugin::detail::close(heddle_plugin_builder_, heddle_plugin_users_);                                                 \
  }                                                                                                                                \
  extern "C" HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host* host, const heddle_call*) {                 \
    static const heddle_plugin refused = ::heddle::plugin::detail::abi_answer();                                                   \
    if (!host) return nullptr;                                                                                                     \
    if (!::heddle::plugin::abi_accepts(*host)) return &refused;                                                                    \
    return ::heddle::plugin::detail::open(heddle_plugin_builder_, heddle_plugin_users_, host, name, version, heddle_plugin_build_, \
                                          heddle_plugin_initialize_, heddle_plugin_shutdown_);                                     \
  }                                                                                                                                \
  static void heddle_plugin_build_([[maybe_unused]] ::heddle::plugin::Builder& builder)
