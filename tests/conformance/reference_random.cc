#include "conformance/reference.h"

namespace heddle::conformance {

std::vector<Row> random_rows() {
  return {};
}

}  // namespace heddle::conformance
