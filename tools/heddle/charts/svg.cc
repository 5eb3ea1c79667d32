#include "charts/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/text.h"

namespace heddle::tool {
namespace {

// DejaVu Sans Mono is among the widest: 0.602.
constexpr double character_width = 0.61;

// Classes: paper, ink and grid; what bytes are (value, gradient, output, scratch, threads, pinned), stronger where `held` at the
// peak; on: text on these; steps (forward, backward, update, copy, wait); lines (peak, bound, series0 ...); kind0 ...: colours for any
// kinds.
constexpr std::string_view style =
    "svg.heddle{font-family:\"DejaVu Sans Mono\",\"Liberation Mono\",Menlo,Consolas,monospace;font-size:12px}"
    ".heddle .paper{fill:#fff}.heddle text{fill:#1a1a1a}.heddle .faint{fill:#5c5c5c}.heddle .title{font-size:14px;font-weight:bold}"
    ".heddle .small{font-size:10px}.heddle .axis{stroke:#606060}.heddle .grid{stroke:#e2e2e2}.heddle .edge{stroke:#8a8a8a;fill:none}"
    ".heddle .box{stroke:#fff;stroke-width:.6}.heddle text.on{fill:#111}.heddle .frame{fill:none;stroke:#8a8a8a}"
    ".heddle .value{fill:#a6cbe8}.heddle .value.held{fill:#4f9bd6}.heddle .gradient{fill:#fbd0a4}.heddle .gradient.held{fill:#f2953c}"
    ".heddle .output{fill:#aeddaa}.heddle .output.held{fill:#5bb55b}.heddle .scratch{fill:#cfcfcf}.heddle .scratch.held{fill:#9c9c9c}"
    ".heddle .threads{fill:#c3bdb0}.heddle .pinned{fill:#d5d0ea}"
    ".heddle .port{fill:#f4f4f4}.heddle .outlined{stroke:#8a8a8a}.heddle .strong{font-weight:bold}.heddle "
    ".red{stroke:#d33;stroke-width:1.5}"
    ".heddle .forward{fill:#a6cbe8}.heddle .backward{fill:#fbd0a4}.heddle .update{fill:#aeddaa}.heddle .copy{fill:#f0a3a3}"
    ".heddle .collective{fill:#c9b3e6}.heddle .other{fill:#d8d2c4}.heddle .wait{fill:#ececec}.heddle .fence{fill:#bdbdbd}.heddle "
    ".peak{stroke:#c22;stroke-width:1.5;fill:none}"
    ".heddle text.peaks{fill:#c22}.heddle text.bounds{fill:#276b27}"
    ".heddle .bound{stroke:#276b27;stroke-width:1.5;stroke-dasharray:6 4;fill:none}.heddle .full{fill:#c22;fill-opacity:.08}"
    ".heddle .same{fill:#d8d8d8}.heddle .changed{fill:#f2b33c}.heddle .only{fill:#e06a6a}"
    ".heddle .kind0{fill:#a6cbe8}.heddle .kind1{fill:#fbd0a4}.heddle .kind2{fill:#aeddaa}.heddle .kind3{fill:#e8b4c8}"
    ".heddle .kind4{fill:#d5d0ea}.heddle .kind5{fill:#e7dcae}.heddle .kind6{fill:#a9dcd6}.heddle .kind7{fill:#f0b1a1}"
    ".heddle .kind8{fill:#c4d39a}.heddle .kind9{fill:#c8b8a6}.heddle .kind10{fill:#b9c4d0}.heddle .kind11{fill:#dfb8ec}"
    ".heddle .series0{stroke:#2f7dc0;fill:none}.heddle .series1{stroke:#e0791f;fill:none}.heddle .series2{stroke:#3f9a3f;fill:none}"
    ".heddle .thick{stroke-width:3}.heddle polyline{stroke-width:1.5;stroke-linejoin:round}.heddle .dot{stroke-width:2.5}"
    ".heddle .series3{stroke:#a04bb5;fill:none}.heddle .series4{stroke:#b5432f;fill:none}.heddle .series5{stroke:#5c6f7c;fill:none}"
    "@media screen and (prefers-color-scheme:dark){.heddle .paper{fill:#16181d}.heddle text{fill:#e8e8e8}.heddle .faint{fill:#a8a8a8}"
    ".heddle .axis{stroke:#a0a0a0}.heddle .grid{stroke:#33363d}.heddle .box{stroke:#16181d}.heddle .wait{fill:#2b2e35}"
    ".heddle .edge{stroke:#8c8f96}.heddle .peak{stroke:#ff6b6b}.heddle .bound{stroke:#7fd07f}"
    ".heddle text.peaks{fill:#ff6b6b}.heddle text.bounds{fill:#7fd07f}.heddle .full{fill:#ff6b6b;fill-opacity:.16}}";

std::string attribute(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format(" {}=\"{}\"", name, value);
}

// Bytes of the UTF-8 character that begins with `first`.
size_t bytes_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

std::string escape_xml(std::string_view text) {
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

std::string coordinate(double value) {
  return shortest(std::round(value * 100) / 100 + 0.0);  // no -0
}

double text_width(std::string_view text, double size) {
  const std::string shown = printable_line(text);
  size_t columns = 0;
  for (size_t i = 0; i < shown.size(); i += bytes_of(shown[i])) columns += bytes_of(shown[i]) == 1 ? 1 : 2;
  return character_width * size * static_cast<double>(columns);
}

std::string fitting_text(std::string_view text, double width, double size) {
  std::string shown = printable_line(text);
  if (text_width(shown, size) <= width) return shown;
  const double room = width - text_width("...", size);
  double used = 0;
  for (size_t i = 0; i < shown.size(); i += bytes_of(shown[i])) {
    used += text_width(std::string_view(shown).substr(i, bytes_of(shown[i])), size);
    if (used <= room) continue;
    shown.resize(i);
    break;
  }
  return shown.empty() ? shown : shown + "...";
}

std::string fitting_name(std::string_view name, double width, double size) {
  constexpr std::string_view separators = "./:";
  constexpr size_t shortest_part = 3;  // "0" says nothing
  if (text_width(name, size) <= width) return printable_line(name);
  for (size_t at = name.find_first_of(separators); at != std::string_view::npos; at = name.find_first_of(separators, at + 1))
    if (at + shortest_part < name.size() && text_width(name.substr(at), size) <= width) return printable_line(name.substr(at));
  return width < text_width("xxxxx...", size) ? std::string() : fitting_text(name, width, size);
}

void Svg::close(std::string_view element, std::string_view title) {
  body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escape_xml(title), element);
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view classes, std::string_view title) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", coordinate(x), coordinate(y), coordinate(width),
                       coordinate(height), attribute("class", classes));
  close("rect", title);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", coordinate(x1), coordinate(y1), coordinate(x2),
                       coordinate(y2), attribute("class", classes));
}

