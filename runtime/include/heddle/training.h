// Nets before they are opened: read, given gradients and an optimizer, reduced to what predicts, written with what a session learned.
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
// C++17; needs neither RTTI nor exceptions. docs/embedding.md has all of it in one program. What a session learned is also written and read
// alone, with the state of its optimizer: Session::save_variables and load_variables.
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

// Nets of a file or of memory, in order, each with a name of its own. A value: copies may be changed apart from each other, and have large
// contents in common. It keeps mapped weights alive, and the plugins of the runtime that it was made to learn with. What changes it changes
// all that it should or, when it gives an error, nothing. Threads: const members from any, several at once; one that changes it alone.
class HEDDLE_API Nets {
 public:
  // A .heddle or .json file with its weights, as Runtime::open reads it. What is made of the nets is held to `limits` too. Errors: file_*,
  // weights_*, syntax, limit_exceeded and all that is wrong with a net before its operators are looked up.
  static Result<Nets> read(const std::string& path, const Limits& limits = {});
  // The same from memory, which is not needed afterwards; weights are looked up beneath `folder`.
  static Result<Nets> read_bytes(const void* bytes, size_t size, const std::string& folder, const Limits& limits = {});
  // The same of nets in memory that this tree's builders made (net/net.h, which is not installed). Errors: what load finds wrong in a net.
  static Result<Nets> of(std::vector<struct Net>&& nets, const Limits& limits = {});

  // By name, in order.
  std::vector<std::string> names() const;
  // The files that they were read from: nets and weights.
  std::vector<std::string> files() const;
  // Whether a run of it updates a trainable variable. Errors: unknown_name.
  Result<bool> learns(const std::string& net) const;

  // Adds a net: the net `of`, and behind it gradients of the losses and an update of each trainable variable that a loss depends on, in
  // each run. It is called `as`, stands last and has the variables of `of`; where a net is called so, also `of` itself, it takes that one's
  // place. Made once, for every shape. Outputs beside those of `of`: the losses, unless they were some already, and "learning_rate", f32
  // []. New variables: what the optimizer remembers, of the shape of what it is of ("w.velocity"), and "step", i64 [], the number of runs
  // done. Operators are those of the runtime's plugins. Errors: unknown_name (of a net, value, optimizer or setting); invalid_argument
  // (numbers that make no rate or bound, a net that learns already, a loss that depends on nothing trainable); unsupported, naming an
  // operator without gradient; hazard, naming both operators, where a gradient needs a value that is overwritten; what is wrong with a
  // net's operators and types; forked.
  Status add_training(const Runtime& runtime, const std::string& of, const TrainingOptions& options, const std::string& as);
  // Adds a net likewise: `of` with gradients alone. What became of each that was wanted, in that order. Errors: as add_training.
  Result<std::vector<Gradient>> add_gradients(const Runtime& runtime, const std::string& of, const DifferentiateOptions& options,
                                              const std::string& as);
  // Adds a net likewise, called options.name: the part of `of` that makes some values of others once training is over. Dropout gives what
  // it is given, BatchNormalization normalises by the running statistics; gradients, updates and what only they need are left out. Errors:
  // unknown_name for what is no value; missing_input, naming an input that is needed beside those given; invalid_argument where no output
  // is named, an input is a variable or of no known type, or an output is made of a variable that the net has updated, or averages
  // are wanted and no net of these keeps any; duplicate_name where something is given the name of something else.
  Status add_predictor(const std::string& of, const PredictorOptions& options);
  // These nets alone, in the order given. Errors: unknown_name; invalid_argument (none).
  Result<Nets> only(const std::vector<std::string>& names) const;

  // The variables begin with what those of the session hold now, all as they are at one point between runs. Variables that the session has
  // beside are no matter. Errors: unknown_name, dtype_mismatch and shape_mismatch, naming a variable that the session does not have so;
  // those of Session::save_variables.
  Status take_variables(const Session& session, const RunOptions& options = {});
  // All of them as one file, in the text form when its name ends in ".json"; contents of over 4096 bytes go to NAME.safetensors beside it.
  // Files are replaced as a whole, also those that the nets were read from. Errors: file_unwritable, duplicate_name, limit_exceeded,
  // invalid_argument (the name is that of weights) and what is wrong with a net.
  Status write(const std::string& path) const;

  struct State;

 private:
  friend struct Internals;
  void put(struct Net&& net);
  explicit Nets(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace heddle
