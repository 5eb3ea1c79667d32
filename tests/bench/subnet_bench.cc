// Measures how much of the time of subnets and late steps a second thread takes over.
//
//   heddle_subnet_bench [NET.heddle]
//
// Runs a Loop whose body is a product of two 512 x 512 matrices, a NonZero followed by wide work, and, with a net (encoder.heddle, of
// `heddle model encoder`), an If around the second half of its operators. Each must give the same bits on 1, 2, 3 and 8 threads and in 200
// random orders; otherwise the program ends. Then alternates runs on one and two threads and takes medians: the share is the part of the
// step time of one thread that two threads save, which the second one must have done.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "load/load.h"
#include "must.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

Runtime runtime(int threads) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN};
  options.default_plugins = false;
  options.threads = threads;
  return must(Runtime::create(options));
}

std::shared_ptr<const Blob> blob(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) * 0.01F - 0.06F;
  return Blob::copy_of(DType::f32, shape, values.data());
}

Net loop() {
  constexpr int64_t side = 512, trips = 8;
  NetBuilder body("body"), b("loop");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  body.output(
      body.add1("MatMul", "product", {body.input("x", DType::f32, Shape{side, side}), body.constant("w", blob(Shape{side, side}))}));
  b.output(b.add1("Loop", "loop",
                  {b.constant("trips", Blob::copy_of(DType::i64, Shape{}, &trips)),
                   b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, "\1")), b.input("x", DType::f32, Shape{side, side})},
                  {{"body", std::make_shared<const Net>(body.finish())}}));
  return b.finish();
}

// The number of rows of the product is the number of elements of x other than 0.
Net found() {
  constexpr int64_t rows = 600, width = 512;
  NetBuilder b("found");
  const ValueId where = b.add1("NonZero", "where", {b.input("x", DType::f32, Shape{rows})});
  const ValueId row = b.add1("Squeeze", "row", {where, b.constant_ints("first", {0})});
  const ValueId picked = b.add1("Gather", "picked", {b.constant("table", blob(Shape{rows, width})), row});
  const ValueId product = b.add1("MatMul", "product", {picked, b.constant("w", blob(Shape{width, width}))});
  b.output(b.add1("ReduceSum", "sums", {b.add1("Softmax", "softmax", {b.add1("Exp", "exp", {product})}), b.constant_ints("rows", {0})}));
  return b.finish();
}

// Moves the second half of the operators into both branches of an If, whose condition is one more input.
Net halved(const Net& whole) {
  const size_t half = whole.nodes.size() / 2;
  NetBuilder outer(whole.name), inner("half");
  std::map<uint32_t, ValueId> around, inside;
  std::vector<ValueId> handed;
  const auto constant = [&](NetBuilder& b, const Value& value) { return b.constant(value.name, value.content.blob); };
  const auto first = [&](ValueId id) {
    const auto [at, made] = around.try_emplace(id.index);
    if (made) at->second = constant(outer, whole[id]);  // the others are there already
    return at->second;
  };
  const auto second = [&](ValueId id) {
    const auto [at, made] = inside.try_emplace(id.index);
    if (!made) return at->second;
    if (whole[id].kind == Value::Kind::constant) return at->second = constant(inner, whole[id]);
    handed.push_back(id);
    return at->second = inner.input(whole[id].name, DeclaredType());
  };
  for (const ValueId id : whole.inputs) around[id.index] = outer.input(whole[id].name, whole[id].type);
  for (size_t i = 0; i < whole.nodes.size(); ++i) {
    const Node& node = whole.nodes[i];
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(!id.valid() ? id : i < half ? first(id) : second(id));
    NetBuilder& b = i < half ? outer : inner;
    const auto made = b.add(node.type, node.name, std::move(inputs), node.outputs.size(), node.attributes, node.domain);
    for (size_t k = 0; k < made.size(); ++k) (i < half ? around : inside)[node.outputs[k].index] = made[k];
  }
  for (const ValueId id : whole.outputs) inner.output(second(id));
  std::vector<ValueId> inputs = {outer.input("condition", DType::boolean, Shape{})};
  for (const ValueId id : handed) inputs.push_back(first(id));
  inner.net().operator_sets = outer.net().operator_sets = whole.operator_sets;
  const auto branch = std::make_shared<const Net>(inner.finish());
  for (const ValueId id : outer.add("If", "halved", inputs, whole.outputs.size(), {{"then_branch", branch}, {"else_branch", branch}}))
    outer.output(id);
  return outer.finish();
}

