#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "command.h"
#include "compare.h"
#include "interrupt.h"
#include "limit_options.h"
#include "load/save.h"
#include "onnx/import.h"
#include "onnx/tensor_proto.h"
#include "run/session_impl.h"
#include "scratch_folder.h"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> folders;
  double rtol = 1e-3, atol = 1e-7;
  bool strict = false;
  LimitOptions limits;
};

struct Verdict {
  std::string status = "pass";
  double max_abs_error = 0, max_rel_error = 0;
  std::string reason;
};

bool is_test_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "model.onnx", error);
}

Status collect(const fs::path& folder, std::vector<fs::path>& found) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return {Code::invalid_argument, quoted(folder.string()) + " is no folder", "name ONNX backend test folders or parents of such"};
  if (is_test_folder(folder)) {
    found.push_back(folder);
    return {};
  }
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && is_test_folder(entry.path())) inner.push_back(entry.path());
  std::sort(inner.begin(), inner.end());
  found.insert(found.end(), inner.begin(), inner.end());
  return {};
}

// input_0.pb, input_1.pb, ... in order.
Result<std::vector<NamedTensor>> read_tensors(const fs::path& folder, const std::string& prefix, const Limits& limits) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path file = folder / (prefix + std::to_string(i) + ".pb");
    std::error_code error;
    if (!fs::exists(file, error)) break;
    HEDDLE_TRY(NamedTensor tensor, read_tensor_proto(file, limits));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool is_unsupported(Code code) {
  return code == Code::unsupported || code == Code::unknown_operator || code == Code::no_kernel;
}

bool is_random(const Session& session) {
  for (const Node& node : session.impl().net.nodes)
    if (node.schema->has_trait(HEDDLE_TRAIT_RANDOM)) return true;
  return false;
}

class Verifier {
 public:
  Verifier(const Options& options, const Limits& limits, const Runtime& runtime, const fs::path& scratch)
      : o_(options), limits_(limits), runtime_(runtime), scratch_(scratch) {}

  Verdict verify(const fs::path& folder) {
    Verdict verdict;
    const Status status = check(folder, verdict);
    if (!status.ok()) {
      verdict.status = is_unsupported(status.code()) ? "unsupported" : "fail";
      verdict.reason = status.text();
    }
    return verdict;
  }

 private:
  Status check(const fs::path& folder, Verdict& verdict);
  Status check_set(Session& session, const fs::path& set, bool random, Verdict& verdict);

  const Options& o_;
  const Limits& limits_;
  const Runtime& runtime_;
  const fs::path& scratch_;
};

// The whole way of a user: import, save as .heddle, open that file, run.
Status Verifier::check(const fs::path& folder, Verdict& verdict) {
  HEDDLE_TRY(const Net net, import_onnx(folder / "model.onnx", {limits_}));
  const fs::path file = scratch_ / "model.heddle";
  SaveOptions save;
  save.limits = limits_;
  HEDDLE_CHECK(save_net(net, file, save));
  SessionOptions options;
  options.limits = limits_;
  HEDDLE_TRY(Session session, runtime_.open(file.string(), options));
  const bool random = is_random(session);
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  if (sets.empty()) return {Code::missing_input, "the folder has no test_data_set_*"};
  std::sort(sets.begin(), sets.end());
  for (const fs::path& set : sets) HEDDLE_CHECK(check_set(session, set, random, verdict), "in " + set.filename().string());
  if (random && verdict.status == "pass") verdict.status = "pass-statistical";
  return {};
}

