#include "shared/nvidia/nvidia_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace heddle::operators {
namespace {

std::vector<std::string> folders_of(const char* list) {
  std::vector<std::string> folders;
  std::string_view rest = list ? list : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    if (colon != 0) folders.push_back(std::string(rest.substr(0, colon)) + "/");
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return folders;
}

}  // namespace

void* open_nvidia_library(const std::vector<std::string>& names, std::string* why) {
  const auto attempt = [&](const std::string& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library && why->empty()) *why = dlerror();
    return library;
  };
  why->clear();
  if (const char* const standin = std::getenv("HEDDLE_CUDA_STANDIN"); standin && *standin) return attempt(standin);
  std::vector<std::string> folders = folders_of(std::getenv("HEDDLE_CUDA_LIBRARIES"));
  if (folders.empty()) folders = {"", "/usr/local/cuda/lib64/"};
  for (const std::string& folder : folders)
    for (const std::string& name : names)
      if (void* const library = attempt(folder + name)) return library;
  return nullptr;
}

}  // namespace heddle::operators
