// docs/gradients.md lists how every operator of the CPU plugin gives its gradient, and why some have none, as found in the registry and the
// operators' examples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/text/text.h"
#include "derive/operator_gradients.h"
#include "stages.h"

namespace heddle {
namespace {

using testing_derive::OperatorGradient;

// Operators that take and give real numbers and whose gradient would be useless: the mathematical reason. Operators for which the registry
// itself shows the reason are not listed here.
const std::map<std::string, std::string> without = {
    {"EyeLike", "0: made of its input's shape alone"},
    {"Hardmax", "piecewise constant"},
    {"heddle::StopGradient", "none by its meaning: what it gives is taken as constant"},
    {"heddle::ZeroGradient", "none by its meaning; it gives its input zeros"},
};
// Operators whose gradient would be useful, and that have none yet: the missing part. Groups for which the registry itself shows it are not
// listed here.
const std::map<std::string, std::string> missing = {
    {"Range", "that of `start` and `delta`"},
    {"Unique", "that of `Y`, which goes to where each number came first"},
    {"heddle::BagRows", "second derivatives"},
    {"heddle::Shard", "that of `x`, an input of the net"},
};

// Why an operator has no gradient; empty: it has one. `is_open`: a gradient would be useful.
struct Absence {
  std::string why;
  bool is_open = false;
};

Absence absence_of(const std::string& name, const OperatorGradient& of) {
  if (!of.takes_reals() && !of.gives_reals()) return {"no real numbers"};
  if (!of.takes_reals()) return {"takes no real numbers"};
  if (!of.gives_reals()) return {"gives no real numbers"};
  if (of.schema->has_trait(HEDDLE_TRAIT_RANDOM)) return {"0: what is drawn is no function of its input"};
  if (const auto found = without.find(name); found != without.end()) return {found->second};
  if (of.schema->updates_variable()) return {"through a step of learning", true};
  if (name.ends_with("Gradient")) return {"second derivatives", true};
  const auto found = missing.find(name);
  return {found == missing.end() ? std::string() : found->second, true};
}

bool has_one(const OperatorGradient& of) {
  return of.gives || (of.form != GradientForm::none && of.carries() && of.gives_reals());
}

std::string form_of(const OperatorGradient& of) {
  if (!has_one(of)) return "none";
  std::string form = "runtime";
  for (const auto& [known, word] : {std::pair(GradientForm::nodes, "nodes"), std::pair(GradientForm::callback, "callback"),
                                    std::pair(GradientForm::pointwise, "expression")})
    if (of.form == known) form = word;
  return of.by_rows ? form + ", by rows" : form;
}

std::string remarks_on(const std::string& name, const OperatorGradient& of) {
  if (!has_one(of)) {
    const Absence absence = absence_of(name, of);
    return absence.is_open ? "not yet: " + absence.why : absence.why;
  }
  std::vector<std::string> remarks;
  if (!of.gives && of.refused.empty()) remarks.emplace_back("0: piecewise constant");
  std::vector<std::string> held = of.held();
  for (std::string& port : held) port = "`" + port + "`";
  if (!held.empty()) remarks.push_back("not through " + join(held, ", "));
  for (const std::string& why : of.refused) remarks.push_back("not yet: " + why);
  return join(remarks, "; ");
}

const std::map<std::string, OperatorGradient>& gradients() {
  static const auto& registry = *new std::shared_ptr(testing_stages::registry());  // it holds the schemas
  static const auto& all = *new std::map(testing_derive::operator_gradients(registry));
  return all;
}

std::string not_yet() {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, one] : gradients()) {
    if (const Absence absence = absence_of(name, one); !has_one(one) && absence.is_open) by_reason[absence.why].push_back("`" + name + "`");
    for (const std::string& why : one.refused)
      if (has_one(one)) by_reason[why].push_back("`" + name + "`, in part");
  }
  std::string text;
  for (const auto& [why, names] : by_reason) text += fmt::format("- {}: {}\n", why, join(names, ", "));
  return text;
}

std::string table() {
  std::string text = "| operator | gradient | |\n| --- | --- | --- |\n";
  for (const auto& [name, one] : gradients()) {
    const std::string remarks = remarks_on(name, one);
    text += fmt::format("| {} | {} |{} |\n", name, form_of(one), remarks.empty() ? "" : " " + remarks);
  }
  return text;
}

// The part above the mark is written by hand.
const std::string mark = "<!-- Below: written by tests/derive/gradients_page_test.cc -->\n";

TEST(GradientsPage, SaysWhatTheRegistryDoes) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/gradients.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const size_t end = page.find(mark);
  ASSERT_NE(end, std::string::npos) << "docs/gradients.md has lost its line " << mark;
  const std::string wanted = page.substr(0, end) + mark + "\n## Not yet\n\n" + not_yet() + "\n## The table\n\n" + table();
  if (page == wanted) return;
  const std::string made = HEDDLE_BINARY_DIR "/gradients.md";
  std::ofstream(made) << wanted;
  const auto [is, should] = std::mismatch(page.begin(), page.end(), wanted.begin(), wanted.end());
  const auto line = std::count(page.begin(), is, '\n');
  const size_t begin = wanted.rfind('\n', static_cast<size_t>(should - wanted.begin()));
  ADD_FAILURE() << "docs/gradients.md is not what the registry says, from line " << line + 1 << " on, which should be"
                << wanted.substr(begin, wanted.find('\n', begin + 1) - begin) << "\nlook at the difference and take it over:\n  diff "
                << HEDDLE_SOURCE_DIR << "/docs/gradients.md " << made << "\n  cp " << made << " " << HEDDLE_SOURCE_DIR
                << "/docs/gradients.md";
}

TEST(GradientsPage, EveryOperatorOfRealNumbersHasAGradientOrAReason) {
  ASSERT_GT(gradients().size(), 150u);
  for (const auto& [name, one] : gradients())
    EXPECT_TRUE(has_one(one) || !absence_of(name, one).why.empty())
        << name << " takes and gives real numbers, and has no gradient: give it one (docs/operator_guide.md), or say in "
        << "tests/derive/gradients_page_test.cc why it has none (`without`, mathematically; else `missing`)";
}

// The page may only mention gradients that an example shows.
TEST(GradientsPage, ExamplesShowEveryGradient) {
  for (const auto& [name, one] : gradients()) {
    if (!has_one(one)) continue;
    EXPECT_TRUE(one.tried) << name << " has no example of real numbers through which a gradient goes";
    // A derivative that is zero is omitted.
    const bool is_zero = one.form == GradientForm::pointwise && one.refused.empty();
    EXPECT_TRUE(one.gives || is_zero) << name << ": " << (one.refused.empty() ? "its examples give none" : *one.refused.begin());
  }
}

TEST(GradientsPage, NoReasonIsLeftOver) {
  for (const auto* const reasons : {&without, &missing})
    for (const auto& [name, why] : *reasons) {
      const auto found = gradients().find(name);
      ASSERT_NE(found, gradients().end()) << name << " is no operator";
      EXPECT_FALSE(has_one(found->second)) << name << " has a gradient: its line in tests/derive/gradients_page_test.cc can go";
      EXPECT_EQ(absence_of(name, found->second).why, why) << "the registry tells by itself why " << name << " has none";
    }
}

}  // namespace
}  // namespace heddle
