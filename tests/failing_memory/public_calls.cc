#include "public_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "device/device_support.h"
#include "failing_allocations.h"
#include "net/net.h"
#include "session/line_net.h"
#include "small_nets.h"
#include "trainer_calls.h"

namespace heddle::testing_memory {
namespace {

using testing_nets::blob;
using testing_nets::subnet;

const Shape small = {4, 3};

std::shared_ptr<const Net> branch(const char* type) {
  NetBuilder b(type);
  b.output(b.add1(type, "y", {b.input("x", DType::f32, small)}));
  return subnet(b);
}

// y is Neg or Tanh of x, chosen by an input, then three times Tanh in a loop; rows are products of the rows of x whose first number is not
// 0.
Net control_net() {
  NetBuilder b("control");
  const ValueId x = b.input("x", DType::f32, small), which = b.input("which", DType::boolean, Shape{});
  const ValueId chosen = b.add1("If", "if", {which, x}, {{"then_branch", branch("Neg")}, {"else_branch", branch("Tanh")}});
  NetBuilder body("body");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  body.output(body.add1("Tanh", "next", {body.input("state", DType::f32, small)}));
  const int64_t three = 3;
  b.output(b.add1("Loop", "loop", {b.constant("three", Blob::copy_of(DType::i64, Shape{}, &three)), testing_nets::yes(b), chosen},
                  {{"body", subnet(body)}}));
  const int64_t zero = 0;
  const ValueId first =
      b.add1("Gather", "first", {x, b.constant("column", Blob::copy_of(DType::i64, Shape{}, &zero))}, {{"axis", int64_t{1}}});
  const ValueId places = b.add1("Squeeze", "places", {b.add1("NonZero", "found", {first}), b.constant_ints("only", {0})});
  const ValueId rows = b.add1("Gather", "rows", {x, places});
  b.output(b.add1("MatMul", "product", {rows, b.constant("w", blob(Shape{3, 400}, 0, 0.01F))}));
  return b.finish();
}

RuntimeOptions options_of(int threads) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = threads;
  return options;
}

std::string bytes_of(const TensorView& view) {
  return {static_cast<const char*>(view.data), view.data ? static_cast<size_t>(view.byte_size()) : 0};
}

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

// Returns the status of a Result; if it has a value, `is_right` says whether that is right. Allocations of `is_right` are not counted.
template <class T, class IsRight>
Answer answer(Result<T>& result, const IsRight& is_right) {
  const Unwatched unwatched;
  if (!result.ok()) return {Status(result.status())};
  return {{}, is_right(*result)};
}
template <class T>
Answer answer(Result<T>& result) {
  return answer(result, [](const T&) { return true; });
}
template <class T>
Answer plain(const T& value, const T& expected) {
  const Unwatched unwatched;
  return {{}, value == expected};
}

}  // namespace

World::World(std::string on, int threads)
    : device(std::move(on)),
      runtime_options(options_of(threads)),
      runtime(value_of(Runtime::create(runtime_options))),
      line(testing_line::line()),
      both(testing_line::learning_line(runtime)),
      net_path((folder / "control.heddle").string()),
      variables_path((folder / "variables.safetensors").string()) {
  std::vector<Net> nets;
  nets.push_back(control_net());
  const Status written = value_of(Nets::of(std::move(nets))).write(net_path);
  EXPECT_TRUE(written.ok()) << written.text();
  control_session = std::make_shared<Session>(value_of(runtime.open(net_path, options())));
  learned = std::make_shared<Session>(learning());
  testing_line::train(*learned, 2);
  names = learned->variables();
  const Status saved = learned->save_variables(variables_path);
  EXPECT_TRUE(saved.ok()) << saved.text();
  for (const Tensor& result : value_of(control_session->run(control_inputs()))) expected.push_back(bytes_of(result.view()));
}

SessionOptions World::options() const {
  SessionOptions options;
  options.device = device;
  options.copies = Copies::automatic;
  return options;
}

