// Every operator of the CPU plugin against a plain second implementation: dtypes x shapes, in tiles, in place, in other layouts, with
// constant inputs. The registry says which operators, dtypes, ports and attributes there are; what no call reaches is a failure.
// The program prints what it covered when it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/text.h"
#include "commands/plugin/check/epilogue_examination.h"
#include "commands/plugin/check/operator_cases.h"
#include "commands/plugin/example.h"
#include "commands/plugin/session_host.h"
#include "conformance/judge.h"
#include "conformance/reference.h"
#include "operators/pointwise_support.h"

namespace heddle::conformance {
namespace {

using testing::cpu_registry;
using testing::Tensor;
using Tensors = std::vector<Tensor>;

// Leaves the enclosing function with what is wrong, if anything is.
#define HEDDLE_CONFORMS(expression) \
  if (std::string is_wrong = (expression); !is_wrong.empty()) return is_wrong

std::shared_ptr<const RegistrySnapshot> registry() {
  static const auto snapshot = cpu_registry().snapshot();
  return snapshot;
}

// Answers what runs nets in nets.
CallHost& host() {
  static auto& of_sessions = *new tool::SessionHost(registry(), [] {
    RuntimeOptions options;
    options.threads = 1;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
    return Runtime::create(options);
  });
  return of_sessions;
}

// ---------------------------------------------------------------- calls of a row

// Where the letter stands for a dtype, and in which input first; npos: nowhere.
size_t first_input_with(const std::string& call, char letter) {
  size_t input = 0;
  int depth = 0;
  for (size_t i = 0; i < call.size() && call[i] != ';'; ++i) {
    depth += call[i] == '[' ? 1 : call[i] == ']' ? -1 : 0;
    if (depth == 0 && call[i] == ',') ++input;
    const bool alone = (i == 0 || !std::isalnum(static_cast<unsigned char>(call[i - 1]))) && i + 1 < call.size() && call[i + 1] == '[';
    if (call[i] == letter && alone) return input;
  }
  return std::string::npos;
}

std::string with_dtype(std::string call, char letter, DType dtype) {
  for (size_t i = 0; i + 1 < call.size(); ++i) {
    const bool alone = (i == 0 || !std::isalnum(static_cast<unsigned char>(call[i - 1]))) && call[i + 1] == '[';
    if (call[i] != letter || !alone) continue;
    call.replace(i, 1, to_string(dtype));
  }
  return call;
}

// The calls that the text stands for, one for each dtype of T and then of U.
std::vector<std::string> calls_of(const OperatorSchema& schema, const std::string& text) {
  const tool::Coverage all(*registry(), schema);
  const auto dtypes_of = [&](char letter) {
    const size_t input = first_input_with(text, letter);
    return input == std::string::npos
               ? std::vector<DType>()
               : all.dtypes(static_cast<uint32_t>(std::min<size_t>(input, schema.op->input_count > 0 ? schema.op->input_count - 1 : 0)));
  };
  std::vector<std::string> calls;
  const std::vector<DType> of_t = dtypes_of('T'), of_u = dtypes_of('U');
  if (of_t.empty()) calls.push_back(text);
  for (const DType t : of_t) calls.push_back(with_dtype(text, 'T', t));
  if (of_u.empty()) return calls;
  std::vector<std::string> both;
  for (const std::string& call : calls) {
    both.push_back(with_dtype(call, 'U', of_u[0]));
    if (&call != calls.data()) continue;
    for (size_t u = 1; u < of_u.size(); ++u) both.push_back(with_dtype(call, 'U', of_u[u]));
  }
  return both;
}

// The host knows a net by where it lies, so none may come to lie where another was.
void keep_nets(const OperatorCall& call) {
  static auto& kept = *new std::vector<std::shared_ptr<const Net>>();
  for (const Attribute& a : call.attributes)
    if (const auto* net = std::get_if<std::shared_ptr<const Net>>(&a.value)) kept.push_back(*net);
}

Call as_reference_sees(const OperatorCall& call) {
  Call seen;
  for (const auto& input : call.inputs) seen.inputs.push_back(input ? std::optional(numbers_of(*input)) : std::nullopt);
  seen.attributes = call.attributes;
  seen.output_count = call.output_count;
  seen.seed = call.random_seed;
  seen.step = call.step;
  return seen;
}

// ---------------------------------------------------------------- what was covered

struct Covered {
  std::set<std::string> dtypes;  // of input 0, or of output 0
  int calls[kind_count] = {}, epilogues[kind_count] = {}, runs = 0, layouts = 0, in_place = 0;
};
std::map<std::string, Covered>& covered() {
  static auto& all = *new std::map<std::string, Covered>();
  return all;
}

class Table : public ::testing::Environment {
 public:
  void TearDown() override {
    Covered sum;
    fmt::print("{:34} {:>4} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>6} {:>6} {:>6} {:>6}  dtypes\n", "operator", "", "odd", "empty", "bcast",
               "strid", "rank", "large", "layout", "inplac", "fused", "runs");
    for (const auto& [name, c] : covered()) {
      fmt::print("{:34} {:>4}", name, c.dtypes.size());
      for (int k = 0; k < kind_count; ++k) {
        fmt::print(" {:>5}", c.calls[k]);
        sum.calls[k] += c.calls[k];
      }
      sum.runs += c.runs;
      fmt::print(" {:>6} {:>6} {:>6} {:>6}  {}\n", c.layouts, c.in_place, std::accumulate(c.epilogues, c.epilogues + kind_count, 0), c.runs,
                 join(std::vector<std::string>(c.dtypes.begin(), c.dtypes.end()), " "));
    }
    fmt::print("{} operators, {} calls, {} runs\n", covered().size(),
               sum.calls[0] + sum.calls[1] + sum.calls[2] + sum.calls[3] + sum.calls[4] + sum.calls[5], sum.runs);
  }
};
const ::testing::Environment* const table = ::testing::AddGlobalTestEnvironment(new Table());

// ---------------------------------------------------------------- one call in all ways

class Examined {
 public:
  Examined(const Row& row, const OperatorSchema& schema, const std::string& text, Covered& counts)
      : row_(row), schema_(schema), text_(text), counts_(counts) {}

