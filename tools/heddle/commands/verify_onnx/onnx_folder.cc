#include "commands/verify_onnx/onnx_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

#include "base/element.h"
#include "base/file.h"
#include "base/text/text.h"
#include "heddle/session.h"
#include "load/save.h"
#include "onnx/import.h"
#include "onnx/tensors/tensor_proto.h"
#include "options/option_flags.h"
#include "tensors/compare.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

// input_0.pb, input_1.pb, ... in order.
Result<std::vector<NamedTensor>> read_tensors(const fs::path& folder, const std::string& prefix, const Limits& limits) {
  std::vector<NamedTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path file = folder / fmt::format("{}{}.pb", prefix, i);
    std::error_code error;
    if (!fs::exists(file, error)) break;
    HEDDLE_TRY(NamedTensor tensor, read_tensor_proto(file, limits));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// file_version: the model is of an opset, or a version of the file format, newer than this importer.
bool is_unsupported(Code code) {
  return code == Code::unsupported || code == Code::unknown_operator || code == Code::no_kernel || code == Code::file_version;
}

void keep_larger(std::optional<double>& most, double value) {
  most = std::max(most.value_or(value), value);
}

class Check {
 public:
  Check(const Tolerances& given, const SessionOptions& options, FolderVerdict& verdict)
      : given_(given), options_(options), limits_(options.limits), verdict_(verdict) {}
  Status run(const fs::path& folder, const Runtime& runtime, const fs::path& scratch);

 private:
  Status check_set(Session& session, const fs::path& set, bool* random);
  Status check_output(size_t index, const TensorView& actual, const TensorView& expected, bool random);

  Tolerances given_;
  const SessionOptions& options_;
  const Limits& limits_;
  FolderVerdict& verdict_;
};

// Takes all steps of a user: import, save as .heddle, open that file, run.
Status Check::run(const fs::path& folder, const Runtime& runtime, const fs::path& scratch) {
  HEDDLE_TRY(const Tolerances beside, tolerances_beside(folder));
  if (!given_.rtol) given_.rtol = beside.rtol;
  if (!given_.atol) given_.atol = beside.atol;
  HEDDLE_TRY(const Net net, import_onnx(folder / "model.onnx", ImportOptions{.limits = limits_}));
  const fs::path file = scratch / "model.heddle";
  SaveOptions save;
  save.limits = limits_;
  HEDDLE_CHECK(save_net(net, file, save));
  HEDDLE_TRY(Session session, runtime.open(file.string(), options_));
  bool random = false;
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) sets.push_back(entry.path());
  if (sets.empty()) return {Code::missing_input, "the folder has no test_data_set_*"};
  std::sort(sets.begin(), sets.end());
  for (const fs::path& set : sets) HEDDLE_CHECK(check_set(session, set, &random), fmt::format("in {}", quoted(set.filename().string())));
  verdict_.status = random ? "pass-statistical" : "pass";
  return {};
}

Status Check::check_set(Session& session, const fs::path& set, bool* random) {
  HEDDLE_TRY(const auto inputs, read_tensors(set, "input_", limits_));
  HEDDLE_TRY(const auto expected, read_tensors(set, "output_", limits_));
  std::vector<TensorView> views;
  for (const NamedTensor& input : inputs) views.push_back({input.blob->dtype, input.blob->shape, const_cast<std::byte*>(input.blob->data)});
  HEDDLE_TRY(const auto plan, session.plan(views));
  *random = std::any_of(plan->steps.begin(), plan->steps.end(), [](const PlanInfo::Step& step) { return step.random; });
  HEDDLE_TRY(const std::vector<Tensor> outputs, session.run(views));
  if (outputs.size() < expected.size())
    return {Code::comparison_failed, fmt::format("the net has {} outputs, {} are expected", outputs.size(), expected.size())};
  for (size_t i = 0; i < expected.size(); ++i) {
    const Blob& e = *expected[i].blob;
    HEDDLE_CHECK(check_output(i, outputs[i].view(), {e.dtype, e.shape, const_cast<std::byte*>(e.data)}, *random));
  }
  return {};
}

Status Check::check_output(size_t index, const TensorView& actual, const TensorView& expected, bool random) {
  Comparison c;
  if (random) {  // other generators draw other numbers
    c = compare_moments(actual, expected);
  } else {
    const Tolerance tolerance = tolerance_for(expected, given_);
    c = compare(actual, expected, tolerance.rtol, tolerance.atol);
    if (is_float(expected.dtype)) {
      keep_larger(verdict_.rtol, tolerance.rtol);
      keep_larger(verdict_.atol, tolerance.atol);
    }
    if (actual.dtype == expected.dtype && actual.shape == expected.shape) {
      keep_larger(verdict_.max_abs_error, c.max_abs_error);
      keep_larger(verdict_.max_rel_error, c.max_rel_error);
    }
  }
  if (c.equal) return {};
  return {Code::comparison_failed, fmt::format("output {} {}", index, c.reason)};
}

}  // namespace

Result<Tolerances> tolerances_beside(const fs::path& folder) {
  const fs::path file = folder / "data.json";
  Tolerances tolerances;
  const auto bytes = read_file(file, int64_t{1} << 20);
  if (!bytes.ok() && bytes.status().code() == Code::file_not_found) return tolerances;
  if (!bytes.ok()) return bytes.status();
  const auto* text = reinterpret_cast<const char*>(bytes->data.get());
  const Json object = Json::parse(text, text + bytes->size, nullptr, false);
  if (!object.is_object())
    return Status(Code::syntax, fmt::format("{} is no JSON object", quoted(file.string())), "write {\"rtol\": ..., \"atol\": ...}");
  for (const auto& [name, tolerance] : {std::pair{"rtol", &tolerances.rtol}, std::pair{"atol", &tolerances.atol}}) {
    const auto value = object.find(name);
    if (value == object.end()) continue;
    if (!value->is_number() || !(value->get<double>() >= 0))
      return Status(Code::syntax, fmt::format("\"{}\" of {} is no number from 0 up", name, quoted(file.string())));
    *tolerance = value->get<double>();
  }
  return tolerances;
}

Json FolderVerdict::json() const {
  const auto or_null = [](const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); };
  return {{"status", status},
          {"max_abs_error", or_null(max_abs_error)},
          {"max_rel_error", or_null(max_rel_error)},
          {"rtol", or_null(rtol)},
          {"atol", or_null(atol)},
          {"reason", reason.empty() ? Json(nullptr) : Json(reason)}};
}

bool is_onnx_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "model.onnx", error);
}

FolderVerdict check_onnx_folder(const fs::path& folder, const Tolerances& given, const SessionOptions& options, const Runtime& runtime,
                                const fs::path& scratch) {
  FolderVerdict verdict;
  Status status;
  try {
    status = Check(given, options, verdict).run(folder, runtime, scratch);
  } catch (const std::bad_alloc&) {
    status = Status(Code::out_of_memory, "there is no memory for it", "lower the limits with --limit, or give the machine more");
  } catch (const std::exception& e) {
    status = Status(Code::internal, quoted(e.what()), "please report this");
  }
  if (status.ok()) return verdict;
  verdict.status = is_unsupported(status.code()) ? "unsupported" : "fail";
  verdict.reason = with_flags(status.diagnostic()).text();
  return verdict;
}

}  // namespace heddle::tool
