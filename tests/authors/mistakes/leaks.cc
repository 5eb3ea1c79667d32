// Kernels that leak memory, open files, threads or mappings. Each has this one mistake.
#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

void scale(const RunContext& c, float factor) {
  const auto x = input<float>(c, 0);
  for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = factor * x[i];
}

// ---------------------------------------------------------------- create

// A kernel of plain functions. Its destroy does not free the memory that the state points to.
struct Factors {
  float* values;
};
heddle_status create_factors(const heddle_create_context*, void** state) {
  auto* const factors = static_cast<Factors*>(std::malloc(sizeof(Factors)));
  if (!factors) return HEDDLE_ERROR_OUT_OF_MEMORY;
  factors->values = static_cast<float*>(std::malloc(16 * sizeof(float)));
  if (!factors->values) {
    std::free(factors);
    return HEDDLE_ERROR_OUT_OF_MEMORY;
  }
  for (int i = 0; i < 16; ++i) factors->values[i] = static_cast<float>(i);
  *state = factors;
  return HEDDLE_OK;
}
heddle_status run_factors(const heddle_run_context* c, int64_t, int64_t) {
  return scale(*c, static_cast<const Factors*>(c->state)->values[2]), HEDDLE_OK;
}
heddle_kernel factors_kernel() {
  heddle_kernel kernel = {};
  kernel.create = create_factors;
  kernel.run = run_factors;
  kernel.destroy = [](void* state) { std::free(state); };
  return kernel;
}

// Has no destructor for the memory that create allocates.
class OwnsPlainly {
 public:
  Status create(const CreateContext&) {
    values_ = new float[16];
    for (int i = 0; i < 16; ++i) values_[i] = static_cast<float>(i);
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, values_[3]), Status(); }

 private:
  float* values_ = nullptr;
};

// Never closes the file that create opens.
class KeepsFile {
 public:
  Status create(const CreateContext&) {
    file_ = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    return file_ < 0 ? Status(HEDDLE_ERROR_INTERNAL, "/dev/zero can not be opened") : Status();
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, 2), Status(); }

 private:
  int file_ = -1;
};

// Maps pages of its own and never unmaps them. No allocator knows of them.
class KeepsPages {
 public:
  Status create(const CreateContext&) {
    void* const mapped = ::mmap(nullptr, size_t{1} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a table"};
    table_ = static_cast<float*>(mapped);
    table_[0] = 2;
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, table_[0]), Status(); }

 private:
  float* table_ = nullptr;
};

// Starts a thread that waits for something to do, and detaches it.
class KeepsThread {
 public:
  Status create(const CreateContext&) {
    std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, 2), Status(); }
};

// Starts a thread, and is destroyed without joining it: the C++ library ends the process.
class NeverJoins {
 public:
  Status create(const CreateContext&) {
    thread_ = std::thread([] {});
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, 2), Status(); }

 private:
  std::thread thread_;
};

// Each node is entered in a global list, and stays there after it is destroyed. Nothing is lost, and the list grows.
class Listed {
 public:
  Status create(const CreateContext& c) {
    static std::mutex mutex;
    static std::list<std::vector<float>> tables;
    const std::lock_guard<std::mutex> lock(mutex);
    tables.emplace_back(size_t{16}, static_cast<float>(c.input_count() + 1));
    table_ = &tables.back();
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, (*table_)[0]), Status(); }

 private:
  const std::vector<float>* table_ = nullptr;
};

// ---------------------------------------------------------------- prepare and run

// Has no destructor for the memory that prepare allocates.
class PreparesPlainly {
 public:
  Status prepare(PrepareContext& c) {
    if (!sizes_) sizes_ = new int64_t[HEDDLE_MAX_RANK + 1];
    for (int i = 0; i < c.input(0)->rank; ++i) sizes_[i] = c.input(0)->dims[i];
    sizes_[c.input(0)->rank] = 2;
    rank_ = c.input(0)->rank;
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, static_cast<float>(sizes_[rank_])), Status(); }

 private:
  int64_t* sizes_ = nullptr;
  int rank_ = 0;
};

// Its destructor frees the last allocation of prepare. If it is prepared again, as when shapes change, it loses the one before.
class PreparedTwice {
 public:
  ~PreparedTwice() { delete[] factors_; }
  Status prepare(PrepareContext& c) {
    factors_ = new float[static_cast<size_t>(c.input(0)->rank) + 1];
    for (int i = 0; i <= c.input(0)->rank; ++i) factors_[i] = 2;
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return scale(c, factors_[0]), Status(); }

 private:
  float* factors_ = nullptr;
};

// Reverses x through a copy that is never freed.
Status backwards(In<float> x, Out<float> y) {
  auto* const copy = static_cast<float*>(std::malloc(static_cast<size_t>(x.size + 1) * sizeof(float)));
  if (!copy) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a copy of x"};
  for (int64_t i = 0; i < x.size; ++i) copy[i] = x[i];
  for (int64_t i = 0; i < x.size; ++i) y[i] = copy[x.size - 1 - i];
  return {};
}

// Opens a file in each run, and closes none.
Status opens(In<float> x, Out<float> y) {
  static_cast<void>(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_leaks", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("ForgetsFactors").raw_kernel("cpu", factors_kernel()));
  plugin.add(op("OwnsPlainly").cpu<OwnsPlainly>());
  plugin.add(op("KeepsFile").cpu<KeepsFile>());
  plugin.add(op("KeepsPages").cpu<KeepsPages>());
  plugin.add(op("KeepsThread").cpu<KeepsThread>());
  plugin.add(op("NeverJoins").cpu<NeverJoins>());
  plugin.add(op("Listed").cpu<Listed>());
  plugin.add(op("PreparesPlainly").cpu<PreparesPlainly>());
  plugin.add(op("PreparedTwice").cpu<PreparedTwice>());
  plugin.add(op("KeepsCopy").cpu<backwards>());
  plugin.add(op("Opens").cpu<opens>());
}
