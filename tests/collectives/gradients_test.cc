// Gradients of collectives: of the sum of all participants' losses, where each loss weighs what the participant got.
#include <cmath>

#include "collectives/participants.h"
#include "heddle/training.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE(CollectiveGradients);

constexpr int64_t rows = 48;  // for 1, 2, 3, 4, 8 and 16 participants

double value_of(int participant, int64_t i) {
  return std::sin(static_cast<double>(100 * participant + i));
}
double weight_of(int participant, int64_t i) {
  return std::cos(static_cast<double>(300 * participant + i));
}

Array numbers(int64_t count, const std::function<double(int64_t)>& value) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value(i));
  return Array::of(DType::f64, {count}, values);
}

// The gradients of x of all participants, where y is the result of the collective, of `count` elements, and the loss the sum of weight * y.
std::vector<std::vector<double>> gradients(const Crew& crew, const std::string& type, int64_t count, std::vector<Attribute> attributes) {
  attributes.push_back({"communicator", world});
  const auto derived = [&](Net net, const std::vector<std::string>& suffixes, const Runtime& runtime) -> heddle::Result<Nets> {
    DifferentiateOptions options;
    for (const std::string& suffix : suffixes) {
      options.losses.push_back("loss" + suffix);
      options.wanted.push_back("x" + suffix);
    }
    options.outputs = true;
    std::vector<Net> all;
    all.push_back(std::move(net));
    HEDDLE_TRY(Nets nets, Nets::of(std::move(all)));
    HEDDLE_CHECK(nets.add_gradients(runtime, "net", options, "net").status());
    return nets;
  };
  const auto add = [&](NetBuilder& b, const std::string& suffix) {
    const ValueId x = b.input("x" + suffix, DType::f64, {rows}), weight = b.input("weight" + suffix, DType::f64, {count});
    const ValueId y = b.add1(type, "y" + suffix, {x}, attributes, "heddle");
    b.add1("ReduceSum", "loss" + suffix, {b.add1("Mul", "weighed" + suffix, {y, weight})}, {{"keepdims", int64_t{0}}});
  };
  std::vector<std::vector<double>> all(static_cast<size_t>(crew.size));
  const auto x = [&](int p) { return numbers(rows, [&](int64_t i) { return value_of(p, i); }); };
  const auto weight = [&](int p) { return numbers(count, [&](int64_t i) { return weight_of(p, i); }); };
  const auto run = [&](const Runtime& runtime, const heddle::Result<Nets>& nets, const SessionOptions& options, int first,
                       int last) -> Status {
    HEDDLE_CHECK(nets.status());
    HEDDLE_TRY(Session session, runtime.open(*nets, options));
    HEDDLE_TRY(Context context, session.prepare());
    std::vector<Array> inputs;
    for (int p = first; p < last; ++p) inputs.push_back(x(p)), inputs.push_back(weight(p));
    for (size_t i = 0; i < inputs.size(); ++i) HEDDLE_CHECK(context.bind_input(i, inputs[i].bytes.data()));
    HEDDLE_CHECK(context.run());
    const size_t before = context.output_count() - static_cast<size_t>(last - first);
    for (int p = first; p < last; ++p)
      all[static_cast<size_t>(p)] = copy_of(context.output(before + static_cast<size_t>(p - first))).as<double>();
    return {};
  };
  if (crew.devices) {
    const Runtime runtime = runtime_with_devices(2);
    NetBuilder b("net");
    std::vector<std::string> suffixes;
    for (int p = 0; p < crew.size; ++p) {
      const size_t first = b.net().nodes.size();
      add(b, suffixes.emplace_back(std::to_string(p)));
      for (size_t n = first; n < b.net().nodes.size(); ++n) b.net().nodes[n].device = crew.device(p);
    }
    const Status status = run(runtime, derived(b.finish(), suffixes, runtime), options_of(crew, "gradients"), 0, crew.size);
    EXPECT_TRUE(status.ok()) << status.text();
    return all;
  }
  std::vector<std::thread> ranks;
  for (int p = 0; p < crew.size; ++p)
    ranks.emplace_back([&, p] {
      const Runtime runtime = runtime_with_devices();
      NetBuilder b("net");
      add(b, "");
      const Status status = run(runtime, derived(b.finish(), {""}, runtime), options_of(crew, "gradients", p), p, p + 1);
      EXPECT_TRUE(status.ok()) << status.text();
    });
  for (std::thread& rank : ranks) rank.join();
  return all;
}

