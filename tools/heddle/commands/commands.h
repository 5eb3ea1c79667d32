// The commands of the tool: one line each. A command is a file, or a folder, beside this one that defines `const Command <name>_command`;
// the order is that of `heddle --help`.
#pragma once

#include "common/command.h"

#define HEDDLE_COMMANDS(COMMAND) \
  COMMAND(run)                   \
  COMMAND(check)                 \
  COMMAND(plan)                  \
  COMMAND(import)                \
  COMMAND(verify_onnx)           \
  COMMAND(inspect)               \
  COMMAND(convert)               \
  COMMAND(model)                 \
  COMMAND(train)                 \
  COMMAND(predictor)             \
  COMMAND(bench)                 \
  COMMAND(plugin)                \
  COMMAND(op)                    \
  COMMAND(devices)               \
  COMMAND(completion)            \
  COMMAND(manual)

namespace heddle::tool {

#define HEDDLE_DECLARE_COMMAND(name) extern const Command name##_command;
HEDDLE_COMMANDS(HEDDLE_DECLARE_COMMAND)
#undef HEDDLE_DECLARE_COMMAND

#define HEDDLE_ADDRESS_OF_COMMAND(name) &name##_command,
inline constexpr const Command* commands[] = {HEDDLE_COMMANDS(HEDDLE_ADDRESS_OF_COMMAND)};
#undef HEDDLE_ADDRESS_OF_COMMAND

}  // namespace heddle::tool
