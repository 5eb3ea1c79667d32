// Files that hold several nets: both forms and through each other, variables that are stored once, and what is refused.
#include <gtest/gtest.h>

#include "load/header.h"
#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/structure.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using testing::bytes_of;
using testing::read_text;
using testing::TemporaryFolder;

std::shared_ptr<const Blob> floats(int64_t count, float first) {
  std::vector<float> values(static_cast<size_t>(count), first);
  return Blob::copy_of(DType::f32, Shape{count}, values.data());
}

// A net that negates "w" of that size, and has a variable of its own.
Net net_of(const std::string& name, int64_t size, float w = 1) {
  NetBuilder b(name);
  b.output(b.add1("Neg", "minus_w", {b.variable("w", floats(size, w), true)}));
  b.output(b.add1("Neg", "minus_own", {b.variable("own_of_" + name, floats(2, 3))}));
  return b.finish();
}

std::vector<Net> train_and_test(int64_t size = 4) {
  std::vector<Net> nets;
  nets.push_back(net_of("train", size));
  nets.push_back(net_of("test", size));
  return nets;
}

std::string text_of(const Net& net) {
  return *net_to_json(net);
}

void expect_same(const std::vector<Net>& got, const std::vector<Net>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(text_of(got[i]), text_of(expected[i])) << i;
}

TEST(SeveralNets, GoThroughBothForms) {
  const std::vector<Net> nets = train_and_test();
  const std::vector<std::byte> bytes = *nets_to_bytes(nets);
  const std::string text = *nets_to_json(nets);
  const auto from_bytes = load_nets_bytes(bytes, ""), from_text = load_nets_bytes(bytes_of(text), "");
  ASSERT_TRUE(from_bytes.ok()) << from_bytes.status().text();
  ASSERT_TRUE(from_text.ok()) << from_text.status().text();
  expect_same(*from_bytes, nets);
  expect_same(*from_text, nets);
  EXPECT_EQ(*nets_to_bytes(*from_text), bytes);
  EXPECT_EQ(*nets_to_json(*from_bytes), text);
}

TEST(SeveralNets, StandBesideAFormOfOneThatOlderReadersKnow) {
  const std::vector<Net> nets = train_and_test();
  EXPECT_EQ(std::to_integer<int>((*net_to_bytes(nets[0]))[8]), 1);
  EXPECT_EQ(std::to_integer<int>((*nets_to_bytes(nets))[8]), 2);
}

TEST(SeveralNets, WhatTheyHaveInCommonStandsOnce) {
  const TemporaryFolder folder;
  const std::vector<Net> nets = train_and_test(100000);
  ASSERT_TRUE(save_nets(nets, folder / "model.heddle").ok());
  const auto weights = std::filesystem::file_size(folder / "model.safetensors");
  EXPECT_GT(weights, 400000u);
  EXPECT_LT(weights, 420000u);
  const auto loaded = load_nets(folder / "model.heddle");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  ASSERT_EQ(loaded->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Blob &got = *(*loaded)[i].variables[0].initial.blob, &expected = *nets[i].variables[0].initial.blob;
    ASSERT_EQ(got.bytes, expected.bytes);
    EXPECT_EQ(std::memcmp(got.data, expected.data, static_cast<size_t>(got.bytes)), 0);
  }
  EXPECT_EQ((*loaded)[1].variables[0].initial.blob->shape, (Shape{100000}));
  // Saved into the same folder, the weights file and the references to it are kept.
  SaveOptions keep;
  keep.keep_references = true;
  ASSERT_TRUE(save_nets(*loaded, folder / "copy.json", keep).ok());
  const auto copied = load_nets(folder / "copy.json");
  ASSERT_TRUE(copied.ok()) << copied.status().text();
  EXPECT_EQ(*nets_to_bytes(*copied), *nets_to_bytes(*loaded));
  // Different numbers under one name are written for each net.
  std::vector<Net> others;
  others.push_back(net_of("train", 100000));
  others.push_back(net_of("test", 100000, 2));
  ASSERT_TRUE(save_nets(others, folder / "others.heddle").ok());
  EXPECT_GT(std::filesystem::file_size(folder / "others.safetensors"), 800000u);
  EXPECT_TRUE(load_nets(folder / "others.heddle").ok());
}

TEST(SeveralNets, AreNamedWhereOneIsWanted) {
  const std::string text = *nets_to_json(train_and_test());
  const auto one = load_net_bytes(bytes_of(text), "");
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.status().code(), Code::invalid_argument);
  EXPECT_NE(one.status().text().find(R"(the file holds 2 nets: "train", "test")"), std::string::npos) << one.status().text();
}

