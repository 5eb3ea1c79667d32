// Where the call of an operator failed: distinguishes an operator that refuses, which it may do, from one that is broken.
#pragma once

#include <cstdint>

#include "heddle/abi.h"

namespace heddle {

enum class OperatorPhase : uint8_t { look_up, infer, allocate, create, prepare, run };

struct CallEnd {
  // The phase in which the call failed.
  OperatorPhase phase = OperatorPhase::look_up;
  // The status that the plugin's function returned; internal also where it threw, or returned invalid values (tiles below zero, an extent
  // beyond its bound). Ok: the plugin made no mistake, the host itself refused (dtypes, limits, memory).
  heddle_status answer = HEDDLE_OK;

  // Whether the failed call only refused these inputs. In prepare the only permitted refusal is that another kernel should run the node, in
  // run that the content is wrong.
  bool refused() const {
    switch (answer) {
      case HEDDLE_OK:
        return true;
      case HEDDLE_ERROR_INVALID:
        return phase != OperatorPhase::prepare;
      case HEDDLE_ERROR_UNSUPPORTED:
        return phase != OperatorPhase::run;
      default:
        return false;
    }
  }
};

}  // namespace heddle
