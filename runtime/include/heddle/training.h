// Nets before they are opened. They can be read from files, extended by gradients and an optimizer, reduced to the part that predicts, and
// written to files with the values that variables have in a session.
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
// Requires C++17; needs neither RTTI nor exceptions. docs/embedding.md shows all of this in one program. Session::save_variables and
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

// A list of nets from files or memory, each with its own name. An object is a value: copies share large contents and may be changed
// independently of each other. An object keeps alive the weights that it maps and the plugins of the runtime with which training was added.
// If a member function returns an error, it has changed nothing. Threads: const members may be called from several threads at once; others
// from one thread alone.
class HEDDLE_API Nets {
 public:
  // Reads a .heddle or .json file with its weights, like Runtime::open. `limits` also apply to nets that are derived from these nets later.
  // Errors: file_*, weights_*, syntax, limit_exceeded and every error in a net that can be found without knowing its operators.
  static Result<Nets> read(const std::string& path, const Limits& limits = {});
  // Like read() for a file in memory, which is not needed afterwards; weights are looked up beneath `folder`.
  static Result<Nets> read_bytes(const void* bytes, size_t size, const std::string& folder, const Limits& limits = {});
  // Takes nets in memory, made by code of the Heddle repository (net/net.h is not installed). Errors: those that loading a file finds in a
  // net.
  static Result<Nets> of(std::vector<struct Net>&& nets, const Limits& limits = {});

  // Returns the names of the nets, in order.
  std::vector<std::string> names() const;
  // Returns the files of nets and of weights that these nets were read from.
  std::vector<std::string> files() const;
  // Returns true if a run of the net updates a trainable variable. Errors: unknown_name.
  Result<bool> learns(const std::string& net) const;

  // Adds a net named `as` that trains. In each run it computes the net named `of`, then the gradients of the losses, and then updates each
  // trainable variable that a loss depends on. The new net has the variables of `of`. It replaces the net that already has the name `as`,
  // which may be `of` itself; if there is none, the new net is the last one. It is valid for all shapes. Its outputs are those of `of`, the
  // losses that are not among them already, and "learning_rate", f32 []. It has new variables: the state of the optimizer, where each
  // variable has the shape of the trained variable that it belongs to ("w.velocity"), and "step", i64 [], the number of runs done. The nets
  // may use the operators of the runtime's plugins. Errors: unknown_name (of a net, value, optimizer or setting); invalid_argument (a
  // number that is no valid rate or bound; `of` trains already; a loss depends on no trainable variable); unsupported, naming an operator
  // without gradient; hazard, naming both operators, if a gradient needs a value that is overwritten; errors in a net's operators and
  // types; forked.
  Status add_training(const Runtime& runtime, const std::string& of, const TrainingOptions& options, const std::string& as);
  // Like add_training(), but the new net consists of `of` and the gradients only: it updates nothing. Returns one Gradient for each wanted
  // value, in the order of `options.wanted`. Errors: those of add_training.
  Result<std::vector<Gradient>> add_gradients(const Runtime& runtime, const std::string& of, const DifferentiateOptions& options,
                                              const std::string& as);
  // Like add_training(), but the new net consists of `of` on several devices only: it has no gradients, and updates what `of` updates. Its
  // outputs are those of `of`, for the whole batch: rows of all devices in their order, and of what has none the mean over the batch.
  // Errors: unknown_name; invalid_argument (options that contradict each other or the net); errors in a net's operators and types; forked.
  Status add_replicas(const Runtime& runtime, const std::string& of, const DataParallelOptions& options, const std::string& as);
  // Adds a net named options.name, or replaces the net of that name, as add_training() does. The new net is the part of the net `of` that
  // computes options.outputs from options.inputs, in inference mode: Dropout returns its input unchanged, and BatchNormalization uses the
  // running statistics. The new net has no gradients, no updates and no operators that only these need. Errors: unknown_name (a name that
  // is no value); missing_input, naming an input that options.inputs lacks; invalid_argument (options.outputs is empty; an input is a
  // variable or has an unknown type; an output depends on a variable after its update in the same run; averages are requested, but none of
  // these nets keeps averages); duplicate_name (two values of the new net would have the same name).
  Status add_predictor(const std::string& of, const PredictorOptions& options);
  // Returns only the nets that are named, in the order of `names`. Errors: unknown_name; invalid_argument (`names` is empty).
  Result<Nets> only(const std::vector<std::string>& names) const;

  // Sets the initial values of all variables of these nets to the values that the variables have in the session now; all values are read at
  // one point between runs. Other variables of the session are ignored. Errors: unknown_name, dtype_mismatch and shape_mismatch, naming a
  // variable that the session does not have or has with another type; those of Session::save_variables.
  Status take_variables(const Session& session, const RunOptions& options = {});
  // Sets the initial values of all variables of these nets to those of a checkpoint (heddle/checkpoint.h); its other variables are ignored.
  // Errors: unknown_name, dtype_mismatch and shape_mismatch, naming a variable that the checkpoint does not have or has with another type;
  // invalid_argument (the nets have no variables); those of read_checkpoint_info(); file_corrupt, naming a tensor that is not what was
  // written.
  Status take_checkpoint(const std::string& path);
  // Writes all nets to the file `path`, in the text form if `path` ends in ".json". Constants and variables of over 4096 bytes go to
  // NAME.safetensors beside that file. Both files are replaced as a whole, even if the nets were read from them. Errors: file_unwritable,
  // duplicate_name, limit_exceeded, invalid_argument (`path` is the name of a weights file) and errors in a net.
  Status write(const std::string& path) const;

  struct State;

 private:
  friend struct Internals;
  void put(struct Net&& net);
  explicit Nets(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace heddle
