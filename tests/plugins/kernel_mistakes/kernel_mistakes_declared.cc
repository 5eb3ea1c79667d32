// Operators whose kernels do not keep the promises of their declarations: see kernel_mistakes.cc.
#include <fcntl.h>

#include <cstdio>
#include <cstdlib>

#include "kernel_mistakes_host.h"
using namespace heddle::plugin;

namespace mistaken {
namespace {

const float* numbers(const heddle_run_context* c, uint32_t input) {
  return static_cast<const float*>(c->inputs[input]->data);
}
float* results(const heddle_run_context* c) {
  return static_cast<float*>(c->outputs[0]->data);
}
const Mistake& mistake_of(const heddle_run_context* c) {
  return *static_cast<const Mistake*>(c->state);
}

// Declared in place; that is wrong when it reads from the other end.
heddle_status run_in_place(const heddle_run_context* c, int64_t, int64_t) {
  const int64_t n = c->inputs[0]->element_count;
  for (int64_t i = 0; i < n; ++i) results(c)[i] = numbers(c, 0)[mistake_of(c).is("in-place") ? n - 1 - i : i];
  return HEDDLE_OK;
}

// Returns the elements of a table x at each index.
heddle_status run_indexing(const heddle_run_context* c, int64_t, int64_t) {
  const auto* const index = static_cast<const int64_t*>(c->inputs[1]->data);
  for (int64_t i = 0; i < c->inputs[1]->element_count; ++i) {
    const bool outside = index[i] < 0 || index[i] >= c->inputs[0]->element_count;
    if (outside && !mistake_of(c).is("index-unchecked")) {
      const std::string text = "index " + std::to_string(index[i]) + " is outside of x";
      c->host->set_error(c->call, HEDDLE_ERROR_INVALID, text.data(), text.size());
      return HEDDLE_ERROR_INVALID;
    }
    results(c)[i] = numbers(c, 0)[index[i]];
  }
  return HEDDLE_OK;
}

heddle_status run_adding(const heddle_run_context* c, int64_t, int64_t) {
  const float sign = mistake_of(c).is("commutative") ? -1.0f : 1.0f;
  for (int64_t i = 0; i < c->inputs[0]->element_count; ++i) results(c)[i] = numbers(c, 0)[i] + sign * numbers(c, 1)[i];
  return HEDDLE_OK;
}

heddle_status run_rectifying(const heddle_run_context* c, int64_t, int64_t) {
  const float below = mistake_of(c).is("equals-pointwise") ? 1.0f : 0.0f;
  for (int64_t i = 0; i < c->inputs[0]->element_count; ++i) results(c)[i] = numbers(c, 0)[i] > 0 ? numbers(c, 0)[i] : below;
  return HEDDLE_OK;
}

}  // namespace

void leaves_behind(const Mistake& m) {
  void* volatile lost = nullptr;
  if (m.is("leaks") && m.variant == 0) lost = std::malloc(64);
  if (m.is("leaks") && m.variant == 1) static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  static_cast<void>(lost);
}

void prints(const Mistake& m) {
  if (m.is("prints")) std::printf("hello\n");
}

void add_declaring(Builder& plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  heddle_kernel functions = plain_kernel();
  functions.formats = nullptr;
  functions.run = run_in_place;
  plugin.add(operator_of("InPlace").out("y", same_as("x"), f32).in_place("y", "x").raw_kernel("cpu", functions));
  functions.run = run_indexing;
  plugin.add(operator_of("Indexing")
                 .in("index", dtypes<int64_t>(), nullptr)
                 .indexes("x", 0)
                 .out("y", same_as("index"), f32)
                 .raw_kernel("cpu", functions));
  functions.run = run_adding;
  plugin.add(operator_of("Adding").in("b", f32).out("y", same_as("x"), f32).traits(HEDDLE_TRAIT_COMMUTATIVE).raw_kernel("cpu", functions));
  functions.run = run_rectifying;
  plugin.add(operator_of("Rectifying").out("y", same_as("x"), f32).pointwise("max(x, 0)").raw_kernel("cpu", functions).equals_pointwise());
}

}  // namespace mistaken
