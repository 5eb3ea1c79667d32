// What started::Started does when it is started, and when it is told to end: the address of one is an attribute of the operator. The
// program that made it is the one that runs the net, and completes the steps as it likes.
#pragma once

#include <cstdint>

#include "heddle/abi.h"

struct Starter {
  // In run(): answers what run() answers.
  heddle_status (*start)(Starter* self, const heddle_run_context* context, int64_t number);
  void (*abort)(Starter* self, const heddle_run_context* context, int64_t number);
};
