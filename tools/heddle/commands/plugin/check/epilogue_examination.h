// What `heddle plugin check` asks of a kernel that has operators fused behind it.
#pragma once

#include "commands/plugin/check/call_examination.h"
#include "commands/plugin/check/verdict.h"

namespace heddle::tool {

struct EpilogueFinding {
  Finding found;
  bool asked = false;     // the kernel has accepts_epilogue(), and the call is one that the host would ask it about
  bool accepted = false;  // any of the epilogues
};

// Asks the call's kernel about epilogues: activations of different kinds, and operands of each form that output 0 can have, one epilogue op and
// several. What it accepts has to give what the epilogue ops make of `outputs`, those of the call without them, by heddle/expression_evaluate.h:
// a number may round differently, but NaN, infinities and the signs of zeros are the same. In guarded memory, over what scratch held
// before, with its tiles split, and where the kernel says so in the bytes of an operand: the same bits.
EpilogueFinding examine_epilogues(const RegistrySnapshot& registry, const OperatorCall& call, const Blobs& outputs);

}  // namespace heddle::tool
