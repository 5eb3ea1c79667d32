// Each collective gives each participant its result, on ranks of the host and on devices.
#include <cmath>
#include <cstdint>

#include "collectives/participants.h"
#include "heddle/op/half_floats.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE_OF(Collectives, crews_of_all_kinds);

// Adds one collective over all inputs.
Body collective(const std::string& type, std::vector<Attribute> attributes = {}) {
  attributes.push_back({"communicator", world});
  return [type, attributes](NetBuilder& b, const std::vector<ValueId>& inputs, const std::string& suffix) {
    return b.add(type, "collective" + suffix, inputs, inputs.size(), attributes, "heddle");
  };
}

template <class T>
struct Numbers {
  static constexpr DType dtype = DType::f32;
};
template <>
struct Numbers<double> {
  static constexpr DType dtype = DType::f64;
};
template <>
struct Numbers<int32_t> {
  static constexpr DType dtype = DType::i32;
};
template <>
struct Numbers<int64_t> {
  static constexpr DType dtype = DType::i64;
};
template <>
struct Numbers<plugin::f16> {
  static constexpr DType dtype = DType::f16;
};
template <>
struct Numbers<plugin::bf16> {
  static constexpr DType dtype = DType::bf16;
};

template <class T>
Array tensor(const Shape& shape, const std::function<double(int64_t)>& value) {
  std::vector<T> values;
  for (int64_t i = 0; i < shape.element_count(); ++i) values.push_back(static_cast<T>(static_cast<plugin::wide_t<T>>(value(i))));
  return Array::of(Numbers<T>::dtype, shape, values);
}

// Both have the same bits, but for which NaN it is.
template <class T>
void expect_same_numbers(const Array& found, const Array& expected) {
  const std::vector<T> a = found.as<T>(), b = expected.as<T>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (!std::is_integral_v<T>)
      if (std::isnan(static_cast<plugin::wide_t<T>>(a[i])) && std::isnan(static_cast<plugin::wide_t<T>>(b[i]))) continue;
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0) << i;
  }
}

template <class T>
void check_reductions(const Crew& crew) {
  SCOPED_TRACE(to_string(Numbers<T>::dtype));
  const Shape shape{5};
  const auto value = [](int p, int64_t i) { return static_cast<double>((p + i) % 3 + 1); };
  const std::vector<std::pair<const char*, std::function<double(double, double)>>> reductions = {
      {"sum", [](double a, double b) { return a + b; }},
      {"min", [](double a, double b) { return std::min(a, b); }},
      {"max", [](double a, double b) { return std::max(a, b); }},
      {"prod", [](double a, double b) { return a * b; }}};
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p) inputs.push_back({tensor<T>(shape, [&](int64_t i) { return value(p, i); })});
  for (const auto& [name, combine] : reductions) {
    if (std::string(name) == "prod" && crew.size > 8) continue;  // too large for 16 bits
    SCOPED_TRACE(name);
    const Array expected = tensor<T>(shape, [&, combine = combine](int64_t i) {
      double all = value(0, i);
      for (int p = 1; p < crew.size; ++p) all = combine(all, value(p, i));
      return all;
    });
    for (const Outcome& outcome : run(crew, inputs, collective("AllReduce", {{"reduction", std::string(name)}}))) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
      EXPECT_EQ(outcome.outputs[0], expected);
    }
  }
}

TEST_P(Collectives, ReduceEveryDtype) {
  check_reductions<float>(GetParam());
  check_reductions<double>(GetParam());
  check_reductions<int32_t>(GetParam());
  check_reductions<int64_t>(GetParam());
  check_reductions<plugin::f16>(GetParam());
  check_reductions<plugin::bf16>(GetParam());
}

// Numbers of every size and sign; floats are NaN and zeros of both signs here and there, integers wrap. Some 33,000 of them, so that
// devices share the work.
template <class T>
std::vector<Arrays> wild_numbers(int participants) {
  std::vector<Arrays> all;
  for (int p = 0; p < participants; ++p)
    all.push_back({tensor<T>({33'001}, [&](int64_t i) -> double {
      if (i % 97 == p && std::is_floating_point_v<plugin::wide_t<T>>) return NAN;
      if (i % 89 == 0) return p % 2 == 0 ? 0.0 : -0.0;
      return std::sin(static_cast<double>(p * 7919 + i)) * std::pow(10, (p + i) % (std::is_integral_v<T> ? 10 : 4));
    })});
  return all;
}

