#include "commands/plan/plan_text.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "common/device_options.h"

namespace heddle::tool {
namespace {

std::string operand_text(const Plan& plan, const Operand& operand) {
  if (!operand.value.valid()) return "-";
  const PlanValue& v = plan.values[operand.value.index];
  return word(v.name) + ":" + to_string(v.type.dtype) + v.type.shape.text() + (v.layout.rank ? "/" + layout_text(v.layout) : "");
}

Json placement_json(const PlanValue& v) {
  static constexpr const char* kinds[] = {"none", "arena", "constant", "input", "variable", "unplanned"};
  Json shape = Json::array();
  for (const int64_t d : v.type.shape) shape.push_back(d);
  return {{"name", v.name},
          {"dtype", to_string(v.type.dtype)},
          {"shape", shape},
          {"layout", layout_text(v.layout)},
          {"placement", kinds[static_cast<size_t>(v.placement.kind)]},
          {"offset_bytes", v.placement.kind == Placement::Kind::arena ? Json(v.placement.offset) : Json(nullptr)},
          {"size_bytes", v.type.byte_size()}};
}

Json step_json(const Plan& plan, size_t i) {
  const PlanStep& s = plan.steps[i];
  Json inputs = Json::array(), outputs = Json::array(), successors = Json::array();
  for (const Operand& o : s.inputs) inputs.push_back(o.value.valid() ? placement_json(plan.values[o.value.index]) : Json(nullptr));
  for (const Operand& o : s.outputs) outputs.push_back(o.value.valid() ? placement_json(plan.values[o.value.index]) : Json(nullptr));
  for (uint32_t e = plan.graph.successor_begin[i]; e < plan.graph.successor_begin[i + 1]; ++e)
    successors.push_back(plan.graph.successors[e]);
  return {{"index", i},
          {"name", s.name},
          {"type", s.type},
          {"kernel", s.kernel->name},
          {"device", s.device},
          {"stream", s.on_device ? s.on_device->stream : 0},
          {"waits_for_events", s.on_device ? Json(s.on_device->waits) : Json::array()},
          {"records_event", s.on_device && s.on_device->records >= 0 ? Json(s.on_device->records) : Json(nullptr)},
          {"tiles", s.tiles},
          {"bytes", s.bytes},
          {"flops", s.flops ? Json(*s.flops) : Json(nullptr)},
          {"fused", s.fused},
          {"late", s.late},
          {"scratch_bytes", s.scratch_bytes},
          {"thread_scratch_bytes", s.thread_scratch_bytes},
          {"inputs", inputs},
          {"outputs", outputs},
          {"successors", successors},
          {"tail", i >= plan.graph.tail_begin}};
}

bool in_host_arena(const PlanValue& v) {
  return v.placement.kind == Placement::Kind::arena && v.placement.device == 0;
}

struct Life {
  size_t first = SIZE_MAX, last = 0;
};

// First and last step that touches each arena storage, by the storage's index.
std::map<uint32_t, Life> lives_of(const Plan& plan) {
  std::map<uint32_t, Life> lives;
  const auto touch = [&](ValueId id, size_t step) {
    if (!id.valid() || !in_host_arena(plan.values[id.index])) return;
    Life& life = lives[plan.values[id.index].placement.index];
    life.first = std::min(life.first, step);
    life.last = std::max(life.last, step + 1);
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Operand& o : plan.steps[i].inputs) touch(o.value, i);
    for (const Operand& o : plan.steps[i].outputs) touch(o.value, i);
  }
  for (const ValueId id : plan.outputs) touch(id, plan.steps.size());
  return lives;
}

std::string fixed(double value) {
  return shortest(static_cast<float>(static_cast<int64_t>(value * 100)) / 100);
}

std::string memory_text(const std::string& device, const MemoryReport& m) {
  return device + ": peak " + std::to_string(m.peak_bytes) + " bytes (" + human_bytes(m.peak_bytes) + "), lower bound " +
         std::to_string(m.lower_bound_bytes) + " (" + m.lower_bound_kind + "), without sharing " + human_bytes(m.sum_bytes) +
         ", constants " + human_bytes(m.persistent_bytes) + ", scratch " + human_bytes(m.scratch_bytes);
}

}  // namespace

