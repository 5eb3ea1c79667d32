// Compares every operator of the CPU plugin with a plain second implementation: dtypes x shapes, in tiles, in place, in other layouts, with
// constant inputs. The registry gives the operators, dtypes, ports and attributes; one that no call reaches is a failure. The program
// prints its coverage when it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <new>
#include <set>

#include "base/text/text.h"
#include "build_folder.h"
#include "commands/plugin/check/epilogue_examination.h"
#include "commands/plugin/check/operator_cases.h"
#include "commands/plugin/example.h"
#include "commands/plugin/session_host.h"
#include "conformance/cases/row_calls.h"
#include "conformance/covered.h"
#include "conformance/expectation.h"
#include "conformance/judge.h"
#include "conformance/reference.h"
#include "operators/pointwise_support.h"

namespace heddle::conformance {
namespace {

using testing::cpu_registry;
using testing::Tensor;
using Tensors = std::vector<Tensor>;

// Returns from the enclosing function with the mistake, if there is one.
#define HEDDLE_CONFORMS(expression) \
  if (std::string is_wrong = (expression); !is_wrong.empty()) return is_wrong

std::shared_ptr<const RegistrySnapshot> registry() {
  static const auto snapshot = cpu_registry().snapshot();
  return snapshot;
}

// Returns the host that runs nets in nets.
CallHost& host() {
  static auto& of_sessions = *new tool::SessionHost(registry(), [] {
    RuntimeOptions options;
    options.threads = 1;
    options.plugins = {testing::build_folder() + "/lib/cpu.so"};
    return Runtime::create(options);
  });
  return of_sessions;
}

// ---------------------------------------------------------------- calls of a row

// The host identifies a net by its address, so nets are kept: no new one may get the address of an earlier one.
void keep_nets(const OperatorCall& call) {
  static auto& kept = *new std::vector<std::shared_ptr<const Net>>();
  for (const Attribute& a : call.attributes)
    if (const auto* net = std::get_if<std::shared_ptr<const Net>>(&a.value)) kept.push_back(*net);
}

// ---------------------------------------------------------------- one call in all ways

// Counts the tiles of the last call that it observed.
class TileCounter final : public CallObserver {
 public:
  std::byte* allocate(Memory, uint32_t, int64_t bytes) override {
    memory_.emplace_back(static_cast<std::byte*>(::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), alignment)));
    return memory_.back().get();
  }
  void prepared(int64_t tiles, uint32_t) override { tiles_ = tiles; }
  void run_begins() override {}
  void run_ended() override {}
  int64_t tiles() const { return tiles_; }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::vector<std::unique_ptr<std::byte, Release>> memory_;
  int64_t tiles_ = 0;
};

class Examined {
 public:
  Examined(const Row& row, const OperatorSchema& schema, const std::string& text, Covered& counts)
      : row_(row), schema_(schema), text_(text), counts_(counts) {}

  // Returns an empty string or the mistake.
  std::string operator()(Kind kind, tool::Coverage& coverage) {
    auto example = tool::parse_example(schema_, text_, 1);
    if (!example.ok()) return example.status().text();
    call_ = std::move(example->call);
    if (runs_nets() || schema_.has_trait(HEDDLE_TRAIT_COLLECTIVE)) call_.host = &host();  // a host answers on the calling thread alone
    keep_nets(call_);
    call_.random_seed = 11;
    call_.step = 3;
    // Uses as many outputs as the reference computes; first the required ones alone.
    const size_t required = call_.output_count;
    Expectation expected = expectation(row_, schema_, call_);
    expected_ = std::move(expected.outputs);
    tolerance_ = expected.tolerance;
    if (required > 0 && expected_.size() > required) HEDDLE_CONFORMS(run(call_, "with the required outputs alone", nullptr));
    call_.output_count = std::max(required, expected_.size());
    HEDDLE_CONFORMS(run(call_, "", &first_));
    HEDDLE_CONFORMS(in_tiles());
    HEDDLE_CONFORMS(with_constants());
    HEDDLE_CONFORMS(in_place());
    HEDDLE_CONFORMS(in_layouts(call_));
    if (expected_.size() > required) {
      // The number of outputs may decide which layouts there are.
      OperatorCall call = call_;
      call.output_count = required;
      HEDDLE_CONFORMS(in_layouts(call));
    }
    HEDDLE_CONFORMS(with_epilogues(kind));
    HEDDLE_CONFORMS(is_of_its_kind(kind));
    coverage.ran(call_);
    count_sizes();
    counts_.dtypes.insert(to_string(expected.dtype));
    ++counts_.calls[static_cast<int>(kind)];
    return {};
  }

