#include "commands/bench_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/text/text.h"
#include "base/threads/clock.h"
#include "heddle/training.h"
#include "net/net.h"
#include "process/interrupt.h"
#include "process/latency.h"

namespace heddle::tool {
namespace {

constexpr const char* world = "bench";

// Adds one collective of a participant.
ValueId add_collective(NetBuilder& b, const std::string& type, const std::string& name, ValueId x, int64_t members) {
  std::vector<Attribute> attributes = {{"communicator", std::string(world)}};
  if (type == "Broadcast" || type == "Reduce") attributes.push_back({"root", int64_t{0}});
  if (type == "AllGather" || type == "ReduceScatter" || type == "AllToAll") attributes.push_back({"size", members});
  return b.add1(type, name, {x}, std::move(attributes), "heddle");
}

// Times the runs of a context; the first ones are not counted.
Status time_runs(const CollectivesBench& bench, Context& context, std::vector<double>* latencies_ns) {
  for (int i = 0; i < bench.warmup + bench.repeat; ++i) {
    const uint64_t begin = ticks();
    HEDDLE_CHECK(context.run());
    if (i >= bench.warmup) latencies_ns->push_back(ticks_to_ns(ticks() - begin));
  }
  return {};
}

// One session of participants `first` to `last`, on devices or on the host.
Status run_session(const Runtime& runtime, const CollectivesBench& bench, const std::string& type, int64_t elements, int members, int rank,
                   const std::string& meeting, std::vector<double>* latencies_ns) {
  const bool on_devices = rank < 0;
  NetBuilder b(world);
  SessionOptions options;
  options.copies = Copies::automatic;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.name = world;
  for (int p = 0; p < (on_devices ? members : 1); ++p) {
    const ValueId x = b.input(fmt::format("x{}", p), DType::f32, Shape{elements});
    const ValueId y = add_collective(b, type, fmt::format("y{}", p), x, members);
    if (on_devices) {
      communicator.devices.push_back(fmt::format("{}:{}", bench.device, p));
      b.net()[b.net()[y].producer].device = communicator.devices.back();
    }
    b.output(y);
  }
  if (!on_devices) {
    communicator.rank = rank;
    communicator.size = members;
    communicator.rendezvous = "local:" + meeting;
  }
  std::vector<Net> all;
  all.push_back(b.finish());
  HEDDLE_TRY(const Nets nets, Nets::of(std::move(all)));
  HEDDLE_TRY(Session session, runtime.open(nets, options));
  HEDDLE_TRY(Context context, session.prepare());
  const std::vector<float> numbers(static_cast<size_t>(elements), 1);
  for (size_t i = 0; i < session.inputs().size(); ++i) HEDDLE_CHECK(context.bind_input(i, numbers.data()));
  std::optional<InterruptibleRun> interruptible;  // there is one in the process: a rank that ends, ends all
  if (rank <= 0) interruptible.emplace(context);
  return time_runs(bench, context, latencies_ns);
}

// Latencies of the first rank, or of all devices together.
Result<std::vector<double>> measure(const Runtime& runtime, const CollectivesBench& bench, const std::string& type, int64_t elements,
                                    int members) {
  std::vector<std::vector<double>> latencies(static_cast<size_t>(members));
  if (!bench.device.empty() && bench.device != "cpu") {
    HEDDLE_CHECK(run_session(runtime, bench, type, elements, members, -1, "", &latencies[0]));
    return latencies[0];
  }
  std::vector<Status> ends(latencies.size());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < members; ++rank)
    ranks.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      ends[at] =
          run_session(runtime, bench, type, elements, members, rank, fmt::format("{}-{}-{}", type, elements, members), &latencies[at]);
    });
  for (std::thread& rank : ranks) rank.join();
  for (Status& end : ends) HEDDLE_CHECK(std::move(end));
  return latencies[0];
}

}  // namespace

Result<Json> bench_collectives(const CollectivesBench& bench, Report& report) {
  HEDDLE_TRY(const Runtime runtime, make_runtime(report.common));
  Json all = Json::array();
  for (const char* const type : {"AllReduce", "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllToAll", "Barrier"})
    for (const int members : bench.members)
      for (const std::string& text : bench.sizes) {
        int64_t bytes = 0;
        if (!parse_size(text, &bytes))
          return Status(Code::invalid_argument, fmt::format("--sizes: {} is no size", quoted(text)), "write it like 4K or 16M");
        const int64_t elements = std::max<int64_t>(bytes / 4 / members, 1) * members;
        HEDDLE_TRY(const std::vector<double> latencies, measure(runtime, bench, type, elements, members));
        HEDDLE_CHECK(interruption());
        all.push_back({{"operator", fmt::format("heddle::{}", type)},
                       {"members", members},
                       {"bytes", 4 * elements},
                       {"latency_ns", latency_json(latencies)}});
        report.say(fmt::format("{:13} {:2} members {:>10}: {}", type, members, human_bytes(4 * elements), latency_text(latencies)));
      }
  return all;
}

}  // namespace heddle::tool
