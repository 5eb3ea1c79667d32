// The participants of a collective in one process: ranks, each a session with a thread of its own, or the devices of one session.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "build_folder.h"
#include "net/net.h"
#include "session/session_impl.h"

namespace heddle::testing_collectives {

// The number of participants, and whether they are devices, of which kind. Ranks of kind "gloo" are connected as processes are; those of
// kind "nccl" have a device of kind "cuda" each.
struct Crew {
  int size = 1;
  bool devices = false;
  std::string kind = "sim";
  std::string text() const {
    return (kind != "sim" ? kind : devices ? "devices" : "ranks") + std::to_string(size) + (kind == "nccl" && !devices ? "ranks" : "");
  }
  std::string device(int index) const { return (kind == "nccl" ? "cuda" : kind) + ":" + std::to_string(index); }
  bool on_cuda() const { return kind == "cuda" || kind == "nccl"; }
};
inline void PrintTo(const Crew& crew, std::ostream* out) {
  *out << crew.text();
}
inline std::vector<Crew> crews() {
  return {{1, false}, {2, false}, {3, false}, {4, false}, {8, false}, {1, true}, {2, true}, {3, true}, {4, true}, {8, true}, {16, true}};
}
// True if there are the CUDA plugin and the stand-in for NVIDIA's libraries.
inline bool has_cuda() {
  return std::filesystem::exists(testing::build_folder() + "/lib/test/cuda_standin.so");
}
inline std::vector<Crew> crews_of_all_kinds() {
  std::vector<Crew> all = crews();
  for (const int size : {2, 3, 4, 9}) all.push_back({size, false, "gloo"});
  if (has_cuda())
    for (const char* const kind : {"cuda", "nccl"})
      for (const int size : {1, 2, 3, 4, 5, 16}) all.push_back({size, true, kind});
  if (has_cuda())
    for (const int size : {2, 4}) all.push_back({size, false, "nccl"});
  return all;
}
// These are those of kind "sim", and devices that NCCL connects.
inline std::vector<Crew> crews_with_nccl() {
  std::vector<Crew> all = crews();
  if (has_cuda())
    for (const Crew& crew : {Crew{1, true, "nccl"}, Crew{2, true, "nccl"}, Crew{4, true, "nccl"}, Crew{2, false, "nccl"}})
      all.push_back(crew);
  return all;
}
// The ways in which ranks of a job are connected, for tests of one size.
inline std::vector<Crew> kinds_of_ranks() {
  std::vector<Crew> all = {{0, false}, {0, false, "gloo"}};
  if (has_cuda()) all.push_back({0, false, "nccl"});
  return all;
}
// Declares a suite of TEST_P over the result of `crews`.
#define HEDDLE_CREW_SUITE_OF(suite, crews)                                                  \
  class suite : public ::testing::TestWithParam<testing_collectives::Crew> {};              \
  INSTANTIATE_TEST_SUITE_P(Crews, suite, ::testing::ValuesIn(testing_collectives::crews()), \
                           [](const auto& info) { return info.param.text(); })
#define HEDDLE_CREW_SUITE(suite) HEDDLE_CREW_SUITE_OF(suite, crews)

// Gives the devices of kind "sim" that are opened during its lifetime a setting, such as "SEED".
class SimSetting {
 public:
  SimSetting(const std::string& name, const std::string& value) : name_("HEDDLE_SIM_" + name) { ::setenv(name_.c_str(), value.c_str(), 1); }
  ~SimSetting() { ::unsetenv(name_.c_str()); }
  SimSetting(const SimSetting&) = delete;
  SimSetting& operator=(const SimSetting&) = delete;

