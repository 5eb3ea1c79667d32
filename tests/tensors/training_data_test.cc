// Datasets of what --data names: folders and lists of pictures, classes, tables, tokens, bags.
#include "commands/train/data/training_data.h"

#include <gtest/gtest.h>

#include "image/picture_files.h"
#include "load/temporary_folder.h"

namespace heddle::tool {
namespace {

using pictures::png_of;
using testing::TemporaryFolder;
using testing::write_text;

PortInfo input(const char* name, DType dtype, Shape shape) {
  PortInfo made;
  made.name = name;
  made.dtype = dtype;
  made.shape = shape;
  made.ranked = true;
  made.symbols.resize(static_cast<size_t>(shape.rank()));
  return made;
}
const PortInfo image = input("image", DType::f32, {-1, 3, 2, 2}), label = input("label", DType::i64, {-1});

template <class T>
std::vector<T> numbers(const TensorView& view) {
  const auto* const data = static_cast<const T*>(view.data);
  return {data, data + view.shape.element_count()};
}
using Whole = std::vector<int64_t>;

struct TrainingDataSets : ::testing::Test {
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_text(folder / name, content);
    return (folder / name).string();
  }
  // A picture of 2 x 2 pixels of one colour.
  void picture(const std::string& name, uint8_t colour) const { write(name, png_of(std::vector<uint8_t>(12, colour), 2, 2)); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  Result<std::shared_ptr<const Dataset>> dataset(const std::vector<PortInfo>& inputs, std::vector<std::string> specs, bool tests = false) {
    (tests ? flags.test_data : flags.data) = std::move(specs);
    return data.read(tests, inputs, 1);
  }
  // Returns the error of a dataset that can not be.
  Status error(const std::vector<PortInfo>& inputs, std::vector<std::string> specs, bool tests = false) {
    return dataset(inputs, std::move(specs), tests).status();
  }
  static Batch batch(const Dataset& of, const Whole& samples) {
    Batch made;
    BatchRequest request;
    request.samples = samples.data();
    request.count = static_cast<int64_t>(samples.size());
    const Status status = of.read(request, made);
    EXPECT_TRUE(status.ok()) << status.text();
    return made;
  }

  const TemporaryFolder folder;
  DataFlags flags;
  Limits limits;
  TrainingData data{flags, limits};
};

TEST_F(TrainingDataSets, FoldersGivePicturesAndTheirClasses) {
  for (const auto& [name, colour] : {std::pair("p/dog/2.png", 20), {"p/dog/1.PNG", 10}, {"p/cat/a/x.png", 30}, {"p/ant/0.png", 40}})
    picture(name, static_cast<uint8_t>(colour));
  picture("p/.hidden/0.png", 1);
  picture("p/cat/.hidden.png", 1);
  write("p/cat/notes.txt", "not a picture");
  flags.normalize = "none";
  const auto made = dataset({image, label}, {"image=" + path("p"), "label=" + path("p") + ":class"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ((*made)->samples(), 4);
  EXPECT_FALSE((*made)->is_in_memory());
  EXPECT_EQ(data.classes().at("label").names(), (std::vector<std::string>{"ant", "cat", "dog"}));
  const Batch all = batch(**made, {3, 0, 1, 2});
  EXPECT_EQ(numbers<int64_t>(all.values()[1]), (Whole{2, 0, 1, 2}));
  EXPECT_EQ(all.values()[0].shape, (Shape{4, 3, 2, 2}));
  const std::vector<float> pixels = numbers<float>(all.values()[0]);
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(pixels[k * 12], std::vector<float>({20, 40, 30, 10})[k] * (1.0f / 255)) << k;
  EXPECT_NE((*made)->sample_name(3).find("p/dog/2.png"), std::string::npos);
}

TEST_F(TrainingDataSets, ClassesOfTestsAreThoseOfTheTraining) {
  for (const char* name : {"p/a/0.png", "p/b/0.png", "p/c/0.png", "q/c/0.png", "r/d/0.png"}) picture(name, 9);
  ASSERT_TRUE(dataset({image, label}, {"image=" + path("p"), "label=" + path("p") + ":class"}).ok());
  const auto tests = dataset({image, label}, {"image=" + path("q"), "label=" + path("q") + ":class"}, true);
  ASSERT_TRUE(tests.ok()) << tests.status().text();
  EXPECT_EQ(numbers<int64_t>(batch(**tests, {0}).values()[1]), Whole{2});
  const Status unknown = error({image, label}, {"image=" + path("r"), "label=" + path("r") + ":class"}, true);
  EXPECT_EQ(unknown.code(), Code::unknown_name) << unknown.text();
  EXPECT_NE(unknown.text().find("\"d\" of sample 0"), std::string::npos) << unknown.text();
}

TEST_F(TrainingDataSets, ClassesAreNotInventedForATestOfNumbers) {
  picture("p/0.png", 9);
  picture("q/a/0.png", 9);
  const std::string labels = write("labels.csv", "label\n1\n");
  ASSERT_TRUE(dataset({image, label}, {"image=" + path("p"), "label=" + labels + ":label"}).ok());
  EXPECT_EQ(error({image, label}, {"image=" + path("q"), "label=" + path("q") + ":class"}, true).code(), Code::invalid_argument);
}

TEST_F(TrainingDataSets, LinksAreFollowedAndLeadNowhereTwice) {
  picture("p/a/0.png", 9);
  picture("elsewhere/1.png", 9);
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "p/a/b");
  std::filesystem::create_directory_symlink(folder / "p", folder / "p/a/up");
  std::filesystem::create_directory_symlink(folder / "p/a", folder / "p/a/self");
  std::filesystem::create_symlink("nothing", folder / "p/nowhere");
  std::filesystem::create_symlink("ring", folder / "p/ring");
  const auto made = dataset({image}, {"image=" + path("p")});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ((*made)->samples(), 2);
}

TEST_F(TrainingDataSets, OptionsThatWouldDoNothingAreRefused) {
  const std::string labels = write("labels.csv", "label\n1\n");
  flags.augment = {"crop"};
  EXPECT_EQ(error({label}, {"label=" + labels + ":label"}).code(), Code::invalid_argument);
  flags.augment = {"rotate"};
  EXPECT_EQ(error({label}, {"label=" + labels + ":label"}).code(), Code::invalid_argument);
  flags.augment.clear();
  flags.normalize = "rubbish";
  EXPECT_EQ(error({label}, {"label=" + labels + ":label"}).code(), Code::invalid_argument);
  flags.normalize.clear();
  flags.ragged = {"label=image"};
  EXPECT_EQ(error({label}, {"synthetic"}).code(), Code::invalid_argument);
}

TEST_F(TrainingDataSets, WhatIsNotThereIsNamed) {
  for (const char* name : {"photos", "photos:class"}) {
    const Status missing = error({label}, {"label=" + path(name)});
    EXPECT_EQ(missing.code(), Code::file_not_found) << missing.text();
    EXPECT_NE(missing.text().find("there is no folder"), std::string::npos) << missing.text();
  }
  picture("p/a/0.png", 9);
  const Status forgotten = error({image, label}, {"image=" + path("p")});
  EXPECT_NE(forgotten.text().find(path("p") + ":class"), std::string::npos) << forgotten.text();
  const std::string texts = write("texts.csv", "kind\na\n\nb\n");
  EXPECT_EQ(error({label}, {"label=" + texts + ":kind"}).code(), Code::syntax) << "an empty line is no class";
}

TEST_F(TrainingDataSets, ListsGivePicturesAndTexts) {
  picture("files/1.png", 10);
  picture("files/2.png", 20);
  const std::string list = write("list.csv", "file,kind,weight\nfiles/2.png,red,1\n" + path("files/1.png") + ",\"blue, dark\",2\n");
  flags.normalize = "none";
  const auto made = dataset({image, label}, {"image=" + list + ":file", "label=" + list + ":kind"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  const Batch both = batch(**made, {0, 1});
  EXPECT_EQ(numbers<float>(both.values()[0])[0], 20 * (1.0f / 255));
  EXPECT_EQ(numbers<int64_t>(both.values()[1]), (Whole{1, 0}));
  EXPECT_EQ(data.classes().at("label").names()[0], "blue, dark");
  // Numbers stay numbers.
  const auto weights = dataset({image, input("weight", DType::i64, {-1})}, {"image=" + list + ":file", "weight=" + list + ":weight"});
  ASSERT_TRUE(weights.ok()) << weights.status().text();
  EXPECT_EQ(numbers<int64_t>(batch(**weights, {0, 1}).values()[1]), (Whole{1, 2}));
}

TEST_F(TrainingDataSets, MistakesOfFoldersAreNamed) {
  picture("flat/1.png", 1);
  picture("mixed/1.png", 1);
  picture("mixed/a/1.png", 1);
  write("empty/readme.txt", "nothing");
  EXPECT_EQ(error({label}, {"label=" + path("flat") + ":class"}).code(), Code::invalid_argument);
  EXPECT_NE(error({image}, {"image=" + path("mixed")}).text().find("beside it"), std::string::npos);
  EXPECT_NE(error({image}, {"image=" + path("empty")}).text().find("has no pictures"), std::string::npos);
  const Status whole = error({label}, {"label=" + path("flat")});
  EXPECT_EQ(whole.code(), Code::shape_mismatch);
  EXPECT_NE(whole.text().find(":class"), std::string::npos) << whole.text();
  EXPECT_EQ(error({input("image", DType::f32, {-1, 3, -1, -1})}, {"image=" + path("flat")}).code(), Code::shape_mismatch);
  picture("two/a/1.png", 1);
  picture("two/a/2.png", 1);
  EXPECT_EQ(error({image, label}, {"image=" + path("flat"), "label=" + path("two") + ":class"}).code(), Code::shape_mismatch);
}

TEST_F(TrainingDataSets, TokensAreCutIntoSamples) {
  const PortInfo tokens = input("tokens", DType::i64, {-1, 3}), next = input("next", DType::i32, {-1, 3});
  const std::string text = write("book.txt", "abcdefghi");
  const auto made = dataset({tokens, next}, {"tokens=" + text, "next=" + text + ":+1"});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_EQ((*made)->samples(), 2) << "the third has no token after it";
  EXPECT_TRUE((*made)->is_in_memory());
  const Batch both = batch(**made, {1, 0});
  EXPECT_EQ(numbers<int64_t>(both.values()[0]), (Whole{'d', 'e', 'f', 'a', 'b', 'c'}));
  EXPECT_EQ(numbers<int32_t>(both.values()[1]), (std::vector<int32_t>{'e', 'f', 'g', 'b', 'c', 'd'}));
  EXPECT_EQ((*dataset({tokens}, {"tokens=" + text + ":+0"}))->samples(), 3);
  EXPECT_EQ(error({input("tokens", DType::i64, {-1, -1})}, {"tokens=" + text}).code(), Code::unbound_symbol);
  EXPECT_EQ(error({input("tokens", DType::f32, {-1, 3})}, {"tokens=" + text}).code(), Code::dtype_mismatch);
  EXPECT_EQ(error({tokens}, {"tokens=" + text + ":+7"}).code(), Code::invalid_argument) << "no sample is left";
}

// Three bags of 2, 0 and 3 words.
TEST_F(TrainingDataSets, BagsHaveTheirOwnNumbersOfWords) {
  const std::string words = write("words.csv", "word\n5\n6\n7\n8\n9\n"), labels = write("labels.csv", "label\n0\n1\n2\n");
  const PortInfo bag = input("words", DType::i64, {-1}), offsets = input("offsets", DType::i64, {-1});
  flags.ragged = {"words=offsets"};
  for (const bool has_end : {false, true}) {
    const std::string begins = write("offsets.csv", std::string("offset\n0\n2\n2\n") + (has_end ? "5\n" : ""));
    const auto made =
        dataset({bag, offsets, label}, {"words=" + words + ":word", "offsets=" + begins + ":offset", "label=" + labels + ":label"});
    ASSERT_TRUE(made.ok()) << made.status().text();
    EXPECT_EQ((*made)->samples(), 3);
    const Batch read = batch(**made, {2, 1, 0});
    for (size_t i = 0; i < 3; ++i) {
      const std::string& name = (*made)->names()[i];
      const Whole expected = name == "label"   ? Whole{2, 1, 0}
                             : name == "words" ? Whole{7, 8, 9, 5, 6}
                             : has_end         ? Whole{0, 3, 3, 5}
                                               : Whole{0, 3, 3};
      EXPECT_EQ(numbers<int64_t>(read.values()[i]), expected) << name;
    }
  }
  const auto with = [&](const char* text) {
    const std::string begins = write("offsets.csv", text);
    return error({bag, offsets, label}, {"words=" + words + ":word", "offsets=" + begins + ":offset", "label=" + labels + ":label"});
  };
  EXPECT_EQ(with("offset\n0\n3\n2\n").code(), Code::invalid_argument);
  EXPECT_EQ(with("offset\n1\n2\n3\n").code(), Code::invalid_argument);
  EXPECT_EQ(with("offset\n0\n2\n6\n").code(), Code::invalid_argument);
  EXPECT_EQ(with("offset\n0\n2\n3\n4\n").code(), Code::invalid_argument) << "the end is another number";
  EXPECT_EQ(with("offset\n0\n2\n").code(), Code::shape_mismatch);
  flags.ragged = {"words=nothing"};
  EXPECT_EQ(with("offset\n0\n2\n2\n").code(), Code::unknown_name);
}

TEST(TrainingDataFlags, SayWhatIsWrong) {
  DataFlags flags;
  for (const char* text : {"rotate", "color", "color=", "color=2", "color=0", "color=x"}) {
    flags.augment = {text};
    EXPECT_EQ(flags.changes().status().code(), Code::invalid_argument) << text;
  }
  flags.augment = {"crop", "flip", "color=0.5"};
  ASSERT_TRUE(flags.changes().ok());
  EXPECT_TRUE(flags.changes()->crop && flags.changes()->flip);
  EXPECT_EQ(flags.changes()->color, 0.5F);
  for (const char* text : {"0.5", "1/", "/1", "a/b", "0.5,0.5/0.1,"}) {
    flags.normalize = text;
    EXPECT_EQ(flags.numbers(3).status().code(), Code::invalid_argument) << text;
  }
  flags.normalize = "0.5,0.25,0/1,2,3";
  ASSERT_TRUE(flags.numbers(3).ok());
  EXPECT_EQ(flags.numbers(3)->deviations, (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace heddle::tool
