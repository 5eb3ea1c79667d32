#include "options/limit_options.h"

#include <fmt/format.h>

#include "base/text/limit_names.h"
#include "base/text/text.h"
#include "tensors/inputs.h"

namespace heddle::tool {

void LimitOptions::declare(CLI::App& app) {
  app.add_option("--limit", texts, "raise (or lower) a limit of what nets may ask for (repeatable)")->type_name("NAME=VALUE");
}

Result<Limits> LimitOptions::limits() const {
  Limits limits;
  HEDDLE_TRY(const std::vector<NameValue> given, split_name_values("--limit", texts));
  for (const auto& [name, text] : given) {
    int64_t value = 0;
    const bool size = name.ends_with("_bytes");
    // An unknown name is reported before a wrong value.
    HEDDLE_CHECK(set_limit(limits, name, 0), fmt::format("in --limit {}", quoted(name + "=" + text)));
    if (!(size ? parse_size(text, &value) : parse_int(text, &value)))
      return Status(Code::invalid_argument, fmt::format("--limit {} is no {}", quoted(name + "=" + text), size ? "size" : "whole number"),
                    fmt::format("write it like {}={}", word(name), size ? "512MiB" : "1000000"));
    HEDDLE_CHECK(set_limit(limits, name, value), fmt::format("in --limit {}", quoted(name + "=" + text)));
  }
  return limits;
}

}  // namespace heddle::tool