 private:
  const std::string name_;
};

// The stand-in for NVIDIA's libraries, with 16 devices; the plugin uses the same one.
inline void* standin() {
  static void* const loaded = [] {
    const std::string file = testing::build_folder() + "/lib/test/cuda_standin.so";
    ::setenv("HEDDLE_CUDA_STANDIN", file.c_str(), 1);
    ::setenv("HEDDLE_CUDA_STANDIN_DEVICES", "16", 1);
    ::setenv("HEDDLE_CUDA_CACHE", "off", 1);
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }();
  return loaded;
}

// Returns NVIDIA's rules that were broken since it was last called, one a line.
inline std::string broken_rules() {
  const auto broken = reinterpret_cast<const char* (*)()>(dlsym(standin(), "heddle_standin_broken"));
  return broken ? broken() : "the stand-in says nothing";
}

// A runtime with the plugins cpu, sim and `kind`; each kind has 16 devices.
inline Runtime runtime_with_devices(int threads = 1, const std::string& kind = "sim") {
  ::setenv("HEDDLE_SIM_DEVICES", "16", 0);
  if (kind == "cuda" || kind == "nccl") standin();
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = threads;
  std::set<std::string> plugins = {"cpu", "sim", kind};
  if (kind == "nccl") plugins.insert({"cuda", "gloo"});
  for (const std::string& plugin : plugins) options.plugins.push_back(testing::build_folder() + "/lib/" + plugin + ".so");
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline std::string sim(int device) {
  return "sim:" + std::to_string(device);
}

inline const std::string world = "world";  // the communicator of all tests

// A folder of this process, in which ranks of kind "gloo" meet. It goes when the process ends.
inline std::string folder_of(const std::string& job) {
  struct Root {
    Root() : path(std::filesystem::temp_directory_path() / ("heddle-ranks-" + std::to_string(::getpid()))) {}
    ~Root() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    const std::filesystem::path path;
  };
  static const Root root;
  std::string name;
  for (const char c : job) name += c == '/' ? '_' : c;
  return (root.path / name).string();
}

// A session's options, in which `world` is what the crew is; `rank` of those that are ranks. `job`: where ranks meet.
inline SessionOptions options_of(const Crew& crew, const std::string& job, int rank = 0) {
  SessionOptions options;
  options.copies = Copies::automatic;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.name = world;
  if (crew.devices) {
    for (int d = 0; d < crew.size; ++d) communicator.devices.push_back(crew.device(d));
  } else {
    if (crew.kind == "nccl") options.device = crew.device(rank);
    communicator.rank = rank;
    communicator.size = crew.size;
    communicator.rendezvous = crew.size == 1 ? "" : crew.kind == "gloo" ? "file:" + folder_of(job) : "local:" + job;
  }
  return options;
}

// The elements of a tensor.
struct Array {
  DType dtype = DType::none;
  Shape shape;
  std::vector<char> bytes;
  template <class T>
  static Array of(DType dtype, const Shape& shape, const std::vector<T>& values) {
    Array made{dtype, shape, std::vector<char>(values.size() * sizeof(T))};
    if (!values.empty()) std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
    return made;
  }
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  friend bool operator==(const Array&, const Array&) = default;
};
using Arrays = std::vector<Array>;

inline Array copy_of(const TensorView& view) {
  const auto* const data = static_cast<const char*>(view.data);
  return {view.dtype, view.shape, {data, data + view.byte_size()}};
}

inline Array copy_of(const Tensor& tensor) {
  return copy_of(TensorView{tensor.dtype(), tensor.shape(), const_cast<void*>(tensor.data())});
}

// Adds the operators of one participant, whose names end with `suffix`, and returns its outputs.
using Body = std::function<std::vector<ValueId>(NetBuilder& b, const std::vector<ValueId>& inputs, const std::string& suffix)>;

// The results of one participant.
struct Outcome {
  Arrays outputs;
  Status status;
};

namespace detail {

inline std::vector<ValueId> add_inputs(NetBuilder& b, const Arrays& inputs, const std::string& suffix) {
  std::vector<ValueId> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.push_back(b.input("x" + std::to_string(i) + suffix, inputs[i].dtype, inputs[i].shape));
  return values;
}

inline Status run(const Runtime& runtime, Net net, const SessionOptions& options, const Arrays& inputs, int runs, Arrays* outputs) {
  HEDDLE_TRY(Session session, runtime.open(std::move(net), options));
  HEDDLE_TRY(Context context, session.prepare());
  for (size_t i = 0; i < inputs.size(); ++i) HEDDLE_CHECK(context.bind_input(i, inputs[i].bytes.data()));
  for (int i = 0; i < runs; ++i) HEDDLE_CHECK(context.run());
  for (size_t i = 0; i < context.output_count(); ++i) outputs->push_back(copy_of(context.output(i)));
  return {};
}

}  // namespace detail

// Runs the body of all participants `runs` times; inputs[p] are those of participant p.
inline std::vector<Outcome> run(const Crew& crew, const std::vector<Arrays>& inputs, const Body& body, int runs = 1,
                                const std::string& job = "job") {
  std::vector<Outcome> results(inputs.size());
  if (crew.devices) {
    NetBuilder b("devices");
    Arrays all;
    for (size_t p = 0; p < inputs.size(); ++p) {
      const std::string suffix = "_" + std::to_string(p);
      const std::vector<ValueId> values = detail::add_inputs(b, inputs[p], suffix);
      const size_t first = b.net().nodes.size();
      for (const ValueId output : body(b, values, suffix)) b.output(output);
      for (size_t n = first; n < b.net().nodes.size(); ++n) b.net().nodes[n].device = crew.device(static_cast<int>(p));
      all.insert(all.end(), inputs[p].begin(), inputs[p].end());
    }
    const size_t outputs = b.net().outputs.size() / inputs.size();
    Arrays got;
    const Status status = detail::run(runtime_with_devices(2, crew.kind), b.finish(), options_of(crew, job), all, runs, &got);
    EXPECT_EQ(crew.on_cuda() ? broken_rules() : "", "");
    for (size_t p = 0; p < inputs.size(); ++p) {
      results[p].status = status;
      if (status.ok())
        results[p].outputs.assign(got.begin() + static_cast<std::ptrdiff_t>(p * outputs),
                                  got.begin() + static_cast<std::ptrdiff_t>((p + 1) * outputs));
    }
    return results;
  }
  std::vector<std::thread> threads;
  for (size_t p = 0; p < inputs.size(); ++p)
    threads.emplace_back([&, p] {
      NetBuilder b("rank");
      for (const ValueId output : body(b, detail::add_inputs(b, inputs[p], ""), "")) b.output(output);
      results[p].status = detail::run(runtime_with_devices(1, crew.kind), b.finish(), options_of(crew, job, static_cast<int>(p)), inputs[p],
                                      runs, &results[p].outputs);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(crew.on_cuda() ? broken_rules() : "", "");
  return results;
}

}  // namespace heddle::testing_collectives
