// Nets that are not open yet: read from files or built, changed, and written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "derive/data_parallel/replicate.h"
#include "derive/predictor/predictor.h"
#include "derive/training_net.h"
#include "infer/registry_evaluator.h"
#include "load/load.h"
#include "load/save.h"
#include "load/structure.h"
#include "net/averages.h"
#include "resolve/resolve.h"
#include "session/plain_values.h"
#include "session/session_impl.h"
#include "state/checkpoint_file.h"
#include "state/net_contents.h"
#include "weights/referenced_files.h"

namespace heddle {
namespace {

LoadOptions load_options(const Limits& limits) {
  LoadOptions options;
  options.limits = limits;
  return options;
}

std::vector<std::string> names_of(const std::vector<Net>& nets) {
  std::vector<std::string> names;
  for (const Net& net : nets) names.push_back(net.name);
  return names;
}

Result<const Net*> find_net(const std::vector<Net>& nets, const std::string& name) {
  for (const Net& net : nets)
    if (net.name == name) return &net;
  return Status(Code::unknown_name, fmt::format("there is no net {}", quoted(name)), suggestion(name, names_of(nets)));
}

bool is_trained(const Net& net) {
  return std::any_of(net.variables.begin(), net.variables.end(), [](const Variable& v) { return v.trainable && v.first != v.last; });
}

// A net that is resolved with the operators of a runtime, and the evaluator that computes with them.
struct ResolvedNet {
  std::shared_ptr<const RegistrySnapshot> registry;
  std::unique_ptr<Evaluator> evaluator;
  Net net;
};
Result<ResolvedNet> resolved(const Runtime& runtime, const std::vector<Net>& nets, const std::string& name, const Limits& limits) {
  Runtime::Impl& from = Internals::of(runtime);
  HEDDLE_CHECK(from.made.check());
  HEDDLE_TRY(const Net* const net, find_net(nets, name));
  ResolvedNet made;
  made.registry = from.registry.snapshot();
  made.evaluator = make_registry_evaluator(made.registry);
  HEDDLE_TRY(made.net, resolve(*net, made.registry, limits));
  return made;
}

}  // namespace

Result<Nets> Nets::read(const std::string& path, const Limits& limits) try {
  HEDDLE_TRY(std::vector<Net> nets, load_nets(path, load_options(limits)));
  return Nets(std::make_shared<const State>(State{std::move(nets), path, std::filesystem::path(path).parent_path().string(), limits}));
} catch (...) {
  return status_of_exception();
}

Result<Nets> Nets::read_bytes(const void* bytes, size_t size, const std::string& folder, const Limits& limits) try {
  HEDDLE_TRY(std::vector<Net> nets, load_nets_bytes({static_cast<const std::byte*>(bytes), size}, folder, load_options(limits)));
  return Nets(std::make_shared<const State>(State{std::move(nets), {}, folder, limits}));
} catch (...) {
  return status_of_exception();
}

Result<Nets> Nets::of(std::vector<Net>&& nets, const Limits& limits) try {
  for (const Net& net : nets) HEDDLE_CHECK(check_whole_net(net, limits));
  return Nets(std::make_shared<const State>(State{std::move(nets), {}, {}, limits}));
} catch (...) {
  return status_of_exception();
}

std::vector<std::string> Nets::names() const {
  return or_empty("no memory for the names of nets", [&] { return names_of(state_->nets); });
}

std::vector<std::string> Nets::files() const {
  return or_empty("no memory for the names of files", [&] {
    std::vector<std::string> files;
    if (!state_->path.empty()) files.push_back(state_->path);
    for (const Net& net : state_->nets)
      for (const std::string& weights : referenced_files(net)) {
        const std::string file = (std::filesystem::path(state_->folder) / weights).string();
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    return files;
  });
}

Result<bool> Nets::learns(const std::string& net) const try {
  HEDDLE_TRY(const Net* const found, find_net(state_->nets, net));
  return is_trained(*found);
} catch (...) {
  return status_of_exception();
}

// Puts the net in the place of the one with its name, or last if there is none.
void Nets::put(Net&& net) {
  State changed = *state_;
  const auto same = std::find_if(changed.nets.begin(), changed.nets.end(), [&](const Net& n) { return n.name == net.name; });
  if (same == changed.nets.end())
    changed.nets.push_back(std::move(net));
  else
    *same = std::move(net);
  state_ = std::make_shared<const State>(std::move(changed));
}

Status Nets::add_training(const Runtime& runtime, const std::string& of, const TrainingOptions& options, const std::string& as) try {
  HEDDLE_TRY(const ResolvedNet base, resolved(runtime, state_->nets, of, state_->limits));
  HEDDLE_TRY(Net made, training_net(base.net, base.registry, *base.evaluator, options, state_->limits));
  made.name = as;
  put(std::move(made));
  return {};
} catch (...) {
  return status_of_exception();
}

Result<std::vector<Gradient>> Nets::add_gradients(const Runtime& runtime, const std::string& of, const DifferentiateOptions& options,
                                                  const std::string& as) try {
  HEDDLE_TRY(const ResolvedNet base, resolved(runtime, state_->nets, of, state_->limits));
  HEDDLE_TRY(DerivedNet made, differentiate(base.net, base.registry, *base.evaluator, options, state_->limits));
  made.net.name = as;
  put(std::move(made.net));
  return std::move(made.gradients);
} catch (...) {
  return status_of_exception();
}

Status Nets::add_replicas(const Runtime& runtime, const std::string& of, const DataParallelOptions& options, const std::string& as) try {
  HEDDLE_TRY(const ResolvedNet base, resolved(runtime, state_->nets, of, state_->limits));
  HEDDLE_TRY(ReplicatedNet made, replicate(base.net, base.registry, *base.evaluator, options, {}, {}, state_->limits));
  made.net.name = as;
  put(std::move(made.net));
  return {};
} catch (...) {
  return status_of_exception();
}

Status Nets::add_predictor(const std::string& of, const PredictorOptions& options) try {
  HEDDLE_TRY(const Net* const net, find_net(state_->nets, of));
  HEDDLE_TRY(Net made, predictor(*net, options));
  if (options.average) HEDDLE_CHECK(take_averages(made, state_->nets).status());
  put(std::move(made));
  return {};
} catch (...) {
  return status_of_exception();
}

Result<Nets> Nets::only(const std::vector<std::string>& names) const try {
  if (names.empty()) return Status(Code::invalid_argument, "no net was named", "name those that are wanted");
  State chosen = *state_;
  chosen.nets.clear();
  for (const std::string& name : names) {
    HEDDLE_TRY(const Net* const net, find_net(state_->nets, name));
    chosen.nets.push_back(*net);
  }
  return Nets(std::make_shared<const State>(std::move(chosen)));
} catch (...) {
  return status_of_exception();
}

Status Nets::take_variables(const Session& session, const RunOptions& options) try {
  const Session::Impl& from = Internals::of(session);
  HEDDLE_CHECK(from.runtime->made.check());
  HEDDLE_TRY(const std::vector<std::shared_ptr<const Blob>> contents, from.variables->snapshot(Interruption(deadline_of(options))));
  ContentsByName by_name;
  for (size_t i = 0; i < contents.size(); ++i)
    if (contents[i]) by_name.emplace(from.variables->name(i), contents[i]);
  State changed = *state_;
  HEDDLE_CHECK(set_contents(changed.nets, by_name, "the session").status());
  state_ = std::make_shared<const State>(std::move(changed));
  return {};
} catch (...) {
  return status_of_exception();
}

Status Nets::take_checkpoint(const std::string& path) try {
  State changed = *state_;
  HEDDLE_CHECK(heddle::take_checkpoint(changed.nets, path, state_->limits));
  state_ = std::make_shared<const State>(std::move(changed));
  return {};
} catch (...) {
  return status_of_exception();
}

Status Nets::write(const std::string& path) const try {
  SaveOptions options;
  options.limits = state_->limits;
  return save_nets(state_->nets, path, options);
} catch (...) {
  return status_of_exception();
}

}  // namespace heddle