struct Bound {
  Session session;
  Context context;
  std::vector<std::vector<std::byte>> inputs;
};

Bound bind(const Runtime& runtime, Net net, uint64_t shuffle = 0) {
  Session session = must(runtime.open(std::move(net), SessionOptions()));
  Internals::of(session).scheduler.shuffle_seed = shuffle;
  Bound bound = {session, must(session.prepare()), {}};
  for (size_t i = 0; i < bound.context.input_count(); ++i) {
    const TensorView view = bound.context.input(i);
    std::vector<std::byte>& bytes = bound.inputs.emplace_back(static_cast<size_t>(view.byte_size()), std::byte{1});
    if (view.dtype == DType::f32)
      for (size_t k = 0; k < bytes.size() / sizeof(float); ++k) {
        const float value = static_cast<float>(k % 11) * 0.1F + 0.1F;
        std::memcpy(bytes.data() + k * sizeof(float), &value, sizeof(float));
      }
    if (view.dtype == DType::i64)
      for (size_t k = 0; k < bytes.size() / sizeof(int64_t); ++k) {
        const int64_t value = static_cast<int64_t>(k % 7);
        std::memcpy(bytes.data() + k * sizeof(int64_t), &value, sizeof(int64_t));
      }
    must(bound.context.bind_input(i, bytes.data()));
  }
  return bound;
}

std::vector<char> result(Bound& bound) {
  must(bound.context.run());
  std::vector<char> all;
  for (size_t i = 0; i < bound.context.output_count(); ++i) {
    const TensorView y = bound.context.output(i);
    all.insert(all.end(), static_cast<const char*>(y.data), static_cast<const char*>(y.data) + y.byte_size());
  }
  return all;
}

double run_ms(Bound& bound) {
  const Clock::time_point begin = Clock::now();
  must(bound.context.run());
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const char* name, const Net& net) {
  std::vector<char> expected;
  for (const int threads : {1, 2, 3, 8}) {
    const Runtime each = runtime(threads);
    for (uint64_t shuffle = 0; shuffle <= (threads == 1 ? 0u : threads == 2 ? 200u : 20u); ++shuffle) {
      Bound bound = bind(each, net, shuffle);
      const std::vector<char> got = result(bound);
      if (expected.empty()) expected = got;
      if (got == expected) continue;
      std::fprintf(stderr, "%s: other bits on %d threads, order %d\n", name, threads, static_cast<int>(shuffle));
      std::exit(1);
    }
  }
  const Runtime alone = runtime(1), both = runtime(2);
  Bound one = bind(alone, net), two = bind(both, net);
  for (int i = 0; i < 10; ++i) run_ms(one), run_ms(two);
  std::vector<double> one_ms, two_ms;
  for (int i = 0; i < 41; ++i) one_ms.push_back(run_ms(one)), two_ms.push_back(run_ms(two));
  const double m1 = median(one_ms), m2 = median(two_ms);
  std::printf("%-24s same bits on 1, 2, 3, 8 threads, 240 orders; 1 thread %7.2f ms, 2 threads %7.2f ms, share of the second %4.1f %%\n",
              name, m1, m2, 100 * (1 - m2 / m1));
  std::fflush(stdout);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  measure("Loop of 512 x 512", loop());
  measure("NonZero and wide work", found());
  if (argc > 1) measure("If around a half", halved(must(load_net(argv[1]))));
}
