// Updates of tables by rows: a refused update changes nothing, rows without an index stay the same bit by bit, and where every row has one
// index the result is that of the update of the whole.
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>

#include "operators/kernel_run.h"

namespace heddle::testing {
namespace {

constexpr int64_t table_rows = 300, length = 67;

Tensor random(const Shape& shape, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  for (float& v : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<float>(seed >> 40) * 0x1p-24f;
  }
  return tensor<float>(shape, values);
}
Tensor indices(const std::vector<int64_t>& values) {
  return tensor<int64_t>({static_cast<int64_t>(values.size())}, values);
}
Tensor rate() {
  return tensor<float>({}, {0.125f});
}

OperatorCall update(const char* type, std::vector<Tensor> inputs, size_t variables, std::vector<Attribute> attributes = {}) {
  OperatorCall call = call_of(type, std::move(inputs), std::move(attributes), variables);
  call.domain = "heddle";
  for (uint32_t i = 0; i < variables; ++i) call.in_place.push_back({i, i});
  return call;
}
bool same_row(const Tensor& a, const Tensor& b, int64_t row) {
  const size_t bytes = length * sizeof(float);
  return std::memcmp(a->data + static_cast<size_t>(row) * bytes, b->data + static_cast<size_t>(row) * bytes, bytes) == 0;
}

// Keeps the memory of the outputs, also of a call that fails.
class WrittenOutputs final : public CallObserver {
 public:
  std::byte* allocate(Memory of, uint32_t, int64_t bytes) override {
    std::vector<std::max_align_t>& memory =
        (of == Memory::output ? outputs_ : others_).emplace_back(static_cast<size_t>(bytes) / sizeof(std::max_align_t) + 5);
    void* data = memory.data();
    size_t space = memory.size() * sizeof(std::max_align_t);
    auto* const aligned = static_cast<std::byte*>(std::align(64, static_cast<size_t>(bytes), data, space));
    if (of == Memory::output) places_.push_back({aligned, bytes});
    return aligned;
  }
  void prepared(int64_t, uint32_t) override {}
  void run_begins() override {}
  void run_ended() override {}
  bool all_are(std::byte value) const {
    bool all = !places_.empty();
    for (const auto& [data, bytes] : places_)
      for (int64_t i = 0; i < bytes; ++i) all = all && data[i] == value;
    return all;
  }

 private:
  std::deque<std::vector<std::max_align_t>> outputs_, others_;
  std::vector<std::pair<const std::byte*, int64_t>> places_;
};

TEST(OptimizerRows, OnlyRowsThatAreNamedChange) {
  const Tensor w = random({table_rows, length}, 1), velocity = random({table_rows, length}, 2);
  const std::vector<int64_t> named = {7, 299, -1, 7, 0};
  const auto outputs =
      run_operator(cpu_registry(),
                   update("MomentumUpdateRows", {w, velocity, indices(named), random({5, length}, 3), rate()}, 2, {{"weight_decay", 0.5}}));
  ASSERT_TRUE(outputs.ok()) << outputs.status().text();
  for (int64_t row = 0; row < table_rows; ++row) {
    const bool is_named = row == 7 || row == 299 || row == 0;
    EXPECT_EQ(same_row(w, (*outputs)[0], row), !is_named) << row;
    EXPECT_EQ(same_row(velocity, (*outputs)[1], row), !is_named) << row;
  }
}

// SparseAdam has another epsilon, except for the value 0.
TEST(OptimizerRows, OfEveryRowOnceIsTheUpdateOfTheWhole) {
  const Tensor w = random({table_rows, length}, 1), first = random({table_rows, length}, 2), second = random({table_rows, length}, 3);
  const Tensor g = random({table_rows, length}, 4);
  std::vector<int64_t> all;
  for (int64_t row = 0; row < table_rows; ++row) all.push_back(row % 2 ? row : row - table_rows);
  for (const char* type : {"SgdUpdate", "MomentumUpdate", "AdagradUpdate"}) {
    const bool has_state = type[0] != 'S';
    std::vector<Tensor> whole = {w}, by_rows = {w};
    if (has_state) whole.push_back(first), by_rows.push_back(first);
    whole.insert(whole.end(), {g, rate()});
    by_rows.insert(by_rows.end(), {indices(all), g, rate()});
    const size_t variables = has_state ? 2 : 1;
    const auto expected = run_operator(cpu_registry(), update(type, whole, variables));
    const auto outputs = run_operator(cpu_registry(), update((std::string(type) + "Rows").c_str(), by_rows, variables));
    ASSERT_TRUE(expected.ok() && outputs.ok()) << outputs.status().text();
    for (size_t o = 0; o < variables; ++o)
      EXPECT_EQ(std::memcmp((*expected)[o]->data, (*outputs)[o]->data, static_cast<size_t>((*expected)[o]->bytes)), 0) << type << " " << o;
  }
}

TEST(OptimizerRows, AnIndexOutsideIsRefusedBeforeAnythingIsWritten) {
  for (const int64_t outside : {table_rows, -table_rows - 1, INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> named;
    for (int64_t i = 0; i < table_rows; ++i) named.push_back(i);
    named.push_back(outside);  // the last one
    const Tensor w = random({table_rows, length}, 1), squares = random({table_rows, length}, 2);
    OperatorCall call = update("AdagradUpdateRows", {w, squares, indices(named), random({table_rows + 1, length}, 3), rate()}, 2);
    call.in_place.clear();  // so that written bytes show
    call.conditions.output_fill = uint8_t{0xa5};
    WrittenOutputs written;
    call.conditions.observer = &written;
    const auto outputs = run_operator(cpu_registry(), call);
    ASSERT_FALSE(outputs.ok());
    const std::string text = outputs.status().text();
    EXPECT_NE(text.find("index " + std::to_string(outside) + " is outside [-300, 299]"), std::string::npos) << text;
    EXPECT_NE(text.find("AdagradUpdateRows"), std::string::npos) << text;
    EXPECT_TRUE(written.all_are(std::byte{0xa5}));
  }
}

TEST(OptimizerRows, AStepThatIsNoneIsRefused) {
  const Tensor w = random({2, length}, 1);
  const auto outputs = run_operator(
      cpu_registry(), update("AdamUpdateRows", {w, w, w, indices({0}), random({1, length}, 3), rate(), tensor<int64_t>({}, {0})}, 3));
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.status().text().find("step is 0"), std::string::npos) << outputs.status().text();
}

}  // namespace
}  // namespace heddle::testing
