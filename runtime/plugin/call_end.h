// Where the call of an operator ended: what tells an operator that refuses, which is its right, from one that is broken.
#pragma once

#include <cstdint>

#include "heddle/abi.h"

namespace heddle {

enum class OperatorPhase : uint8_t { look_up, infer, allocate, create, prepare, run };

struct CallEnd {
  // Of a call that failed: the phase that did.
  OperatorPhase phase = OperatorPhase::look_up;
  // What the plugin's function answered; internal also where it threw, or answered what makes no sense (tiles below zero, an extent beyond
  // its bound). Ok: the plugin did nothing wrong, the host itself refused (dtypes, limits, memory).
  heddle_status answer = HEDDLE_OK;

  // Of a call that failed: whether it only would not have these inputs. Prepare may say no more than that another kernel should do it, and
  // run no more than that the content is wrong.
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
