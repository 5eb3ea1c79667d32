#include "shared/movement/box.h"

#include <utility>

namespace heddle::operators {

bool Box::is_empty() const {
  for (int i = 0; i < rank; ++i)
    if (dims[i].extent == 0) return true;
  return false;
}

void Box::merge() {
  int kept = 0;
  for (int i = 0; i < rank; ++i)
    if (dims[i].extent != 1) dims[kept++] = dims[i];
  // Insertion keeps equal ones in order and, unlike std::stable_sort, allocates nothing.
  for (int i = 1; i < kept; ++i)
    for (int k = i; k > 0 && dims[k - 1].target < dims[k].target; --k) std::swap(dims[k - 1], dims[k]);
  rank = 0;
  for (int i = 0; i < kept; ++i) {
    const Dimension d = dims[i];
    if (rank > 0) {
      Dimension& outer = dims[rank - 1];
      if (outer.source == d.source * d.extent && outer.target == d.target * d.extent) {
        outer = {outer.extent * d.extent, d.source, d.target};
        continue;
      }
    }
    dims[rank++] = d;
  }
  if (rank == 0) dims[rank++] = {1, width, width};
}

}  // namespace heddle::operators
