// ReducePlan: how a reduction walks its input, and how it is divided into tiles.
//
// The input's dimensions are taken in storage order and merged into groups that are kept or reduced. Outputs are numbered by the kept
// groups, elements of one output by the reduced groups, both in storage order. When the last group is reduced, an output is folded from
// contiguous rows ("rows"); when it is kept, rows are folded element by element into many outputs ("columns").
#pragma once

#include <cstdint>

#include "heddle/op.h"

namespace heddle::operators {

struct ReducePlan {
  struct Group {
    int64_t extent;
    int64_t input_stride;   // in elements
    int64_t output_stride;  // kept groups: in elements of the output
  };
  struct Groups {  // outermost first
    Group items[HEDDLE_MAX_RANK];
    int count = 0;
    bool empty() const { return count == 0; }
    Group& back() { return items[count - 1]; }
    const Group& back() const { return items[count - 1]; }
    void push_back(const Group& group) { items[count++] = group; }
  };
  Groups kept, reduced;
  bool columns = false;  // the last group of the input is kept
  int64_t outputs = 1;
  int64_t folded = 1;  // elements per output
  bool linear = true;  // outputs are numbered as they are stored
  int64_t row = 1;     // contiguous elements: extent of the last reduced group (rows) or of the last kept group (columns)
  // Tiles: output parts times folded parts; with more than one folded part, partial results are combined in finish.
  int64_t output_parts = 1;
  int64_t folded_parts = 1;

  int64_t tiles() const { return output_parts * folded_parts; }
  // The first output or folded element of a part.
  int64_t output_begin(int64_t part) const { return outputs / output_parts * part + outputs % output_parts * part / output_parts; }
  int64_t folded_begin(int64_t part) const { return folded / folded_parts * part + folded % folded_parts * part / folded_parts; }
  // Offsets: the begin of output `index` in the input, where it is written, and folded element `index` relative to an output's begin.
  int64_t input_of(int64_t output) const { return offset(kept, output, &Group::input_stride); }
  int64_t written_at(int64_t output) const { return offset(kept, output, &Group::output_stride); }
  int64_t folded_at(int64_t index) const { return offset(reduced, index, &Group::input_stride); }

 private:
  static int64_t offset(const Groups& groups, int64_t index, int64_t Group::*stride) {
    int64_t at = 0;
    for (int i = groups.count; i-- > 0;) {
      at += index % groups.items[i].extent * (groups.items[i].*stride);
      index /= groups.items[i].extent;
    }
    return at;
  }
};

// Bit d of `reduced`: dimension d is reduced. Outputs are row-major. `cost_ns` is one thread's time for the whole; `splittable`: folded
// elements may be divided over tiles. No allocation.
ReducePlan plan_reduction(const heddle_tensor& input, uint32_t reduced, double cost_ns, bool splittable);

}  // namespace heddle::operators
