// The values of collectives between processes, 1 to 4 of them, that take part themselves or have GPUs: each knows what it has to get.
#include <memory>

#include "collectives/own_devices.h"
#include "collectives/participants.h"
#include "heddle/op/half_floats.h"

namespace heddle {
namespace {

using namespace testing_collectives;

template <class T>
constexpr DType dtype_of_elements = DType::f32;
template <>
constexpr DType dtype_of_elements<int64_t> = DType::i64;
template <>
constexpr DType dtype_of_elements<plugin::f16> = DType::f16;

template <class T>
Array of_value(const Shape& shape, double value) {
  const auto element = [&] {
    if constexpr (std::is_same_v<T, plugin::f16>)
      return plugin::f16(static_cast<float>(value));
    else
      return static_cast<T>(value);
  }();
  return Array::of(dtype_of_elements<T>, shape, std::vector<T>(static_cast<size_t>(shape.element_count()), element));
}

// A process with one runtime, in which it opens one session after another. Its participants are itself, or its devices.
class Process {
 public:
  Process() : here_(ThisRank::find()), own_(OwnDevices::find()), runtime_(runtime_with_devices(1, own_.plugins())) {}
  // Participants of this process, the first one's number, and those of all processes.
  int own() const { return std::max(own_.devices, 1); }
  int first() const { return here_.rank * own(); }
  int all() const { return here_.size * own(); }
  // Runs one collective `runs` times, and returns its outputs, one for each participant's input.
  Status run(const std::string& type, std::vector<Attribute> attributes, const Arrays& inputs, int runs, Arrays* outputs) {
    attributes.push_back({"communicator", world});
    NetBuilder b("rank");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string suffix = "_" + std::to_string(i);
      const std::vector<ValueId> values = testing_collectives::detail::add_inputs(b, {inputs[i]}, suffix);
      b.output(add(b, type, "collective", values[0], static_cast<int>(i), attributes));
    }
    outputs->clear();
    return testing_collectives::detail::run(runtime_, b.finish(), options(), inputs, runs, outputs);
  }
  // Adds a collective of participant i of this process.
  ValueId add(NetBuilder& b, const std::string& type, const std::string& name, ValueId x, int i,
              const std::vector<Attribute>& attributes) const {
    const ValueId y = b.add1(type, name + "_" + std::to_string(i), {x}, attributes, "heddle");
    if (own_.devices > 0) b.net()[b.net()[y].producer].device = own_.device(i);
    return y;
  }
  SessionOptions options() const { return options_of(here_, own_.all_devices()); }
  const Runtime& runtime() const { return runtime_; }

