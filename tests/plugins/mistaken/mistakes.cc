// Operators with one mistake each, which `heddle plugin check` must find and name: tests/tool/mistakes_test.cc lists the names.
#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

void copy(const In<float>& x, Out<float>& y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
}

// ---------------------------------------------------------------- memory

Status reads_behind(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + 0 * x[i + 1];
  return {};
}
Status reads_before(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] > x[i - 1] ? x[i] : x[i] + 0;
  return {};
}
Status reads_behind_the_optional(In<float> x, OptionalIn<float> b, Out<float> y) {
  copy(x, y);
  if (b && x.size > 0) y[0] += b[b.size];
  return {};
}
Status writes_far_behind(In<float> x, Out<float> y) {
  copy(x, y);
  y[x.size + 1000] = 1;
  return {};
}
Status writes_before(In<float> x, Out<float> y) {
  copy(x, y);
  y[-1] = 1;
  return {};
}
Status writes_behind_in_a_mode(In<float> x, const Attributes& attributes, Out<float> y) {
  copy(x, y);
  if (attributes.i("mode") == 1) y[x.size] = 1;
  return {};
}
Status writes_its_input(In<float> x, Out<float> y) {
  copy(x, y);
  if (x.size > 2) const_cast<float*>(x.data)[2] = 0;
  return {};
}

class Scratch {
 public:
  Status prepare(PrepareContext& c) { return c.set_scratch(64), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const float sum = *step_scratch<float>(c);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + sum;
    return {};
  }
};
class ThreadScratch {
 public:
  Status prepare(PrepareContext& c) { return c.set_scratch(0, 64), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const float sum = *thread_scratch<float>(c);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + sum;
    return {};
  }
};
Status leaves_the_tail(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size / 4 * 4; ++i) y[i] = x[i];
  return {};
}
Status unwritten_extent(In<float> x, Out<float> y) {
  copy(x, y);
  return {};
}
Status infer_bounded(InferContext& c) {
  c.set_dims(0, {c.input(0).element_count});
  c.set_bounded(0, 0);
  return {};
}

// ---------------------------------------------------------------- results

class ByThread {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(4), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = begin; i < x.size; i += 4)
      for (int64_t at = i; at < x.size && i < end; at += x.size)
        output<float>(c, 0)[at] = x[at] + static_cast<float>(c.host->thread_index(c.call));
    for (int64_t tile = begin; tile < end; ++tile)
      for (int64_t at = tile; at < x.size; at += 4) output<float>(c, 0)[at] = x[at] + static_cast<float>(c.host->thread_index(c.call));
    return {};
  }
};
class ByThreads {
 public:
  Status create(const CreateContext& c) { return threads_ = c.max_threads(), Status(); }
  Status prepare(PrepareContext& c) { return c.set_tiles(threads_), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; begin == 0 && i < x.size; ++i) output<float>(c, 0)[i] = x[i];
    return {};
  }

 private:
  int64_t threads_ = 1;
};
class Restarts {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(8), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    float sum = 0;
    for (int64_t i = x.size * begin / 8; i < x.size * end / 8; ++i) output<float>(c, 0)[i] = sum += x[i];
    return {};
  }
};
Status draws(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + static_cast<float>(std::rand());
  return {};
}
Status counts(In<float> x, Out<float> y) {
  static float calls = 0;
  calls += 1;
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + calls;
  return {};
}
class Seeded {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const float seed = c.run_state ? static_cast<float>(c.run_state->seed % 1000) : 0;
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + seed;
    return {};
  }
};
Status unchecked(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) y[i] = x.size > 0 ? x[index[i]] : 0;
  return {};
}
Status checked_above(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (index[i] >= x.size) return invalid("an index is too large");
    y[i] = x[index[i]];
  }
  return {};
}

// ---------------------------------------------------------------- what a run does beside

Status allocates(In<float> x, Out<float> y) {
  const std::vector<float> doubled(static_cast<size_t>(x.size) + 1, 0.0f);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + doubled[static_cast<size_t>(i)];
  return {};
}
Status allocates_by_malloc(In<float> x, Out<float> y) {
  void* volatile memory = std::malloc(100);
  copy(x, y);
  std::free(memory);
  return {};
}
Status starts_a_thread(In<float> x, Out<float> y) {
  std::thread([&] { copy(x, y); }).join();
  return {};
}
Status says_hello(In<float> x, Out<float> y) {
  std::printf("hello\n");
  copy(x, y);
  return {};
}
class LeaksInCreate {
 public:
  Status create(const CreateContext&) { return memory_ = std::malloc(64), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i];
    return {};
  }

 private:
  void* volatile memory_ = nullptr;
};
class LeaksAFile {
 public:
  Status create(const CreateContext&) { return file_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i];
    return {};
  }

 private:
  int file_ = -1;
};
// Refuses inputs of rank 1, and leaks then.
class LeaksWhenItRefuses {
 public:
  Status create(const CreateContext& c) {
    if (c.input(0)->rank != 1) return {};
    void* volatile memory = std::malloc(64);
    return memory ? invalid("not of rank 1") : Status();
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i];
    return {};
  }
};

