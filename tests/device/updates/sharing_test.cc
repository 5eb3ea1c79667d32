// Runs that update share the variables with others until their update phase, and snapshots are made while runs go on. Devices that begin no
// work hold runs at a known point.
#include <atomic>
#include <future>
#include <thread>

#include "device/device_support.h"
#include "heddle/training.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(SharedVariables);

const Shape shape{4, 4};

// "train": y = Relu(x) on the device, and w <- w + y on the host; "look": z = Neg(w) on the host; "count": v <- v + 1 on the host.
Result<Session> open_three(const Runtime& runtime) {
  std::vector<Net> nets;
  {
    NetBuilder b("train");
    const ValueId w = b.variable("w", whole_numbers(shape, 1, 3));
    const ValueId y = on(b, device_name(0), b.add1("Relu", "y", {b.input("x", DType::f32, shape)}));
    b.updates(b.add1("AccumulateAdd", "next", {w, y}, {}, "heddle"), w);
    b.output(y);
    nets.push_back(b.finish());
  }
  {
    NetBuilder b("look");
    b.output(b.add1("Neg", "z", {b.variable("w", whole_numbers(shape, 1, 3))}));
    nets.push_back(b.finish());
  }
  {
    NetBuilder b("count");
    const ValueId v = b.variable("v", whole_numbers(shape, 2, 5));
    b.updates(b.add1("AccumulateAdd", "counted", {v, b.constant("one", whole_numbers(shape, 3, 1))}, {}, "heddle"), v);
    nets.push_back(b.finish());
  }
  HEDDLE_TRY(const Nets all, Nets::of(std::move(nets)));
  return runtime.open(all, silent());
}

std::vector<char> value_of(const Session& session, const char* name) {
  auto value = session.read_variable(name);
  EXPECT_TRUE(value.ok()) << value.status().text();
  return value.ok() ? bytes({value->dtype(), value->shape(), const_cast<void*>(value->data())}) : std::vector<char>();
}

// A run of "train" that waits for a device which begins no work.
class HeldRun {
 public:
  explicit HeldRun(Session session) : x_(whole_numbers(shape, 7, 3)) {
    auto context = session.prepare();
    EXPECT_TRUE(context.ok()) << context.status().text();
    context_.emplace(std::move(*context));
    EXPECT_TRUE(context_->bind_input(0, x_->data).ok());
  }
  Status run() { return context_->run(); }
  // On a thread of its own: those of the runtime may be too few.
  void start(const RunOptions& options = {}) {
    over_ = std::async(std::launch::async, [this, options] { return context_->run(options); });
  }
  Status end() { return over_.get(); }
  void cancel() { context_->cancel(); }

 private:
  const std::shared_ptr<const Blob> x_;
  std::optional<Context> context_;
  std::future<Status> over_;
};

TEST_P(SharedVariables, EvaluationsFinishDuringTheForwardPassOfAStep) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  auto session = open_three(runtime);
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto train = session->net("train"), look = session->net("look");
  ASSERT_TRUE(train.ok() && look.ok());
  HeldRun step(*train);
  ASSERT_TRUE(step.run().ok());
  const auto before = value_of(*session, "w");
  gate.close();
  step.start();
  // Until the step has its turn with the variables: a write waits for it then.
  auto value = session->read_variable("v");
  ASSERT_TRUE(value.ok());
  RunOptions hurry;
  hurry.deadline_ns = 20'000'000;
  Status written;
  while (written.ok()) written = session->write_variable("v", value->view(), hurry);
  EXPECT_EQ(written.code(), Code::deadline_exceeded) << written.text();
  std::atomic<int> evaluations{0};
  std::vector<std::thread> evaluators;
  for (int i = 0; i < 4; ++i)
    evaluators.emplace_back([&] {
      auto context = look->prepare();
      EXPECT_TRUE(context.ok()) << context.status().text();
      for (int k = 0; context.ok() && k < 25; ++k) evaluations += context->run().ok() ? 1 : 0;
    });
  for (std::thread& t : evaluators) t.join();
  EXPECT_EQ(evaluations, 100);
  EXPECT_EQ(value_of(*session, "w"), before) << "the step is held before its update";
  gate.open();
  EXPECT_TRUE(step.end().ok());
  EXPECT_NE(value_of(*session, "w"), before);
}