using Expected = std::function<double(int participant, int64_t i)>;

void expect(const std::vector<std::vector<double>>& found, const Expected& expected) {
  for (size_t p = 0; p < found.size(); ++p) {
    ASSERT_EQ(found[p].size(), static_cast<size_t>(rows)) << p;
    for (int64_t i = 0; i < rows; ++i)
      ASSERT_NEAR(found[p][static_cast<size_t>(i)], expected(static_cast<int>(p), i), 1e-13) << "participant " << p << ", element " << i;
  }
}

// The sum of the weights of an element over all participants.
Expected weights_of_all(int size) {
  return [size](int, int64_t i) {
    double sum = 0;
    for (int p = 0; p < size; ++p) sum += weight_of(p, i);
    return sum;
  };
}

TEST_P(CollectiveGradients, OfAllReduce) {
  const int size = GetParam().size;
  const Expected sum = weights_of_all(size);
  expect(gradients(GetParam(), "AllReduce", rows, {}), sum);
  expect(gradients(GetParam(), "AllReduce", rows, {{"reduction", std::string("mean")}}),
         [&](int p, int64_t i) { return sum(p, i) / size; });
}

TEST_P(CollectiveGradients, OfBroadcastAndReduce) {
  const int size = GetParam().size, root = size - 1;
  const Expected sum = weights_of_all(size);
  expect(gradients(GetParam(), "Broadcast", rows, {{"root", int64_t{root}}}), [&](int p, int64_t i) { return p == root ? sum(p, i) : 0; });
  expect(gradients(GetParam(), "Reduce", rows, {{"root", int64_t{root}}}), [&](int, int64_t i) { return weight_of(root, i); });
}

TEST_P(CollectiveGradients, OfAllGatherAndReduceScatter) {
  const int size = GetParam().size;
  const Attribute members{"size", int64_t{size}};
  expect(gradients(GetParam(), "AllGather", rows * size, {members}),
         [&](int p, int64_t i) { return weights_of_all(size)(p, p * rows + i); });
  const int64_t block = rows / size;
  const Expected own = [&](int, int64_t i) { return weight_of(static_cast<int>(i / block), i % block); };
  expect(gradients(GetParam(), "ReduceScatter", block, {members}), own);
  expect(gradients(GetParam(), "ReduceScatter", block, {members, {"reduction", std::string("mean")}}),
         [&](int p, int64_t i) { return own(p, i) / size; });
}

TEST_P(CollectiveGradients, OfAllToAllAndBarrier) {
  const int size = GetParam().size;
  const int64_t block = rows / size;
  expect(gradients(GetParam(), "AllToAll", rows, {{"size", int64_t{size}}}),
         [&](int p, int64_t i) { return weight_of(static_cast<int>(i / block), p * block + i % block); });
  expect(gradients(GetParam(), "Barrier", rows, {}), weight_of);
}

TEST(GradientsOfCollectives, OfTheGreatestAreRefused) {
  NetBuilder b("net");
  const ValueId x = b.input("x", DType::f32, {2});
  const ValueId y = b.add1("AllReduce", "y", {x}, {{"communicator", world}, {"reduction", std::string("max")}}, "heddle");
  b.add1("ReduceSum", "loss", {y}, {{"keepdims", int64_t{0}}});
  std::vector<Net> all;
  all.push_back(b.finish());
  auto nets = Nets::of(std::move(all));
  ASSERT_TRUE(nets.ok());
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"x"};
  const auto made = nets->add_gradients(runtime_with_devices(), "net", options, "net");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().text().find("the reduction max has no gradient, only sum and mean"), std::string::npos) << made.status().text();
}

}  // namespace
}  // namespace heddle
