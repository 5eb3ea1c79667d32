// The view of plans and runs that programs get through heddle/plan_info.h and heddle/observe.h, in runs that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "load/save.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// data [rows, 64], indices [rows] -> Relu(data) -> Gather: fails if an index is out of range.
Net gather_net(int64_t rows) {
  NetBuilder b("gather");
  const ValueId data = b.input("data", DType::f32, Shape{rows, 64});
  const ValueId indices = b.input("indices", DType::i64, Shape{rows});
  b.output(b.add1("Relu", "last", {b.add1("Gather", "gather", {b.add1("Relu", "first", {data}), indices})}));
  return b.finish();
}

TEST(Profile, OfAFailedRunGoesAsFarAsTheRunCame) {
  constexpr int64_t rows = 4096;
  Session session = open(runtime(2), gather_net(rows));
  Internals::of(session).scheduler.mode = ScheduleMode::parallel;
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const std::vector<float> data(rows * 64, 1.0F);
  std::vector<int64_t> indices(rows, 0);
  ASSERT_TRUE(context->bind_input(0, data.data()).ok());
  ASSERT_TRUE(context->bind_input(1, indices.data()).ok());
  Profile profile;
  RunOptions options;
  options.profile = &profile;
  ASSERT_TRUE(context->run(options).ok());
  ASSERT_EQ(profile.steps.size(), context->plan()->steps.size());
  for (const StepTime& time : profile.steps) EXPECT_TRUE(time.ran());

  indices[rows - 1] = rows;
  ASSERT_FALSE(context->run(options).ok());
  size_t ran = 0;
  for (const StepTime& time : profile.steps) {
    ran += time.ran() ? 1 : 0;
    EXPECT_GE(time.begin_ns, 0);
    EXPECT_GE(time.end_ns, time.begin_ns);
    EXPECT_LT(time.end_ns, int64_t{60} * 1'000'000'000);
  }
  EXPECT_GE(ran, 1u);
  EXPECT_FALSE(profile.steps.back().ran());
}

// Every tile of a step of several is in one range, within the time of its step; a second run allocates nothing for them.
TEST(Profile, HasTheRangesOfTilesOfEachThread) {
  constexpr int64_t rows = 1 << 14;
  Session session = open(runtime(3), gather_net(rows));
  Internals::of(session).scheduler.mode = ScheduleMode::parallel;
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const std::vector<float> data(rows * 64, 1.0F);
  const std::vector<int64_t> indices(rows, 0);
  ASSERT_TRUE(context->bind_input(0, data.data()).ok());
  ASSERT_TRUE(context->bind_input(1, indices.data()).ok());
  Profile profile;
  RunOptions options;
  options.profile = &profile;
  const TileTime* kept = nullptr;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(context->run(options).ok());
    EXPECT_TRUE(run == 0 || profile.tiles.data() == kept) << "memory of the first run is used again";
    kept = profile.tiles.data();
    EXPECT_EQ(profile.tiles_left_out, 0);
    const auto& steps = context->plan()->steps;
    std::vector<std::vector<char>> done(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) done[i].resize(static_cast<size_t>(steps[i].tiles));
    for (const TileTime& range : profile.tiles) {
      ASSERT_LT(range.step, steps.size());
      const StepTime& step = profile.steps[range.step];
      EXPECT_LE(step.begin_ns, range.begin_ns);
      EXPECT_LE(range.begin_ns, range.end_ns);
      EXPECT_LE(range.end_ns, step.end_ns);
      EXPECT_NE(step.workers >> range.worker & 1, 0U);
      for (int64_t tile = range.first_tile; tile < range.first_tile + range.tiles; ++tile) ++done[range.step][static_cast<size_t>(tile)];
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t ranged = std::count(done[i].begin(), done[i].end(), 1);
      EXPECT_EQ(ranged, steps[i].tiles > 1 ? steps[i].tiles : 0) << steps[i].name;
    }
  }
}

