// Runs the Launches of a call that moves elements, on the emulated grid, and compares with the host's operator: the same bytes, in any
// physical layout, in every order of threads.
#pragma once

#include <random>

#include "cuda/lines.h"

namespace heddle::cuda::grid_test {

// A call of the host's operator, and the Launches that do the same.
struct MoveCase {
  std::unique_ptr<Launches> launches;
  OperatorCall call;
  bool varies = false;
  std::vector<bool> absent = {};      // outputs that are not requested
  std::vector<Tensor> expected = {};  // for calls that the host refuses
  std::string name() const {
    std::string text = call.type;
    for (const Attribute& attribute : call.attributes) text += " " + attribute.name;
    for (const Tensor& input : call.inputs) text += input ? " " + std::string(to_string(input->dtype)) + input->shape.text() : " -";
    return text + (varies ? " varies" : "");
  }
};

inline MoveCase move_case(std::unique_ptr<Launches> launches, const std::string& type, std::vector<Tensor> inputs,
                          std::vector<Attribute> attributes = {}, size_t output_count = 1) {
  return {std::move(launches), testing::call_of(type, std::move(inputs), std::move(attributes), output_count)};
}

// One dtype of each width, and those that are more than bits.
inline constexpr DType width_kinds[] = {DType::u8, DType::bf16, DType::f32, DType::i64, DType::boolean};

// Returns random bytes: no two elements are alike except by chance.
inline Tensor any_bytes(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 dice(seed);
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  for (int64_t i = 0; i < blob->bytes; ++i) data[i] = static_cast<std::byte>(dtype == DType::boolean ? dice() & 1 : dice());
  return blob;
}
inline heddle_layout last_channels(int rank) {
  return plugin::channels_last(rank);
}

class Moved {
 public:
  // Makes views of the inputs, and of outputs like `like`, which this object owns and fills with a pattern that is no result. `shared`:
  // output 0 shares the memory of input 0, and begins with its content.
  Moved(const MoveCase& one, const std::vector<Tensor>& like, bool shared) {
    const auto layout = [](const std::vector<heddle_layout>& layouts, size_t i) {
      return i < layouts.size() ? layouts[i] : heddle_layout{};
    };
    for (size_t i = 0; i < like.size(); ++i) {
      const bool absent = i < one.absent.size() && one.absent[i];
      std::byte* data = nullptr;
      outputs_.push_back(absent ? nullptr : Blob::allocate(like[i]->dtype, like[i]->shape, &data));
      if (!absent && like[i]->bytes > 0) std::memset(data, 0xa5, static_cast<size_t>(like[i]->bytes));
      if (shared && i == 0 && like[0]->bytes > 0) std::memcpy(data, one.call.inputs[0]->data, static_cast<size_t>(like[0]->bytes));
      views_out_.push_back(absent ? View() : View(*outputs_.back(), layout(one.call.output_layouts, i)));
    }
    for (size_t i = 0; i < one.call.inputs.size(); ++i) {
      const Tensor& input = shared && i == 0 ? outputs_[0] : one.call.inputs[i];
      views_in_.push_back(input ? View(*input, layout(one.call.input_layouts, i)) : View());
    }
    for (size_t i = 0; i < views_in_.size(); ++i) in_.push_back(one.call.inputs[i] ? views_in_[i].get() : nullptr);
    for (size_t i = 0; i < views_out_.size(); ++i) out_.push_back(outputs_[i] ? views_out_[i].get() : nullptr);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  Operands operands() const { return {in_.data(), out_.data(), static_cast<uint32_t>(in_.size()), static_cast<uint32_t>(out_.size())}; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  std::vector<View> views_in_, views_out_;
  std::vector<Tensor> outputs_;
  std::vector<const heddle_tensor*> in_, out_;
};

inline std::vector<Tensor> wanted_of(const MoveCase& one) {
  if (!one.expected.empty()) return one.expected;
  auto outputs = run_operator(testing::cpu_registry(), one.call);
  EXPECT_TRUE(outputs.ok()) << one.name() << ": " << outputs.status().text();
  return outputs.ok() ? *outputs : std::vector<Tensor>();
}

// Returns the number of launches.
inline uint32_t run_move(const MoveCase& one, const std::vector<Tensor>& wanted, const grid::Module& module, const KernelSource& source,
                         bool shared = false) {
  uint32_t launches = 0;
  for (const grid::Order order : {grid::Order::ascending, grid::Order::descending, grid::Order::random}) {
    const Moved moved(one, wanted, shared);
    const auto plan = std::make_unique<LaunchPlan>();
    const plugin::Status planned = one.launches->plan(moved.operands(), plan.get());
    EXPECT_TRUE(planned.ok()) << one.name() << ": " << planned.text;
    EXPECT_EQ(launch_plan(module, source, *plan, moved.operands(), order, UINT64_MAX, {{one.call.random_seed, one.call.step, 0}, 0}), "")
        << one.name();
    launches = plan->launch_count;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!moved.outputs()[i]) continue;
      const auto bytes = static_cast<size_t>(wanted[i]->bytes);
      size_t at = 0;
      while (at < bytes && moved.outputs()[i]->data[at] == wanted[i]->data[at]) ++at;
      EXPECT_EQ(at, bytes) << one.name() << ": output " << i << " differs in byte " << at << ", order " << static_cast<int>(order);
    }
  }
  return launches;
}

// Runs all cases, in modules of some sources each. `shared`: as for Moved.
inline void run_moves(std::vector<MoveCase> cases, bool shared = false, size_t per_module = 60) {
  for (size_t first = 0; first < cases.size(); first += per_module) {
    const size_t last = std::min(cases.size(), first + per_module);
    std::string text(texts().at("element"));
    std::vector<KernelSource> sources(last - first);
    std::vector<std::vector<Tensor>> wanted;
    for (size_t i = first; i < last; ++i) {
      KernelSource& source = sources[i - first];
      source.prefix = "k" + std::to_string(i - first) + "_";
      wanted.push_back(wanted_of(cases[i]));
      if (wanted.back().empty()) return;
      const Moved moved(cases[i], wanted.back(), shared);
      const plugin::Status chosen = cases[i].launches->choose(moved.operands(), cases[i].varies, &source);
      ASSERT_TRUE(chosen.ok()) << cases[i].name() << ": " << chosen.text;
      text += source.text;
    }
    std::string error;
    const auto module = grid::Module::compile(text, grid_cache, &error);
    ASSERT_NE(module, nullptr) << cases[first].name() << "...: " << error.substr(0, 4000);
    for (size_t i = first; i < last; ++i) run_move(cases[i], wanted[i - first], *module, sources[i - first], shared);
  }
}

}  // namespace heddle::cuda::grid_test
