// The text of --version: product, ABI, schema, commit and backends.
#pragma once

#include <string>

namespace heddle::tool {

std::string version_text();

}  // namespace heddle::tool
