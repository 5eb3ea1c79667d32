#include "conformance/reference.h"

namespace heddle::conformance {

std::vector<Row> movement_rows() {
  return {};
}

}  // namespace heddle::conformance
