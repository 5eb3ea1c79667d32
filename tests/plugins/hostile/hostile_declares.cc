// Mistakes that an author makes with op.h, one for each plugin (test_plugin_case). They must give an error when the plugin is loaded.
#include <stdexcept>
#include <string_view>

#include "../plugin_case.h"
#include "heddle/op.h"
using namespace heddle::plugin;

static Status copy(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
  return {};
}

HEDDLE_PLUGIN("hostile_declares", "1.0", plugin) {
  const std::string_view mistake = test_plugin_case;
  Op op("Copy", "hostile");
  op.in("x").out("y", same_as("x"));
  if (mistake == "port") op.in_place("y", "z");
  if (mistake == "arity") op.in("second").cpu<copy>();
  if (mistake == "kernel") op.priority(3);
  if (mistake == "rule") op.out("another", same_as("nothing"));
  if (mistake == "text") op.pointwise("2 * x").cpu<copy>();
  if (mistake == "no_text") op.cpu<copy>().equals_pointwise();
  if (mistake == "index_after") op.in("index", dtypes<int64_t>(), nullptr).out("other", same_as("x")).indexes("x", 0);
  if (mistake == "host_after") op.on_host();
  if (mistake == "update_of_several") op.variadic("more").updates("next", "more");
  if (mistake == "index") op.in("index", dtypes<int64_t>(), nullptr).indexes("table", 0);

  if (mistake == "throw") throw std::runtime_error("no space left on the device");
  plugin.add(op);
  if (mistake == "dtype")
    plugin.add(Op("Wrong", "hostile").in("x", dtypes<int64_t>()).out("y", same_as("x"), dtypes<int64_t>()).cpu<copy>());
}