// Two runs that update do not share: both would begin from the same variables.
TEST_P(SharedVariables, OneStepWaitsForAnother) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  auto session = open_three(runtime);
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto train = session->net("train"), count = session->net("count");
  ASSERT_TRUE(train.ok() && count.ok());
  HeldRun step(*train);
  ASSERT_TRUE(step.run().ok());
  const auto w = value_of(*session, "w"), v = value_of(*session, "v");
  gate.close();
  step.start();
  auto other = count->prepare();
  ASSERT_TRUE(other.ok()) << other.status().text();
  RunOptions hurry;
  hurry.deadline_ns = 20'000'000;
  // The step may not have begun yet: then the other run comes before it.
  Status late;
  while (late.ok()) late = other->run(hurry);
  EXPECT_EQ(late.code(), Code::deadline_exceeded) << late.text();
  // So does a write, which would be lost or seen by half of the step.
  auto value = session->read_variable("v");
  ASSERT_TRUE(value.ok());
  const Status written = session->write_variable("v", {value->dtype(), value->shape(), const_cast<void*>(value->data())}, hurry);
  EXPECT_EQ(written.code(), Code::deadline_exceeded) << written.text();
  gate.open();
  EXPECT_TRUE(step.end().ok());
  EXPECT_TRUE(other->run().ok());
  EXPECT_NE(value_of(*session, "w"), w);
  EXPECT_NE(value_of(*session, "v"), v);
}

// While a snapshot waits for the bytes of a device, other threads read and write other variables. The snapshot holds the values of its
// begin.
TEST_P(SharedVariables, ASnapshotHoldsNobody) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  std::vector<Net> nets;
  for (const char* name : {"w", "v"}) {
    NetBuilder b(std::string("count_") + name);
    const ValueId variable = b.variable(name, whole_numbers(shape, 2, 5));
    const ValueId next = b.add1("AccumulateAdd", std::string("counted_") + name, {variable, b.input("x", DType::f32, shape)}, {}, "heddle");
    b.updates(*name == 'w' ? on(b, device_name(0), next) : next, variable);
    nets.push_back(b.finish());
  }
  auto all = Nets::of(std::move(nets));
  ASSERT_TRUE(all.ok()) << all.status().text();
  auto session = runtime.open(*all, silent());
  ASSERT_TRUE(session.ok()) << session.status().text();
  HeldRun w(*session->net("count_w")), v(*session->net("count_v"));
  ASSERT_TRUE(w.run().ok() && v.run().ok());  // the newest bytes of w are on the device
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "saved.safetensors").string();
  gate.close();
  std::future<Status> saved = std::async(std::launch::async, [&] { return session->save_variables(file); });
  // Whether the snapshot has begun or not, none of these waits for it.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(v.run().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(v.run().ok());
  EXPECT_EQ(saved.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate.open();
  const Status status = saved.get();
  ASSERT_TRUE(status.ok()) << status.text();
  const auto now = value_of(*session, "v");
  ASSERT_TRUE(session->load_variables(file).ok());
  EXPECT_NE(value_of(*session, "v"), now) << "the snapshot is of its begin";
}

// A step whose readers never leave ends at its deadline, before any update.
TEST_P(SharedVariables, AStepThatCannotHaveThemAloneInTimeUpdatesNothing) {
  HEDDLE_DEVICE_NEEDS(can_be_held);
  const Gate gate;
  const Runtime runtime = device_runtime(2);
  std::vector<Net> nets;
  {
    NetBuilder b("count");
    const ValueId v = b.variable("v", whole_numbers(shape, 2, 5));
    b.updates(b.add1("AccumulateAdd", "counted", {v, b.input("x", DType::f32, shape)}, {}, "heddle"), v);
    nets.push_back(b.finish());
  }
  {
    NetBuilder b("look");
    b.input("x", DType::f32, shape);
    b.output(on(b, device_name(0), b.add1("Relu", "z", {b.variable("v", whole_numbers(shape, 2, 5))})));
    nets.push_back(b.finish());
  }
  auto all = Nets::of(std::move(nets));
  ASSERT_TRUE(all.ok()) << all.status().text();
  auto session = runtime.open(*all, silent());
  ASSERT_TRUE(session.ok()) << session.status().text();
  HeldRun step(*session->net("count")), look(*session->net("look"));
  ASSERT_TRUE(step.run().ok() && look.run().ok());
  const auto before = value_of(*session, "v");
  for (const bool cancels : {false, true}) {
    HeldRun late(*session->net("count")), reader(*session->net("look"));
    ASSERT_TRUE(reader.run().ok());
    gate.close();
    reader.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    RunOptions options;
    if (!cancels) options.deadline_ns = 30'000'000;
    late.start(options);
    if (cancels) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      late.cancel();
    }
    const Status status = late.end();
    EXPECT_EQ(status.code(), cancels ? Code::cancelled : Code::deadline_exceeded) << status.text();
    gate.open();
    EXPECT_TRUE(reader.end().ok());
    EXPECT_EQ(value_of(*session, "v"), before);
  }
  EXPECT_TRUE(step.run().ok());
}

}  // namespace
}  // namespace heddle
