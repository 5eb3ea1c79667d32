// RoiAlign: one thread for each element of the output, which goes through the samples of its bin. Their positions are computed as on the
// host, in double. A region of a missing batch entry is reported (text/fault.cuh), and zero. Follows "grouped_sum".
//
// F is generated (generate/image/roi_align_launches.cc): types Index, T and C, MAX and HALF_PIXEL.
#ifndef HEDDLE_ROI_ALIGN_CUH
#define HEDDLE_ROI_ALIGN_CUH

// Does what std::max does: returns the first if neither is larger, NaN among them.
template <class C>
HEDDLE_INLINE C larger_of(C a, C b) {
  return a < b ? b : a;
}

// The place of a bin in the map, along one dimension.
struct RoiSpan {
  double start, bin;
  i64 samples;
  __device__ __forceinline__ double place(i64 at, i64 sample) const {
    return start + ((double)at + ((double)sample + 0.5) / (double)samples) * bin;
  }
};
template <class F, class P>
HEDDLE_INLINE RoiSpan span_of(const P& p, double first, double last, i64 bins) {
  const double shift = F::HALF_PIXEL ? 0.5 : 0, start = first * p.spatial_scale - shift;
  double extent = last * p.spatial_scale - shift - start;
  if (!F::HALF_PIXEL) extent = larger_of(extent, 1.0);
  RoiSpan span = {start, extent / (double)bins, p.sampling_ratio};
  if (p.sampling_ratio == 0) {
    const double pixels = ceil(span.bin), most = (double)p.max_samples;
    span.samples = pixels > 0 ? (i64)(pixels < most ? pixels : most) : 0;
  }
  return span;
}

// One of the two rows or columns of pixels around a place, and the place's distance from the first.
struct RoiPixels {
  i64 first, second;
  double rest;
};
HEDDLE_INLINE RoiPixels pixels_at(double place, i64 extent) {
  place = larger_of(place, 0.0);
  const i64 below = (i64)place, first = below < extent - 1 ? below : extent - 1;
  return {first, first + 1 < extent ? first + 1 : first, first == extent - 1 ? 0 : place - (double)first};
}

template <class F, class P>
HEDDLE_INLINE typename F::C pooled_bin(const P& p, const typename F::T* map, const RoiSpan& rows, const RoiSpan& columns, i64 row,
                                       i64 column) {
  typedef typename F::C C;
  if (rows.samples * columns.samples == 0) return 0;
  GroupedSum<C> total;
  C most = F::lowest();
  for (i64 i = 0; i < rows.samples; ++i) {
    const double v = rows.place(row, i);
    const bool in_rows = v >= -1 && v <= (double)p.height && p.height > 0 && p.width > 0;
    const RoiPixels down = in_rows ? pixels_at(v, p.height) : RoiPixels{0, 0, 0};
    GroupedSum<C> line;
    for (i64 j = 0; j < columns.samples; ++j) {
      const double u = columns.place(column, j);
      C sum = 0, corner = 0;
      if (in_rows && u >= -1 && u <= (double)p.width) {
        const RoiPixels across = pixels_at(u, p.width);
        const auto at = [&](i64 y, i64 x, double weight) { return (C)weight * To<C>::from(map[y * p.width + x]); };
        const C a = at(down.first, across.first, (1 - down.rest) * (1 - across.rest));
        const C b = at(down.first, across.second, (1 - down.rest) * across.rest);
        const C c = at(down.second, across.first, down.rest * (1 - across.rest));
        const C d = at(down.second, across.second, down.rest * across.rest);
        sum = a + b + c + d;
        corner = larger_of(larger_of(a, b), larger_of(c, d));
      }
      if (F::MAX)
        most = larger_of(most, corner);
      else
        line.add(sum);
    }
    line.close();
    if (!F::MAX) total.add(line.total);
  }
  total.close();
  return F::MAX ? most : total.total / (C)(rows.samples * columns.samples);
}

template <class F, class P>
HEDDLE_INLINE void roi_align(const P& p) {
  typedef typename F::Index Index;
  const Index count = (Index)p.count, step = (Index)gridDim.x * blockDim.x;
  for (Index at = (Index)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
    const Index line = at / (Index)p.bins_across, plane = line / (Index)p.bins_down, region = plane / (Index)p.channels;
    const i64 column = (i64)(at - line * (Index)p.bins_across), row = (i64)(line - plane * (Index)p.bins_down);
    const i64 batch = p.batch_indices[region], channel = (i64)(plane - region * (Index)p.channels);
    typename F::C value = 0;
    if (batch >= 0 && batch < p.batches) {
      const auto* const corners = p.rois + (i64)region * 4;
      const auto corner = [&](int i) { return To<double>::from(corners[i]); };
      const RoiSpan columns = span_of<F>(p, corner(0), corner(2), p.bins_across), rows = span_of<F>(p, corner(1), corner(3), p.bins_down);
      value = pooled_bin<F>(p, p.x + (batch * p.channels + channel) * p.height * p.width, rows, columns, row, column);
    } else {
      report_index(p, batch, 0, p.batches - 1);
    }
    p.y[at] = Stored<typename F::T>::of(value);
  }
}

#endif
