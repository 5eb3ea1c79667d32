// --net NAME: chooses the net of a file that holds several.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "load/load.h"

namespace heddle::tool {

// Loads all nets of a file, or of a stream (common/standard_streams.h), whose weights are searched beneath the current folder.
Result<std::vector<Net>> load_nets_of(const std::string& file, const LoadOptions& options);

struct NetChoice {
  std::string name;  // empty: none was chosen

  void declare(CLI::App& app);
  // Opens a session of all nets of the file; the handle is on the chosen one, else on the first. Errors also: unknown_name.
  Result<Session> open(const Runtime& runtime, const std::string& file, const SessionOptions& options) const;
  // Loads the chosen net alone, else all nets of the file. Errors also: unknown_name.
  Result<std::vector<Net>> load_all(const std::string& file, const LoadOptions& options) const;
  // Loads the chosen net alone; if there are several, one has to be chosen. Errors also: invalid_argument, unknown_name.
  Result<Net> load(const std::string& file, const LoadOptions& options) const;
};

}  // namespace heddle::tool
