// Asynchronous operators: Started is in the test's hands (started.h); Found asks for memory of its output when it is complete, on the other
// thread; Received waits for a socket. Careless runs a subnet and makes mistakes when it is resumed.
#include "started.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// y = x when it is done; whoever the test is writes y.
class Started {
 public:
  Status create(const CreateContext& context) {
    starter_ = reinterpret_cast<Starter*>(context.attributes.i("starter"));
    number_ = context.attributes.i("number");
    return {};
  }
  // No elements are no tiles: such a step is complete without being started.
  static Status prepare(PrepareContext& context) {
    context.set_tiles(context.output(0)->element_count == 0 ? 0 : 1);
    return {};
  }
  Status start(const RunContext& context, Completion) const { return {starter_->start(starter_, &context, number_), ""}; }
  void abort(const RunContext& context) const { starter_->abort(starter_, &context, number_); }
  Status finish(const RunContext& context) const {
    const heddle_tensor& y = *context.outputs[0];
    if (y.element_count > 0) ++static_cast<float*>(y.data)[0];  // to be seen: finish is called after the end, once
    return {};
  }

 private:
  Starter* starter_ = nullptr;
  int64_t number_ = 0;
};

// Threads of the plugin's own; the library stays until they are gone.
class Threads {
 public:
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  template <class Work>
  void begin(Work work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back(std::move(work));
  }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};
Threads threads;

// The positive numbers of x, found by a thread of its own.
class Found {
 public:
  Status start(const RunContext& context, Completion done) const {
    threads.begin([context, done] {
      const In<float> x = input<float>(context, 0);
      const int64_t count = std::count_if(x.data, x.data + x.size, [](float v) { return v > 0; });
      auto* y = static_cast<float*>(allocate_output(context, 0, {&count, 1}));
      if (!y && count > 0) {
        done({HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for what was found"});
        return;
      }
      std::copy_if(x.data, x.data + x.size, y, [](float v) { return v > 0; });
      done({});
    });
    return {};
  }
};
Status infer_found(InferContext& context) {
  context.set_dynamic(0, 1);
  return {};
}

// Sockets that steps wait for, all by one thread.
class Receiver {
 public:
  Receiver() : wake_(eventfd(0, EFD_NONBLOCK)), thread_([this] { work(); }) {}
  ~Receiver() {
    stop_ = true;
    wake();
    thread_.join();
    close(wake_);
  }
  void receive(const RunContext& context, Completion done, int socket) {
    const heddle_tensor& y = *context.outputs[0];
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.emplace(context.call, Waiting{done, socket, static_cast<char*>(y.data), static_cast<size_t>(y.byte_size)});
    }
    wake();
  }
  void abort(const RunContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = waiting_.find(context.call);
    if (found == waiting_.end()) return;
    const Completion done = found->second.done;
    waiting_.erase(found);
    done(cancelled());
  }

 private:
  struct Waiting {
    Completion done;
    int socket;
    char* to;
    size_t left;
  };
  void wake() const {
    const uint64_t one = 1;
    (void)!write(wake_, &one, sizeof(one));
  }
  // False: there is more to come.
  static bool read_some(Waiting& waiting, Status* status) {
    while (waiting.left > 0) {
      const ssize_t n = read(waiting.socket, waiting.to, waiting.left);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (n <= 0) {
        *status = invalid(n == 0 ? "the peer closed the socket with " + std::to_string(waiting.left) + " bytes to come"
                                 : std::string("the socket: ") + std::strerror(errno));
        return true;
      }
      waiting.to += n;
      waiting.left -= static_cast<size_t>(n);
    }
    return true;
  }
  void work() {
    while (!stop_) {
      std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& entry : waiting_) polled.push_back({entry.second.socket, POLLIN, 0});
      }
      poll(polled.data(), polled.size(), -1);
      uint64_t woken = 0;
      (void)!read(wake_, &woken, sizeof(woken));
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto entry = waiting_.begin(); entry != waiting_.end();) {
        Status status;
        const bool over = read_some(entry->second, &status);
        const Completion done = entry->second.done;
        entry = over ? waiting_.erase(entry) : std::next(entry);
        if (over) done(status);
      }
    }
  }

  std::mutex mutex_;
  std::map<const heddle_call*, Waiting> waiting_;
  std::atomic<bool> stop_{false};
  const int wake_;
  std::thread thread_;
};

