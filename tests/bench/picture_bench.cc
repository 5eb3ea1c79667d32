// Measures how fast batches of pictures are read, against a bare loop of libjpeg-turbo on as many threads.
//
//   heddle_picture_bench FOLDER [THREADS] [PICTURES]
//
// Writes PICTURES (10,000) JPEGs of 224 x 224 into FOLDER, unless it has some, and reads all of them THREADS (2) at a time: with the bare
// loop, which reads the files and decodes them; as a training decodes them; and as a training reads its batches of 32, which also makes
// them f32 [32, 3, 224, 224]. Prints the pictures a second of five rounds in turn, and the medians of their ratios to the bare loop.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "codec/encoded_picture.h"
#include "commands/train/data/training_data.h"
#include "image/picture_files.h"
#include "must.h"
#include "train/batch_reader.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr int64_t side = 224, batch = 32;

// Waves of several lengths and a little noise, as photographs have them.
void write_pictures(const fs::path& folder, int64_t count) {
  fs::create_directories(folder / "a");
  uint64_t state = 47;
  const auto random = [&] {
    return state = state * 6364136223846793005u + 1442695040888963407u, static_cast<double>(state >> 40) / (1 << 24);
  };
  for (int64_t i = 0; i < count; ++i) {
    double waves[3][4];
    for (auto& wave : waves)
      for (double& number : wave) number = random();
    std::vector<uint8_t> pixels;
    pixels.reserve(side * side * 3);
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x)
        for (int c = 0; c < 3; ++c) {
          double value = 128 + 10 * (random() - 0.5);
          for (const auto& wave : waves)
            value +=
                30 * std::sin(0.3 * wave[0] * static_cast<double>(x) + 0.3 * wave[1] * static_cast<double>(y) + 6 * wave[2] + c * wave[3]);
          pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
        }
    std::ofstream(folder / "a" / fmt::format("{:05}.jpg", i), std::ios::binary) << pictures::jpeg_of(pixels, side, side);
  }
}

// The loop of a program that only decodes.
void decode_bare(const std::vector<std::string>& files, std::atomic<size_t>& next) {
  std::vector<unsigned char> bytes;
  std::vector<uint8_t> pixels(side * side * 3);
  for (size_t i = next++; i < files.size(); i = next++) {
    std::FILE* const file = std::fopen(files[i].c_str(), "rb");
    std::fseek(file, 0, SEEK_END);
    bytes.resize(static_cast<size_t>(std::ftell(file)));
    std::rewind(file);
    if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
    std::fclose(file);
    jpeg_decompress_struct jpeg = {};
    jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = pixels.data() + size_t{jpeg.output_scanline} * side * 3;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
  }
}

// Files are read and decoded as a training does it, up to their bytes.
void decode_checked(const std::vector<std::string>& files, std::atomic<size_t>& next) {
  std::vector<uint8_t> pixels(side * side * 3);
  for (size_t i = next++; i < files.size(); i = next++) {
    const FileBytes bytes = must(read_file(files[i], int64_t{1} << 30));
    const pictures::EncodedPicture picture = {reinterpret_cast<const unsigned char*>(bytes.data.get()), bytes.size};
    pictures::PictureHeader header;
    if (!read_header(picture, &header).ok() || !decode(picture, header, pictures::PixelFormat::rgb, pixels.data()).ok()) std::abort();
  }
}

using Decode = void(const std::vector<std::string>&, std::atomic<size_t>&);

double rate(Decode* decode_files, const std::vector<std::string>& files, int threads) {
  const auto begin = Clock::now();
  std::atomic<size_t> next{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&] { decode_files(files, next); });
  for (std::thread& thread : all) thread.join();
  return static_cast<double>(files.size()) / std::chrono::duration<double>(Clock::now() - begin).count();
}

double reader_rate(const std::string& folder, int threads) {
  PortInfo input;
  input.name = "image";
  input.dtype = DType::f32;
  input.shape = {-1, 3, side, side};
  input.ranked = true;
  tool::DataFlags flags;
  flags.data = {"image=" + folder};
  const Limits limits;
  tool::TrainingData data(flags, limits);
  const auto dataset = must(data.read(false, {input}, 0));
  BatchSequence::Options order;
  order.samples = dataset->samples();
  order.batch = batch;
  const BatchSequence sequence(order);
  const auto begin = Clock::now();
  BatchReader reader(dataset, sequence, threads, 2, sequence.batches_of_epoch());
  for (int64_t i = 0; i < sequence.batches_of_epoch(); ++i) must(reader.take(i, [] { return Status(); }));
  return static_cast<double>(sequence.batches_of_epoch() * batch) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace
}  // namespace heddle

int main(int count, char** words) {
  using namespace heddle;
  if (count < 2) return std::fprintf(stderr, "usage: heddle_picture_bench FOLDER [THREADS] [PICTURES]\n"), 2;
  const int threads = count > 2 ? std::atoi(words[2]) : 2;
  if (!fs::exists(fs::path(words[1]) / "a")) write_pictures(words[1], count > 3 ? std::atoll(words[3]) : 10000);
  const std::vector<std::string> files = must(tool::pictures_of_folder(words[1])).paths;
  rate(decode_bare, files, threads);  // brings the files into memory
  std::vector<double> decoded, read;
  for (int round = 0; round < 5; ++round) {
    const double bare = rate(decode_bare, files, threads);
    const double checked = rate(decode_checked, files, threads), batches = reader_rate(words[1], threads);
    decoded.push_back(checked / bare);
    read.push_back(batches / bare);
    fmt::print("{} pictures on {} threads: {:.0f}/s bare, {:.0f}/s decoded: {:.3f}, {:.0f}/s in batches: {:.3f}\n", files.size(), threads,
               bare, checked, decoded.back(), batches, read.back());
  }
  std::sort(decoded.begin(), decoded.end());
  std::sort(read.begin(), read.end());
  fmt::print("medians {:.3f} and {:.3f}\n", decoded[2], read[2]);
}
