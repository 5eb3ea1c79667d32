// Nets before they are opened: they are read, given gradients and an optimizer, reduced to their predicting part, and written with the
// variables of a session.
//
//   auto nets = heddle::Nets::read("points.json");           // a net "points" with a loss
//   heddle::TrainingOptions how;
//   how.losses = {"loss"};
//   how.optimizer = "adam";
//   heddle::Status status = nets->add_training(*runtime, "points", how, "train");
//   auto session = runtime->open(*nets);                      // "points" and "train", over the same variables
//   auto train = session->net("train");
//   ...train->run(...)                                        // each run is a step
//   status = nets->take_variables(*session);                  // what was learned
//   if (status.ok()) status = nets->write("trained.heddle");
//
// Requires C++17; needs neither RTTI nor exceptions. docs/embedding.md has all of it in one program. Session::save_variables and
// load_variables write and read trained variables alone, with the state of the optimizer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/derivation.h"
#include "heddle/export.h"
#include "heddle/limits.h"
#include "heddle/session.h"
#include "heddle/status.h"

namespace heddle {

// Nets of a file or of memory, in order, each with its own name. A value: copies may be changed independently and share large contents. It
// keeps mapped weights alive, and the plugins of the runtime with which training was added. A function that changes it changes everything
// or, if it returns an error, nothing. Threads: const members may be called from several threads at once; others from one thread alone.
class HEDDLE_API Nets {
 public:
  // Reads a .heddle or .json file with its weights, like Runtime::open. `limits` also apply to nets derived from these. Errors: file_*,
  // weights_*, syntax, limit_exceeded and every error in a net that is found before its operators are looked up.
  static Result<Nets> read(const std::string& path, const Limits& limits = {});
  // Like read() for a file in memory, which is not needed afterwards; weights are looked up beneath `folder`.
  static Result<Nets> read_bytes(const void* bytes, size_t size, const std::string& folder, const Limits& limits = {});
  // Takes nets in memory that this tree's builders made (net/net.h, which is not installed). Errors: what load finds wrong in a net.
  static Result<Nets> of(std::vector<struct Net>&& nets, const Limits& limits = {});

  // Returns the names of the nets, in order.
  std::vector<std::string> names() const;
  // Returns the files of nets and weights that they were read from.
  std::vector<std::string> files() const;
  // Returns true if a run of the net updates a trainable variable. Errors: unknown_name.
  Result<bool> learns(const std::string& net) const;

  // Adds a net that trains: the net `of`, followed by gradients of the losses and, in each run, an update of each trainable variable that a
  // loss depends on. The net is named `as`, is added last and has the variables of `of`; a net that already has this name, even `of`
  // itself, is replaced. Made once, for all shapes. Outputs in addition to those of `of`: the losses, unless they are outputs already, and
  // "learning_rate", f32 []. New variables: the state of the optimizer, with the shape of the variable it belongs to ("w.velocity"), and
  // "step", i64 [], the number of runs done. Operators are those of the runtime's plugins. Errors: unknown_name (of a net, value, optimizer
  // or setting); invalid_argument (numbers that are no valid rate or bound, a net that trains already, a loss that depends on nothing
  // trainable); unsupported, naming an operator without gradient; hazard, naming both operators, if a gradient needs a value that is
  // overwritten; errors in a net's operators and types; forked.
  Status add_training(const Runtime& runtime, const std::string& of, const TrainingOptions& options, const std::string& as);
  // Like add_training(), but adds `of` with gradients only. Returns the gradient of each wanted value, in that order. Errors: those of
  // add_training.
  Result<std::vector<Gradient>> add_gradients(const Runtime& runtime, const std::string& of, const DifferentiateOptions& options,
                                              const std::string& as);
  // Like add_training(), adds a net, named options.name: the part of `of` that computes some values from others when training is over.
  // Dropout passes its input through and BatchNormalization uses the running statistics; gradients, updates and what only they need are
  // left out. Errors: unknown_name (a name that is no value); missing_input, naming an input that is needed besides those given;
  // invalid_argument (no output is named; an input is a variable or of unknown type; an output depends on a variable that the net has
  // updated; averages are requested and none of these nets keeps any); duplicate_name (two values of the new net would have the same name).
  Status add_predictor(const std::string& of, const PredictorOptions& options);
  // Returns these nets only, in the order given. Errors: unknown_name; invalid_argument (none).
  Result<Nets> only(const std::vector<std::string>& names) const;

  // Sets the initial values of the variables to the values that the session holds now, all read at one point between runs. Further
  // variables of the session are ignored. Errors: unknown_name, dtype_mismatch and shape_mismatch, naming a variable that the session does
  // not have or has with another type; those of Session::save_variables.
  Status take_variables(const Session& session, const RunOptions& options = {});
  // Writes all nets to one file, in the text form if its name ends in ".json"; contents of over 4096 bytes go to NAME.safetensors beside
  // it. Files are replaced as a whole, including those that the nets were read from. Errors: file_unwritable, duplicate_name,
  // limit_exceeded, invalid_argument (the name is that of weights) and errors in a net.
  Status write(const std::string& path) const;

  struct State;

 private:
  friend struct Internals;
  void put(struct Net&& net);
  explicit Nets(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace heddle
