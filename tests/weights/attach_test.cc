// attach: a net gets the weights that it names, and no others.
#include "weights/attach.h"

#include <gtest/gtest.h>

#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"
#include "weights/mapping.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

using testing::blob_of;
using testing::TemporaryFolder;

// y = x + w in a net, whose branch has weights too; saved with all content in weights files.
class Attach : public ::testing::Test {
 protected:
  void SetUp() override {
    NetBuilder inner("inner");
    const ValueId x = inner.input("x", DType::f32, Shape{8192});
    inner.output(inner.add1("Add", "y", {x, inner.constant("w", blob_of(DType::f32, Shape{8192}, std::vector<float>(8192, 3.0f)))}));
    NetBuilder outer("outer");
    const ValueId in = outer.input("x", DType::f32, Shape{8192});
    const ValueId w = outer.variable("w", blob_of(DType::f32, Shape{8192}, std::vector<float>(8192, 2.0f)));
    outer.output(outer.add1("If", "if", {in, w}, {{"then", std::make_shared<const Net>(inner.finish())}}));
    SaveOptions options;
    options.inline_bytes = 0;
    ASSERT_TRUE(save_net(outer.net(), folder_ / "n.heddle", options).ok());
  }
  Result<Net> load(bool verify = false, bool map = true) const {
    LoadOptions options;
    options.verify_checksums = verify;
    options.map_weights = map;
    return load_net(folder_ / "n.heddle", options);
  }
  // Replaces the weights file by these tensors under the names that the net uses.
  void write_weights(DType dtype, const Shape& shape, float value) const {
    const auto blob = blob_of(DType::f32, Shape{8192}, std::vector<float>(8192, value));
    const TensorToWrite tensors[] = {{"w", dtype, shape, blob->data}, {"if.then/w", dtype, shape, blob->data}};
    ASSERT_TRUE(write_safetensors(folder_ / "n.safetensors", tensors).ok());
  }
  // Makes the net like older ones: their references name only a file and a tensor.
  void forget_identity() const {
    LoadOptions detached;
    detached.attach_weights = false;
    Net net = *load_net(folder_ / "n.heddle", detached);
    auto& branch = std::get<std::shared_ptr<const Net>>(net.nodes[0].attributes[0].value);
    auto inner = std::make_shared<Net>(*branch);
    for (WeightReference* reference : {&net.variables[0].initial.reference.edit(), &inner->values[1].content.reference.edit()}) {
      reference->identity = {};
      reference->checksum = 0;
    }
    branch = std::move(inner);
    SaveOptions keep;
    keep.keep_references = true;
    ASSERT_TRUE(save_net(net, folder_ / "n.heddle", keep).ok());
  }
  static float first(const Blob& blob) { return reinterpret_cast<const float*>(blob.data)[0]; }
  TemporaryFolder folder_;
};

TEST_F(Attach, SubnetsToo) {
  for (const bool map : {true, false}) {
    const auto net = load(true, map);
    ASSERT_TRUE(net.ok()) << net.status().text();
    EXPECT_EQ(first(*net->variables[0].initial.blob), 2.0f);
    const Net& inner = *std::get<std::shared_ptr<const Net>>(net->nodes[0].attributes[0].value);
    EXPECT_EQ(first(*inner.values[1].content.blob), 3.0f);
    EXPECT_EQ(inner.values[1].content.reference->tensor, "if.then/w");
    EXPECT_EQ(Mapping::of(*inner.values[1].content.blob) != nullptr, map);
  }
}

TEST_F(Attach, LaterIsTheSame) {
  LoadOptions detached;
  detached.attach_weights = false;
  auto net = load_net(folder_ / "n.heddle", detached);
  ASSERT_TRUE(net.ok());
  EXPECT_EQ(net->variables[0].initial.blob, nullptr);
  ASSERT_TRUE(attach_weights(*net, folder_.path()).ok());
  EXPECT_EQ(first(*net->variables[0].initial.blob), 2.0f);
}

TEST_F(Attach, AllThatIsWrongIsReported) {
  std::filesystem::remove(folder_ / "n.safetensors");
  const Status missing = load().status();
  EXPECT_EQ(missing.code(), Code::weights_missing);
  EXPECT_NE(missing.text().find("the weights file \"n.safetensors\" does not exist, needed for 2 tensors: variable \"w\", constant \""),
            std::string::npos)
      << missing.text();
  EXPECT_TRUE(missing.diagnostic().attached.empty());  // the subnet needs the same file

  const Status other = (write_weights(DType::f32, Shape{8192}, 2.5f), load().status());
  EXPECT_EQ(other.code(), Code::weights_mismatch);
  EXPECT_NE(other.text().find("has the identity"), std::string::npos) << other.text();
  EXPECT_NE(other.text().find("needed for 2 tensors"), std::string::npos) << other.text();
  EXPECT_TRUE(other.diagnostic().attached.empty());

  forget_identity();
  const Status wrong_shape = (write_weights(DType::f32, Shape{64, 64}, 2.0f), load().status());
  EXPECT_EQ(wrong_shape.code(), Code::weights_mismatch);
  EXPECT_NE(wrong_shape.text().find("F32 [64, 64], the net declares f32 [8192]"), std::string::npos) << wrong_shape.text();
  EXPECT_EQ((write_weights(DType::i32, Shape{8192}, 2.0f), load().status().code()), Code::weights_mismatch);
  testing::write_text(folder_ / "n.safetensors", "rubbish");
  EXPECT_EQ(load().status().code(), Code::file_truncated);
}