 private:
  const ThisRank here_;
  const OwnDevices own_;
  const Runtime runtime_;
};

// Sums of participant * c + i, five times over, so that no run reads what the one before left.
template <class T>
void check_sums(Process& process) {
  const int n = process.all();
  const auto exact = [](int64_t value) {
    if constexpr (std::is_same_v<T, plugin::f16>)
      return plugin::f16(static_cast<float>(value));
    else
      return static_cast<T>(value);
  };
  for (const int64_t count : {1, 16, 3000}) {
    std::vector<T> expected;
    for (int64_t i = 0; i < count; ++i) expected.push_back(exact(7 * n * (n - 1) / 2 + n * (i % 13)));
    Arrays inputs, outputs;
    for (int p = 0; p < process.own(); ++p) {
      std::vector<T> mine;
      for (int64_t i = 0; i < count; ++i) mine.push_back(exact((process.first() + p) * 7 + i % 13));
      inputs.push_back(Array::of(dtype_of_elements<T>, {count}, mine));
    }
    const Status status = process.run("AllReduce", {}, inputs, 5, &outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    for (const Array& output : outputs)
      EXPECT_TRUE(output == Array::of(dtype_of_elements<T>, {count}, expected)) << count << " of " << to_string(dtype_of_elements<T>);
  }
}

// Runs a collective with what `input(p)` is for participant p, and expects `output(p)`.
template <class Input, class Output>
void check(Process& process, const std::string& type, const std::vector<Attribute>& attributes, const Input& input, const Output& output) {
  Arrays inputs, outputs;
  for (int i = 0; i < process.own(); ++i) inputs.push_back(input(process.first() + i));
  const Status status = process.run(type, attributes, inputs, 2, &outputs);
  ASSERT_TRUE(status.ok()) << status.text();
  for (int i = 0; i < process.own(); ++i) {
    const int p = process.first() + i;
    EXPECT_TRUE(outputs[static_cast<size_t>(i)] == output(p)) << type << " of participant " << p;
  }
}

// Each participant is the root once, of a reduction and of a broadcast, also of integers that f32 does not have.
void check_roots(Process& process) {
  constexpr int64_t large = 9'007'199'254'740'993;
  const int n = process.all();
  for (int64_t root = 0; root < n; ++root) {
    SCOPED_TRACE("root " + std::to_string(root));
    check(
        process, "Reduce", {{"root", root}}, [](int p) { return of_value<float>({5}, p + 1); },
        [&](int p) { return of_value<float>({5}, p == root ? n * (n + 1) / 2 : 0); });
    check(
        process, "Broadcast", {{"root", root}},
        [&](int p) { return Array::of(DType::i64, {3}, std::vector<int64_t>(3, p == root ? large + root : -1)); },
        [&](int) { return Array::of(DType::i64, {3}, std::vector<int64_t>(3, large + root)); });
  }
}

void check_rows(Process& process) {
  const int n = process.all();
  std::vector<float> gathered;
  for (int p = 0; p < n; ++p) gathered.insert(gathered.end(), 6, static_cast<float>(p));
  check(
      process, "AllGather", {{"size", int64_t{n}}},
      [](int p) {
        return of_value<float>({2, 3}, p);
      },
      [&](int) {
        return Array::of(DType::f32, {2 * n, 3}, gathered);
      });
  check(
      process, "ReduceScatter", {{"size", int64_t{n}}},
      [&](int p) {
        std::vector<float> mine;
        for (int i = 0; i < 2 * n; ++i) mine.push_back(static_cast<float>(10 * p + i));
        return Array::of(DType::f32, {2 * n}, mine);
      },
      [&](int p) {
        std::vector<float> scattered;
        for (int i = 0; i < 2; ++i) scattered.push_back(static_cast<float>(10 * n * (n - 1) / 2 + n * (2 * p + i)));
        return Array::of(DType::f32, {2}, scattered);
      });
}

// A tensor that participant 0 gives to all in each run, and two barriers, over one communicator that is made once.
void check_synchronised(Process& process) {
  NetBuilder b("synchronised");
  const std::vector<Attribute> with = {{"communicator", world}}, from_first = {{"communicator", world}, {"root", int64_t{0}}};
  for (int i = 0; i < process.own(); ++i) {
    const ValueId mine = b.input("mine_" + std::to_string(i), DType::f32, {4});
    const ValueId given = process.add(b, "Broadcast", "given", process.add(b, "Barrier", "first", mine, i, with), i, from_first);
    b.output(process.add(b, "Barrier", "second", given, i, with));
  }
  auto session = process.runtime().open(b.finish(), process.options());
  ASSERT_TRUE(session.ok()) << session.status().text();
  for (int run = 0; run < 3; ++run) {
    const std::vector<float> of_first(4, 2.0F * static_cast<float>(run)), of_others(4, -1);
    std::vector<TensorView> inputs;
    for (int i = 0; i < process.own(); ++i) {
      const std::vector<float>& x = process.first() + i == 0 ? of_first : of_others;
      inputs.push_back({DType::f32, Shape{4}, const_cast<float*>(x.data())});
    }
    const auto outputs = session->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    for (const Tensor& output : *outputs) EXPECT_TRUE(copy_of(output) == of_value<float>({4}, 2 * run)) << "run " << run;
  }
}

TEST(ProcessValues, DISABLED_OneRank) {
  Process process;
  check_sums<float>(process);
  check_sums<plugin::f16>(process);
  check_sums<int64_t>(process);
  check_roots(process);
  check_rows(process);
  check_synchronised(process);
  if (OwnDevices::find().kind == "nccl") {
    EXPECT_EQ(broken_rules(), "");
  }
}

void expect_right_values(int size, const OwnDevices& own) {
  const std::string what = std::to_string(size) + " processes of kind " + own.kind + " with " + std::to_string(own.devices) + " devices";
  SCOPED_TRACE(what);
  std::vector<std::unique_ptr<RankProcess>> processes;
  for (int rank = 0; rank < size; ++rank)
    processes.push_back(std::make_unique<RankProcess>("ProcessValues.DISABLED_OneRank",
                                                      ThisRank{rank, size, folder_of("values of " + what)}, own.environment(rank)));
  for (const auto& process : processes) EXPECT_EQ(process->wait(), 0) << process->said();
}

TEST(ProcessValues, AreRightForOneToFourProcesses) {
  for (int size = 1; size <= 4; ++size) expect_right_values(size, {"gloo", 0});
}

TEST(ProcessValues, AreRightForProcessesWithGpus) {
  if (!has_cuda()) GTEST_SKIP() << "the CUDA plugin was not built";
  for (const int size : {1, 2, 4}) expect_right_values(size, {"nccl", 1});
  for (const int size : {1, 2}) expect_right_values(size, {"nccl", 2});
}

// Sessions close their connections: the other rank learns of it at once.
TEST(ProcessValues, ConnectionsAreClosedWithTheirSession) {
  const auto descriptors = [] {
    const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  const Crew crew{2, false, "gloo"};
  const auto run_once = [&] {
    const std::vector<Outcome> found = run(crew, {{of_value<float>({2}, 1)}, {of_value<float>({2}, 2)}},
                                           [](NetBuilder& b, const std::vector<ValueId>& inputs, const std::string&) {
                                             return b.add("AllReduce", "sum", inputs, 1, {{"communicator", world}}, "heddle");
                                           });
    for (const Outcome& outcome : found) EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
  };
  run_once();
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) run_once();
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace heddle
