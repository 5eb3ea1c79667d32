// verify: TypedNet -> diagnostics. Checks what must hold before compilation: placement, hazards of variables, sparse links. Reports all
// findings.
#pragma once

#include "base/text/findings.h"
#include "device/compilation_target.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

struct VerifyOptions {
  Evaluator* evaluator = nullptr;  // for the content of values in subnets; null: none is followed
  bool subnet = false;             // of an operator: everything in it runs on the host
  bool nets_inside = true;         // checks the nets inside it too
};

// Findings: no_such_device (with the backend's reason), wrong_device (operator, input, both devices and the correction; a warning where
// copies are made), unsupported (devices in subnets), hazard, shape_mismatch (sparse links), and warnings for operators that are not read.
// Nets inside nets too, at any depth, their operators named "outer/inner". Values without a type are skipped: their producers are known to
// be wrong. Pure.
Findings verify(const TypedNet& net, const CompilationTarget& target, const VerifyOptions& options);
// Adds to `findings`, after the earlier ones.
void verify(const TypedNet& net, const CompilationTarget& target, const VerifyOptions& options, Findings& findings);

}  // namespace heddle
