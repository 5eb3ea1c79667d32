// Mutated ONNX protobufs: imported, opened, prepared and run. See campaign.h for the options; --file repeats a model.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fuzz/campaign.h"
#include "fuzz/mutate_model.h"
#include "fuzz/session_case.h"
#include "onnx/import.h"

namespace {

using namespace heddle;
using namespace heddle::fuzz;

// Holds the model in memory as a file without a folder, since the importer reads files.
class ModelFile {
 public:
  ModelFile() : file_(memfd_create("model", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(file_)) {}
  ~ModelFile() { close(file_); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  const std::string& hold(std::span<const std::byte> bytes) const {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      std::perror("model");
      std::exit(2);
    }
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

}  // namespace

int main(int count, char** words) {
  CampaignOptions options;
  if (!parse_options(count, words, "onnx_fuzz.case", &options)) return 2;
  const Runtime runtime = cpu_runtime();
  const ModelFile file;
  Campaign campaign(options, 2.0);
  const auto try_model = [&](std::span<const std::byte> bytes, Dice& dice) -> Ending {
    campaign.keep(bytes);
    ImportOptions import;
    import.limits = case_limits();
    Result<Net> net = import_onnx(file.hold(bytes), import);
    if (!net.ok()) return {"import", net.status()};
    return run_in_session(runtime, std::move(net).value(), {}, dice);
  };
  if (!options.file.empty())
    return campaign.run_file([&](const std::vector<std::byte>& bytes) {
      Dice dice(options.seed);
      return try_model(bytes, dice);
    });
  const ModelMaterial material;
  std::printf("%zu models\n", material.count());
  return campaign.run(
      [&](size_t number) {
        Dice dice(options.seed * 0x9E3779B97F4A7C15 + number);
        const std::string model = material.make(dice);
        return try_model(std::as_bytes(std::span(model)), dice);
      },
      50);
}
