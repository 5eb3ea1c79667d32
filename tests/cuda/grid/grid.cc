#undef _FORTIFY_SOURCE  // its longjmp takes another stack for a mistake
#include "grid.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Must match grid_device.h.
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

// The point where a stack continues. swapcontext asks the kernel for the signal mask each time, which costs more than what most threads do
// in between; but it is the only way that AddressSanitizer supports.
class Switch {
 public:
  // Switches to `there`. Returns when another stack switches back here.
  void to(Switch& there) {
#if defined(__SANITIZE_ADDRESS__)
    swapcontext(&context_, &there.context_);
#else
    if (_setjmp(jump_) != 0) return;
    if (there.is_new_) {
      there.is_new_ = false;
      setcontext(&there.context_);
    }
    _longjmp(there.jump_, 1);
#endif
  }
  // Makes the other stack begin with `function`, which never returns.
  void begin(char* stack, void (*function)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = stack_bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, function, 0);
    is_new_ = true;
  }

 private:
  ucontext_t context_ = {};
  jmp_buf jump_ = {};
  bool is_new_ = false;
};

enum class Wait : uint8_t { none, barrier, shuffle };

// One thread of the block. Its stack is used for the next block, too.
struct Fiber {
  Switch place;
  std::unique_ptr<char[]> stack;
  bool ended = false;
  Wait waits = Wait::none;
  uint64_t barriers = 0, shuffles = 0;  // passed, or waited for
  uint64_t exchange[2] = {0, 0};        // its values in its last two shuffles
  void* fake_stack = nullptr;
};

// Threads that wait for each other, a warp's in shuffles or a block's at barriers: the last one that arrives, or ends, lets all continue.
struct Meeting {
  unsigned int there = 0, arrived = 0;  // threads that have not ended; those that have arrived
  uint64_t passed = 0;                  // how many times all have passed
  void arrive() {
    ++arrived;
    pass();
  }
  void end() {
    --there;
    pass();
  }

 private:
  void pass() {
    if (there == 0 || arrived < there) return;
    arrived = 0;
    ++passed;
  }
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

  // Threads that do not cooperate need no fibers.
  void run_alone(unsigned int count) {
    *now_ = this;
    for (unsigned int i = 0; i < count; ++i) {
      number(i);
      kernel_(parameters_);
    }
  }

  std::string run_together(unsigned int count, Order order, uint64_t seed) {
    *now_ = running = this;
    if (fibers.size() < count) fibers.resize(count);
    all_ = {count, 0, 0};
    warps_.assign((count + 31) / 32, Meeting());
    for (unsigned int i = 0; i < count; ++i) {
      Fiber& f = fibers[i];
      if (!f.stack) {
        f.stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
        f.place.begin(f.stack.get(), enter);
      }
      f.ended = false;
      f.waits = Wait::none;
      f.barriers = f.shuffles = 0;
      ++warps_[i / 32].there;
    }
    count_ = count;
    memory_.clear();
    std::vector<unsigned int> turns(count);
    for (unsigned int i = 0; i < count; ++i) turns[i] = order == Order::descending ? count - 1 - i : i;
    while (all_.there > 0) {
      if (order == Order::random)
        for (size_t i = turns.size(); i > 1; --i)
          std::swap(turns[i - 1], turns[((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % i]);
      bool moved = false;
      for (const unsigned int i : turns) {
        if (fibers[i].ended || !may_go_on(i)) continue;
        moved = true;
        resume(i);
      }
      if (!moved) {
        fibers.clear();  // these never come to an end
        return "threads wait for others that have ended, or that wait elsewhere";
      }
    }
    return {};
  }

  void place(uint64_t block, Dim blocks, Dim threads) {
    grid_dim = {blocks.x, blocks.y, blocks.z};
    block_dim = {threads.x, threads.y, threads.z};
    this->block = {static_cast<unsigned int>(block % blocks.x), static_cast<unsigned int>(block / blocks.x % blocks.y),
                   static_cast<unsigned int>(block / blocks.x / blocks.y)};
  }

 private:
  void number(unsigned int i) { thread = {i % block_dim.x, i / block_dim.x % block_dim.y, i / block_dim.x / block_dim.y}; }

  // Returns true if the thread may continue: past a barrier when all threads that have not ended have reached it; past a shuffle when the
  // warp has.
  bool may_go_on(unsigned int i) const {
    const Fiber& f = fibers[i];
    if (f.waits == Wait::none) return true;
    return f.waits == Wait::barrier ? f.barriers <= all_.passed : f.shuffles <= warps_[i / 32].passed;
  }

  void resume(unsigned int i) {
    current_ = i;
    number(i);
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fibers[i].stack.get(), stack_bytes);
    scheduler_.to(fibers[i].place);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    scheduler_.to(fibers[i].place);
#endif
  }
  void leave(Fiber& f) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&f.fake_stack, scheduler_stack_, scheduler_stack_bytes_);
    f.place.to(scheduler_);
    __sanitizer_finish_switch_fiber(f.fake_stack, &running->scheduler_stack_, &running->scheduler_stack_bytes_);
#else
    f.place.to(scheduler_);
#endif
  }
  // Runs a fiber: a thread of one block after the other.
  static void enter() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &running->scheduler_stack_, &running->scheduler_stack_bytes_);
#endif
    for (;;) {
      running->kernel_(running->parameters_);
      const unsigned int me = running->current_;
      fibers[me].ended = true;
      running->all_.end();
      running->warps_[me / 32].end();
      running->leave(fibers[me]);
    }
  }

  void wait_for_all() {
    Fiber& f = fibers[current_];
    ++f.barriers;
    f.waits = Wait::barrier;
    all_.arrive();
    leave(f);
  }
  void exchange(const void* own, void* other, unsigned int bytes, int lane) {
    const unsigned int me = current_;
    Fiber& f = fibers[me];
    const size_t slot = f.shuffles % 2;
    std::memcpy(&f.exchange[slot], own, bytes);
    ++f.shuffles;
    f.waits = Wait::shuffle;
    warps_[me / 32].arrive();
    leave(f);
    const size_t there = me / 32 * 32 + static_cast<size_t>(lane);
    // The value of a lane that does not exist, or that ended before: a pattern that no kernel may rely on.
    static constexpr uint64_t nothing = 0x7ff8dead7fc0deadu;
    const bool gave = there < count_ && fibers[there].shuffles >= f.shuffles;
    std::memcpy(other, gave ? &fibers[there].exchange[slot] : &nothing, bytes);
  }
  void* shared_memory(int id, unsigned long long bytes) {
    auto [at, made] = memory_.try_emplace(id);
    if (made) {
      at->second = std::make_unique<unsigned char[]>(bytes);  // allocated on its own, so that AddressSanitizer knows its end
      std::memset(at->second.get(), 0xff, bytes);             // NaN, and no index
    }
    return at->second.get();
  }

  static thread_local std::deque<Fiber> fibers;  // which do not move
  static thread_local Block* running;
  const Kernel kernel_;
  const void* const parameters_;
  heddle_grid** const now_;
  Meeting all_;
  std::vector<Meeting> warps_;
  size_t count_ = 0;
  unsigned int current_ = 0;
  Switch scheduler_;
#if defined(__SANITIZE_ADDRESS__)
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
  std::map<int, std::unique_ptr<unsigned char[]>> memory_;
};

thread_local std::deque<Fiber> Block::fibers;
thread_local Block* Block::running = nullptr;

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
  const std::string options = "-O0";  // compiling takes most of the time
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
