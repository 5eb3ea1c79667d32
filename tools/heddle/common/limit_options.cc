#include "common/limit_options.h"

#include "base/limits.h"
#include "base/text.h"
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
    HEDDLE_CHECK(set_limit(limits, name, 0), "in --limit " + quoted(name + "=" + text));  // an unknown name comes before a wrong value
    if (!(size ? parse_size(text, &value) : parse_int(text, &value)))
      return Status(Code::invalid_argument, "--limit " + quoted(name + "=" + text) + " is no " + (size ? "size" : "whole number"),
                    "write it like " + word(name) + (size ? "=512MiB" : "=1000000"));
    HEDDLE_CHECK(set_limit(limits, name, value), "in --limit " + quoted(name + "=" + text));
  }
  return limits;
}

}  // namespace heddle::tool