TEST_F(Attach, ChangedBytesAreFoundWhenAsked) {
  std::string bytes = testing::read_text(folder_ / "n.safetensors");
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  testing::write_text(folder_ / "n.safetensors", bytes);
  EXPECT_TRUE(load(false).ok());
  const Status status = load(true).status();
  EXPECT_EQ(status.code(), Code::weights_mismatch);
  EXPECT_NE(status.text().find("checksum"), std::string::npos);
}

// A net without an identity, beside weights of ours that have checksums: weights of another net are found without reading them.
TEST_F(Attach, RecordedChecksumsAreCompared) {
  auto net = load();
  ASSERT_TRUE(net.ok());
  const auto again = [&](uint64_t checksum) {
    LoadOptions detached;
    detached.attach_weights = false;
    Net older = *load_net(folder_ / "n.heddle", detached);
    older.variables[0].initial.reference.edit().identity = {};
    older.variables[0].initial.reference.edit().checksum = checksum;
    return attach_weights(older, folder_.path()).code();
  };
  const uint64_t checksum = net->variables[0].initial.reference->checksum;
  EXPECT_EQ(again(checksum), Code::ok);
  EXPECT_EQ(again(checksum + 1), Code::weights_mismatch);
  EXPECT_EQ(again(0), Code::ok);
}

TEST_F(Attach, ATensorMayBeMissing) {
  forget_identity();
  const std::byte byte{};
  const TensorToWrite other[] = {{"other", DType::u8, Shape{1}, &byte}};
  ASSERT_TRUE(write_safetensors(folder_ / "n.safetensors", other).ok());
  const Status status = load().status();
  EXPECT_EQ(status.code(), Code::weights_missing);
  EXPECT_NE(status.text().find("tensor \"w\" of \"n.safetensors\" does not exist"), std::string::npos) << status.text();
}

TEST_F(Attach, NamesThatLeaveTheFolderAreRefused) {
  LoadOptions detached;
  detached.attach_weights = false;
  auto net = load_net(folder_ / "n.heddle", detached);
  net->variables[0].initial.reference.edit().file = "../n.safetensors";
  SaveOptions keep;
  keep.keep_references = true;
  ASSERT_TRUE(save_net(*net, folder_ / "n.heddle", keep).ok());
  EXPECT_EQ(load().status().code(), Code::weights_outside);
}

TEST_F(Attach, ShrunkenFilesAreFoundBeforeTheyAreUsed) {
  const auto net = load();
  ASSERT_TRUE(net.ok());
  EXPECT_TRUE(check_weights_whole(*net).ok());
  const Blob& blob = *net->variables[0].initial.blob;
  ASSERT_NE(Mapping::of(blob), nullptr);
  Mapping::of(blob)->release(blob.data, blob.bytes);
  EXPECT_EQ(first(*net->variables[0].initial.blob), 2.0f);
  std::filesystem::resize_file(folder_ / "n.safetensors", 1000);
  EXPECT_EQ(check_weights_whole(*net).code(), Code::file_truncated);
  EXPECT_EQ(save_net(*net, folder_ / "copy.heddle").code(), Code::file_truncated);
}

TEST_F(Attach, UnmappedWeightsDoNotCare) {
  const auto net = load(false, false);
  ASSERT_TRUE(net.ok());
  std::filesystem::resize_file(folder_ / "n.safetensors", 1000);
  EXPECT_TRUE(check_weights_whole(*net).ok());
  EXPECT_EQ(first(*net->variables[0].initial.blob), 2.0f);
}

TEST_F(Attach, SavingOverTheFileThatIsMappedKeepsTheMapping) {
  const auto net = load();
  ASSERT_TRUE(net.ok());
  SaveOptions options;
  options.inline_bytes = 0;
  ASSERT_TRUE(save_net(*net, folder_ / "n.heddle", options).ok());
  EXPECT_TRUE(check_weights_whole(*net).ok());
  EXPECT_EQ(first(*net->variables[0].initial.blob), 2.0f);
  EXPECT_TRUE(load(true).ok());
}

TEST_F(Attach, LimitsHold) {
  LoadOptions options;
  options.limits.weight_file_bytes = 100;
  EXPECT_EQ(load_net(folder_ / "n.heddle", options).status().code(), Code::limit_exceeded);
}

}  // namespace
}  // namespace heddle
