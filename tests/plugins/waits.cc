// Operators that work with a thread and memory of their own, as file readers do: asynchronous ones with and without abort(), and one that
// computes.
#include <algorithm>
#include <thread>
#include <vector>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

void copy_by_thread(const RunContext& c) {
  const In<float> x = input<float>(c, 0);
  std::vector<float> read;
  std::thread([&] { read.assign(x.data, x.data + x.size); }).join();
  std::copy(read.begin(), read.end(), output<float>(c, 0).data);
}

class ReadsForEver {
 public:
  Status start(const RunContext& c, Completion done) const {
    copy_by_thread(c);
    done(Status());
    return {};
  }
};
class Reads : public ReadsForEver {
 public:
  void abort(const RunContext&) const {}
};
class Computes {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    copy_by_thread(c);
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("waits", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "waits").in("x", dtypes<float>()).out("y", same_as("x"), dtypes<float>()); };
  plugin.add(op("Reads").cpu<Reads>());
  plugin.add(op("ReadsForEver").cpu<ReadsForEver>());
  plugin.add(op("Computes").cpu<Computes>());
}
