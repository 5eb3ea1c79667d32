// How fast nets load and how much memory they take: load_bench [operators]...   (default 10000 100000 1000000)
// Builds a chain of elementwise and MatMul operators, writes both forms to memory and loads them again. Best of five (of one
// above 500,000), one thread. Memory: growth of the heap's bytes in use over one loaded net, names included.
#include <malloc.h>
#include <time.h>

#include <cstdio>
#include <string>
#include <vector>

#include "load/load.h"
#include "load/save.h"

namespace {

using namespace heddle;

Net chain(size_t operators) {
  NetBuilder builder("chain");
  const ValueId weight = builder.constant("weight", Blob::copy_of(DType::f32, Shape{2, 2}, std::vector<float>{1, 0, 0, 1}.data()));
  ValueId at = builder.input("x", DType::f32, Shape{2, 2});
  ValueId before = at;
  for (size_t i = 0; i < operators; ++i) {
    const std::string name = "layer" + std::to_string(i / 10) + "/op" + std::to_string(i % 10);
    const ValueId made = i % 10 == 0  ? builder.add1("MatMul", name, {at, weight})
                         : i % 3 == 0 ? builder.add1("Add", name, {at, before})
                         : i % 7 == 0 ? builder.add1("Softmax", name, {at}, {{"axis", int64_t{-1}}})
                                      : builder.add1("Relu", name, {at});
    builder.net()[made].type = DeclaredType::of(DType::f32, Shape{2, 2});
    before = std::exchange(at, made);
  }
  builder.output(at);
  return builder.finish();
}

size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Returns the milliseconds of processor time that `work` takes in this thread: other programs on the machine do not count.
double milliseconds(auto&& work) {
  const auto now = [] {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  };
  const double begin = now();
  work();
  return now() - begin;
}

void measure_load(const char* form, std::span<const std::byte> bytes, size_t operators) {
  double best = 1e300;
  size_t memory = 0;
  for (int i = 0; i < (operators > 500'000 ? 1 : 5); ++i) {
    const size_t before = heap_bytes();
    Result<Net> net = Status();
    best = std::min(best, milliseconds([&] { net = load_net_bytes(bytes, ""); }));
    if (!net.ok()) {
      std::fprintf(stderr, "%s\n", net.status().text().c_str());
      return;
    }
    memory = heap_bytes() - before;
  }
  std::printf("%9zu operators  %-6s file %8.2f MB  load %9.2f ms  net %5.0f bytes/operator\n", operators, form,
              static_cast<double>(bytes.size()) / 1e6, best, static_cast<double>(memory) / static_cast<double>(operators));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::stoul(argv[i]));
  if (sizes.empty()) sizes = {10'000, 100'000, 1'000'000};
  for (const size_t operators : sizes) {
    std::vector<std::byte> bytes;
    std::string text;
    {
      const Net net = chain(operators);
      const double save = milliseconds([&] { bytes = *net_to_bytes(net); });
      const double save_text = milliseconds([&] { text = *net_to_json(net); });
      std::printf("%9zu operators  to bytes %.2f ms, to text %.2f ms\n", operators, save, save_text);
    }
    measure_load("binary", bytes, operators);
    measure_load("json", std::as_bytes(std::span(text.data(), text.size())), operators);
  }
  return 0;
}