  // Empty, or what is wrong.
  std::string operator()(Kind kind, tool::Coverage& coverage) {
    auto example = tool::parse_example(schema_, text_, 1);
    if (!example.ok()) return example.status().text();
    call_ = std::move(example->call);
    call_.host = &host();
    keep_nets(call_);
    call_.random_seed = 11;
    call_.step = 3;
    Call seen = as_reference_sees(call_);
    // As many outputs as the reference knows of; first those alone that must be there.
    const size_t required = call_.output_count;
    seen.output_count = std::max<size_t>(required, schema_.op->output_count);
    expected_ = row_.reference(seen);
    const DType dtype = !call_.inputs.empty() && call_.inputs[0] ? call_.inputs[0]->dtype
                        : expected_.empty()                      ? DType::none
                                                                 : expected_[0].dtype;
    const auto own = row_.ulps_of.find(dtype);
    ulps_ = own == row_.ulps_of.end() ? row_.ulps : own->second;
    if (expected_.size() > required) HEDDLE_CONFORMS(plain("with the required outputs alone", nullptr));
    call_.output_count = std::max(required, expected_.size());
    HEDDLE_CONFORMS(plain("", &first_));
    HEDDLE_CONFORMS(in_tiles());
    HEDDLE_CONFORMS(with_constants());
    HEDDLE_CONFORMS(in_place());
    HEDDLE_CONFORMS(in_layouts(call_));
    if (expected_.size() > required) {
      // What more outputs there are may decide which layouts there are.
      OperatorCall call = call_;
      call.output_count = required;
      HEDDLE_CONFORMS(in_layouts(call));
    }
    HEDDLE_CONFORMS(with_epilogues(kind));
    coverage.ran(call_);
    counts_.dtypes.insert(to_string(dtype));
    ++counts_.calls[static_cast<int>(kind)];
    return {};
  }

