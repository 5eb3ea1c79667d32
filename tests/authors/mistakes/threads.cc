// Kernels whose results or tiles depend on how many threads there are, or on which of them runs. Each has this one mistake.
#include <algorithm>
#include <functional>
#include <thread>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();
constexpr int64_t chunk = 16;  // elements of a tile

int64_t chunks(const heddle_tensor& x) {
  return (x.element_count + chunk - 1) / chunk;
}

// x plus a small amount that depends on the index of the thread that computes it.
class Dithered {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(chunks(*c.input(0))), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    const float little = static_cast<float>(c.host->thread_index(c.call)) * 0x1p-10f;
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) output<float>(c, 0)[i] = x[i] + little;
    return {};
  }
};

// Twice x, in as many tiles as there may be threads. The result is right for any number of them.
class Divided {
 public:
  Status create(const CreateContext& c) { return threads_ = std::max<int64_t>(1, c.max_threads()), Status(); }
  Status prepare(PrepareContext& c) { return c.set_tiles(threads_), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = x.size * begin / threads_; i < x.size * end / threads_; ++i) output<float>(c, 0)[i] = 2 * x[i];
    return {};
  }

 private:
  int64_t threads_ = 1;
};

// The sum of all elements, as partial sums over as many parts as there may be threads: it rounds differently for each number of them.
class SumOfParts {
 public:
  Status create(const CreateContext& c) { return parts_ = std::max<int64_t>(1, c.max_threads()), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    float total = 0;
    for (int64_t part = 0; part < parts_; ++part) {
      float sum = 0;
      for (int64_t i = x.size * part / parts_; i < x.size * (part + 1) / parts_; ++i) sum += x[i];
      total += sum;
    }
    output<float>(c, 0)[0] = total;
    return {};
  }

 private:
  int64_t parts_ = 1;
};

// A copy, and the number of elements, which thread 0 writes. That thread may not run at all.
class Counted {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(std::max<int64_t>(1, chunks(*c.input(0)))), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) output<float>(c, 0)[i] = x[i];
    if (c.host->thread_index(c.call) == 0) output<int64_t>(c, 1)[0] = x.size;
    return {};
  }
};

// x plus a small amount that depends on the operating system's number of the thread: it differs in another thread, whatever its index.
class Identified {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(chunks(*c.input(0))), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    const size_t number = std::hash<std::thread::id>()(std::this_thread::get_id());
    const float little = static_cast<float>(number % 1021) * 0x1p-20f;
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) output<float>(c, 0)[i] = x[i] + little;
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("mistakes_threads", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("Dithered").cpu<Dithered>());
  plugin.add(op("Divided").cpu<Divided>());
  plugin.add(Op("SumOfParts", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<SumOfParts>());
  plugin.add(op("Counted").out_as("count", HEDDLE_I64, scalar()).cpu<Counted>());
  plugin.add(op("Identified").cpu<Identified>());
}
