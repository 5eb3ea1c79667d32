#include "commands/run/memory_use.h"

#include <sys/resource.h>

namespace heddle::tool {

int64_t resident_peak_bytes() {
  rusage usage = {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : -1;
}

}  // namespace heddle::tool