TEST(Profile, OfARunThatGetsNoTurnInSharedMemoryIsEmpty) {
  const Runtime r = runtime(1);
  Session session = open(r, convolution_net());
  const SharedMemory memory;
  auto context = session.prepare_on(memory);
  ASSERT_TRUE(context.ok()) << context.status().text();
  const auto x = blob(Shape{1, 8, 14, 14}, -1, 0.01F);
  ASSERT_TRUE(context->bind_input(0, x->data).ok());
  Profile profile;
  RunOptions options;
  options.profile = &profile;
  ASSERT_TRUE(context->run(options).ok());
  EXPECT_TRUE(profile.steps.front().ran());
  FairSharedMutex::Hold turn;
  ASSERT_TRUE(enter_shared(Internals::of(r), *Internals::workspace(memory), turn).ok());
  EXPECT_EQ(context->run(options).code(), Code::busy);
  for (const StepTime& time : profile.steps) EXPECT_FALSE(time.ran());
}

// y = softmax(x), and two updates after it: a += x, b += x.
constexpr const char* updating_net = R"({"heddle": 1, "name": "updating", "inputs": ["x"], "outputs": ["y"],
  "operator_sets": [{"domain": "", "version": 17}, {"domain": "heddle", "version": 1}],
  "variables": [{"name": "a", "dtype": "f32", "dims": [2], "data": [0, 0]}, {"name": "b", "dtype": "f32", "dims": [2], "data": [0, 0]}],
  "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}, {"name": "y"},
    {"name": "a", "kind": "variable", "variable": "a", "version": 0}, {"name": "b", "kind": "variable", "variable": "b", "version": 0},
    {"name": "a@1", "kind": "variable", "variable": "a", "version": 1}, {"name": "b@1", "kind": "variable", "variable": "b", "version": 1}],
  "nodes": [{"name": "y", "type": "Softmax", "inputs": ["x"], "outputs": ["y"]},
    {"name": "ua", "type": "AccumulateAdd", "domain": "heddle", "inputs": ["a", "x"], "outputs": ["a@1"]},
    {"name": "ub", "type": "AccumulateAdd", "domain": "heddle", "inputs": ["b", "x"], "outputs": ["b@1"]}]})";

Session open_updating() {
  auto session = runtime(2).open_bytes(updating_net, std::strlen(updating_net), "");
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

float first_of(Session& session, const char* variable) {
  const auto value = session.read_variable(variable);
  EXPECT_TRUE(value.ok()) << value.status().text();
  return value.ok() ? *static_cast<const float*>(value->data()) : -1;
}

// The observer fails, or throws, at each step in turn.
void expect_all_or_nothing(const std::function<Status()>& mishap, Code code) {
  const float x[] = {1, 2};
  for (size_t at = 0; at < 3; ++at) {
    Session session = open_updating();
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x).ok());
    size_t seen = 0;
    const StepObserver observer = [&](StepView& view) { return ++seen, view.step() == at ? mishap() : Status(); };
    RunOptions options;
    options.observer = &observer;
    EXPECT_EQ(context->run(options).code(), code);
    EXPECT_EQ(seen, at + 1) << "called again";
    const float updated = context->plan()->steps[at].tail ? 1 : 0;
    EXPECT_EQ(first_of(session, "a"), updated) << at;
    EXPECT_EQ(first_of(session, "b"), updated) << at;
    const Status next = context->run();
    EXPECT_TRUE(next.ok()) << next.text();
  }
}

TEST(Observer, ThatFailsLeavesUpdatesAllMadeOrNone) {
  expect_all_or_nothing([] { return Status(Code::invalid_argument, "seen enough"); }, Code::invalid_argument);
}

TEST(Observer, ThatThrowsIsAnError) {
  expect_all_or_nothing([]() -> Status { throw std::runtime_error("seen enough"); }, Code::internal);
}

TEST(Observer, ThatIsEmptyIsNone) {
  const float x[] = {1, 2};
  Session session = open_updating();
  const StepObserver none;
  RunOptions options;
  options.observer = &none;
  EXPECT_TRUE(session.run({{DType::f32, Shape{2}, const_cast<float*>(x)}}, options).ok());
}

