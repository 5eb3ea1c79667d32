// Measures the time from a net's file to its plan, by stage, and the memory that a session holds for each operator.
//
//   heddle_compile_bench [--threads N] [KIND:OPERATORS ...]
//
// Kinds: mix (elementwise operators and MatMul), chain (Relu and Softmax in turns, one after the other), layered (bench::Work, 32 wide,
// each reading two or three of the layer before). Default: mix:10000 mix:100000 mix:1000000 chain:100000 layered:10000. Best of five; above
// 100,000 operators there is one. --threads: the number that the plan is for; the compiler itself is one thread.
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "load/save.h"
#include "session_plan.h"

namespace heddle::bench {
namespace {

ValueId add_declared(NetBuilder& b, const char* type, const std::string& name, std::vector<ValueId> inputs) {
  const ValueId made = b.add1(type, name, std::move(inputs));
  b.net()[made].type = DeclaredType::of(DType::f32, Shape{2, 2});
  return made;
}

Net mix(size_t operators) {
  NetBuilder b("mix");
  const ValueId weight = b.constant("weight", Blob::copy_of(DType::f32, Shape{2, 2}, std::vector<float>{1, 0, 0, 1}.data()));
  ValueId at = b.input("x", DType::f32, Shape{2, 2}), before = at;
  for (size_t i = 0; i < operators; ++i) {
    const std::string name = "layer" + std::to_string(i / 10) + "/op" + std::to_string(i % 10);
    const ValueId made = i % 10 == 0  ? add_declared(b, "MatMul", name, {at, weight})
                         : i % 3 == 0 ? add_declared(b, "Add", name, {at, before})
                         : i % 7 == 0 ? add_declared(b, "Softmax", name, {at})
                                      : add_declared(b, "Relu", name, {at});
    before = std::exchange(at, made);
  }
  b.output(at);
  return b.finish();
}

Net chain(size_t operators) {
  NetBuilder b("chain");
  ValueId at = b.input("x", DType::f32, Shape{2, 2});
  for (size_t i = 0; i < operators; ++i) at = add_declared(b, i % 2 == 0 ? "Relu" : "Softmax", "op" + std::to_string(i), {at});
  b.output(at);
  return b.finish();
}

Net layered(size_t operators) {
  constexpr size_t width = 32;
  NetBuilder b("layered");
  std::mt19937 random(7);
  const ValueId amount = b.input("amount", DType::i64, Shape{1});
  std::vector<ValueId> last, now(width);
  for (size_t i = 0; i < operators; ++i) {
    std::vector<ValueId> inputs = {amount};
    for (size_t k = last.empty() ? 0 : 2 + random() % 2; k > 0; --k) inputs.push_back(last[random() % width]);
    now[i % width] = b.add1("Work", "op" + std::to_string(i), std::move(inputs), {}, "bench");
    if (i % width == width - 1) last = now;
  }
  std::vector<bool> read(b.net().values.size());
  for (const Node& node : b.net().nodes)
    for (const ValueId input : node.inputs) read[input.index] = true;
  for (const Node& node : b.net().nodes)
    if (!read[node.outputs[0].index]) b.output(node.outputs[0]);
  return b.finish();
}

size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

double seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::exit(2);
}

struct Figures {
  double total_ms = 1e300;
  PlanInfo::Times stages;
  size_t bytes = 0, steps = 0;
};

// Opens and prepares the net once.
Figures measure(const Runtime& runtime, const std::string& path) {
  Figures f;
  const size_t before = heap_bytes();
  const double begin = seconds();
  auto session = runtime.open(path);
  check(session.status());
  const auto context = session->prepare();
  check(context.status());
  f.total_ms = (seconds() - begin) * 1e3;
  f.bytes = heap_bytes() - before;
  const auto entry = last_plan_entry(*session);
  f.stages = entry->times;
  f.steps = entry->plan->steps.size();
  return f;
}

void bench(const Runtime& runtime, const std::string& folder, const std::string& kind, size_t operators) {
  const std::string path = folder + "/" + kind + ".heddle";
  check(save_net(kind == "mix" ? mix(operators) : kind == "chain" ? chain(operators) : layered(operators), path));
  ::malloc_trim(0);
  Figures best;
  for (int i = 0; i < (operators > 100'000 ? 1 : 5); ++i) {
    const Figures f = measure(runtime, path);
    if (f.total_ms < best.total_ms) best = f;
  }
  const auto ms = [](int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const PlanInfo::Times& t = best.stages;
  std::printf("%-8s %8zu %8zu %9.1f %9.1f | %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f | %6.0f\n", kind.c_str(), operators, best.steps,
              best.total_ms, best.total_ms - ms(t.prepare_ns), ms(t.load_ns), ms(t.resolve_ns), ms(t.infer_ns), ms(t.verify_ns),
              ms(t.transform_ns), ms(t.compile_ns), ms(t.prepare_ns), static_cast<double>(best.bytes) / static_cast<double>(operators));
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN, HEDDLE_BENCH_PLUGIN};
  options.default_plugins = false;
  options.threads = 1;
  std::vector<std::string> cases;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--threads" && i + 1 < argc)
      options.threads = std::atoi(argv[++i]);
    else
      cases.emplace_back(argv[i]);
  }
  if (cases.empty()) cases = {"mix:10000", "mix:100000", "mix:1000000", "chain:100000", "layered:10000"};
  auto runtime = Runtime::create(options);
  check(runtime.status());
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("heddle_compile_bench." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::printf("%d threads; milliseconds of processor time; stages on the wall clock\n", runtime->threads());
  std::printf("%-8s %8s %8s %9s %9s | %8s %8s %8s %8s %8s %8s %8s | %s\n", "net", "operators", "steps", "total", "- prepare", "load",
              "resolve", "infer", "verify", "transform", "compile", "prepare", "bytes an operator");
  for (const std::string& c : cases) {
    const size_t colon = c.find(':');
    bench(*runtime, folder.string(), c.substr(0, colon), colon == std::string::npos ? 10000 : std::stoul(c.substr(colon + 1)));
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run(argc, argv);
}