// ---------------------------------------------------------------- epilogues

// Copies x, and applies the one epilogue op that `takes` accepts by f(acc, operand).
template <class Taken>
class Behind {
 public:
  static bool accepts_epilogue(const CreateContext& c) { return c.epilogue_op_count() == 1 && Taken::takes(c.epilogue_op(0)); }
  Status create(const CreateContext& c) {
    operand_ = c.epilogue_op_count() == 1 ? c.epilogue_op(0).operand_input : -1;
    has_epilogue_op_ = c.epilogue_op_count() == 1;
    return has_epilogue_op_ ? Taken::create() : Status();
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0), operand = input<float>(c, operand_ < 0 ? 0 : static_cast<uint32_t>(operand_));
    for (int64_t i = 0; i < x.size; ++i)
      output<float>(c, 0)[i] = has_epilogue_op_ ? Taken::compute(x[i], operand[operand.size == x.size ? i : 0]) : x[i];
    return {};
  }

 private:
  int32_t operand_ = -1;
  bool has_epilogue_op_ = false;
};
bool is(const heddle_epilogue_op& epilogue_op, const char* expression, int32_t kind) {
  return std::string(epilogue_op.expression) == expression && epilogue_op.operand_kind == kind;
}
struct AddsTheOperand {
  static bool takes(const heddle_epilogue_op& epilogue_op) { return is(epilogue_op, "add(acc, operand)", HEDDLE_OPERAND_SAME_SHAPE); }
  static Status create() { return {}; }
  static float compute(float acc, float operand) { return acc + operand; }
};
struct OtherWayRound : AddsTheOperand {
  static bool takes(const heddle_epilogue_op& epilogue_op) { return is(epilogue_op, "sub(operand, acc)", HEDDLE_OPERAND_SAME_SHAPE); }
  static float compute(float acc, float operand) { return acc - operand; }
};
struct LosesNan : AddsTheOperand {
  static bool takes(const heddle_epilogue_op& epilogue_op) { return is(epilogue_op, "max(acc, 0)", HEDDLE_OPERAND_NONE); }
  static float compute(float acc, float) { return acc > 0 ? acc : 0; }
};
struct FirstForAll : AddsTheOperand {
  static bool takes(const heddle_epilogue_op& epilogue_op) { return is(epilogue_op, "max(operand, acc)", HEDDLE_OPERAND_SCALAR); }
  static float compute(float acc, float operand) { return acc == operand ? operand : acc; }
};
struct AcceptsAndRefuses : AddsTheOperand {
  static Status create() { return unsupported("none after all"); }
};

// ---------------------------------------------------------------- commutative

Status plus(In<float> x, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + b[i];
  return {};
}
Status minus(In<float> x, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] - b[i];
  return {};
}
// The result loses a NaN in x.
Status larger(In<float> x, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] > b[i] ? x[i] : b[i];
  return {};
}
Status infer_same(InferContext& c) {
  if (dims_text(c.dims(0)) != dims_text(c.dims(1))) return invalid("x and b have the same dims");
  return c.set_dims(0, c.dims(0)), Status();
}
// Gives its output the dims of x.
Status infer_first(InferContext& c) {
  if (c.input(0).element_count != c.input(1).element_count) return invalid("x and b have as many elements");
  return c.set_dims(0, c.dims(0)), Status();
}

// ---------------------------------------------------------------- examples

Status doubled(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  return {};
}
// Its mistake shows only with shapes that an example gives.
Status rows_behind(In<float> x, In<float> row, Out<float> y) {
  copy(x, y);
  if (row.size > 0 && row.size < x.size) y[x.size] = row[0];
  return {};
}
Status infer_rows(InferContext& c) {
  if (c.dims(0).rank != 2 || c.dims(1).rank != 1) return invalid("x has rank 2, row has rank 1");
  return c.set_dims(0, c.dims(0)), Status();
}

}  // namespace

