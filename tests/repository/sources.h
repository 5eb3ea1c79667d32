// The files of the checkout, for tests that read it.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace heddle::testing_repository {

inline const std::filesystem::path checkout = HEDDLE_SOURCE_DIR;

// Returns the names, relative to the checkout, of the sources below `folders`: files of C++ and CUDA, or of `extensions`.
inline std::vector<std::string> sources_of(const std::vector<std::string>& folders,
                                           const std::set<std::string>& extensions = {".h", ".cc", ".cu"}) {
  std::vector<std::string> files;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(checkout / folder))
      if (extensions.contains(entry.path().extension().string()))
        files.push_back(std::filesystem::relative(entry.path(), checkout).string());
  return files;
}

inline std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> lines;
  std::ifstream file(checkout / name);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace heddle::testing_repository
