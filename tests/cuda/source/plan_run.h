// Runs the plans of a Launches with tensors on the emulated grid: sources of many cases are compiled together, then each case is launched
// in every order of threads and compared with its expected numbers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/reference.h"
#include "cuda/grid/grid.h"
#include "generate/launch_plan.h"
#include "generate/texts.h"
#include "net/net.h"
#include "operators/pointwise_support.h"

namespace heddle::cuda::grid_test {

using Tensor = std::shared_ptr<const Blob>;

// A view of a tensor's bytes, as the host gives it to kernels.
class View {
 public:
  View() = default;
  explicit View(const Blob& blob, const heddle_layout& layout = {}) : dims_(blob.shape.begin(), blob.shape.end()) {
    tensor_.struct_size = sizeof(tensor_);
    tensor_.dtype = static_cast<heddle_dtype>(blob.dtype);
    tensor_.rank = blob.shape.rank();
    tensor_.data = const_cast<std::byte*>(blob.data);
    tensor_.element_count = blob.shape.element_count();
    tensor_.byte_size = static_cast<uint64_t>(blob.bytes);
    tensor_.flags = HEDDLE_TENSOR_CONSTANT;
    tensor_.extent_axis = -1;
    tensor_.layout = layout;
  }
  const heddle_tensor* get() {
    tensor_.dims = dims_.data();
    return &tensor_;
  }

 private:
  std::vector<int64_t> dims_;
  heddle_tensor tensor_ = {};
};

// A call: the Launches to make, their inputs, and the expected outputs.
struct GridCase {
  std::string name;
  std::unique_ptr<Launches> launches;
  std::vector<Tensor> inputs;                  // null: absent
  std::vector<conformance::Numbers> expected;  // an output of dtype none is not requested
  double ulps = 4;
  heddle_layout layout = {};  // of input 0, and of output 0 where it has the same shape
  bool resized = false;       // output 0 has the layout, whatever its shape
  bool varies = false;
  // The host's operator that does the same; empty type: there is none.
  std::string host;
  std::vector<Attribute> attributes;
  // The tolerance between its results and these: more than `ulps` where it adds or multiplies f64 in sequence, and so loses more itself.
  double host_ulps = 4;
};

// For exact results the signs of zeros follow from the operator.
inline conformance::Tolerance within(double ulps) {
  return {ulps, ulps == 0};
}

class Operated {
 public:
  // Makes views of inputs and outputs; this object owns the outputs' bytes, and fills them with a pattern that is no result.
  explicit Operated(const GridCase& one) {
    for (const conformance::Numbers& want : one.expected) {
      std::byte* data = nullptr;
      blobs_.push_back(want.dtype == DType::none ? nullptr : Blob::allocate(want.dtype, want.shape, &data));
      if (data) std::memset(data, 0xa5, static_cast<size_t>(blobs_.back()->bytes));
    }
    view(one.inputs, one.layout, one.resized);
  }
  // Makes views of given memory.
  Operated(const std::vector<Tensor>& inputs, std::vector<Tensor> outputs) : blobs_(std::move(outputs)) { view(inputs, {}); }
  Operated(const Operated&) = delete;
  Operated& operator=(const Operated&) = delete;

  Operands operands() const { return {in_.data(), out_.data(), static_cast<uint32_t>(in_.size()), static_cast<uint32_t>(out_.size())}; }
  const std::vector<Tensor>& outputs() const { return blobs_; }