template <class T>
void expect_the_bits_of_ranks(const Crew& crew) {
  SCOPED_TRACE(to_string(Numbers<T>::dtype));
  const std::vector<Arrays> inputs = wild_numbers<T>(crew.size);
  for (const char* const reduction : {"sum", "mean", "min", "max", "prod"}) {
    SCOPED_TRACE(reduction);
    const Body body = collective("AllReduce", {{"reduction", std::string(reduction)}});
    const std::vector<Outcome> found = run(crew, inputs, body), expected = run({crew.size, false}, inputs, body, 1, "bits");
    for (size_t p = 0; p < found.size(); ++p) {
      ASSERT_TRUE(found[p].status.ok() && expected[p].status.ok()) << found[p].status.text() << expected[p].status.text();
      expect_same_numbers<T>(found[p].outputs[0], expected[0].outputs[0]);
    }
  }
}

TEST_P(Collectives, HaveTheBitsOfRanks) {
  if (GetParam().kind != "gloo" && (!GetParam().devices || GetParam().size > 8)) return;
  expect_the_bits_of_ranks<float>(GetParam());
  expect_the_bits_of_ranks<double>(GetParam());
  expect_the_bits_of_ranks<int32_t>(GetParam());
  expect_the_bits_of_ranks<int64_t>(GetParam());
  expect_the_bits_of_ranks<plugin::f16>(GetParam());
  expect_the_bits_of_ranks<plugin::bf16>(GetParam());
}

// Tensors of every length that goes another way between processes (plugins/cpu/collective/rank_collectives.h), alone and several together.
TEST_P(Collectives, OfEveryLengthHaveTheBitsOfRanksOfOneProcess) {
  const Crew crew = GetParam();
  if (crew.kind != "gloo" || crew.size > 4) return;
  const std::vector<std::pair<const char*, std::vector<Attribute>>> collectives = {{"AllReduce", {}},
                                                                                   {"Reduce", {{"root", int64_t{crew.size - 1}}}},
                                                                                   {"ReduceScatter", {{"size", int64_t{crew.size}}}},
                                                                                   {"AllGather", {{"size", int64_t{crew.size}}}},
                                                                                   {"AllToAll", {{"size", int64_t{crew.size}}}},
                                                                                   {"Broadcast", {{"root", int64_t{crew.size - 1}}}},
                                                                                   {"Barrier", {}}};
  const auto tensors = [&](const std::vector<int64_t>& rows) {
    std::vector<Arrays> all(static_cast<size_t>(crew.size));
    for (int p = 0; p < crew.size; ++p)
      for (const int64_t each : rows)
        all[static_cast<size_t>(p)].push_back(
            tensor<float>({each * crew.size, 3}, [&](int64_t i) { return std::sin(static_cast<double>(p * 7919 + i)); }));
    return all;
  };
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{1, 2}, {1, 50'000, 3, 1300}, {250'001}}) {
    const std::vector<Arrays> inputs = tensors(rows);
    for (const auto& [type, attributes] : collectives) {
      SCOPED_TRACE(std::string(type) + " of " + std::to_string(rows.back()) + " rows");
      const Body body = collective(type, attributes);
      const std::vector<Outcome> found = run(crew, inputs, body, 2), expected = run({crew.size, false}, inputs, body, 1, "lengths");
      for (size_t p = 0; p < found.size(); ++p) {
        ASSERT_TRUE(found[p].status.ok() && expected[p].status.ok()) << found[p].status.text() << expected[p].status.text();
        EXPECT_TRUE(found[p].outputs == expected[p].outputs) << "rank " << p;
      }
    }
  }
}

