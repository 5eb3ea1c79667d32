// frame_loop NET.json: a program with a main loop of its own, such as a game or a control loop, that runs a net once a frame.
//
// Everything happens on the calling thread: no helper threads, and after prepare no lock, allocation or system call of the library's. The
// frame and the result lie in the program's own memory. A frame that takes too long is dropped, the loop continues.
#include <cstdio>
#include <vector>

#include "heddle/session.h"
#include "pictures.h"

namespace {

int fail(const heddle::Status& status) {
  std::fprintf(stderr, "%s\n", status.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: frame_loop NET.json\n"), 2;
  heddle::RuntimeOptions options;
  options.threads = 1;
  auto runtime = heddle::Runtime::create(options);
  if (!runtime.ok()) return fail(runtime.status());
  auto session = runtime->open(argv[1]);
  if (!session.ok()) return fail(session.status());

  std::vector<float> frame(height * width), edges(height * width);
  const heddle::TensorView type{heddle::DType::f32, {1, 1, height, width}, frame.data()};
  auto context = session->prepare({type});
  if (!context.ok()) return fail(context.status());
  heddle::Status bound = context->bind_input(0, frame.data());
  if (bound.ok()) bound = context->bind_output(0, edges.data());
  if (!bound.ok()) return fail(bound);

  heddle::RunOptions frame_time;
  frame_time.deadline_ns = 1'000'000'000;
  int shown = 0, dropped = 0;
  for (int64_t number = 0; number < 300; ++number) {
    const int64_t left = 2 + number % (width - 16);
    draw_bar(left, frame.data());
    const heddle::Status status = context->run(frame_time);
    if (status.code() == heddle::Code::deadline_exceeded) {
      ++dropped;
      continue;
    }
    if (!status.ok()) return fail(status);
    if (!edges_are_right(left, edges.data())) return std::fprintf(stderr, "frame %d has wrong edges\n", static_cast<int>(number)), 1;
    ++shown;
  }
  std::printf("%d frames shown, %d dropped, %lld bytes planned\n", shown, dropped, static_cast<long long>(context->planned_bytes()));
  return shown > 0 ? 0 : 1;
}
