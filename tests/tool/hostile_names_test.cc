// Text that comes from files, through every command: none of it reaches the terminal, an object or a file's name unescaped.
#include <algorithm>
#include <set>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// Characters that no name may bring to a terminal: escape sequences, the other controls, bidirectional marks, invisible letters, line
// breaks.
const std::string hostile =
    "\x1b[31m\x07\x7f\xc2\x9b"
    "31m\xc2\x85\xd8\x9c\xe2\x80\x8f\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81\r\nFORGED\t<b>&\"\\";

// Returns the text as a JSON string's content.
std::string escaped(const std::string& text) {
  const std::string whole = Json(text).dump(-1, ' ', true);
  return whole.substr(1, whole.size() - 2);
}

// Returns the reason why `text` must not be printed on a terminal; empty: none. Independent of base/text, which it checks.
std::string harm_in(const std::string& text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = at(i);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead < 0xF5 && lead >= 0xF0 ? 4
                                                        : 0;
    unsigned code = length == 1 ? lead : length == 2 ? lead & 0x1F : length == 3 ? lead & 0x0F : lead & 0x07;
    bool valid = length > 0;
    for (size_t k = 1; k < length; ++k) {
      valid = valid && (at(i + k) & 0xC0) == 0x80;
      code = code << 6 | (at(i + k) & 0x3F);
    }
    const std::string where =
        " at byte " + std::to_string(i) + " behind " +
        Json(text.substr(i > 60 ? i - 60 : 0, std::min<size_t>(i, 60))).dump(-1, ' ', true, Json::error_handler_t::replace);
    if (!valid) return "invalid UTF-8" + where;
    const bool control = (code < 0x20 && code != '\n') || (code >= 0x7F && code < 0xA0);
    const bool direction =
        code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    const bool invisible = code == 0x2028 || code == 0x2029 || code == 0xFEFF || (code >= 0xE0000 && code < 0xE1000);
    if (control || direction || invisible) return "U+" + std::to_string(code) + where;
    i += length;
  }
  return text.starts_with("FORGED") || text.find("\nFORGED") != std::string::npos ? "a line of its own" : "";
}

// A field of a protobuf message.
std::string number_field(int field, uint64_t value) {
  std::string out(1, static_cast<char>(field << 3));
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string text_field(int field, const std::string& text) {
  std::string out(1, static_cast<char>(field << 3 | 2));
  size_t length = text.size();
  for (; length >= 0x80; length >>= 7) out += static_cast<char>(length | 0x80);
  return out + static_cast<char>(length) + text;
}
// f32 [symbol, 2]
std::string onnx_value(const std::string& name, const std::string& symbol) {
  const std::string shape = text_field(1, text_field(2, symbol)) + text_field(1, number_field(1, 2));
  return text_field(1, name) + text_field(2, text_field(1, number_field(1, 1) + text_field(2, shape)));
}
// Returns a model x -> y of one operator of this type; all names are hostile.
std::string onnx_model(const std::string& type) {
  const std::string x = "x" + hostile, y = "y" + hostile;
  const std::string node = text_field(1, x) + text_field(2, y) + text_field(3, "n" + hostile) + text_field(4, type);
  const std::string graph = text_field(1, node) + text_field(2, "g" + hostile) + text_field(11, onnx_value(x, "N" + hostile)) +
                            text_field(12, onnx_value(y, "N" + hostile));
  return number_field(1, 8) + text_field(2, "p" + hostile) + text_field(7, graph) + text_field(8, number_field(2, 17));
}

std::string safetensors(const std::string& name, const std::string& dtype) {
  const std::string header = R"({"__metadata__":{"k)" + escaped(hostile) + R"(":"v"},")" + escaped(name) + R"(":{"dtype":")" +
                             escaped(dtype) +
                             R"(","shape":[2],"data_offsets":[0,8]},"z":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((header.size() >> shift) & 0xFF);
  return out + header + std::string(12, '\0');
}