std::string escape_xml(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

Json plan_json(const Plan& plan, const StageTimes& t) {
  Json steps = Json::array(), reorders = Json::array(), copies = Json::array();
  for (size_t i = 0; i < plan.steps.size(); ++i) steps.push_back(step_json(plan, i));
  for (const LayoutChange& r : plan.reorders) reorders.push_back({{"value", r.value}, {"from", r.from}, {"to", r.to}, {"bytes", r.bytes}});
  for (const ValueCopy& c : plan.copies) copies.push_back({{"value", c.value}, {"from", c.from}, {"to", c.to}, {"bytes", c.bytes}});
  return {{"steps", steps},
          {"devices", devices_json(plan,
                                   [](const MemoryReport& m, uint8_t) -> Json {
                                     return {{"peak_bytes", m.peak_bytes},
                                             {"lower_bound_bytes", m.lower_bound_bytes},
                                             {"lower_bound_kind", m.lower_bound_kind},
                                             {"sum_bytes", m.sum_bytes},
                                             {"persistent_bytes", m.persistent_bytes},
                                             {"scratch_bytes", m.scratch_bytes}};
                                   })},
          {"copies", copies},
          {"reorders", reorders},
          {"captured_segments", Json::array()},
          {"stages_ns",
           {{"load", t.load_ns},
            {"resolve", t.resolve_ns},
            {"infer", t.infer_ns},
            {"transform", t.transform_ns},
            {"verify", t.verify_ns},
            {"compile", t.compile_ns},
            {"prepare", t.prepare_ns}}}};
}

std::string plan_text(const Plan& plan) {
  std::string out;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    out += std::to_string(i) + " " + quoted(s.name) + " " + word(s.type) + " kernel " + word(s.kernel->name) + " on " + word(s.device) +
           " tiles " + std::to_string(s.tiles) + (s.flops ? " flops " + shortest(*s.flops) : "");
    if (!s.fused.empty()) out += " fused " + words(s.fused, "+");
    if (s.late) out += " late";
    if (const DeviceWork* work = s.on_device.get()) {
      out += " stream " + std::to_string(work->stream);
      for (const uint32_t event : work->waits) out += " waits for event " + std::to_string(event);
      if (work->records >= 0) out += " records event " + std::to_string(work->records);
    }
    out += "\n   ";
    for (const Operand& o : s.inputs) out += " " + operand_text(plan, o);
    out += " ->";
    for (const Operand& o : s.outputs) {
      out += " " + operand_text(plan, o);
      if (o.value.valid() && plan.values[o.value.index].placement.kind == Placement::Kind::arena)
        out += " @" + std::to_string(plan.values[o.value.index].placement.offset);
    }
    out += "\n";
  }
  for (const LayoutChange& r : plan.reorders)
    out += "reorder " + quoted(r.value) + " " + r.from + " -> " + r.to + " " + human_bytes(r.bytes) + "\n";
  for (const ValueCopy& c : plan.copies)
    out += "copy " + quoted(c.value) + " " + word(c.from) + " -> " + word(c.to) + " " + human_bytes(c.bytes) + "\n";
  out += memory_text("cpu", plan.memory);
  for (const PlanDevice& d : plan.devices) out += "\n" + memory_text(d.device->name(), d.memory);
  return out;
}

std::string plan_dot(const Plan& plan) {
  std::string out = "digraph " + quoted(plan.net_name.empty() ? "net" : plan.net_name) + " {\n  node [shape=box];\n";
  for (size_t i = 0; i < plan.steps.size(); ++i)
    out += "  s" + std::to_string(i) + " [label=" + quoted(plan.steps[i].name + " (" + plan.steps[i].type + ")") + "];\n";
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (uint32_t e = plan.graph.successor_begin[i]; e < plan.graph.successor_begin[i + 1]; ++e)
      out += "  s" + std::to_string(i) + " -> s" + std::to_string(plan.graph.successors[e]) + ";\n";
  return out + "}\n";
}

std::string plan_svg(const Plan& plan) {
  constexpr double width = 1200, height = 600, left = 10, top = 40;
  const double steps = std::max<double>(1, static_cast<double>(plan.steps.size()) + 1);
  const double bytes = std::max<double>(1, static_cast<double>(plan.arena_bytes));
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(width + 2 * left) + "\" height=\"" +
                    fixed(height + 2 * top) + "\" font-family=\"sans-serif\" font-size=\"11\">\n<text x=\"10\" y=\"20\">" +
                    escape_xml(plan.net_name) + ": " + std::to_string(plan.steps.size()) + " steps, arena " +
                    human_bytes(plan.arena_bytes) + ", lower bound " + human_bytes(plan.memory.lower_bound_bytes) +
                    " (time goes right, addresses go down)</text>\n";
  const auto rectangle = [&](double first, double last, double offset, double size, const std::string& colour, const std::string& title) {
    out += "<rect x=\"" + fixed(left + first / steps * width) + "\" y=\"" + fixed(top + offset / bytes * height) + "\" width=\"" +
           fixed((last - first) / steps * width) + "\" height=\"" + fixed(std::max(0.5, size / bytes * height)) + "\" fill=\"" + colour +
           "\" stroke=\"#333\" stroke-width=\"0.4\"><title>" + escape_xml(title) + "</title></rect>\n";
  };
  const std::map<uint32_t, Life> lives = lives_of(plan);
  std::map<uint32_t, const PlanValue*> shown;
  for (const PlanValue& v : plan.values)
    if (in_host_arena(v)) shown.try_emplace(v.placement.index, &v);
  for (const auto& [storage, life] : lives) {
    const PlanValue& v = *shown[storage];
    const std::string colour = "hsl(" + std::to_string(storage * 47 % 360) + ",60%,70%)";
    rectangle(static_cast<double>(life.first), static_cast<double>(life.last), static_cast<double>(v.placement.offset),
              static_cast<double>(v.type.byte_size()), colour,
              v.name + " " + v.type.shape.text() + " " + human_bytes(v.type.byte_size()) + " steps " + std::to_string(life.first) + "-" +
                  std::to_string(life.last - 1));
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].scratch_bytes > 0 && !plan.steps[i].on_device)
      rectangle(static_cast<double>(i), static_cast<double>(i + 1), static_cast<double>(plan.steps[i].scratch_offset),
                static_cast<double>(plan.steps[i].scratch_bytes), "#999", "scratch of " + plan.steps[i].name);
  return out + "</svg>\n";
}

}  // namespace heddle::tool
