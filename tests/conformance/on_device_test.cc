// Compares every operator on a device with the same references, in as many dtypes and shapes: each call is a net of one operator there,
// with no further copies. HEDDLE_CONFORMANCE_DEVICE names the device ("cuda:0"), whose plugin is lib/<kind>.so of the build folder; without
// it there is nothing to do. HEDDLE_CONFORMANCE_PART as "2/4" takes the second of every four calls: kernels of some operators take minutes
// to compile, which several processes do side by side.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "build_folder.h"
#include "commands/plugin/check/device_examination.h"
#include "commands/plugin/example.h"
#include "conformance/cases/row_calls.h"
#include "conformance/expectation.h"
#include "conformance/judge.h"
#include "operators/pointwise_support.h"

namespace heddle::conformance {
namespace {

const std::string device = [] {
  const char* const named = std::getenv("HEDDLE_CONFORMANCE_DEVICE");
  return std::string(named ? named : "");
}();
const std::string kind = device.substr(0, device.find(':'));

// This process makes call `number`, counted from 1, of every `of` consecutive calls.
struct Part {
  int number = 1, of = 1;
  static Part named() {
    Part part;
    const char* const text = std::getenv("HEDDLE_CONFORMANCE_PART");
    if (!text) return part;
    if (std::sscanf(text, "%d/%d", &part.number, &part.of) != 2 || part.number < 1 || part.number > part.of)
      throw std::invalid_argument(std::string("HEDDLE_CONFORMANCE_PART is \"") + text + "\", expected a part as 2/4");
    return part;
  }
};

// A device's functions are its maker's. Those of CUDA err by up to 6 units when they compute in f32 and f64 (the CUDA C++ programming
// guide, mathematical functions); results that are exact, or rounded once from a wider dtype, remain so.
constexpr double device_ulps = 8;
Tolerance tolerance_there(const Expectation& expected) {
  Tolerance tolerance = expected.tolerance;
  const bool computes_in_its_own = expected.dtype == DType::f32 || expected.dtype == DType::f64;
  if (tolerance.ulps > 0 && computes_in_its_own) tolerance.ulps = std::max(tolerance.ulps, device_ulps);
  return tolerance;
}

Number largest_magnitude(const Numbers& numbers) {
  Number largest = 0;
  for (const Number value : numbers.values) largest = std::max(largest, std::fabs(value));
  return largest;
}

const Result<Runtime>& runtime() {
  static const Result<Runtime> one = [] {
    RuntimeOptions options;
    options.threads = 1;
    options.plugins = {testing::build_folder() + "/lib/cpu.so", testing::build_folder() + "/lib/" + kind + ".so"};
    options.default_plugins = false;
    return Runtime::create(options);
  }();
  return one;
}

std::vector<std::shared_ptr<const Blob>> blobs_of(const std::vector<Tensor>& tensors) {
  std::vector<std::shared_ptr<const Blob>> blobs;
  for (const Tensor& t : tensors) blobs.push_back(Blob::copy_of(t.dtype(), t.shape(), t.data()));
  return blobs;
}

// The outcome of an operator's calls.
struct Outcome {
  int right = 0;                            // judged, and equal to the reference
  std::vector<std::string> wrong;           // judged, and different; or neither judged nor refused
  int without_kernel = 0;                   // in these dtypes
  std::map<std::string, int> refused = {};  // by reason
};

class OnDevice : public ::testing::TestWithParam<size_t> {
 protected:
  static void count_refusal(const std::string& text, const tool::DeviceExamination& there, Outcome* outcome) {
    switch (there.refusal_code()) {
      case Code::no_kernel:
        ++outcome->without_kernel;
        break;
      case Code::ok:           // the plan places it elsewhere
      case Code::unsupported:  // the kernel does not accept this call
        ++outcome->refused[there.refusal()];
        break;
      default:
        outcome->wrong.push_back(text + ": " + there.refusal());
    }
  }
  void try_call(const Row& row, const OperatorSchema& schema, const std::string& text, tool::DeviceExamination& there, Outcome* outcome) {
    auto example = tool::parse_example(schema, text, 1);
    ASSERT_TRUE(example.ok()) << example.status().text();
    OperatorCall call = std::move(example->call);
    Expectation expected = expectation(row, schema, call);
    call.output_count = std::max(call.output_count, expected.outputs.size());
    if (schema.has_trait(HEDDLE_TRAIT_RANDOM)) {
      // A session draws with a seed of its own, so the expected numbers come from the host, which other tests compare with the reference.
      const auto host = tool::DeviceExamination(*runtime(), "cpu:0").outputs(schema, call);
      ASSERT_TRUE(host.ok() && *host) << text;
      expected.outputs.clear();
      for (const auto& blob : blobs_of(**host)) expected.outputs.push_back(numbers_of(*blob));
      // Normal numbers are mean + scale * z, where z is computed by functions that err, whatever the sum is.
      if (row.type.starts_with("RandomNormal")) {
        for (Numbers& output : expected.outputs) {
          if (output.dtype != DType::f32 && output.dtype != DType::f64) continue;
          expected.tolerance.ulps = device_ulps;
          output.scale.assign(output.values.size(), largest_magnitude(output));
        }
      }
    }
    const auto outputs = there.outputs(schema, call);
    if (!outputs.ok()) {
      outcome->wrong.push_back(text + ": " + outputs.status().text());
    } else if (!*outputs) {
      count_refusal(text, there, outcome);
    } else {
      const std::string other = difference(blobs_of(**outputs), expected.outputs, tolerance_there(expected));
      if (other.empty())
        ++outcome->right;
      else
        outcome->wrong.push_back(text + ": " + other);
    }
  }
};

TEST_P(OnDevice, AgreesWithItsReference) {
  const Row& row = rows()[GetParam()];
  const auto registry = testing::cpu_registry().snapshot();
  const OperatorSchema* const schema = registry->find_operator(row.domain, row.type);
  ASSERT_NE(schema, nullptr) << row.type;
  ASSERT_TRUE(runtime().ok()) << runtime().status().text();
  tool::DeviceExamination there(*runtime(), device);
  Outcome outcome;
  const Part part = Part::named();
  int calls = 0;
  for (const Case& one : row.cases)
    for (const std::string& text : calls_of(*registry, *schema, one.call))
      if (calls++ % part.of == part.number - 1) try_call(row, *schema, text, there, &outcome);
  const auto judged = outcome.right + static_cast<int>(outcome.wrong.size());
  fmt::print("{} on {}: {} calls judged, {} wrong, {} without a kernel\n", row.type, device, judged, outcome.wrong.size(),
             outcome.without_kernel);
  for (const auto& [why, count] : outcome.refused) fmt::print("{} calls refused: {}\n", count, why);
  for (size_t i = 0; i < outcome.wrong.size() && i < 5; ++i) ADD_FAILURE() << outcome.wrong[i];
  if (judged == 0) GTEST_SKIP() << (outcome.refused.empty() ? "it has no kernel there" : outcome.refused.begin()->first);
}

std::string name_of(const ::testing::TestParamInfo<size_t>& info) {
  const Row& row = rows()[info.param];
  return row.domain.empty() ? row.type : row.domain + "_" + row.type;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnDevice);
INSTANTIATE_TEST_SUITE_P(Operators, OnDevice, ::testing::Range(size_t{0}, device.empty() ? size_t{0} : rows().size()), name_of);

}  // namespace
}  // namespace heddle::conformance