// Returns a net with x [N, 2] through every kind of step: a chain of pointwise operators, a product with a constant, a variable, two
// outputs.
std::string hostile_net(const std::string& last = "Exp") {
  const std::string h = escaped(hostile);
  const auto name = [&](const std::string& begin) { return "\"" + begin + h + "\""; };
  return R"({"heddle": 1, "name": )" + name("net") + R"(, "doc": )" + name("doc") + R"(, "metadata": {)" + name("key") + ": " +
         name("value") + R"(}, "operator_sets": [{"domain": "", "version": 17}], "inputs": [)" + name("x") + R"(], "outputs": [)" +
         name("y") + ", " + name("../-z") + R"(], "variables": [{"name": )" + name("v") +
         R"(, "dtype": "f32", "dims": [2], "data": [1, 2]}], "values": [{"name": )" + name("x") +
         R"(, "kind": "input", "dtype": "f32", "dims": [)" + name("N") + R"(, 2]}, {"name": )" + name("v0") +
         R"(, "kind": "variable", "variable": )" + name("v") + R"(, "version": 0}, {"name": )" + name("w") +
         R"(, "kind": "constant", "dtype": "f32", "dims": [2, 2], "data": [1, 2, 3, 4]}], "nodes": [)" +
         node("MatMul", name("x") + ", " + name("w"), "p" + h) + ", " + node("Add", name("p") + ", " + name("v0"), "s" + h) + ", " +
         node("Relu", name("s"), "y" + h) + ", " + node(last, name("y"), "../-z" + h) + "]}";
}

struct HostileFiles : TemporaryFolder {
  HostileFiles() {
    write_text(*this / "net.json", hostile_net());
    write_text(*this / "other.json", hostile_net("Neg"));
    write_text(*this / "log.json", hostile_net("Reciprocal"));
    write_text(*this / "unknown.json", hostile_net("T" + escaped(hostile)));
    std::string device = hostile_net();
    device.replace(device.find(R"("type": "Relu")"), 14, R"("device": "d)" + escaped(hostile) + R"(", "type": "Relu")");
    write_text(*this / "device.json", device);
    std::string shapes = hostile_net();
    shapes.replace(shapes.find("[2, 2], \"data\": [1, 2, 3, 4]"), 28, "[4, 1], \"data\": [1, 2, 3, 4]");
    write_text(*this / "shapes.json", shapes);
    std::string key = hostile_net();
    key.insert(1, "\"" + escaped(hostile) + "\": 1, ");
    write_text(*this / "key.json", key);
    write_text(*this / "syntax.json", "{" + hostile);
    write_text(*this / "raw.heddle", hostile);
    write_text(*this / "x.npy", npy("1, 2,", {-1, 2}));
    std::string odd = npy("1, 2,", {-1, 2});
    odd.replace(odd.find("<f4"), 3, hostile.substr(0, 24));
    odd[8] = static_cast<char>(odd.find("}") + 30 - 10);
    write_text(*this / "odd.npy", odd);
    write_text(*this / "w.safetensors", safetensors("t" + hostile, "F32"));
    write_text(*this / "d.safetensors", safetensors("t" + hostile, "D" + hostile));
    write_text(*this / "picture.png", "\x89PNG" + hostile);
    write_text(*this / "buffers.csv", "id,lower,upper,size\n\x1b[31m\x7f\xc2\x9b\xe2\x80\xae,0,1,8\n");
    write_text(*this / "bad.csv", "id,lower,upper,size\n\x1b[31m\x7f\xc2\x9b\xe2\x80\xae,a\x1b,1,8\n");
    write_text(*this / "old.json",
               R"({"command": "bench", "runs": [{"threads": ")" + escaped(hostile) + R"("}], "x": ")" + hostile + "\"}");
    write_text(*this / "model.onnx", onnx_model("Relu"));
    write_text(*this / "unknown.onnx", onnx_model("T" + hostile));
    for (const char* set : {"good", "bad"}) {
      const std::filesystem::path folder = *this / (std::string(set) + hostile_file);
      std::filesystem::create_directories(folder / "test_data_set_0");
      write_text(folder / "model.onnx", onnx_model(*set == 'g' ? "Relu" : "T" + hostile));
      write_text(folder / "test_data_set_0/input_0.pb", "rubbish");
    }
  }
  std::string file(const std::string& name) const { return (path() / name).string(); }
  // A file's name: no '/', and bytes that are not UTF-8.
  const std::string hostile_file = "\x1b[31m\xff\xfe\xc2\x9b\xe2\x80\xae\nFORGED";
};