 private:
  std::string wrong(const std::string& way, const std::string& what) const {
    return fmt::format("{}{}{}: {}", text_, way.empty() ? "" : ", ", way, what);
  }
  // Runs and compares; the results to `kept`.
  std::string run(const OperatorCall& call, const std::string& way, Tensors* kept) {
    auto outputs = run_operator(*registry(), call);
    ++counts_.runs;
    if (!outputs.ok()) return wrong(way, outputs.status().text());
    for (size_t o = 0; o < std::min(outputs->size(), call.output_layouts.size()); ++o)
      (*outputs)[o] = row_major((*outputs)[o], call.output_layouts[o]);
    if (const std::string other = difference(*outputs, expected_, ulps_); !other.empty()) return wrong(way, other);
    if (kept) *kept = std::move(*outputs);
    return {};
  }
  std::string plain(const std::string& way, Tensors* kept) { return run(call_, way, kept); }
  std::string in_tiles() {
    for (const uint64_t seed : {5, 6}) {
      OperatorCall call = call_;
      call.split_seed = seed;
      call.conditions.max_threads = 3;
      call.conditions.other_threads = call.host == nullptr;
      Tensors outputs;
      if (const std::string other = run(call, "in tiles", &outputs); !other.empty()) return other;
      for (size_t o = 0; o < outputs.size(); ++o)
        if (outputs[o]->bytes > 0 && std::memcmp(outputs[o]->data, first_[o]->data, static_cast<size_t>(outputs[o]->bytes)) != 0)
          return wrong("in tiles", fmt::format("output {} has other bits", o));
    }
    return {};
  }
  std::string with_constants() {
    OperatorCall call = call_;
    call.constant_inputs = true;
    return run(call, "with constant inputs", nullptr);
  }
  // Of what takes operators fused behind it, against these one after the other. Some calls of each kind: each is run many times.
  std::string with_epilogues(Kind kind) {
    int& examined = counts_.epilogues[static_cast<int>(kind)];
    if (examined >= (kind == Kind::large ? 2 : 4)) return {};
    const tool::EpilogueFinding with = tool::examine_epilogues(*registry(), call_, first_);
    examined += with.accepted ? 1 : 0;
    // What oneDNN allocates where it meets NaN is no wrong result.
    const bool results = with.found.mistake != std::string_view("allocates");
    return with.found.ok() || !results ? std::string() : wrong("fused", with.found.text);
  }
  std::string in_place() {
    for (uint32_t o = 0; o < first_.size(); ++o) {
      const int alias = schema_.alias_input(o);
      for (uint32_t i = 0; i < call_.inputs.size(); ++i) {
        if (alias != HEDDLE_ALIAS_ANY && alias != static_cast<int>(i)) continue;
        const Tensor& input = call_.inputs[i];
        if (!input || input->dtype != first_[o]->dtype || input->shape != first_[o]->shape) continue;
        OperatorCall call = call_;
        call.in_place = {{o, i}};
        ++counts_.in_place;
        if (const std::string other = run(call, fmt::format("output {} in place of input {}", o, i), nullptr); !other.empty()) return other;
      }
    }
    return {};
  }
  std::string in_layouts(const OperatorCall& row_major_call) {
    std::vector<heddle_format> formats = row_.any_layouts ? mixed() : transparent();
    if (auto ranked = operator_formats(*registry(), row_major_call); ranked.ok())
      formats.insert(formats.end(), ranked->begin(), ranked->end());
    for (const heddle_format& format : formats) {
      OperatorCall call = row_major_call;
      bool other_than_row_major = false;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        const heddle_layout layout = i < HEDDLE_FORMAT_PORTS ? format.inputs[i] : heddle_layout{};
        call.input_layouts.push_back(layout);
        call.inputs[i] = in_layout(call.inputs[i], layout);
        other_than_row_major = other_than_row_major || layout.rank > 0;
      }
      for (size_t o = 0; o < call.output_count; ++o) {
        call.output_layouts.push_back(o < HEDDLE_FORMAT_PORTS ? format.outputs[o] : heddle_layout{});
        other_than_row_major = other_than_row_major || call.output_layouts.back().rank > 0;
      }
      if (!other_than_row_major) continue;
      ++counts_.layouts;
      if (const std::string other = run(call, "in another layout", nullptr); !other.empty()) return other;
    }
    return {};
  }
  // Channels last, of what takes any layout.
  std::vector<heddle_format> transparent() const {
    if (!schema_.has_trait(HEDDLE_TRAIT_LAYOUT_TRANSPARENT) || first_.empty() || first_[0]->shape.rank() < 3) return {};
    const int rank = first_[0]->shape.rank();
    heddle_format format = {};
    for (size_t i = 0; i < HEDDLE_FORMAT_PORTS; ++i)
      for (heddle_layout* layout : {&format.inputs[i], &format.outputs[i]}) {
        layout->rank = static_cast<uint8_t>(rank);
        for (int k = 1; k + 1 < rank; ++k) layout->order[k] = static_cast<uint8_t>(k + 1);
        layout->order[rank - 1] = 1;
      }
    for (const Tensor& input : call_.inputs)
      if (input && input->shape != first_[0]->shape) return {};
    return {format};
  }

