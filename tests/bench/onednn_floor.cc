// The floor that the runtime is compared with: the convolutions of ResNet-50 and the matrix products of a BERT-like encoder as bare oneDNN
// primitives, channels-last, bias, relu and residual fused, weights packed, one after the other on two pinned OpenMP threads.
//
//   onednn_floor [ROUNDS] [BATCH]
//
// Prints one line per workload: median and fastest round in microseconds, arithmetic rate. Compare only figures of the same run of the
// machine (docs/benchmarks.md): run this, then `heddle bench`, then this again.
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr auto f32 = memory::data_type::f32;
constexpr int threads = 2;

struct Device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// The primitive descriptor of an operation, in the words of oneDNN 2 or 3.
template <class Operation, class... Arguments>
typename Operation::primitive_desc describe(const Device& device, const dnnl::primitive_attr& attributes, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Operation::primitive_desc(device.engine, arguments..., attributes);
#else
  return typename Operation::primitive_desc(typename Operation::desc(arguments...), attributes, device.engine);
#endif
}

void append_relu(dnnl::post_ops& post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#else
  post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
}

// A primitive with its arguments, ready to run.
struct Step {
  dnnl::primitive primitive;
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;

  void add(int id, const memory& m) {
    memories.push_back(m);
    arguments.push_back({id, memories.back().get()});
  }
};

struct Workload {
  std::string name;
  std::vector<Step> steps;
  double flops = 0;
};

// Activations live in a few buffers that the layers pass around, as in a planned arena.
class Buffers {
 public:
  Buffers(const Device& device, size_t bytes) {
    for (int i = 0; i < 5; ++i) {
      const memory::dim size = static_cast<memory::dim>(bytes);
      storage_.emplace_back(memory::desc({size}, memory::data_type::u8, Tag::a), device.engine);
      auto* data = static_cast<float*>(storage_.back().get_data_handle());
      for (size_t k = 0; k < bytes / sizeof(float); ++k) data[k] = static_cast<float>(k % 97) / 97.0f - 0.4f;
    }
  }
  void* at(size_t i) const { return storage_[i].get_data_handle(); }

 private:
  std::vector<memory> storage_;
};

memory filled(const Device& device, const memory::desc& desc) {
  memory m(desc, device.engine);
  auto* data = static_cast<float*>(m.get_data_handle());
  for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) data[i] = static_cast<float>(i % 89) / 8900.0f - 0.005f;
  return m;
}

struct Layer {
  memory::dim inputs, extent, outputs, kernel, stride, padding;
  bool relu, residual;
  size_t from, to;
};

std::vector<Layer> resnet50_layers() {
  std::vector<Layer> layers = {{3, 224, 64, 7, 2, 3, true, false, 0, 1}};
  const int blocks[] = {3, 4, 6, 3};
  memory::dim channels = 64, extent = 56, width = 64;
  size_t x = 1;
  for (int stage = 0; stage < 4; ++stage, width *= 2) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const memory::dim stride = block == 0 && stage > 0 ? 2 : 1, outputs = width * 4;
      size_t y = x;
      if (block == 0) {
        y = x == 1 ? 4 : 1;
        layers.push_back({channels, extent, outputs, 1, stride, 0, false, false, x, y});
      }
      layers.push_back({channels, extent, width, 1, 1, 0, true, false, x, 2});
      layers.push_back({width, extent, width, 3, stride, 1, true, false, 2, 3});
      extent /= stride;
      layers.push_back({width, extent, outputs, 1, 1, 0, true, true, 3, y});
      x = y;
      channels = outputs;
    }
  }
  return layers;
}

Step convolution(const Device& device, const Buffers& buffers, const Layer& l, memory::dim batch, double* flops) {
  const memory::dim out = (l.extent + 2 * l.padding - l.kernel) / l.stride + 1;
  const memory::desc x({batch, l.inputs, l.extent, l.extent}, f32, Tag::nhwc), y({batch, l.outputs, out, out}, f32, Tag::nhwc);
  const memory::desc w({l.outputs, l.inputs, l.kernel, l.kernel}, f32, Tag::any), b({l.outputs}, f32, Tag::a);
  dnnl::post_ops post_ops;
  if (l.residual) post_ops.append_sum(1.0f);
  if (l.relu) append_relu(post_ops);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post_ops);
  const memory::dims stride = {l.stride, l.stride}, padding = {l.padding, l.padding};
  const auto desc = describe<dnnl::convolution_forward>(device, attributes, dnnl::prop_kind::forward_inference,
                                                        dnnl::algorithm::convolution_direct, x, w, b, y, stride, padding, padding);
  Step step;
  step.primitive = dnnl::convolution_forward(desc);
  step.add(DNNL_ARG_SRC, memory(x, device.engine, buffers.at(l.from)));
  step.add(DNNL_ARG_WEIGHTS, filled(device, desc.weights_desc()));
  step.add(DNNL_ARG_BIAS, filled(device, b));
  step.add(DNNL_ARG_DST, memory(y, device.engine, buffers.at(l.to)));
  *flops += 2.0 * static_cast<double>(batch * l.outputs * out * out * l.inputs * l.kernel * l.kernel);
  return step;
}