Session World::control() {
  control_session->trim();
  return *control_session;
}

Session World::learning() const {
  return value_of(runtime.open(both, options()));
}

std::vector<TensorView> World::control_inputs() const {
  static const auto x = blob(small, 0, 0.25F);
  static const bool which = true;
  return {{DType::f32, small, const_cast<std::byte*>(x->data)}, {DType::boolean, Shape{}, const_cast<bool*>(&which)}};
}

std::vector<TensorView> World::line_inputs() const {
  static const std::vector<float> x = {0, 0, 1, 0, 0, 1, 1, 1}, y = {1, 4, -1, 2};
  return {testing_nets::view(x.data(), DType::f32, Shape{4, 2}), testing_nets::view(y.data(), DType::f32, Shape{4, 1})};
}

bool World::right(Context& context) const {
  const Unwatched unwatched;
  for (size_t i = 0; i < expected.size(); ++i)
    if (bytes_of(context.output(i)) != expected[i]) return false;
  return true;
}

bool World::right(const std::vector<Tensor>& results) const {
  const Unwatched unwatched;
  if (results.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i)
    if (bytes_of(results[i].view()) != expected[i]) return false;
  return true;
}

namespace {

using WorldPointer = std::shared_ptr<World>;

// A context of "control" with its inputs bound.
struct Prepared {
  explicit Prepared(World& world) : session(world.control()), context(value_of(session.prepare())) { bind(world); }
  Prepared(World& world, const SharedMemory& memory) : session(world.control()), context(value_of(session.prepare_on(memory))) {
    bind(world);
  }
  void bind(const World& world) {
    const std::vector<TensorView> inputs = world.control_inputs();
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context.bind_input(i, inputs[i].data).ok());
  }
  Session session;
  Context context;
};

Answer run(World& world, Prepared& prepared, const RunOptions& options = {}) {
  Status status = prepared.context.run(options);
  const bool right = !status.ok() || world.right(prepared.context);
  return {std::move(status), right};
}

// Returns after the run that the call has started is over.
Answer run_async(World& world, Prepared& prepared) {
  struct Told {
    std::atomic<bool> done{false};
    Status status;
  } told;
  const auto tell = [&told](Status status) {  // small enough for the function object, which allocates nothing
    told.status = std::move(status);
    told.done = true;
  };
  Status status = prepared.context.run_async(tell);
  if (!status.ok()) return {std::move(status)};
  while (!told.done) std::this_thread::yield();
  const bool right = !told.status.ok() || world.right(prepared.context);
  return {std::move(told.status), right};
}

// ---------------------------------------------------------------- the table

using Calls = std::vector<PublicCall>;

// Adds a call on a session of "control".
template <class Function>
void on_control(Calls& calls, const char* name, const char* variant, bool plain, const Function& function) {
  calls.push_back({name, variant, plain, [function](const WorldPointer& w) -> Call {
                     return [w, function, session = w->control()]() mutable { return function(*w, session); };
                   }});
}
// Adds a call on a session of its own of "line" and "train".
template <class Function>
void on_learning(Calls& calls, const char* name, const char* variant, bool plain, const Function& function) {
  calls.push_back({name, variant, plain, [function](const WorldPointer& w) -> Call {
                     return [w, function, session = w->learning(), train = value_of(w->learning().net("train"))]() mutable {
                       return function(*w, session);
                     };
                   }});
}
// Adds a call on a context; with `warm`, on one that has run already.
template <class Function>
void on_context(Calls& calls, const char* name, const char* variant, bool plain, bool warm, const Function& function) {
  calls.push_back({name, variant, plain, [function, warm](const WorldPointer& w) -> Call {
                     const auto prepared = std::make_shared<Prepared>(*w);
                     if (warm) {
                       EXPECT_TRUE(prepared->context.run().ok());
                     }
                     return [w, function, prepared] { return function(*w, *prepared); };
                   }});
}
template <class Function>
void on_world(Calls& calls, const char* name, const char* variant, bool plain, const Function& function) {
  calls.push_back({name, variant, plain, [function](const WorldPointer& w) -> Call { return [w, function] { return function(*w); }; }});
}

