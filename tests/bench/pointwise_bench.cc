// Measures the encoder's pointwise work (128 x 768, 12 layers): layer normalisation, GELU after a bias, softmax; and single functions, per
// element. One thread; divide by two for two threads. HEDDLE_CPU_ISA=v2|v3|v4 chooses the instruction set level.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "normalization/normalization_rows.h"
#include "pointwise/pointwise_program.h"
#include "reduce/reduce_rows.h"
#include "reduce/softmax_rows.h"

namespace heddle::cpu {
namespace {

std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(static_cast<int>(i * 7919 % 2000) - 1000) / 250.0f;
  return v;
}
Program compiled(const std::string& text, std::vector<std::string> inputs) {
  Program program;
  ProgramText source;
  source.text = text;
  source.input_dtypes.assign(inputs.size(), HEDDLE_F32);
  source.inputs = std::move(inputs);
  source.output_dtype = HEDDLE_F32;
  if (!Program::compile(source, &program).ok()) std::abort();
  return program;
}
struct alignas(64) Line {
  char bytes[64];
};

void report(benchmark::State& state, int64_t elements) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * elements);
}

void gelu_epilogue(benchmark::State& state) {
  constexpr int64_t rows = 128, columns = 3072;
  const Program program = compiled("t = acc + bias; 0.5 * t * (1 + erf(0.7071067811865476 * t))", {"acc", "bias"});
  std::vector<float> tile = ramp(rows * columns), bias = ramp(columns), y(tile.size());
  std::vector<Line> scratch(program.scratch_bytes() / 64 + 1);
  const Source sources[] = {{tile.data(), columns, 1}, {bias.data(), 0, 1}};
  for (auto _ : state) {
    program.run_rows(sources, y.data(), columns, rows, columns, scratch.data());
    benchmark::ClobberMemory();
  }
  report(state, rows * columns);
}
BENCHMARK(gelu_epilogue)->Unit(benchmark::kMicrosecond);

void layer_normalization(benchmark::State& state) {
  constexpr int64_t rows = 128, columns = 768;
  const std::vector<float> x = ramp(rows * columns), scale = ramp(columns), bias = ramp(columns);
  std::vector<float> y(x.size());
  const NormalizationTable& table = isa_normalizations();
  for (auto _ : state) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = &x[static_cast<size_t>(r * columns)];
      const auto shift = static_cast<float>(table.sum(row, columns) / columns);
      double sum = 0, squares = 0;
      table.centred_sums(row, columns, shift, &sum, &squares);
      const double rest = sum / columns, factor = 1 / std::sqrt(squares / columns - rest * rest + 1e-5);
      table.apply(row, &y[static_cast<size_t>(r * columns)], columns, shift, static_cast<float>(factor), static_cast<float>(-rest * factor),
                  scale.data(), bias.data());
    }
    benchmark::ClobberMemory();
  }
  report(state, rows * columns);
}
BENCHMARK(layer_normalization)->Unit(benchmark::kMicrosecond);

void softmax_of_attention(benchmark::State& state) {
  constexpr int64_t rows = 12 * 128, columns = 128;
  const std::vector<float> x = ramp(rows * columns);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    isa_softmaxes().rows[softmax_plain](x.data(), y.data(), rows, columns);
    benchmark::ClobberMemory();
  }
  report(state, rows * columns);
}
BENCHMARK(softmax_of_attention)->Unit(benchmark::kMicrosecond);

void function_of_one(benchmark::State& state, const char* text) {
  constexpr int64_t n = 16384;
  const Program program = compiled(text, {"x"});
  const std::vector<float> x = ramp(n);
  std::vector<float> y(n);
  std::vector<Line> scratch(program.scratch_bytes() / 64 + 1);
  const Source source = {x.data(), 0, 1};
  for (auto _ : state) {
    program.run_rows(&source, y.data(), n, 1, n, scratch.data());
    benchmark::ClobberMemory();
  }
  report(state, n);
}
BENCHMARK_CAPTURE(function_of_one, relu, "max(x, 0)");
BENCHMARK_CAPTURE(function_of_one, exp, "exp(x)");
BENCHMARK_CAPTURE(function_of_one, tanh, "tanh(x)");
BENCHMARK_CAPTURE(function_of_one, erf, "erf(x)");
BENCHMARK_CAPTURE(function_of_one, sigmoid, "sigmoid(x)");
BENCHMARK_CAPTURE(function_of_one, log, "log(abs(x))");
BENCHMARK_CAPTURE(function_of_one, pow, "pow(abs(x), 1.7)");
BENCHMARK_CAPTURE(function_of_one, sin, "sin(x)");

void bias_of_channels(benchmark::State& state, int64_t spatial) {
  const Program program = compiled("max(x + b, 0)", {"x", "b"});
  const int64_t channels = 65536 / spatial;
  const std::vector<float> x = ramp(static_cast<size_t>(channels * spatial)), b = ramp(static_cast<size_t>(channels));
  std::vector<float> y(x.size());
  std::vector<Line> scratch(program.scratch_bytes() / 64 + 1);
  const Source sources[] = {{x.data(), spatial, 1}, {b.data(), 1, 0}};
  for (auto _ : state) {
    program.run_rows(sources, y.data(), spatial, channels, spatial, scratch.data());
    benchmark::ClobberMemory();
  }
  report(state, channels * spatial);
}
BENCHMARK_CAPTURE(bias_of_channels, rows_of_49, 49);
BENCHMARK_CAPTURE(bias_of_channels, rows_of_784, 784);

void sum_of_a_million(benchmark::State& state) {
  const std::vector<float> x = ramp(1000000);
  for (auto _ : state) {
    double sum = 0;
    isa_folds().functions[fold_f32][fold_sum].row(x.data(), 1000000, nullptr, &sum);
    benchmark::DoNotOptimize(sum);
  }
  report(state, 1000000);
}
BENCHMARK(sum_of_a_million)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle::cpu

BENCHMARK_MAIN();
