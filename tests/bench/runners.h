// Ways to run a WorkNet: Heddle's scheduler, and what it is measured against.
#pragma once

#include <memory>

#include "bench/work_net.h"
#include "heddle/executor.h"

namespace heddle::bench {

class Runner {
 public:
  virtual ~Runner() = default;
  virtual const char* name() const = 0;
  virtual void run() = 0;
};

// A loop over function pointers: nothing checked, nothing counted.
std::unique_ptr<Runner> plain_loop(const WorkNet& net);
// The scheduler in automatic mode.
std::unique_ptr<Runner> heddle_scheduler(const WorkNet& net, Executor& executor);
// oneTBB's flow graph: a continue_node a step.
std::unique_ptr<Runner> flow_graph(const WorkNet& net, int threads);
// oneTBB's task_group with atomic counters of pending predecessors; the ready successor with the longest remaining path is run inline.
std::unique_ptr<Runner> tbb_counters(const WorkNet& net, int threads);

}  // namespace heddle::bench
