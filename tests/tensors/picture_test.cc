// Pictures become the content of inputs: scaled and cut out, with the numbers that are asked for, and changed at random as seed, epoch and
// sample say.
#include "tensors/picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "image/picture_files.h"
#include "load/temporary_folder.h"

namespace heddle::tool {
namespace {

using pictures::png_of;
using pictures::random_bytes;
using testing::TemporaryFolder;
using testing::write_text;

std::vector<float> read(const PictureReader& reader, const std::string& file, size_t numbers, uint64_t seed = 0, int64_t epoch = -1,
                        int64_t sample = 0) {
  std::vector<float> to(numbers);
  const Status status = reader.read(file, seed, epoch, sample, to.data());
  EXPECT_TRUE(status.ok()) << status.text();
  return to;
}

struct PictureReaders : ::testing::Test {
  std::string file(const char* name, const std::string& content) const {
    write_text(folder / name, content);
    return (folder / name).string();
  }
  const TemporaryFolder folder;
};

TEST_F(PictureReaders, TakeAPictureOfTheRightSizeAsItIs) {
  const std::vector<uint8_t> pixels = random_bytes(4 * 5 * 3);
  const auto reader = PictureReader::create(3, 4, 5, {{0}, {1}});
  ASSERT_TRUE(reader.ok());
  const std::vector<float> numbers = read(*reader, file("a.png", png_of(pixels, 4, 5)), 60);
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = 0; i < 20; ++i) ASSERT_EQ(numbers[c * 20 + i], static_cast<float>(pixels[i * 3 + c]) * (1.0f / 255));
}

// A uniform picture stays so, whatever it is scaled to; and the middle of a wide one with a margin of another colour is that of the middle.
TEST_F(PictureReaders, CutTheMiddleOutOfOtherSizes) {
  for (const auto& [height, width] : {std::pair(20, 33), {33, 20}, {7, 7}, {300, 4}, {1, 1}}) {
    const std::vector<uint8_t> pixels(static_cast<size_t>(height * width * 3), 77);
    const auto reader = PictureReader::create(3, 8, 12, {{0}, {1}});
    ASSERT_TRUE(reader.ok());
    for (const float number : read(*reader, file("a.png", png_of(pixels, height, width)), 3 * 8 * 12))
      ASSERT_EQ(number, 77 * (1.0f / 255)) << height << " x " << width;
  }
  std::vector<uint8_t> wide;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 48; ++x) wide.push_back(x < 12 || x >= 36 ? 0 : 200);
  const auto reader = PictureReader::create(1, 8, 8, {{0}, {1}});
  ASSERT_TRUE(reader.ok());
  for (const float number : read(*reader, file("wide.png", png_of(wide, 16, 48, PNG_COLOR_TYPE_GRAY)), 64))
    ASSERT_EQ(number, 200 * (1.0f / 255));
}

