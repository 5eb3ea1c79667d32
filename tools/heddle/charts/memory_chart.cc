#include "charts/memory_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "charts/arena_buffers.h"
#include "charts/chart_axis.h"
#include "charts/small_rectangles.h"
#include "charts/step_phase.h"
#include "charts/svg.h"

namespace heddle::tool {
namespace {

constexpr double chart_width = 1200, line_height = 17, strip_height = 16, margin = 10;
constexpr double small_text = 10;
constexpr size_t max_holders = 10;

std::string step_text(const PlanInfo& plan, size_t i) {
  const PlanInfo::Step& step = plan.steps[i];
  return fmt::format("step {}: {} ({})", i, step.name, step.type);
}

std::string bytes_text(int64_t bytes) {
  return fmt::format("{} bytes ({})", bytes, human_bytes(bytes));
}

const char* role_class(ArenaBuffer::Role role) {
  static constexpr std::array names = {"value", "gradient", "output", "scratch"};
  return names[static_cast<size_t>(role)];
}

const char* phase_class(StepPhase phase) {
  static constexpr std::array names = {"forward", "backward", "update"};
  return names[static_cast<size_t>(phase)];
}

// How a part of the picture is drawn, beside its plan.
struct PanelStyle {
  int64_t bytes = 0;                                           // that the axis has at least
  const std::map<std::string, StepChange>* changes = nullptr;  // null: no other plan is compared with it
};

// The part of the picture for one device.
class MemoryPanel {
 public:
  MemoryPanel(Svg& svg, const PlanInfo& plan, size_t device, const std::vector<StepPhase>& phases, double top, const PanelStyle& style)
      : svg_(svg),
        plan_(plan),
        memory_(plan.memory[device]),
        phases_(phases),
        buffers_(arena_buffers(plan, device, phases)),
        bytes_(byte_axis(std::max(memory_.peak_bytes, style.bytes), 6)),
        style_(style),
        top_(top) {
    for (const ChartAxis::Tick& tick : bytes_.ticks) left_ = std::max(left_, 2 * margin + text_width(tick.text));
    right_ = chart_width - margin - text_width("lower bound");
  }

  // Returns where the next part begins.
  double draw() {
    draw_heading();
    draw_steps();
    draw_axes();
    draw_bytes();
    draw_marks();
    draw_holders();
    return top_ + 2 * margin;
  }

 private:
  double x(double step) const { return left_ + step / static_cast<double>(std::max<size_t>(1, plan_.steps.size())) * (right_ - left_); }
  double y(double bytes) const { return bottom_ - bytes_.place(bytes) * (bottom_ - plot_top_); }

  void draw_heading() {
    top_ += line_height;
    svg_.text(margin, top_,
              fmt::format("{}: peak {}, lower bound {} ({}), without sharing {}", memory_.device, human_bytes(memory_.peak_bytes),
                          human_bytes(memory_.lower_bound_bytes), memory_.lower_bound_kind, human_bytes(memory_.sum_bytes)),
              Anchor::start, "title");
    top_ += line_height;
    svg_.text(
        margin, top_,
        fmt::format("{} of one context over {}. The plan holds {} of constants besides.{}",
                    memory_.described.empty() ? "Planned memory" : "Memory planned for a device that is not here,",
                    counted(static_cast<int64_t>(plan_.steps.size()), "step"), human_bytes(memory_.persistent_bytes), bound_meaning()),
        Anchor::start, "faint");
    draw_legend();
  }

  // Says what the kinds of bound are that a reader has to know: they and what is held at one step may differ.
  std::string bound_meaning() const {
    if (memory_.lower_bound_kind == "max-live") return " Lower bound: the most that is live during one step.";
    return memory_.lower_bound_kind == "antichain" ? " Lower bound: the most that is live while steps run side by side." : "";
  }

  void draw_legend() {
    std::array<bool, 4> has = {};
    for (const ArenaBuffer& buffer : buffers_.all) has[static_cast<size_t>(buffer.role)] = true;
    top_ += line_height;
    double at = margin;
    const auto explain = [&](std::string_view classes, std::string_view what) {
      svg_.rectangle(at, top_ - 10, 12, 12, classes);
      svg_.text(at + 17, top_, what, Anchor::start, "faint");
      at += 17 + text_width(what) + 14;
    };
    if (has[0]) explain("value", "value");
    if (has[1]) explain("gradient", "gradient");
    if (has[2]) explain("output", "output of the net");
    if (has[3]) explain("scratch", "scratch of a step");
    if (threads_end() > memory_.arena_bytes) explain("threads", "scratch of threads");
    if (memory_.pinned_bytes > 0) explain("pinned", "pinned, for copies");
    if (buffers_.held_bytes > 0) {
      explain("full outlined", "the peak of live values");
      explain("value held", "darker: live then");
    }
    if (!style_.changes) {
      top_ += margin;
      return;
    }
    top_ += line_height;
    at = margin;
    explain("same", "same step in both plans");
    explain("changed", "another kernel, type, shape, layout or device");
    explain("only", "step of this plan alone");
    top_ += margin;
  }

