// The stages of an epilogue that the host fused behind a node, as a chain.
#pragma once

#include <cstdint>

#include "generate/chain.h"
#include "heddle/op.h"

namespace heddle::cuda {

// Errors: unsupported, of operands that are neither of the output's shape nor of one element, and of operations that the output's dtype
// does not have.
plugin::Status stage_chain(const plugin::CreateContext& context, Chain* chain);
// What accepts_epilogue answers.
bool takes_stages(const plugin::CreateContext& context);
// The node's own inputs: those of stages stand behind them.
uint32_t own_inputs(const plugin::CreateContext& context);

}  // namespace heddle::cuda
