// The common part of the tests of asynchronous steps: the crew that completes those of tests/plugins/started.cc, in an order of its own,
// and an executor that counts its working threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "../plugins/started.h"
#include "heddle/executor.h"
#include "heddle/session.h"
#include "plugins.h"
#include "small_nets.h"

namespace heddle {

// How a step that is started ends.
enum class Fate : int64_t { late, early, twice, aborted, fails, refused, held };

// A thread that completes the started steps, in an order of its own.
class Crew : public Starter {
 public:
  explicit Crew(uint64_t seed) : Starter{begin, told}, random_(seed), thread_([this] { work(); }) {}
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  // Chooses the fate of a step by its number.
  std::function<Fate(int64_t number)> fate = [](int64_t) { return Fate::late; };
  std::atomic<int> aborted{0}, refused_twice{0}, under_way{0};
  std::atomic<int> completed{0};  // steps whose complete() has returned
  // Completes the steps that were held.
  void release() {
    const std::lock_guard lock(mutex_);
    for (const Job& job : waiting_) queue_.push_back({job.context, Fate::late});
    waiting_.clear();
    changed_.notify_all();
  }

 private:
  struct Job {
    const heddle_run_context* context;
    Fate fate;
  };
  // y is the sum of the inputs.
  static void compute(const heddle_run_context& c) {
    auto* y = static_cast<float*>(c.outputs[0]->data);
    for (int64_t i = 0; i < c.outputs[0]->element_count; ++i) {
      float sum = 0;
      for (uint32_t k = 0; k < c.input_count; ++k) sum += static_cast<const float*>(c.inputs[k]->data)[i];
      y[i] = sum;
    }
  }
  heddle_status complete(const heddle_run_context& c, heddle_status status, const char* text = nullptr) {
    --under_way;
    return c.host->complete(c.call, status, text, text ? std::strlen(text) : 0);
  }
  static heddle_status begin(Starter* self, const heddle_run_context* context, int64_t number) {
    auto& crew = *static_cast<Crew*>(self);
    const Fate fate = crew.fate(number);
    if (fate == Fate::refused) {
      const std::string text = "refused, as it was told to";
      context->host->set_error(context->call, HEDDLE_ERROR_INVALID, text.data(), text.size());
      return HEDDLE_ERROR_INVALID;
    }
    ++crew.under_way;
    if (fate == Fate::early || fate == Fate::twice) {
      compute(*context);
      EXPECT_EQ(context->host->complete(context->call, HEDDLE_PENDING, nullptr, 0), HEDDLE_ERROR_INVALID);
      EXPECT_EQ(crew.complete(*context, HEDDLE_OK), HEDDLE_OK);
      // Until run() returns the step is under way, even if it was completed.
      if (fate == Fate::twice && context->host->complete(context->call, HEDDLE_ERROR_INTERNAL, "twice", 5) == HEDDLE_ERROR_INVALID)
        ++crew.refused_twice;
      return HEDDLE_OK;
    }
    const std::lock_guard lock(crew.mutex_);
    (fate == Fate::aborted || fate == Fate::held ? crew.waiting_ : crew.queue_).push_back({context, fate});
    crew.changed_.notify_all();
    return HEDDLE_OK;
  }
  static void told(Starter* self, const heddle_run_context* context, int64_t) {
    auto& crew = *static_cast<Crew*>(self);
    ++crew.aborted;
    const std::lock_guard lock(crew.mutex_);
    const auto waits = [&](const Job& job) { return job.context == context; };
    const auto found = std::find_if(crew.waiting_.begin(), crew.waiting_.end(), waits);
    if (found == crew.waiting_.end()) return;  // it is about to complete
    crew.waiting_.erase(found);
    crew.queue_.push_back({context, Fate::aborted});
    crew.changed_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const size_t chosen = random_() % queue_.size();
      const Job job = queue_[chosen];
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(chosen));
      lock.unlock();
      const heddle_run_context context = *job.context;  // a copy, as the boundary allows
      if (job.fate == Fate::aborted) {
        complete(context, HEDDLE_ERROR_CANCELLED);
      } else if (job.fate == Fate::fails) {
        complete(context, HEDDLE_ERROR_INVALID, "failed, as it was told to");
      } else {
        compute(context);
        EXPECT_EQ(complete(context, HEDDLE_OK), HEDDLE_OK);
      }
      ++completed;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::vector<Job> queue_, waiting_;
  bool ending_ = false;
  std::thread thread_;
};

// An executor that counts its working threads.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~CountingExecutor() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      ready_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  int concurrency() const noexcept override { return static_cast<int>(threads_.size()) + 1; }
  void submit(HelperTask& task) noexcept override {
    const std::lock_guard lock(mutex_);
    queue_.push_back(&task);
    ready_.notify_one();
  }
  int at_work() const { return at_work_; }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ready_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      HelperTask* const task = queue_.front();
      queue_.erase(queue_.begin());
      ++at_work_;
      lock.unlock();
      task->execute();
      lock.lock();
      --at_work_;
    }
  }
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<HelperTask*> queue_;
  std::atomic<int> at_work_{0};
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

inline Runtime runtime_on(Executor* executor, int threads = 2) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", test_plugin("started"), test_plugin("boundary")};
  options.default_plugins = false;
  options.threads = threads;
  options.executor = executor;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline ValueId started(NetBuilder& b, const std::string& name, const std::vector<ValueId>& inputs, Crew& crew, int64_t number,
                       const char* type = "Started") {
  return b.add1(type, name, inputs, {{"starter", reinterpret_cast<int64_t>(static_cast<Starter*>(&crew))}, {"number", number}}, "started");
}

inline void wait_until(const std::function<bool()>& so) {
  for (int i = 0; i < 20'000 && !so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(so());
}

inline std::vector<Context> contexts_of(Session& session, int count, const void* input) {
  std::vector<Context> contexts;
  for (int i = 0; i < count; ++i) {
    auto context = session.prepare();
    EXPECT_TRUE(context.ok()) << context.status().text();
    EXPECT_TRUE(context->bind_input(0, input).ok());
    contexts.push_back(std::move(*context));
  }
  return contexts;
}

// Four runs of a net with variables at once, twenty times: each succeeds.
inline void run_by_turns(Session& session, const void* input) {
  std::vector<Context> contexts = contexts_of(session, 4, input);
  std::atomic<int> done{0}, good{0};
  for (int round = 0; round < 20; ++round) {
    done = 0;
    for (Context& context : contexts) EXPECT_TRUE(context.run_async([&](const Status& status) { good += status.ok(), ++done; }).ok());
    wait_until([&] { return done == 4; });
  }
  EXPECT_EQ(good, 80);
}

inline std::vector<std::vector<float>> numbers(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> all;
  for (const Tensor& t : tensors) {
    const auto* data = static_cast<const float*>(t.data());
    all.emplace_back(data, data + t.shape().element_count());
  }
  return all;
}

}  // namespace heddle