HEDDLE_PLUGIN("mistakes", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x").out("y", same_as("x")); };
  plugin.add(op("ReadsBehind").cpu<reads_behind>());
  plugin.add(op("ReadsBefore").cpu<reads_before>());
  plugin.add(Op("ReadsBehindTheOptional", "mistakes").in("x").optional("b").out("y", same_as("x")).cpu<reads_behind_the_optional>());
  plugin.add(op("WritesFarBehind").cpu<writes_far_behind>());
  plugin.add(op("WritesBefore").cpu<writes_before>());
  plugin.add(op("WritesBehindInAMode").attribute("mode", 0).cpu<writes_behind_in_a_mode>());
  plugin.add(op("WritesItsInput").cpu<writes_its_input>());
  plugin.add(op("ReadsScratch").cpu<Scratch>());
  plugin.add(op("ReadsThreadScratch").cpu<ThreadScratch>());
  plugin.add(op("LeavesTheTail").cpu<leaves_the_tail>());
  plugin.add(Op("UnwrittenExtent", "mistakes").in("x").out("y").infer(infer_bounded).cpu<unwritten_extent>());
  plugin.add(op("ByThread").cpu<ByThread>({dtypes<float>()}));
  plugin.add(op("ByThreads").cpu<ByThreads>({dtypes<float>()}));
  plugin.add(op("Restarts").cpu<Restarts>({dtypes<float>()}));
  plugin.add(op("Draws").cpu<draws>());
  plugin.add(op("Counts").cpu<counts>());
  plugin.add(op("Seeded").cpu<Seeded>({dtypes<float>()}));
  const auto gather = [](const char* name) {
    return Op(name, "mistakes").in("x").in("index", dtypes<int64_t>(), nullptr).indexes("x", 0).out("y", same_as("index"), any_dtype, "T");
  };
  plugin.add(gather("Unchecked").cpu<unchecked>());
  plugin.add(gather("CheckedAbove").cpu<checked_above>());
  plugin.add(op("Allocates").cpu<allocates>());
  plugin.add(op("AllocatesByMalloc").cpu<allocates_by_malloc>());
  plugin.add(op("StartsAThread").cpu<starts_a_thread>());
  plugin.add(op("SaysHello").cpu<says_hello>());
  plugin.add(op("LeaksInCreate").cpu<LeaksInCreate>({dtypes<float>()}));
  plugin.add(op("LeaksAFile").cpu<LeaksAFile>({dtypes<float>()}));
  plugin.add(op("LeaksWhenItRefuses").cpu<LeaksWhenItRefuses>({dtypes<float>()}));
  plugin.add(op("EpilogueOtherWayRound").cpu<Behind<OtherWayRound>>({dtypes<float>()}));
  plugin.add(op("EpilogueLosesNan").cpu<Behind<LosesNan>>({dtypes<float>()}));
  plugin.add(op("EpilogueOfAnother").cpu<Behind<FirstForAll>>({dtypes<float>()}));
  plugin.add(op("AcceptsAndRefuses").cpu<Behind<AcceptsAndRefuses>>({dtypes<float>()}));
  plugin.add(op("HonestWithAnEpilogue").cpu<Behind<AddsTheOperand>>({dtypes<float>()}));
  const auto commutative = [](const char* name) {
    return Op(name, "mistakes").in("x").in("b").out("y").traits(HEDDLE_TRAIT_COMMUTATIVE).infer(infer_same);
  };
  plugin.add(commutative("CommutativeMinus").cpu<minus>());
  plugin.add(commutative("CommutativeButForNan").cpu<larger>());
  plugin.add(commutative("CommutativeButForDims").infer(infer_first).example("f32[2,3], f32[3,2]").cpu<plus>());
  plugin.add(commutative("HonestPlus").cpu<plus>());
  plugin.add(op("OtherThanItsExample").example("f32[2] = 1 2 -> f32[2] = 3 6", "by hand").cpu<doubled>());
  plugin.add(op("RefusesItsExample").example("f32[2] = 1 2, f32[1] = 1").cpu<doubled>());
  plugin.add(op("UnreadableExample").example("f32[2] = 1 2 3").cpu<doubled>());
  plugin.add(Op("BehindAnExample", "mistakes").in("x").in("row").out("y").infer(infer_rows).example("f32[3,4], f32[4]").cpu<rows_behind>());
  plugin.add(op("Honest").example("f32[3] = 1 -2 inf -> f32[3] = 2 -4 inf", "by hand").cpu<doubled>());
}
