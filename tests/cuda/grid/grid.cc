#include "grid.h"

#include <dlfcn.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// As grid_device.h has it.
struct heddle_index {
  unsigned int x, y, z;
};
struct heddle_grid {
  heddle_index thread, block, block_dim, grid_dim;
  void (*barrier)(heddle_grid*);
  void (*shuffle)(heddle_grid*, const void* own, void* other, unsigned int bytes, int lane);
  void* (*shared)(heddle_grid*, int id, unsigned long long bytes);
};

namespace heddle::cuda::grid {
namespace {

using Kernel = void (*)(const void*);
constexpr size_t stack_bytes = 64 * 1024;

// One thread of the block.
struct Fiber {
  ucontext_t context = {};
  std::unique_ptr<char[]> stack;
  bool started = false, ended = false;
  uint64_t barriers = 0, shuffles = 0;  // passed, or waited for
  uint64_t exchange[2] = {0, 0};        // what it gives in its last two shuffles
  void* fake_stack = nullptr;
};

class Block : public heddle_grid {
 public:
  Block(Kernel kernel, const void* parameters, heddle_grid** now) : kernel_(kernel), parameters_(parameters), now_(now) {
    barrier = [](heddle_grid* g) { static_cast<Block*>(g)->wait_for_all(); };
    shuffle = [](heddle_grid* g, const void* own, void* other, unsigned int bytes, int lane) {
      static_cast<Block*>(g)->exchange(own, other, bytes, lane);
    };
    shared = [](heddle_grid* g, int id, unsigned long long bytes) { return static_cast<Block*>(g)->shared_memory(id, bytes); };
  }

  // Threads that know nothing of each other need no fibers.
  void run_alone(unsigned int count) {
    *now_ = this;
    for (unsigned int i = 0; i < count; ++i) {
      number(i);
      kernel_(parameters_);
    }
  }

