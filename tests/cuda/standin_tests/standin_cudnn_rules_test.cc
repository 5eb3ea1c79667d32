// The rules of the stand-in for cuDNN's backend API; standin_rules_test.cc has the others.
#include "standin_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using StandinRule = StandinTest;
using Ints = std::vector<int64_t>;

// Makes the descriptors of a program, by kind; calls that must succeed are checked.
class Cudnn {
 public:
  explicit Cudnn(const Standin& cuda) : cuda_(cuda), stream(make_stream(cuda)) {
    EXPECT_EQ(cuda.cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cudnnSetStream(handle, stream), CUDNN_STATUS_SUCCESS);
  }
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) const {
    cudnnBackendDescriptor_t made = nullptr;
    EXPECT_EQ(cuda_.cudnnBackendCreateDescriptor(type, &made), CUDNN_STATUS_SUCCESS);
    return made;
  }
  template <class T>
  cudnnStatus_t set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    const std::vector<T>& values) const {
    return cuda_.cudnnBackendSetAttribute(to, name, type, static_cast<int64_t>(values.size()), values.data());
  }
  cudnnStatus_t set_descriptor(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) const {
    return set(to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector<cudnnBackendDescriptor_t>{value});
  }
  cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) const { return cuda_.cudnnBackendFinalize(descriptor); }

  // Makes a row-major tensor of f32, with all of its attributes set.
  cudnnBackendDescriptor_t tensor(int64_t id, const Ints& dims, bool is_virtual = false) const {
    const cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    Ints strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Ints{id}), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, Ints{16}), CUDNN_STATUS_SUCCESS);
    if (is_virtual) {
      EXPECT_EQ(cuda_.cudnnBackendSetAttribute(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual), CUDNN_STATUS_SUCCESS);
    }
    return t;
  }
  cudnnBackendDescriptor_t final_tensor(int64_t id, const Ints& dims, bool is_virtual = false) const {
    const cudnnBackendDescriptor_t t = tensor(id, dims, is_virtual);
    EXPECT_EQ(finalize(t), CUDNN_STATUS_SUCCESS);
    return t;
  }
  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode = CUDNN_POINTWISE_RELU_FWD) const {
    const cudnnBackendDescriptor_t p = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    EXPECT_EQ(set(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector<cudnnPointwiseMode_t>{mode}), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT}),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(finalize(p), CUDNN_STATUS_SUCCESS);
    return p;
  }
  // Makes y = relu(x), not finalized.
  cudnnBackendDescriptor_t relu(cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y) const {
    const cudnnBackendDescriptor_t o = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    EXPECT_EQ(set_descriptor(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise()), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set_descriptor(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set_descriptor(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y), CUDNN_STATUS_SUCCESS);
    return o;
  }
  // Makes a graph of operations, which are finalized; the graph is not.
  cudnnBackendDescriptor_t graph(const std::vector<cudnnBackendDescriptor_t>& operations) const {
    for (const cudnnBackendDescriptor_t operation : operations) EXPECT_EQ(finalize(operation), CUDNN_STATUS_SUCCESS);
    const cudnnBackendDescriptor_t g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    EXPECT_EQ(set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle}), CUDNN_STATUS_SUCCESS);
    return g;
  }
  // Makes a plan of y = relu(x), tensors 1 and 2, [1, 1, 2, 4], by the first engine of a mode: A has a workspace of 4096 bytes.
  cudnnBackendDescriptor_t plan(cudnnBackendHeurMode_t mode) const {
    const cudnnBackendDescriptor_t g = graph({relu(final_tensor(1, {1, 1, 2, 4}), final_tensor(2, {1, 1, 2, 4}))});
    EXPECT_EQ(finalize(g), CUDNN_STATUS_SUCCESS);
    const cudnnBackendDescriptor_t h = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    EXPECT_EQ(set_descriptor(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector<cudnnBackendHeurMode_t>{mode}), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(finalize(h), CUDNN_STATUS_SUCCESS);
    cudnnBackendDescriptor_t config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = 0;
    EXPECT_EQ(cuda_.cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(count, 1);
    const cudnnBackendDescriptor_t p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    EXPECT_EQ(set(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle}), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set_descriptor(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(finalize(p), CUDNN_STATUS_SUCCESS);
    return p;
  }
  cudnnBackendDescriptor_t pack(const Ints& ids, const std::vector<void*>& addresses, void* workspace = nullptr) const {
    const cudnnBackendDescriptor_t v = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    EXPECT_EQ(set(v, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(set(v, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses), CUDNN_STATUS_SUCCESS);
    if (workspace) {
      EXPECT_EQ(set(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{workspace}), CUDNN_STATUS_SUCCESS);
    }
    return v;
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const Ints& ids, const std::vector<void*>& addresses,
                        void* workspace = nullptr) const {
    const cudnnBackendDescriptor_t v = pack(ids, addresses, workspace);
    EXPECT_EQ(finalize(v), CUDNN_STATUS_SUCCESS);
    return cuda_.cudnnBackendExecute(handle, plan, v);
  }

 private:
  const Standin& cuda_;

 public:
  const cudaStream_t stream;
  cudnnHandle_t handle = nullptr;
};

TEST_F(StandinRule, cudnn_unknown_handle) {
  const Cudnn cudnn(cuda);
  EXPECT_EQ(cuda.cudnnDestroy(cudnn.handle), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudnnDestroy(cudnn.handle), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(broken(), "cudnn_unknown_handle: cudnnDestroy");
}

TEST_F(StandinRule, cudnn_device) {
  const Cudnn cudnn(cuda);
  EXPECT_EQ(cuda.cudnnSetStream(cudnn.handle, make_stream(cuda, 1)), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(broken(), "cudnn_device: cudnnSetStream");
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cuda.cudnnSetStream(cudnn.handle, cudnn.stream), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(broken(), "cudnn_device: cudnnSetStream");
}

TEST_F(StandinRule, cudnn_unknown_descriptor) {
  const Cudnn cudnn(cuda);
  const cudnnBackendDescriptor_t tensor = cudnn.final_tensor(1, {1, 1, 2, 4});
  EXPECT_EQ(cuda.cudnnBackendDestroyDescriptor(tensor), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cudnn.finalize(tensor), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(broken(), "cudnn_unknown_descriptor: cudnnBackendFinalize");
}

TEST_F(StandinRule, cudnn_attribute) {
  const Cudnn cudnn(cuda);
  const cudnnBackendDescriptor_t tensor = cudnn.tensor(1, {1, 1, 2, 4});
  EXPECT_EQ(broken(), "");
  EXPECT_NE(cudnn.set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Ints{1, 2}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_attribute: cudnnBackendSetAttribute: attribute 906");
  EXPECT_NE(cudnn.set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32, std::vector<int32_t>{1}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_attribute: cudnnBackendSetAttribute: attribute 906");
  EXPECT_NE(cudnn.set(tensor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, Ints{2}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_attribute: cudnnBackendSetAttribute: attribute 106");
}

TEST_F(StandinRule, cudnn_set_after_finalize) {
  const Cudnn cudnn(cuda);
  const cudnnBackendDescriptor_t tensor = cudnn.final_tensor(1, {1, 1, 2, 4});
  EXPECT_NE(cudnn.set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Ints{2}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_set_after_finalize: cudnnBackendSetAttribute");
  EXPECT_NE(cudnn.finalize(tensor), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_set_after_finalize: cudnnBackendFinalize");
}

TEST_F(StandinRule, cudnn_not_finalized) {
  const Cudnn cudnn(cuda);
  const cudnnBackendDescriptor_t operation = cudnn.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  EXPECT_EQ(cudnn.set_descriptor(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, cudnn.tensor(1, {1, 1, 2, 4})),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(broken(), "cudnn_not_finalized: cudnnBackendSetAttribute");
  int64_t count = 0;
  EXPECT_NE(cuda.cudnnBackendGetAttribute(operation, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_not_finalized: cudnnBackendGetAttribute");
  EXPECT_NE(cuda.cudnnBackendExecute(cudnn.handle, cudnn.plan(CUDNN_HEUR_MODE_FALLBACK), cudnn.pack({}, {})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_not_finalized: cudnnBackendExecute");
}

TEST_F(StandinRule, cudnn_missing_attribute) {
  const Cudnn cudnn(cuda);
  EXPECT_EQ(cudnn.finalize(cudnn.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR)), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(broken(), "cudnn_missing_attribute: cudnnBackendFinalize: TENSOR_DATA_TYPE");
}

TEST_F(StandinRule, cudnn_shapes) {
  const Cudnn cudnn(cuda);
  EXPECT_EQ(cudnn.finalize(cudnn.relu(cudnn.final_tensor(1, {1, 1, 1, 4}), cudnn.final_tensor(2, {1, 3, 2, 4}))), CUDNN_STATUS_SUCCESS)
      << "it broadcasts";
  EXPECT_EQ(broken(), "");
  EXPECT_NE(cudnn.finalize(cudnn.relu(cudnn.final_tensor(1, {1, 1, 2, 3}), cudnn.final_tensor(2, {1, 3, 2, 4}))), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_shapes: cudnnBackendFinalize: a pointwise operation between tensors that do not broadcast");
}

TEST_F(StandinRule, cudnn_graph) {
  const Cudnn cudnn(cuda);
  const Ints dims = {1, 1, 2, 4};
  const cudnnBackendDescriptor_t x = cudnn.final_tensor(1, dims), between = cudnn.final_tensor(2, dims, true),
                                 y = cudnn.final_tensor(3, dims);
  EXPECT_EQ(cudnn.finalize(cudnn.graph({cudnn.relu(x, between), cudnn.relu(between, y)})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_NE(cudnn.finalize(cudnn.graph({cudnn.relu(between, y)})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_graph: cudnnBackendFinalize: a virtual tensor that nothing writes: 2");
  EXPECT_NE(cudnn.finalize(cudnn.graph({cudnn.relu(x, y), cudnn.relu(x, y)})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_graph: cudnnBackendFinalize: a tensor written twice: 3");
  EXPECT_NE(cudnn.finalize(cudnn.graph({cudnn.relu(cudnn.final_tensor(3, {1, 1, 1, 4}), y)})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_graph: cudnnBackendFinalize: two tensors of one id: 3");
}

// Eight floats in and eight out.
struct Memory {
  explicit Memory(const Standin& cuda, const Cudnn& cudnn) : x(static_cast<char*>(make_memory(cuda, 64, cudnn.stream))) {}
  char* const x;
  char* const y = x + 32;
};

TEST_F(StandinRule, cudnn_variant_pack) {
  const Cudnn cudnn(cuda);
  const Memory memory(cuda, cudnn);
  const cudnnBackendDescriptor_t plan = cudnn.plan(CUDNN_HEUR_MODE_FALLBACK);
  EXPECT_EQ(cudnn.execute(plan, {2, 1}, {memory.y, memory.x}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_NE(cudnn.execute(plan, {1}, {memory.x}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_variant_pack: cudnnBackendExecute: tensor 2");
  EXPECT_NE(cudnn.execute(plan, {1, 2, 3}, {memory.x, memory.y, memory.y}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_variant_pack: cudnnBackendExecute: ids of tensors that are not the plan's");
  EXPECT_NE(cudnn.finalize(cudnn.pack({1, 1}, {memory.x, memory.y})), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_variant_pack: cudnnBackendFinalize: an id for each pointer, each once");
}

TEST_F(StandinRule, cudnn_alignment) {
  const Cudnn cudnn(cuda);
  const Memory memory(cuda, cudnn);
  EXPECT_NE(cudnn.execute(cudnn.plan(CUDNN_HEUR_MODE_FALLBACK), {1, 2}, {memory.x + 8, memory.y}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_alignment: cudnnBackendExecute: tensor 1");
}

TEST_F(StandinRule, cudnn_memory) {
  const Cudnn cudnn(cuda);
  const Memory memory(cuda, cudnn);
  const cudnnBackendDescriptor_t plan = cudnn.plan(CUDNN_HEUR_MODE_FALLBACK);
  EXPECT_NE(cudnn.execute(plan, {1, 2}, {memory.x, memory.y + 16}), CUDNN_STATUS_SUCCESS) << "16 bytes beyond its end";
  EXPECT_EQ(broken(), "cudnn_memory: cudnnBackendExecute: tensor 2");
  alignas(16) float here[8] = {};
  EXPECT_NE(cudnn.execute(plan, {1, 2}, {here, memory.y}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_memory: cudnnBackendExecute: tensor 1");
  EXPECT_NE(cudnn.execute(plan, {1, 2}, {memory.x, make_memory(cuda, 32, make_stream(cuda, 1))}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_memory: cudnnBackendExecute: tensor 2");
}

TEST_F(StandinRule, cudnn_workspace) {
  const Cudnn cudnn(cuda);
  const Memory memory(cuda, cudnn);
  const cudnnBackendDescriptor_t plan = cudnn.plan(CUDNN_HEUR_MODE_A);
  EXPECT_EQ(cudnn.execute(plan, {1, 2}, {memory.x, memory.y}, make_memory(cuda, 4096, cudnn.stream)), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
  EXPECT_NE(cudnn.execute(plan, {1, 2}, {memory.x, memory.y}), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_workspace: cudnnBackendExecute");
  EXPECT_NE(cudnn.execute(plan, {1, 2}, {memory.x, memory.y}, make_memory(cuda, 4095, cudnn.stream)), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "cudnn_workspace: cudnnBackendExecute");
}

}  // namespace
}  // namespace heddle::cuda
