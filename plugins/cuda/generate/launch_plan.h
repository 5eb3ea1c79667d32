// Describes what a kernel of this plugin does, independently of the device: a source with some entries, and launches of them with their
// parameters. It is made and tested without a toolkit (tests/cuda/source/plan_run.h); kernels/common/planned_kernel.h runs it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/op.h"

namespace heddle::cuda {

// The origin of an address among a kernel's parameters, or of a number that only a run knows: `random_stream`, `random_first`,
// `fault_mark`, `hold_count`. `offset` is in bytes, for scratch only. `extent` is the slot of a bounded output; null if it has none.
// `run_state` is heddle_run_state, on the device.
struct Address {
  enum Of : uint8_t { input, output, scratch, extent, run_state, random_stream, random_first, fault, fault_mark, holds, hold_count };
  Of of = input;
  uint16_t word = 0;
  uint32_t index = 0;
  uint64_t offset = 0;
};

// One launch. A kernel's one parameter is a struct of 64-bit words, some of which are addresses.
struct Launch {
  static constexpr size_t max_words = 100, max_addresses = 24;
  uint32_t kernel = 0;       // number of its entry in the source
  unsigned int threads = 0;  // in a block
  int64_t blocks = 0;        // that have work; a smaller grid gives the same results. 0: nothing to do
  uint32_t word_count = 0, address_count = 0;
  bool overflows = false;  // there was no room for all of its parameters
  std::array<int64_t, max_words> words;
  std::array<Address, max_addresses> addresses;

  // Errors: unsupported, if it overflows.
  plugin::Status check() const;
};

// The launches in the order of the stream. It allocates no memory: runs whose extents differ make it anew.
struct LaunchPlan {
  static constexpr uint32_t max_launches = 26;
  std::array<Launch, max_launches> launches;
  uint32_t launch_count = 0;
  uint64_t scratch_bytes = 0;
  bool overflows = false;  // there were more launches

  // Adds a launch. If there is no room for another, the last one is overwritten: the plan is then invalid, as check() reports.
  Launch& add(uint32_t kernel, unsigned int threads, int64_t blocks) {
    overflows = overflows || launch_count == max_launches;
    if (launch_count < max_launches) ++launch_count;
    Launch& launch = launches[launch_count - 1];
    launch.kernel = kernel;
    launch.threads = threads;
    launch.blocks = blocks;
    launch.word_count = launch.address_count = 0;
    launch.overflows = false;
    return launch;
  }
  // Must be called before the plan is launched. Errors: unsupported, if it or a launch overflows.
  plugin::Status check() const;
  // Reserves that many bytes of scratch and returns their offset. No bytes get a distinct place too: kernels are given its address, which
  // must lie in the scratch even if nothing is read or written there.
  uint64_t take(uint64_t bytes) {
    const uint64_t at = scratch_bytes;
    scratch_bytes = (at + std::max<uint64_t>(bytes, 1) + 63) / 64 * 64;
    return at;
  }
};

// Text that follows text/element.cuh. Names of entries begin with `prefix`, so that several sources can be concatenated.
struct KernelSource {
  std::string prefix = "heddle_";
  std::string text;
  std::vector<std::string> entries;  // names, by Launch::kernel
  bool contract = true;              // products and sums round once

  // Adds the name of an entry, and returns it.
  std::string entry(const std::string& name) {
    entries.push_back(prefix + name);
    return entries.back();
  }
  // Adds the file of text/, unless it is there already.
  void use(const char* name);
};

// The operands that a kernel is prepared for, or run with: views as the host gives them.
struct Operands {
  const heddle_tensor* const* inputs = nullptr;
  const heddle_tensor* const* outputs = nullptr;
  uint32_t input_count = 0, output_count = 0;
  const void* const* host_data = nullptr;  // heddle_prepare_context::host_data

  const heddle_tensor* input(uint32_t i) const { return i < input_count ? inputs[i] : nullptr; }
  const heddle_tensor* output(uint32_t i) const { return i < output_count ? outputs[i] : nullptr; }
  // Returns true if input i has the same content in every run, and the content may be read here.
  bool is_constant(uint32_t i) const {
    const heddle_tensor* t = input(i);
    return !t || ((t->flags & HEDDLE_TENSOR_CONSTANT) && (t->data || t->element_count == 0));
  }
  // In choose(), returns the bytes of a constant, even if it lies on the device; null if input i is no constant.
  const void* constant_bytes(uint32_t i) const {
    if (host_data) return input(i) ? host_data[i] : nullptr;
    return input(i) && is_constant(i) && inputs[i]->space == HEDDLE_SPACE_HOST ? inputs[i]->data : nullptr;
  }
  // Returns true if the content of input i, on the host, may be read. In prepare it may not, if it is known only during the run.
  bool is_known(uint32_t i) const {
    const heddle_tensor* t = input(i);
    return !t || t->data || t->element_count == 0;
  }
  // Returns true if no output has an element. Besides an extent of 0 the others may be of any size, so extents are not multiplied then.
  bool writes_nothing() const {
    for (uint32_t i = 0; i < output_count; ++i)
      if (outputs[i] && outputs[i]->element_count > 0) return false;
    return true;
  }
};

class Launches {
 public:
  virtual ~Launches() = default;
  // Chooses the kernels, and writes the source; without entries there is nothing to do. `varies`: runs may have smaller extents than these,
  // or other content of shape operands.
  virtual plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) = 0;
  // Plans the launches for the operands that choose() saw or, if they vary, for those of a run; in prepare content may be missing then, and
  // only the scratch matters. Allocates nothing.
  virtual plugin::Status plan(const Operands& operands, LaunchPlan* plan) const = 0;
  // Returns true if plan() must be called in each run, although no extent varies.
  virtual bool varies() const { return false; }
};

// ---------------------------------------------------------------- for those who make them

// Writes the members of a kernel's struct of parameters, in order: their text and their words.
class ParameterWriter {
 public:
  // Either may be null, if it is not wanted.
  ParameterWriter(std::string* text, Launch* launch) : text_(text), launch_(launch) {}
  // Adds a pointer to `before` and `type`, such as "const " and "f16".
  void address(const char* before, const char* type, const char* name, Address::Of of, uint32_t index, uint64_t offset = 0);
  // Does the same for one of several: the name is `name` and its number.
  void address_of_many(const char* before, const char* type, const char* name, size_t number, Address::Of of, uint32_t index);
  // Adds the input of the generator of text/random.cuh: the state of the run and the node's stream.
  void random_state();
  // Adds what report_index() and is_held() of text/fault.cuh read.
  void fault();
  void holds();
  void number(const char* name, int64_t value);
  void number(const char* name, double value);
  void numbers(const char* name, const int64_t* values, int count);
  void numbers(const char* name, const double* values, int count);

 private:
  void place(Address::Of of, uint32_t index, uint64_t offset);
  void word(int64_t value);
  std::string* text_;
  Launch* launch_;
};

// Returns the number of blocks for that much work, of which one block does `at_once`.
inline int64_t blocks_of(int64_t work, int64_t at_once) {
  return work / at_once + (work % at_once > 0 ? 1 : 0);
}
// Returns the smallest power of two that is at least n.
inline int64_t power_above(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}
// Returns true if positions up to `count` need 64 bits. Grids add up to one of their steps to what they count.
inline bool is_wide(int64_t count) {
  return count > (int64_t{1} << 31) - 1;
}

}  // namespace heddle::cuda
