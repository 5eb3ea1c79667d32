#include "settings.h"

#include <cstdio>
#include <cstdlib>

namespace heddle::cuda::standin {
namespace {

uint64_t number(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end == '\0') return value;
  std::fprintf(stderr, "cuda stand-in: %s is \"%s\", which is no number\n", name, text);
  std::abort();
}

std::string text(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

Settings Settings::read() {
  Settings s;
  s.devices = static_cast<int>(number("HEDDLE_CUDA_STANDIN_DEVICES", static_cast<uint64_t>(s.devices)));
  s.memory_bytes = number("HEDDLE_CUDA_STANDIN_MEMORY", s.memory_bytes);
  s.seed = number("HEDDLE_CUDA_STANDIN_SEED", 0);
  s.hold = text("HEDDLE_CUDA_STANDIN_HOLD", "");
  s.idle = number("HEDDLE_CUDA_STANDIN_IDLE", 0) == 1;
  s.cache = text("HEDDLE_CUDA_STANDIN_CACHE", HEDDLE_CUDA_STANDIN_FOLDER);
  return s;
}

}  // namespace heddle::cuda::standin
