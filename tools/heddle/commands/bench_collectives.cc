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

// Times the runs of a context; the first ones are not counted. `times`: how many collectives each has.
Status time_runs(const CollectivesBench& bench, int times, Context& context, std::vector<double>* latencies_ns) {
  for (int i = 0; i < bench.warmup + bench.repeat; ++i) {
    const uint64_t begin = ticks();
    HEDDLE_CHECK(context.run());
    if (i >= bench.warmup) latencies_ns->push_back(ticks_to_ns(ticks() - begin) / times);
  }
  return {};
}

// A collective of tensors of f32, which is measured.
struct BenchedCollective {
  std::string type;
  int64_t elements;
  int members;
};
struct Found {
  std::vector<double> latencies_ns;
  std::string kernel;
};

std::string kernel_of(const PlanInfo& plan, const std::string& type) {
  for (const PlanInfo::Step& step : plan.steps)
    if (step.type == type) return step.kernel;
  return {};
}

// One session of a rank, on the host.
Status run_rank(const Runtime& runtime, const CollectivesBench& bench, const BenchedCollective& m, int rank, const std::string& meeting,
                Found* found) {
  NetBuilder b(world);
  SessionOptions options;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.name = world;
  communicator.rank = rank;
  communicator.size = m.members;
  communicator.rendezvous = "local:" + meeting;
  b.output(add_collective(b, m.type, "y", b.input("x", DType::f32, Shape{m.elements}), m.members));
  std::vector<Net> all;
  all.push_back(b.finish());
  HEDDLE_TRY(const Nets nets, Nets::of(std::move(all)));
  HEDDLE_TRY(Session session, runtime.open(nets, options));
  HEDDLE_TRY(Context context, session.prepare());
  const std::vector<float> numbers(static_cast<size_t>(m.elements), 1);
  HEDDLE_CHECK(context.bind_input(0, numbers.data()));
  std::optional<InterruptibleRun> interruptible;  // there is one in the process: a rank that ends, ends all
  if (rank == 0) interruptible.emplace(context);
  found->kernel = kernel_of(*context.plan(), m.type);
  return time_runs(bench, 1, context, &found->latencies_ns);
}

// One session of devices. Its tensors are variables there, and of the results one element is fetched: copies of the host are not measured.
// A run has several collectives, whose launches overlap with the work before them.
Status run_devices(const Runtime& runtime, const CollectivesBench& bench, const BenchedCollective& m, Found* found) {
  constexpr int times = 8;
  NetBuilder b(world);
  SessionOptions options;
  options.copies = Copies::automatic;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.name = world;
  const std::vector<float> numbers(static_cast<size_t>(m.elements), 1);
  const int64_t zero = 0, one = 1;
  const ValueId begin = b.constant("begin", Blob::copy_of(DType::i64, Shape{1}, &zero));
  const ValueId end = b.constant("end", Blob::copy_of(DType::i64, Shape{1}, &one));
  for (int p = 0; p < m.members; ++p) {
    communicator.devices.push_back(fmt::format("{}:{}", bench.device, p));
    const size_t first = b.net().nodes.size();
    const ValueId x = b.variable(fmt::format("x{}", p), Blob::copy_of(DType::f32, Shape{m.elements}, numbers.data()), false);
    for (int i = 0; i < times; ++i) {
      const ValueId y = add_collective(b, m.type, fmt::format("y{}_{}", p, i), x, m.members);
      b.output(b.add1("Slice", fmt::format("first{}_{}", p, i), {y, begin, end}));
    }
    for (size_t n = first; n < b.net().nodes.size(); ++n) b.net().nodes[n].device = communicator.devices.back();
  }
  std::vector<Net> all;
  all.push_back(b.finish());
  HEDDLE_TRY(const Nets nets, Nets::of(std::move(all)));
  HEDDLE_TRY(Session session, runtime.open(nets, options));
  HEDDLE_TRY(Context context, session.prepare());
  const InterruptibleRun interruptible(context);
  found->kernel = kernel_of(*context.plan(), m.type);
  return time_runs(bench, times, context, &found->latencies_ns);
}

// Latencies of the first rank, or of all devices together.
Result<Found> measure(const Runtime& runtime, const CollectivesBench& bench, const BenchedCollective& m) {
  std::vector<Found> found(static_cast<size_t>(m.members));
  if (!bench.device.empty() && bench.device != "cpu") {
    HEDDLE_CHECK(run_devices(runtime, bench, m, &found[0]));
    return found[0];
  }
  std::vector<Status> ends(found.size());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < m.members; ++rank)
    ranks.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      ends[at] = run_rank(runtime, bench, m, rank, fmt::format("{}-{}-{}", m.type, m.elements, m.members), &found[at]);
    });
  for (std::thread& rank : ranks) rank.join();
  for (Status& end : ends) HEDDLE_CHECK(std::move(end));
  return found[0];
}

// Bytes a second, as nccl-tests define them (NVIDIA's nccl-tests, doc/PERFORMANCE.md): of the whole result of all, and of what goes over
// the slowest way, whatever the number of members.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
std::optional<Bandwidth> bandwidth(const BenchedCollective& m, double seconds) {
  if (m.type == "Barrier" || seconds <= 0) return {};
  const double n = m.members, bytes = 4.0 * static_cast<double>(m.elements) * (m.type == "AllGather" ? n : 1);
  const double ways = m.type == "AllReduce" ? 2 * (n - 1) / n : m.type == "Broadcast" || m.type == "Reduce" ? 1 : (n - 1) / n;
  return Bandwidth{bytes / seconds, bytes / seconds * ways};
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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
        const BenchedCollective collective = {type, elements, members};
        HEDDLE_TRY(const Found found, measure(runtime, bench, collective));
        HEDDLE_CHECK(interruption());
        const std::optional<Bandwidth> rate = bandwidth(collective, median_of(found.latencies_ns) / 1e9);
        all.push_back({{"operator", fmt::format("heddle::{}", type)},
                       {"members", members},
                       {"bytes", 4 * elements},
                       {"kernel", found.kernel},
                       {"algorithm_bandwidth", rate ? Json(rate->algorithm) : Json()},
                       {"bus_bandwidth", rate ? Json(rate->bus) : Json()},
                       {"latency_ns", latency_json(found.latencies_ns)}});
        report.say(fmt::format(
            "{:13} {:2} members {:>10}: {}{}, by {}", type, members, human_bytes(4 * elements), latency_text(found.latencies_ns),
            rate ? fmt::format("; {:.3g} GB/s, bus {:.3g}", rate->algorithm / 1e9, rate->bus / 1e9) : std::string(), found.kernel));
      }
  return all;
}

}  // namespace heddle::tool