void add_runtime_calls(Calls& calls) {
  on_world(calls, "Runtime::create", "", false, [](World& w) {
    auto made = Runtime::create(w.runtime_options);
    return answer(made);
  });
  on_world(calls, "Runtime::open", "a file", false, [](World& w) {
    auto opened = w.runtime.open(w.net_path);
    return answer(opened);
  });
  calls.push_back({"Runtime::open", "several files", false, [](const WorldPointer& w) -> Call {
                     return [w, paths = std::vector<std::string>{w->net_path}] {
                       auto opened = w->runtime.open(paths);
                       return answer(opened);
                     };
                   }});
  calls.push_back({"Runtime::open", "a built net", false, [](const WorldPointer& w) -> Call {
                     return [w] {
                       Net net;
                       {
                         const Unwatched unwatched;
                         net = control_net();
                       }
                       auto opened = w->runtime.open(std::move(net));
                       return answer(opened);
                     };
                   }});
  calls.push_back({"Runtime::open", "built nets", false, [](const WorldPointer& w) -> Call {
                     return [w] {
                       std::vector<Net> nets;
                       {
                         const Unwatched unwatched;
                         nets.push_back(control_net());
                       }
                       auto opened = w->runtime.open(std::move(nets));
                       return answer(opened);
                     };
                   }});
  on_world(calls, "Runtime::open", "nets that were read", false, [](World& w) {
    auto opened = w.runtime.open(w.both);
    return answer(opened);
  });
  calls.push_back({"Runtime::open_bytes", "", false, [](const WorldPointer& w) -> Call {
                     return [w, bytes = testing::read_text(w->net_path), folder = w->folder.path().string()] {
                       auto opened = w->runtime.open_bytes(bytes.data(), bytes.size(), folder);
                       return answer(opened);
                     };
                   }});
  calls.push_back({"Runtime::load_plugin", "", false,
                   [](const WorldPointer& w) -> Call {
                     const auto runtime = std::make_shared<Runtime>(value_of(Runtime::create(w->runtime_options)));
                     return [runtime, path = std::string(HEDDLE_BINARY_DIR "/lib/test/probe.so")]() -> Answer {
                       return {runtime->load_plugin(path)};
                     };
                   },
                   Code::plugin_invalid});
  calls.push_back({"Runtime::unload_plugin", "", false, [](const WorldPointer& w) -> Call {
                     const auto runtime = std::make_shared<Runtime>(value_of(Runtime::create(w->runtime_options)));
                     return [runtime, name = std::string("sim")]() -> Answer { return {runtime->unload_plugin(name)}; };
                   }});
  on_world(calls, "Runtime::plugins", "", true, [](World& w) -> Answer { return {{}, w.runtime.plugins().size() == 2}; });
  on_world(calls, "Runtime::threads", "", true, [](World& w) -> Answer { return {{}, w.runtime.threads() == w.runtime_options.threads}; });
  calls.push_back({"Runtime::device_info", "", false, [](const WorldPointer& w) -> Call {
                     const auto runtime = std::make_shared<Runtime>(value_of(Runtime::create(w->runtime_options)));
                     return [runtime, name = std::string("sim:1")] {
                       auto info = runtime->device_info(name);
                       return answer(info, [](const DeviceInfo& i) { return i.total_bytes > 0; });
                     };
                   }});
  on_context(calls, "Runtime::trim", "", true, true, [](World& w, Prepared& prepared) -> Answer {
    w.runtime.trim();
    return run(w, prepared);
  });
  on_world(calls, "set_log_function", "", true, [](World&) -> Answer {
    set_log_function(nullptr, nullptr);
    return {};
  });
}

