// run --expect: compares outputs with the tensors in files.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/command.h"
#include "common/file_roles.h"
#include "heddle/session.h"
#include "tensors/compare.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {

struct ExpectationArguments {
  std::vector<std::string> files;  // NAME=FILE
  Tolerances given;                // --rtol, --atol

  void declare(CLI::App& app);
};

class Expectations {
 public:
  // Reads the files, before anything runs. Errors: unknown_name (no such output), invalid_argument, those of the files.
  Status read(const ExpectationArguments& given, const std::vector<PortInfo>& outputs, const Limits& limits, FileRoles& roles);
  // Compares the outputs of the run; `json` becomes the object's "expected". Errors: comparison_failed for every output that differs, with
  // the largest difference and where it is.
  Status compare(const Context& context, const std::string& net, Json* json) const;

 private:
  struct Expected {
    size_t output = 0;
    std::string name, file;
    std::shared_ptr<const Blob> content;
  };
  Tolerances given_;
  std::vector<Expected> expected_;
};

}  // namespace heddle::tool
