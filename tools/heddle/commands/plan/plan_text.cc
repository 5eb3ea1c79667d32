#include "commands/plan/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "options/device_options.h"

namespace heddle::tool {
namespace {

std::string operand_text(const PlanInfo& plan, const PlanInfo::Operand& operand) {
  if (!operand.value) return "-";
  const PlanInfo::Value& v = plan.values[*operand.value];
  return fmt::format("{}:{}{}{}", word(v.name), to_string(v.dtype), v.shape.text(), v.layout != "row-major" ? "/" + v.layout : "");
}

Json value_json(const PlanInfo::Value& v) {
  static constexpr const char* kinds[] = {"none", "arena", "constant", "input", "variable", "unplanned"};
  Json shape = Json::array();
  for (const int64_t d : v.shape) shape.push_back(d);
  return {{"name", v.name},
          {"dtype", to_string(v.dtype)},
          {"shape", shape},
          {"layout", v.layout},
          {"placement", kinds[static_cast<size_t>(v.place)]},
          {"offset_bytes", v.place == PlanInfo::Place::arena ? Json(v.offset) : Json(nullptr)},
          {"size_bytes", v.bytes}};
}

Json steps_json(const PlanInfo& plan);

// The plans of the step's subnets.
Json subnets_json(const PlanInfo::Step& step) {
  Json all = Json::array();
  for (const auto& subnet : step.subnets) all.push_back({{"net", subnet->net}, {"steps", steps_json(*subnet)}});
  return all;
}

Json step_json(const PlanInfo& plan, size_t i) {
  const PlanInfo::Step& s = plan.steps[i];
  Json inputs = Json::array(), outputs = Json::array();
  Json at_enqueue = Json::array();
  for (const PlanInfo::Operand& o : s.inputs) {
    inputs.push_back(o.value ? value_json(plan.values[*o.value]) : Json(nullptr));
    if (o.at_enqueue) at_enqueue.push_back(plan.values[*o.value].name);
  }
  for (const PlanInfo::Operand& o : s.outputs) outputs.push_back(o.value ? value_json(plan.values[*o.value]) : Json(nullptr));
  return {{"index", i},
          {"name", s.name},
          {"type", s.type},
          {"kernel", s.kernel},
          {"device", s.device},
          {"stream", s.stream},
          {"waits_for_events", s.waits},
          {"records_event", s.records ? Json(*s.records) : Json(nullptr)},
          {"tiles", s.tiles},
          {"bytes", s.bytes},
          {"flops", s.flops ? Json(*s.flops) : Json(nullptr)},
          {"fused", s.fused},
          {"late", s.late},
          {"scratch_bytes", s.scratch_bytes},
          {"thread_scratch_bytes", s.thread_scratch_bytes},
          {"inputs", inputs},
          {"outputs", outputs},
          {"reads_at_enqueue", at_enqueue},
          {"successors", s.successors},
          {"subnets", subnets_json(s)},
          {"tail", s.tail}};
}

Json steps_json(const PlanInfo& plan) {
  Json steps = Json::array();
  for (size_t i = 0; i < plan.steps.size(); ++i) steps.push_back(step_json(plan, i));
  return steps;
}

std::string fixed(double value) {
  return shortest(static_cast<float>(static_cast<int64_t>(value * 100)) / 100);
}

std::string memory_text(const PlanInfo::Memory& m) {
  return fmt::format("{}: peak {} bytes ({}), lower bound {} ({}), without sharing {}, constants {}, scratch {}{}", m.device, m.peak_bytes,
                     human_bytes(m.peak_bytes), m.lower_bound_bytes, m.lower_bound_kind, human_bytes(m.sum_bytes),
                     human_bytes(m.persistent_bytes), human_bytes(m.scratch_bytes),
                     m.pinned_bytes > 0 ? fmt::format(", pinned {}", human_bytes(m.pinned_bytes)) : "");
}

// Steps that do not compute: those that only move values, or only mark a point of a stream.
bool is_transfer(const PlanInfo::Step& step) {
  return step.type == "heddle::Copy" || step.type == "Copy" || step.auxiliary;
}

// A step that a thread of the host runs, in a plan where steps are on devices too.
struct HostStep {
  size_t index = 0;
  bool between = false;  // after the first step that computes on a device, and before the last
  std::string reason;    // the reason that placement gave; empty: none
};

// None in a plan for the host alone.
std::vector<HostStep> host_steps(const PlanInfo& plan) {
  size_t first = plan.steps.size(), last = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!plan.steps[i].on_stream || is_transfer(plan.steps[i])) continue;
    first = std::min(first, i);
    last = i;
  }
  std::vector<HostStep> all;
  bool for_a_device = plan.memory.size() > 1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].on_stream) continue;
    all.push_back({i, first < i && i < last, {}});
    const std::string& name = plan.steps[i].name;
    for (const Diagnostic& said : plan.warnings)
      if ((said.node == name && said.code == Code::no_kernel) ||
          (said.code == Code::wrong_device && (said.node == name || said.message.find(quoted(name)) != std::string::npos)))
        all.back().reason = said.message;
    for_a_device = for_a_device || !all.back().reason.empty();
  }
  return for_a_device ? all : std::vector<HostStep>();
}

