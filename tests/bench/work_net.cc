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
  const heddle_plugin* plugin = query ? query(host_table(), nullptr) : nullptr;
  if (!plugin) give_up(path, "not a plugin of this ABI");
  for (uint32_t i = 0; i < plugin->kernel_count; ++i)
    if (std::strcmp(plugin->kernels[i]->operator_name, "Work") == 0) return plugin->kernels[i]->run;
  give_up(path, "has no kernel for Work");
}

std::vector<bool> heavy_half(const BenchGraph& graph) {
  std::mt19937 random(11);
  std::vector<bool> heavy;
  for (uint32_t s = 0; s < graph.count(); ++s) heavy.push_back((random() & 1) == 0);
  return heavy;
}

std::vector<uint32_t> sinks(const BenchGraph& graph) {
  std::vector<bool> read(graph.count());
  for (const auto& predecessors : graph.predecessors)
    for (const uint32_t p : predecessors) read[p] = true;
  std::vector<uint32_t> result;
  for (uint32_t s = 0; s < graph.count(); ++s)
    if (!read[s]) result.push_back(s);
  return result;
}

namespace {

// Returns the place of each step's result; a place is reused when all its readers, in plan order, have run.
std::vector<uint32_t> shared_places(const BenchGraph& graph) {
  std::vector<uint32_t> last(graph.count(), UINT32_MAX), places, free;
  for (uint32_t s = 0; s < graph.count(); ++s)
    for (const uint32_t p : graph.predecessors[s]) last[p] = s;
  uint32_t used = 0;
  for (uint32_t s = 0; s < graph.count(); ++s) {
    const bool again = !free.empty();
    places.push_back(again ? free.back() : used++);
    if (again) free.pop_back();
    for (const uint32_t p : graph.predecessors[s])
      if (last[p] == s) free.push_back(places[p]);
  }
  return places;
}

}  // namespace

WorkNet::WorkNet(const BenchGraph& graph, heddle_run_function kernel, Amounts& amounts, bool serial)
    : sinks_(sinks(graph)), contexts_(graph.count()), values_(graph.count()), tensors_(graph.count()), outputs_(graph.count()) {
  const uint32_t n = graph.count();
  graph_.count = graph_.tail_begin = n;
  graph_.successor_begin.assign(n + 1, 0);
  for (const auto& predecessors : graph.predecessors)
    for (const uint32_t p : predecessors) ++graph_.successor_begin[p + 1];
  for (uint32_t s = 0; s < n; ++s) graph_.successor_begin[s + 1] += graph_.successor_begin[s];
  graph_.successors.resize(graph_.successor_begin[n]);
  inputs_.reserve(n + graph_.successors.size());
  std::vector<uint32_t> next(graph_.successor_begin.begin(), graph_.successor_begin.end() - 1);
  amounts_[0] = scalar(HEDDLE_I64, 8, &amounts.heavy);
  amounts_[1] = scalar(HEDDLE_I64, 8, &amounts.light);
  const std::vector<bool> heavy = heavy_half(graph);
  const std::vector<uint32_t> places = serial ? shared_places(graph) : std::vector<uint32_t>();
  for (uint32_t s = 0; s < n; ++s) {
    tensors_[s] = scalar(HEDDLE_F32, 4, &values_[serial ? places[s] : s].data);
    outputs_[s] = &tensors_[s];
    heddle_run_context& c = contexts_[s];
    c.struct_size = sizeof(c);
    c.input_count = static_cast<uint32_t>(1 + graph.predecessors[s].size());
    c.output_count = 1;
    c.inputs = inputs_.data() + inputs_.size();
    c.outputs = &outputs_[s];
    c.host = host_table();
    inputs_.push_back(&amounts_[heavy[s] ? 0 : 1]);
    for (const uint32_t p : graph.predecessors[s]) {
      graph_.successors[next[p]++] = s;
      inputs_.push_back(&tensors_[p]);
    }
    graph_.predecessor_count.push_back(static_cast<uint32_t>(graph.predecessors[s].size()));
    steps_.push_back({kernel, &c, 1});
  }
  graph_.flags.assign(n, 0);
  graph_.cost_ns.assign(n, 0);
}

std::vector<float> WorkNet::results() const {
  std::vector<float> result;
  for (const uint32_t s : sinks_) result.push_back(*static_cast<const float*>(tensors_[s].data));
  return result;
}

void WorkNet::clear_results() {
  for (Value& value : values_) value.data = -1;
}

}  // namespace heddle::bench