  // From each of some layouts to each other: row-major, channels last, back to front.
  std::vector<heddle_format> mixed() const {
    const int rank = first_.empty() ? 0 : first_[0]->shape.rank();
    std::vector<heddle_layout> layouts(3);
    for (heddle_layout* layout : {&layouts[1], &layouts[2]}) layout->rank = static_cast<uint8_t>(rank);
    for (int k = 0; k < rank; ++k) {
      layouts[1].order[k] = static_cast<uint8_t>(k == 0 ? 0 : k + 1 < rank ? k + 1 : 1);
      layouts[2].order[k] = static_cast<uint8_t>(rank - 1 - k);
    }
    std::vector<heddle_format> formats;
    for (const heddle_layout& from : layouts)
      for (const heddle_layout& to : layouts) {
        heddle_format& format = formats.emplace_back();
        std::fill_n(format.inputs, HEDDLE_FORMAT_PORTS, from);
        std::fill_n(format.outputs, HEDDLE_FORMAT_PORTS, to);
      }
    return formats;
  }

  const Row& row_;
  const OperatorSchema& schema_;
  const std::string text_;
  Covered& counts_;
  OperatorCall call_;
  std::vector<Numbers> expected_;
  Tensors first_;
  double ulps_ = 0;
};

// ---------------------------------------------------------------- tests

class Conformance : public ::testing::TestWithParam<size_t> {};

TEST_P(Conformance, AgreesWithItsReference) {
  const Row& row = rows()[GetParam()];
  const OperatorSchema* const schema = registry()->find_operator(row.domain, row.type);
  ASSERT_NE(schema, nullptr) << row.type << " is no operator of the plugin";
  Covered& counts = covered()[display_name(row.domain, row.type)];
  tool::Coverage coverage(*registry(), *schema);
  for (const Case& one : row.cases)
    for (const std::string& call : calls_of(*schema, one.call)) {
      const std::string wrong = Examined(row, *schema, call, counts)(one.kind, coverage);
      EXPECT_EQ(wrong, "") << row.type << ", " << to_string(one.kind);
      if (::testing::Test::HasFailure()) return;  // one call is enough to look at
    }
  EXPECT_EQ(join(coverage.missing(), "; "), "") << row.type << " was never called with these";
  for (int k = 0; k < kind_count; ++k) {
    const bool none = row.without.count(static_cast<Kind>(k)) > 0;
    EXPECT_EQ(counts.calls[k] == 0, none) << row.type << " has " << (none ? "calls after all" : "no calls and no reason") << ": "
                                          << to_string(static_cast<Kind>(k));
  }
}

std::string name_of(const ::testing::TestParamInfo<size_t>& info) {
  const Row& row = rows()[info.param];
  return row.domain.empty() ? row.type : row.domain + "_" + row.type;
}
INSTANTIATE_TEST_SUITE_P(Operators, Conformance, ::testing::Range(size_t{0}, rows().size()), name_of);

TEST(ConformanceRows, EveryOperatorHasOne) {
  std::set<std::string> listed, missing;
  for (const Row& row : rows()) EXPECT_TRUE(listed.insert(display_name(row.domain, row.type)).second) << row.type << " has two rows";
  for (const std::string& domain : registry()->domains())
    for (const std::string& name : registry()->operator_names(domain))
      if (!listed.contains(display_name(domain, name))) missing.insert(display_name(domain, name));
  EXPECT_EQ(join(std::vector<std::string>(missing.begin(), missing.end()), " "), "") << "operators without a row";
}

}  // namespace
}  // namespace heddle::conformance
