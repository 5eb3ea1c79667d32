// Nets as text that people read and tests compare: one line for each constant, variable and operator, in program order.
//
//   mlp(x: f32[3, 40]) -> (y)
//   b: f32[2] = [1, 2]
//   variable w: f32[40, 2] = [0.5, 1, 1.5, 2, ...] trainable -> w@1
//   h: f32[3, 2] = Gemm(x, w@0, b) @cpu:0 then Relu(max(acc, 0)) # fc1
//   w@1: f32[40, 2] = heddle::SgdUpdate(w@0, g, rate) after(fc1) # step
//
// A Net shows the types that it declares, a TypedNet those that were inferred: "<=4" is a bound, "?" an extent that is known only during
// the run, "late" marks a type that follows from such a type, "known" content that inference followed. An operator shows the version it
// requests ("Add/14"), its attributes, its device, the operators it waits for, those that were fused into it, and after "#" its own name
// where that differs from the name of its first output. Nets in attributes are in braces, indented. Of more than 16 elements the first four
// are shown. Names that are not plain words are quoted and escaped (base/text/text.h). The text is not read back: JSON is the form that is
// parsed (load/json.h).
#pragma once

#include <string>

#include "net/typed_net.h"

namespace heddle {

// Each text ends with a line feed. Nets that structure checks would refuse are shown too. Pure.
std::string print(const Net& net);
std::string print(const TypedNet& net);

}  // namespace heddle
