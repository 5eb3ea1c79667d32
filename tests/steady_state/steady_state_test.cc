// After warm-up nothing of ours allocates: not the runtime, not our plugins' own code, not oneTBB. Allocations inside oneDNN's execute are
// printed apart. Everything goes through Session::run, on one thread and on two, with two shapes in turns where the net leaves one open.
//
// HEDDLE_LONG_TESTS=1 counts 1,000 runs of each net, large ones too (tools/soak.sh --steady; most of an hour).
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <regex>
#include <thread>

#include "allocations.h"
#include "device/lstm_loop.h"
#include "models/recipes.h"
#include "onnx/import.h"
#include "onnx/tensors/tensor_proto.h"
#include "schedule/helpers/helper_pinning.h"
#include "schedule/helpers/processors.h"
#include "small_nets.h"
#include "steady_calls.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_steady;
namespace fs = std::filesystem;

TEST(SteadyState, TheCounterSeesAllocations) {
  AllocationCount::start();
  void* volatile p = std::malloc(10);
  auto* volatile q = new int(1);
  const auto counts = AllocationCount::stop();
  std::free(p);
  delete q;
  int64_t total = 0;
  for (const auto& [library, count] : counts) total += count;
  EXPECT_GE(total, 2);
}

// Checks a recipe with an open batch, run with batches in turns.
void check_recipe(const std::string& name, const std::vector<int64_t>& batches, const std::vector<int>& threads, const Effort& effort) {
  auto net = models::build(name, {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  Value& input = (*net)[net->inputs[0]];
  input.type.dims[0] = Dim::named("batch");
  for (const int n : threads) {
    const Runtime r = runtime(n);
    Session session = open(r, *net);
    std::vector<Call> calls(batches.size());
    for (size_t i = 0; i < batches.size(); ++i) {
      Shape shape{batches[i]};
      for (size_t d = 1; d < input.type.dims.size(); ++d) shape.push_back(input.type.dims[d].value);
      std::byte* tokens = nullptr;  // all 0
      calls[i].add_input(input.type.dtype == DType::f32 ? blob(shape, -1.0F, 0.02F) : Blob::allocate(input.type.dtype, shape, &tokens));
      const Status status = calls[i].allocate_outputs(session);
      ASSERT_TRUE(status.ok()) << status.text();
    }
    expect_only_onednn(session, calls, effort, name + ", " + std::to_string(n) + " threads");
  }
}

// Its run takes a turn with the communicator, and finds the object that is there.
TEST(SteadyState, RunsWithACommunicator) {
  RuntimeOptions options;
  options.threads = 1;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/test/peers.so"};
  options.default_plugins = false;
  const auto r = Runtime::create(options);
  ASSERT_TRUE(r.ok()) << r.status().text();
  NetBuilder b("sums");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("Sum", "sum", {x}, {{"communicator", std::string("world with a name that needs memory")}}, "peers"));
  SessionOptions alone;
  alone.communicators = {CommunicatorOptions()};
  Session session = open(*r, b.finish(), alone);
  std::vector<Call> calls(1);
  calls[0].add_input(blob(Shape{4}, -1.0F, 0.02F));
  const Status status = calls[0].allocate_outputs(session);
  ASSERT_TRUE(status.ok()) << status.text();
  expect_only_onednn(session, calls, {}, "a net with a communicator");
}

TEST(SteadyState, SmallRecipes) {
  for (const char* name : {"lenet", "mlp"}) check_recipe(name, {1, 3}, {1, 2}, {});
}

// Returns oneDNN's allocations in one run of the recipe on one thread, as the README's host runs it. Any others are a failure. Sets
// *is_version_2 by the name of the library that made them.
int64_t onednn_allocations_a_run(const std::string& recipe, bool* is_version_2) {
  auto net = models::build(recipe, {});
  EXPECT_TRUE(net.ok()) << net.status().text();
  if (!net.ok()) return -1;
  const DeclaredType& type = (*net)[net->inputs[0]].type;
  Shape shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.value);
  const auto x = blob(shape, -1.0F, 0.02F);
  const Runtime r = runtime(1);
  Session session = open(r, *net);
  auto context = session.prepare();
  EXPECT_TRUE(context.ok() && context->bind_input(0, x->data).ok());
  if (!context.ok()) return -1;
  constexpr int runs = 100;
  bool ok = true;
  for (int i = 0; i < 30; ++i) ok = context->run().ok() && ok;
  AllocationCount::start();
  for (int i = 0; i < runs; ++i) ok = context->run().ok() && ok;
  const auto counts = AllocationCount::stop();
  EXPECT_TRUE(ok) << recipe;
  int64_t total = 0;
  for (const auto& [library, count] : counts) {
    EXPECT_TRUE(is_onednn(library)) << recipe << ": " << count << " allocations by " << library;
    total += count;
    *is_version_2 = *is_version_2 || library.find("libdnnl.so.2") != std::string::npos;
  }
  EXPECT_EQ(total % runs, 0) << recipe << ": runs differ";
  std::printf("%s: %lld allocations a run inside oneDNN, none elsewhere\n", recipe.c_str(), static_cast<long long>(total / runs));
  return total / runs;
}

