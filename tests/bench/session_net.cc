#include "bench/session_net.h"

#include <cstdio>
#include <cstdlib>

#include "load/save.h"
#include "session/session_impl.h"
#include "session_plan.h"

namespace heddle::bench {
namespace {

void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::exit(2);
}

Session open(const Runtime& runtime, const std::string& path) {
  auto session = runtime.open(path);
  check(session.status());
  return *session;
}

}  // namespace

void save_graph(const BenchGraph& graph, const std::string& path, double declared_ns) {
  NetBuilder builder(graph.name);
  const ValueId amounts[] = {builder.input("heavy", DType::i64, Shape{1}), builder.input("light", DType::i64, Shape{1})};
  const std::vector<bool> heavy = heavy_half(graph);
  std::vector<ValueId> values;
  for (uint32_t s = 0; s < graph.count(); ++s) {
    std::vector<ValueId> inputs = {amounts[heavy[s] ? 0 : 1]};
    for (const uint32_t p : graph.predecessors[s]) inputs.push_back(values[p]);
    const std::string name = "step" + std::to_string(s);
    values.push_back(declared_ns > 0 ? builder.add1("DeclaredWork", name, inputs, {{"cost_ns", declared_ns}}, "bench")
                                     : builder.add1("Work", name, inputs, {}, "bench"));
  }
  for (const uint32_t s : sinks(graph)) builder.output(values[s]);
  check(save_net(builder.finish(), path));
}

SessionNet::SessionNet(const Runtime& runtime, const BenchGraph& graph, const std::string& path, Amounts& amounts, bool share_memory)
    : session_(open(runtime, path)), values_(sinks(graph).size()) {
  inputs_[0] = {DType::i64, Shape{1}, &amounts.heavy};
  inputs_[1] = {DType::i64, Shape{1}, &amounts.light};
  for (float& value : values_) outputs_.push_back({DType::f32, Shape{1}, &value});
  Internals::of(session_).pipeline.compile.share_memory = share_memory;
  check(session_.prepare().status());
  // No step may have been removed or merged: this many steps are to be measured.
  const size_t steps = last_plan(session_)->steps.size();
  if (steps == graph.count()) return;
  std::fprintf(stderr, "%s: %u operators became %zu steps\n", path.c_str(), graph.count(), steps);
  std::exit(2);
}

void SessionNet::run() {
  check(session_.run(inputs_, 2, outputs_.data(), 1));
}

std::vector<float> SessionNet::results() {
  for (float& value : values_) value = -1;
  check(session_.run(inputs_, 2, outputs_.data(), outputs_.size()));
  return values_;
}

}  // namespace heddle::bench