  std::string run_together(unsigned int count, Order order, uint64_t seed) {
    *now_ = this;
    fibers_.resize(count);
    for (Fiber& f : fibers_) {
      if (!f.stack) f.stack = std::make_unique<char[]>(stack_bytes);
      f.started = f.ended = false;
      f.barriers = f.shuffles = 0;
    }
    memory_.clear();
    std::vector<unsigned int> turns(count);
    for (unsigned int i = 0; i < count; ++i) turns[i] = order == Order::descending ? count - 1 - i : i;
    for (uint64_t round = 0;; ++round) {
      if (order == Order::random)
        for (size_t i = turns.size(); i > 1; --i)
          std::swap(turns[i - 1], turns[((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % i]);
      bool moved = false, all_ended = true;
      for (const unsigned int i : turns) {
        Fiber& f = fibers_[i];
        if (f.ended) continue;
        all_ended = false;
        if (!may_go_on(i)) continue;
        moved = true;
        resume(i);
      }
      if (all_ended) return {};
      if (!moved) return "threads wait for others that have ended, or that wait elsewhere";
    }
  }

  void place(uint64_t block, Dim blocks, Dim threads) {
    grid_dim = {blocks.x, blocks.y, blocks.z};
    block_dim = {threads.x, threads.y, threads.z};
    this->block = {static_cast<unsigned int>(block % blocks.x), static_cast<unsigned int>(block / blocks.x % blocks.y),
                   static_cast<unsigned int>(block / blocks.x / blocks.y)};
  }

 private:
  void number(unsigned int i) { thread = {i % block_dim.x, i / block_dim.x % block_dim.y, i / block_dim.x / block_dim.y}; }

  // Past a barrier when all that have not ended stand at it; past a shuffle when the warp does.
  bool may_go_on(unsigned int i) const {
    const Fiber& f = fibers_[i];
    if (!f.started) return true;
    if (waits_[i] == Wait::barrier)
      return std::all_of(fibers_.begin(), fibers_.end(), [&](const Fiber& o) { return o.ended || o.barriers >= f.barriers; });
    const size_t warp = i / 32 * 32, end = std::min<size_t>(warp + 32, fibers_.size());
    return std::all_of(fibers_.begin() + static_cast<ptrdiff_t>(warp), fibers_.begin() + static_cast<ptrdiff_t>(end),
                       [&](const Fiber& o) { return o.ended || o.shuffles >= f.shuffles; });
  }

  void resume(unsigned int i) {
    Fiber& f = fibers_[i];
    current_ = i;
    number(i);
    if (waits_.size() != fibers_.size()) waits_.resize(fibers_.size());
    if (!f.started) {
      f.started = true;
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.get();
      f.context.uc_stack.ss_size = stack_bytes;
      f.context.uc_link = nullptr;
      const auto self = reinterpret_cast<uintptr_t>(this);
      makecontext(&f.context, reinterpret_cast<void (*)()>(&Block::enter), 2, static_cast<unsigned int>(self),
                  static_cast<unsigned int>(self >> 32));
    }
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, f.stack.get(), stack_bytes);
    swapcontext(&scheduler_, &f.context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    swapcontext(&scheduler_, &f.context);
#endif
  }
  void leave(bool for_ever) {
    Fiber& f = fibers_[current_];
    f.ended = for_ever;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &f.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
    swapcontext(&f.context, &scheduler_);
    __sanitizer_finish_switch_fiber(f.fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#else
    swapcontext(&f.context, &scheduler_);
#endif
  }
  static void enter(unsigned int low, unsigned int high) {
    auto* const self = reinterpret_cast<Block*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &self->scheduler_stack_, &self->scheduler_stack_bytes_);
#endif
    self->kernel_(self->parameters_);
    self->leave(true);
  }

  void wait_for_all() {
    ++fibers_[current_].barriers;
    waits_[current_] = Wait::barrier;
    leave(false);
  }
  void exchange(const void* own, void* other, unsigned int bytes, int lane) {
    const unsigned int me = current_;
    Fiber& f = fibers_[me];
    const size_t slot = f.shuffles % 2;
    std::memcpy(&f.exchange[slot], own, bytes);
    ++f.shuffles;
    waits_[me] = Wait::shuffle;
    leave(false);
    const size_t there = me / 32 * 32 + static_cast<size_t>(lane);
    // Of a lane that is not there, or ended before: nothing that anybody may rely on.
    static constexpr uint64_t nothing = 0x7ff8dead7fc0deadu;
    const bool gave = there < fibers_.size() && fibers_[there].shuffles >= f.shuffles;
    std::memcpy(other, gave ? &fibers_[there].exchange[slot] : &nothing, bytes);
  }
  void* shared_memory(int id, unsigned long long bytes) {
    auto [at, made] = memory_.try_emplace(id);
    if (made) {
      at->second = std::make_unique<unsigned char[]>(bytes);  // of its own: AddressSanitizer knows its end
      std::memset(at->second.get(), 0xff, bytes);             // NaN, and no index
    }
    return at->second.get();
  }

  enum class Wait : uint8_t { barrier, shuffle };
  const Kernel kernel_;
  const void* const parameters_;
  heddle_grid** const now_;
  std::vector<Fiber> fibers_;
  std::vector<Wait> waits_;
  unsigned int current_ = 0;
  ucontext_t scheduler_ = {};
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
  std::map<int, std::unique_ptr<unsigned char[]>> memory_;
};

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::shared_ptr<Module> Module::open(const std::string& file, std::string* error) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *error = dlerror();
    return nullptr;
  }
  return std::shared_ptr<Module>(new Module(library));
}

std::shared_ptr<Module> Module::compile(const std::string& text, const std::string& folder, std::string* error, std::string* file) {
  namespace fs = std::filesystem;
  const std::string whole = file_text(HEDDLE_GRID_HEADER) + text;
#if defined(__SANITIZE_ADDRESS__)
  const std::string options = "-fsanitize=address -O1 -g1";
#else
  const std::string options = "-O1";  // most of the time goes to compiling
#endif
  char name[40];
  std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(hash_of(whole + options)));
  fs::create_directories(folder);
  const fs::path library = fs::path(folder) / (std::string(name) + ".so");
  if (!fs::exists(library)) {
    const std::string own = (fs::path(folder) / name).string() + "." + std::to_string(::getpid());
    std::ofstream(own + ".cc") << whole;
    const std::string command = std::string(HEDDLE_GRID_COMPILER) + " -std=c++17 -fPIC -shared -ffp-contract=off -fvisibility=hidden -w " +
                                options + " -o " + own + ".so " + own + ".cc 2> " + own + ".log";
    if (std::system(command.c_str()) != 0) {
      *error = file_text(own + ".log");
      return nullptr;
    }
    fs::rename(own + ".so", library);
    fs::remove(own + ".log");
    fs::remove(own + ".cc");
  }
  if (file) *file = library.string();
  return open(library.string(), error);
}

Module::~Module() {
  dlclose(library_);
}

bool Module::has(const std::string& kernel) const {
  return dlsym(library_, kernel.c_str()) != nullptr;
}

uint64_t Module::parameter_bytes(const std::string& kernel) const {
  const auto* const bytes = static_cast<const unsigned long long*>(dlsym(library_, (kernel + "_bytes").c_str()));
  return bytes ? *bytes : 0;
}

std::string Module::launch(const std::string& kernel, Dim blocks, Dim threads, const void* parameters, Order order, uint64_t seed,
                           uint64_t first_block, uint64_t last_block) const {
  const auto body = reinterpret_cast<Kernel>(dlsym(library_, kernel.c_str()));
  auto** const now = static_cast<heddle_grid**>(dlsym(library_, "heddle_grid_now"));
  const auto* const together = static_cast<const int*>(dlsym(library_, (kernel + "_together").c_str()));
  if (!body || !now || !together) return "there is no kernel " + kernel;
  const uint64_t block_count = uint64_t{blocks.x} * blocks.y * blocks.z;
  const unsigned int count = threads.x * threads.y * threads.z;
  if (count == 0 || count > 1024 || block_count == 0 || threads.z > 64 || blocks.y > 65535 || blocks.z > 65535)
    return "a launch that CUDA refuses: invalid configuration argument";
  Block block(body, parameters, now);
  for (uint64_t b = first_block; b < std::min(block_count, last_block); ++b) {
    block.place(b, blocks, threads);
    if (*together == 0)
      block.run_alone(count);
    else if (const std::string wrong = block.run_together(count, order, seed + b); !wrong.empty())
      return kernel + ": " + wrong;
  }
  return {};
}

}  // namespace heddle::cuda::grid
