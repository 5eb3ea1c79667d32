// classify NET: the smallest host, whole. Runs a net from images [1, 1, 28, 28] to 10 numbers, such as `heddle model lenet`, on one
// picture.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "heddle/session.h"

heddle::Status classify(const char* net, const std::vector<float>& pixels, std::vector<float>& logits) {
  HEDDLE_TRY(const heddle::Runtime runtime, heddle::Runtime::create({}));
  HEDDLE_TRY(heddle::Session session, runtime.open(net));
  HEDDLE_TRY(heddle::Context context, session.prepare());  // compiles, allocates everything once
  logits.resize(10);
  HEDDLE_CHECK(context.bind_input(0, pixels.data()));  // no copy
  HEDDLE_CHECK(context.bind_output(0, logits.data(), logits.size() * sizeof(float)));
  return context.run();  // as often as you like
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: classify NET\n"), 2;
  std::vector<float> logits;
  const heddle::Status status = classify(argv[1], std::vector<float>(28 * 28, 0.5f), logits);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;
  std::printf("class %td\n", std::max_element(logits.begin(), logits.end()) - logits.begin());
  return 0;
}
