#include "charts/graph_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "charts/svg.h"

namespace heddle::tool {
namespace {

constexpr double layer_gap = 30, box_gap = 14, bend_width = 6;
constexpr int sweeps = 8;
constexpr size_t max_items = 20000;  // lines that would need more bends go straight

// The boxes and, where a line passes a layer, a bend of it; layer by layer.
class Layers {
 public:
  explicit Layers(GraphLayout& graph) : graph_(graph) {}

  void lay_out() {
    find_layers();
    add_bends();
    order();
    for (int i = 0; i < sweeps; ++i) place(i % 2 == 0);
    set_heights();
    draw();
  }

 private:
  struct Item {
    double width = 0, x = 0, y = 0;
    size_t layer = 0;
    double key = 0;  // by which its layer is ordered
    std::vector<size_t> above, below;
  };

  void find_layers() {
    items_.resize(graph_.boxes.size());
    std::vector<char> has_input(items_.size());
    for (const GraphLine& line : graph_.lines) has_input[line.to] = 1;
    for (const GraphLine& line : sorted_lines()) items_[line.to].layer = std::max(items_[line.to].layer, items_[line.from].layer + 1);
    // Boxes without inputs go next to what uses them first.
    std::vector<size_t> first(items_.size(), SIZE_MAX);
    for (const GraphLine& line : graph_.lines) first[line.from] = std::min(first[line.from], items_[line.to].layer);
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].width = graph_.boxes[i].width;
      if (!has_input[i] && first[i] != SIZE_MAX) items_[i].layer = first[i] - 1;
    }
  }

  // By where they begin: boxes come after those that they depend on, so one pass finds the longest ways.
  std::vector<GraphLine> sorted_lines() const {
    std::vector<GraphLine> lines = graph_.lines;
    std::stable_sort(lines.begin(), lines.end(), [](const GraphLine& a, const GraphLine& b) { return a.from < b.from; });
    return lines;
  }