TEST(SteadyState, OneDnnAllocatesWhatTheDocumentationSays) {
  bool is_version_2 = false;
  const int64_t lenet = onednn_allocations_a_run("lenet", &is_version_2), mlp = onednn_allocations_a_run("mlp", &is_version_2);
  if (!is_version_2) GTEST_SKIP() << "the documentation's figures are those of oneDNN 2";
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "the documentation's figures are those of oneDNN's AVX-512 kernels";
  const std::regex figures(R"((\d+) a run for lenet, (\d+) for mlp)");
  for (const char* file : {"README.md", "docs/embedding.md"}) {
    std::ifstream stream(fs::path(HEDDLE_SOURCE_DIR) / file);
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    std::smatch stated;
    ASSERT_TRUE(std::regex_search(text, stated, figures)) << file << " does not say what oneDNN allocates";
    EXPECT_EQ(std::stoll(stated[1].str()), lenet) << file << ", lenet";
    EXPECT_EQ(std::stoll(stated[2].str()), mlp) << file << ", mlp";
  }
}

TEST(SteadyState, Resnet50) {
  if (long_tests) return check_recipe("resnet50", {1, 2}, {1, 2}, {});
  check_recipe("resnet50", {1}, {1}, {.warm_up = 2, .runs = 2, .at_least = 2});
  // On two threads warm-up continues until the scheduler has measured, tried and decided.
  check_recipe("resnet50", {1}, {2}, {.warm_up = 12, .runs = 2, .at_least = 2});
}

TEST(SteadyState, Encoder) {
  if (long_tests) return check_recipe("encoder", {1, 2}, {1, 2}, {});
  check_recipe("encoder", {1}, {2}, {.warm_up = 10, .runs = 2, .at_least = 2});
}

