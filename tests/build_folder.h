// Returns the folder of the files under test: the build tree or, on a machine that has none, the folder that HEDDLE_TEST_FOLDER names,
// which is laid out like one (tools/bundle.sh).
#pragma once

#include <cstdlib>
#include <string>

namespace heddle::testing {

inline const std::string& build_folder() {
  static const std::string& folder = *new std::string([] {
    const char* const named = std::getenv("HEDDLE_TEST_FOLDER");
    return named && *named ? named : HEDDLE_BINARY_DIR;
  }());
  return folder;
}

}  // namespace heddle::testing
