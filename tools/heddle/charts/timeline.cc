#include "charts/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/device_name.h"
#include "base/text/text.h"
#include "charts/chart_axis.h"
#include "charts/svg.h"

namespace heddle::tool {
namespace {

constexpr uint32_t last_worker = 63;  // in whose bit of StepTime::workers all later ones are too

class Rows {
 public:
  Rows(const PlanInfo& plan, const Profile& profile, int threads) : plan_(plan), profile_(profile) {
    for (int w = 0; w < threads; ++w) row({TimelineRow::Kind::worker, w == 0 ? "worker 0, the caller" : fmt::format("worker {}", w), {}});
    for (const TileTime& range : profile.tiles) ranged_.insert(range.step);
    for (const PlanInfo::Collective& c : plan.collectives) communicators_.emplace(c.name, c.communicator);
  }

  std::vector<TimelineRow> all() && {
    for (size_t i = 0; i < profile_.steps.size(); ++i) add_step(i);
    for (const TileTime& range : profile_.tiles)
      worker(range.worker).spans.push_back({range.step, range.begin_ns, range.end_ns, range.first_tile, range.tiles});
    std::vector<TimelineRow> all;
    // Streams by name; threads and communicators stay in the order in which they were met.
    const auto key = [](const TimelineRow& row) { return std::pair(row.kind, row.kind == TimelineRow::Kind::stream ? row.name : ""); };
    std::stable_sort(rows_.begin(), rows_.end(), [&](const TimelineRow& a, const TimelineRow& b) { return key(a) < key(b); });
    for (TimelineRow& row : rows_) add_lanes(std::move(row), all);
    return all;
  }

 private:
  TimelineRow& row(TimelineRow made) {
    const auto [at, is_new] = index_.try_emplace({static_cast<int>(made.kind), made.name}, rows_.size());
    if (is_new) rows_.push_back(std::move(made));
    return rows_[at->second];
  }
  // Adds the row, and further ones for spans that began before others were over: a step that waits while its thread works on another.
  static void add_lanes(TimelineRow row, std::vector<TimelineRow>& all) {
    std::stable_sort(row.spans.begin(), row.spans.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    const size_t first = all.size();
    all.push_back({row.kind, row.name, {}});
    for (const TimelineSpan& span : row.spans) {
      size_t lane = first;
      while (lane < all.size() && !all[lane].spans.empty() && all[lane].spans.back().end_ns > span.begin_ns) ++lane;
      if (lane == all.size()) all.push_back({row.kind, fmt::format("{}, beside", row.name), {}});
      all[lane].spans.push_back(span);
    }
  }

  TimelineRow& worker(uint32_t w) {
    return row({TimelineRow::Kind::worker, w == 0 ? "worker 0, the caller" : fmt::format("worker {}", w), {}});
  }

  // The host waits for a stream in a fence, and a copy that ends on the host is a stream's too.
  static std::string stream_name(const PlanInfo::Step& step) {
    if (step.type == "Fence") return "the host waits (fences)";
    return is_host(step.device) ? fmt::format("stream {}, to {}", step.stream, step.device)
                                : fmt::format("{} stream {}", step.device, step.stream);
  }

  void add_step(size_t i) {
    const StepTime& time = profile_.steps[i];
    const PlanInfo::Step& step = plan_.steps[i];
    if (!time.ran() || ranged_.count(i) > 0) return;
    const TimelineSpan span = {i, time.begin_ns, time.end_ns, 0, 0};
    if (step.on_stream) {
      row({TimelineRow::Kind::stream, stream_name(step), {}}).spans.push_back(span);
    } else if (const auto at = communicators_.find(step.name); at != communicators_.end()) {
      row({TimelineRow::Kind::communicator, fmt::format("communicator {}", quoted(at->second)), {}}).spans.push_back(span);
    } else {
      for (uint32_t w = 0; w <= last_worker; ++w)
        if (time.workers >> w & 1) worker(w).spans.push_back(span);
    }
  }

  const PlanInfo& plan_;
  const Profile& profile_;
  std::set<size_t> ranged_;
  std::map<std::string, std::string> communicators_;  // by the name of the collective
  std::map<std::pair<int, std::string>, size_t> index_;
  std::vector<TimelineRow> rows_;
};

class TimelinePicture {
 public:
  TimelinePicture(const PlanInfo& plan, const std::vector<TimelineRow>& rows) : plan_(plan), rows_(rows) {
    for (const TimelineRow& row : rows) {
      left_ = std::max(left_, 16 + text_width(fitting_text(row.name, max_name)));
      for (const TimelineSpan& span : row.spans) last_ns_ = std::max(last_ns_, span.end_ns);
    }
    find_colours();
  }

  std::string draw() && {
    double top = 22;
    for (const TimelineRow& row : rows_) {
      draw_row(row, top);
      top += row_height;
    }
    draw_axis(top);
    top = draw_legend(top + 40);
    return std::move(svg_).finish(top, "Which thread, stream and communicator worked on what, over the time of one run", "timeline");
  }

