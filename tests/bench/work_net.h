// A bench graph as steps that call bench::Work of the separately built plugin. Each step's amount of work is read at run time from one of
// two tensors, so the same net serves all cases.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/bench_graphs.h"
#include "heddle/abi.h"
#include "run/step_graph.h"

namespace heddle::bench {

// The kernel, from the plugin at `path`; ends the program with a sentence when that fails. The library stays open.
heddle_run_function load_work(const char* path);

class WorkNet {
 public:
  WorkNet(const BenchGraph& graph, heddle_run_function kernel);
  WorkNet(const WorkNet&) = delete;
  WorkNet& operator=(const WorkNet&) = delete;

  // All steps work this long, or a seeded half of them and the others not at all.
  void set_iterations(int64_t all);
  void set_half(int64_t iterations);
  void set_declared(float heavy_ns, float light_ns);

  const StepGraph& graph() const { return graph_; }
  const Step* steps() const { return steps_.data(); }
  bool heavy(uint32_t step) const { return heavy_[step]; }
  // What the last run left in each step's output, to compare.
  std::vector<float> results() const;
  void clear_results();

 private:
  // Apart from the tensors that describe them, as in an arena: what is written does not share lines with what is only read.
  struct alignas(64) Value {
    float data = 0;
  };
  void use(uint32_t step, int which);

  StepGraph graph_;
  std::vector<Step> steps_;
  std::vector<heddle_run_context> contexts_;
  std::vector<Value> values_;
  std::vector<heddle_tensor> tensors_;
  std::vector<std::vector<const heddle_tensor*>> inputs_;
  std::vector<heddle_tensor*> outputs_;
  std::vector<bool> heavy_;
  int64_t iterations_[2] = {0, 0};  // heavy, light
  heddle_tensor iteration_tensors_[2] = {};
};

}  // namespace heddle::bench
