#include "fuzz/session_case.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/mutate.h"
#include "fuzz/net_case.h"
#include "guarded_memory.h"
#include "session/session_impl.h"

namespace heddle::fuzz {
namespace {

using testing::Guard;
using testing::GuardedMemory;
using Blobs = std::vector<std::shared_ptr<const Blob>>;
constexpr int64_t max_input_bytes = 4 << 20;

struct Buffers {
  std::vector<std::unique_ptr<GuardedMemory>> inputs, outputs;
};

std::unique_ptr<GuardedMemory> buffer(int64_t bytes, Dice& dice) {
  return std::make_unique<GuardedMemory>(static_cast<size_t>(bytes), dice.one_in(3) ? Guard::front : Guard::behind);
}

// Returns an input's type with symbols and open extents as small numbers, an unknown rank as [2, 3].
TensorView input_view(const PortInfo& port) {
  TensorView view;
  view.dtype = port.dtype == DType::none ? DType::f32 : port.dtype;
  view.shape = port.ranked ? port.shape : Shape{2, 3};
  for (int i = 0; i < view.shape.rank(); ++i)
    if (view.shape[i] < 0) view.shape[i] = 3;
  return view;
}

void check_intact(const Buffers& buffers) {
  for (const auto* list : {&buffers.inputs, &buffers.outputs})
    for (const auto& one : *list)
      if (one && !one->intact()) {
        std::fprintf(stderr, "something was written outside a buffer of the caller\n");
        std::abort();
      }
}

bool is_no_float(DType dtype) {
  return dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64;
}

// Makes contents of the inputs and views of them. A view has no data where the input is too large to allocate: it can be prepared for, not
// run.
void make_inputs(const std::vector<PortInfo>& ports, const Blobs& feeds, Dice& dice, Buffers* buffers, std::vector<TensorView>* views) {
  for (size_t i = 0; i < ports.size(); ++i) {
    TensorView view = input_view(ports[i]);
    const Blob* feed = i < feeds.size() ? feeds[i].get() : nullptr;
    if (feed && !dice.one_in(16)) view.dtype = feed->dtype, view.shape = feed->shape;
    int64_t bytes = 0;
    if (!checked_byte_size(view.dtype, view.shape, &bytes) || bytes > max_input_bytes) {
      views->push_back(view);
      buffers->inputs.push_back(nullptr);
      continue;
    }
    buffers->inputs.push_back(buffer(bytes, dice));
    const auto content = feed && feed->bytes == bytes ? nullptr : random_blob(view.dtype, view.shape, dice);
    std::memcpy(buffers->inputs.back()->data(), content ? content->data : feed->data, static_cast<size_t>(bytes));
    view.data = buffers->inputs.back()->data();
    views->push_back(view);
  }
}

// Changes the content of the integer inputs, which may be shapes, axes or indices: half of the elements of each, to small numbers half of
// the time, which could be valid ones.
void change_contents(const std::vector<TensorView>& views, Dice& dice) {
  for (const TensorView& view : views) {
    if (!view.data || !is_no_float(view.dtype) || view.byte_size() == 0 || view.byte_size() > 65536) continue;
    const bool small = dice.one_in(2);
    const auto width = static_cast<size_t>(byte_width(view.dtype));
    for (int64_t i = 0; i < view.shape.element_count(); ++i) {
      if (!dice.one_in(2)) continue;
      const int64_t number = view.dtype == DType::boolean ? static_cast<int64_t>(dice.below(2))
                             : small                      ? static_cast<int64_t>(dice.below(8)) - 3
                                                          : dice.integer();
      std::memcpy(static_cast<std::byte*>(view.data) + static_cast<size_t>(i) * width, &number, width);
    }
  }
}

// A case runs up to four times, all within the two seconds that a case may take.
RunOptions run_options() {
  RunOptions options;
  options.deadline_ns = 250'000'000;
  return options;
}

Status run_context(Context& context, const std::vector<TensorView>& views, Dice& dice, Buffers* buffers) {
  for (size_t i = 0; i < views.size(); ++i)
    if (views[i].data) HEDDLE_CHECK(context.bind_input(i, views[i].data));
  for (size_t i = 0; i < context.output_count(); ++i) {
    const int64_t bytes = context.output_bytes(i);
    if (bytes < 0 || bytes > max_input_bytes || dice.one_in(4)) continue;
    buffers->outputs.push_back(buffer(bytes, dice));
    const Status bound = context.bind_output(i, buffers->outputs.back()->data(), bytes);
    if (!bound.ok() && bound.code() != Code::unsupported && bound.code() != Code::invalid_argument) return bound;
  }
  HEDDLE_CHECK(context.run(run_options()));
  // Reads every byte of the results.
  for (size_t i = 0; i < context.output_count(); ++i) {
    const TensorView result = context.output(i);
    unsigned sum = 0;
    for (int64_t k = 0; result.data && k < result.byte_size(); ++k) sum += static_cast<const uint8_t*>(result.data)[k];
    if (sum == 0xFFFFFFFFu) std::fputs("", stderr);  // keeps the reads
  }
  return {};
}

}  // namespace

Runtime cpu_runtime() {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
  options.default_plugins = false;
  options.threads = 1;
  const auto runtime = Runtime::create(options);
  if (!runtime.ok()) {
    std::fprintf(stderr, "%s\n", runtime.status().text().c_str());
    std::exit(2);
  }
  return *runtime;
}

Limits case_limits() {
  return Target::limits();
}

Ending run_in_session(const Runtime& runtime, Net net, const Blobs& feeds, Dice& dice) {
  SessionOptions options;
  options.limits = case_limits();
  options.memory_limit = 16 << 20;
  Result<Session> session = runtime.open(std::move(net), options);
  if (!session.ok()) return {"open", session.status()};
  Buffers buffers;
  std::vector<TensorView> views;
  make_inputs(session->inputs(), feeds, dice, &buffers, &views);
  Result<Context> context = session->prepare(views);
  if (!context.ok()) return {"prepare", context.status()};
  Status status = run_context(*context, views, dice, &buffers);
  check_intact(buffers);
  const Ending first = status.ok() ? Ending{} : Ending{"run", status};
  for (int again = 0; again < 4; ++again) {
    change_contents(views, dice);
    status = dice.one_in(4) ? session->run(views, run_options()).status() : context->run(run_options());
    check_intact(buffers);
    if (!status.ok() && status.code() == Code::internal) return {"run with another content", status};
  }
  return first;
}

}  // namespace heddle::fuzz