std::string refused(const std::string& text) {
  const auto nets = load_nets_bytes(bytes_of(text), "");
  return nets.ok() ? "taken" : nets.status().text();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

TEST(SeveralNets, WhatIsRefused) {
  const std::string text = *nets_to_json(train_and_test());
  const auto says = [](const std::string& got, const std::string& expected) { EXPECT_NE(got.find(expected), std::string::npos) << got; };
  says(refused(replaced(text, R"("name": "test")", R"("name": "train")")), R"(two nets are called "train")");
  says(refused(replaced(text, R"("name": "test",)", "")), "net 1 of 2 has no name");
  says(refused(replaced(text, R"("name": "test",)", R"("name": "test", "nets": [],)")), R"(that is not the first of its file has "nets")");
  says(refused(R"({"heddle": 1, "name": "a", "inputs": [], "outputs": [], "nets": 3})"), R"("nets" is no list)");
  // Only a later net may leave out the content of a variable that an earlier one has.
  says(refused(replaced(text, R"("name": "w", "dtype": "f32", "dims": [4], "trainable": true, "data": [1, 1, 1, 1])",
                        R"("name": "w", "dtype": "f32", "dims": [4], "trainable": true)")),
       R"(variable "w": it has no content)");
  std::vector<Net> many;
  for (size_t i = 0; i <= max_nets; ++i) many.push_back(net_of("net" + std::to_string(i), 1));
  EXPECT_EQ(nets_to_bytes(many).status().code(), Code::limit_exceeded);
  EXPECT_EQ(nets_to_bytes({}).status().code(), Code::invalid_argument);
}

// Changes every byte of a file of two nets: it is refused, or its nets are well formed.
TEST(SeveralNets, ChangedBytesNeverMakeBrokenNets) {
  const std::vector<std::byte> good = *nets_to_bytes(train_and_test());
  for (size_t at = net_header_bytes; at < good.size(); ++at)
    for (const unsigned char change : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= std::byte{change};
      const auto header = net_header(std::span(bytes).subspan(net_header_bytes), several_nets_version);
      std::copy(header.begin(), header.end(), bytes.begin());
      const auto nets = load_nets_bytes(bytes, "");
      if (nets.ok()) {
        EXPECT_TRUE(check_whole_nets(*nets, {}).ok()) << at;
      }
    }
}

TEST(Initializers, GoThroughBothFormsAndRaiseTheVersion) {
  NetBuilder b("filled");
  b.output(b.add1("Neg", "minus", {b.variable("w", DType::f32, Shape{2, 3}, "kaiming_normal(1, fan_out)", true)}));
  const Net net = b.finish();
  const auto bytes = nets_to_bytes({&net, 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  EXPECT_EQ(std::to_integer<uint32_t>((*bytes)[8]), initializer_version);
  const auto loaded = load_net_bytes(*bytes, "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_EQ(loaded->variables[0].initializer, "kaiming_normal(1, fan_out)");
  EXPECT_FALSE(loaded->variables[0].initial.any());
  const std::string text = text_of(*loaded);
  EXPECT_NE(text.find("\"trainable\": true, \"initializer\": \"kaiming_normal(1, fan_out)\"}"), std::string::npos) << text;
  const TemporaryFolder folder;
  ASSERT_TRUE(save_net(*loaded, folder.path() / "net.json").ok());
  const auto again = load_net(folder.path() / "net.json");
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(*nets_to_bytes({&*again, 1}), *bytes);
}

TEST(Initializers, AreTheEarlierNetsWhereALaterOneSaysNothing) {
  std::vector<Net> nets;
  for (const char* name : {"train", "test"}) {
    NetBuilder b(name);
    b.output(b.add1("Neg", "minus", {b.variable("w", DType::f32, Shape{3}, "normal(0, 1)", true)}));
    nets.push_back(b.finish());
  }
  const auto bytes = nets_to_bytes(nets);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  const auto loaded = load_nets_bytes(*bytes, "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  for (const Net& net : *loaded) EXPECT_EQ(net.variables[0].initializer, "normal(0, 1)") << net.name;
  EXPECT_EQ(*nets_to_bytes(*loaded), *bytes);
}

TEST(Initializers, ThoseThatAreNoneAreRefusedWithTheVariable) {
  NetBuilder b("wrong");
  b.output(b.add1("Neg", "minus", {b.variable("w", DType::f32, Shape{2}, "zeros")}));
  const Status status = nets_to_bytes(std::vector<Net>{b.finish()}).status();
  EXPECT_NE(status.text().find("\"zeros\" is no initializer"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("\"w\""), std::string::npos) << status.text();
}

}  // namespace
}  // namespace heddle