void add_session_calls(Calls& calls) {
  on_learning(calls, "Session::nets", "", true, [](World&, Session& s) -> Answer { return {{}, s.nets().size() == 2}; });
  on_learning(calls, "Session::name", "", true, [](World&, Session& s) -> Answer { return {{}, s.name().size() == 4}; });
  calls.push_back({"Session::net", "", false, [](const WorldPointer& w) -> Call {
                     return [session = w->learning(), name = std::string("train")] {
                       auto net = session.net(name);
                       return answer(net, [](const Session& s) { return s.name() == "train"; });
                     };
                   }});
  on_control(calls, "Session::inputs", "", true, [](World&, Session& s) -> Answer { return {{}, s.inputs().size() == 2}; });
  on_control(calls, "Session::outputs", "", true, [](World&, Session& s) -> Answer { return {{}, s.outputs().size() == 2}; });
  on_learning(calls, "Session::symbols", "", true, [](World&, Session& s) -> Answer { return {{}, s.symbols().size() == 1}; });
  on_control(calls, "Session::files", "", true, [](World&, Session& s) -> Answer { return {{}, s.files().size() == 2}; });
  on_control(calls, "Session::prepare", "", false, [](World&, Session& s) {
    auto context = s.prepare();
    return answer(context);
  });
  calls.push_back({"Session::prepare_in", "", false, [](const WorldPointer& w) -> Call {
                     Session session = w->control();
                     const int64_t bytes = value_of(session.transient_bytes());
                     std::byte* data = nullptr;
                     const auto buffer = Blob::allocate(DType::u8, Shape{bytes}, &data);
                     session.trim();
                     return [session, buffer, data, bytes]() mutable {
                       auto context = session.prepare_in(data, bytes);
                       return answer(context);
                     };
                   }});
  calls.push_back({"Session::prepare_on", "", false, [](const WorldPointer& w) -> Call {
                     return [session = w->control(), memory = SharedMemory()]() mutable {
                       auto context = session.prepare_on(memory);
                       return answer(context);
                     };
                   }});
  on_control(calls, "Session::transient_bytes", "", false, [](World&, Session& s) {
    auto bytes = s.transient_bytes();
    return answer(bytes);
  });
  calls.push_back({"Session::run", "into the caller's memory", false, [](const WorldPointer& w) -> Call {
                     return [w, session = w->control(), inputs = w->control_inputs(), y = std::vector<float>(12)]() mutable -> Answer {
                       TensorView output{DType::f32, small, y.data()};
                       Status status = session.run(inputs.data(), inputs.size(), &output, 1);
                       const bool right = std::memcmp(y.data(), w->expected[0].data(), w->expected[0].size()) == 0;
                       const bool ok = status.ok();
                       return {std::move(status), !ok || right};
                     };
                   }});
  calls.push_back({"Session::run", "with results of its own", false, [](const WorldPointer& w) -> Call {
                     return [w, session = w->control(), inputs = w->control_inputs()]() mutable {
                       auto results = session.run(inputs);
                       return answer(results, [&](const std::vector<Tensor>& r) { return w->right(r); });
                     };
                   }});
  calls.push_back({"Session::run", "of a net that learns", false, [](const WorldPointer& w) -> Call {
                     return [train = value_of(w->learning().net("train")), inputs = w->line_inputs()]() mutable {
                       auto results = train.run(inputs);
                       return answer(results, [](const std::vector<Tensor>& r) { return r.size() == 3; });
                     };
                   }});
  on_control(calls, "Session::plan", "", false, [](World&, Session& s) {
    auto plan = s.plan();
    return answer(plan, [](const auto& p) { return p && !p->steps.empty(); });
  });
  on_control(calls, "Session::check", "", false, [](World&, Session& s) -> Answer {
    std::vector<Diagnostic> findings = s.check();
    const Unwatched unwatched;
    for (Diagnostic& finding : findings)
      if (finding.severity == Severity::error) return {Status(std::move(finding))};
    return {};
  });
  calls.push_back({"Session::trim", "and a run that plans anew", false, [](const WorldPointer& w) -> Call {
                     return [w, session = w->control(), inputs = w->control_inputs()]() mutable {
                       session.trim();
                       auto results = session.run(inputs);
                       return answer(results, [&](const std::vector<Tensor>& r) { return w->right(r); });
                     };
                   }});
}

