// No command overwrites a file that it reads, nor writes two results into one file: it is refused before anything is written.
#include <map>

#include "onnx_bytes.h"
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path());
  return files;
}

// Expects exit status 2 and one diagnostic; every file stays as it is.
void expect_refused(const std::filesystem::path& folder, const Words& arguments) {
  const auto before = contents(folder);
  const Json object = heddle_json(arguments, 2);
  EXPECT_EQ(codes(object), Words{"invalid-argument"}) << Json(arguments).dump();
  EXPECT_TRUE(contents(folder) == before) << Json(arguments).dump() << " changed the files";
}

// A folder with x [2000] -> y = x + w, where w is in a weights file of the net's name.
struct WeightsFolder : TemporaryFolder {
  WeightsFolder() {
    std::string data;
    for (int i = 0; i < 2000; ++i) data += (i == 0 ? "" : ", ") + std::to_string(i);
    write_text(
        *this / "n.json",
        net_text("n", R"("x")", R"("y")",
                 input("x", "2000") + R"(, {"name": "w", "kind": "constant", "dtype": "f32", "dims": [2000], "data": [)" + data + "]}",
                 node("Add", R"("x", "w")", "y")));
    EXPECT_EQ(heddle({"convert", file("n.json"), file("n.heddle")}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(*this / "n.safetensors"));
    write_text(*this / "x.npy", npy("2000,", std::vector<float>(2000, 1)));
  }
  std::string file(const std::string& name) const { return (path() / name).string(); }
};

TEST(ToolOverwrite, ImportKeepsTheModelAndItsData) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  std::filesystem::copy_file(onnx_data / "pytorch-converted/test_Conv2d/model.onnx", folder / "m.onnx");
  std::filesystem::copy_file(folder / "m.onnx", folder / "w.safetensors");
  std::filesystem::create_symlink("m.onnx", folder / "link.heddle");
  std::filesystem::create_hard_link(folder / "m.onnx", folder / "hard.heddle");
  std::filesystem::create_symlink(".", folder / "here");
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("m.onnx")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("here/m.onnx")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("link.heddle")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("hard.heddle")});
  expect_refused(folder.path(), {"import", file("w.safetensors"), "-o", file("w.heddle")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("x.safetensors")});
}

// A model whose weights are in a file beside it, as exporters write those over 2 GiB.
TEST(ToolOverwrite, ImportKeepsExternalData) {
  namespace pb = onnx_bytes;
  const std::string tensor = pb::integer(1, 32) + pb::integer(1, 64) + pb::integer(2, 1) + pb::part(8, "w") +
                             pb::part(13, pb::part(1, "location") + pb::part(2, "w.safetensors")) + pb::integer(14, 1);
  const std::string graph = pb::part(1, pb::node("MatMul", {"x", "w"}, {"y"})) + pb::part(2, "g") + pb::part(5, tensor) +
                            pb::part(11, pb::value("x", {1, 32})) +
                            pb::part(12, pb::part(1, "y") + pb::part(2, pb::part(1, pb::integer(1, 1))));
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  write_text(folder / "m.onnx", pb::integer(1, 8) + pb::part(7, graph) + pb::part(8, pb::integer(2, 17)));
  write_text(folder / "w.safetensors", std::string(32 * 64 * 4, '\0'));
  std::filesystem::create_symlink("w.safetensors", folder / "l.safetensors");
  std::filesystem::create_hard_link(folder / "w.safetensors", folder / "h.heddle");
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("w.heddle")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("l.heddle")});
  expect_refused(folder.path(), {"import", file("m.onnx"), "-o", file("h.heddle")});
  EXPECT_EQ(heddle({"import", file("m.onnx"), "-o", file("m.heddle")}).status, 0);
  EXPECT_EQ(heddle({"run", file("m.heddle"), "--random", "1"}).status, 0);
}