 private:
  void view(const std::vector<Tensor>& inputs, const heddle_layout& layout, bool resized = false) {
    const auto add = [&](const Tensor& tensor, bool laid_out, std::vector<View>* views) {
      views->push_back(tensor ? View(*tensor, laid_out ? layout : heddle_layout{}) : View());
    };
    for (const Tensor& input : inputs) add(input, inputs_.empty(), &inputs_);
    for (const Tensor& output : blobs_)
      add(output, outputs_.empty() && output && (resized || output->shape == inputs[0]->shape), &outputs_);
    for (size_t i = 0; i < inputs.size(); ++i) in_.push_back(inputs[i] ? inputs_[i].get() : nullptr);
    for (size_t i = 0; i < blobs_.size(); ++i) out_.push_back(blobs_[i] ? outputs_[i].get() : nullptr);
  }
  std::vector<View> inputs_, outputs_;
  std::vector<Tensor> blobs_;
  std::vector<const heddle_tensor*> in_, out_;
};

// The inputs of random numbers other than the element.
struct Draw {
  heddle_run_state state = {};
  uint32_t stream = 0;
  int64_t first = 0;  // heddle_run_context::random_first
};

// Where kernels report indices out of range; the words that hold variables.
struct Report {
  heddle_fault* fault = nullptr;
  std::vector<uint64_t> holds = {};
};

// Launches the plan as kernels/common/planned_kernel.h does, in host memory; it allocates scratch, filled with a pattern. Of grids of more
// than `last` blocks only the last `last` run. Returns an empty string, or the error.
inline std::string launch_plan(const grid::Module& module, const KernelSource& source, const LaunchPlan& plan, const Operands& operands,
                               grid::Order order, uint64_t last = UINT64_MAX, const Draw& draw = {}, const Report& report = {}) {
  if (const plugin::Status fits = plan.check(); !fits.ok()) return fits.text;
  const auto word_of = [](const void* address) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address)); };
  const auto scratch = std::make_unique<unsigned char[]>(plan.scratch_bytes);
  std::memset(scratch.get(), 0xff, plan.scratch_bytes);
  for (uint32_t i = 0; i < plan.launch_count; ++i) {
    const Launch& launch = plan.launches[i];
    if (launch.blocks == 0) continue;
    std::array<int64_t, std::tuple_size_v<decltype(launch.words)>> words = launch.words;
    for (uint32_t k = 0; k < launch.address_count; ++k) {
      const Address& a = launch.addresses[k];
      words[a.word] = a.of == Address::input           ? word_of(operands.inputs[a.index]->data)
                      : a.of == Address::output        ? word_of(operands.outputs[a.index]->data)
                      : a.of == Address::extent        ? word_of(operands.outputs[a.index]->extent)
                      : a.of == Address::run_state     ? word_of(&draw.state)
                      : a.of == Address::random_stream ? int64_t{draw.stream}
                      : a.of == Address::random_first  ? draw.first
                      : a.of == Address::fault         ? word_of(report.fault)
                      : a.of == Address::fault_mark    ? int64_t{1}
                      : a.of == Address::holds         ? word_of(report.holds.data())
                      : a.of == Address::hold_count    ? static_cast<int64_t>(report.holds.size())
                                                       : word_of(scratch.get() + a.offset);
    }
    const std::string& entry = source.entries[launch.kernel];
    if (module.parameter_bytes(entry) != launch.word_count * sizeof(int64_t))
      return entry + " has parameters of " + std::to_string(module.parameter_bytes(entry)) + " bytes, it is given " +
             std::to_string(launch.word_count * sizeof(int64_t));
    // Sometimes there are fewer blocks than work for them.
    const auto blocks = static_cast<unsigned int>(order == grid::Order::descending ? (launch.blocks + 1) / 2 : launch.blocks);
    const uint64_t first = last < blocks ? blocks - last : 0;
    if (std::string wrong = module.launch(entry, {blocks}, {launch.threads}, words.data(), order, 7, first); !wrong.empty()) return wrong;
  }
  return {};
}

// Returns the whole text of one case's kernels. Returns an empty string, after a test failure, if there is none.
inline std::string text_of(const GridCase& one) {
  KernelSource source;
  const Operated operated(one);
  const plugin::Status chosen = one.launches->choose(operated.operands(), one.varies, &source);
  EXPECT_TRUE(chosen.ok()) << one.name << ": " << chosen.text;
  return std::string(texts().at("element")) + source.text;
}