// By hand, for three ranks: 16-bit numbers are added in f32 and rounded once, integers wrap and their mean is truncated, a NaN is the least
// and the greatest.
TEST(Reductions, RoundOnceAndWrap) {
  const Crew crew{3, false};
  const auto reduced = [&](const std::string& reduction, const std::vector<Arrays>& inputs) {
    return run(crew, inputs, collective("AllReduce", {{"reduction", reduction}}), 1, "by hand")[1].outputs[0];
  };
  const auto each = [](const auto& make) { return std::vector<Arrays>{{make(0)}, {make(1)}, {make(2)}}; };
  const std::vector<plugin::f16> halves =
      reduced("sum", each([](int p) { return tensor<plugin::f16>({1}, [&](int64_t) { return p == 0 ? 2048.0 : 1.0; }); }))
          .as<plugin::f16>();
  EXPECT_EQ(static_cast<float>(halves[0]), 2050.0F);  // 2048 if 2048 + 1 were rounded
  EXPECT_EQ(reduced("sum", each([](int) { return Array::of(DType::i32, {1}, std::vector<int32_t>{2'000'000'000}); })).as<int32_t>(),
            std::vector<int32_t>{1'705'032'704});
  EXPECT_EQ(reduced("mean", each([](int p) {
                      return Array::of(DType::i64, {2}, std::vector<int64_t>{p == 0 ? 8 : 0, p == 0 ? -8 : 0});
                    }))
                .as<int64_t>(),
            (std::vector<int64_t>{2, -2}));
  for (const char* const reduction : {"min", "max", "sum", "prod", "mean"})
    EXPECT_TRUE(std::isnan(
        reduced(reduction, each([](int p) { return tensor<double>({1}, [&](int64_t) { return p == 1 ? NAN : 1.0; }); })).as<double>()[0]))
        << reduction;
}

TEST_P(Collectives, MeansDivideOnce) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p) inputs.push_back({tensor<double>({2}, [&](int64_t i) { return static_cast<double>(p * 10 + i); })});
  const double n = crew.size, sum = 10 * n * (n - 1) / 2;
  for (const Outcome& outcome : run(crew, inputs, collective("AllReduce", {{"reduction", std::string("mean")}}))) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
    EXPECT_EQ(outcome.outputs[0].as<double>(), (std::vector<double>{sum / n, (sum + n) / n}));
  }
}

// Sums of numbers that round depend on the order: it is that of the tree, on all participants and for any of their orders.
TEST_P(Collectives, AddInATree) {
  const Crew crew = GetParam();
  const int64_t count = 20'001;  // several pieces, and shares of members
  std::vector<Arrays> inputs;
  std::vector<std::vector<float>> values;
  for (int p = 0; p < crew.size; ++p) {
    inputs.push_back(
        {tensor<float>({count}, [&](int64_t i) { return std::sin(static_cast<double>(p * 7919 + i)) * std::pow(10, p % 5); })});
    values.push_back(inputs.back()[0].as<float>());
  }
  const std::function<float(size_t, size_t, size_t)> tree = [&](size_t begin, size_t end, size_t i) -> float {
    if (end - begin == 1) return values[begin][i];
    size_t half = 1;
    while (2 * half < end - begin) half *= 2;
    return tree(begin, begin + half, i) + tree(begin + half, end, i);
  };
  std::vector<float> expected;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) expected.push_back(tree(0, values.size(), i));
  for (const Outcome& outcome : run(crew, inputs, collective("AllReduce"), 3)) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
    EXPECT_EQ(outcome.outputs[0].as<float>(), expected);
  }
}

// Participant p has c tensors with the values p * c + i, as in Gloo's own tests: all that is added is 0 + 1 + ... + (n c - 1).
TEST_P(Collectives, AddSeveralTensorsInOneStep) {
  const Crew crew = GetParam();
  for (const int c : {1, 3}) {
    std::vector<Arrays> inputs;
    for (int p = 0; p < crew.size; ++p) {
      Arrays& own = inputs.emplace_back();
      for (int i = 0; i < c; ++i) own.push_back(tensor<plugin::f16>({i + 1}, [&](int64_t) { return p * c + i; }));
    }
    const int n = crew.size;
    for (const Outcome& outcome : run(crew, inputs, collective("AllReduce"), 5)) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
      double all = 0;
      for (int i = 0; i < c; ++i) {
        const std::vector<plugin::f16> sums = outcome.outputs[static_cast<size_t>(i)].as<plugin::f16>();
        ASSERT_EQ(sums.size(), static_cast<size_t>(i) + 1);
        for (const plugin::f16 sum : sums) EXPECT_EQ(static_cast<float>(sum), static_cast<float>(sums[0]));
        all += static_cast<float>(sums[0]);
      }
      EXPECT_EQ(all, n * c * (n * c - 1) / 2);
    }
  }
}

TEST_P(Collectives, BroadcastTheRoot) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  const auto wide = [](int p) { return std::vector<int64_t>{9007199254740993 + p, -p}; };
  for (int p = 0; p < crew.size; ++p) inputs.push_back({Array::of(DType::i64, {2}, wide(p))});
  for (int64_t root = 0; root < crew.size; ++root)
    for (const Outcome& outcome : run(crew, inputs, collective("Broadcast", {{"root", root}}))) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
      EXPECT_EQ(outcome.outputs[0].as<int64_t>(), wide(static_cast<int>(root)));
    }
}