TEST(ToolOverwrite, ConvertKeepsTheNetAndItsWeights) {
  const WeightsFolder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink(folder / "n.heddle", folder / "sub/link.heddle");
  std::filesystem::create_hard_link(folder / "n.safetensors", folder / "sub/m.safetensors");
  std::filesystem::create_symlink("../n.safetensors", folder / "sub/s.safetensors");
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("n.heddle")});
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("sub/link.heddle")});
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("n.safetensors")});
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("sub/o.safetensors")});
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("sub/m.heddle")});
  expect_refused(folder.path(), {"convert", folder.file("n.heddle"), folder.file("sub/s.json")});
  EXPECT_EQ(heddle({"convert", folder.file("n.heddle"), folder.file("back.json")}).status, 0);
  EXPECT_EQ(heddle({"convert", folder.file("n.heddle"), folder.file("sub/o.heddle")}).status, 0);
  EXPECT_EQ(heddle({"run", folder.file("sub/o.heddle"), "--random", "1"}).status, 0);
}

TEST(ToolOverwrite, ModelWritesEachThingToAFileOfItsOwn) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  expect_refused(folder.path(), {"model", "lenet", "-o", file("n.safetensors")});
  expect_refused(folder.path(), {"model", "lenet", "-o", file("n.heddle"), "--weights", file("n.safetensors")});
  expect_refused(folder.path(), {"model", "lenet", "-o", file("n.heddle"), "--weights", file("n.heddle")});
  // The weights' name is a link to the net's file.
  std::filesystem::create_symlink("n.heddle", folder / "n.safetensors");
  write_text(folder / "n.heddle", "before");
  expect_refused(folder.path(), {"model", "lenet", "-o", file("n.heddle")});
}

TEST(ToolOverwrite, RunKeepsTheNetItsWeightsAndInputs) {
  const WeightsFolder folder;
  const std::string net = folder.file("n.heddle"), given = "x=" + folder.file("x.npy");
  std::filesystem::create_symlink("n.heddle", folder / "link.html");
  std::filesystem::create_directory(folder / "out");
  std::filesystem::create_symlink("../x.npy", folder / "out/y.npy");
  const auto refused = [&](Words more) {
    Words arguments = {"run", net, "--input", given};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(folder.path(), arguments);
  };
  refused({"--output", "y=" + folder.file("n.safetensors")});
  refused({"--output", "y=" + folder.file("x.npy")});
  refused({"--output", "y=" + folder.file("a.npy"), "--output", "y=" + folder.file("out/../a.npy")});
  refused({"--trace", net});
  refused({"--report", folder.file("link.html")});
  refused({"--trace", folder.file("t"), "--report", folder.file("t")});
  refused({"--output-dir", folder.file("out")});
  refused({"--dump", folder.file("out")});
  EXPECT_EQ(heddle({"run", net, "--input", given, "--output", "y=" + folder.file("a.npy"), "--output", "y=" + folder.file("b.npy"),
                    "--output-dir", folder.file("results"), "--trace", folder.file("t.json")})
                .status,
            0);
  EXPECT_EQ(heddle({"run", net, "--input", given, "--trace", "/dev/null"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null")) << "a device is no file to replace: it receives the bytes";
}

TEST(ToolOverwrite, PlanKeepsWhatItPlans) {
  const WeightsFolder folder;
  write_text(folder / "b.csv", "id,lower,upper,size\na,0,1,8\n");
  expect_refused(folder.path(), {"plan", folder.file("n.heddle"), "--svg", folder.file("n.heddle")});
  expect_refused(folder.path(), {"plan", folder.file("n.heddle"), "--svg", folder.file("n.safetensors")});
  expect_refused(folder.path(), {"plan", folder.file("n.heddle"), "--svg-net", folder.file("n.heddle")});
  expect_refused(folder.path(), {"plan", folder.file("n.heddle"), "--svg", folder.file("p.svg"), "--svg-net", folder.file("p.svg")});
  expect_refused(folder.path(), {"plan", folder.file("n.heddle"), "--diff", folder.file("n.json"), "--svg", folder.file("n.json")});
  expect_refused(folder.path(), {"plan", "--buffers", folder.file("b.csv"), "-o", folder.file("b.csv")});
}

}  // namespace
}  // namespace heddle::tool_tests