 private:
  bool runs_nets() const {
    return std::any_of(schema_.op->attributes, schema_.op->attributes + schema_.op->attribute_count,
                       [](const heddle_attribute_schema* a) { return a->type == HEDDLE_ATTRIBUTE_SUBNET; });
  }
  std::string wrong(const std::string& way, const std::string& what) const {
    return fmt::format("{}{}{}: {}", text_, way.empty() ? "" : ", ", way, what);
  }
  // Runs and compares; stores the results in `kept`.
  std::string run(OperatorCall call, const std::string& way, Tensors* kept) {
    TileCounter& counter = counters_.emplace_back();
    if (!call.split_seed) call.conditions.observer = &counter;  // else the tiles are not the kernel's own
    // Elements that are not written become visible.
    call.conditions.scratch_fill = call.conditions.thread_scratch_fill = call.conditions.output_fill = uint8_t{0xa5};
    auto outputs = run_operator(*registry(), call);
    ++counts_.runs;
    counts_.max_tiles = std::max(counts_.max_tiles, counter.tiles());
    if (!outputs.ok()) return wrong(way, outputs.status().text());
    if (outputs->size() != call.output_count)
      return wrong(way, fmt::format("{} outputs, {} were asked for", outputs->size(), call.output_count));
    for (size_t o = 0; o < std::min(outputs->size(), call.output_layouts.size()); ++o)
      (*outputs)[o] = row_major((*outputs)[o], call.output_layouts[o]);
    if (!is_first(*outputs))
      if (const std::string other = difference(*outputs, expected_, tolerance_); !other.empty()) return wrong(way, other);
    if (kept) *kept = std::move(*outputs);
    return {};
  }
  // Returns true if these are the bits of the first results, which have been compared.
  bool is_first(const Tensors& outputs) const {
    return outputs.size() == first_.size() &&
           std::equal(outputs.begin(), outputs.end(), first_.begin(), [](const Tensor& a, const Tensor& b) {
             return a && b && a->dtype == b->dtype && a->shape == b->shape &&
                    (a->bytes == 0 || std::memcmp(a->data, b->data, static_cast<size_t>(a->bytes)) == 0);
           });
  }
  // Checks the condition on shapes that the kind states.
  std::string is_of_its_kind(Kind kind) const {
    Tensors tensors = call_.inputs;
    tensors.insert(tensors.end(), first_.begin(), first_.end());
    const bool empty = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t && t->shape.element_count() == 0; });
    if (kind == Kind::empty && !empty) return wrong("", "nothing of it is empty");
    int rank = 0;
    for (const Tensor& t : tensors) rank = std::max(rank, t ? t->shape.rank() : 0);
    return kind == Kind::rank && rank < 4 ? wrong("", fmt::format("rank {} is not the highest", rank)) : std::string();
  }
  void count_sizes() {
    const Tensor input = call_.inputs.empty() ? nullptr : call_.inputs[0], output = first_.empty() ? nullptr : first_[0];
    const auto elements = [](const Tensor& t) { return t ? t->shape.element_count() : 1; };
    if (elements(input) == 1 && elements(output) == 1) counts_.one_element = true;
    if (!input || !output || byte_width(input->dtype) != byte_width(output->dtype) || std::min(elements(input), elements(output)) < 2)
      return;
    counts_.same_width = true;
    if (input->bytes == output->bytes) counts_.same_size = true;
  }
  std::string in_tiles() {
    for (const uint64_t seed : {7, 11}) {  // tiles one by one; one, then several
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
  // Compares a kernel that accepts epilogues with its operators one after the other. Only some calls of each kind: each is run many times.
  std::string with_epilogues(Kind kind) {
    int& examined = counts_.epilogues[static_cast<int>(kind)];
    if (examined >= (kind == Kind::large ? 2 : 4)) return {};
    const tool::EpilogueFinding with = tool::examine_epilogues(*registry(), call_, first_);
    examined += with.accepted ? 1 : 0;
    // Allocations of oneDNN for NaN are not a wrong result.
    const bool results = with.found.mistake != std::string_view("allocates");
    return with.found.ok() || !results ? std::string() : wrong("fused", with.found.text);
  }
  std::string in_place() {
    for (uint32_t o = 0; o < first_.size(); ++o) {
      const int alias = schema_.alias_input(o);
      for (uint32_t i = 0; i < call_.inputs.size(); ++i) {
        if (alias != HEDDLE_ALIAS_ANY && alias != static_cast<int>(i)) continue;
        const Tensor& input = call_.inputs[i];
        if (!input || byte_width(input->dtype) != byte_width(first_[o]->dtype) || input->bytes != first_[o]->bytes) continue;
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
    const auto ranked = operator_formats(*registry(), row_major_call);
    if (!ranked.ok()) return wrong("asked for its layouts", ranked.status().text());
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
  // Returns channels-last for operators that accept any layout.
  std::vector<heddle_format> transparent() const {
    if (!schema_.has_trait(HEDDLE_TRAIT_LAYOUT_TRANSPARENT) || first_.empty() || first_[0]->shape.rank() < 3) return {};
    const int rank = first_[0]->shape.rank();
    heddle_layout last = {};
    last.rank = static_cast<uint8_t>(rank);
    for (int k = 1; k + 1 < rank; ++k) last.order[k] = static_cast<uint8_t>(k + 1);
    last.order[rank - 1] = 1;
    // Inputs that are broadcast are row-major.
    heddle_format format = {};
    format.outputs[0] = last;
    bool any = false;
    for (size_t i = 0; i < std::min<size_t>(call_.inputs.size(), HEDDLE_FORMAT_PORTS); ++i) {
      if (!call_.inputs[i] || call_.inputs[i]->shape != first_[0]->shape) continue;
      format.inputs[i] = last;
      any = true;
    }
    if (!any) return {};
    return {format};
  }

  // Returns each pair of some layouts: row-major, channels last, reversed.
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
  Tolerance tolerance_;
  std::deque<TileCounter> counters_;  // results lie in their memory
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
    for (const std::string& call : calls_of(*registry(), *schema, one.call)) {
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
  EXPECT_NE(counts.one_element, row.never_one_element) << row.type << " has no call of one element: extents of 1 are not those of 0";
  EXPECT_NE(counts.same_size || !counts.same_width, row.never_same_size)
      << row.type << " has no call whose output is as large as its first input";
  if (row.without.count(Kind::large) == 0 && !row.one_tile) {
    EXPECT_GT(counts.max_tiles, 1) << row.type << " has no call of several tiles";
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
