#include "commands/train/data/picture_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/text/text.h"
#include "tensors/csv.h"
#include "tensors/picture.h"

namespace heddle::tool {
namespace fs = std::filesystem;
namespace {

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;  // a link that leads nowhere is no folder
  return entry.is_directory(error) && !error;
}

Status not_listed(const fs::path& folder, const std::error_code& error) {
  return {Code::file_not_found, fmt::format("could not list {}: {}", quoted(folder.string()), error.message()), "look at the folder"};
}

// Adds the pictures beneath a folder. `seen`: the folders whose pictures are there already, to which links may lead again.
Status add_pictures(const fs::path& folder, std::set<fs::path>& seen, std::vector<std::string>* paths) {
  std::error_code error;
  if (!seen.insert(fs::canonical(folder, error)).second) return {};
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (is_hidden(it->path())) continue;
    if (is_folder(*it)) {
      HEDDLE_CHECK(add_pictures(it->path(), seen, paths));
    } else if (is_picture(it->path().string())) {
      paths->push_back(it->path().string());
    }
  }
  return error ? not_listed(folder, error) : Status();
}

}  // namespace

Result<PictureFiles> pictures_of_folder(const std::string& folder) {
  std::vector<fs::path> classes;
  PictureFiles found;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (is_hidden(it->path())) continue;
    if (is_folder(*it))
      classes.push_back(it->path());
    else if (is_picture(it->path().string()))
      found.paths.push_back(it->path().string());
  }
  if (error)
    return Status(Code::file_not_found, fmt::format("could not list {}: {}", quoted(folder), error.message()), "look at the folder");
  std::sort(classes.begin(), classes.end());
  std::sort(found.paths.begin(), found.paths.end());
  const bool has_own = !found.paths.empty();
  for (const fs::path& of_class : classes) {
    std::vector<std::string> paths;
    std::set<fs::path> seen = {fs::canonical(folder, error)};
    HEDDLE_CHECK(add_pictures(of_class, seen, &paths));
    std::sort(paths.begin(), paths.end());
    if (has_own && !paths.empty())
      return Status(Code::invalid_argument,
                    fmt::format("{} has pictures in {} and beside it, as {}", quoted(folder), quoted(of_class.filename().string()),
                                quoted(fs::path(found.paths[0]).filename().string())),
                    "put each in a folder of its class, or all in one folder");
    found.classes.insert(found.classes.end(), paths.size(), of_class.filename().string());
    found.paths.insert(found.paths.end(), std::make_move_iterator(paths.begin()), std::make_move_iterator(paths.end()));
  }
  if (found.paths.empty())
    return Status(Code::invalid_argument, fmt::format("{} has no pictures (.jpg, .jpeg, .png)", quoted(folder)),
                  "name a folder with a folder of pictures for each class");
  return found;
}

Result<PictureFiles> pictures_of_list(const std::string& file, const std::string& column, const Limits& limits) {
  PictureFiles found;
  HEDDLE_TRY(found.paths, read_csv_column(file, column, limits));
  const fs::path folder = fs::path(file).parent_path();
  for (std::string& path : found.paths) path = (folder / path).string();  // an absolute one stays as it is
  return found;
}

}  // namespace heddle::tool