// How many streams and events the steps of each device have.
std::string queues_text(const PlanInfo& plan) {
  std::string out;
  for (size_t d = 1; d < plan.memory.size(); ++d) {
    uint32_t streams = 0, events = 0;
    for (const PlanInfo::Step& step : plan.steps) {
      if (!step.on_stream || step.device != plan.memory[d].device) continue;
      streams = std::max(streams, step.stream + 1);
      events += step.records ? 1 : 0;
    }
    out += fmt::format("{} streams {} events {}\n", plan.memory[d].device, streams, events);
  }
  return out;
}

Json host_steps_json(const PlanInfo& plan) {
  Json all = Json::array();
  for (const HostStep& step : host_steps(plan))
    all.push_back({{"index", step.index},
                   {"name", plan.steps[step.index].name},
                   {"type", plan.steps[step.index].type},
                   {"between_device_steps", step.between},
                   {"reason", step.reason.empty() ? Json(nullptr) : Json(step.reason)}});
  return all;
}

std::string host_steps_text(const PlanInfo& plan) {
  const std::vector<HostStep> all = host_steps(plan);
  if (all.empty() && plan.memory.size() < 2) return {};
  const auto between = std::count_if(all.begin(), all.end(), [](const HostStep& step) { return step.between; });
  std::string out = fmt::format("host steps {}, between the first and the last step of a device {}\n", all.size(), between);
  for (const HostStep& step : all) {
    const std::string reason = step.reason.empty() ? "" : fmt::format(": {}", printable_line(step.reason));
    const PlanInfo::Step& s = plan.steps[step.index];
    out += fmt::format("  {} {} {}{}\n", step.index, quoted(s.name), word(s.type), reason);
  }
  return out;
}

}  // namespace

Json collectives_json(const PlanInfo& plan) {
  Json all = Json::array();
  for (const PlanInfo::Collective& c : plan.collectives)
    all.push_back({{"name", c.name},
                   {"device", c.device},
                   {"communicator", c.communicator},
                   {"signature", c.signature},
                   {"tensors", c.tensors},
                   {"bytes", c.bytes}});
  return all;
}

Json communicators_json(const PlanInfo& plan) {
  Json all = Json::array();
  for (const PlanInfo::CommunicatorUse& c : plan.communicators)
    all.push_back({{"name", c.name}, {"collectives_hash", fmt::format("{:016x}", c.hash)}, {"devices", c.devices}, {"buckets", c.buckets}});
  return all;
}

std::string collectives_text(const PlanInfo& plan) {
  std::string out;
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    const PlanInfo::Collective& c = plan.collectives[i];
    out += fmt::format("collective {} {} on {}: {} in {}, {}\n", i, quoted(c.name), word(c.device), human_bytes(c.bytes),
                       counted(c.tensors, "tensor"), printable_line(c.signature));
  }
  for (const PlanInfo::CommunicatorUse& c : plan.communicators)
    out += fmt::format("communicator {} {}collectives {:016x}\n", quoted(c.name),
                       c.devices.empty() ? std::string() : fmt::format("on {}, ", join(c.devices, ", ")), c.hash) +
           (c.buckets.empty() ? std::string() : fmt::format("  {}\n", printable_line(c.buckets)));
  return out;
}

Json memory_order_json(const PlanInfo::MemoryOrder& order) {
  return {{"lag", order.lag},
          {"edges", order.edges},
          {"length_ns", order.length_ns},
          {"length_without_ns", order.length_without_ns},
          {"arena_bytes", order.arena_bytes},
          {"arena_bytes_without", order.arena_bytes_without}};
}

// Empty where no order is there for memory's sake.
std::string memory_order_text(const PlanInfo::MemoryOrder& order) {
  if (order.lag == 0) return {};
  return fmt::format(
      "order: no step begins before the one {} places before it is done ({} edges); arena {} instead of {}, simulated length "
      "{} of that without\n",
      order.lag, order.edges, human_bytes(order.arena_bytes), human_bytes(order.arena_bytes_without),
      fixed(order.length_without_ns > 0 ? order.length_ns / order.length_without_ns : 1));
}

