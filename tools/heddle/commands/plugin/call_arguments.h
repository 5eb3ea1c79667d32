// One call of an operator as options describe it: for `plugin run` and `plugin check`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/plugin/example.h"
#include "common/command.h"

namespace heddle::tool {

struct CallArguments {
  std::vector<std::string> files, shapes, dtypes, attributes;
  std::string example;

  bool empty() const { return files.empty() && shapes.empty() && dtypes.empty() && attributes.empty() && example.empty(); }
};

// --input, --shape, --dtype, --attribute, --example.
void add_call_options(CLI::App& app, CallArguments& arguments);
// The options as on a command line, each preceded by a blank.
std::string call_options_text(const CallArguments& arguments);

// Takes files first, then random inputs of the shapes, below their bound where they hold indices; then the outputs that are not optional.
// Errors: those of parse_example(); invalid_argument where options are no shape, dtype or attribute, or are combined with --example; those
// of reading.
Result<Example> parse_call(const OperatorSchema& schema, const CallArguments& arguments, uint64_t seed);

}  // namespace heddle::tool
