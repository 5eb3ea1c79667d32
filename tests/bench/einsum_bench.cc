// Compares Einsum with its matrix form, written by hand: microseconds of a run on one thread, the two taking turns, and their ratio. The
// general loops, as they are without the transform lower_einsum, are measured too. Usage: heddle_einsum_bench [milliseconds of each,
// default 200]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/training.h"
#include "net/net.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

using Values = std::vector<ValueId>;

struct Row {
  const char* equation;
  std::vector<Shape> shapes;
  std::function<ValueId(NetBuilder& b, const Values& x)> form;  // the form that one writes instead
};

ValueId transposed(NetBuilder& b, ValueId x, const std::vector<int64_t>& order) {
  return b.add1("Transpose", "transposed" + std::to_string(x.index), {x}, {{"perm", order}});
}
ValueId reshaped(NetBuilder& b, ValueId x, const std::vector<int64_t>& shape) {
  const std::string name = "reshaped" + std::to_string(x.index);
  return b.add1("Reshape", name, {x, b.constant_ints(name + ".shape", shape)});
}
ValueId product(NetBuilder& b, ValueId x, ValueId y) {
  return b.add1("MatMul", "product" + std::to_string(y.index), {x, y});
}

std::vector<Row> rows() {
  const auto plain = [](NetBuilder& b, const Values& x) { return product(b, x[0], x[1]); };
  return {
      {"ij,jk->ik", {Shape{256, 256}, Shape{256, 256}}, plain},
      {"ij,kj->ik",
       {Shape{128, 512}, Shape{256, 512}},
       [](NetBuilder& b, const Values& x) {
         return product(b, x[0], transposed(b, x[1], {1, 0}));
       }},
      {"ji,jk->ki",
       {Shape{512, 128}, Shape{512, 256}},
       [](NetBuilder& b, const Values& x) {
         return product(b, transposed(b, x[1], {1, 0}), x[0]);
       }},
      {"bij,bjk->bik", {Shape{32, 64, 64}, Shape{32, 64, 64}}, plain},
      {"bhqd,bhkd->bhqk",
       {Shape{4, 8, 64, 32}, Shape{4, 8, 64, 32}},
       [](NetBuilder& b, const Values& x) {
         return product(b, x[0], transposed(b, x[1], {0, 1, 3, 2}));
       }},
      {"bqhd,bkhd->bhqk",
       {Shape{4, 64, 8, 32}, Shape{4, 64, 8, 32}},
       [](NetBuilder& b, const Values& x) {
         return product(b, transposed(b, x[0], {0, 2, 1, 3}), transposed(b, x[1], {0, 2, 3, 1}));
       }},
      {"bti,oi->bto",
       {Shape{8, 64, 256}, Shape{256, 256}},
       [](NetBuilder& b, const Values& x) {
         return product(b, x[0], transposed(b, x[1], {1, 0}));
       }},
      {"btd,dhe->bhte",
       {Shape{4, 64, 256}, Shape{256, 8, 32}},
       [](NetBuilder& b, const Values& x) {
         const ValueId y = product(b, x[0], reshaped(b, x[1], {256, 256}));
         return transposed(b, reshaped(b, y, {4, 64, 8, 32}), {0, 2, 1, 3});
       }},
      {"abcd,cdef->abef",
       {Shape{16, 8, 16, 16}, Shape{16, 16, 8, 16}},
       [](NetBuilder& b, const Values& x) {
         return reshaped(b, product(b, reshaped(b, x[0], {128, 256}), reshaped(b, x[1], {256, 128})), {16, 8, 8, 16});
       }},
      {"ij,j->i", {Shape{512, 512}, Shape{512}}, plain},
      {"i,i->", {Shape{65536}, Shape{65536}}, plain},
      {"bi,bi->b",
       {Shape{512, 64}, Shape{512, 64}},
       [](NetBuilder& b, const Values& x) {
         return reshaped(b, product(b, reshaped(b, x[0], {512, 1, 64}), reshaped(b, x[1], {512, 64, 1})), {512});
       }},
      {"i,j->ij",
       {Shape{512}, Shape{512}},
       [](NetBuilder& b, const Values& x) {
         return product(b, reshaped(b, x[0], {512, 1}), reshaped(b, x[1], {1, 512}));
       }},
      {"ij,jk,kl->il",
       {Shape{64, 64}, Shape{64, 64}, Shape{64, 64}},
       [](NetBuilder& b, const Values& x) { return product(b, product(b, x[0], x[1]), x[2]); }},
      {"ij,jk->ik", {Shape{4, 4}, Shape{4, 4}}, plain},
  };
}

using MakeResult = std::function<ValueId(NetBuilder&, const Values&)>;

