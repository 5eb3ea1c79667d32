// The pictures of a folder or of a list, in a fixed order, with the texts that say what they show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "heddle/status.h"

namespace heddle::tool {

struct PictureFiles {
  std::vector<std::string> paths;
  std::vector<std::string> classes;  // likewise: the folder that each is in; empty: they are in none
};

// Finds the pictures (.jpg, .jpeg, .png) of a folder: those of each folder in it, also further down, are of one class; or all are in the
// folder itself, and have none. Sorted by class and path; what begins with a dot is left out. Errors: file_not_found; invalid_argument (no
// pictures; some in class folders and some beside them).
Result<PictureFiles> pictures_of_folder(const std::string& folder);
// Reads the column of a CSV file whose cells are pictures' paths, beneath the folder of that file. Errors: those of read_csv_column.
Result<PictureFiles> pictures_of_list(const std::string& file, const std::string& column, const Limits& limits);

}  // namespace heddle::tool
