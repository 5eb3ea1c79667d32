// server NET.json: a program with threads of its own that serves requests. One session, shared; one context a thread; requests of any
// order.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heddle/session.h"
#include "pictures.h"

namespace {

// The queue of requests; each is the place of a bar to be drawn and found again.
class Requests {
 public:
  void add(int64_t left) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(left);
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // False: the queue is closed, and nothing waits any more.
  bool take(int64_t* left) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return false;
    *left = waiting_.front();
    waiting_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int64_t> waiting_;
  bool closed_ = false;
};

// The work of one thread: it has a context of its own and its pictures in its own memory. Returns an empty text if all went well.
std::string serve(heddle::Session session, Requests& requests, int* answered) {
  std::vector<float> picture(height * width), edges(height * width);
  const heddle::TensorView type{heddle::DType::f32, {1, 1, height, width}, picture.data()};
  auto context = session.prepare({type});
  if (!context.ok()) return context.status().text();
  heddle::Status status = context->bind_input(0, picture.data());
  if (status.ok()) status = context->bind_output(0, edges.data());
  for (int64_t left = 0; status.ok() && requests.take(&left);) {
    draw_bar(left, picture.data());
    status = context->run();
    if (!status.ok()) break;
    if (!edges_are_right(left, edges.data())) return "a request was answered with wrong edges";
    ++*answered;
  }
  return status.ok() ? std::string() : status.text();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: server NET.json\n"), 2;
  auto runtime = heddle::Runtime::create({});
  if (!runtime.ok()) return std::fprintf(stderr, "%s\n", runtime.status().text().c_str()), 1;
  auto session = runtime->open(argv[1]);
  if (!session.ok()) return std::fprintf(stderr, "%s\n", session.status().text().c_str()), 1;

  constexpr size_t threads = 4;
  constexpr int total = 200;
  Requests requests;
  int answered[threads] = {};
  std::string failures[threads];
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i) workers.emplace_back([&, i] { failures[i] = serve(*session, requests, &answered[i]); });
  for (int i = 0; i < total; ++i) requests.add(2 + i % (width - 16));
  requests.close();
  for (std::thread& worker : workers) worker.join();
  int sum = 0;
  for (size_t i = 0; i < threads; ++i) {
    if (!failures[i].empty()) return std::fprintf(stderr, "%s\n", failures[i].c_str()), 1;
    sum += answered[i];
  }
  std::printf("%d requests answered by %zu threads\n", sum, threads);
  return sum == total ? 0 : 1;
}
