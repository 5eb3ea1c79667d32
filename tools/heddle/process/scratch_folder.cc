#include "process/scratch_folder.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace heddle::tool {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "heddle-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder could be made");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace heddle::tool
