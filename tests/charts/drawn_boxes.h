// A picture as its reader sees it: its texts with the boxes that they take at most, and its rectangles with their titles.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "charts/svg.h"

namespace heddle::tool {

struct DrawnText {
  std::string text;
  double left = 0, right = 0, top = 0, bottom = 0;
};

// Texts that read upwards are left out.
inline std::vector<DrawnText> drawn_texts(const std::string& svg) {
  static const std::regex element(R"re(<text x="([^"]*)" y="([^"]*)"( text-anchor="([a-z]+)")?( class="([^"]*)")?>([^<]*)<)re");
  std::vector<DrawnText> all;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) {
    const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
    const std::string anchor = (*at)[4], classes = (*at)[6];
    const double size = classes.find("small") != std::string::npos ? 10 : classes.find("title") != std::string::npos ? 14 : text_size;
    const double width = text_width((*at)[7].str(), size);
    const double left = anchor == "end" ? x - width : anchor == "middle" ? x - width / 2 : x;
    all.push_back({(*at)[7], left, left + width, y - 0.75 * size, y + 0.2 * size});
  }
  return all;
}

// Returns the pairs of texts that overlap, and the texts that leave the picture.
inline std::vector<std::string> overlaps(const std::string& svg, double width) {
  std::vector<std::string> found;
  const std::vector<DrawnText> all = drawn_texts(svg);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].left < 0 || all[i].right > width) found.push_back("outside: " + all[i].text);
    for (size_t j = i + 1; j < all.size(); ++j)
      if (all[i].left < all[j].right && all[j].left < all[i].right && all[i].top < all[j].bottom && all[j].top < all[i].bottom)
        found.push_back(all[i].text + " | " + all[j].text);
  }
  return found;
}

// Returns the titles, which are shown at the pointer, as XML writes them.
inline std::vector<std::string> titles(const std::string& svg) {
  static const std::regex element("<title>([^<]*)</title>");
  std::vector<std::string> all;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) all.push_back((*at)[1]);
  return all;
}

}  // namespace heddle::tool