Json plan_json(const PlanInfo& plan) {
  Json reorders = Json::array(), copies = Json::array();
  for (const PlanInfo::Change& r : plan.reorders)
    reorders.push_back({{"value", r.value}, {"from", r.from}, {"to", r.to}, {"bytes", r.bytes}});
  for (const PlanInfo::Change& c : plan.copies) copies.push_back({{"value", c.value}, {"from", c.from}, {"to", c.to}, {"bytes", c.bytes}});
  return {{"steps", steps_json(plan)},
          {"devices", devices_json(plan,
                                   [](const PlanInfo::Memory& m, size_t) -> Json {
                                     return {{"peak_bytes", m.peak_bytes},
                                             {"lower_bound_bytes", m.lower_bound_bytes},
                                             {"lower_bound_kind", m.lower_bound_kind},
                                             {"sum_bytes", m.sum_bytes},
                                             {"persistent_bytes", m.persistent_bytes},
                                             {"scratch_bytes", m.scratch_bytes},
                                             {"pinned_bytes", m.pinned_bytes},
                                             {"described", m.described.empty() ? Json(nullptr) : Json(m.described)}};
                                   })},
          {"memory_order", memory_order_json(plan.memory_order)},
          {"copies", copies},
          {"host_steps", host_steps_json(plan)},
          {"reorders", reorders},
          {"collectives", collectives_json(plan)},
          {"communicators", communicators_json(plan)},
          {"captured_segments", Json::array()},
          {"stages_ns",
           {{"load", plan.times.load_ns},
            {"resolve", plan.times.resolve_ns},
            {"infer", plan.times.infer_ns},
            {"verify", plan.times.verify_ns},
            {"transform", plan.times.transform_ns},
            {"compile", plan.times.compile_ns},
            {"prepare", plan.times.prepare_ns}}}};
}

std::string plan_text(const PlanInfo& plan) {
  std::string out;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& s = plan.steps[i];
    out += fmt::format("{} {} {} kernel {} on {} tiles {}{}", i, quoted(s.name), word(s.type), word(s.kernel), word(s.device), s.tiles,
                       s.flops ? fmt::format(" flops {}", shortest(*s.flops)) : "");
    if (!s.fused.empty()) out += fmt::format(" fused {}", words(s.fused, "+"));
    if (s.late) out += " late";
    if (s.on_stream) out += fmt::format(" stream {}", s.stream);
    for (const uint32_t event : s.waits) out += fmt::format(" waits for event {}", event);
    if (s.records) out += fmt::format(" records event {}", *s.records);
    for (const PlanInfo::Operand& o : s.inputs)
      if (o.at_enqueue) out += fmt::format(" reads {} at enqueue", quoted(plan.values[*o.value].name));
    out += "\n   ";
    for (const PlanInfo::Operand& o : s.inputs) out += fmt::format(" {}", operand_text(plan, o));
    out += " ->";
    for (const PlanInfo::Operand& o : s.outputs) {
      out += fmt::format(" {}", operand_text(plan, o));
      if (o.value && plan.values[*o.value].place == PlanInfo::Place::arena) out += fmt::format(" @{}", plan.values[*o.value].offset);
    }
    out += "\n";
  }
  for (const PlanInfo::Change& r : plan.reorders)
    out += fmt::format("reorder {} {} -> {} {}\n", quoted(r.value), r.from, r.to, human_bytes(r.bytes));
  for (const PlanInfo::Change& c : plan.copies)
    out += fmt::format("copy {} {} -> {} {}\n", quoted(c.value), word(c.from), word(c.to), human_bytes(c.bytes));
  out += collectives_text(plan);
  out += host_steps_text(plan);
  out += queues_text(plan);
  out += memory_order_text(plan.memory_order);
  for (const PlanInfo::Memory& memory : plan.memory)
    if (!memory.described.empty()) out += fmt::format("{} is {}\n", memory.device, printable_line(memory.described));
  for (const PlanInfo::Memory& memory : plan.memory) out += (&memory == &plan.memory[0] ? "" : "\n") + memory_text(memory);
  return out;
}

std::string plan_dot(const PlanInfo& plan) {
  std::string out = fmt::format("digraph {} {{\n  node [shape=box];\n", quoted(plan.net.empty() ? "net" : plan.net));
  for (size_t i = 0; i < plan.steps.size(); ++i)
    out += fmt::format("  s{} [label={}];\n", i, quoted(fmt::format("{} ({})", plan.steps[i].name, plan.steps[i].type)));
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (const size_t successor : plan.steps[i].successors) out += fmt::format("  s{} -> s{};\n", i, successor);
  return out + "}\n";
}

}  // namespace heddle::tool
