#include "cubin.h"

#include <cstring>

namespace heddle::cuda::standin {

static constexpr char beginning[] = "heddle stand-in\n";

std::string write_cubin(const std::string& architecture, const std::string& file) {
  return beginning + architecture + "\n" + file + "\n";
}

bool read_cubin(const char* code, std::string* architecture, std::string* file) {
  if (!code || std::strncmp(code, beginning, sizeof(beginning) - 1) != 0) return false;
  const std::string rest = code + sizeof(beginning) - 1;
  const size_t first = rest.find('\n'), second = rest.find('\n', first + 1);
  if (first == std::string::npos || second == std::string::npos) return false;
  *architecture = rest.substr(0, first);
  *file = rest.substr(first + 1, second - first - 1);
  return true;
}

}  // namespace heddle::cuda::standin
