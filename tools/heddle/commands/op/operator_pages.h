// Pages in Markdown that say what operators are: a reference to keep beside a plugin's other documentation.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "plugin/schema.h"

namespace heddle::tool {

// An operator and what operator_json() says of it, with the key "plugin".
struct DescribedOperator {
  const OperatorSchema* schema;
  Json json;
  std::vector<std::string> own_devices;  // the kinds of device that its own plugin has kernels for
};

// Writes a page for each folder of source files that declares operators, called as the folder (or as the plugin, where one folder has
// all), and README.md, a table of all. The folder is made if it is not there; other files in it stay. Errors: file_unwritable, also where a
// file of one of these names is there that this function has not made.
Status write_operator_pages(const std::string& folder, const std::vector<DescribedOperator>& operators);

}  // namespace heddle::tool
