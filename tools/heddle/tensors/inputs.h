// The inputs of a run from the command line: files, shapes, random content.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/session.h"
#include "heddle/status.h"
#include "infer/infer.h"
#include "net/net.h"

namespace heddle::tool {

using NameValue = std::pair<std::string, std::string>;

struct InputRequest {
  std::vector<std::string> files;       // NAME=FILE
  std::vector<std::string> shapes;      // NAME=2x3x224x224
  std::vector<std::string> symbols;     // N=8
  std::optional<uint64_t> random_seed;  // content for inputs not given
  Limits limits;                        // of files
  bool invent_shapes = false;           // random content also for inputs whose content decides shapes
};

// Splits at the last '='. Code::invalid_argument naming the option and the text.
Result<NameValue> split_name_value(const std::string& option, const std::string& text);
// Splits all values of a repeatable option. Also invalid_argument: a name that is given twice, even with the same value.
Result<std::vector<NameValue>> split_name_values(const std::string& option, const std::vector<std::string>& texts);
Result<std::vector<std::pair<std::string, int64_t>>> parse_symbols(const std::vector<std::string>& texts);

// Returns the types that --shape gives, by position of the inputs; inputs that are not named keep the type that the net declares. Errors:
// unknown_name, invalid_argument.
Result<std::vector<TensorView>> bind_shapes(const std::vector<PortInfo>& inputs, const std::vector<std::string>& shapes);

// Returns the inputs that files give, by position; null for the others. Errors: unknown_name, unbound_symbol (a picture's shape), those of
// the files.
Result<std::vector<std::shared_ptr<const Blob>>> read_inputs(const std::vector<PortInfo>& inputs, const InputRequest& request);

// Returns one blob per input, in their order. Random content (docs/command_line.md): floats uniform in [-1, 1), integers in [0, 100], bool
// 0 or 1; inputs that operators use as indices stay within the bounds that the schemas state. Errors: missing_input (all at once, with the
// options that would give them, and inputs that decide shapes unless invent_shapes), unknown_name, shape_mismatch, unbound_symbol.
Result<std::vector<std::shared_ptr<const Blob>>> make_inputs(const std::vector<PortInfo>& inputs, const InputRequest& request);

// The views that runs and plans take.
std::vector<TensorView> views_of(const std::vector<std::shared_ptr<const Blob>>& blobs);

// The most random content that options may request: a mistake in a shape is an error instead of a killed process.
constexpr int64_t max_random_bytes = int64_t{1} << 36;
// Returns random content of a type, for plugin run and tests; `bound` > 0: integers in [0, bound).
std::shared_ptr<const Blob> random_blob(DType dtype, const Shape& shape, uint64_t seed, int64_t bound = 0);

}  // namespace heddle::tool
