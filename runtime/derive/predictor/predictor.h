// predictor: Net -> Net. The part of a net that computes some values from others, in the form that is used once training is over.
//
// Takes the operators that the outputs need, in subnets too, without gradients and updates: Dropout passes its input on, BatchNormalization
// normalises by the running statistics, StopGradient and ZeroGradient are removed, and outputs of operators with subnets that serve only
// gradients are dropped. Variables stay, with the content that they have.
#pragma once

#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Errors: unknown_name for a name that is no value; missing_input, naming an input of the net that the outputs need beside those given;
// invalid_argument where no output is named, where an input is a variable or of no known type, and where an output depends on a variable
// that the net has updated, or on a mask or statistics that only training makes; unknown_name and duplicate_name for names to be changed.
// PredictorOptions::average is for callers that fill the variables (Nets::add_predictor): nothing here reads it.
Result<Net> predictor(const Net& net, const PredictorOptions& options);

}  // namespace heddle
