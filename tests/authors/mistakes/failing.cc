// Kernels that refuse inputs that they may refuse, and then leak something, give no message, or are broken for later calls. They are right
// for the inputs that they do not refuse. Each has this one mistake.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

void roots(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = std::sqrt(x[i]);
}
// Returns -1 if there is none.
int64_t first_below_zero(In<float> x) {
  for (int64_t i = 0; i < x.size; ++i)
    if (x[i] < 0) return i;
  return -1;
}
void twice(const RunContext& c) {
  const auto x = input<float>(c, 0);
  for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = 2 * x[i];
}

// ---------------------------------------------------------------- what stays

// Square roots. The text of a refusal is copied and never freed.
Status roots_with_text(In<float> x, Out<float> y) {
  const int64_t at = first_below_zero(x);
  if (at < 0) return roots(x, y), Status();
  auto* const text = static_cast<char*>(std::malloc(64));
  if (!text) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a text"};
  std::snprintf(text, 64, "x[%lld] is below zero", static_cast<long long>(at));
  return invalid(text);
}

// Scales each column by its number, up to 256 of them. Finds out that there are more after it has made its table.
class ScaledColumns {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& x = *c.input(0);
    width_ = x.rank > 0 ? x.dims[x.rank - 1] : 1;
    auto* const table = new float[static_cast<size_t>(width_) + 1];
    for (int64_t i = 0; i < width_; ++i) table[i] = static_cast<float>(i);
    if (width_ > 256) return unsupported("x has " + std::to_string(width_) + " columns, at most 256 are supported");
    table_.reset(table);
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] * table_[static_cast<size_t>(i % width_)];
    return {};
  }

 private:
  int64_t width_ = 1;
  std::unique_ptr<float[]> table_;
};

// Starts a thread for the duration of create. It is not requested to stop if create refuses a scalar.
class Helped {
 public:
  Status create(const CreateContext& c) {
    const auto done = std::make_shared<std::atomic<bool>>(false);
    std::thread helper([done] {
      while (!*done) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    if (c.input(0)->rank == 0) {
      helper.detach();
      return invalid("x is a scalar, expected at least one dimension");
    }
    *done = true;
    helper.join();
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return twice(c), Status(); }
};

// Reads a file, and does not close it if it refuses.
class LooksIntoFile {
 public:
  Status create(const CreateContext& c) {
    const int file = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (file < 0) return {HEDDLE_ERROR_INTERNAL, "/dev/zero can not be opened"};
    if (c.input(0)->rank > 2) return invalid("x has rank " + std::to_string(c.input(0)->rank) + ", expected at most 2");
    ::close(file);
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return twice(c), Status(); }
};

// ---------------------------------------------------------------- what it says

// Refuses without a message.
Status roots_without_text(In<float> x, Out<float> y) {
  if (first_below_zero(x) >= 0) return {HEDDLE_ERROR_INVALID, ""};
  return roots(x, y), Status();
}

// Refuses without a message, in the shape rule.
Status infer_without_text(InferContext& c) {
  if (c.dims(0).rank > 2) return {HEDDLE_ERROR_INVALID, ""};
  return c.set_dims(0, c.dims(0)), Status();
}
Status tripled(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 3 * x[i];
  return {};
}

// Numbers from 0 to 1 by a table. A number outside causes an exception of the C++ library instead of a refusal.
class ByTable {
 public:
  Status create(const CreateContext&) {
    for (int k = 0; k < 64; ++k) table_.push_back(static_cast<float>(k * k));
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) {
      const bool fits = x[i] >= -1000 && x[i] <= 1000;
      output<float>(c, 0)[i] = table_.at(fits ? static_cast<size_t>(static_cast<int64_t>(std::floor(x[i] * 64))) : table_.size());
    }
    return {};
  }

 private:
  std::vector<float> table_;
};

// Refuses with the status of exhausted memory.
Status roots_out_of_memory(In<float> x, Out<float> y) {
  if (first_below_zero(x) >= 0) return {HEDDLE_ERROR_OUT_OF_MEMORY, "x has a number below zero"};
  return roots(x, y), Status();
}

// A kernel of plain functions: for empty inputs it returns a number that is not a status.
heddle_status run_and_answer(const heddle_run_context* c, int64_t, int64_t) {
  if (c->inputs[0]->element_count == 0) return 99;
  return twice(*c), HEDDLE_OK;
}
heddle_kernel answering_kernel() {
  heddle_kernel kernel = {};
  kernel.run = run_and_answer;
  return kernel;
}

// ---------------------------------------------------------------- what comes next

// Remembers for good that an input was refused, and refuses all later inputs of any node.
Status roots_until_refused(In<float> x, Out<float> y) {
  static std::atomic<bool> refused{false};
  if (refused || first_below_zero(x) >= 0) {
    refused = true;
    return invalid("x has a number below zero");
  }
  return roots(x, y), Status();
}

// Remembers a refusal too, but for this node alone.
class RootsUntilRefused {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    if (refused_ || first_below_zero(input<float>(c, 0)) >= 0) {
      refused_ = true;
      return invalid("x has a number below zero");
    }
    return roots(input<float>(c, 0), output<float>(c, 0)), Status();
  }

 private:
  mutable std::atomic<bool> refused_{false};
};

}  // namespace

HEDDLE_PLUGIN("mistakes_failing", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  const auto of_roots = [&](const char* name) { return op(name).example("f32[3] = 0 1 4 -> f32[3] = 0 1 2", "by hand"); };
  plugin.add(of_roots("RootsWithText").cpu<roots_with_text>());
  plugin.add(op("ScaledColumns").cpu<ScaledColumns>());
  plugin.add(op("Helped").cpu<Helped>());
  plugin.add(op("LooksIntoFile").cpu<LooksIntoFile>());
  plugin.add(of_roots("RootsWithoutText").cpu<roots_without_text>());
  plugin.add(Op("TripledWithoutText", "mistakes").in("x", f32).out("y", {}, f32).infer(infer_without_text).cpu<tripled>());
  plugin.add(op("ByTable").example("f32[3] = 0 0.25 0.5 -> f32[3] = 0 256 1024", "by hand").cpu<ByTable>());
  plugin.add(of_roots("RootsOutOfMemory").cpu<roots_out_of_memory>());
  plugin.add(op("Answering").raw_kernel("cpu", answering_kernel()));
  plugin.add(of_roots("RootsUntilRefused").cpu<roots_until_refused>());
  plugin.add(of_roots("NodeUntilRefused").cpu<RootsUntilRefused>());
}
