// Sessions on the CUDA device of the stand-in, besides sessions on the host.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cuda/standin_tests/standin_support.h"
#include "session/session_impl.h"

namespace heddle::cuda::testing_standin {

inline Runtime cuda_runtime(int threads = 1) {
  Standin::get();  // the plugin finds it when a device is requested
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/cuda.so"};
  options.default_plugins = false;
  options.threads = threads;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline SessionOptions on_cuda(int streams = 1) {
  SessionOptions options;
  options.device = "cuda:0";
  options.copies = Copies::automatic;
  options.streams = streams;
  return options;
}

// Returns small numbers of any dtype, many of them equal.
inline std::shared_ptr<const Blob> small_numbers(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 dice(seed);
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    const auto number = static_cast<int>(dice() % 25) - 12;
    const auto f = static_cast<float>(number) / 4;
    const auto d = static_cast<double>(f);
    const auto l = static_cast<int64_t>(number);  // for integers of any width the low bytes
    // Any number from 1 to below 4, of either sign.
    const auto half = static_cast<uint16_t>((number < 0 ? 0x8000 : 0) | (0x3c00 + (dice() % 0x800)));
    uint32_t bits_of_f = 0;
    std::memcpy(&bits_of_f, &f, sizeof(f));
    const auto brain = static_cast<uint16_t>(bits_of_f >> 16);  // multiples of 1/4 up to 3 are exact
    const auto yes = static_cast<uint8_t>(number & 1);
    const bool is_byte = dtype == DType::boolean || dtype == DType::u8;
    const void* const from = dtype == DType::f32    ? static_cast<const void*>(&f)
                             : dtype == DType::f64  ? static_cast<const void*>(&d)
                             : dtype == DType::f16  ? static_cast<const void*>(&half)
                             : dtype == DType::bf16 ? static_cast<const void*>(&brain)
                             : is_byte              ? static_cast<const void*>(&yes)
                                                    : static_cast<const void*>(&l);
    std::memcpy(data + i * byte_width(dtype), from, static_cast<size_t>(byte_width(dtype)));
  }
  return blob;
}

// A session of a net, a context with inputs bound to small numbers, and the objects that they need.
struct Prepared {
  Session session;
  Context context;
  std::vector<std::shared_ptr<const Blob>> inputs;
  const Plan& plan() { return Internals::execution(context).plan(); }
  Device& device() { return *plan().devices[0].device; }
  std::vector<std::vector<char>> outputs() const {
    std::vector<std::vector<char>> all;
    for (size_t i = 0; i < context.output_count(); ++i) {
      const TensorView y = context.output(i);
      const auto* const data = static_cast<const char*>(y.data);
      all.emplace_back(data, data + y.byte_size());
    }
    return all;
  }
};

inline Result<Prepared> prepare(const Runtime& runtime, Net net, const SessionOptions& options) {
  HEDDLE_TRY(Session session, runtime.open(std::move(net), options));
  HEDDLE_TRY(Context context, session.prepare());
  Prepared prepared{std::move(session), std::move(context), {}};
  for (const PortInfo& port : prepared.session.inputs())
    prepared.inputs.push_back(small_numbers(port.dtype, port.shape, prepared.inputs.size() + 1));
  for (size_t i = 0; i < prepared.inputs.size(); ++i) HEDDLE_CHECK(prepared.context.bind_input(i, prepared.inputs[i]->data));
  return prepared;
}

// Builds pointwise operators of f32, f16, i32 and bool, of inputs that broadcast; exact on every device.
inline Net mixed_net() {
  NetBuilder b("mixed");
  const ValueId x = b.input("x", DType::f32, Shape{4, 1, 6}), y = b.input("y", DType::f32, Shape{3, 1});
  const ValueId h = b.input("h", DType::f16, Shape{8, 5}), k = b.input("k", DType::i32, Shape{2, 1, 7});
  const ValueId m = b.input("m", DType::boolean, Shape{4, 3, 1});
  const ValueId sum = b.add1("Add", "sum", {x, y});
  const ValueId product = b.add1("Mul", "product", {sum, x});
  const ValueId greater = b.add1("Greater", "greater", {sum, b.constant("one", small_numbers(DType::f32, Shape{}, 7))});
  b.output(b.add1("Relu", "relu", {b.add1("Where", "where", {greater, product, sum})}));
  b.output(b.add1("And", "and", {m, greater}));
  const ValueId scaled = b.add1("Mul", "scaled", {h, b.constant("scale", small_numbers(DType::f16, Shape{5}, 8))});
  b.output(b.add1("Sub", "difference", {scaled, h}));
  b.output(scaled);
  const ValueId more = b.add1("Add", "more", {k, b.constant("steps", small_numbers(DType::i32, Shape{3, 1}, 9))});
  b.output(b.add1("Mul", "square", {more, more}));
  b.output(b.add1("Not", "not", {m}));
  return b.finish();
}

// Builds x + 1, + 1, ..., each of which is an output, so that nothing is fused.
inline Net chain_net(int links, const Shape& shape) {
  NetBuilder b("chain");
  ValueId v = b.input("x", DType::f32, shape);
  const float one = 1;
  const ValueId step = b.constant("step", Blob::copy_of(DType::f32, Shape{}, &one));
  for (int i = 0; i < links; ++i) b.output(v = b.add1("Add", "n" + std::to_string(i), {v, step}));
  return b.finish();
}

inline std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) all.push_back(word);
  return all;
}

// Returns the calls of one run, without the queries of completion, whose number depends on time.
inline std::vector<std::string> calls_of_a_run(const Standin& cuda, Context& context) {
  cuda.log(1);
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<std::string> calls = words(cuda.logged());
  cuda.log(0);
  std::erase_if(calls, [](const std::string& call) { return call == "cudaEventQuery"; });
  return calls;
}

}  // namespace heddle::cuda::testing_standin
