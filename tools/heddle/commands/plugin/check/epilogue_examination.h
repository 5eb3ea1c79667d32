// The part of `heddle plugin check` that examines a kernel with operators fused into it.
#pragma once

#include "commands/plugin/check/call_examination.h"
#include "commands/plugin/check/verdict.h"

namespace heddle::tool {

struct EpilogueFinding {
  Finding found;
  bool asked = false;     // the kernel has accepts_epilogue(), and the host would offer it epilogues for this call
  bool accepted = false;  // the kernel accepted any of the epilogues
};

// Offers the call's kernel epilogues: activations of different kinds, and operands of each form that output 0 can have, one epilogue op and
// several. With those that it accepts, it must give what the epilogue ops compute from `outputs`, those of the call without them, by
// heddle/expression_evaluate.h: a number may round differently, but NaN, infinities and the signs of zeros are the same. In guarded memory,
// over the previous content of scratch, with its tiles split, and, where the kernel declares it, in the bytes of an operand: the same bits.
EpilogueFinding examine_epilogues(const RegistrySnapshot& registry, const OperatorCall& call, const Blobs& outputs);

}  // namespace heddle::tool
