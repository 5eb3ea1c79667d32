// The values of collectives between processes, 1 to 4 of them: each process knows what it has to get.
#include <memory>

#include "collectives/participants.h"
#include "collectives/rank_children.h"
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

// A process with one runtime, in which it opens one session after another.
class Process {
 public:
  Process() : here_(ThisRank::find()), runtime_(runtime_with_devices(1, "gloo")) {}
  int rank() const { return here_.rank; }
  int size() const { return here_.size; }
  // Runs one collective `runs` times, and returns its outputs.
  Status run(const std::string& type, std::vector<Attribute> attributes, const Arrays& inputs, int runs, Arrays* outputs) {
    attributes.push_back({"communicator", world});
    NetBuilder b("rank");
    for (const ValueId output :
         b.add(type, "collective", testing_collectives::detail::add_inputs(b, inputs, ""), inputs.size(), attributes, "heddle"))
      b.output(output);
    outputs->clear();
    return testing_collectives::detail::run(runtime_, b.finish(), options(), inputs, runs, outputs);
  }
  SessionOptions options() const { return options_of(here_); }
  const Runtime& runtime() const { return runtime_; }

 private:
  const ThisRank here_;
  const Runtime runtime_;
};

// Sums of rank * c + i, five times over, so that no run reads what the one before left.
template <class T>
void check_sums(Process& process) {
  const int n = process.size();
  for (const int64_t count : {1, 16, 3000}) {
    std::vector<T> mine, expected;
    for (int64_t i = 0; i < count; ++i) {
      const auto exact = [](int64_t value) {
        if constexpr (std::is_same_v<T, plugin::f16>)
          return plugin::f16(static_cast<float>(value));
        else
          return static_cast<T>(value);
      };
      mine.push_back(exact(process.rank() * 7 + i % 13));
      expected.push_back(exact(7 * n * (n - 1) / 2 + n * (i % 13)));
    }
    Arrays outputs;
    const Status status = process.run("AllReduce", {}, {Array::of(dtype_of_elements<T>, {count}, mine)}, 5, &outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(outputs[0] == Array::of(dtype_of_elements<T>, {count}, expected)) << count << " of " << to_string(dtype_of_elements<T>);
  }
}

// Each rank is the root once, of a reduction and of a broadcast, also of integers that f32 does not have.
void check_roots(Process& process) {
  constexpr int64_t large = 9'007'199'254'740'993;
  for (int64_t root = 0; root < process.size(); ++root) {
    Arrays outputs;
    Status status = process.run("Reduce", {{"root", root}}, {of_value<float>({5}, process.rank() + 1)}, 2, &outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    const double sum = process.rank() == root ? process.size() * (process.size() + 1) / 2 : 0;
    EXPECT_TRUE(outputs[0] == of_value<float>({5}, sum)) << "root " << root;
    const std::vector<int64_t> given(3, process.rank() == root ? large + root : -1);
    status = process.run("Broadcast", {{"root", root}}, {Array::of(DType::i64, {3}, given)}, 2, &outputs);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(outputs[0] == Array::of(DType::i64, {3}, std::vector<int64_t>(3, large + root))) << "root " << root;
  }
}

void check_rows(Process& process) {
  const int n = process.size();
  Arrays outputs;
  Status status = process.run("AllGather", {{"size", int64_t{n}}}, {of_value<float>({2, 3}, process.rank())}, 2, &outputs);
  ASSERT_TRUE(status.ok()) << status.text();
  std::vector<float> gathered, mine, scattered;
  for (int p = 0; p < n; ++p) gathered.insert(gathered.end(), 6, static_cast<float>(p));
  EXPECT_TRUE(outputs[0] == Array::of(DType::f32, {2 * n, 3}, gathered));
  for (int i = 0; i < 2 * n; ++i) mine.push_back(static_cast<float>(10 * process.rank() + i));
  for (int i = 0; i < 2; ++i) scattered.push_back(static_cast<float>(10 * n * (n - 1) / 2 + n * (2 * process.rank() + i)));
  status = process.run("ReduceScatter", {{"size", int64_t{n}}}, {Array::of(DType::f32, {2 * n}, mine)}, 2, &outputs);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(outputs[0] == Array::of(DType::f32, {2}, scattered));
}

// A variable that rank 0 gives to all in each run, and two barriers, over one communicator that is made once.
void check_synchronised(Process& process) {
  NetBuilder b("synchronised");
  const ValueId mine = b.input("mine", DType::f32, {4});
  const auto with = [&](const std::string& type, const std::string& name, ValueId x) {
    std::vector<Attribute> attributes = {{"communicator", world}};
    if (type == "Broadcast") attributes.push_back({"root", int64_t{0}});
    return b.add1(type, name, {x}, attributes, "heddle");
  };
  b.output(with("Barrier", "second", with("Broadcast", "given", with("Barrier", "first", mine))));
  auto session = process.runtime().open(b.finish(), process.options());
  ASSERT_TRUE(session.ok()) << session.status().text();
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> x(4, process.rank() == 0 ? 2.0F * static_cast<float>(i) : -1);
    const auto outputs = session->run({{DType::f32, Shape{4}, const_cast<float*>(x.data())}});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    EXPECT_TRUE(copy_of((*outputs)[0]) == of_value<float>({4}, 2 * i)) << "run " << i;
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
}

TEST(ProcessValues, AreRightForOneToFourProcesses) {
  for (int size = 1; size <= 4; ++size) {
    SCOPED_TRACE(std::to_string(size) + " processes");
    std::vector<std::unique_ptr<RankProcess>> processes;
    for (int rank = 0; rank < size; ++rank)
      processes.push_back(std::make_unique<RankProcess>("ProcessValues.DISABLED_OneRank",
                                                        ThisRank{rank, size, folder_of("values" + std::to_string(size))}));
    for (const auto& process : processes) EXPECT_EQ(process->wait(), 0) << process->said();
  }
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
