// heddle_differential_driver: reads ONNX models from stdin, runs them one after the other, and writes their results (wire.h).
//
//   heddle_differential_driver --operators    names the operators of ONNX's domain that the importer and the CPU plugin both have
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "differential/wire.h"
#include "onnx/import.h"
#include "onnx/operators/operators.h"
#include "session_plan.h"

namespace {

using namespace heddle;
using namespace heddle::differential;

Limits limits() {
  Limits limits;
  limits.tensor_bytes = int64_t{1} << 30;
  limits.plan_bytes = int64_t{2} << 30;
  limits.loop_trips = 100'000;
  return limits;
}

// A file without a name in any folder, for the importer, which reads files.
class ModelFile {
 public:
  ModelFile() : file_(memfd_create("model", MFD_CLOEXEC)) {
    if (file_ < 0) {
      std::perror("memfd_create");
      std::exit(2);
    }
  }
  ~ModelFile() { close(file_); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  std::string hold(const std::string& bytes) const {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      std::perror("model");
      std::exit(2);
    }
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  int file_;
};

bool draws(const Session& session) {
  const Net& net = Internals::of(session).net;
  return std::any_of(net.nodes.begin(), net.nodes.end(),
                     [](const Node& n) { return n.schema->has_trait(HEDDLE_TRAIT_RANDOM) || n.has_subnet(); });
}

// A second run of the session, in the context of the first, into buffers at other addresses, and a third that wants no output, have to do
// the same.
Status same_again(Session& session, const std::vector<TensorView>& inputs, const std::vector<Tensor>& results) {
  if (draws(session)) return {};
  const std::shared_ptr<const Plan> plan = last_plan(session);
  std::vector<Tensor> again;
  std::vector<TensorView> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    outputs.push_back(again.emplace_back(results[i].dtype(), results[i].shape()).view());
    if (plan->values[plan->outputs[i].index].type.late()) outputs[i].data = nullptr;  // needs room for more than there is
  }
  HEDDLE_CHECK(session.run(inputs.data(), inputs.size(), outputs.data(), outputs.size()));
  for (size_t i = 0; i < results.size(); ++i)
    if (outputs[i].data && std::memcmp(results[i].data(), again[i].data(), static_cast<size_t>(results[i].view().byte_size())) != 0)
      return {Code::internal, "output " + std::to_string(i) + " has other bits in a second run"};
  return session.run(inputs.data(), inputs.size(), nullptr, 0);
}

void answer(const Runtime& runtime, const ModelFile& file, const Request& request) {
  ImportOptions import;
  import.limits = limits();
  Result<Net> net = import_onnx(file.hold(request.model), import);
  if (!net.ok()) return write_error(stdout, "import", net.status());
  SessionOptions options;
  options.limits = limits();
  Result<Session> session = runtime.open(std::move(net).value(), options);
  if (!session.ok()) return write_error(stdout, "open", session.status());
  std::vector<TensorView> views;
  for (const Tensor& tensor : request.inputs) views.push_back(tensor.view());
  RunOptions run;
  run.deadline_ns = 5'000'000'000;
  const auto results = session->run(views, run);
  if (!results.ok()) return write_error(stdout, "run", results.status());
  if (const Status same = same_again(*session, views, *results); !same.ok()) return write_error(stdout, "again", same);
  write_results(stdout, *results);
}

void print_operators(const Runtime& runtime) {
  std::set<std::string> names;
  const std::vector<std::string> have = Internals::of(runtime).registry.snapshot()->operator_names("");
  for (const std::string& name : importer::known_names())
    if (importer::implemented_version(name) == 0 || std::find(have.begin(), have.end(), name) != have.end()) names.insert(name);
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}

}  // namespace

int main(int count, char** words) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
  options.default_plugins = false;
  options.threads = 1;
  const auto runtime = Runtime::create(options);
  if (!runtime.ok()) {
    std::fprintf(stderr, "%s\n", runtime.status().text().c_str());
    return 2;
  }
  if (count > 1 && std::strcmp(words[1], "--operators") == 0) return print_operators(*runtime), 0;
  const ModelFile file;
  while (const auto request = read_request(stdin)) answer(*runtime, file, *request);
  return 0;
}