TEST_P(Collectives, ReduceToTheRoot) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p) inputs.push_back({tensor<int32_t>({3}, [&](int64_t i) { return static_cast<double>(p + i); })});
  const int n = crew.size, first = n * (n - 1) / 2;
  for (int64_t root = 0; root < n; ++root) {
    const std::vector<Outcome> outcomes = run(crew, inputs, collective("Reduce", {{"root", root}}));
    for (size_t p = 0; p < outcomes.size(); ++p) {
      ASSERT_TRUE(outcomes[p].status.ok()) << outcomes[p].status.text();
      const bool has_sum = static_cast<int64_t>(p) == root;
      EXPECT_EQ(outcomes[p].outputs[0].as<int32_t>(),
                (has_sum ? std::vector<int32_t>{first, first + n, first + 2 * n} : std::vector<int32_t>{0, 0, 0}));
    }
  }
}

TEST_P(Collectives, GatherRows) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  std::vector<float> all;
  for (int p = 0; p < crew.size; ++p) {
    inputs.push_back({tensor<float>({2, 2}, [&](int64_t i) { return static_cast<double>(10 * p + i); })});
    for (const float value : inputs.back()[0].as<float>()) all.push_back(value);
  }
  for (const Outcome& outcome : run(crew, inputs, collective("AllGather", {{"size", int64_t{crew.size}}}))) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
    EXPECT_EQ(outcome.outputs[0].shape, (Shape{2 * crew.size, 2}));
    EXPECT_EQ(outcome.outputs[0].as<float>(), all);
  }
}

TEST_P(Collectives, ScatterWhatIsReduced) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p)
    inputs.push_back({tensor<float>({2 * crew.size}, [&](int64_t i) { return static_cast<double>(p + i); })});
  const float n = static_cast<float>(crew.size), ranks = n * (n - 1) / 2;
  const std::vector<Outcome> outcomes = run(crew, inputs, collective("ReduceScatter", {{"size", int64_t{crew.size}}}));
  for (size_t p = 0; p < outcomes.size(); ++p) {
    ASSERT_TRUE(outcomes[p].status.ok()) << outcomes[p].status.text();
    const float at = static_cast<float>(2 * p);
    EXPECT_EQ(outcomes[p].outputs[0].as<float>(), (std::vector<float>{ranks + n * at, ranks + n * (at + 1)}));
  }
}

TEST_P(Collectives, ExchangeBlocks) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p)
    inputs.push_back({tensor<float>({crew.size, 1}, [&](int64_t i) { return static_cast<double>(100 * p + i); })});
  const std::vector<Outcome> outcomes = run(crew, inputs, collective("AllToAll", {{"size", int64_t{crew.size}}}));
  for (size_t p = 0; p < outcomes.size(); ++p) {
    ASSERT_TRUE(outcomes[p].status.ok()) << outcomes[p].status.text();
    std::vector<float> expected;
    for (int from = 0; from < crew.size; ++from) expected.push_back(static_cast<float>(100 * from) + static_cast<float>(p));
    EXPECT_EQ(outcomes[p].outputs[0].as<float>(), expected);
  }
}

