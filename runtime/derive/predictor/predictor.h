// predictor: Net -> Net. The part of a net that makes some values of others, as it is used once training is over.
//
// Of the operators that the outputs need, in subnets too, without gradients and updates: Dropout gives what it is given, BatchNormalization
// normalises by the running statistics, StopGradient and ZeroGradient go, and what operators with subnets give to gradients alone is not
// wanted of them. Variables stay, with the content that they have.
#pragma once

#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Errors: unknown_name for what is no value; missing_input, naming an input of the net that the outputs need beside those
// given; invalid_argument where no output is named, where an input is a variable or of no known type, and where an output is made of a
// variable that the net has updated, or of a mask or statistics that training alone makes; unknown_name and duplicate_name of what is
// renamed. PredictorOptions::average is for those who fill the variables (Nets::add_predictor): nothing here reads it.
Result<Net> predictor(const Net& net, const PredictorOptions& options);

}  // namespace heddle
