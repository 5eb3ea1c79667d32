#include "base/library_version.h"

namespace heddle {

std::string_view library_version() {
  return HEDDLE_VERSION;  // defined by runtime/CMakeLists.txt
}

}  // namespace heddle