// Every use of every command, whether it succeeds or not. Every command that `heddle --help` lists must be here.
std::vector<Words> uses(const HostileFiles& f) {
  const std::string net = f.file("net.json"), symbol = "N" + hostile + "=3", x = "x" + hostile, y = "y" + hostile;
  const auto run = [&](Words more) {
    Words all = {"run", net, "--random", "1", "--symbol", symbol};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  return {
      run({}),
      run({"--print", y, "--output-dir", f.file("out"), "--output", y + "=" + f.file("y.npy")}),
      run({"--dump", f.file("dump")}),
      run({"--dump", f.file("dump"), "--only", "nosuch"}),
      run({"--check-numerics"}),
      run({"--compare-device", "cpu", "--repeat", "3"}),
      run({"--compare-device", "d" + hostile}),
      run({"--trace", f.file("trace.json"), "--report", f.file("report.html")}),
      run({"--fetch", "nosuch"}),
      run({"--print", "nosuch"}),
      run({"--fetch", y + "1"}),
      run({"--output", y + "=" + f.file("a" + f.hostile_file)}),
      run({"--output", y + "=" + f.file("no/" + f.hostile_file + ".npy")}),
      run({"--output-dir", f.file("net.json/" + f.hostile_file)}),
      run({"--memory-limit", "1"}),
      run({"--memory-limit", hostile}),
      run({"--deadline", "1e-9"}),
      run({"--param", "v" + hostile + "=" + f.file("w.safetensors") + ":t" + hostile}),
      run({"--param", "nosuch=" + f.file("w.safetensors") + ":t" + hostile}),
      run({"--param", "v" + hostile + "=" + f.file("x.npy")}),
      run({"--input", x + "=" + f.file("odd.npy")}),
      run({"--input", x + "=" + f.file("picture.png")}),
      run({"--input", x + "=" + f.file("w.safetensors")}),
      run({"--input", x + "=" + f.file("w.safetensors") + ":nosuch"}),
      run({"--input", x + "=" + f.file("d.safetensors") + ":t" + hostile}),
      run({"--input", x + "=" + f.file("a" + f.hostile_file)}),
      run({"--input", "nosuch=" + f.file("x.npy")}),
      run({"--input", hostile}),
      run({"--shape", x + "=" + hostile}),
      run({"--shape", "nosuch=1x2"}),
      run({"--limit", hostile}),
      run({"--limit", "nodes=" + hostile}),
      run({"--plugin", f.file(f.hostile_file)}),
      run({"--plugin", f.file("raw.heddle")}),
      run({"--plugin-dir", f.file(f.hostile_file)}),
      run({"--device", hostile}),
      run({hostile}),
      {"run", net},
      {"run", net, "--random", "1"},
      {"run", net, "--random", "1", "--symbol", hostile + "=1"},
      {"run", f.file("log.json"), "--input", x + "=" + f.file("x.npy"), "--check-numerics"},
      {"run", f.file("device.json"), "--random", "1", "--symbol", symbol},
      {"run", f.file("unknown.json"), "--random", "1", "--symbol", symbol},
      {"run", f.file(f.hostile_file)},
      {"check", net},
      {"check", net, "--symbol", symbol},
      {"check", f.file("unknown.json"), "--symbol", symbol},
      {"check", f.file("shapes.json"), "--symbol", symbol},
      {"check", f.file("device.json"), "--symbol", symbol},
      {"check", f.file("key.json")},
      {"check", f.file("syntax.json")},
      {"check", f.file("raw.heddle")},
      {"check", net, "--input", x + "=" + f.file("odd.npy")},
      {"plan", net},
      {"plan", net, "--symbol", symbol},
      {"plan", net, "--symbol", symbol, "--dot"},
      {"plan", net, "--symbol", symbol, "--svg", f.file("plan.svg"), "--svg-net", f.file("net.svg")},
      {"plan", net, "--symbol", symbol, "--diff", f.file("other.json")},
      {"plan", net, "--symbol", symbol, "--symbol", "M" + hostile + "=3", "--diff", f.file("other.json")},
      {"plan", "--buffers", f.file("buffers.csv")},
      {"plan", "--buffers", f.file("bad.csv")},
      {"inspect", net},
      {"inspect", net, "--stats"},
      {"inspect", net, "--stats", "--symbol", symbol},
      {"inspect", net, "--dot"},
      {"inspect", net, "--verify"},
      {"inspect", f.file("device.json")},
      {"inspect", f.file("unknown.json"), "--stats"},
      {"inspect", f.file("w.safetensors")},
      {"inspect", f.file("d.safetensors"), "--verify"},
      {"inspect", example_plugin},
      {"inspect", f.file(f.hostile_file + ".so")},
      {"bench", net, "--repeat", "1", "--warmup", "0", "--symbol", symbol},
      {"bench", net, "--repeat", "1", "--warmup", "0", "--symbol", symbol, "--compare", f.file("old.json")},
      {"bench", net},
      {"train", net, "--steps", "1", "--data", "synthetic", "--loss", hostile},
      {"train", net, "--steps", "1", "--net", hostile, "--data", hostile + "=" + f.file("odd.npy")},
      {"predictor", net, "--output", hostile, "-o", f.file("p.heddle")},
      {"predictor", net, "--net", hostile, "--output", "y", "-o", f.file("p.heddle")},
      {"convert", net, f.file("net.heddle")},
      {"convert", net, f.file("c" + f.hostile_file + ".json")},
      {"convert", f.file("syntax.json"), f.file("c.json")},
      {"model", hostile, "-o", f.file("m.heddle")},
      {"model", "--list"},
      {"import", f.file("model.onnx"), "-o", f.file("i.json")},
      {"import", f.file("unknown.onnx"), "-o", f.file("i.heddle")},
      {"import", f.file("raw.heddle"), "-o", f.file("i.heddle")},
      {"verify-onnx", f.path().string()},
      {"verify-onnx", f.file(f.hostile_file)},
      {"plugin", "list", "--plugin", example_plugin},
      {"plugin", "list", "--plugin", f.file(f.hostile_file)},
      {"plugin", "check", f.file(f.hostile_file)},
      {"plugin", "new", hostile},
      {"plugin", "run", "R" + hostile},
      {"plugin", "run", "Relu", "--shape", hostile},
      {"plugin", "run", "Relu", "--dtype", hostile},
      {"plugin", "run", "Relu", "--attribute", "a=" + hostile},
      {"plugin", "run", "Relu", "--input", f.file("odd.npy")},
      {"plugin", hostile},
      {"op", hostile},
      {"op", "--search", hostile},
      {"completion", hostile},
      {"manual", hostile},
      {"devices", hostile},
      {"devices"},
      {hostile},
  };
}

TEST(ToolHostileNames, NothingOfThemReachesTheTerminal) {
  const HostileFiles files;
  std::set<std::string> seen;
  for (const Words& use : uses(files)) {
    seen.insert(use[0]);
    for (const bool json : {false, true}) {
      Words arguments = use;
      if (json) arguments.push_back("--json");
      const Outcome outcome = Tool(arguments).in(files.path()).run();
      const std::string what = Json(arguments).dump(-1, ' ', true, Json::error_handler_t::replace);
      EXPECT_LT(outcome.status, 1000) << what;
      EXPECT_EQ(harm_in(outcome.out), "") << "stdout of " << what;
      EXPECT_EQ(harm_in(outcome.err), "") << "stderr of " << what;
      if (!json) continue;
      EXPECT_TRUE(Json::parse(outcome.out, nullptr, false).is_object()) << what << outcome.out.substr(0, 300);
    }
  }
  // No command is left out.
  const std::string help = heddle({"--help"}).out;
  for (size_t at = help.find("\n  ", help.find("Subcommands:")); at != std::string::npos; at = help.find("\n  ", at + 3)) {
    const std::string name = help.substr(at + 3, help.find(' ', at + 3) - at - 3);
    EXPECT_TRUE(name.empty() || seen.contains(name)) << name;
  }
  EXPECT_GE(seen.size(), 12u);
  // The files that the uses above have written: pages and traces for people, nets that keep the names as they are.
  for (const char* file : {"trace.json", "report.html", "plan.svg", "net.svg", "i.json"})
    EXPECT_EQ(harm_in(read_text(files / file)), "") << file;
  EXPECT_EQ(Json::parse(read_text(files / "i.json"), nullptr, false)["inputs"], Json({"x" + hostile}));
  ASSERT_EQ(heddle({"convert", files.file("net.heddle"), files.file("back.json")}).status, 0);
  EXPECT_EQ(Json::parse(read_text(files / "back.json"), nullptr, false)["outputs"], Json({"y" + hostile, "../-z" + hostile}));
}

// On a terminal the tool adds colours and progress; everything else is as it would be in a file.
TEST(ToolHostileNames, NeitherByProgressNorByColours) {
  HEDDLE_NEEDS_TERMINAL();
  const HostileFiles files;
  for (const Words& use : std::vector<Words>{{"run", files.file("net.json"), "--random", "1", "--symbol", "N" + hostile + "=3"},
                                             {"run", files.file(files.hostile_file)},
                                             {"run", files.file("net.json")},
                                             {"verify-onnx", files.path().string()}}) {
    std::string err = Tool(use).on_terminal().run().err;
    for (const std::string ours : {"\r\033[K", "\033[1;31m", "\033[1;33m", "\033[0m", "\r"})
      for (size_t at = err.find(ours); at != std::string::npos; at = err.find(ours)) err.erase(at, ours.size());
    EXPECT_EQ(harm_in(err), "") << use[0];
  }
}

// Files of outputs and dumped tensors: names that no shell and no file system takes for something else, one for each tensor.
TEST(ToolHostileNames, MakeFilesOfTheirOwn) {
  const std::vector<std::string> names = {"..",
                                          ".",
                                          ".hidden",
                                          "-rf",
                                          "a/b",
                                          "a:b",
                                          "a\\b",
                                          "a_b",
                                          hostile,
                                          "*",
                                          "~",
                                          std::string(300, 'l'),
                                          std::string(299, 'l') + "m",
                                          "\xc3\xa4\xc3\xb6",
                                          "a b",
                                          "a_b_2",
                                          " "};
  std::string outputs, nodes;
  for (const std::string& name : names) {
    outputs += (outputs.empty() ? "\"" : ", \"") + escaped(name) + "\"";
    nodes += (nodes.empty() ? "" : ", ") + node("Relu", R"("x")", escaped(name));
  }
  const NetFolder folder(net_text("names", R"("x")", outputs, input("x", "2"), nodes));
  write_text(folder / "x.npy", npy("2,", {-1, 6}));
  const Outcome outcome = heddle(
      {"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--output-dir", folder.file("out"), "--dump", folder.file("dump")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* where : {"out", "dump"}) {
    EXPECT_EQ(files_in(folder / where), names.size()) << where;
    for (const auto& entry : std::filesystem::directory_iterator(folder / where)) {
      const std::string name = entry.path().filename().string();
      EXPECT_EQ(harm_in(name), "");
      EXPECT_EQ(name.find_first_of("\n/\\:*?\"<>|"), std::string::npos) << name;
      EXPECT_EQ(std::string("-.~ ").find(name[0]), std::string::npos) << name;
      EXPECT_TRUE(name.ends_with(".npy")) << name;
      EXPECT_EQ(npy_values(entry.path()), (std::vector<float>{0, 6})) << name;
    }
  }
}

}  // namespace
}  // namespace heddle::tool_tests
