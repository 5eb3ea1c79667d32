// How op.h treats heddle_tensor::space: a kernel that would access device memory as host memory fails with an error before it does.
#include <gtest/gtest.h>

#include <string>

#include "heddle/op.h"

namespace {

using namespace heddle::plugin;

Status twice(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  return {};
}
struct Bare {
  Status run(const RunContext&, int64_t, int64_t) const { return {}; }
};
struct Staged : Bare {
  Status prepare(PrepareContext& c) { return c.set_tiles(7), Status(); }
};
struct ReadsItself {
  Status run(const RunContext& c, int64_t, int64_t) const { return host_input<float>(c, 0)[0] == 3 ? Status() : invalid("not 3"); }
};

std::string said;

class Space : public testing::Test {
 protected:
  void SetUp() override {
    said.clear();
    host_.set_error = [](const heddle_call*, heddle_status, const char* text, size_t length) { said.assign(text, length); };
    for (heddle_tensor* t : {&x_, &y_}) {
      t->struct_size = sizeof(*t);
      t->dtype = HEDDLE_F32;
      t->data = &number_;
      t->element_count = 1;
    }
  }
  // Returns the result of `prepare` of the last kernel of `op`; a null `prepare` counts as success.
  heddle_status prepare(Op op) {
    Builder builder("space", "1");
    builder.add(op.in("x").out("y", same_as("x")));
    const heddle_kernel& kernel = *builder.finish(nullptr, nullptr)->kernels[0];
    if (!kernel.prepare) return HEDDLE_OK;
    void* state = nullptr;
    heddle_create_context create = {};
    create.host = &host_;
    EXPECT_TRUE(!kernel.create || kernel.create(&create, &state) == HEDDLE_OK);
    heddle_prepare_context c = {};
    c.host = &host_;
    c.input_count = c.output_count = 1;
    c.inputs = &in_;
    c.outputs = &prepared_;
    c.state = state;
    c.tile_count = 1;
    const heddle_status status = kernel.prepare(&c);
    if (kernel.destroy) kernel.destroy(state);
    return status;
  }
  static Op op() { return Op("Op", "space"); }

  heddle_host host_ = {};
  heddle_tensor x_ = {}, y_ = {};
  const heddle_tensor *in_ = &x_, *prepared_ = &y_;
  heddle_tensor* out_ = &y_;
  float number_ = 3;
};

TEST_F(Space, KernelsOfTheHostAreRefusedDeviceMemory) {
  const auto refused = [&](const std::string& port) {
    for (const Op& each : {op().cpu<twice>(), op().cpu<twice>().elementwise(), op().cpu<Bare>(), op().cpu<Staged>()}) {
      said.clear();
      EXPECT_EQ(prepare(each), HEDDLE_ERROR_INVALID);
      EXPECT_NE(said.find(port + " in device memory"), std::string::npos) << said;
    }
  };
  for (const Op& each : {op().cpu<twice>(), op().cpu<twice>().elementwise(), op().cpu<Bare>(), op().cpu<Staged>()})
    EXPECT_EQ(prepare(each), HEDDLE_OK) << said;
  x_.space = HEDDLE_SPACE_DEVICE;
  refused("input 0");
  x_.space = HEDDLE_SPACE_HOST;
  y_.space = HEDDLE_SPACE_DEVICE;
  refused("output 0");
}

TEST_F(Space, KernelsOfADeviceTakeIt) {
  x_.space = y_.space = HEDDLE_SPACE_DEVICE;
  EXPECT_EQ(prepare(op().kernel<twice>("sim")), HEDDLE_OK) << said;
  EXPECT_EQ(prepare(op().kernel<twice>("sim").elementwise()), HEDDLE_OK) << said;
  EXPECT_EQ(prepare(op().kernel<Staged>("sim")), HEDDLE_OK) << said;
}

TEST_F(Space, AKernelThatReadsDeviceMemoryItselfSaysSo) {
  Builder builder("space", "1");
  builder.add(op().in("x").out("y", same_as("x")).kernel<ReadsItself>("sim"));
  const heddle_kernel& kernel = *builder.finish(nullptr, nullptr)->kernels[0];
  ReadsItself state;
  heddle_run_context c = {};
  c.host = &host_;
  c.input_count = c.output_count = 1;
  c.inputs = &in_;
  c.outputs = &out_;
  c.state = &state;
  EXPECT_EQ(kernel.run(&c, 0, 1), HEDDLE_OK) << said;
  x_.space = HEDDLE_SPACE_DEVICE;
  EXPECT_NE(kernel.run(&c, 0, 1), HEDDLE_OK);
  EXPECT_NE(said.find("input 0 itself, which lies in device memory"), std::string::npos) << said;
}

}  // namespace
