// A bench graph as bare steps that call bench::Work of the separately built plugin, for the runners that Heddle is compared with. The
// amount of work of a step is read at run time from one of two numbers, so the same net serves all cases.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/bench_graphs.h"
#include "heddle/abi.h"
#include "schedule/run_control.h"

namespace heddle::bench {

// Returns the kernel from the plugin at `path`; ends the program with a message if that fails. The library stays open.
heddle_run_function load_work(const char* path);

// Iterations of the heavy steps (a seeded half) and of the others. Each run reads them.
struct Amounts {
  alignas(64) int64_t heavy = 0;
  alignas(64) int64_t light = 0;
};
// Returns for each step of a graph whether it is heavy.
std::vector<bool> heavy_half(const BenchGraph& graph);

// Returns the steps of a graph whose results have no readers, in plan order.
std::vector<uint32_t> sinks(const BenchGraph& graph);

class WorkNet {
 public:
  // `amounts` must outlive the net. With `serial`, results share memory as a run in plan order allows, so that caches hold more of the net.
  WorkNet(const BenchGraph& graph, heddle_run_function kernel, Amounts& amounts, bool serial = false);
  WorkNet(const WorkNet&) = delete;
  WorkNet& operator=(const WorkNet&) = delete;

  const StepGraph& graph() const { return graph_; }
  const Step* steps() const { return steps_.data(); }
  // Returns the outputs of the sinks after the last run, to compare.
  std::vector<float> results() const;
  void clear_results();

 private:
  // Values are separate from the tensors that describe them, as in an arena: written data shares no cache lines with data that is only
  // read.
  struct alignas(64) Value {
    float data = 0;
  };

  StepGraph graph_;
  std::vector<uint32_t> sinks_;
  std::vector<Step> steps_;
  std::vector<heddle_run_context> contexts_;
  std::vector<Value> values_;
  std::vector<heddle_tensor> tensors_;
  std::vector<const heddle_tensor*> inputs_;
  std::vector<heddle_tensor*> outputs_;
  heddle_tensor amounts_[2] = {};  // heavy, light
};

}  // namespace heddle::bench
