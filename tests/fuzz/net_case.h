// One case: bytes through load, resolve, infer, transform, verify and compile (and, if requested, a run), under limits so small that no
// case takes long. Whatever the bytes, each stage returns its result or an error that states what is wrong.
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
  Stage stopped = Stage::load;  // the stage that refused it; done: none
  Status status;                // the error
};

class Target {
 public:
  // If `run`, plans are executed once, on random inputs.
  Target(std::shared_ptr<const RegistrySnapshot> registry, bool run) : registry_(std::move(registry)), run_(run) {}
  // Ends the process with a message if the library broke a promise: a net that loads can't be written or reads back differently, or an
  // error reports a defect of Heddle.
  Outcome test(std::span<const std::byte> file) const;

  // Limits for everything that files can request.
  static Limits limits();

 private:
  Outcome go_on(const struct LoadedCase& loaded) const;

  std::shared_ptr<const RegistrySnapshot> registry_;
  bool run_;
};

}  // namespace heddle::fuzz
