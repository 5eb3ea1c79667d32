// The results have the same bits however the net is run: any number of threads, contexts side by side, shuffled schedules, memory shared or
// not. The net has a convolution, matrix products, softmax, reductions over a million elements, scatter with repeated indices and an update
// of a variable.
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "session/session_impl.h"
#include "session_plan.h"

namespace heddle {
namespace {

using Bits = std::vector<std::byte>;

std::shared_ptr<const Blob> noise(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  for (float& v : values) v = (static_cast<float>(random() % 20001) - 10000) * 1e-4F;
  return Blob::copy_of(DType::f32, shape, values.data());
}

std::shared_ptr<const Blob> indices(const Shape& shape, int64_t below, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> values(static_cast<size_t>(shape.element_count()));
  for (int64_t& v : values) v = static_cast<int64_t>(random()) % below;
  return Blob::copy_of(DType::i64, shape, values.data());
}

constexpr int outputs = 9;  // those to compare; the output after them holds the threads that took part

// The net's inputs are "image" [2, 16, 40, 40] and "many" [1000, 1000]. With `updates` the weight of a matrix product is a variable,
// updated in each run.
Net whole_net(bool updates) {
  NetBuilder b("whole");
  const ValueId image = b.input("image", DType::f32, Shape{2, 16, 40, 40}), many = b.input("many", DType::f32, Shape{1000, 1000});
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  const std::vector<ValueId> seen = b.add("Witness", "witness", {image}, 2, {}, "witness");
  ValueId x = b.add1("Conv", "conv1", {seen[0], b.constant("w1", noise(Shape{32, 16, 3, 3}, 1))}, {{"pads", pads}});
  x = b.add1("Relu", "relu", {x});
  const ValueId left = b.add1("Conv", "left", {x, b.constant("w2", noise(Shape{16, 32, 1, 1}, 2))});
  const ValueId right = b.add1("Conv", "right", {x, b.constant("w3", noise(Shape{16, 32, 3, 3}, 3))}, {{"pads", pads}});
  const ValueId joined = b.add1("Add", "joined", {left, right});  // [2, 16, 40, 40]
  const ValueId rows = b.add1("Reshape", "rows", {joined, b.constant_ints("rows_shape", {320, 160})});
  const ValueId w = updates ? b.variable("w", noise(Shape{160, 96}, 4), true) : b.constant("w", noise(Shape{160, 96}, 4));
  const ValueId y = b.add1("Softmax", "softmax", {b.add1("MatMul", "product", {rows, w})});
  b.output(y);
  const ValueId gradient = b.add1("Gemm", "gradient", {rows, y}, {{"transA", int64_t{1}}});  // [160, 96]
  b.output(gradient);
  for (const char* type : {"ReduceSum", "ReduceLogSumExp"}) b.output(b.add1(type, type, {many}));
  b.output(b.add1("ReduceMean", "columns", {many, b.constant_ints("axis0", {0})}));
  b.output(b.add1("ReduceL2", "lines", {many, b.constant_ints("axis1", {1})}));
  b.output(b.add1("ScatterElements", "elements",
                  {b.constant("bins", noise(Shape{97}, 5)), b.constant("which", indices(Shape{20000}, 97, 6)),
                   b.constant("added", noise(Shape{20000}, 7))},
                  {{"reduction", std::string("add")}}));
  b.output(b.add1("ScatterND", "slices",
                  {gradient, b.constant("where", indices(Shape{600, 1}, 160, 8)), b.constant("slabs", noise(Shape{600, 96}, 9))},
                  {{"reduction", std::string("add")}}));
  b.output(updates ? b.add1("SgdUpdate", "update", {w, gradient, b.constant_float("rate", 1e-3F)}, {}, "heddle")
                   : b.add1("Sub", "update", {w, gradient}));
  b.output(seen[1]);
  return b.finish();
}

class BitIdentity : public testing::Test {
 protected:
  static Runtime runtime(int threads) {
    RuntimeOptions options;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/test/witness.so"};
    options.default_plugins = false;
    options.threads = threads;
    auto made = Runtime::create(options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    return *made;
  }
  static Session open(const Runtime& runtime, bool updates, bool share_memory = true) {
    auto session = runtime.open(whole_net(updates), {});
    EXPECT_TRUE(session.ok()) << session.status().text();
    Internals::of(*session).pipeline.compile.share_memory = share_memory;
    Internals::of(*session).scheduler.mode = ScheduleMode::parallel;
    return *session;
  }
  void bind(Execution& execution) const {
    execution.bind_input(0, image->data);
    execution.bind_input(1, many->data);
  }
  Context prepare(Session& session) const {
    auto context = session.prepare();
    EXPECT_TRUE(context.ok()) << context.status().text();
    bind(Internals::execution(*context));
    return std::move(*context);
  }
  // Runs once and returns the bytes of the compared outputs. Adds the threads that took part to `threads`.
  static Bits run(Execution& execution, std::set<int64_t>* threads = nullptr) {
    int64_t bytes = 0;
    for (size_t i = 0; i < outputs; ++i) bytes += execution.output(i).byte_size();
    Bits bits(static_cast<size_t>(bytes));
    // Outputs are bound to memory of the test: a variable's memory belongs to other contexts too as soon as the run is over.
    std::byte* at = bits.data();
    for (size_t i = 0; i < outputs; at += execution.output(i++).byte_size()) execution.bind_output(i, at);
    const Status status = execution.run({});
    EXPECT_TRUE(status.ok()) << status.text();
    const TensorView who = execution.output(outputs);
    const auto* ids = static_cast<const int64_t*>(who.data);
    if (threads) threads->insert(ids, ids + who.shape.element_count());
    return bits;
  }
  // The outputs of each of `runs` runs in a row, on one thread without memory sharing.
  std::vector<Bits> expected(bool updates, int runs) const {
    Session session = open(runtime(1), updates, false);
    Context context = prepare(session);
    std::vector<Bits> result;
    for (int i = 0; i < runs; ++i) result.push_back(run(Internals::execution(context)));
    return result;
  }

  // Allows more helpers than there are processors.
  const tbb::global_control allow_{tbb::global_control::max_allowed_parallelism, 8};
  const std::shared_ptr<const Blob> image = noise(Shape{2, 16, 40, 40}, 10), many = noise(Shape{1000, 1000}, 11);
};

TEST_F(BitIdentity, OneTwoThreeAndEightThreads) {
  const std::vector<Bits> sequence = expected(true, 3);
  ASSERT_NE(sequence[0], sequence[1]);  // the update shows
  for (const int threads : {1, 2, 3, 8})
    for (const bool share_memory : {true, false}) {
      const Runtime r = runtime(threads);
      ASSERT_EQ(r.threads(), threads);
      std::set<int64_t> seen;
      int runs = 0;
      // Each round has a new session, so that its variables start from their initial contents. Rounds are repeated until every thread has
      // taken part; where other processes keep the processors busy, that takes many runs as short as these.
      for (; runs < 3 || (seen.size() < static_cast<size_t>(threads) && runs < 30000); runs += 3) {
        Session session = open(r, true, share_memory);
        Context context = prepare(session);
        for (const Bits& bits : sequence) ASSERT_TRUE(run(Internals::execution(context), &seen) == bits) << threads << " threads";
      }
      std::printf("%d threads, memory sharing %s: %zu distinct threads computed, %d runs\n", threads, share_memory ? "on" : "off",
                  seen.size(), runs);
      EXPECT_GE(seen.size(), static_cast<size_t>(threads));
    }
}

TEST_F(BitIdentity, TwoHundredShuffledSchedules) {
  const std::vector<Bits> sequence = expected(true, 1);
  const Runtime r = runtime(3);
  for (const bool share_memory : {true, false}) {
    Session session = open(r, true, share_memory);
    const Context context = prepare(session);
    const auto plan = last_plan(session);
    const Tensor initial = *session.read_variable("w");
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      ExecutionOptions options = Internals::of(session).execution_options();
      options.scheduler.shuffle_seed = seed;
      auto execution = Execution::create(plan, Internals::of(session).variables, options);
      ASSERT_TRUE(execution.ok()) << execution.status().text();
      bind(**execution);
      ASSERT_TRUE(session.write_variable("w", initial.view()).ok());
      ASSERT_TRUE(run(**execution) == sequence[0]) << "seed " << seed;
    }
  }
}

// Runs of nets with updates are admitted one at a time: each run is one step of the sequence, and no step is lost or done twice.
TEST_F(BitIdentity, OneToEightContextsSideBySide) {
  constexpr int runs = 3;
  const Runtime r = runtime(2);
  for (const bool updates : {false, true})
    for (const int contexts : {1, 2, 5, 8}) {
      std::vector<Bits> sequence = expected(updates, updates ? contexts * runs : 1);
      if (!updates) sequence.resize(static_cast<size_t>(contexts) * runs, sequence[0]);
      Session session = open(r, updates);
      std::vector<std::vector<Bits>> results(static_cast<size_t>(contexts));
      std::vector<std::thread> threads;
      for (auto& mine : results)
        threads.emplace_back([this, &session, &mine] {
          Context context = prepare(session);
          for (int i = 0; i < runs; ++i) mine.push_back(run(Internals::execution(context)));
        });
      for (std::thread& t : threads) t.join();
      std::vector<Bits> all;
      for (const auto& mine : results) all.insert(all.end(), mine.begin(), mine.end());
      std::sort(all.begin(), all.end());
      std::sort(sequence.begin(), sequence.end());
      EXPECT_TRUE(all == sequence) << contexts << " contexts, updates " << updates;
    }
}

// Runs of one net at the same time.
TEST_F(BitIdentity, EightThreadsRunOneSessionFiftyTimesEach) {
  const std::vector<Bits> sequence = expected(false, 1);
  const Runtime r = runtime(2);
  Session session = open(r, false);
  const TensorView inputs[] = {{DType::f32, image->shape, const_cast<std::byte*>(image->data)},
                               {DType::f32, many->shape, const_cast<std::byte*>(many->data)}};
  std::vector<int64_t> bytes;
  {
    const Context context = prepare(session);
    for (size_t o = 0; o < outputs; ++o) bytes.push_back(context.output(o).byte_size());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        // All outputs are bound to this thread's own memory: other runs may use the context as soon as this one is done.
        Bits bits(sequence[0].size());
        TensorView views[outputs];
        std::byte* at = bits.data();
        for (size_t o = 0; o < outputs; at += bytes[o++]) views[o].data = at;
        if (!session.run(inputs, 2, views, outputs).ok() || bits != sequence[0]) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace heddle
