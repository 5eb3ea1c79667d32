// The implementation of HEDDLE_PLUGIN: returns the plugin's tables to the host, and frees them when the plugin is closed.
#pragma once

#include <exception>
#include <string>

#include "heddle/abi.h"
#include "heddle/op/builder.h"
#include "heddle/op/mistake.h"

namespace heddle {
namespace plugin {

// Implements the version rule of ABI 0.x: both numbers and the hash must match exactly.
inline bool abi_accepts(const heddle_host& host) {
  return host.abi_major == HEDDLE_ABI_MAJOR && host.abi_minor == HEDDLE_ABI_MINOR && HEDDLE_HAS(heddle_host, &host, abi_hash) &&
         host.abi_hash == HEDDLE_ABI_HASH;
}

namespace detail {

// Returns a table that has only the ABI numbers that this plugin was built against: the host refuses the plugin, and its error names both
// versions.
inline heddle_plugin abi_answer() {
  heddle_plugin answer = {};
  answer.struct_size = sizeof(answer);
  answer.abi_major = HEDDLE_ABI_MAJOR;
  answer.abi_minor = HEDDLE_ABI_MINOR;
  answer.abi_hash = HEDDLE_ABI_HASH;
  return answer;
}

// Calls `build`, which adds the operators. An exception that it throws becomes the error of initialize.
inline void declare_operators(Builder& builder, void (*build)(Builder&)) {
#if HEDDLE_PLUGIN_EXCEPTIONS
  try {
    build(builder);
  } catch (const std::exception& e) {
    builder.fail(std::string("exception while operators were declared: ") + e.what());
  } catch (...) {
    builder.fail("exception of unknown type while operators were declared");
  }
#else
  build(builder);
#endif
}

inline const heddle_plugin* tables_of(Builder*& builder, int& users, const heddle_host* host, const char* name, const char* version,
                                      void (*build)(Builder&), heddle_status (*initialize)(const heddle_host*, const heddle_call*),
                                      void (*shutdown)()) {
  if (!builder) {
    builder = new Builder(name, version, host);
    declare_operators(*builder, build);
  }
  const heddle_plugin* answer = builder->finish(initialize, shutdown);
  ++users;
  return answer;
}

// Returns the plugin's tables, built on the first call and returned again by later calls. `users` counts the calls of open(): close() must
// be called as often. Null if there is no memory for the tables.
inline const heddle_plugin* open(Builder*& builder, int& users, const heddle_host* host, const char* name, const char* version,
                                 void (*build)(Builder&), heddle_status (*initialize)(const heddle_host*, const heddle_call*),
                                 void (*shutdown)()) noexcept {
#if HEDDLE_PLUGIN_EXCEPTIONS
  try {
    return tables_of(builder, users, host, name, version, build, initialize, shutdown);
  } catch (...) {
    return nullptr;
  }
#else
  return tables_of(builder, users, host, name, version, build, initialize, shutdown);
#endif
}

inline void close(Builder*& builder, int& users) noexcept {
  if (!builder || --users > 0) return;
  delete builder;
  builder = nullptr;
}

}  // namespace detail
}  // namespace plugin
}  // namespace heddle
