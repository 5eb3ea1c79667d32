// Views that a kernel makes itself, for the subnets that it runs: of memory of its own, and of rows of what it was given.
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

// Of row-major elements on the host. What `dims` and `data` point to outlives the view; null data: the content is not known, in infer.
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

// Row `index` along axis 0 of a row-major tensor of rank 1 or more, where that lies.
inline heddle_tensor row_of(const heddle_tensor& whole, int64_t index) {
  heddle_tensor row = view_of(whole.dtype, nullptr, {whole.dims + 1, whole.rank - 1});
  row.space = whole.space;
  if (whole.data) row.data = static_cast<char*>(whole.data) + static_cast<uint64_t>(index) * row.byte_size;
  return row;
}

// The same type, of content that differs from run to run: what infer and subnets say of a value that the kernel makes.
inline heddle_tensor without_data(heddle_tensor view) {
  if (view.element_count > 0) view.data = nullptr;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_CONSTANT);
  return view;
}

// As an output of a subnet: the host fills it, with a result that stays valid until the next run of a subnet through the same call.
inline heddle_tensor result_view() {
  return view_of(HEDDLE_DTYPE_NONE, nullptr);
}

// A list of views, borrowed for one call: {&a, &b}, a vector, or an array and its length. Null entries: absent.
template <class View>
class ViewList {
 public:
  ViewList(std::initializer_list<View> views) : size_(static_cast<uint32_t>(views.size())) { data_ = views.begin(); }
  ViewList(const std::vector<View>& views) : data_(views.data()), size_(static_cast<uint32_t>(views.size())) {}
  ViewList(const View* data, uint32_t size) : data_(data), size_(size) {}
  // `first` and behind them `more`, at `place`, which has room for both: in the step's scratch, for run does not allocate.
  static ViewList joined(View* place, ViewList first, ViewList more) {
    View* end = std::copy(first.data(), first.data() + first.size(), place);
    std::copy(more.data(), more.data() + more.size(), end);
    return {place, first.size() + more.size()};
  }
  const View* data() const { return data_; }
  uint32_t size() const { return size_; }

 private:
  const View* data_ = nullptr;
  uint32_t size_;
};
using InputViews = ViewList<const heddle_tensor*>;
using OutputViews = ViewList<heddle_tensor*>;

}  // namespace plugin
}  // namespace heddle