void Svg::polyline(std::string_view points, std::string_view classes) {
  body_ += fmt::format("<polyline points=\"{}\"{}/>\n", points, attribute("class", classes));
}

void Svg::path(std::string_view data, std::string_view classes, std::string_view title) {
  body_ += fmt::format("<path d=\"{}\"{}", data, attribute("class", classes));
  close("path", title);
}

void Svg::circle(double x, double y, double radius, std::string_view classes, std::string_view title) {
  body_ +=
      fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}", coordinate(x), coordinate(y), coordinate(radius), attribute("class", classes));
  close("circle", title);
}

void Svg::text(double x, double y, std::string_view what, Anchor anchor, std::string_view classes, std::string_view title) {
  static constexpr std::string_view anchors[] = {"", "middle", "end"};
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}{}</text>\n", coordinate(x), coordinate(y),
                       attribute("text-anchor", anchors[static_cast<size_t>(anchor)]), attribute("class", classes), escape_xml(what),
                       title.empty() ? std::string() : fmt::format("<title>{}</title>", escape_xml(title)));
}

void Svg::upward_text(double x, double y, std::string_view what) {
  body_ += fmt::format("<text text-anchor=\"middle\" transform=\"translate({} {}) rotate(-90)\">{}</text>\n", coordinate(x), coordinate(y),
                       escape_xml(what));
}

void Svg::begin_group(std::string_view attributes) {
  body_ += attributes.empty() ? "<g>\n" : fmt::format("<g {}>\n", attributes);
}

std::string Svg::finish(double height, std::string_view name, std::string_view id, bool natural) && {
  const std::string size = natural ? fmt::format(" width=\"{}\" style=\"max-width:100%;height:auto\"", coordinate(width_)) : std::string();
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\"{0}{5} class=\"heddle\" role=\"img\" aria-label=\"{1}\" viewBox=\"0 0 {2} {3}\">\n"
             "<style>{4}</style>\n<rect class=\"paper\" width=\"{2}\" height=\"{3}\"/>\n",
             attribute("id", id), escape_xml(name), coordinate(width_), coordinate(height), style, size) +
         std::move(body_) + "</svg>\n";
}

}  // namespace heddle::tool
