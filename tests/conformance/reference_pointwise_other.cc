#include "conformance/reference.h"

namespace heddle::conformance {

std::vector<Row> pointwise_other_rows() {
  return {};
}

}  // namespace heddle::conformance