  // The class of a step in the strip: what differs from another plan, else its phase.
  const char* step_class(size_t i) const {
    static constexpr std::array names = {"same", "changed", "only"};
    if (!style_.changes) return phase_class(phases_[i]);
    const auto found = style_.changes->find(plan_.steps[i].name);
    return names[found == style_.changes->end() ? 0 : static_cast<size_t>(found->second)];
  }

  // A strip of the steps: forward, backward and update, or what differs, with their names at the pointer.
  void draw_steps() {
    const size_t steps = plan_.steps.size();
    const auto joined = static_cast<size_t>(std::ceil(static_cast<double>(steps) / 1500));
    for (size_t i = 0; i < steps;) {
      size_t end = i + 1;
      while (end < steps && end < i + joined && step_class(end) == step_class(i)) ++end;
      const std::string title = end == i + 1 ? step_text(plan_, i) : fmt::format("steps {}-{}: {} ...", i, end - 1, plan_.steps[i].name);
      svg_.rectangle(x(static_cast<double>(i)), top_, x(static_cast<double>(end)) - x(static_cast<double>(i)), strip_height,
                     fmt::format("{}{}", step_class(i), steps <= 300 ? " box" : ""), title);
      i = end;
    }
    name_phases();
    svg_.text(left_ - 7, top_ + 12, "steps", Anchor::end);
    top_ += strip_height;
    plot_top_ = top_ + 10;  // a tick at the top has room below the steps' name
    bottom_ = plot_top_ + (std::max(memory_.peak_bytes, style_.bytes) > 0 ? 300 : 40);
  }

  void name_phases() {
    const size_t steps = plan_.steps.size();
    for (size_t i = 0; i < steps && !style_.changes;) {
      size_t end = i + 1;
      while (end < steps && phases_[end] == phases_[i]) ++end;
      if (end - i == steps) return;  // there is one phase
      const double width = x(static_cast<double>(end)) - x(static_cast<double>(i));
      const char* const name = phase_class(phases_[i]);
      if (text_width(name, small_text) + 4 < width)
        svg_.text(x(static_cast<double>(i)) + width / 2, top_ + 12, name, Anchor::middle, "on small");
      i = end;
    }
  }

  void draw_axes() {
    for (const ChartAxis::Tick& tick : bytes_.ticks) {
      svg_.line(left_, y(tick.value), right_, y(tick.value), "grid");
      svg_.text(left_ - 7, y(tick.value) + 4, tick.text, Anchor::end);
    }
    const ChartAxis steps = linear_axis(0, static_cast<double>(std::max<size_t>(1, plan_.steps.size())), 10, true);
    for (const ChartAxis::Tick& tick : steps.ticks) {
      svg_.line(x(tick.value), bottom_, x(tick.value), bottom_ + 4, "axis");
      if (x(tick.value) + text_width(tick.text) / 2 < right_ + 24) svg_.text(x(tick.value), bottom_ + 17, tick.text, Anchor::middle);
    }
    svg_.text(right_ + 28, bottom_ + 17, "step");
    svg_.line(left_, plot_top_, left_, bottom_, "axis");
    svg_.line(left_, bottom_, right_, bottom_, "axis");
  }

  int64_t threads_end() const { return memory_.pinned_bytes > 0 ? memory_.peak_bytes - memory_.pinned_bytes : memory_.peak_bytes; }

  // Memory that lies beside the arena for the whole run.
  struct Band {
    int64_t from, to;
    const char *classes, *what;
  };

  void draw_bands() {
    const Band bands[] = {{memory_.arena_bytes, threads_end(), "threads", "scratch of threads"},
                          {threads_end(), memory_.peak_bytes, "pinned", "pinned memory, for copies from and to devices"}};
    const auto height = [&](const Band& band) { return y(static_cast<double>(band.from)) - y(static_cast<double>(band.to)); };
    for (const Band& band : bands)
      if (band.to > band.from)
        svg_.rectangle(left_, y(static_cast<double>(band.to)), right_ - left_, height(band), fmt::format("{} box", band.classes),
                       fmt::format("{}, {}", band.what, bytes_text(band.to - band.from)));
    if (buffers_.held_bytes > 0)
      svg_.rectangle(x(static_cast<double>(buffers_.first_full)), plot_top_,
                     x(static_cast<double>(buffers_.last_full + 1)) - x(static_cast<double>(buffers_.first_full)), bottom_ - plot_top_,
                     "full");
    for (const Band& band : bands)
      if (band.to > band.from && height(band) >= line_height)
        svg_.text((left_ + right_) / 2, y(static_cast<double>(band.to)) + height(band) / 2 + 4,
                  fmt::format("{}, {}", band.what, human_bytes(band.to - band.from)), Anchor::middle, "on small");
  }

