// Runs the cases of this folder (README.md), each as a test.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tensors/compare.h"
#include "tensors/tensor_files.h"
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

namespace fs = std::filesystem;

const fs::path cases_folder = HEDDLE_SOURCE_DIR "/tests/cases";

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cases_folder))
    if (fs::exists(entry.path() / "case.json") || fs::exists(entry.path() / "check.sh")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the cases that are known to fail: name and reason.
std::map<std::string, std::string> not_yet() {
  std::map<std::string, std::string> listed;
  std::ifstream file(cases_folder / "not_yet.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t space = line.find(' ');
    if (line.empty() || line[0] == '#') continue;
    listed[line.substr(0, space)] = space == std::string::npos ? "" : line.substr(space + 1);
  }
  return listed;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

// Runs one case in an empty folder. Its functions return the mistake; empty: there is none.
class Case {
 public:
  explicit Case(std::string name) : folder_(cases_folder / name) {}

  std::string run() {
    if (fs::exists(folder_ / "check.sh")) return run_script();
    case_ = Json::parse(read_text(folder_ / "case.json"));
    const std::string wrong = case_.contains("calls") ? run_training() : run_net();
    if (case_.value("expect", "value") != "refused") return wrong;
    return refused_ ? std::string() : "it is not refused" + (wrong.empty() ? "" : ": " + wrong);
  }

 private:
  std::string run_script() {
    const std::string log = (work_ / "log.txt").string();
    const std::string line = "cd '" + work_.path().string() + "' && bash '" + (folder_ / "check.sh").string() + "' '" + tool_path + "' '" +
                             folder_.string() + "' > '" + log + "' 2>&1";
    const int status = std::system(line.c_str());
    return status == 0 ? std::string() : "check.sh ended with " + std::to_string(status) + ": " + read_text(log);
  }

  // Runs the tool; returns false if it failed. `refused_` becomes true if it ended with an error of its own.
  bool does(const Words& words, std::string* wrong) {
    const Outcome outcome = heddle(words);
    if (outcome.status == 0) return true;
    refused_ = outcome.status >= 1 && outcome.status <= 4;
    *wrong = "heddle " + words[0] + " ended with " + std::to_string(outcome.status) + ": " + outcome.err;
    return false;
  }

  std::string run_net() {
    std::string net = (folder_ / "net.json").string(), wrong;
    if (fs::exists(folder_ / "model.onnx")) {
      net = (work_ / "net.heddle").string();
      if (!does({"import", (folder_ / "model.onnx").string(), "-o", net}, &wrong)) return wrong;
    }
    Words words = {"run", net};
    const auto file = [](const char* what, size_t i) { return what + std::to_string(i) + ".npy"; };
    for (size_t i = 0; i < case_["inputs"].size(); ++i)
      words.insert(words.end(), {"--input", case_["inputs"][i].get<std::string>() + "=" + (folder_ / file("in_", i)).string()});
    const Json symbols = case_.value("symbols", Json::object());
    for (const auto& [symbol, extent] : symbols.items())
      words.insert(words.end(), {"--symbol", symbol + "=" + std::to_string(extent.get<int64_t>())});
    for (size_t i = 0; i < case_["outputs"].size(); ++i)
      words.insert(words.end(), {"--output", case_["outputs"][i].get<std::string>() + "=" + (work_ / file("out_", i)).string()});
    if (!does(words, &wrong)) return wrong;
    for (size_t i = 0; i < case_["outputs"].size(); ++i)
      wrong += compared(case_["outputs"][i], (work_ / file("out_", i)).string(), (folder_ / file("out_", i)).string());
    return wrong;
  }

  std::string run_training() {
    std::string net = (folder_ / "net.json").string(), wrong;
    for (size_t call = 0; call < case_["calls"].size(); ++call) {
      const std::string trained = (work_ / ("trained" + std::to_string(call) + ".heddle")).string();
      Words words = {"train", net};
      for (const Json& word : case_["calls"][call]) words.push_back(replaced(word.get<std::string>(), "@", folder_.string()));
      words.insert(words.end(), {"-o", trained});
      if (!does(words, &wrong)) return wrong;
      net = trained;
    }
    const std::string text = (work_ / "trained.json").string();
    if (!does({"convert", net, text}, &wrong)) return wrong;
    const Json trained = Json::parse(read_text(text));
    for (size_t i = 0; i < case_["variables"].size(); ++i) {
      const std::string name = case_["variables"][i];
      const Json& variables = trained["variables"];
      const auto variable = std::find_if(variables.begin(), variables.end(), [&](const Json& v) { return v["name"] == name; });
      wrong += variable == variables.end() ? "the net that has learned has no variable " + name + "\n"
                                           : compared(name, *variable, (folder_ / ("out_" + std::to_string(i) + ".npy")).string());
    }
    return wrong;
  }

  // Small variables are written in the net's text, with all their bits.
  std::string compared(const std::string& name, const Json& variable, const std::string& expected) const {
    const auto wanted = tool::read_tensor(expected);
    if (!wanted.ok()) return wanted.status().text();
    if (!variable.contains("data") || static_cast<int64_t>(variable["data"].size()) != (*wanted)->shape.element_count())
      return name + " has another content\n";
    std::byte* data = nullptr;
    const auto got = Blob::allocate((*wanted)->dtype, (*wanted)->shape, &data);
    for (size_t i = 0; i < variable["data"].size(); ++i) {
      const double number = variable["data"][i].is_number() ? variable["data"][i].get<double>() : std::nan("");
      if ((*wanted)->dtype == DType::f64)
        reinterpret_cast<double*>(data)[i] = number;
      else
        reinterpret_cast<float*>(data)[i] = static_cast<float>(number);
    }
    return compared(name, *got, **wanted);
  }

  std::string compared(const std::string& name, const Blob& got, const Blob& wanted) const {
    const auto view = [](const Blob& blob) { return TensorView{blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)}; };
    const tool::Comparison comparison = tool::compare(view(got), view(wanted), case_["rtol"], case_["atol"]);
    return comparison.equal ? std::string() : name + ": " + comparison.reason + "\n";
  }

  std::string compared(const std::string& name, const std::string& actual, const std::string& expected) const {
    const auto got = tool::read_tensor(actual), wanted = tool::read_tensor(expected);
    if (!got.ok()) return got.status().text();
    if (!wanted.ok()) return wanted.status().text();
    return compared(name, **got, **wanted);
  }

  const fs::path folder_;
  const TemporaryFolder work_;
  Json case_;
  bool refused_ = false;
};

class Cases : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Each, Cases, ::testing::ValuesIn(all_cases()), [](const auto& info) { return info.param; });

TEST_P(Cases, IsRight) {
  const std::map<std::string, std::string> listed = not_yet();
  const auto known = listed.find(GetParam());
  const std::string wrong = Case(GetParam()).run();
  if (known == listed.end()) {
    EXPECT_EQ(wrong, "");
  } else {
    EXPECT_NE(wrong, "") << "it passes: take it out of tests/cases/not_yet.txt (" << known->second << ")";
  }
}

TEST(CasesList, NamesCasesThatAreThere) {
  const std::vector<std::string> names = all_cases();
  EXPECT_FALSE(names.empty());
  for (const auto& [name, why] : not_yet()) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
    EXPECT_FALSE(why.empty()) << name;
  }
}

}  // namespace
}  // namespace heddle::tool_tests
