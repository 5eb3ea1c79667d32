#include "conformance/judge.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace heddle::conformance {
namespace {

int digits_of(DType dtype) {
  return dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
}
Number min_of(DType dtype) {
  return std::ldexp(Number{1}, dtype == DType::f64 ? -1074 : dtype == DType::f32 ? -149 : dtype == DType::f16 ? -24 : -133);
}

// Returns the number that would follow the largest one.
Number beyond_of(DType dtype) {
  return std::ldexp(Number{1}, dtype == DType::f64 ? 1024 : dtype == DType::f16 ? 16 : 128);
}

bool agrees(DType dtype, Number got, Number expected, Number scale, const Tolerance& tolerance) {
  const Number near = rounded(dtype, expected);
  if (std::isnan(got) || std::isnan(near)) return std::isnan(got) && std::isnan(near);
  if (got == near) return got != 0 || !tolerance.signed_zeros || std::signbit(got) == std::signbit(near);
  if (!is_floating(dtype) || tolerance.ulps == 0 || std::isinf(expected)) return false;
  // Numbers beyond the largest one, and the infinity that represents them, are as far away as the next number would be.
  const Number beyond = beyond_of(dtype), wanted = std::clamp(expected, -beyond, beyond);
  const auto finite = [&](Number x) { return std::isinf(x) ? std::copysign(beyond, x) : x; };
  const Number unit = std::ldexp(Number{1}, 1 - digits_of(dtype));
  const Number allowed =
      static_cast<Number>(tolerance.ulps) * (unit * std::max(std::fabs(wanted), std::min(scale, beyond)) + min_of(dtype)) +
      std::fabs(finite(near) - wanted);
  return !std::isinf(scale) && std::fabs(finite(got) - wanted) <= allowed;
}

std::string text(Number value) {
  return fmt::format("{:.20Lg}", value);
}

template <class Visit>
void visit_layout(const Blob& blob, const heddle_layout& layout, const Visit& visit) {
  Shape ordered;
  for (int i = 0; i < layout.rank; ++i) ordered.push_back(blob.shape[layout.order[i]]);
  for (int64_t i = 0; i < ordered.element_count(); ++i) {
    const Ints in_order = position_of(i, ordered);
    Ints logical(in_order.size());
    for (size_t k = 0; k < in_order.size(); ++k) logical[layout.order[k]] = in_order[k];
    visit(static_cast<size_t>(i), static_cast<size_t>(flat_of(logical, blob.shape)));
  }
}

std::shared_ptr<const Blob> reordered(const std::shared_ptr<const Blob>& from, const heddle_layout& layout, bool to_layout) {
  if (!from || layout.rank == 0) return from;
  std::byte* data = nullptr;
  auto blob = Blob::allocate(from->dtype, from->shape, &data);
  const auto width = static_cast<size_t>(byte_width(from->dtype));
  visit_layout(*from, layout, [&](size_t physical, size_t logical) {
    std::memcpy(data + (to_layout ? physical : logical) * width, from->data + (to_layout ? logical : physical) * width, width);
  });
  return blob;
}

}  // namespace

std::string difference(const std::vector<std::shared_ptr<const Blob>>& got, const std::vector<Numbers>& expected,
                       const Tolerance& tolerance) {
  size_t compared = 0;
  for (size_t o = 0; o < got.size(); ++o) {
    if (!got[o]) return fmt::format("output {} is not there", o);
    if (o >= expected.size() || expected[o].dtype == DType::none) continue;
    const Numbers& want = expected[o];
    if (got[o]->dtype != want.dtype || got[o]->shape != want.shape)
      return fmt::format("output {} is {}{}, expected {}{}", o, to_string(got[o]->dtype), got[o]->shape.text(), to_string(want.dtype),
                         want.shape.text());
    const Numbers have = numbers_of(*got[o]);
    if (want.values.size() != have.values.size() || (!want.scale.empty() && want.scale.size() != have.values.size()))
      return fmt::format("the reference gives {} numbers and {} scales of output {}{}", want.values.size(), want.scale.size(), o,
                         want.shape.text());
    for (size_t i = 0; i < have.values.size(); ++i) {
      const Number scale = want.scale.empty() ? 0 : want.scale[i];
      if (!agrees(want.dtype, have.values[i], want.values[i], scale, tolerance))
        return fmt::format("output {} {}{}: element {} is {}, expected {}", o, to_string(want.dtype), want.shape.text(), i,
                           text(have.values[i]), text(want.values[i]));
    }
    ++compared;
  }
  return compared > 0 ? std::string() : "the reference says nothing of any output";
}

std::shared_ptr<const Blob> in_layout(const std::shared_ptr<const Blob>& row_major, const heddle_layout& layout) {
  return reordered(row_major, layout, true);
}

std::shared_ptr<const Blob> row_major(const std::shared_ptr<const Blob>& laid_out, const heddle_layout& layout) {
  return reordered(laid_out, layout, false);
}

}  // namespace heddle::conformance
