// The names that NCCL has for the types of elements and the reductions that kernels leave to it (operators::DeviceCollectives).
#pragma once

#include "library/declarations.h"
#include "shared/collective_reduction.h"
#include "shared/operator_api.h"

namespace heddle::nccl {

// Elements and reductions that are not left to NCCL have no name: NCCL refuses the call. It moves all elements as bytes.
inline DataType type_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_I8:
      return DataType::i8;
    case HEDDLE_I32:
      return DataType::i32;
    case HEDDLE_U32:
      return DataType::u32;
    case HEDDLE_I64:
      return DataType::i64;
    case HEDDLE_U64:
      return DataType::u64;
    case HEDDLE_F32:
      return DataType::f32;
    case HEDDLE_F64:
      return DataType::f64;
    case HEDDLE_U8:
      return DataType::u8;
    default:
      return DataType::none;
  }
}

inline Operation operation_of(operators::Reduction reduction) {
  switch (reduction) {
    case operators::Reduction::sum:
      return Operation::sum;
    case operators::Reduction::prod:
      return Operation::prod;
    case operators::Reduction::min:
      return Operation::min;
    case operators::Reduction::max:
      return Operation::max;
    default:
      return Operation::none;
  }
}

}  // namespace heddle::nccl