  void draw_bytes() {
    draw_bands();
    const std::vector<char> shown = shown_buffers();
    SmallRectangles small(left_, plot_top_, right_, bottom_);
    int64_t largest = 0;
    for (size_t i = 0; i < buffers_.all.size(); ++i) {
      if (shown[i]) continue;
      const Place at = place(buffers_.all[i]);
      small.add(at.x, at.y, at.width, at.height);
      largest = std::max(largest, buffers_.all[i].bytes);
    }
    small.draw(svg_, "value",
               fmt::format("{} buffers too small to be drawn by themselves, each of at most {}", small.count(), bytes_text(largest)));
    for (size_t i = 0; i < buffers_.all.size(); ++i)
      if (shown[i]) draw_buffer(buffers_.all[i]);
  }

  // Returns by buffer whether it is drawn by itself: those that can be seen, at most the largest `max_shown`.
  std::vector<char> shown_buffers() const {
    std::vector<std::pair<double, size_t>> areas;
    for (size_t i = 0; i < buffers_.all.size(); ++i) {
      const Place at = place(buffers_.all[i]);
      if (at.width >= 1 && at.height >= 0.7) areas.emplace_back(at.width * at.height, i);
    }
    if (areas.size() > max_shown) {
      std::nth_element(areas.begin(), areas.begin() + max_shown, areas.end(), std::greater<>());
      areas.resize(max_shown);
    }
    std::vector<char> shown(buffers_.all.size());
    for (const auto& [area, i] : areas) shown[i] = 1;
    return shown;
  }

  struct Place {
    double x = 0, y = 0, width = 0, height = 0;
  };
  Place place(const ArenaBuffer& buffer) const {
    const double begin = x(static_cast<double>(buffer.first_step)), end = x(static_cast<double>(buffer.last_step + 1));
    const double low = y(static_cast<double>(buffer.offset)), high = y(static_cast<double>(buffer.offset + buffer.bytes));
    return {begin, high, end - begin, low - high};
  }
  void draw_buffer(const ArenaBuffer& buffer) {
    const Place at = place(buffer);
    const bool is_scratch = buffer.role == ArenaBuffer::Role::scratch;
    const std::string name = is_scratch ? fmt::format("scratch of {}", buffer.name) : buffer.name;
    const std::string more = buffer.others > 0 ? fmt::format(" and {} more in the same bytes", buffer.others) : "";
    svg_.rectangle(at.x, at.y, at.width, at.height, fmt::format("{}{} box", role_class(buffer.role), buffer.held ? " held" : ""),
                   fmt::format("{}{}{}, {}, at {}, steps {}-{}{}", name, is_scratch ? "" : fmt::format(" {}", buffer.type), more,
                               bytes_text(buffer.bytes), buffer.offset, buffer.first_step, buffer.last_step,
                               is_scratch ? "" : fmt::format(", written by {}", buffer.writer)));
    if (at.height < 12) return;
    const std::string shown = fitting_name(name, at.width - 4, small_text);
    if (shown.empty()) return;
    const bool two_lines = at.height >= 25 && text_width(human_bytes(buffer.bytes), small_text) + 4 < at.width;
    const double middle = at.x + at.width / 2, line = at.y + at.height / 2 + 3.5;
    svg_.text(middle, two_lines ? line - 6 : line, shown, Anchor::middle, "on small");
    if (two_lines) svg_.text(middle, line + 6, human_bytes(buffer.bytes), Anchor::middle, "on small");
  }

  // The lines of the peak and of its bound, named at their ends.
  void draw_marks() {
    const double peak = y(static_cast<double>(memory_.peak_bytes)), bound = y(static_cast<double>(memory_.lower_bound_bytes));
    svg_.line(left_, peak, right_, peak, "peak");
    svg_.line(left_, bound, right_, bound, "bound");
    if (memory_.peak_bytes == 0) return;
    const double bound_text = std::min(std::max(bound + 4, peak + 4 + line_height), bottom_);  // the axis is named below
    svg_.text(right_ + 5, std::min(peak + 4, bound_text - line_height), "peak", Anchor::start, "peaks");
    const bool is_reached = memory_.lower_bound_bytes == memory_.peak_bytes;
    svg_.text(right_ + 5, bound_text, is_reached ? "= the bound" : "lower bound", Anchor::start, "bounds");
  }