// Returns the host operator's results, with the case's own scales. Returns nothing, after a test failure, if it refuses.
inline std::vector<conformance::Numbers> host_numbers(const GridCase& one) {
  OperatorCall call = testing::call_of(one.host, one.inputs, one.attributes, one.expected.size());
  if (one.layout.rank > 0) call.inputs[0] = conformance::row_major(call.inputs[0], one.layout);
  const auto outputs = run_operator(testing::cpu_registry(), call);
  EXPECT_TRUE(outputs.ok()) << one.name << ": " << outputs.status().text();
  std::vector<conformance::Numbers> numbers;
  for (size_t i = 0; outputs.ok() && i < one.expected.size(); ++i) {
    numbers.push_back(one.expected[i].dtype == DType::none ? conformance::Numbers() : conformance::numbers_of(*(*outputs)[i]));
    numbers.back().scale = one.expected[i].scale;
  }
  return numbers;
}

inline const std::string grid_cache = HEDDLE_BINARY_DIR "/grid";

// Compares the outputs that are requested.
inline std::string difference_of(const std::vector<Tensor>& got, const std::vector<conformance::Numbers>& expected,
                                 const conformance::Tolerance& tolerance) {
  std::vector<Tensor> asked;
  std::vector<conformance::Numbers> of_asked;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].dtype == DType::none) continue;
    asked.push_back(got[i]);
    of_asked.push_back(expected[i]);
  }
  return conformance::difference(asked, of_asked, tolerance);
}

// Runs one case in every order of threads: the results are as expected, with the same bits whatever the order and the number of blocks.
inline void run_case(const GridCase& one, const grid::Module& module, const KernelSource& source) {
  const std::vector<conformance::Numbers> of_host = one.host.empty() ? std::vector<conformance::Numbers>() : host_numbers(one);
  std::vector<Tensor> first;
  for (const grid::Order order : {grid::Order::ascending, grid::Order::descending, grid::Order::random}) {
    const Operated operated(one);
    const auto plan = std::make_unique<LaunchPlan>();
    const plugin::Status planned = one.launches->plan(operated.operands(), plan.get());
    ASSERT_TRUE(planned.ok()) << one.name << ": " << planned.text;
    ASSERT_EQ(launch_plan(module, source, *plan, operated.operands(), order), "") << one.name;
    std::vector<Tensor> got = operated.outputs();
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_TRUE(!got[i] || std::memcmp(got[i]->data, first[i]->data, static_cast<size_t>(got[i]->bytes)) == 0)
          << one.name << ": output " << i << " has other bits in order " << static_cast<int>(order);
    if (first.empty()) first = got;
    if (one.layout.rank > 0 && got[0] && (one.resized || got[0]->shape == one.inputs[0]->shape))
      got[0] = conformance::row_major(got[0], one.layout);
    EXPECT_EQ(difference_of(got, one.expected, within(one.ulps)), "") << one.name << ", order " << static_cast<int>(order);
    if (of_host.empty()) continue;
    EXPECT_EQ(difference_of(got, of_host, within(one.host_ulps)), "") << one.name << ", beside the host's " << one.host;
  }
}

// Runs all cases, in modules of some sources each.
inline void run_on_grid(std::vector<GridCase> cases, size_t per_module = 40) {
  for (size_t first = 0; first < cases.size(); first += per_module) {
    const size_t last = std::min(cases.size(), first + per_module);
    std::string text(texts().at("element"));
    std::vector<KernelSource> sources(last - first);
    for (size_t i = first; i < last; ++i) {
      KernelSource& source = sources[i - first];
      source.prefix = "k" + std::to_string(i - first) + "_";
      const Operated operated(cases[i]);
      const plugin::Status chosen = cases[i].launches->choose(operated.operands(), cases[i].varies, &source);
      ASSERT_TRUE(chosen.ok()) << cases[i].name << ": " << chosen.text;
      text += source.text;
    }
    std::string error;
    const auto module = grid::Module::compile(text, grid_cache, &error);
    ASSERT_NE(module, nullptr) << cases[first].name << "...: " << error.substr(0, 4000);
    for (size_t i = first; i < last; ++i) ASSERT_NO_FATAL_FAILURE(run_case(cases[i], *module, sources[i - first]));
  }
}

}  // namespace heddle::cuda::grid_test
