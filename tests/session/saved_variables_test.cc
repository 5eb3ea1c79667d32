// Variables as a file: loading restores what was saved, and a file that does not fit changes nothing.
#include <gtest/gtest.h>

#include <fstream>

#include "derive/training_net.h"
#include "load/temporary_folder.h"
#include "session/line_net.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

using testing::TemporaryFolder;
using namespace testing_line;

TEST(SavedVariables, TrainingGoesOnWithThemBitForBit) {
  const TemporaryFolder folder;
  const Runtime r = testing_nets::runtime();
  for (const Optimizer& optimizer : optimizers()) {
    const std::string file = (folder / optimizer.name).string();
    const Nets nets = learning_line(r, optimizer.name);
    const Session whole = open(r, nets);
    train(whole, 7);
    const auto halfway = contents(whole);
    ASSERT_TRUE(whole.save_variables(file).ok());
    train(whole, 7);
    Session other = open(r, nets);
    const Status loaded = other.load_variables(file);
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    EXPECT_EQ(contents(other), halfway);
    train(other, 7);
    EXPECT_EQ(contents(other), contents(whole)) << optimizer.name;
  }
}

// Writes a file of these tensors, as another program may write it.
std::string file_of(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors) {
  const auto written = write_safetensors(path, tensors);
  EXPECT_TRUE(written.ok()) << written.status().text();
  return path.string();
}

struct Saved {
  Saved() : session(open(r, learning_line(r, "momentum"))) {
    train(session, 3);
    EXPECT_TRUE(session.save_variables(file).ok());
    bytes = testing::read_text(file);
    train(session, 2);
    before = contents(session);
  }
  // Returns the error of loading; checks that all variables are as they were.
  Status refused(const std::string& from, const LoadVariablesOptions& what = {}) {
    const Status status = session.load_variables(from, what);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(contents(session), before) << status.text();
    return status;
  }
  const TemporaryFolder folder;
  const Runtime r = testing_nets::runtime();
  Session session;
  const std::string file = (folder / "saved.safetensors").string();
  std::string bytes;
  std::map<std::string, std::string> before;
};

TEST(SavedVariables, NamesHaveToFitUnlessToldOtherwise) {
  Saved saved;
  const std::vector<float> w = {5, 6}, b = {7}, other = {8};
  const auto tensor = [](const char* name, const std::vector<float>& values, const Shape& shape) {
    return TensorToWrite{name, DType::f32, shape, reinterpret_cast<const std::byte*>(values.data())};
  };
  const std::string two = file_of(saved.folder / "two", {tensor("w", w, {2, 1}), tensor("other", other, {1})});
  const Status both = saved.refused(two);
  EXPECT_EQ(both.code(), Code::weights_missing);
  std::string all = both.text();
  for (const Diagnostic& more : both.diagnostic().attached) all += more.text();
  for (const char* said : {"variable \"b\" is not in the file", "variable \"w.velocity\" is not", "variable \"step\" is not",
                           "has a tensor \"other\", which is no variable"})
    EXPECT_NE(all.find(said), std::string::npos) << said << " is not in " << all;
  LoadVariablesOptions what;
  what.allow_excess = true;
  EXPECT_EQ(saved.refused(two, what).code(), Code::weights_missing);
  what = {};
  what.allow_missing = true;
  EXPECT_EQ(saved.refused(two, what).code(), Code::unknown_name);
  what.allow_excess = true;
  const Status loaded = saved.session.load_variables(two, what);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  auto expected = saved.before;
  expected["w"].assign(reinterpret_cast<const char*>(w.data()), 8);
  EXPECT_EQ(contents(saved.session), expected);
}

TEST(SavedVariables, TypesHaveToFit) {
  Saved saved;
  LoadVariablesOptions what;
  what.allow_missing = what.allow_excess = true;
  const std::vector<double> numbers = {1, 2, 3, 4};
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  // The tensor that fits comes first: it is not written either.
  const TensorToWrite b = {"b", DType::f32, Shape{1}, bytes};
  EXPECT_EQ(saved.refused(file_of(saved.folder / "shape", {b, {"w", DType::f32, Shape{1, 2}, bytes}}), what).code(), Code::shape_mismatch);
  const Status dtype = saved.refused(file_of(saved.folder / "dtype", {b, {"w", DType::f64, Shape{2, 1}, bytes}}), what);
  EXPECT_EQ(dtype.code(), Code::dtype_mismatch);
  EXPECT_NE(dtype.text().find("variable \"w\" is f32[2, 1], the file has f64[2, 1]"), std::string::npos) << dtype.text();
}

TEST(SavedVariables, DamagedFilesAreRefusedWhereverTheyEnd) {
  Saved saved;
  const std::string damaged = (saved.folder / "damaged").string();
  for (size_t length = 0; length < saved.bytes.size(); length += 7) {
    testing::write_text(damaged, saved.bytes.substr(0, length));
    const Code code = saved.refused(damaged).code();
    EXPECT_TRUE(code == Code::file_truncated || code == Code::file_corrupt) << length << ": " << to_string(code);
  }
  testing::write_text(damaged, saved.bytes + "more");
  EXPECT_EQ(saved.refused(damaged).code(), Code::file_corrupt);
  std::string flipped = saved.bytes;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  testing::write_text(damaged, flipped);
  const Status corrupt = saved.refused(damaged);
  EXPECT_EQ(corrupt.code(), Code::file_corrupt) << corrupt.text();
  EXPECT_EQ(saved.refused((saved.folder / "no_such").string()).code(), Code::file_not_found);
  EXPECT_EQ(saved.refused(saved.folder.path().string()).code(), Code::file_unreadable);
}

TEST(SavedVariables, ATensorThatIsThereTwiceIsRefused) {
  Saved saved;
  const std::string header =
      R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const std::string file = (saved.folder / "twice").string();
  testing::write_text(file, bytes + header + std::string(8, 'x'));
  EXPECT_EQ(saved.refused(file).code(), Code::duplicate_name);
}

TEST(SavedVariables, AFileIsReplacedAsAWholeAndMayLieBehindALink) {
  Saved saved;
  const std::filesystem::path link = saved.folder / "link";
  std::filesystem::create_directory(saved.folder / "elsewhere");
  std::filesystem::rename(saved.file, saved.folder / "elsewhere" / "saved.safetensors");
  std::filesystem::create_symlink("elsewhere/saved.safetensors", link);
  ASSERT_TRUE(saved.session.load_variables(link.string()).ok());
  EXPECT_NE(contents(saved.session), saved.before);
  EXPECT_EQ(saved.session.save_variables((saved.folder / "no_such_folder" / "file").string()).code(), Code::file_unwritable);
}

TEST(SavedVariables, WhatIsTornIsNotSaved) {
  Saved saved;
  Internals::of(saved.session).variables->mark_torn(0);
  const Status status = saved.session.save_variables(saved.file);
  EXPECT_EQ(status.code(), Code::hazard) << status.text();
  EXPECT_EQ(testing::read_text(saved.file), saved.bytes);
  ASSERT_TRUE(saved.session.load_variables(saved.file).ok()) << "which mends it";
  run_line(saved.session, "train");
}

}  // namespace
}  // namespace heddle
