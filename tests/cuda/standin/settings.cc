#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace heddle::cuda::standin {
namespace {

uint64_t number_of(const char* name, const std::string& text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (!text.empty() && *end == '\0') return value;
  std::fprintf(stderr, "cuda stand-in: %s has \"%s\", which is no number\n", name, text.c_str());
  std::abort();
}

uint64_t number(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text && *text ? number_of(name, text) : otherwise;
}

// Reads numbers separated by commas.
std::vector<int> numbers(const char* name, std::vector<int> otherwise) {
  const char* const text = std::getenv(name);
  if (!text || !*text) return otherwise;
  std::vector<int> all;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) all.push_back(static_cast<int>(number_of(name, one)));
  return all;
}

std::string text(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

Settings Settings::read() {
  Settings s;
  s.devices = static_cast<int>(number("HEDDLE_CUDA_STANDIN_DEVICES", static_cast<uint64_t>(s.devices)));
  s.first_device = static_cast<int>(number("HEDDLE_CUDA_STANDIN_FIRST_DEVICE", 0));
  s.memory_bytes = number("HEDDLE_CUDA_STANDIN_MEMORY", s.memory_bytes);
  s.seed = number("HEDDLE_CUDA_STANDIN_SEED", 0);
  s.hold = text("HEDDLE_CUDA_STANDIN_HOLD", "");
  s.idle = number("HEDDLE_CUDA_STANDIN_IDLE", 0) == 1;
  s.nccl_version = static_cast<int>(number("HEDDLE_CUDA_STANDIN_NCCL_VERSION", static_cast<uint64_t>(s.nccl_version)));
  s.architectures = numbers("HEDDLE_CUDA_STANDIN_ARCHITECTURES", s.architectures);
  s.cache = text("HEDDLE_CUDA_STANDIN_CACHE", HEDDLE_CUDA_STANDIN_FOLDER);
  return s;
}

}  // namespace heddle::cuda::standin
