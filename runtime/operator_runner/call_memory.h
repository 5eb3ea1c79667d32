// Memory that a call of an operator needs besides its inputs: its own, or its observer's, which checks the memory around it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/checked.h"
#include "net/net.h"
#include "operator_runner/call_conditions.h"

namespace heddle {

struct CallBytes {
  using Memory = CallObserver::Memory;
  static constexpr int64_t behind = 64;  // bytes that a Blob has at least past its end

  CallBytes(const CallConditions& conditions, Memory of, uint32_t index, DType dtype, const Shape& shape, std::optional<uint8_t> with)
      : fill(with) {
    if (!conditions.observer) {
      blob = Blob::allocate(dtype, shape, &data);
      if (fill) std::memset(data, *fill, static_cast<size_t>(blob->bytes + behind));
      return;
    }
    blob = std::make_shared<Blob>();
    blob->dtype = dtype;
    blob->shape = shape;
    blob->bytes = byte_size_of(dtype, shape);
    data = conditions.observer->allocate(of, index, blob->bytes);
    blob->data = data;
    if (blob->bytes > 0) std::memset(data, fill.value_or(0), static_cast<size_t>(blob->bytes));
    fill.reset();
  }
  CallBytes(const CallConditions& conditions, Memory of, uint32_t index, int64_t bytes, std::optional<uint8_t> with = {})
      : CallBytes(conditions, of, index, DType::u8, Shape{bytes}, with) {}
  bool overrun() const {
    const std::byte* const end = data + blob->bytes;
    return fill && std::any_of(end, end + behind, [&](std::byte b) { return b != std::byte{*fill}; });
  }

  std::byte* data = nullptr;
  std::shared_ptr<Blob> blob;
  std::optional<uint8_t> fill;  // the fill to compare with

 private:
  static int64_t byte_size_of(DType dtype, const Shape& shape) {
    int64_t bytes = 0;
    return checked_byte_size(dtype, shape, &bytes) ? bytes : 0;
  }
};

}  // namespace heddle
