// Ranks that are processes, each with several devices: the participants of a collective are the devices of all.
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "collectives/own_devices.h"
#include "collectives/training_jobs.h"

namespace heddle {
namespace {

using namespace testing_collectives;

constexpr int ranks = 2;

class RanksOfDevices : public ::testing::TestWithParam<OwnDevices> {};
std::vector<OwnDevices> kinds_of_devices() {
  std::vector<OwnDevices> kinds = {{"sim", 2}};
  if (has_cuda()) kinds.insert(kinds.end(), {{"nccl", 1}, {"nccl", 2}});
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, RanksOfDevices, ::testing::ValuesIn(kinds_of_devices()),
                         [](const auto& info) { return info.param.kind + std::to_string(info.param.devices); });

// With many rows only those are done that go in chunks: simulated copies take their time.
std::vector<std::pair<const char*, std::vector<Attribute>>> collectives(int all, int64_t rows) {
  const int64_t last = all - 1;
  if (rows > 1) return {{"AllReduce", {}}, {"ReduceScatter", {{"size", int64_t{all}}}}};
  return {{"AllReduce", {}},
          {"AllReduce", {{"reduction", std::string("mean")}}},
          {"Reduce", {{"root", last}}},
          {"ReduceScatter", {{"size", int64_t{all}}}},
          {"AllGather", {{"size", int64_t{all}}}},
          {"AllToAll", {{"size", int64_t{all}}}},
          {"Broadcast", {{"root", last}}},
          {"Broadcast", {{"root", int64_t{0}}}},
          {"Barrier", {}}};
}

// Each collective once for few elements and once for many, of participant p: what goes in, and where it is done.
Body body_of(const std::string& type, std::vector<Attribute> attributes) {
  attributes.push_back({"communicator", world});
  return [type, attributes](NetBuilder& b, const std::vector<ValueId>& values, const std::string& suffix) {
    return b.add(type, "collective" + suffix, values, values.size(), attributes, "heddle");
  };
}
Arrays inputs_of(int all, int participant, int64_t rows) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * all * 5; ++i) values.push_back(std::sin(static_cast<float>(participant * 7919 + i)));
  return {Array::of(DType::f32, {rows * all, 5}, values),
          Array::of(DType::f32, {all}, std::vector<float>(static_cast<size_t>(all), static_cast<float>(participant)))};
}
const std::vector<int64_t> all_rows = {1, 17'000};

std::string file_of(const std::string& folder, int participant) {
  return folder + "/participant." + std::to_string(participant);
}

// A process: its devices' results, one after the other, are written to a file for each device.
TEST(RankOfDevices, DISABLED_OneRank) {
  const ThisRank here = ThisRank::find();
  const OwnDevices own = OwnDevices::find();
  std::vector<std::ofstream> files;
  for (int d = 0; d < own.devices; ++d) files.emplace_back(file_of(here.folder, here.rank * own.devices + d), std::ios::binary);
  for (const int64_t rows : all_rows) {
    for (const auto& [type, attributes] : collectives((ranks * own.devices), rows)) {
      NetBuilder b("rank");
      Arrays given;
      for (int d = 0; d < own.devices; ++d) {
        const Arrays inputs = inputs_of((ranks * own.devices), here.rank * own.devices + d, rows);
        const std::string suffix = "_" + std::to_string(d);
        const std::vector<ValueId> values = testing_collectives::detail::add_inputs(b, inputs, suffix);
        const size_t first = b.net().nodes.size();
        for (const ValueId output : body_of(type, attributes)(b, values, suffix)) b.output(output);
        for (size_t n = first; n < b.net().nodes.size(); ++n) b.net().nodes[n].device = own.device(d);
        given.insert(given.end(), inputs.begin(), inputs.end());
      }
      const SessionOptions options = options_of(here, own.all_devices());
      Arrays got;
      const Status status = testing_collectives::detail::run(runtime_with_devices(2, own.plugins()), b.finish(), options, given, 2, &got);
      ASSERT_TRUE(status.ok()) << status.text();
      const size_t outputs = got.size() / static_cast<size_t>(own.devices);
      for (size_t i = 0; i < got.size(); ++i)
        files[i / outputs].write(got[i].bytes.data(), static_cast<std::streamsize>(got[i].bytes.size()));
      EXPECT_EQ(own.kind == "nccl" ? broken_rules() : "", "");
    }
  }
}

// A process simulates its devices with one thread, so that ranks of one process would wait for each other there.
TEST_P(RanksOfDevices, HaveTheBitsOfAsManyRanks) {
  const OwnDevices own = GetParam();
  const int all = (ranks * own.devices);
  const std::string folder = folder_of("devices" + own.kind + std::to_string(own.devices));
  std::filesystem::create_directories(folder);
  std::vector<std::unique_ptr<RankProcess>> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.push_back(
        std::make_unique<RankProcess>("RankOfDevices.DISABLED_OneRank", ThisRank{rank, ranks, folder}, own.environment(rank)));
  for (const auto& process : processes) ASSERT_EQ(process->wait(), 0) << process->said();
  std::vector<std::string> expected(static_cast<size_t>(all));
  for (const int64_t rows : all_rows) {
    std::vector<Arrays> inputs;
    for (int p = 0; p < all; ++p) inputs.push_back(inputs_of(all, p, rows));
    for (const auto& [type, attributes] : collectives(all, rows)) {
      const std::vector<Outcome> found = run({all, false}, inputs, body_of(type, attributes), 1, "as many");
      for (size_t p = 0; p < inputs.size(); ++p) {
        ASSERT_TRUE(found[p].status.ok()) << found[p].status.text();
        for (const Array& output : found[p].outputs) expected[p].append(output.bytes.data(), output.bytes.size());
      }
    }
  }
  for (int p = 0; p < all; ++p) {
    std::ifstream file(file_of(folder, p), std::ios::binary);
    EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(file), {}) == expected[static_cast<size_t>(p)]) << "participant " << p;
  }
}

