// Compares operators of f16 and bf16 with their f32 form: microseconds of a run on one thread, the three taking turns, and the ratios.
// Usage: heddle_narrow_bench [milliseconds of each, default 200]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

struct Row {
  const char* type;
  Shape x;
  Shape w = {};  // empty: there are none
  std::vector<Attribute> attributes = {};
};

std::vector<Row> rows() {
  using Ints = std::vector<int64_t>;
  const auto window = [](int64_t kernel, int64_t stride, int64_t pad) {
    return std::vector<Attribute>{{"kernel_shape", Ints{kernel, kernel}}, {"strides", Ints{stride, stride}}, {"pads", Ints(4, pad)}};
  };
  const auto depthwise = [&](int64_t channels, int64_t stride) {
    std::vector<Attribute> attributes = window(3, stride, 1);
    attributes.push_back({"group", channels});
    return attributes;
  };
  return {
      {"MatMul", {64, 256}, {256, 256}},
      {"MatMul", {1, 1024}, {1024, 1024}},
      {"MatMul", {128, 768}, {768, 768}},
      {"MatMul", {128, 512}, {512, 4096}},
      {"MatMul", {512, 512}, {512, 512}},
      {"MatMul", {8, 64, 64}, {64, 64}},
      {"MatMul", {37, 100}, {100, 50}},
      {"Gemm", {64, 256}, {256, 256}},
      {"Gemm", {1, 512}, {512, 1000}},
      {"Gemm", {32, 2048}, {1000, 2048}, {{"transB", 1}}},
      {"Conv", {1, 64, 56, 56}, {64, 64, 3, 3}, window(3, 1, 1)},
      {"Conv", {1, 128, 28, 28}, {128, 128, 3, 3}, window(3, 1, 1)},
      {"Conv", {1, 512, 7, 7}, {512, 512, 3, 3}, window(3, 1, 1)},
      {"Conv", {1, 3, 224, 224}, {64, 3, 7, 7}, window(7, 2, 3)},
      {"Conv", {1, 64, 56, 56}, {128, 64, 3, 3}, window(3, 2, 1)},
      {"Conv", {1, 64, 56, 56}, {256, 64, 1, 1}, window(1, 1, 0)},
      {"Conv", {1, 1024, 14, 14}, {256, 1024, 1, 1}, window(1, 1, 0)},
      {"Conv", {1, 32, 112, 112}, {32, 1, 3, 3}, depthwise(32, 1)},
      {"Conv", {1, 144, 56, 56}, {144, 1, 3, 3}, depthwise(144, 2)},
      {"ConvTranspose", {1, 64, 28, 28}, {64, 32, 2, 2}, window(2, 2, 0)},
      {"MaxPool", {1, 64, 112, 112}, {}, window(3, 2, 1)},
      {"MaxPool", {1, 64, 56, 56}, {}, window(2, 2, 0)},
      {"MaxPool", {1, 24, 56, 56}, {}, window(3, 1, 1)},
      {"MaxPool", {1, 192, 28, 28}, {}, window(3, 1, 1)},
      {"AveragePool", {1, 64, 56, 56}, {}, window(2, 2, 0)},
      {"AveragePool", {1, 192, 35, 35}, {}, window(3, 1, 1)},
      {"AveragePool", {1, 1024, 7, 7}, {}, window(7, 1, 0)},
      {"GlobalAveragePool", {1, 512, 7, 7}},
      {"GlobalAveragePool", {1, 2048, 7, 7}},
      {"GlobalMaxPool", {1, 256, 14, 14}},
  };
}

[[noreturn]] void stop(const Status& status) {
  std::printf("%s\n", status.text().c_str());
  std::exit(1);
}

template <class T>
T unwrapped(Result<T> result) {
  if (!result.ok()) stop(result.status());
  return std::move(*result);
}

// The row's operator of one dtype, bound and ready to run. Its weights are constant.
class Timed {
 public:
  Timed(const Runtime& runtime, const Row& row, DType dtype) : session_(open(runtime, row, dtype)) {
    std::byte* data = nullptr;
    content_ = Blob::allocate(dtype, row.x, &data);  // aligned as a plan's memory is
    std::fill_n(data, content_->bytes, std::byte{0x3c});
    const TensorView view = {dtype, row.x, data};
    context_.emplace(unwrapped(session_.prepare({view})));
    check(context_->bind_input(0, data));
    check(context_->run());
  }
  // Returns the microseconds of one run, averaged over `runs` in a row.
  double time(int runs) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) check(context_->run());
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / runs;
  }

 private:
  static Session open(const Runtime& runtime, const Row& row, DType dtype) {
    NetBuilder b("bench");
    std::vector<ValueId> inputs = {b.input("x", dtype, row.x)};
    if (row.w.rank() > 0) {
      std::byte* data = nullptr;
      std::shared_ptr<Blob> weights = Blob::allocate(dtype, row.w, &data);
      std::fill_n(data, weights->bytes, std::byte{0x3c});
      inputs.push_back(b.constant("w", weights));
    }
    b.output(b.add1(row.type, "y", inputs, row.attributes));
    return unwrapped(runtime.open(unwrapped(Nets::of({b.finish()}))));
  }
  static void check(const Status& status) {
    if (!status.ok()) stop(status);
  }
  Session session_;
  std::shared_ptr<const Blob> content_;
  std::optional<Context> context_;
};

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void compare(const Runtime& runtime, const Row& row, double milliseconds) {
  Timed forms[] = {Timed(runtime, row, DType::f32), Timed(runtime, row, DType::f16), Timed(runtime, row, DType::bf16)};
  const double once = std::max(0.1, forms[0].time(1));
  const int repeats = std::max(1, static_cast<int>(200 / once));
  const int turns = std::clamp(static_cast<int>(1000 * milliseconds / (once * repeats)), 5, 1000);
  std::vector<double> times[3];
  for (int i = 0; i < turns; ++i)
    for (size_t form = 0; form < 3; ++form) times[form].push_back(forms[form].time(repeats));
  const double f32 = median(times[0]), f16 = median(times[1]), bf16 = median(times[2]);
  const std::string weights = row.w.rank() > 0 ? row.w.text() : "";
  std::printf("| %s | %s %s | %.1f | %.1f | %.1f | %.2f | %.2f |\n", row.type, row.x.text().c_str(), weights.c_str(), f32, f16, bf16,
              f16 / f32, bf16 / f32);
}

int run(double milliseconds) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN};
  options.default_plugins = false;
  options.threads = 1;
  const Runtime runtime = unwrapped(Runtime::create(options));
  std::printf("| operator | operands | f32 us | f16 us | bf16 us | f16 / f32 | bf16 / f32 |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const Row& row : rows()) compare(runtime, row, milliseconds);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  return heddle::run(argc > 1 ? std::atof(argv[1]) : 200);
}