void add_variable_calls(Calls& calls) {
  on_learning(calls, "Session::variables", "", true, [](World& w, Session& s) -> Answer {
    return {{}, s.variables().size() == w.names.size()};
  });
  calls.push_back({"Session::read_variable", "", false, [](const WorldPointer& w) -> Call {
                     return [session = *w->learned, name = std::string("w")] {
                       auto value = session.read_variable(name);
                       return answer(value, [](const Tensor& t) { return t.byte_size() == 8; });
                     };
                   }});
  calls.push_back({"Session::write_variable", "", false, [](const WorldPointer& w) -> Call {
                     return [session = w->learning(), name = std::string("w"), value = std::vector<float>{1, 2}]() mutable -> Answer {
                       Status status = session.write_variable(name, {DType::f32, Shape{2, 1}, value.data()});
                       const Unwatched unwatched;
                       const auto read = session.read_variable(name);
                       const bool right = read.ok() && (!status.ok() || std::memcmp(read->data(), value.data(), 8) == 0);
                       return {std::move(status), right};
                     };
                   }});
  on_learning(calls, "Session::initialize", "", false, [](World&, Session& s) -> Answer { return {s.initialize(7, true)}; });
  calls.push_back({"Session::save_variables", "", false, [](const WorldPointer& w) -> Call {
                     return [w, path = (w->folder / "saved.safetensors").string()]() -> Answer {
                       Status status = w->learned->save_variables(path);
                       const Unwatched unwatched;
                       const bool right = testing::read_text(path) == testing::read_text(w->variables_path);
                       const bool ok = status.ok();
                       return {std::move(status), !ok || right};
                     };
                   }});
  calls.push_back({"Session::load_variables", "", false, [](const WorldPointer& w) -> Call {
                     return [w, session = w->learning()]() mutable -> Answer {
                       Status status = session.load_variables(w->variables_path);
                       const Unwatched unwatched;
                       const bool ok = status.ok();
                       const bool right = !ok || testing_line::contents(session) == testing_line::contents(*w->learned);
                       return {std::move(status), right};
                     };
                   }});
  on_learning(calls, "Session::plan_counts", "", true, [](World&, Session& s) -> Answer {
    return {{}, s.plan_counts().kept == s.plan_counts().made};
  });
  on_learning(calls, "Session::variable_bytes", "", true, [](World&, Session& s) -> Answer { return {{}, s.variable_bytes() > 0}; });
}

