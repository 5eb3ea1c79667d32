// The part of `heddle inspect` that describes nets.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "net/net.h"
#include "options/limit_options.h"

namespace heddle::tool {

struct NetQuestions {
  bool stats = false;
  std::vector<std::string> shapes, symbols;  // of inputs and symbolic dimensions, for flops
  LimitOptions limits;
};

// Describes each net with its inputs and outputs, and a single net with its operators too; in the object's "nets", and a single net in
// "net" and "stats" too. Errors: those of the options.
Status describe_nets(const std::vector<Net>& nets, const NetQuestions& questions, Report& report);

}  // namespace heddle::tool
