// What a kernel of this plugin does, apart from the device: a source with some entries, and launches of them with their parameters. Made
// and tested without a toolkit (tests/cuda/source/plan_run.h); kernels/common/planned_kernel.h runs it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/op.h"

namespace heddle::cuda {

// Where an address among a kernel's parameters comes from, or the one number that only a run knows, `random_stream`. `offset` in bytes, of
// scratch alone. `extent`: the slot of a bounded output; null where it has none. `run_state`: heddle_run_state, on the device.
struct Address {
  enum Of : uint8_t { input, output, scratch, extent, run_state, random_stream };
  Of of = input;
  uint16_t word = 0;
  uint32_t index = 0;
  uint64_t offset = 0;
};

// One launch. A kernel's one parameter is a struct of 64-bit words, addresses among them.
struct Launch {
  static constexpr size_t max_words = 100, max_addresses = 24;
  uint32_t kernel = 0;       // number of its entry in the source
  unsigned int threads = 0;  // of a block
  int64_t blocks = 0;        // that there is work for; fewer of them do the same. 0: nothing to do
  uint32_t word_count = 0, address_count = 0;
  bool overflows = false;  // there was no room for all of its parameters
  std::array<int64_t, max_words> words;
  std::array<Address, max_addresses> addresses;

  // Errors: unsupported, where it overflows.
  plugin::Status check() const;
};

// In the order of the stream. No memory but its own: it is made anew in runs whose extents differ.
struct LaunchPlan {
  static constexpr uint32_t max_launches = 26;
  std::array<Launch, max_launches> launches;
  uint32_t launch_count = 0;
  uint64_t scratch_bytes = 0;
  bool overflows = false;  // there were more launches

  // Where there is no room for another, the last one is said anew: the plan is no good then, as check() says.
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
  // To be asked before it is launched. Errors: unsupported, where it or a launch overflows.
  plugin::Status check() const;
  // Offset of so many bytes of scratch. Of no bytes too it is a place of its own: kernels are given its address, which has to lie in the
  // scratch even where nothing is read or written there.
  uint64_t take(uint64_t bytes) {
    const uint64_t at = scratch_bytes;
    scratch_bytes = (at + std::max<uint64_t>(bytes, 1) + 63) / 64 * 64;
    return at;
  }
};

// Behind text/element.cuh. Names of entries begin with `prefix`: sources may stand behind each other.
struct KernelSource {
  std::string prefix = "heddle_";
  std::string text;
  std::vector<std::string> entries;  // names, by Launch::kernel
  bool contract = true;              // products and sums round once

  // Adds the name of an entry, and answers it.
  std::string entry(const std::string& name) {
    entries.push_back(prefix + name);
    return entries.back();
  }
  // Puts the file of text/ in, unless it is there.
  void use(const char* name);
};

// What a kernel is prepared for, or run with: views as the host gives them.
struct Operands {
  const heddle_tensor* const* inputs = nullptr;
  const heddle_tensor* const* outputs = nullptr;
  uint32_t input_count = 0, output_count = 0;
  const void* const* host_data = nullptr;  // heddle_prepare_context::host_data

  const heddle_tensor* input(uint32_t i) const { return i < input_count ? inputs[i] : nullptr; }
  const heddle_tensor* output(uint32_t i) const { return i < output_count ? outputs[i] : nullptr; }
  // Whether input i has the same content, which may be read here, in every run.
  bool is_constant(uint32_t i) const {
    const heddle_tensor* t = input(i);
    return !t || ((t->flags & HEDDLE_TENSOR_CONSTANT) && (t->data || t->element_count == 0));
  }
  // In choose, the bytes of a constant that may lie on the device; null: input i is none.
  const void* constant_bytes(uint32_t i) const {
    if (host_data) return input(i) ? host_data[i] : nullptr;
    return input(i) && is_constant(i) && inputs[i]->space == HEDDLE_SPACE_HOST ? inputs[i]->data : nullptr;
  }
  // Whether the content of input i, on the host, may be read: where it is known only while it runs, that is not so in prepare.
  bool is_known(uint32_t i) const {
    const heddle_tensor* t = input(i);
    return !t || t->data || t->element_count == 0;
  }
  // Whether no output has an element. Beside an extent of 0 the others may be of any size: nothing is multiplied then.
  bool writes_nothing() const {
    for (uint32_t i = 0; i < output_count; ++i)
      if (outputs[i] && outputs[i]->element_count > 0) return false;
    return true;
  }
};

class Launches {
 public:
  virtual ~Launches() = default;
  // Decides how, and writes the source; without entries there is nothing to do. `varies`: runs may have smaller extents than these, or
  // other content of shape operands.
  virtual plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) = 0;
  // The launches for what choose() saw or, where that varies, for what a run has; in prepare content may be missing then, and only the
  // scratch matters. Allocates nothing.
  virtual plugin::Status plan(const Operands& operands, LaunchPlan* plan) const = 0;
  // Whether plan() has to be asked in each run, although no extent varies.
  virtual bool varies() const { return false; }
};

// ---------------------------------------------------------------- for those who make them

// The members of a kernel's struct of parameters, in order: their text (where it is asked for) and their words.
class ParameterWriter {
 public:
  // Null: only the other is wanted.
  ParameterWriter(std::string* text, Launch* launch) : text_(text), launch_(launch) {}
  // A pointer to `before` and `type`, as "const " and "f16".
  void address(const char* before, const char* type, const char* name, Address::Of of, uint32_t index, uint64_t offset = 0);
  // The same of one of several: "name" and its number.
  void address_of_many(const char* before, const char* type, const char* name, size_t number, Address::Of of, uint32_t index);
  // What text/random.cuh makes its numbers of: the state of the run and the node's stream.
  void random_state();
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

// Blocks for so much work, of which one does `at_once`.
inline int64_t blocks_of(int64_t work, int64_t at_once) {
  return work / at_once + (work % at_once > 0 ? 1 : 0);
}
// The power of two at or above n.
inline int64_t power_above(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}
// Whether positions up to `count` need 64 bits. Grids add up to one step of theirs to what they count.
inline bool is_wide(int64_t count) {
  return count > (int64_t{1} << 31) - 1;
}

}  // namespace heddle::cuda
