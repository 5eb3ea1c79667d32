// Views that a kernel makes itself, for the subnets that it runs: views of its own memory, and of rows of its inputs and outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/dtypes.h"
#include "heddle/op/views.h"

namespace heddle {
namespace plugin {

// Returns a view of row-major elements on the host. `dims` and `data` must outlive the view. In infer, null `data` says that the content is
// not known.
inline heddle_tensor view_of(heddle_dtype dtype, const void* data, Dims dims = {}) {
  heddle_tensor view = {};
  view.struct_size = sizeof(view);
  view.dtype = dtype;
  view.rank = dims.rank;
  view.data = const_cast<void*>(data);
  view.dims = dims.data;
  view.element_count = dims.count(0, dims.rank);
  view.byte_size = static_cast<uint64_t>(view.element_count) * byte_width(dtype);
  view.extent_axis = -1;
  return view;
}
template <class T>
heddle_tensor view_of(const T* data, Dims dims = {}) {
  return view_of(dtype_of<T>::id, data, dims);
}

// Returns a view of row `index` along axis 0 of a row-major tensor of rank 1 or more, in the same memory.
inline heddle_tensor row_of(const heddle_tensor& whole, int64_t index) {
  heddle_tensor row = view_of(whole.dtype, nullptr, {whole.dims + 1, whole.rank - 1});
  row.space = whole.space;
  if (whole.data) row.data = static_cast<char*>(whole.data) + static_cast<uint64_t>(index) * row.byte_size;
  return row;
}

// Returns a view of the same type without data, for a value that the kernel computes and whose content may differ between runs. For use in
// infer and in the rule of Op::subnets().
inline heddle_tensor without_data(heddle_tensor view) {
  if (view.element_count > 0) view.data = nullptr;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_CONSTANT);
  return view;
}

// Returns an empty view to pass for an output of a subnet; the host fills in the view. The value that it then refers to is valid until a
// subnet is run again through the same heddle_call.
inline heddle_tensor result_view() {
  return view_of(HEDDLE_DTYPE_NONE, nullptr);
}

// A list of views, borrowed for one call: {&a, &b}, a vector, or an array and its length. Null entries are absent. Use a ViewList as an
// argument, not as a variable, because it refers to the views that it was made from, which must live as long as the call. Caution:
// C++ takes {nullptr, 0} as a list of two null pointers, that is, two absent views, and not as an array of length 0; write {} for an empty
// list.
template <class View>
class ViewList {
 public:
  ViewList() = default;
  ViewList(std::initializer_list<View> views) : size_(static_cast<uint32_t>(views.size())) { data_ = views.begin(); }
  ViewList(const std::vector<View>& views) : data_(views.data()), size_(static_cast<uint32_t>(views.size())) {}
  ViewList(const View* data, uint32_t size) : data_(data), size_(size) {}
  // Copies `first`, followed by `more`, to `place`, which must have room for both: use the step's scratch, because run must not allocate.
  static ViewList joined(View* place, ViewList first, ViewList more) {
    View* end = std::copy(first.data(), first.data() + first.size(), place);
    std::copy(more.data(), more.data() + more.size(), end);
    return {place, first.size() + more.size()};
  }
  const View* data() const { return data_; }
  uint32_t size() const { return size_; }

 private:
  const View* data_ = nullptr;
  uint32_t size_ = 0;
};
using InputViews = ViewList<const heddle_tensor*>;
using OutputViews = ViewList<heddle_tensor*>;

}  // namespace plugin
}  // namespace heddle