 private:
  static constexpr double picture_width = 1200, row_height = 30, bar_height = 22, max_name = 240, small = 10;
  static constexpr size_t colours = 12;
  static constexpr double min_framed = 2;  // a frame would hide what is narrower
  double x(int64_t ns) const {
    return left_ + static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(100, last_ns_)) * (right_ - left_);
  }

  void draw_row(const TimelineRow& row, double top) {
    svg_.text(left_ - 8, top + 15, fitting_text(row.name, max_name), Anchor::end);
    svg_.rectangle(left_, top, right_ - left_, bar_height, "wait");
    for (const TimelineSpan& span : row.spans) draw_span(span, top);
  }

  void draw_span(const TimelineSpan& span, double top) {
    const PlanInfo::Step& step = plan_.steps[span.step];
    const double begin = x(span.begin_ns), width = std::max(0.3, x(span.end_ns) - begin);
    const std::string range =
        span.tiles == 0 ? std::string() : fmt::format(", tiles {}-{} of {}", span.first_tile, span.first_tile + span.tiles - 1, step.tiles);
    svg_.begin_group(fmt::format("class=\"span\" data-step=\"{}\" data-name=\"{}\"", span.step, escape_xml(step.name)));
    svg_.rectangle(
        begin, top, width, bar_height, fmt::format("{}{}", width > min_framed ? "box " : "", kind_of(step.type)),
        fmt::format("step {}: {} ({}){}, {} from {} on", span.step, step.name, step.type, range,
                    duration_text(static_cast<double>(span.end_ns - span.begin_ns)), duration_text(static_cast<double>(span.begin_ns))));
    if (const std::string name = fitting_name(step.name, width - 4, small); !name.empty())
      svg_.text(begin + width / 2, top + 14.5, name, Anchor::middle, "on small");
    svg_.end_group();
  }

  // The types that take most time have a colour each, and all others one.
  void find_colours() {
    std::map<std::string, int64_t> times;
    for (const TimelineRow& row : rows_)
      for (const TimelineSpan& span : row.spans)
        if (const std::string& type = plan_.steps[span.step].type; type != "Fence") times[type] += span.end_ns - span.begin_ns;
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [type, ns] : times) order.emplace_back(-ns, type);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) colours_[order[i].second] = i < colours ? fmt::format("kind{}", i) : "other";
  }

  // Names the colours: of each type of operator that the rows have, as far as there is room for them.
  double draw_legend(double top) {
    double at = left_;
    const auto explain = [&](const std::string& classes, const std::string& what) {
      if (at + 17 + text_width(what, small) > right_) {
        at = left_;
        top += 16;
      }
      svg_.rectangle(at, top - 9, 11, 11, classes);
      svg_.text(at + 15, top, what, Anchor::start, "small");
      at += 15 + text_width(what, small) + 12;
    };
    bool has_others = false, has_fences = false;
    for (const auto& [type, colour] : colours_)
      if (colour == "other")
        has_others = true;
      else
        explain(colour, fitting_text(type, 200, small));
    for (const TimelineRow& row : rows_)
      for (const TimelineSpan& span : row.spans) has_fences = has_fences || plan_.steps[span.step].type == "Fence";
    if (has_others) explain("other", "other types");
    if (has_fences) explain("fence", "the host waits");
    explain("wait", "idle");
    return top + 12;
  }

  std::string kind_of(const std::string& type) const {
    if (type == "Fence") return "fence";
    return colours_.at(type);
  }

  void draw_axis(double top) {
    const double unit = last_ns_ >= 10'000'000 ? 1e6 : 1e3;
    const ChartAxis axis = linear_axis(0, static_cast<double>(std::max<int64_t>(100, last_ns_)) / unit, 10);
    svg_.begin_group(fmt::format("id=\"timeline-axis\" data-end=\"{}\"", shortest(static_cast<double>(last_ns_) / unit)));
    svg_.line(left_, top, right_, top, "axis");
    for (const ChartAxis::Tick& tick : axis.ticks) {
      const double at = x(static_cast<int64_t>(tick.value * unit));
      if (at + text_width(tick.text) / 2 > right_ - text_width("xx")) continue;
      svg_.line(at, top, at, top + 4, "axis");
      svg_.text(at, top + 17, tick.text, Anchor::middle);
    }
    svg_.text(right_, top + 17, unit == 1e6 ? "ms" : "us", Anchor::end);
    svg_.end_group();
  }

  const PlanInfo& plan_;
  const std::vector<TimelineRow>& rows_;
  std::map<std::string, std::string> colours_;  // by type
  Svg svg_ = Svg(picture_width);
  int64_t last_ns_ = 0;
  double left_ = 60;
  const double right_ = picture_width - 10;
};

}  // namespace

std::vector<TimelineRow> timeline_rows(const PlanInfo& plan, const Profile& profile, int threads) {
  return Rows(plan, profile, threads).all();
}

std::string timeline_chart(const PlanInfo& plan, const std::vector<TimelineRow>& rows) {
  return TimelinePicture(plan, rows).draw();
}

std::string duration_text(double ns) {
  if (ns >= 1e9) return fmt::format("{:.2f} s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.2f} ms", ns / 1e6);
  return ns >= 1e3 ? fmt::format("{:.1f} us", ns / 1e3) : fmt::format("{:.0f} ns", ns);
}

}  // namespace heddle::tool
