// Checkpoints of trainings on devices: written while the steps that follow run there, each is of its step; they say nothing of devices.
#include <gtest/gtest.h>

#include <map>

#include "build_folder.h"
#include "load/temporary_folder.h"
#include "points.h"

namespace heddle::testing_train {
namespace {

using testing::TemporaryFolder;
using testing_line::contents;

constexpr int64_t steps = 40;

LineSession on_device(const std::string& device, int threads = 2) {
  RuntimeOptions options;
  options.plugins = {testing::build_folder() + "/lib/cpu.so", testing::build_folder() + "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = threads;
  SessionOptions how;
  how.device = device;
  how.copies = Copies::automatic;
  return {LineSession::value_of(Runtime::create(options)), how};
}

TEST(CheckpointsOfDevices, AreOfTheirStepAndReadWithoutDevices) {
  const Points points(10);
  const TemporaryFolder folder, of_host;
  TrainerOptions options = checkpoints_in(of_host, steps, 1);
  std::map<int64_t, std::map<std::string, std::string>> at;
  const LineSession host = on_device("cpu:0", 1);
  options.on_step = [&](const TrainingStep& step) { return at[step.step] = contents(host.all), Status(); };
  ASSERT_TRUE(host.trainer(points.dataset(), options).run().ok());
  for (const int threads : {1, 3}) {
    const LineSession device = on_device("sim:0", threads);
    const Status status = device.trainer(points.dataset(), checkpoints_in(folder, steps, 1)).run();
    ASSERT_TRUE(status.ok()) << status.text();
    const auto list = list_checkpoints(folder.path().string());
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->complete.size(), static_cast<size_t>(steps));
    for (const CheckpointInfo& info : list->complete) {
      Session other = on_device("cpu:0", 1).all;
      const Status loaded = other.load_variables(info.path);
      ASSERT_TRUE(loaded.ok()) << loaded.text();
      EXPECT_EQ(contents(other), at[info.step]) << "step " << info.step << ", " << threads << " threads";
    }
  }
}

// Training moves between devices and the host, and learns what it would have learned in one place.
TEST(CheckpointsOfDevices, ContinueAnywhere) {
  const Points points(10);
  const TemporaryFolder folder;
  TrainerOptions options = checkpoints_in(folder, steps, 1);
  options.checkpoints.every = 7;
  const LineSession whole = on_device("cpu:0");
  {
    const TemporaryFolder other;
    ASSERT_TRUE(whole.trainer(points.dataset(), checkpoints_in(other, steps, 1)).run().ok());
  }
  int64_t until = 10;
  std::map<std::string, std::string> last;
  for (const char* const place : {"sim:0", "cpu:0", "sim:1", "sim:0"}) {
    options.steps = std::min(until, steps);
    until += 10;
    const LineSession session = on_device(place, until % 20 == 0 ? 1 : 2);
    Trainer trainer = session.trainer(points.dataset(), options);
    const auto list = list_checkpoints(folder.path().string());
    ASSERT_TRUE(list.ok());
    if (!list->complete.empty()) {
      const auto resumed = trainer.resume(list->complete[0].path);
      ASSERT_TRUE(resumed.ok()) << resumed.status().text();
      EXPECT_EQ(resumed->step, until - 20);
    }
    const Status status = trainer.run();
    ASSERT_TRUE(status.ok()) << place << ": " << status.text();
    last = contents(session.all);
  }
  EXPECT_EQ(last, contents(whole.all));
}

}  // namespace
}  // namespace heddle::testing_train
