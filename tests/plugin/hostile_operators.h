// The operators of tests/plugins/hostile/hostile_kernels.cc, and the errors that each must give: run alone, and in a session.
#pragma once

#include <ostream>

#include "heddle/status.h"

namespace heddle {

struct Failure {
  const char* type;
  Code code;
  const char* text;
};
inline void PrintTo(const Failure& failure, std::ostream* out) {
  *out << failure.type;
}

inline const Failure hostile_operators[] = {Failure{"InferThrows", Code::shape_mismatch, "exception of unknown type"},
                                            Failure{"InferNegative", Code::shape_mismatch, "[-5, 2], which is negative"},
                                            Failure{"InferHuge", Code::shape_mismatch, "does not fit in memory"},
                                            Failure{"InferLarge", Code::limit_exceeded, "more than 16.0 GiB"},
                                            Failure{"InferRank", Code::shape_mismatch, "rank 99"},
                                            Failure{"InferDtype", Code::dtype_mismatch, "dtype"},
                                            Failure{"InferBoundedAxis", Code::shape_mismatch, "axis"},
                                            Failure{"InferAbsent", Code::shape_mismatch, "infer reads input 3, which is absent"},
                                            Failure{"InferUnknownAttribute", Code::shape_mismatch, "declares no attribute \"nowhere\""},
                                            Failure{"ThrowsInCreate", Code::kernel_failed, "half-way through create"},
                                            Failure{"FailsInCreate", Code::kernel_failed, "create refuses"},
                                            Failure{"NegativeTiles", Code::kernel_failed, "-3 tiles"},
                                            Failure{"TwoTilesResumed", Code::kernel_failed, "2 tiles, and a step that resumes has one"},
                                            Failure{"TwoTilesStarted", Code::kernel_failed, "2 tiles, and an asynchronous step has one"},
                                            Failure{"PendsForNothing", Code::kernel_failed, "is pending, and waits for no subnet"},
                                            Failure{"HugeScratch", Code::limit_exceeded, "18446744073709551615 bytes of scratch"},
                                            Failure{"HugePack", Code::out_of_memory, "was given no memory to pack"},
                                            Failure{"CostIsNan", Code::kernel_failed, "a cost of nan"},
                                            Failure{"ThrowsInPrepare", Code::out_of_memory, "out of memory"},
                                            Failure{"ThrowsInFinish", Code::kernel_failed, "nothing to combine"},
                                            Failure{"ThrowsException", Code::kernel_failed, "the kernel gave up"},
                                            Failure{"ThrowsInt", Code::kernel_failed, "exception of unknown type"},
                                            Failure{"FailsLoudly", Code::kernel_failed, "\\u001b[2J\\n\\u000d\\u0001AAAA"},
                                            Failure{"FailsSilently", Code::kernel_failed, "failed with status 6 and no text"},
                                            Failure{"FailsUnknown", Code::kernel_failed, "a status nobody defined"},
                                            Failure{"BadExtent", Code::kernel_failed, "wrote extent 1048576, the bound is 4"},
                                            Failure{"RawRunThrows", Code::kernel_failed, "threw an exception across"},
                                            Failure{"RawCreateThrows", Code::kernel_failed, "create threw an exception across"},
                                            Failure{"RawCreateFails", Code::kernel_failed, "failed with status 1 and no text"},
                                            Failure{"RawPrepareThrows", Code::kernel_failed, "prepare threw an exception across"}};

}  // namespace heddle