Workload resnet50(const Device& device, const Buffers& buffers, memory::dim batch) {
  Workload workload;
  workload.name = "resnet50_batch" + std::to_string(batch);
  for (const Layer& layer : resnet50_layers()) workload.steps.push_back(convolution(device, buffers, layer, batch, &workload.flops));
  return workload;
}

// One product of the encoder; strides of 0 rank mean dense.
struct Product {
  memory::dims a, b, y;
  memory::dims a_strides, b_strides, y_strides;
  bool weights;  // constant, so oneDNN may pack them; with a bias
};

Step matmul(const Device& device, const Buffers& buffers, const Product& p, double* flops) {
  const memory::desc a(p.a, f32, p.a_strides), y(p.y, f32, p.y_strides);
  const memory::desc b = p.weights ? memory::desc(p.b, f32, Tag::any) : memory::desc(p.b, f32, p.b_strides);
  const memory::desc bias({1, p.y.back()}, f32, Tag::ab);
  const dnnl::matmul::primitive_desc desc =
      p.weights ? describe<dnnl::matmul>(device, {}, a, b, bias, y) : describe<dnnl::matmul>(device, {}, a, b, y);
  Step step;
  step.primitive = dnnl::matmul(desc);
  step.add(DNNL_ARG_SRC, memory(a, device.engine, buffers.at(0)));
  step.add(DNNL_ARG_WEIGHTS, p.weights ? filled(device, desc.weights_desc()) : memory(b, device.engine, buffers.at(1)));
  if (p.weights) step.add(DNNL_ARG_BIAS, filled(device, bias));
  step.add(DNNL_ARG_DST, memory(y, device.engine, buffers.at(2)));
  double count = 2.0 * static_cast<double>(p.a.back());
  for (memory::dim d : p.y) count *= static_cast<double>(d);
  *flops += count;
  return step;
}

// 12 layers, width 768, 12 heads, 128 tokens.
Workload encoder(const Device& device, const Buffers& buffers, memory::dim batch) {
  const memory::dim tokens = 128, width = 768, heads = 12, head = width / heads, rows = batch * tokens, images = batch * heads;
  auto dense = [&](memory::dim k, memory::dim n) { return Product{{rows, k}, {k, n}, {rows, n}, {k, 1}, {n, 1}, {n, 1}, true}; };
  const Product scores = {{images, tokens, head},
                          {images, head, tokens},
                          {images, tokens, tokens},
                          {tokens * head, head, 1},
                          {tokens * head, 1, head},
                          {tokens * tokens, tokens, 1},
                          false};
  const Product mixed = {{images, tokens, tokens},
                         {images, tokens, head},
                         {images, tokens, head},
                         {tokens * tokens, tokens, 1},
                         {tokens * head, head, 1},
                         {tokens * head, head, 1},
                         false};
  const std::vector<Product> layer = {dense(width, width), dense(width, width),     dense(width, width),    scores, mixed,
                                      dense(width, width), dense(width, 4 * width), dense(4 * width, width)};
  Workload workload;
  workload.name = "encoder_matmuls_batch" + std::to_string(batch);
  for (int i = 0; i < 12; ++i)
    for (const Product& product : layer) workload.steps.push_back(matmul(device, buffers, product, &workload.flops));
  return workload;
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

void run(const Device& device, const Workload& workload) {
  for (const Step& step : workload.steps)
    dnnl_primitive_execute(step.primitive.get(), device.stream.get(), static_cast<int>(step.arguments.size()), step.arguments.data());
}

void measure(const Device& device, const Workload& workload, int rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int r = 0; r < rounds + 3; ++r) {
    const Clock::time_point start = Clock::now();
    run(device, workload);
    if (r >= 3) times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("%-28s threads %d  median %10.1f us  fastest %10.1f us  %6.1f GFLOP/s\n", workload.name.c_str(), threads, median, times[0],
              workload.flops / median * 1e-3);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  const memory::dim batch = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  omp_set_num_threads(threads);
#pragma omp parallel num_threads(threads)
  pin(omp_get_thread_num());
  const Device device;
  // The largest activation of either workload.
  const Buffers buffers(device, static_cast<size_t>(batch) * 64 * 112 * 112 * sizeof(float) + (1u << 22));
  measure(device, resnet50(device, buffers, batch), rounds);
  measure(device, encoder(device, buffers, batch), rounds);
  return 0;
}