void add_context_calls(Calls& calls) {
  on_context(calls, "Context::Context", "", true, true, [](World& w, Prepared& p) -> Answer {
    Context moved(std::move(p.context));
    p.context = std::move(moved);
    return run(w, p);
  });
  on_context(calls, "Context::operator=", "", true, true, [](World& w, Prepared& p) -> Answer {
    auto other = p.session.prepare();
    const Unwatched unwatched;
    if (!other.ok()) return {};
    *other = std::move(p.context);  // gives back what it had
    p.context = std::move(*other);
    return run(w, p);
  });
  on_context(calls, "Context::input_count", "", true, false, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.input_count() == 2};
  });
  on_context(calls, "Context::output_count", "", true, false, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.output_count() == 2};
  });
  on_context(calls, "Context::input", "", true, false, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.input(0).shape == small};
  });
  on_context(calls, "Context::output", "", true, true, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.output(0).data != nullptr};
  });
  on_context(calls, "Context::bind_input", "", false, false, [](World& w, Prepared& p) -> Answer {
    static const TensorView x = [&] {
      const Unwatched unwatched;
      return w.control_inputs()[0];
    }();
    return {p.context.bind_input(0, x.data)};
  });
  on_context(calls, "Context::bind_output", "", false, false, [](World&, Prepared& p) -> Answer {
    static float y[12];
    Status status = p.context.bind_output(0, y, 48);
    if (!status.ok()) return {std::move(status)};
    return {p.context.bind_output(0, nullptr)};
  });
  on_context(calls, "Context::output_bytes", "", true, false, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.output_bytes(0) == 48};
  });
  on_context(calls, "Context::run", "the first one", false, false, [](World& w, Prepared& p) { return run(w, p); });
  on_context(calls, "Context::run", "a later one", false, true, [](World& w, Prepared& p) { return run(w, p); });
  on_context(calls, "Context::run", "measured", false, false, [](World& w, Prepared& p) {
    Profile profile;
    RunOptions options;
    options.profile = &profile;
    return run(w, p, options);
  });
  calls.push_back({"Context::run", "in shared memory", false, [](const WorldPointer& w) -> Call {
                     const SharedMemory memory;
                     const auto prepared = std::make_shared<Prepared>(*w, memory);
                     return [w, prepared, memory] { return run(*w, *prepared); };
                   }});
  calls.push_back({"Context::run", "of a net that learns", false, [](const WorldPointer& w) -> Call {
                     Session train = value_of(w->learning().net("train"));
                     const auto context = std::make_shared<Context>(value_of(train.prepare(w->line_inputs())));
                     for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(context->bind_input(i, w->line_inputs()[i].data).ok());
                     return [train, context]() -> Answer { return {context->run()}; };
                   }});
  on_context(calls, "Context::run_async", "", false, false, [](World& w, Prepared& p) -> Answer {
    if (w.runtime_options.threads == 1) return {};
    return run_async(w, p);
  });
  on_context(calls, "Context::cancel", "", true, true, [](World& w, Prepared& p) -> Answer {
    p.context.cancel();
    return run(w, p);
  });
  on_context(calls, "Context::planned_bytes", "", true, false, [](World&, Prepared& p) -> Answer {
    return {{}, p.context.planned_bytes() > 0};
  });
  on_context(calls, "Context::held_bytes", "", true, false, [](World&, Prepared& p) -> Answer { return {{}, p.context.held_bytes() > 0}; });
  on_context(calls, "Context::plan", "", true, false, [](World&, Prepared& p) -> Answer { return {{}, p.context.plan() != nullptr}; });
  on_world(calls, "SharedMemory::SharedMemory", "", true, [](World&) -> Answer {
    const SharedMemory memory;
    return {{}, memory.bytes() == 0};
  });
  on_world(calls, "SharedMemory::bytes", "", true, [](World&) -> Answer {
    static const SharedMemory memory;
    return {{}, memory.bytes() == 0};
  });
  on_world(calls, "Tensor::Tensor", "", true, [](World&) -> Answer {
    const Tensor tensor(DType::f32, small);
    return {{}, tensor.dtype() == DType::f32};
  });
  on_world(calls, "Tensor::copy_of", "", true, [](World& w) -> Answer {
    static const TensorView of = [&] {
      const Unwatched unwatched;
      return w.control_inputs()[0];
    }();
    const Tensor tensor = Tensor::copy_of(of);
    return {{}, tensor.dtype() == DType::f32 && std::memcmp(tensor.data(), of.data, 48) == 0};
  });
}

// Observes one run and reads everything of each step.
Answer observe(World& w, Prepared& p, bool inputs) {
  const StepObserver observer = [inputs](StepView& step) -> Status {
    for (size_t k = 0; k < 3; ++k) {
      auto value = inputs ? step.read_input(k) : step.read_output(k);
      if (!value.ok()) return std::move(value).status();
      const TensorView type = inputs ? step.input_type(k) : step.output_type(k);
      if (type.dtype == DType::none && value->dtype != DType::none) return {Code::out_of_memory, ""};  // a plain value is empty
      if (type.dtype != value->dtype) return {Code::internal, "another type"};
    }
    return {};
  };
  RunOptions options;
  options.observer = &observer;
  return run(w, p, options);
}

