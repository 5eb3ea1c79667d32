// A bench graph as a net in a .heddle file, run through Session::run as any program would.
#pragma once

#include <string>
#include <vector>

#include "bench/bench_graphs.h"
#include "bench/work_net.h"
#include "heddle/session.h"

namespace heddle::bench {

// Writes `graph` as a net of bench::Work operators, or of bench::DeclaredWork if `declared_ns` is above 0.
void save_graph(const BenchGraph& graph, const std::string& path, double declared_ns = 0);

class SessionNet {
 public:
  // Opens the file and compiles it; runs nothing yet. `amounts` must outlive the net. Ends the program with a message if something fails.
  SessionNet(const Runtime& runtime, const BenchGraph& graph, const std::string& path, Amounts& amounts, bool share_memory = true);
  void run();
  // Runs once and returns all outputs of the net: the results of the steps that have no readers, in plan order.
  std::vector<float> results();

 private:
  Session session_;
  TensorView inputs_[2];
  std::vector<float> values_;
  std::vector<TensorView> outputs_;
};

}  // namespace heddle::bench