// Checks every model that PyTorch exported. On two threads the parallel engine runs them, however small they are.
TEST(SteadyState, PyTorchModels) {
  const fs::path data = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const Effort effort = long_tests ? Effort{} : Effort{.warm_up = 20, .runs = 1000, .at_least = 20, .patience_ms = 4};
  const Runtime runtimes[] = {runtime(1), runtime(2)};
  int models = 0;
  for (const char* group : {"pytorch-converted", "pytorch-operator"})
    for (const auto& folder : fs::directory_iterator(data / group)) {
      SCOPED_TRACE(folder.path().string());
      const auto net = import_onnx(folder.path() / "model.onnx");
      ASSERT_TRUE(net.ok()) << net.status().text();
      for (const Runtime& r : runtimes) {
        Session session = open(r, *net);
        if (r.threads() > 1) Internals::of(session).scheduler.mode = ScheduleMode::parallel;
        std::vector<Call> calls(1);
        for (size_t i = 0; i < net->inputs.size(); ++i) {
          auto input = read_tensor_proto(folder.path() / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"));
          ASSERT_TRUE(input.ok()) << input.status().text();
          calls[0].add_input(input->blob);
        }
        const Status status = calls[0].allocate_outputs(session);
        ASSERT_TRUE(status.ok()) << status.text();
        expect_only_onednn(session, calls, effort, folder.path().filename().string() + ", " + std::to_string(r.threads()) + " threads",
                           long_tests);
      }
      ++models;
    }
  std::printf("%d models on 1 and 2 threads\n", models);
  EXPECT_EQ(models, 82 + 35);
}

// The nets below take x [6, 4] through a subnet, or through operators after values whose extents only the run knows.
const Shape small = {6, 4};
ValueId input_of(NetBuilder& b, const char* name) {
  return b.input(name, DType::f32, small);
}
ValueId counted(NetBuilder& b) {
  const int64_t three = 3;
  return b.constant("three", Blob::copy_of(DType::i64, Shape{}, &three));
}
void begin_trip(NetBuilder& body) {
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
}
std::shared_ptr<const Net> softmax_or_neg(bool softmax) {
  NetBuilder b(softmax ? "softmax" : "neg");
  b.output(b.add1(softmax ? "Softmax" : "Neg", "y", {b.input("x", DeclaredType())}));
  return subnet(b);
}
ValueId is_positive(NetBuilder& b, ValueId x) {
  return b.add1("Less", "less", {b.constant_float("zero", 0), b.add1("ReduceMax", "max", {x}, {{"keepdims", int64_t{0}}})});
}
ValueId either(NetBuilder& b, ValueId condition, ValueId x) {
  return b.add1("If", "if", {condition, x}, {{"then_branch", softmax_or_neg(true)}, {"else_branch", softmax_or_neg(false)}});
}
// Returns the rows whose first element is not 0.
ValueId some_rows(NetBuilder& b, ValueId x) {
  const ValueId first =
      b.add1("Gather", "first", {x, b.constant("column", Blob::copy_of(DType::i64, Shape{}, "\0\0\0\0\0\0\0"))}, {{"axis", int64_t{1}}});
  return b.add1("Gather", "rows", {x, b.add1("Squeeze", "places", {b.add1("NonZero", "found", {first}), b.constant_ints("only", {0})})});
}
void branches(NetBuilder& b, ValueId x) {
  b.output(either(b, is_positive(b, x), x));
}
void late_branches(NetBuilder& b, ValueId x) {
  b.output(either(b, is_positive(b, x), some_rows(b, x)));
}
void late_products(NetBuilder& b, ValueId x) {
  b.output(b.add1("Softmax", "softmax", {b.add1("MatMul", "product", {some_rows(b, x), b.constant("w", blob(Shape{4, 32}, 0, 0.01F))})}));
}
void loops(NetBuilder& b, ValueId x) {
  NetBuilder body("body");
  begin_trip(body);
  body.output(body.add1("Tanh", "next", {input_of(body, "x")}));
  body.output(body.add1("Neg", "slice", {body.input("rows", DType::f32, small)}));
  for (const ValueId out : b.add("Loop", "loop", {counted(b), yes(b), x, x}, 2, {{"body", subnet(body)}, {"captured", int64_t{1}}}))
    b.output(out);
}
// Neither the carried value nor the stack has planned memory.
void growing_loops(NetBuilder& b, ValueId x) {
  NetBuilder body("body");
  begin_trip(body);
  const ValueId grown = body.input("grown", DeclaredType{DType::f32, true, {Dim(), Dim::of(4)}}), row = input_of(body, "row");
  body.output(body.add1("Concat", "more", {grown, row}, {{"axis", int64_t{0}}}));
  body.output(some_rows(body, row));
  for (const ValueId out : b.add("Loop", "loop", {counted(b), yes(b), x, x}, 2, {{"body", subnet(body)}, {"captured", int64_t{1}}}))
    b.output(out);
}
void scans(NetBuilder& b, ValueId x, bool found) {
  NetBuilder body("body");
  const ValueId state = body.input("state", DType::f32, Shape{6}), column = body.input("column", DType::f32, Shape{6});
  body.output(body.add1("Add", "next", {state, column}));
  body.output(body.add1(found ? "NonZero" : "Neg", "slice", {column}));
  const std::vector<int64_t> second = {1};
  for (const ValueId out :
       b.add("Scan", "scan", {b.constant("begin", blob(Shape{6}, 0, 1)), x}, 2,
             {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"scan_input_axes", second}, {"scan_output_axes", second}}))
    b.output(out);
}

// Two contents of the same extents in turns: these extents were seen before.
TEST(SteadyState, SubnetsAndLateSteps) {
  const std::pair<const char*, void (*)(NetBuilder&, ValueId)> nets[] = {
      {"If", branches},
      {"If with a late input", late_branches},
      {"late MatMul", late_products},
      {"Loop", loops},
      {"Loop that grows", growing_loops},
      {"Scan", [](NetBuilder& b, ValueId x) { scans(b, x, false); }},
      {"Scan that finds its extents", [](NetBuilder& b, ValueId x) { scans(b, x, true); }}};
  for (const auto& [name, make] : nets)
    for (const int threads : {1, 2}) {
      NetBuilder b("net");
      make(b, input_of(b, "x"));
      const Runtime r = runtime(threads);
      Session session = open(r, b.finish());
      if (threads > 1) Internals::of(session).scheduler.mode = ScheduleMode::parallel;
      auto context = session.prepare();
      ASSERT_TRUE(context.ok()) << name << ": " << context.status().text();
      const std::shared_ptr<const Blob> contents[] = {blob(small, 1, 0.5F), blob(small, 2, 0.25F)};
      bool ok = true;
      for (int i = 0; i < 530; ++i) {
        if (i == 30) AllocationCount::start();
        ok = context->bind_input(0, contents[i % 2]->data).ok() && context->run().ok() && ok;
      }
      const auto counts = AllocationCount::stop();
      ASSERT_TRUE(ok) << name << ": " << context->run().text();
      for (const auto& [library, count] : counts)
        EXPECT_TRUE(is_onednn(library)) << name << ", " << threads << " threads: " << count << " allocations by " << library;
    }
}

