// Identity: a net gets the weights that were written with it, or an error that names the file of another net.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"
#include "weights/record_checksums.h"

namespace heddle {
namespace {

using testing::blob_of;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

// y = x + a, z = y + b: the same number identifies the net's file (`name`) and the weights.
Net net_of(const std::string& name, float number) {
  NetBuilder builder(name);
  const ValueId x = builder.input("x", DType::f32, Shape{2048});
  const auto constant = [&](const std::string& of, float value) {
    return builder.constant(of, blob_of(DType::f32, Shape{2048}, std::vector<float>(2048, value)));
  };
  const ValueId y = builder.add1("Add", "y", {x, constant("a", number)});
  builder.output(builder.add1("Add", "z", {y, constant("b", number + 0.5f)}));
  return builder.finish();
}

// Returns the number that a loaded net was made of; fails if its parts are of two nets.
float number_in(const Net& net) {
  const auto first = [&](const char* name) { return reinterpret_cast<const float*>(net[*net.find_value(name)].content.blob->data)[0]; };
  EXPECT_EQ(first("b"), first("a") + 0.5f);
  EXPECT_EQ(net.name, std::to_string(static_cast<int>(first("a"))));
  return first("a");
}

// Returns a file of the two constants as other programs write them: without checksums.
std::string foreign_weights(float number) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2048],"data_offsets":[0,8192]},"b":{"dtype":"F32","shape":[2048],"data_offsets":[8192,16384]}})";
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((header.size() >> shift) & 0xFF);
  out += header;
  for (const float value : {number, number + 0.5f})
    for (int i = 0; i < 2048; ++i) out.append(reinterpret_cast<const char*>(&value), 4);
  return out;
}

TEST(WeightsIdentity, NetsOfOneStemAreNotMixed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_net(net_of("1", 1), folder / "x.heddle").ok());
  ASSERT_TRUE(save_net(net_of("2", 2), folder / "x.json").ok());
  const auto second = load_net(folder / "x.json");
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_EQ(number_in(*second), 2);
  const auto first = load_net(folder / "x.heddle");
  ASSERT_FALSE(first.ok()) << "it runs with the numbers of net " << first->name << ": "
                           << reinterpret_cast<const float*>((*first)[*first->find_value("a")].content.blob->data)[0];
  EXPECT_EQ(first.status().code(), Code::weights_mismatch);
  EXPECT_TRUE(first.status().diagnostic().attached.empty()) << "one error for one file";
  for (const char* part : {"x.safetensors", "identity", "write the net again"})
    EXPECT_NE(first.status().text().find(part), std::string::npos) << first.status().text();
  // The same weights under another net are the same weights.
  ASSERT_TRUE(save_net(net_of("1", 1), folder / "x.json").ok());
  EXPECT_TRUE(load_net(folder / "x.heddle").ok());
}

// Whatever two writers do to one pair of files, the result is one of the nets, or it is refused.
TEST(WeightsIdentity, TwoWritersAtOnce) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "x.heddle";
  std::map<std::string, int> seen;
  const auto look = [&] {
    const auto net = load_net(path);
    if (net.ok()) {
      number_in(*net);
      ++seen[net->name];
    } else {
      EXPECT_EQ(net.status().code(), Code::weights_mismatch) << net.status().text();
      ++seen["refused"];
    }
  };
  ASSERT_TRUE(save_net(net_of("1", 1), path).ok());
  for (int round = 0; round < 100; ++round) {
    int start[2];
    ASSERT_EQ(::pipe(start), 0);
    pid_t writers[2];
    for (int w = 0; w < 2; ++w) {
      writers[w] = ::fork();
      ASSERT_GE(writers[w], 0);
      if (writers[w] != 0) continue;
      ::close(start[1]);
      char byte;
      if (::read(start[0], &byte, 1) < 0) ::_exit(2);  // both begin when the parent closes its end
      const bool saved = save_net(net_of(std::to_string(w + 1), static_cast<float>(w + 1)), path).ok();
      ::_exit(saved ? 0 : 1);
    }
    ::close(start[0]);
    ::close(start[1]);
    for (int ended = 0, status = 0; ended < 2;) {
      look();
      const pid_t child = ::waitpid(-1, &status, WNOHANG);
      ASSERT_GE(child, 0);
      if (child == 0) continue;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      ++ended;
    }
    look();
  }
  EXPECT_GT(seen["1"] + seen["2"], 0);
  EXPECT_EQ(testing::read_text(path).substr(1, 4), "HEDL");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()), 2)
      << "temporary files are left";
}

