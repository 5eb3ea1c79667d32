// The options of `heddle train` that say what it learns from.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "tensors/picture.h"

namespace heddle::tool {

struct DataFlags {
  std::vector<std::string> data, test_data;  // NAME=WHAT
  std::vector<std::string> ragged;           // VALUES=OFFSETS
  std::vector<std::string> augment;
  std::string normalize;
  int64_t samples = 1024;  // of synthetic data
  int64_t skip_bad = 0;    // samples that may be bad
  int readers = 1;

  void declare(CLI::App& app);
  // Returns true for an input of --ragged, whose values or offsets are not one for each sample.
  bool is_ragged(const std::string& input) const;
  bool are_offsets(const std::string& input) const;
  // Errors: invalid_argument.
  Result<PictureChanges> changes() const;
  // Returns the numbers of pictures of so many channels. Errors: invalid_argument.
  Result<PictureNumbers> numbers(int64_t channels) const;
};

}  // namespace heddle::tool