Receiver& receiver() {
  static Receiver one;
  return one;
}

// As many numbers as `like` has, from a non-blocking socket.
class Received {
 public:
  Status create(const CreateContext& context) {
    socket_ = static_cast<int>(context.attributes.i("socket"));
    return {};
  }
  Status start(const RunContext& context, Completion done) const {
    receiver().receive(context, done, socket_);
    return {};
  }
  void abort(const RunContext& context) const { receiver().abort(context); }

 private:
  int socket_ = -1;
};

// Runs `first`, and resumes as it should, or makes a mistake of its own.
class Careless {
 public:
  Status create(const CreateContext& context) {
    mistake_ = context.attributes.i("mistake");
    pending_ = reinterpret_cast<std::atomic<int>*>(context.attributes.i("pending"));
    first_ = Subnet(context.attributes, "first");
    second_ = Subnet(context.attributes, "second");
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    if (mistake_ == 2 || (mistake_ == 5 && context.resumed)) return {HEDDLE_PENDING, ""};
    const Subnet& asked = mistake_ == 3 && context.resumed ? second_ : first_;
    Status status = asked.run(context, 0, inputs_from(context, 0), {context.outputs, 1});
    if (status.code != HEDDLE_PENDING) return status;
    if (pending_) pending_->fetch_add(1);
    if (mistake_ == 1) return {};
    if (mistake_ == 4) throw std::runtime_error("thrown in the middle");
    if (mistake_ == lingers)
      while (pending_->load() != 0) std::this_thread::yield();
    return status;
  }

 private:
  static constexpr int64_t lingers = 6;  // no mistake: it returns when the test has set `pending` to 0
  int64_t mistake_ = 0;
  std::atomic<int>* pending_ = nullptr;  // counts how often its subnet was left
  Subnet first_, second_;
};
Status careless_subnets(const SubnetContext& context) {
  HEDDLE_PLUGIN_CHECK(context.declare("first", inputs_from(context, 0)));
  return context.declare("second", inputs_from(context, 0));
}

}  // namespace

HEDDLE_PLUGIN("started", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(Op("Started", "started")
                 .variadic("x", f32)
                 .out("y", {}, f32)
                 .infer([](InferContext& context) {
                   context.set_dims(0, context.dims(0));
                   return Status();
                 })
                 .required("starter", HEDDLE_ATTRIBUTE_INT)
                 .attribute("number", 0)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<Started>());
  plugin.add(Op("StartedUpdate", "started")
                 .in("w", f32)
                 .in("x", f32)
                 .out("next", same_as("w"), f32)
                 .updates("next", "w")
                 .required("starter", HEDDLE_ATTRIBUTE_INT)
                 .attribute("number", 0)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<Started>());
  plugin.add(
      Op("Found", "started").in("x", f32).out("y", {}, f32).infer(infer_found).cpu<Found>().kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
  plugin.add(Op("Careless", "started")
                 .in("x", f32)
                 .out("y", same_as("x"), f32)
                 .required("mistake", HEDDLE_ATTRIBUTE_INT)
                 .attribute("pending", 0)
                 .subnet("first", SubnetPorts())
                 .subnet("second", SubnetPorts())
                 .subnets(careless_subnets)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<Careless>()
                 .kernel_flags(HEDDLE_KERNEL_RESUMES));
  plugin.add(Op("Received", "started")
                 .in("like", f32)
                 .out("y", same_as("like"), f32)
                 .required("socket", HEDDLE_ATTRIBUTE_INT)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<Received>());
}
