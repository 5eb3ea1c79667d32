#include "options/net_options.h"

#include "tensors/inputs.h"

namespace heddle::tool {

void NetOptions::declare(CLI::App& app) {
  choice.declare(app);
  app.add_option("--input", files, "content of an input that decides shapes")->type_name("NAME=FILE");
  app.add_option("--shape", shapes, "shape of an input")->type_name("NAME=2x3x224x224");
  app.add_option("--symbol", symbols, "extent of a symbolic dimension")->type_name("N=8");
  devices.declare(app);
  limits.declare(app);
}

Result<SessionOptions> NetOptions::session_options() const {
  SessionOptions options;
  HEDDLE_TRY(options.symbols, parse_symbols(symbols));
  HEDDLE_TRY(options.limits, limits.limits());
  devices.apply(options);
  return options;
}

}  // namespace heddle::tool
