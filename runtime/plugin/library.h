// A plugin's shared library: opened (now, local, absolute path), checked by a handshake, and closed in order.
#pragma once

#include <filesystem>
#include <memory>

#include "heddle/abi.h"
#include "heddle/status.h"

namespace heddle {

// One use of an open library. A process opens, queries and initializes a library once, however many Library objects (registries, sessions)
// share it; the last one calls its shutdown and closes it: no part of it may be in use then. open and the destructor may be called by any
// thread.
class Library {
 public:
  // Opens `path` and performs the handshake: the ABI's numbers and hash are compared before any other field is read or function called,
  // every table is checked (check_tables.h) before initialize is called. After a refusal the library is unloaded again. Errors:
  // plugin_unreadable (no such file, not a library, unresolved symbols), plugin_invalid (no entry point, null or damaged tables, initialize
  // failed), plugin_abi (both versions or hashes and the file are named).
  static Result<std::unique_ptr<Library>> open(const std::filesystem::path& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const heddle_plugin& plugin() const;
  // This is what the plugin says of what it works with here, or why it offers nothing; a plugin that says nothing has an empty text.
  struct Description {
    bool offers = true;
    std::string text;
  };
  Description describe() const;
  const std::filesystem::path& path() const { return path_; }
  // xxh64 of the file, computed on each call.
  uint64_t file_hash() const;

 private:
  struct Opened;
  struct Table;
  Library(std::filesystem::path path, Opened* opened) : path_(std::move(path)), opened_(opened) {}
  std::filesystem::path path_;
  Opened* opened_;  // shared, counted; the table owns it
};

}  // namespace heddle