TEST(Observer, AndProfileServeBothWaysToRunASession) {
  float x[] = {1, 2}, y[2];
  Session session = open_updating();
  const TensorView input{DType::f32, Shape{2}, x};
  TensorView output{DType::f32, Shape{2}, y};
  size_t seen = 0;
  const StepObserver observer = [&](StepView&) { return ++seen, Status(); };
  Profile in_place, owned;
  RunOptions options;
  options.observer = &observer;
  options.profile = &in_place;
  ASSERT_TRUE(session.run(&input, 1, &output, 1, options).ok());
  EXPECT_EQ(seen, 3u);
  options.profile = &owned;
  ASSERT_TRUE(session.run({input}, options).ok());
  EXPECT_EQ(seen, 6u);
  for (const Profile* profile : {&in_place, &owned}) {
    ASSERT_EQ(profile->steps.size(), 3u);
    EXPECT_TRUE(profile->steps.back().ran());
  }
}

TEST(SessionInput, OfAnImpossibleSizeIsAnErrorBeforeItIsRead) {
  NetBuilder b("reshape");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  const ValueId shape = b.input("shape", DeclaredType{DType::i64, true, {Dim::named("N")}});
  b.output(b.add1("Reshape", "y", {x, shape}));
  Session session = open(runtime(), b.finish());
  const std::vector<float> data(6);
  const int64_t wanted[] = {3, 2};
  for (const Shape& size : {Shape{INT64_MAX, INT64_MAX}, Shape{int64_t{1} << 62}, Shape{int64_t{1} << 40}}) {
    const std::vector<TensorView> inputs = {view(data.data(), DType::f32, Shape{2, 3}), view(wanted, DType::i64, size)};
    EXPECT_EQ(session.prepare(inputs).status().code(), Code::limit_exceeded);
    EXPECT_FALSE(session.run(inputs).ok());
    ASSERT_EQ(session.check(inputs).size(), 1u);
    EXPECT_EQ(session.check(inputs)[0].code, Code::limit_exceeded);
  }
  EXPECT_EQ(session.prepare({view(data.data(), DType::f32, Shape{INT64_MAX, 3}), view(wanted, DType::i64, Shape{2})}).status().code(),
            Code::limit_exceeded);
  EXPECT_TRUE(session.run({view(data.data(), DType::f32, Shape{2, 3}), view(wanted, DType::i64, Shape{2})}).ok());
}

TEST(MemoryByOwner, AnOutputOutsideTheArenaHoldsNoBuffer) {
  PlanInfo plan;
  plan.memory.emplace_back().device = "cpu";
  for (const char* name : {"a", "b", "out"}) {
    PlanInfo::Value value;
    value.name = name;
    value.bytes = 64;
    value.place = PlanInfo::Place::arena;
    plan.values.push_back(value);
  }
  plan.values[1].buffer = 1;
  plan.values[2].place = PlanInfo::Place::constant;  // number 0 of the constants, not buffer 0 of the arena
  for (size_t i = 0; i < 3; ++i) {
    PlanInfo::Step step;
    step.name = "step" + std::to_string(i);
    step.device = "cpu:0";
    if (i > 0) step.inputs.push_back({i - 1, ""});
    step.outputs.push_back({i, ""});
    plan.steps.push_back(step);
  }
  plan.outputs = {2};
  const std::vector<MemoryOwner> owners = memory_by_owner(plan);
  ASSERT_EQ(owners.size(), 2u);
  EXPECT_EQ(owners[0].value, "a");
  EXPECT_EQ(owners[0].last_step, 1u);
}

TEST(SessionFiles, NameTheFolderThatWeightsCameFrom) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "heddle_session_files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  SaveOptions save;
  save.inline_bytes = 0;
  const std::string path = (folder / "net.heddle").string();
  ASSERT_TRUE(save_net(convolution_net(), path, save).ok());
  const Runtime r = runtime();
  auto from_file = r.open(path);
  ASSERT_TRUE(from_file.ok()) << from_file.status().text();
  std::vector<std::string> files = from_file->files();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0], path);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto from_memory = r.open_bytes(bytes.data(), bytes.size(), folder.string());
  ASSERT_TRUE(from_memory.ok()) << from_memory.status().text();
  EXPECT_EQ(from_memory->files(), std::vector<std::string>{files[1]});
  EXPECT_TRUE(std::filesystem::exists(files[1]));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