// Weights of other programs have no identity: their tensors are read once.
TEST(WeightsIdentity, FilesOfOthersAreReadOnce) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_net(net_of("1", 1), folder / "x.heddle").ok());
  write_text(folder / "x.safetensors", foreign_weights(1));
  const auto same = load_net(folder / "x.heddle");
  ASSERT_TRUE(same.ok()) << same.status().text();
  EXPECT_EQ(number_in(*same), 1);
  write_text(folder / "x.safetensors", foreign_weights(2));
  EXPECT_EQ(load_net(folder / "x.heddle").status().code(), Code::weights_mismatch);
}

// Nets without an identity, and the weights of their time, load as they did.
TEST(WeightsIdentity, OlderNetsLoad) {
  const TemporaryFolder folder;
  write_text(folder / "x.safetensors", foreign_weights(3));
  const auto text = [](const std::string& checksum) {
    const auto constant = [&](const std::string& name) {
      return R"({"name": ")" + name +
             R"(", "kind": "constant", "dtype": "f32", "dims": [2048], "weights": {"file": "x.safetensors", "tensor": ")" + name + "\"" +
             checksum + "}}";
    };
    return R"({"heddle": 1, "name": "3", "inputs": [], "outputs": ["a"], "values": [)" + constant("a") + ", " + constant("b") +
           R"(], "nodes": []})";
  };
  write_text(folder / "none.json", text(""));
  write_text(folder / "other.json", text(R"(, "checksum": "0123456789abcdef")"));
  for (const char* file : {"none.json", "other.json"}) {
    const auto net = load_net(folder / file);
    ASSERT_TRUE(net.ok()) << net.status().text();
    EXPECT_EQ(number_in(*net), 3);
  }
  LoadOptions verify;
  verify.verify_checksums = true;
  EXPECT_TRUE(load_net(folder / "none.json", verify).ok());
  EXPECT_EQ(load_net(folder / "other.json", verify).status().code(), Code::weights_mismatch);
}

// References without checksums get those of the files as they are.
TEST(WeightsIdentity, NetsWrittenByHandGetOne) {
  const TemporaryFolder folder;
  ASSERT_TRUE(save_net(net_of("1", 1), folder / "x.heddle").ok());
  LoadOptions detached;
  detached.attach_weights = false;
  const Net written = *load_net(folder / "x.heddle", detached);
  const auto references = [](Net& net) {
    return std::vector<WeightReference*>{&net[*net.find_value("a")].content.reference.edit(),
                                         &net[*net.find_value("b")].content.reference.edit()};
  };
  Net net = written;
  for (WeightReference* reference : references(net)) *reference = {reference->file, reference->tensor, 0, {}};
  const Net by_hand = net;
  ASSERT_TRUE(record_checksums(net, folder.path(), {}).ok());
  Net expected = written;
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(*references(net)[i], *references(expected)[i]);
  // Weights of other programs are read once and have no identity.
  write_text(folder / "x.safetensors", foreign_weights(1));
  net = by_hand;
  ASSERT_TRUE(record_checksums(net, folder.path(), {}).ok());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(references(net)[i]->checksum, references(expected)[i]->checksum);
    EXPECT_FALSE(references(net)[i]->identity.known());
  }
  // A missing file is no error here: loading reports it.
  std::filesystem::remove(folder / "x.safetensors");
  net = by_hand;
  ASSERT_TRUE(record_checksums(net, folder.path(), {}).ok());
  EXPECT_EQ(references(net)[0]->checksum, 0u);
}

// A net is never written to the file of its weights.
TEST(WeightsIdentity, NetAndWeightsAreTwoFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(save_net(net_of("1", 1), folder / "x.safetensors").code(), Code::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.safetensors"));
  std::filesystem::create_symlink("x.heddle", folder / "x.safetensors");
  write_text(folder / "x.heddle", "before");
  EXPECT_EQ(save_net(net_of("1", 1), folder / "x.heddle").code(), Code::invalid_argument);
  EXPECT_EQ(read_text(folder / "x.heddle"), "before");
}

}  // namespace
}  // namespace heddle