Status Verifier::check_set(Session& session, const fs::path& set, bool random, Verdict& verdict) {
  HEDDLE_TRY(const auto inputs, read_tensors(set, "input_", limits_));
  HEDDLE_TRY(const auto expected, read_tensors(set, "output_", limits_));
  std::vector<TensorView> views;
  for (const NamedTensor& input : inputs) views.push_back({input.blob->dtype, input.blob->shape, const_cast<std::byte*>(input.blob->data)});
  HEDDLE_TRY(const std::vector<Tensor> outputs, session.run(views));
  if (outputs.size() < expected.size())
    return {Code::comparison_failed,
            "the net has " + std::to_string(outputs.size()) + " outputs, " + std::to_string(expected.size()) + " are expected"};
  for (size_t i = 0; i < expected.size(); ++i) {
    const Blob& e = *expected[i].blob;
    const TensorView wanted{e.dtype, e.shape, const_cast<std::byte*>(e.data)};
    // Other generators draw other numbers.
    const Comparison c = random ? compare_moments(outputs[i].view(), wanted) : compare(outputs[i].view(), wanted, o_.rtol, o_.atol);
    verdict.max_abs_error = std::max(verdict.max_abs_error, c.max_abs_error);
    verdict.max_rel_error = std::max(verdict.max_rel_error, c.max_rel_error);
    if (!c.equal) return {Code::comparison_failed, "output " + std::to_string(i) + " " + c.reason};
  }
  return {};
}

int run(const Options& o, Report& report) {
  std::vector<fs::path> folders;
  for (const std::string& folder : o.folders) {
    const Status status = collect(folder, folders);
    if (!status.ok()) return report.fail(status);
  }
  if (folders.empty())
    return report.fail(
        Status(Code::invalid_argument, "no folder with a model.onnx was found", "name ONNX backend test folders or parents of such"));
  const auto limits = o.limits.limits();
  if (!limits.ok()) return report.fail(limits.status());
  const auto runtime = make_runtime(report.common);
  if (!runtime.ok()) return report.fail(runtime.status());
  const ScratchFolder scratch;
  const InterruptibleRun interruptible(nullptr);
  std::map<std::string, int> totals = {{"pass", 0}, {"pass-statistical", 0}, {"fail", 0}, {"unsupported", 0}};
  Json table = Json::object();
  for (const fs::path& folder : folders) {
    if (const Status ended = interruption(); !ended.ok()) return report.fail(ended);
    report.step(folder.filename().string());
    const Verdict v = Verifier(o, *limits, *runtime, scratch.path()).verify(folder);
    ++totals[v.status];
    table[folder.string()] = {{"status", v.status},
                              {"max_abs_error", number(v.max_abs_error)},
                              {"max_rel_error", number(v.max_rel_error)},
                              {"reason", v.reason.empty() ? Json(nullptr) : Json(v.reason)}};
    report.say(v.status + std::string(v.status.size() < 16 ? 17 - v.status.size() : 1, ' ') + quoted(folder.filename().string()) +
               "  max abs " + shortest(static_cast<float>(v.max_abs_error)) + (v.reason.empty() ? "" : "  " + v.reason));
  }
  report.json["folders"] = table;
  report.json["totals"] = {{"pass", totals["pass"]},
                           {"pass_statistical", totals["pass-statistical"]},
                           {"fail", totals["fail"]},
                           {"unsupported", totals["unsupported"]}};
  report.say(std::to_string(totals["pass"]) + " pass, " + std::to_string(totals["pass-statistical"]) + " pass-statistical, " +
             std::to_string(totals["fail"]) + " fail, " + std::to_string(totals["unsupported"]) + " unsupported");
  return totals["fail"] > 0 || (o.strict && totals["unsupported"] > 0) ? 1 : 0;
}

}  // namespace

Run declare_verify_onnx(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("folders", o->folders, "ONNX backend test folders, or parents of such")->required()->type_name("DIR");
  app.add_option("--rtol", o->rtol, "relative tolerance")->check(number_from(0, 1e300));
  app.add_option("--atol", o->atol, "absolute tolerance")->check(number_from(0, 1e300));
  app.add_flag("--strict", o->strict, "unsupported models fail too");
  o->limits.declare(app);
  return [o](Report& report) { return run(*o, report); };
}

}  // namespace heddle::tool
