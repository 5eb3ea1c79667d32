// Tiles: divides a number of elements, or rows, into pieces of one size, for kernels that several threads compute.
//
//   Status prepare(PrepareContext& c) {
//     tiles_ = Tiles::of(c.output(0)->element_count, 4096);
//     c.set_tiles(tiles_.count());
//     return {};
//   }
//   Status run(const RunContext& c, int64_t begin, int64_t end) const {
//     for (const int64_t i : tiles_.elements(begin, end)) ...
#pragma once

#include <cstdint>

namespace heddle {
namespace plugin {

class Tiles {
 public:
  // The elements [first, last).
  class Range {
   public:
    class Iterator {
     public:
      explicit Iterator(int64_t at) : at_(at) {}
      int64_t operator*() const { return at_; }
      Iterator& operator++() {
        ++at_;
        return *this;
      }
      bool operator!=(Iterator other) const { return at_ != other.at_; }

     private:
      int64_t at_;
    };
    int64_t first, last;
    int64_t size() const { return last - first; }
    Iterator begin() const { return Iterator(first); }
    Iterator end() const { return Iterator(last); }
  };

  Tiles() = default;
  // Makes pieces of `grain` elements, the last one possibly smaller. The pieces are larger if there would be more of them than the host
  // accepts. `grain` must depend on shapes only: if it depended on the number of threads, results would too.
  static Tiles of(int64_t elements, int64_t grain) {
    constexpr int64_t most = INT32_MAX;
    Tiles tiles;
    tiles.elements_ = elements > 0 ? elements : 0;
    tiles.grain_ = grain > 1 ? grain : 1;
    if (tiles.elements_ / tiles.grain_ >= most) tiles.grain_ = tiles.elements_ / most + 1;
    return tiles;
  }

  // Returns the number of tiles for set_tiles(). It is at least one: without elements there is one empty tile, so that a kernel that
  // combines partial results still writes its output.
  int64_t count() const { return elements_ > 0 ? (elements_ - 1) / grain_ + 1 : 1; }
  int64_t grain() const { return grain_; }
  // Return the elements of tiles [begin, end), which run() receives, or of one tile.
  Range elements(int64_t begin, int64_t end) const { return {start(begin), start(end)}; }
  Range elements(int64_t tile) const { return elements(tile, tile + 1); }

 private:
  int64_t start(int64_t tile) const { return tile > (elements_ - 1) / grain_ ? elements_ : tile * grain_; }
  int64_t elements_ = 0;
  int64_t grain_ = 1;
};

}  // namespace plugin
}  // namespace heddle
