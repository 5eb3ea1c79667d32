// The part of a training that a step belongs to.
#pragma once

#include <vector>

#include "heddle/plan_info.h"

namespace heddle::tool {

// forward: computes the net's outputs; backward: computes gradients; update: changes variables, or depends on such a change.
enum class StepPhase { forward, backward, update };

// Returns the phase of each step. In a plan that neither computes gradients nor updates variables all are forward. The derivation of
// gradients names its operators "conv1.gradient.Gemm"; what depends on one of these is backward too.
std::vector<StepPhase> phases_of(const PlanInfo& plan);

}  // namespace heddle::tool