void add_observing_calls(Calls& calls) {
  for (const char* name : {"StepView::read_input", "StepView::input_type"})
    on_context(calls, name, "", false, false, [](World& w, Prepared& p) { return observe(w, p, true); });
  for (const char* name : {"StepView::read_output", "StepView::output_type"})
    on_context(calls, name, "", false, false, [](World& w, Prepared& p) { return observe(w, p, false); });
  calls.push_back({"predict_step", "", true, [](const WorldPointer& w) -> Call {
                     return [plan = value_of(w->control().plan())]() -> Answer { return {{}, predict_step(*plan, {}).ns == 0}; };
                   }});
  calls.push_back({"predict_step", "of ranks", true, [](const WorldPointer& w) -> Call {
                     const auto plan = value_of(w->control().plan());
                     return [plan, times = std::vector<int64_t>(plan->steps.size(), 1000)]() -> Answer {
                       return {{}, predict_step(*plan, times, RankLink()).ns > 0};
                     };
                   }});
  calls.push_back({"all_reduce_ns", "", true, [](const WorldPointer&) -> Call {
                     return []() -> Answer { return {{}, all_reduce_ns(1000, {2, 1, 0, 0}) > 0}; };
                   }});
  calls.push_back({"memory_by_owner", "", true, [](const WorldPointer& w) -> Call {
                     return [plan = value_of(w->control().plan())]() -> Answer { return {{}, !memory_by_owner(*plan).empty()}; };
                   }});
}

void add_nets_calls(Calls& calls) {
  on_world(calls, "Nets::read", "", false, [](World& w) {
    auto nets = Nets::read(w.net_path);
    return answer(nets);
  });
  on_world(calls, "Nets::read_bytes", "", false, [](World&) {
    static const std::string folder;
    auto nets = Nets::read_bytes(testing_line::line_text.data(), testing_line::line_text.size(), folder);
    return answer(nets);
  });
  on_world(calls, "Nets::of", "", false, [](World&) {
    std::vector<Net> built;
    {
      const Unwatched unwatched;
      built.push_back(control_net());
    }
    auto nets = Nets::of(std::move(built));
    return answer(nets);
  });
  on_world(calls, "Nets::names", "", true, [](World& w) -> Answer { return {{}, w.both.names().size() == 2}; });
  calls.push_back({"Nets::files", "", true, [](const WorldPointer& w) -> Call {
                     return [nets = value_of(Nets::read(w->net_path))]() -> Answer { return {{}, nets.files().size() == 2}; };
                   }});
  static const std::string line = "line", train = "train", control = "control";
  on_world(calls, "Nets::learns", "", false, [](World& w) {
    auto learns = w.both.learns(train);
    return answer(learns, [](bool yes) { return yes; });
  });
  const auto changed = [](auto change) {
    return [change](World& w) -> Answer {
      Nets nets = w.line;
      Status status = change(w, nets);
      const Unwatched unwatched;
      const bool right = nets.names().size() == (status.ok() ? 2 : 1);  // changed as a whole, or not at all
      return {std::move(status), right};
    };
  };
  static const TrainingOptions learning = testing_line::learning();
  on_world(calls, "Nets::add_training", "", false,
           changed([](World& w, Nets& nets) { return nets.add_training(w.runtime, line, learning, train); }));
  on_world(calls, "Nets::add_gradients", "", false, changed([](World& w, Nets& nets) -> Status {
             static const DifferentiateOptions options = [] {
               DifferentiateOptions made;
               made.losses = {"loss"};
               return made;
             }();
             return nets.add_gradients(w.runtime, line, options, train).status();
           }));
  on_world(calls, "Nets::add_replicas", "", false, changed([](World& w, Nets& nets) {
             static const DataParallelOptions options = [] {
               DataParallelOptions made;
               made.devices = {"sim:0", "sim:1"};
               return made;
             }();
             return nets.add_replicas(w.runtime, line, options, train);
           }));
  on_world(calls, "Nets::add_predictor", "", false, changed([](World&, Nets& nets) {
             static const PredictorOptions options = [] {
               PredictorOptions made;
               made.name = "predict";
               made.outputs = {"guess"};
               return made;
             }();
             return nets.add_predictor(line, options);
           }));
  on_world(calls, "Nets::only", "", false, [](World& w) {
    static const std::vector<std::string> one = {"train"};
    auto nets = w.both.only(one);
    return answer(nets);
  });
  on_world(calls, "Nets::take_variables", "", false, [](World& w) -> Answer {
    Nets nets = w.both;
    return {nets.take_variables(*w.learned)};
  });
  calls.push_back({"Nets::take_checkpoint", "", false, [](const WorldPointer& w) -> Call {
                     const std::string path = checkpoint_of_line(*w);
                     return [w, path]() -> Answer {
                       Nets nets = w->both;
                       return {nets.take_checkpoint(path)};
                     };
                   }});
  calls.push_back({"Nets::write", "", false, [](const WorldPointer& w) -> Call {
                     return [w, nets = value_of(Nets::read(w->net_path)), path = (w->folder / "copy.heddle").string()]() -> Answer {
                       Status status = nets.write(path);
                       const Unwatched unwatched;
                       const bool right = !status.ok() || Nets::read(path).ok();
                       return {std::move(status), right};
                     };
                   }});
}

