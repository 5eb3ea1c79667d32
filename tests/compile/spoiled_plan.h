// A copy of a plan that tests can change.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compile/plan.h"

namespace heddle::testing_nets {

// Copies the parts that the judge reads; steps have no kernel states.
inline Plan copy_of(const Plan& plan) {
  Plan copy;
  copy.net_name = plan.net_name;
  copy.registry = plan.registry;
  copy.values = plan.values;
  copy.graph = plan.graph;
  copy.inputs = plan.inputs;
  copy.outputs = plan.outputs;
  copy.constants = plan.constants;
  copy.variables = plan.variables;
  copy.extent_slots = plan.extent_slots;
  copy.arena_bytes = plan.arena_bytes;
  copy.thread_scratch_bytes = plan.thread_scratch_bytes;
  copy.max_threads = plan.max_threads;
  copy.staging_bytes = plan.staging_bytes;
  copy.output_staging = plan.output_staging;
  copy.memory = plan.memory;
  copy.has_variable_updates = plan.has_variable_updates;
  for (const PlanStep& step : plan.steps) {
    PlanStep& s = copy.steps.emplace_back();
    s.name = step.name;
    s.domain = step.domain;
    s.type = step.type;
    s.inputs = step.inputs;
    s.outputs = step.outputs;
    s.scratch_bytes = step.scratch_bytes;
    s.scratch_offset = step.scratch_offset;
    s.thread_scratch_bytes = step.thread_scratch_bytes;
    s.late = step.late;
    s.updates_variable = step.updates_variable;
    s.nested = step.nested;
    s.fused = step.fused;
  }
  return copy;
}

// A plan to corrupt, with access by the names of the net.
struct Spoiled {
  Plan plan;

  uint32_t number(const std::string& name) const {
    const auto it = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) { return s.name == name; });
    EXPECT_NE(it, plan.steps.end()) << name;
    return static_cast<uint32_t>(it - plan.steps.begin());
  }
  PlanStep& step(const std::string& name) { return plan.steps[number(name)]; }
  ValueId id(const std::string& name) const {
    const auto it = std::find_if(plan.values.begin(), plan.values.end(), [&](const PlanValue& v) { return v.name == name; });
    EXPECT_NE(it, plan.values.end()) << name;
    return ValueId(static_cast<size_t>(it - plan.values.begin()));
  }
  PlanValue& value(const std::string& name) { return plan.values[id(name).index]; }
  MemoryPlace& place(const std::string& name) { return value(name).place; }

  using Edges = std::vector<std::vector<uint32_t>>;
  void change_edges(const std::function<void(Edges&)>& change) {
    StepGraph& graph = plan.graph;
    Edges edges(graph.count);
    for (uint32_t s = 0; s < graph.count; ++s)
      edges[s].assign(graph.successors.begin() + graph.successor_begin[s], graph.successors.begin() + graph.successor_begin[s + 1]);
    change(edges);
    graph.successor_begin = {0};
    graph.successors.clear();
    graph.predecessor_count.assign(graph.count, 0);
    for (const std::vector<uint32_t>& list : edges) {
      graph.successors.insert(graph.successors.end(), list.begin(), list.end());
      graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
      for (const uint32_t to : list) ++graph.predecessor_count[to];
    }
  }
  void add_edge(const std::string& from, const std::string& to) {
    change_edges([&](Edges& edges) { edges[number(from)].push_back(number(to)); });
  }
  void remove_edge(const std::string& from, const std::string& to) {
    change_edges([&](Edges& edges) { EXPECT_EQ(std::erase(edges[number(from)], number(to)), 1u) << from << " to " << to; });
  }
  // Gives `taker` the bytes of `given`.
  void take_over(const std::string& taker, const std::string& given) {
    place(taker) = place(given);
    fit();
  }
  void move(const std::string& moved, const std::string& onto, int64_t by = 0) {
    place(moved).offset = place(onto).offset + by;
    fit();
  }
  void scratch(const std::string& name, int64_t bytes, int64_t offset) {
    step(name).scratch_bytes = bytes;
    step(name).scratch_offset = offset;
  }
  // Makes the arena as large as it must be again.
  void fit() {
    int64_t top = 0;
    for (const PlanValue& v : plan.values)
      if (v.place.kind == MemoryPlace::Kind::arena) top = std::max(top, (v.place.offset + v.type.byte_size() + 63) / 64 * 64);
    for (const PlanStep& s : plan.steps) top = std::max(top, s.scratch_offset + (s.scratch_bytes + 63) / 64 * 64);
    report(top);
  }
  void report(int64_t arena_bytes) {
    plan.arena_bytes = plan.memory.arena_bytes = arena_bytes;
    plan.memory.peak_bytes = plan.context_bytes();
  }
};

}  // namespace heddle::testing_nets