TEST_P(Collectives, MeetAtABarrierTwice) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p) inputs.push_back({tensor<float>({1}, [&](int64_t) { return p; })});
  const Body twice = [](NetBuilder& b, const std::vector<ValueId>& x, const std::string& suffix) {
    const ValueId once = b.add1("Barrier", "first" + suffix, x, {{"communicator", world}}, "heddle");
    return std::vector<ValueId>{b.add1("Barrier", "second" + suffix, {once}, {{"communicator", world}}, "heddle")};
  };
  const std::vector<Outcome> outcomes = run(crew, inputs, twice, 2);
  for (size_t p = 0; p < outcomes.size(); ++p) {
    ASSERT_TRUE(outcomes[p].status.ok()) << outcomes[p].status.text();
    EXPECT_EQ(outcomes[p].outputs, inputs[p]);
  }
}

// A value that is not used later may be reduced in place: one that is may not.
TEST_P(Collectives, MayWorkInPlace) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs;
  for (int p = 0; p < crew.size; ++p)
    inputs.push_back({tensor<float>({10'000}, [&](int64_t i) { return static_cast<double>(p + i % 100); })});
  for (const bool used_later : {false, true}) {
    const Body body = [&](NetBuilder& b, const std::vector<ValueId>& x, const std::string& suffix) {
      const ValueId negative = b.add1("Neg", "negative" + suffix, x);
      ValueId all = b.add1("AllReduce", "sum" + suffix, {negative}, {{"communicator", world}}, "heddle");
      if (used_later) all = b.add1("Sub", "others" + suffix, {all, negative});
      return std::vector<ValueId>{b.add1("Neg", "y" + suffix, {all})};
    };
    const std::vector<Outcome> outcomes = run(crew, inputs, body, 2);
    const auto n = static_cast<float>(crew.size);
    for (size_t p = 0; p < outcomes.size(); ++p) {
      ASSERT_TRUE(outcomes[p].status.ok()) << outcomes[p].status.text();
      const std::vector<float> y = outcomes[p].outputs[0].as<float>(), x = inputs[p][0].as<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        const float sum = n * (n - 1) / 2 + n * static_cast<float>(i % 100);
        ASSERT_EQ(y[i], used_later ? sum - x[i] : sum) << i;
      }
    }
  }
}

TEST_P(Collectives, TakeTensorsWithoutElements) {
  const Crew crew = GetParam();
  std::vector<Arrays> inputs(static_cast<size_t>(crew.size), {Array::of(DType::f32, {0, 3}, std::vector<float>())});
  for (const char* const type : {"AllReduce", "Barrier"})
    for (const Outcome& outcome : run(crew, inputs, collective(type)))
      EXPECT_TRUE(outcome.status.ok()) << type << ": " << outcome.status.text();
}

TEST_P(Collectives, NameWhatIsWrong) {
  const Crew crew = GetParam();
  const std::string n = std::to_string(crew.size);
  const std::vector<Arrays> inputs(static_cast<size_t>(crew.size),
                                   {tensor<float>({12, 1}, [](int64_t i) { return static_cast<double>(i); })});
  const auto expect = [&](const Body& body, const std::string& text) {
    for (const Outcome& outcome : run(crew, inputs, body)) {
      EXPECT_FALSE(outcome.status.ok());
      EXPECT_NE(outcome.status.text().find(text), std::string::npos) << text << "\n" << outcome.status.text();
    }
  };
  expect(collective("Broadcast", {{"root", int64_t{crew.size}}}), "root is " + n + ", and the communicator has the participants 0 to");
  expect(collective("AllGather", {{"size", int64_t{12}}}), "size is 12, and the communicator has " + n + " participants");
  expect(collective("AllGather", {{"size", int64_t{0}}}), "size is 0, expected the number of participants");
  expect(collective("AllToAll", {{"size", int64_t{7}}}), "has 12 rows, which are not 7 equal blocks");
  expect(collective("AllReduce", {{"reduction", std::string("or")}}), "reduction is \"or\", expected sum, mean, min, max or prod");
}

}  // namespace
}  // namespace heddle
