// Collectives of the memory of devices by a library that knows the ways between them: what kernels for devices (plugins/cuda) ask of the
// plugin that has such a library (plugins/nccl). The plugins are built together.
//
// The participants are the devices of all ranks: those of rank 0 in their order, then those of rank 1, and so on.
#pragma once

#include <cstdint>
#include <string>

#include "shared/collective_parts.h"
#include "shared/collective_reduction.h"
#include "shared/operator_api.h"

namespace heddle::operators {

// Whether a sum, product, least or greatest of such elements has the same bits in any order: that of integers, which wrap. A mean is
// divided by kernels.
constexpr bool any_order(heddle_dtype dtype, Reduction reduction) {
  switch (dtype) {
    case HEDDLE_I8:
    case HEDDLE_U8:
    case HEDDLE_I32:
    case HEDDLE_U32:
    case HEDDLE_I64:
    case HEDDLE_U64:
      return reduction != Reduction::mean;
    default:
      return false;
  }
}

// The object of the resource "nccl.library", of runtime scope, which there is where the library is.
struct DeviceLibrary {
  // Whether sums of f32 and f64 are left to the library, in an order of its own, instead of being made in the order of the host's.
  bool sums_of_library = false;
};

// The object of the resource "nccl.communicator". A thread that launches a collective calls enter(), then begin() and end() once or more
// often, with calls between them and work of its own on the streams after them, then leave(). One thread at a time does so; no memory of a
// device is allocated.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  virtual uint32_t participants() const = 0;
  // Returns the number of this process's first device.
  virtual uint32_t first() const = 0;
  // Returns which device of its kind member `member` of this process is.
  virtual int32_t device(uint32_t member) const = 0;

  // Begins a collective, for messages that of operator `node`. `parts`: the contexts of this process's devices, in their order; valid until
  // leave(). Errors: device, cancelled.
  virtual Status enter(Parts parts, const std::string& node) = 0;
  // Begins calls that the library starts together.
  virtual void begin() = 0;
  // Each of these is for one of this process's devices, on its stream; all participants make the same ones. `x` and `y` are in its memory,
  // and the same place where the operation is in place. What is combined is one of any_order(), or a sum of f32 or f64: other types and
  // reductions have another rounding in the library. Failures are end()'s.
  virtual void all_reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction) = 0;
  virtual void reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction, uint32_t root) = 0;
  // `count`: of y, which is this participant's block of the result.
  virtual void reduce_scatter(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, Reduction reduction) = 0;
  virtual void broadcast(uint32_t member, const void* x, void* y, uint64_t bytes, uint32_t root) = 0;
  // `bytes`: of x; y has those of all participants.
  virtual void all_gather(uint32_t member, const void* x, void* y, uint64_t bytes) = 0;
  // This is what a participant sends to another one, that one receives from it, with the same number of bytes, within the same begin() and
  // end().
  virtual void send(uint32_t member, const void* from, uint64_t bytes, uint32_t to) = 0;
  virtual void receive(uint32_t member, void* to, uint64_t bytes, uint32_t from) = 0;
  // Starts the calls since begin(). Once it returns Ok the streams may be used. Errors: device, cancelled.
  virtual Status end() = 0;
  // Ends the collective, when all of it is enqueued. It is not called after a failure: the run ends, and aborts the communicator. Errors:
  // device.
  virtual Status leave() = 0;
};

}  // namespace heddle::operators
