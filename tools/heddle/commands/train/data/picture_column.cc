#include "commands/train/data/picture_column.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/text/text.h"

namespace heddle::tool {
namespace {

class PictureColumn final : public SampleColumn {
 public:
  PictureColumn(const Shape& picture, std::vector<std::string> paths, PictureReader reader)
      : picture_(picture), paths_(std::move(paths)), reader_(std::move(reader)) {}
  int64_t samples() const override { return static_cast<int64_t>(paths_.size()); }
  bool is_in_memory() const override { return false; }
  std::string sample_name(int64_t sample) const override { return quoted(paths_[static_cast<size_t>(sample)]); }
  // The names of the files and of their folders, wherever these are, and what becomes of their bytes.
  std::string identity() const override {
    RunningChecksum sum;
    for (const std::string& path : paths_) {
      const std::filesystem::path file(path);
      const std::string name = (file.parent_path().filename() / file.filename()).string();
      sum.add(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    }
    return fmt::format("pictures {} {}", hex(sum.value()), reader_.description());
  }
  Status read(const BatchRequest& request, size_t i, Batch& batch) const override {
    Shape shape = picture_;
    shape[0] = request.count;
    HEDDLE_TRY(void* const made, batch.make(i, DType::f32, shape));
    const int64_t numbers = picture_[1] * picture_[2] * picture_[3];
    for (int64_t k = 0; k < request.count; ++k) {
      const int64_t sample = request.samples[k];
      HEDDLE_CHECK(
          reader_.read(paths_[static_cast<size_t>(sample)], request.seed, request.epoch, sample, static_cast<float*>(made) + k * numbers));
    }
    return {};
  }

 private:
  const Shape picture_;  // of a batch of one
  const std::vector<std::string> paths_;
  const PictureReader reader_;
};

}  // namespace

bool takes_pictures(const PortInfo& input) {
  return input.dtype == DType::f32 && input.ranked && input.shape.rank() == 4 && (input.shape[1] == 1 || input.shape[1] == 3) &&
         input.shape[2] > 0 && input.shape[3] > 0;
}

Result<std::shared_ptr<const SampleColumn>> picture_column(const PortInfo& input, std::vector<std::string> paths,
                                                           const PictureNumbers& numbers, const PictureChanges& changes) {
  const Shape shape = {1, input.shape[1], input.shape[2], input.shape[3]};
  HEDDLE_TRY(PictureReader reader, PictureReader::create(shape[1], shape[2], shape[3], numbers, changes));
  return std::shared_ptr<const SampleColumn>(std::make_shared<PictureColumn>(shape, std::move(paths), std::move(reader)));
}

}  // namespace heddle::tool