  void add_bends() {
    for (const GraphLine& line : graph_.lines) {
      std::vector<size_t> way = {line.from};
      const size_t bends = items_[line.to].layer - items_[line.from].layer - 1;
      for (size_t layer = items_[line.from].layer + 1; items_.size() + bends <= max_items && layer < items_[line.to].layer; ++layer) {
        way.push_back(items_.size());
        items_.push_back({bend_width, 0, 0, layer, 0, {}, {}});
      }
      way.push_back(line.to);
      for (size_t i = 0; i + 1 < way.size(); ++i) {
        items_[way[i]].below.push_back(way[i + 1]);
        items_[way[i + 1]].above.push_back(way[i]);
      }
      ways_.push_back(std::move(way));
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].layer >= layers_.size()) layers_.resize(items_[i].layer + 1);
      layers_[items_[i].layer].push_back(i);
    }
  }

  // Orders each layer by the mean place of the neighbours in the layer before, down and up in turns.
  void order() {
    number();
    for (int i = 0; i < sweeps; ++i) {
      const bool down = i % 2 == 0;
      for (size_t k = 0; k < layers_.size(); ++k) {
        std::vector<size_t>& layer = layers_[down ? k : layers_.size() - 1 - k];
        for (const size_t item : layer) {
          const std::vector<size_t>& near = down ? items_[item].above : items_[item].below;
          if (!near.empty())
            items_[item].key = mean(near, [&](size_t other) { return items_[other].x; });
          else
            items_[item].key = items_[item].x;
        }
        std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return items_[a].key < items_[b].key; });
        number(layer);
      }
    }
    for (const std::vector<size_t>& layer : layers_) {
      double at = 0;
      for (const size_t item : layer) {
        items_[item].x = at + items_[item].width / 2;
        at += items_[item].width + box_gap;
      }
      for (const size_t item : layer) items_[item].x -= at / 2;
    }
  }
  void number() {
    for (const std::vector<size_t>& layer : layers_) number(layer);
  }
  void number(const std::vector<size_t>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) items_[layer[i]].x = static_cast<double>(i) - static_cast<double>(layer.size()) / 2;
  }
  template <typename F>
  static double mean(const std::vector<size_t>& all, F&& of) {
    return std::accumulate(all.begin(), all.end(), 0.0, [&](double sum, size_t i) { return sum + of(i); }) /
           static_cast<double>(all.size());
  }

  // Moves the items of each layer as near as may be to the mean of their neighbours, in their order and without overlap: where two would
  // be too near, they and those that they push become a block, which goes to the mean of what its members want.
  void place(bool down) {
    for (size_t k = 0; k < layers_.size(); ++k) {
      const std::vector<size_t>& layer = layers_[down ? k : layers_.size() - 1 - k];
      struct Block {
        double wanted = 0;  // mean, of the place where its first item would be
        size_t items = 0;
      };
      std::vector<Block> blocks;
      std::vector<double> offset(layer.size());
      for (size_t i = 0; i < layer.size(); ++i) {
        const Item& item = items_[layer[i]];
        if (i > 0) offset[i] = offset[i - 1] + (items_[layer[i - 1]].width + item.width) / 2 + box_gap;
        const std::vector<size_t>& near = down ? item.above : item.below;
        const double x = near.empty() ? item.x : mean(near, [&](size_t other) { return items_[other].x; });
        blocks.push_back({x - offset[i], 1});
        while (blocks.size() > 1 && blocks.back().wanted < blocks[blocks.size() - 2].wanted) {
          const Block last = blocks.back();
          blocks.pop_back();
          Block& before = blocks.back();
          before.wanted = (before.wanted * static_cast<double>(before.items) + last.wanted * static_cast<double>(last.items)) /
                          static_cast<double>(before.items + last.items);
          before.items += last.items;
        }
      }
      size_t i = 0;
      for (const Block& block : blocks)
        for (size_t n = 0; n < block.items; ++n, ++i) items_[layer[i]].x = block.wanted + offset[i];
    }
  }

  void set_heights() {
    double top = 0, left = 0, right = 0;
    for (size_t k = 0; k < layers_.size(); ++k) {
      double height = 0;
      for (const size_t item : layers_[k])
        if (item < graph_.boxes.size()) height = std::max(height, graph_.boxes[item].height);
      for (const size_t item : layers_[k]) {
        items_[item].y = top + height / 2;
        left = std::min(left, items_[item].x - items_[item].width / 2);
        right = std::max(right, items_[item].x + items_[item].width / 2);
      }
      top += height + layer_gap;
    }
    for (Item& item : items_) item.x -= left;
    graph_.width = right - left;
    graph_.height = layers_.empty() ? 0 : top - layer_gap;
  }

  void draw() {
    for (size_t i = 0; i < graph_.boxes.size(); ++i) {
      graph_.boxes[i].x = items_[i].x;
      graph_.boxes[i].y = items_[i].y;
    }
    for (size_t l = 0; l < graph_.lines.size(); ++l) {
      const std::vector<size_t>& way = ways_[l];
      double x = items_[way[0]].x, y = items_[way[0]].y + graph_.boxes[way[0]].height / 2;
      std::string path = fmt::format("M{} {}", coordinate(x), coordinate(y));
      for (size_t i = 1; i < way.size(); ++i) {
        const double next_x = items_[way[i]].x, next_y = items_[way[i]].y - (i + 1 == way.size() ? graph_.boxes[way[i]].height / 2 : 0);
        const double middle = (y + next_y) / 2;
        path += fmt::format("C{} {} {} {} {} {}", coordinate(x), coordinate(middle), coordinate(next_x), coordinate(middle),
                            coordinate(next_x), coordinate(next_y));
        x = next_x;
        y = next_y;
      }
      graph_.lines[l].path = path;
    }
  }

  GraphLayout& graph_;
  std::vector<Item> items_;
  std::vector<std::vector<size_t>> ways_;  // of each line: the items that it passes
  std::vector<std::vector<size_t>> layers_;
};

}  // namespace

void lay_out_in_layers(GraphLayout& graph) {
  Layers(graph).lay_out();
}

}  // namespace heddle::tool
