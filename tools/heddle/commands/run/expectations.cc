#include "commands/run/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "base/text/text.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

// The index of element `at` in row-major order.
std::vector<int64_t> index_of(int64_t at, const Shape& shape) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank(); d-- > 0; at /= shape[d]) index[static_cast<size_t>(d)] = at % shape[d];
  return index;
}

Json element_json(const TensorView& tensor, int64_t i) {
  if (tensor.dtype == DType::i64) return static_cast<const int64_t*>(tensor.data)[i];
  if (tensor.dtype == DType::u64) return static_cast<const uint64_t*>(tensor.data)[i];
  return number(element(tensor, i));
}

}  // namespace

void ExpectationArguments::declare(CLI::App& app) {
  auto* const expect = app.add_option("--expect", files, "compare an output with a file")->type_name("NAME=FILE");
  app.add_option("--rtol", given.rtol, "of --expect: relative tolerance (1e-3)")->check(number_from(0, 1e300))->needs(expect);
  app.add_option("--atol", given.atol, "of --expect: absolute tolerance (1e-5 of the largest value expected)")
      ->check(number_from(0, 1e300))
      ->needs(expect);
}

Status Expectations::read(const ExpectationArguments& given, const std::vector<PortInfo>& outputs, const Limits& limits, FileRoles& roles) {
  given_ = given.given;
  HEDDLE_TRY(const std::vector<NameValue> files, split_name_values("--expect", given.files));
  std::vector<std::string> names;
  for (const PortInfo& port : outputs) names.push_back(port.name);
  for (const auto& [name, file] : files) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      const std::string hint = suggestion(name, names);
      return {Code::unknown_name, fmt::format("--expect: the net has no output {}", quoted(name)),
              hint.empty() ? fmt::format("its outputs are {}", words(names, ", ")) : hint};
    }
    roles.reads(file_of_tensor(file));
    HEDDLE_TRY(auto content, read_tensor(file, limits), fmt::format("for --expect {}", quoted(name)));
    expected_.push_back({static_cast<size_t>(it - names.begin()), name, file, std::move(content)});
  }
  return {};
}

Status Expectations::compare(const Context& context, const std::string& net, Json* json) const {
  std::vector<Status> different;
  for (const Expected& one : expected_) {
    const TensorView actual = context.output(one.output);
    const TensorView expected = {one.content->dtype, one.content->shape, const_cast<std::byte*>(one.content->data)};
    const Tolerance tolerance = tolerance_for(expected, given_);
    const Comparison c = tool::compare(actual, expected, tolerance.rtol, tolerance.atol);
    Json worst;
    if (c.worst >= 0)
      worst = {{"index", index_of(c.worst, expected.shape)},
               {"actual", element_json(actual, c.worst)},
               {"expected", element_json(expected, c.worst)}};
    (*json)[one.name] = {{"equal", c.equal},
                         {"rtol", tolerance.rtol},
                         {"atol", tolerance.atol},
                         {"different", c.different},
                         {"elements", expected.shape.element_count()},
                         {"max_abs_error", number(c.max_abs_error)},
                         {"max_rel_error", number(c.max_rel_error)},
                         {"worst", worst}};
    if (c.equal) continue;
    if (c.worst < 0) {
      different.emplace_back(Code::comparison_failed,
                             fmt::format("output {} {} as {} has it", quoted(one.name), c.reason, quoted(one.file)),
                             "write the file with the dtype and dims of the output");
      continue;
    }
    const auto off = static_cast<double>(std::abs(element_exactly(actual, c.worst) - element_exactly(expected, c.worst)));
    const std::string allowed = is_float(expected.dtype) ? fmt::format("by more than {} + {} times its magnitude", shortest(tolerance.atol),
                                                                       shortest(tolerance.rtol))
                                                         : std::string("at all");
    different.emplace_back(
        Code::comparison_failed,
        fmt::format("output {}: {} of {} elements differ from {} {}, the largest difference at [{}], which is {} and not {}, by {}",
                    quoted(one.name), c.different, expected.shape.element_count(), quoted(one.file), allowed,
                    fmt::join(index_of(c.worst, expected.shape), ", "), element_text(actual, c.worst), element_text(expected, c.worst),
                    shortest(off)),
        "find the operator with --dump DIR, or give --rtol and --atol that fit");
  }
  if (different.empty()) return {};
  Status all = std::move(different.front()).in_net(net);
  for (size_t i = 1; i < different.size(); ++i) all.diagnostic().attached.push_back(std::move(different[i]).in_net(net).diagnostic());
  return all;
}

}  // namespace heddle::tool
