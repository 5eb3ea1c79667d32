#include "charts/net_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/device_name.h"
#include "base/text/text.h"
#include "charts/graph_layout.h"
#include "charts/svg.h"

namespace heddle::tool {
namespace {

constexpr double small = 10, line_space = 13, inner_gap = 8, max_width = 260;
constexpr size_t max_boxes = 600, max_boxes_by_graphviz = 300;

struct NetPicture;

// The content of one box.
struct Box {
  std::vector<std::string> lines;
  std::string classes, title;
  std::vector<NetPicture> subnets;  // below the lines, beside each other
};

struct NetPicture {
  std::string name;
  std::vector<Box> boxes;  // as in `layout`
  std::vector<char> red;   // lines of `layout` from or to a copy
  GraphLayout layout;
};

bool is_copy(const PlanInfo::Step& step) {
  return step.type == "heddle::Copy" || step.type == "Copy";
}

std::string value_text(const PlanInfo::Value& value) {
  return fmt::format("{}{}", to_string(value.dtype), value.shape.text());
}

// Builds the picture of one plan, those of its subnets first.
class Builder {
 public:
  Builder(const PlanInfo& plan, Graphviz& graphviz) : plan_(plan), graphviz_(graphviz) {}

  NetPicture build() {
    made_.name = plan_.net;
    const size_t steps = plan_.steps.size(), together = std::max<size_t>(1, (steps + max_boxes - 1) / max_boxes);
    add_inputs();
    for (size_t begin = 0; begin < steps; begin += together) add_steps(begin, std::min(steps, begin + together));
    add_outputs();
    for (const auto& [from, to] : lines_) {
      made_.layout.lines.push_back({from, to, {}});
      made_.red.push_back(made_.boxes[from].classes == "copy" || made_.boxes[to].classes == "copy");
    }
    for (const Box& box : made_.boxes) made_.layout.boxes.push_back(size_of(box));
    if (made_.boxes.size() > max_boxes_by_graphviz || !graphviz_.lay_out(made_.layout)) lay_out_in_layers(made_.layout);
    return std::move(made_);
  }

 private:
  size_t add(Box box) {
    made_.boxes.push_back(std::move(box));
    return made_.boxes.size() - 1;
  }

  void add_inputs() {
    std::set<size_t> used;
    for (const PlanInfo::Step& step : plan_.steps)
      for (const PlanInfo::Operand& operand : step.inputs)
        if (operand.value) used.insert(*operand.value);
    std::map<uint32_t, std::vector<size_t>> inputs;  // an input and the views of it, by its number
    for (size_t i = 0; i < plan_.values.size(); ++i)
      if (plan_.values[i].place == PlanInfo::Place::input) inputs[plan_.values[i].buffer].push_back(i);
    for (const auto& [number, views] : inputs) {
      if (std::none_of(views.begin(), views.end(), [&](size_t i) { return used.count(i) > 0; })) continue;
      const PlanInfo::Value& value = plan_.values[views.front()];
      const std::string name = fitting_text(value.name, max_width, small);
      const size_t box = add({{name, value_text(value)}, "port", fmt::format("input {} {}", value.name, value_text(value)), {}});
      for (const size_t i : views) producer_[i] = box;
    }
  }

  // One step, or several together in a box.
  void add_steps(size_t begin, size_t end) {
    if (end == begin + 1 && plan_.steps[begin].type == "Fence") return;  // the host waits there: no operator
    const size_t box = add(end == begin + 1 ? box_of(begin) : box_of(begin, end));
    for (size_t i = begin; i < end; ++i) {
      for (const PlanInfo::Operand& operand : plan_.steps[i].inputs) {
        const std::optional<size_t> from = operand.value ? source_of(*operand.value) : std::nullopt;
        if (from && *from != box) lines_.emplace(*from, box);
      }
      for (const PlanInfo::Operand& operand : plan_.steps[i].outputs) {
        if (!operand.value) continue;
        const PlanInfo::Value& value = plan_.values[*operand.value];
        producer_[*operand.value] = box;
        if (value.place == PlanInfo::Place::arena) last_writer_[{value.device, value.buffer}] = box;
      }
    }
  }

  // Returns the box that a value comes from. No step makes a view: it comes from the step that last wrote the buffer whose bytes it has.
  std::optional<size_t> source_of(size_t index) const {
    if (const auto found = producer_.find(index); found != producer_.end()) return found->second;
    const PlanInfo::Value& value = plan_.values[index];
    const auto writer = last_writer_.find({value.device, value.buffer});
    if (value.place != PlanInfo::Place::arena || writer == last_writer_.end()) return std::nullopt;
    return writer->second;
  }

  Box box_of(size_t i) const {
    const PlanInfo::Step& step = plan_.steps[i];
    Box box;
    std::string type = step.type;
    for (const std::string& fused : step.fused_types) type += fmt::format(" + {}", fused);
    box.lines = {fitting_text(step.name, max_width, small), fitting_text(type, max_width, small)};
    std::vector<std::string> outputs;
    for (const PlanInfo::Operand& operand : step.outputs)
      if (operand.value) outputs.push_back(value_text(plan_.values[*operand.value]));
    if (!outputs.empty()) box.lines.push_back(fitting_text(join(outputs, ", "), max_width, small));
    box.classes = is_copy(step) ? "copy" : device_class(step.device);
    box.title = fmt::format("step {}: {} ({}) by {} on {}{}, {} bytes{}", i, step.name, step.type, step.kernel, step.device,
                            step.fused.empty() ? std::string() : fmt::format(", with {} fused into it", join(step.fused, ", ")), step.bytes,
                            step.flops ? fmt::format(", {} operations", shortest(*step.flops)) : std::string());
    for (const auto& subnet : step.subnets) box.subnets.push_back(Builder(*subnet, graphviz_).build());
    return box;
  }

