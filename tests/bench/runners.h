// Ways to run a bench graph: Heddle's sessions, and the runners that they are compared with.
#pragma once

#include <memory>

#include "bench/session_net.h"
#include "bench/work_net.h"

namespace heddle::bench {

class Runner {
 public:
  virtual ~Runner() = default;
  virtual const char* name() const = 0;
  virtual void run() = 0;
};

// A loop over function pointers, without any checks or counters.
std::unique_ptr<Runner> plain_loop(const WorkNet& net);
// Session::run, with everything that it does.
std::unique_ptr<Runner> heddle_session(SessionNet& net);
// oneTBB's flow graph, with one continue_node for each step.
std::unique_ptr<Runner> flow_graph(const WorkNet& net, int threads);
// oneTBB's task_group with atomic counters of pending predecessors; the ready successor with the longest remaining path is run inline.
std::unique_ptr<Runner> tbb_counters(const WorkNet& net, int threads);

}  // namespace heddle::bench