TEST_F(PictureReaders, NumbersAreAsTheyAreAskedFor) {
  const std::string grey = file("grey.png", png_of(std::vector<uint8_t>(12, 51), 2, 2));
  const auto with = [&](const PictureNumbers& numbers) { return read(*PictureReader::create(3, 2, 2, numbers), grey, 12); };
  EXPECT_NEAR(with(usual_numbers(3))[0], (0.2 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(with(usual_numbers(3))[11], (0.2 - 0.406) / 0.225, 1e-5);
  EXPECT_NEAR(with({{0}, {1}})[5], 0.2, 1e-6);
  EXPECT_NEAR(with({{0.1F}, {0.5F}})[5], 0.2, 1e-6);
  EXPECT_EQ(usual_numbers(1).means, std::vector<float>{0});
}

TEST_F(PictureReaders, ChangesFollowFromSeedEpochAndSample) {
  const std::string name = file("a.png", png_of(random_bytes(30 * 40 * 3), 30, 40));
  PictureChanges changes;
  changes.crop = changes.flip = true;
  changes.color = 0.4F;
  const auto reader = PictureReader::create(3, 16, 16, {{0}, {1}}, changes);
  ASSERT_TRUE(reader.ok());
  std::set<std::vector<float>> different;
  for (uint64_t seed : {1, 2})
    for (int64_t epoch : {0, 1})
      for (int64_t sample = 0; sample < 10; ++sample) {
        const std::vector<float> once = read(*reader, name, 768, seed, epoch, sample);
        EXPECT_EQ(read(*reader, name, 768, seed, epoch, sample), once);
        different.insert(once);
      }
  EXPECT_EQ(different.size(), 40u);
}

TEST_F(PictureReaders, EverySecondPictureIsMirrored) {
  const std::string name = file("a.png", png_of({1, 2, 3, 4, 5, 6}, 1, 2));
  PictureChanges changes;
  changes.flip = true;
  const auto reader = PictureReader::create(3, 1, 2, {{0}, {1}}, changes);
  ASSERT_TRUE(reader.ok());
  int mirrored = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) mirrored += read(*reader, name, 6, 7, 0, sample)[0] == 4 * (1.0f / 255);
  EXPECT_NEAR(mirrored, 500, 60);
}

// The parts are of all sizes and places: the mean of their areas is that of the distribution.
TEST_F(PictureReaders, PartsAreFromEightToAHundredPercent) {
  std::vector<uint8_t> ramp;
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x) ramp.insert(ramp.end(), {static_cast<uint8_t>(4 * y), static_cast<uint8_t>(4 * x), 0});
  const std::string name = file("ramp.png", png_of(ramp, 64, 64));
  PictureChanges changes;
  changes.crop = true;
  const auto reader = PictureReader::create(3, 16, 16, {{0}, {1}}, changes);
  ASSERT_TRUE(reader.ok());
  double sum = 0, smallest = 1;
  for (int64_t sample = 0; sample < 500; ++sample) {
    const std::vector<float> part = read(*reader, name, 768, 3, 0, sample);
    const double height = (part[15 * 16] - part[0]) * 255 / 4 * 16 / 15 / 64, width = (part[256 + 15] - part[256]) * 255 / 4 * 16 / 15 / 64;
    sum += height * width;
    smallest = std::min(smallest, height * width);
  }
  EXPECT_GE(smallest, 0.06);
  EXPECT_NEAR(sum / 500, 0.5, 0.06);
}

TEST_F(PictureReaders, NameTheFileThatIsDamaged) {
  const auto reader = PictureReader::create(3, 8, 8, usual_numbers(3));
  ASSERT_TRUE(reader.ok());
  const std::string whole = png_of(random_bytes(300), 10, 10);
  std::vector<float> to(192);
  for (const std::string& content : {whole.substr(0, whole.size() / 2), std::string(), std::string("no picture")}) {
    const std::string name = file("damaged.png", content);
    const Status status = reader->read(name, 0, 0, 0, to.data());
    EXPECT_EQ(status.code(), Code::file_corrupt) << status.text();
    EXPECT_NE(status.text().find("damaged.png"), std::string::npos) << status.text();
  }
  EXPECT_EQ(reader->read((folder / "none.png").string(), 0, 0, 0, to.data()).code(), Code::file_not_found);
}

// It would be scaled to gigabytes of which one part in ten thousand is used.
TEST_F(PictureReaders, RefuseWhatIsTooLongToBeScaled) {
  const auto reader = PictureReader::create(1, 64, 64, {{0}, {1}});
  ASSERT_TRUE(reader.ok());
  std::vector<float> to(64 * 64);
  const Status status =
      reader->read(file("long.png", png_of(std::vector<uint8_t>(100000, 7), 1, 100000, PNG_COLOR_TYPE_GRAY)), 0, -1, 0, to.data());
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
  EXPECT_NE(status.text().find("long.png"), std::string::npos) << status.text();
}

TEST_F(PictureReaders, RefuseInputsThatArePictureOfNothing) {
  EXPECT_EQ(PictureReader::create(2, 8, 8, {{0}, {1}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(PictureReader::create(3, 8, 8, {{0, 0}, {1, 1}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(PictureReader::create(3, 8, 8, {{0}, {0}}).status().code(), Code::invalid_argument);
  EXPECT_EQ(PictureReader::create(3, int64_t{1} << 20, int64_t{1} << 20, {{0}, {1}}).status().code(), Code::limit_exceeded);
  PictureChanges changes;
  changes.color = 1;
  EXPECT_EQ(PictureReader::create(1, 8, 8, {{0}, {1}}, changes).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace heddle::tool
