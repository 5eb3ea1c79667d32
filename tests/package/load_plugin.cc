// load_plugin FILE.so loads it, runs square::Square on four numbers and unloads it. Exits with 1 and a message when anything is wrong.
#include <cstdio>
#include <vector>

#include "operator_runner/operator_runner.h"

int main(int argc, char** argv) {
  using namespace heddle;
  const auto fail = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  };
  if (argc != 2) return fail("usage: load_plugin FILE.so");
  Registry registry;
  const Status loaded = registry.load(argv[1]);
  if (!loaded.ok()) return fail(loaded.text());
  const std::vector<float> x = {1, 2, -3, 4};
  OperatorCall call;
  call.domain = "square";
  call.type = "Square";
  call.inputs = {Blob::copy_of(DType::f32, Shape{4}, x.data())};
  const auto result = run_operator(registry, call);
  if (!result.ok()) return fail(result.status().text());
  const auto* y = reinterpret_cast<const float*>(result.value()[0]->data);
  for (size_t i = 0; i < x.size(); ++i)
    if (y[i] != x[i] * x[i]) return fail("Square computed " + std::to_string(y[i]));
  const Status unloaded = registry.unload("square");
  if (!unloaded.ok()) return fail(unloaded.text());
  std::puts("square::Square loaded, ran and left");
  return 0;
}