[[noreturn]] void stop(const Status& status) {
  std::printf("%s\n", status.text().c_str());
  std::exit(1);
}

// Opens a net of the row's result. A net that learns has the last operand as a variable, and takes a step by SGD in each run.
Session open(const Runtime& runtime, const Row& row, const MakeResult& result, bool learns, bool lowers) {
  NetBuilder b("bench");
  Values x;
  for (const Shape& shape : row.shapes) {
    const std::string name = "x" + std::to_string(x.size());
    const bool is_variable = learns && x.size() + 1 == row.shapes.size();
    x.push_back(is_variable ? b.variable(name, DType::f32, shape, "constant(0.5)", true) : b.input(name, DType::f32, shape));
  }
  const ValueId y = result(b, x);
  b.output(learns ? b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {y, y})}) : y);
  auto nets = Nets::of({b.finish()});
  if (!nets.ok()) stop(nets.status());
  TrainingOptions training;
  training.losses = {"loss"};
  if (learns)
    if (Status made = nets->add_training(runtime, "bench", training, "bench"); !made.ok()) stop(made);
  auto session = runtime.open(*nets);
  if (!session.ok()) stop(session.status());
  Internals::of(*session).pipeline.transform.lower_einsum = lowers;
  return *session;
}

// One of the nets, bound and ready to run.
class Timed {
 public:
  Timed(Session session, std::vector<Shape> shapes, bool learns) : session_(std::move(session)) {
    if (learns) shapes.pop_back();
    for (const Shape& shape : shapes) {
      std::byte* data = nullptr;
      contents_.push_back(Blob::allocate(DType::f32, shape, &data));  // aligned as a plan's memory is
      std::fill_n(reinterpret_cast<float*>(data), shape.element_count(), 0.5f);
      views_.push_back({DType::f32, shape, data});
    }
    auto context = session_.prepare(views_);
    if (!context.ok()) stop(context.status());
    context_.emplace(std::move(*context));
    for (size_t i = 0; i < views_.size(); ++i) check(context_->bind_input(i, views_[i].data));
  }
  // Returns the microseconds of one run, averaged over `runs` in a row.
  double time(int runs) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) check(context_->run());
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / runs;
  }

 private:
  static void check(const Status& status) {
    if (!status.ok()) stop(status);
  }
  Session session_;
  std::vector<std::shared_ptr<const Blob>> contents_;
  std::vector<TensorView> views_;
  std::optional<Context> context_;
};

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void compare(const Runtime& runtime, const Row& row, bool learns, double milliseconds) {
  const MakeResult einsum = [&](NetBuilder& b, const Values& x) {
    return b.add1("Einsum", "y", x, {{"equation", std::string(row.equation)}});
  };
  Timed loops(open(runtime, row, einsum, learns, false), row.shapes, learns),
      lowered(open(runtime, row, einsum, learns, true), row.shapes, learns);
  Timed form(open(runtime, row, row.form, learns, true), row.shapes, learns);
  const double once = std::max(form.time(1), form.time(1)), slow = loops.time(1);
  const int repeats = std::max(1, static_cast<int>(200 / std::max(once, 0.1)));
  const int turns = std::clamp(static_cast<int>(1000 * milliseconds / (once * repeats)), 5, 2000);
  std::vector<double> of_loops = {slow}, of_lowered, of_form;
  for (int i = 0; i < turns; ++i) {
    of_lowered.push_back(lowered.time(repeats));
    of_form.push_back(form.time(repeats));
  }
  for (int i = 0; i < 2; ++i) of_loops.push_back(loops.time(std::max(1, static_cast<int>(200 / slow))));
  std::string shapes;
  for (const Shape& shape : row.shapes) shapes += (shapes.empty() ? "" : " ") + shape.text();
  std::printf("| %s | %s | %.1f | %.1f | %.1f | %.2f |\n", row.equation, shapes.c_str(), median(of_loops), median(of_lowered),
              median(of_form), median(of_lowered) / median(of_form));
}

int run(double milliseconds) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_CPU_PLUGIN};
  options.default_plugins = false;
  options.threads = 1;
  const auto runtime = Runtime::create(options);
  if (!runtime.ok()) stop(runtime.status());
  std::printf("| equation | operands | loops us | Einsum us | matrix form us | Einsum / form |\n|---|---|---:|---:|---:|---:|\n");
  for (const Row& row : rows()) compare(*runtime, row, false, milliseconds);
  std::printf("A step of training, the last operand learns:\n");
  for (const Row& row : rows())
    if (row.shapes.size() == 2 && row.shapes[0].rank() > 2) compare(*runtime, row, true, milliseconds);
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int count, char** arguments) {
  return heddle::run(count > 1 ? std::atof(arguments[1]) : 200);
}