// A process that trains on its devices. In the second step an index of rank 1 is out of range, which only its device sees: no rank updates
// anything, and all go on.
TEST(RankOfDevices, DISABLED_OneRankThatLearns) {
  const ThisRank here = ThisRank::find();
  const OwnDevices own = OwnDevices::find();
  const Runtime runtime = runtime_with_devices(1, own.plugins());
  Job job = lookup_job(8, 3);
  TrainingOptions how = job.how;
  how.parallel.communicator = world;
  how.parallel.devices = own.all_devices();
  how.parallel.ranks = here.size;
  std::vector<Net> nets_of_job;
  nets_of_job.push_back(job.net);
  auto nets = Nets::of(std::move(nets_of_job));
  ASSERT_TRUE(nets.ok());
  const Status added = nets->add_training(runtime, job.net.name, how, job.net.name);
  ASSERT_TRUE(added.ok()) << added.text();
  const SessionOptions options = options_of(here, own.all_devices());
  auto session = runtime.open(*nets, options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto variables = [&] {
    Trained now;
    EXPECT_TRUE(testing_collectives::detail::read_variables(*session, Internals::of(*nets).nets[0], &now).ok());
    return now.variables;
  };
  const auto run_step = [&](size_t step, bool fault) {
    Arrays arrays = job.steps[step];
    if (fault && here.rank == 1) {
      auto indices = arrays[0].as<int64_t>();
      indices.back() = 5000;
      arrays[0] = Array::of(DType::i64, arrays[0].shape, indices);
    }
    std::vector<TensorView> inputs;
    for (const Array& array : arrays) inputs.push_back(rows_of_rank(array, here.rank, here.size));
    return session->run(inputs).status();
  };
  ASSERT_TRUE(run_step(0, false).ok());
  const auto before = variables();
  const Status failed = run_step(1, true);
  // A GPU tells of it at the end: by then both ranks have the index, with which a step on the host updates rows.
  const auto says = [&](const char* text) { return failed.text().find(text) != std::string::npos; };
  const bool is_told = says("index 5000 is outside");
  EXPECT_TRUE(here.rank == 1 || own.kind == "nccl" ? is_told : says("rank 1 has left communicator \"world\"")) << failed.text();
  EXPECT_EQ(variables(), before);
  Status again;
  for (int attempt = 0; attempt < 5 && !(again = run_step(1, false)).ok(); ++attempt) {
  }
  EXPECT_TRUE(again.ok()) << again.text();
  EXPECT_NE(variables(), before);
}

TEST_P(RanksOfDevices, UpdateNothingWhereADeviceOfOneSeesABadIndex) {
  const OwnDevices own = GetParam();
  const std::string folder = folder_of("bad index" + own.kind + std::to_string(own.devices));
  std::vector<std::unique_ptr<RankProcess>> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.push_back(
        std::make_unique<RankProcess>("RankOfDevices.DISABLED_OneRankThatLearns", ThisRank{rank, ranks, folder}, own.environment(rank)));
  for (const auto& process : processes) EXPECT_EQ(process->wait(), 0) << process->said();
}

}  // namespace
}  // namespace heddle
