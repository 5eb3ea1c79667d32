// Kernels whose run() does more than compute: it allocates, starts threads or prints. Their results are right. Each has this one mistake.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// ---------------------------------------------------------------- memory

// Reverses x through a copy from malloc.
Status backwards_by_malloc(In<float> x, Out<float> y) {
  auto* const copy = static_cast<float*>(std::malloc(static_cast<size_t>(x.size + 1) * sizeof(float)));
  if (!copy) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a copy of x"};
  std::copy_n(x.data, x.size, copy);
  for (int64_t i = 0; i < x.size; ++i) y[i] = copy[x.size - 1 - i];
  std::free(copy);
  return {};
}

// Reverses x through a copy from operator new.
Status backwards_by_new(In<float> x, Out<float> y) {
  const std::unique_ptr<float[]> copy(new float[static_cast<size_t>(x.size) + 1]);
  std::copy_n(x.data, x.size, copy.get());
  for (int64_t i = 0; i < x.size; ++i) y[i] = copy[static_cast<size_t>(x.size - 1 - i)];
  return {};
}

// The sum of each row, in a vector of its own before it is copied to the output.
Status row_sums(In<float> x, Out<float> y) {
  std::vector<float> sums(static_cast<size_t>(y.size) + 1);
  const int64_t width = x.dims[-1];
  for (int64_t i = 0; i < x.size; ++i) sums[static_cast<size_t>(i / width)] += x[i];
  std::copy_n(sums.data(), y.size, y.data);
  return {};
}
Status infer_row_sums(InferContext& c) {
  const Dims x = c.dims(0);
  if (x.rank < 1) return invalid("x is a scalar and has no rows");
  return c.set_dims(0, x.data, x.rank - 1), Status();
}

// Sorts by std::stable_sort, which allocates memory itself. NaN is ordered by its bits.
Status sorted(In<float> x, Out<float> y) {
  const auto key = [](float value) {
    int32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits < 0 ? bits ^ 0x7fffffff : bits;
  };
  std::copy_n(x.data, x.size, y.data);
  std::stable_sort(y.data, y.data + y.size, [&](float a, float b) { return key(a) < key(b); });
  return {};
}

// Square roots. The text of a refusal is built before it is known whether one is needed.
Status roots(In<float> x, Out<float> y) {
  const std::string refusal = "x of shape " + dims_text(x.dims) + " has a number below zero";
  for (int64_t i = 0; i < x.size; ++i) {
    if (x[i] < 0) return invalid(refusal);
    y[i] = std::sqrt(x[i]);
  }
  return {};
}

// x, cut to [-1, 1], squared by a table that the first run makes, once for each node.
class ByLateTable {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    std::call_once(once_, [this] {
      table_.resize(256);
      for (size_t k = 0; k < 256; ++k) table_[k] = static_cast<float>(k * k) / (255 * 255);
    });
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) {
      const float a = std::fabs(x[i]);
      output<float>(c, 0)[i] = table_[a < 1 ? static_cast<size_t>(a * 255) : 255];
    }
    return {};
  }

 private:
  mutable std::once_flag once_;
  mutable std::vector<float> table_;
};

// The median of the sums of blocks of 1024 elements (0 of none); finish() sorts them in a vector.
class MedianSum {
 public:
  Status prepare(PrepareContext& c) {
    tiles_ = (c.input(0)->element_count + 1023) / 1024;
    c.set_tiles(tiles_);
    c.set_scratch(static_cast<uint64_t>(tiles_) * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t tile = begin; tile < end; ++tile) {
      float sum = 0;
      for (int64_t i = tile * 1024; i < std::min(x.size, tile * 1024 + 1024); ++i) sum += x[i];
      step_scratch<float>(c)[tile] = sum;
    }
    return {};
  }
  Status finish(const RunContext& c) const {
    const float* const sums = step_scratch<float>(c);
    std::vector<float> ordered(sums, sums + tiles_);
    std::sort(ordered.begin(), ordered.end());
    output<float>(c, 0)[0] = ordered.empty() ? 0.0f : ordered[ordered.size() / 2];
    return {};
  }

 private:
  int64_t tiles_ = 0;
};

// ---------------------------------------------------------------- threads

void squares(In<float> x, int64_t begin, int64_t end, Out<float> y) {
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i];
}

// Squares the second half in a thread of its own.
Status squares_by_thread(In<float> x, Out<float> y) {
  std::thread half([&] { squares(x, x.size / 2, x.size, y); });
  squares(x, 0, x.size / 2, y);
  half.join();
  return {};
}

// Computes the second half as a task.
Status squares_by_task(In<float> x, Out<float> y) {
  auto half = std::async(std::launch::async, [&] { squares(x, x.size / 2, x.size, y); });
  squares(x, 0, x.size / 2, y);
  half.get();
  return {};
}

// ---------------------------------------------------------------- output

Status cubes_by_printf(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i] * x[i];
  std::printf("cubes of %lld elements\n", static_cast<long long>(x.size));
  return {};
}

Status cubes_by_stream(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i] * x[i];
  std::cout << "cubes: done" << std::endl;
  return {};
}

// Writes past all buffers of the C and C++ libraries, by a system call.
Status cubes_by_write(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i] * x[i];
  const char text[] = "cubes: done\n";
  if (::write(STDOUT_FILENO, text, sizeof(text) - 1) < 0) return {HEDDLE_ERROR_INTERNAL, "standard output can not be written"};
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_run_effects", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("BackwardsByMalloc").cpu<backwards_by_malloc>());
  plugin.add(op("BackwardsByNew").cpu<backwards_by_new>());
  plugin.add(Op("RowSumsByVector", "mistakes").in("x", f32).out("y", {}, f32).infer(infer_row_sums).cpu<row_sums>());
  plugin.add(op("Sorted").example("f32[4] = 2 -1 3 0 -> f32[4] = -1 0 2 3", "by hand").cpu<sorted>());
  plugin.add(op("Roots").example("f32[3] = 0 1 4 -> f32[3] = 0 1 2", "by hand").cpu<roots>());
  plugin.add(op("ByLateTable").cpu<ByLateTable>());
  plugin.add(Op("MedianSum", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<MedianSum>());
  plugin.add(op("SquaresByThread").cpu<squares_by_thread>());
  plugin.add(op("SquaresByTask").cpu<squares_by_task>());
  plugin.add(op("CubesByPrintf").cpu<cubes_by_printf>());
  plugin.add(op("CubesByStream").cpu<cubes_by_stream>());
  plugin.add(op("CubesByWrite").cpu<cubes_by_write>());
}
