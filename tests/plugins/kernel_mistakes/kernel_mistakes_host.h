// Declarations that the files of the plugin of mistaken kernels share.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/op.h"

namespace mistaken {

// The mistake that a node is to make: its attributes, in the order of operator_of().
struct Mistake {
  explicit Mistake(const heddle_attribute* const* attributes)
      : kind(attributes[0]->s, attributes[0]->count), variant(attributes[1]->i), callback(attributes[2]->i) {}
  bool is(const char* other) const { return kind == other; }
  std::string kind;
  int64_t variant, callback;
  int64_t threads = 1;  // that a run may have
};

heddle_kernel plain_kernel();
heddle::plugin::Op operator_of(const char* name);

heddle_status asks_for_resources(const Mistake& mistake, const heddle_create_context* context);
heddle_status packs(const Mistake& mistake, heddle_prepare_context* context);
heddle_status calls_the_runtime(const Mistake& mistake, const heddle_run_context* context);
void leaves_behind(const Mistake& mistake);
void prints(const Mistake& mistake);
void add_asking(heddle::plugin::Builder& plugin);
void add_declaring(heddle::plugin::Builder& plugin);

}  // namespace mistaken
