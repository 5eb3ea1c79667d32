// Gives the names of the dtypes in text/element.cuh.
#pragma once

#include "heddle/abi.h"

namespace heddle::cuda {

// Returns the type stored in memory; null if no dtype with that number is known.
inline const char* stored_type(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
      return "f16";
    case HEDDLE_BF16:
      return "bf16";
    case HEDDLE_F32:
      return "float";
    case HEDDLE_F64:
      return "double";
    case HEDDLE_I8:
      return "i8";
    case HEDDLE_I16:
      return "i16";
    case HEDDLE_I32:
      return "i32";
    case HEDDLE_I64:
      return "i64";
    case HEDDLE_U8:
      return "u8";
    case HEDDLE_U16:
      return "u16";
    case HEDDLE_U32:
      return "u32";
    case HEDDLE_U64:
      return "u64";
    case HEDDLE_BOOL:
      return "boolean";
    default:
      return nullptr;
  }
}

// Returns the type used in computation: float for 16-bit floats, i32 for narrow integers, i64 for u32, as in the host's kernels.
inline const char* compute_type(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
    case HEDDLE_BF16:
    case HEDDLE_F32:
      return "float";
    case HEDDLE_F64:
      return "double";
    case HEDDLE_U32:
    case HEDDLE_I64:
      return "i64";
    case HEDDLE_U64:
      return "u64";
    default:
      return "i32";
  }
}

// Returns the function that wraps a result into the range of a narrower integer; null if none is needed.
inline const char* wrap_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_I8:
      return "wrap_i8";
    case HEDDLE_I16:
      return "wrap_i16";
    case HEDDLE_U8:
      return "wrap_u8";
    case HEDDLE_U16:
      return "wrap_u16";
    case HEDDLE_U32:
      return "wrap_u32";
    default:
      return nullptr;
  }
}

}  // namespace heddle::cuda