  Box box_of(size_t begin, size_t end) const {
    const auto name = [&](size_t i) { return fitting_text(plan_.steps[i].name, max_width / 2, small); };
    return {{fmt::format("steps {} to {}", begin, end - 1), name(begin), fmt::format("... {}", name(end - 1))},
            device_class(plan_.steps[begin].device),
            fmt::format("{} steps from {} on", end - begin, plan_.steps[begin].name),
            {}};
  }

  void add_outputs() {
    for (const size_t output : plan_.outputs) {
      const PlanInfo::Value& value = plan_.values[output];
      const std::optional<size_t> from = source_of(output);
      const size_t box = add({{value.name, value_text(value)}, "port", fmt::format("output {} {}", value.name, value_text(value)), {}});
      if (from) lines_.emplace(*from, box);
    }
  }

  std::string device_class(const std::string& device) const {
    for (size_t d = 1; d < plan_.memory.size(); ++d)
      if (plan_.memory[d].device == device) return fmt::format("kind{}", d % 12);
    return "kind0";
  }

  static GraphBox size_of(const Box& box) {
    GraphBox size;
    for (const std::string& line : box.lines) size.width = std::max(size.width, text_width(line, small) + 12);
    size.height = line_space * static_cast<double>(box.lines.size()) + 8;
    double width = inner_gap, height = 0;
    for (const NetPicture& subnet : box.subnets) {
      width += std::max(subnet.layout.width + 2 * inner_gap, text_width(subnet.name, small) + 12) + inner_gap;
      height = std::max(height, subnet.layout.height + line_space + 2 * inner_gap);
    }
    if (box.subnets.empty()) return size;
    size.width = std::max(size.width, width);
    size.height += height + inner_gap;
    return size;
  }

  const PlanInfo& plan_;
  Graphviz& graphviz_;
  NetPicture made_;
  std::map<size_t, size_t> producer_;                          // of a value: the box
  std::map<std::pair<size_t, uint32_t>, size_t> last_writer_;  // of a buffer of a device: the box
  std::set<std::pair<size_t, size_t>> lines_;
};

void draw(Svg& svg, const NetPicture& picture, double left, double top);

void draw(Svg& svg, const Box& box, const GraphBox& at, double left, double top) {
  const double x = left + at.x, y = top + at.y - at.height / 2;
  svg.rectangle(x - at.width / 2, y, at.width, at.height, fmt::format("{} outlined", box.classes), box.title);
  for (size_t i = 0; i < box.lines.size(); ++i)
    svg.text(x, y + line_space * static_cast<double>(i + 1), box.lines[i], Anchor::middle, i == 0 ? "on small strong" : "on small");
  double inner = x - at.width / 2 + inner_gap;
  const double begin = y + line_space * static_cast<double>(box.lines.size()) + 8;
  for (const NetPicture& subnet : box.subnets) {
    const double width = std::max(subnet.layout.width + 2 * inner_gap, text_width(subnet.name, small) + 12);
    svg.rectangle(inner, begin, width, subnet.layout.height + line_space + 2 * inner_gap, "paper outlined");
    svg.text(inner + 6, begin + line_space - 1, subnet.name, Anchor::start, "small");
    draw(svg, subnet, inner + (width - subnet.layout.width) / 2, begin + line_space + inner_gap);
    inner += width + inner_gap;
  }
}

void draw(Svg& svg, const NetPicture& picture, double left, double top) {
  svg.begin_group(fmt::format("transform=\"translate({} {})\"", coordinate(left), coordinate(top)));
  for (size_t i = 0; i < picture.layout.lines.size(); ++i) svg.path(picture.layout.lines[i].path, picture.red[i] ? "edge red" : "edge");
  svg.end_group();
  for (size_t i = 0; i < picture.boxes.size(); ++i) draw(svg, picture.boxes[i], picture.layout.boxes[i], left, top);
}

}  // namespace

std::string net_chart(const PlanInfo& plan) {
  constexpr double margin_of_net = 12, min_width = 420;
  Graphviz graphviz;
  const NetPicture picture = Builder(plan, graphviz).build();
  Svg svg(std::max(picture.layout.width + 2 * margin_of_net, min_width));
  double top = 20;
  svg.text(
      margin_of_net, top,
      fitting_text(fmt::format("{}: {}", plan.net.empty() ? "net" : plan.net, counted(static_cast<int64_t>(plan.steps.size()), "step")),
                   svg.width() - 2 * margin_of_net, 14),
      Anchor::start, "title");
  top += 20;
  double at = margin_of_net;
  const auto explain = [&](const std::string& classes, const std::string& what) {
    svg.rectangle(at, top - 9, 11, 11, fmt::format("{} outlined", classes));
    svg.text(at + 15, top, what, Anchor::start, "small");
    at += 15 + text_width(what, small) + 12;
  };
  for (size_t d = 0; d < plan.memory.size(); ++d) explain(fmt::format("kind{}", d % 12), plan.memory[d].device);
  if (std::any_of(plan.steps.begin(), plan.steps.end(), is_copy)) explain("copy", "copy");
  explain("port", "input or output");
  top += 14;
  draw(svg, picture, (svg.width() - picture.layout.width) / 2, top);
  return std::move(svg).finish(top + picture.layout.height + margin_of_net, fmt::format("The operators of {}", plan.net), "net", true);
}

}  // namespace heddle::tool
