// One case: bytes through load, resolve, infer, transform, verify and compile (and, if asked, a run), under limits so small that no case
// takes long. Whatever the bytes, each stage gives its result or an error that says what is wrong.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/text/limit_names.h"
#include "plugin/registry.h"

namespace heddle::fuzz {

enum class Stage { load, resolve, build, run, done };
const char* to_string(Stage stage);

struct Outcome {
  Stage stopped = Stage::load;  // where it was refused; done: nowhere
  Status status;                // why
};

class Target {
 public:
  // `run`: plans are executed once, on random inputs.
  Target(std::shared_ptr<const RegistrySnapshot> registry, bool run) : registry_(std::move(registry)), run_(run) {}
  // Ends the process with a message when the library broke a promise: a net that loads can't be written or reads back differently, or an
  // error speaks of a defect of Heddle.
  Outcome test(std::span<const std::byte> file) const;

  // For everything that files can ask for.
  static Limits limits();

 private:
  Outcome go_on(const struct LoadedCase& loaded) const;

  std::shared_ptr<const RegistrySnapshot> registry_;
  bool run_;
};

}  // namespace heddle::fuzz