void check_on_devices(const std::string& what, Net net, const SessionOptions& options) {
  Session session = open(runtime_with_devices(), std::move(net), options);
  std::vector<Call> calls(1);
  for (const auto& input : testing_devices::inputs_of(session)) calls[0].add_input(input);
  const Status status = calls[0].allocate_outputs(session);
  ASSERT_TRUE(status.ok()) << status.text();
  expect_only_onednn(session, calls, {.warm_up = 30, .runs = 200, .at_least = 200}, what);
}

SessionOptions all_on_the_device() {
  SessionOptions options;
  options.device = "sim:0";
  options.copies = Copies::strict;
  options.streams = 2;
  return options;
}

// Covers the streams and copies of a device, and the kernels that it launches.
TEST(SteadyState, OnASimulatedDevice) {
  for (const char* name : {"lenet", "mlp"}) {
    auto net = models::build(name, {});
    ASSERT_TRUE(net.ok()) << net.status().text();
    check_on_devices(std::string(name) + " on sim:0", std::move(*net), all_on_the_device());
  }
}

// With more trips, more launches would be in flight than the device has room for before it is polled.
TEST(SteadyState, ALoopOnASimulatedDevice) {
  check_on_devices("a loop on sim:0", testing_devices::lstm_loop(2), all_on_the_device());
}

// Values go from the host to one device, from there to the other and back; without peers by way of the host.
Net between_devices() {
  NetBuilder b("between");
  const ValueId x = b.input("x", DType::f32, small);
  const ValueId there = testing_devices::on(b, "sim:0", b.add1("Softmax", "there", {x}));
  const ValueId further = testing_devices::on(b, "sim:1", b.add1("Tanh", "further", {there}));
  const ValueId host = b.add1("Neg", "host", {further});
  b.output(testing_devices::on(b, "sim:0", b.add1("Add", "back", {there, further})));
  b.output(testing_devices::on(b, "sim:1", b.add1("Mul", "last", {further, host})));
  return b.finish();
}

TEST(SteadyState, BetweenTheHostAndTwoSimulatedDevices) {
  check_on_devices("sim:0 and the host", testing_devices::mixed_net("sim:0"), testing_devices::silent(2));
  check_on_devices("two devices by the host", between_devices(), testing_devices::silent(2));
  const testing_devices::Setting peers("HEDDLE_SIM_PEERS", "1");
  check_on_devices("two devices that are peers", between_devices(), testing_devices::silent(2));
}

TEST(SteadyState, ContextsThatTakeTurns) {
  const auto x = blob(Shape{3, 8, 14, 14}, -1.0F, 0.03F);
  for (const int threads : {1, 2}) {
    const Runtime r = runtime(threads);
    Session one = open(r, convolution_net(1)), three = open(r, convolution_net(3));
    std::vector<Context> contexts;
    for (Session* s : {&one, &three}) {
      auto context = s->prepare();
      ASSERT_TRUE(context.ok());
      ASSERT_TRUE(context->bind_input(0, x->data).ok());
      contexts.push_back(std::move(*context));
    }
    bool ok = true;
    for (int i = 0; i < 1030; ++i) {
      if (i == 30) AllocationCount::start();
      for (Context& c : contexts) ok = c.run().ok() && ok;
    }
    const auto counts = AllocationCount::stop();
    ASSERT_TRUE(ok);
    for (const auto& [library, count] : counts) EXPECT_TRUE(is_onednn(library)) << count << " allocations by " << library;
  }
}

// A run that starts on the processor of a pinned helper first moves that helper to another.
TEST(SteadyState, HelpersThatAreMovedAway) {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "a helper can only be moved where there are two processors";
  HelperPinning pinning({processors[0], processors[1]});
  std::promise<void> entered, over;
  std::thread helper([&] {
    pinning.enter();
    entered.set_value();
    over.get_future().wait();
  });
  entered.get_future().wait();
  std::map<std::string, int64_t> counts;
  for (const size_t here : {0, 1, 0, 1}) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processors[here], &set);
    EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    AllocationCount::start();
    pinning.make_room();
    for (const auto& [library, count] : AllocationCount::stop()) counts[library] += count;
    EXPECT_EQ(pinning.helpers_per_processor()[here], 0);
    EXPECT_EQ(pinning.helpers_per_processor()[1 - here], 1);
  }
  over.set_value();
  helper.join();
  EXPECT_TRUE(counts.empty()) << counts.begin()->second << " allocations by " << counts.begin()->first;
  EXPECT_EQ(pinning.helpers_per_processor(), std::vector<int>({0, 0}));
}

}  // namespace
}  // namespace heddle
