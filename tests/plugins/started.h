// The object that started::Started calls when it is started, and when it is requested to end: its address is an attribute of the operator.
// The program that made it must be the one that runs the net, and completes the steps as it likes.
#pragma once

#include <cstdint>

#include "heddle/abi.h"

struct Starter {
  // Called in run(); the result is that of run().
  heddle_status (*start)(Starter* self, const heddle_run_context* context, int64_t number);
  void (*abort)(Starter* self, const heddle_run_context* context, int64_t number);
};
