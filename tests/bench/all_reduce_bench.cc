// Measures an all-reduce between processes against Gloo's own, in turns.
//
//   heddle_all_reduce_bench [RANKS] [ROUNDS]
//
// RANKS (2) processes run a net with one AllReduce of f32, and call gloo::allreduce over connections of their own, one after the other,
// ROUNDS (200; a quarter of them for 16 MB) times for each size. Rank 0 prints the medians, and that of the ratios of neighbours.
#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "must.h"
#include "net/net.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// A session of this rank whose net sums `elements` numbers.
struct Ours {
  Ours(const Runtime& runtime, const std::string& folder, int rank, int ranks, int64_t elements)
      : session(opened(runtime, folder, rank, ranks, elements)), context(must(session.prepare())), x(static_cast<size_t>(elements), 1.0F) {
    must(context.bind_input(0, x.data()));
  }
  static Session opened(const Runtime& runtime, const std::string& folder, int rank, int ranks, int64_t elements) {
    NetBuilder b("sum");
    b.output(b.add1("AllReduce", "sum", {b.input("x", DType::f32, {elements})}, {{"communicator", std::string("world")}}, "heddle"));
    SessionOptions options;
    CommunicatorOptions& communicator = options.communicators.emplace_back();
    communicator.rank = rank;
    communicator.size = ranks;
    communicator.rendezvous = fmt::format("file:{}/ours-{}", folder, elements);
    return must(runtime.open(b.finish(), options));
  }
  Session session;
  Context context;
  std::vector<float> x;
};

// Gloo, as its own users call it.
struct Plain {
  Plain(const std::string& folder, int rank, int ranks, int64_t elements) : x(static_cast<size_t>(elements), 1.0F), y(x.size()) {
    const std::string place = fmt::format("{}/plain-{}", folder, elements);
    std::filesystem::create_directories(place);
    gloo::rendezvous::FileStore store(place);
    device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
  }
  void run() {
    gloo::AllreduceOptions options(context);
    options.setInput(x.data(), x.size());
    options.setOutput(y.data(), y.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }
  std::vector<float> x, y;
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::rendezvous::Context> context;
};

void run_rank(const std::string& folder, int rank, int ranks, int rounds) {
  RuntimeOptions with;
  with.default_plugins = false;
  with.threads = 1;
  with.plugins = {HEDDLE_CPU_PLUGIN, HEDDLE_GLOO_PLUGIN};
  const Runtime runtime = must(Runtime::create(with));
  for (const int64_t bytes : {int64_t{4} << 10, int64_t{1} << 20, int64_t{16} << 20}) {
    Ours ours(runtime, folder, rank, ranks, bytes / 4);
    Plain plain(folder, rank, ranks, bytes / 4);
    std::vector<double> of_ours, of_plain, ratios;
    for (int round = -3, count = bytes > (4 << 20) ? rounds / 4 : rounds; round < count; ++round) {
      Clock::time_point start = Clock::now();
      must(ours.context.run());
      const double first = milliseconds_since(start);
      start = Clock::now();
      plain.run();
      const double second = milliseconds_since(start);
      if (round < 0) continue;
      of_ours.push_back(first);
      of_plain.push_back(second);
      ratios.push_back(first / second);
    }
    if (plain.y.back() != static_cast<float>(ranks)) std::abort();
    if (rank == 0)
      fmt::print("{:>9} bytes on {} ranks: {:.3f} ms, gloo::allreduce {:.3f} ms, ratio {:.2f}\n", bytes, ranks, median(of_ours),
                 median(of_plain), median(ratios));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  std::string folder = (std::filesystem::temp_directory_path() / "heddle-all-reduce-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return 1;
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      heddle::run_rank(folder, rank, ranks, rounds);
      return 0;
    }
    children.push_back(child);
  }
  heddle::run_rank(folder, 0, ranks, rounds);
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed += status != 0;
  }
  std::filesystem::remove_all(folder);
  return failed;
}