  void draw_holders() {
    top_ = bottom_ + 17;
    std::vector<const ArenaBuffer*> held;
    for (const ArenaBuffer& buffer : buffers_.all)
      if (buffer.held) held.push_back(&buffer);
    if (held.empty()) return;
    std::stable_sort(held.begin(), held.end(), [](const ArenaBuffer* a, const ArenaBuffer* b) { return a->bytes > b->bytes; });
    top_ += 1.5 * line_height;
    const std::string at = buffers_.first_full == buffers_.last_full ? step_text(plan_, buffers_.first_full)
                                                                     : fmt::format("steps {}-{}", buffers_.first_full, buffers_.last_full);
    svg_.text(margin, top_,
              fitting_text(fmt::format("Values live at their peak, {}: {} in {}, of {} for values", at, human_bytes(buffers_.held_bytes),
                                       counted(static_cast<int64_t>(held.size()), "buffer"),
                                       human_bytes(memory_.arena_bytes + memory_.pinned_bytes)),
                           chart_width - 2 * margin));
    const size_t shown = std::min(held.size(), max_holders), rows = (shown + 1) / 2;
    const double column = (chart_width - 2 * margin) / 2;
    for (size_t i = 0; i < shown; ++i) {
      const ArenaBuffer& b = *held[i];
      const double left = margin + (i < rows ? 0 : column), line = top_ + line_height * static_cast<double>(i % rows + 1);
      svg_.rectangle(left, line - 10, 12, 12, fmt::format("{} held", role_class(b.role)));
      svg_.text(left + 17 + text_width("1000.0 KiB"), line, human_bytes(b.bytes), Anchor::end);
      const std::string what =
          b.role == ArenaBuffer::Role::scratch ? fmt::format("scratch of {}", b.name) : fmt::format("{} {}", b.name, b.type);
      const std::string text = fmt::format("{}, steps {}-{}", what, b.first_step, b.last_step);
      svg_.text(left + 27 + text_width("1000.0 KiB"), line, fitting_text(text, column - 40 - text_width("1000.0 KiB")));
    }
    top_ += line_height * static_cast<double>(rows);
    if (shown == held.size()) return;
    top_ += line_height;
    svg_.text(margin, top_, fmt::format("and {} more", held.size() - shown), Anchor::start, "faint");
  }

  static constexpr size_t max_shown = 4000;  // rectangles with a title of their own
  Svg& svg_;
  const PlanInfo& plan_;
  const PlanInfo::Memory& memory_;
  const std::vector<StepPhase>& phases_;
  const ArenaBuffers buffers_;
  const ChartAxis bytes_;
  const PanelStyle style_;
  double top_, left_ = text_width("steps") + 2 * margin, right_ = 0, plot_top_ = 0, bottom_ = 0;
};

}  // namespace

namespace {

std::string title_of(const PlanInfo& plan) {
  return plan.net.empty() ? "the net" : plan.net;
}

// Draws a title and a part for each device; returns where the next thing goes.
double draw_plan(Svg& svg, const PlanInfo& plan, const std::string& title, double top, const std::map<std::string, StepChange>* changes,
                 const PlanInfo* other) {
  const std::vector<StepPhase> phases = phases_of(plan);
  svg.text(margin, top, fitting_text(title, chart_width - 2 * margin, 14), Anchor::start, "title");
  top += 6;
  for (size_t device = 0; device < plan.memory.size(); ++device) {
    PanelStyle style = {0, changes};
    for (size_t d = 0; other && d < other->memory.size(); ++d)
      if (other->memory[d].device == plan.memory[device].device) style.bytes = other->memory[d].peak_bytes;
    top = MemoryPanel(svg, plan, device, phases, top, style).draw();
  }
  return top;
}

}  // namespace

std::string memory_chart(const PlanInfo& plan) {
  Svg svg(chart_width);
  const double top = draw_plan(svg, plan, fmt::format("Memory of {}", title_of(plan)), 22, nullptr, nullptr);
  return std::move(svg).finish(top, fmt::format("The memory of {} over its steps", title_of(plan)), "memory");
}

std::string memory_chart_of_two(const ComparedPlan& first, const ComparedPlan& second) {
  Svg svg(chart_width);
  const auto name = [](const ComparedPlan& one) { return fmt::format("{} of {}", title_of(one.plan), one.name); };
  double top = draw_plan(svg, first.plan, fmt::format("Memory of {}", name(first)), 22, &first.changes, &second.plan);
  const PlanInfo::Memory &before = first.plan.memory[0], &after = second.plan.memory[0];
  const std::string times = before.peak_bytes > 0
                                ? fmt::format(", whose peak of {} is {:.2f} times that above", after.device,
                                              static_cast<double>(after.peak_bytes) / static_cast<double>(before.peak_bytes))
                                : "";
  top = draw_plan(svg, second.plan, fmt::format("Compared with {}{}", name(second), times), top + 22, &second.changes, &first.plan);
  return std::move(svg).finish(top, fmt::format("The memory of {} and of {} over their steps", name(first), name(second)), "memory");
}

}  // namespace heddle::tool