void add_texts(Calls& calls) {
  on_world(calls, "Diagnostic::text", "", true, [](World&) -> Answer {
    static const Diagnostic diagnostic = [] {
      Diagnostic made;
      made.message = "a sentence that does not fit into the string object itself";
      return made;
    }();
    return {{}, diagnostic.text().size() > 60};
  });
  on_world(calls, "Shape::text", "", true, [](World&) -> Answer {
    static const Shape shape = {1000000, 1000000, 1000000};
    return {{}, shape.text() == "[1000000, 1000000, 1000000]"};
  });
  on_world(calls, "Shape::element_count", "", true, [](World&) -> Answer { return {{}, small.element_count() == 12}; });
  on_world(calls, "checked_byte_size", "", true, [](World&) -> Answer {
    int64_t bytes = 0;
    return {{}, checked_byte_size(DType::f32, small, &bytes) && bytes == 48};
  });
  on_world(calls, "machine_memory_bytes", "", true, [](World&) -> Answer { return {{}, machine_memory_bytes() > 0}; });
  on_world(calls, "to_string", "", true, [](World&) -> Answer {
    return {{}, to_string(Code::ok) && to_string(Severity::note) && to_string(DType::f32)};
  });
  on_world(calls, "dtype_from_string", "", true, [](World&) -> Answer {
    static const std::string f32 = "f32";
    return {{}, dtype_from_string(f32) == DType::f32};
  });
  on_world(calls, "byte_width", "", true, [](World&) -> Answer { return {{}, byte_width(DType::f32) == 4}; });
  on_world(calls, "exit_status", "", true, [](World&) -> Answer { return {{}, exit_status(Code::ok) == 0}; });
}

}  // namespace

const std::vector<PublicCall>& public_calls() {
  static const Calls all = [] {
    Calls calls;
    add_runtime_calls(calls);
    add_session_calls(calls);
    add_variable_calls(calls);
    add_context_calls(calls);
    add_observing_calls(calls);
    add_nets_calls(calls);
    add_trainer_calls(calls);
    add_texts(calls);
    return calls;
  }();
  return all;
}

}  // namespace heddle::testing_memory
