#include "bench/work_net.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "plugin/host.h"

namespace heddle::bench {
namespace {

const int64_t one_element[1] = {1};

heddle_tensor scalar(heddle_dtype dtype, uint64_t bytes, void* data) {
  heddle_tensor t = {};
  t.struct_size = sizeof(t);
  t.dtype = dtype;
  t.rank = 1;
  t.data = data;
  t.dims = one_element;
  t.element_count = 1;
  t.byte_size = bytes;
  t.extent_axis = -1;
  return t;
}

[[noreturn]] void give_up(const char* path, const char* what) {
  std::fprintf(stderr, "%s: %s\n", path, what ? what : "no reason given");
  std::exit(2);
}

}  // namespace

heddle_run_function load_work(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) give_up(path, dlerror());
  const auto query = reinterpret_cast<heddle_plugin_query_function>(dlsym(library, HEDDLE_PLUGIN_QUERY_SYMBOL));
  const heddle_plugin* plugin = query ? query(base_host()) : nullptr;
  if (!plugin) give_up(path, "not a plugin of this ABI");
  for (uint32_t i = 0; i < plugin->kernel_count; ++i)
    if (std::strcmp(plugin->kernels[i]->operator_name, "Work") == 0) return plugin->kernels[i]->run;
  give_up(path, "has no kernel for Work");
}

WorkNet::WorkNet(const BenchGraph& graph, heddle_run_function kernel)
    : contexts_(graph.count()),
      values_(graph.count()),
      tensors_(graph.count()),
      inputs_(graph.count()),
      outputs_(graph.count()),
      heavy_(graph.count(), true) {
  const uint32_t n = graph.count();
  graph_.count = graph_.tail_begin = n;
  graph_.successor_begin.assign(n + 1, 0);
  for (const auto& predecessors : graph.predecessors)
    for (const uint32_t p : predecessors) ++graph_.successor_begin[p + 1];
  for (uint32_t s = 0; s < n; ++s) graph_.successor_begin[s + 1] += graph_.successor_begin[s];
  graph_.successors.resize(graph_.successor_begin[n]);
  std::vector<uint32_t> next(graph_.successor_begin.begin(), graph_.successor_begin.end() - 1);
  for (int i = 0; i < 2; ++i) iteration_tensors_[i] = scalar(HEDDLE_I64, 8, &iterations_[i]);
  for (uint32_t s = 0; s < n; ++s) {
    for (const uint32_t p : graph.predecessors[s]) graph_.successors[next[p]++] = s;
    graph_.predecessor_count.push_back(static_cast<uint32_t>(graph.predecessors[s].size()));
    tensors_[s] = scalar(HEDDLE_F32, 4, &values_[s].data);
    outputs_[s] = &tensors_[s];
    inputs_[s].push_back(&iteration_tensors_[0]);
    for (const uint32_t p : graph.predecessors[s]) inputs_[s].push_back(&tensors_[p]);
    heddle_run_context& c = contexts_[s];
    c.struct_size = sizeof(c);
    c.input_count = static_cast<uint32_t>(inputs_[s].size());
    c.output_count = 1;
    c.inputs = inputs_[s].data();
    c.outputs = &outputs_[s];
    c.host = base_host();
    steps_.push_back({kernel, &c, 1});
  }
  graph_.flags.assign(n, 0);
  graph_.cost_ns.assign(n, 0);
}

void WorkNet::use(uint32_t step, int which) {
  inputs_[step][0] = &iteration_tensors_[which];
  heavy_[step] = which == 0;
}

void WorkNet::set_iterations(int64_t all) {
  iterations_[0] = all;
  for (uint32_t s = 0; s < graph_.count; ++s) use(s, 0);
}

void WorkNet::set_half(int64_t iterations) {
  iterations_[0] = iterations;
  iterations_[1] = 0;
  std::mt19937 random(11);
  for (uint32_t s = 0; s < graph_.count; ++s) use(s, static_cast<int>(random() & 1));
}

void WorkNet::set_declared(float heavy_ns, float light_ns) {
  for (uint32_t s = 0; s < graph_.count; ++s) graph_.cost_ns[s] = heavy_[s] ? heavy_ns : light_ns;
}

std::vector<float> WorkNet::results() const {
  std::vector<float> result;
  for (const Value& value : values_) result.push_back(value.data);
  return result;
}

void WorkNet::clear_results() {
  for (Value& value : values_) value.data = -1;
}

}  // namespace heddle::bench
