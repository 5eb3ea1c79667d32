// What a run is bound to: the caller's inputs and outputs, and whether a run may work with them.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "load/literal.h"
#include "run/execution.h"

namespace heddle {
namespace {

std::string literal(const Blob& blob) {
  std::string text;
  append_literal(text, blob);
  return text;
}

// What was prepared for and what is there now, in words.
std::string difference(const Blob& prepared, const Blob& given) {
  constexpr int64_t most_elements = 8;
  const auto both = [](const Blob& a, const Blob& b) { return "the context was prepared for " + literal(a) + ", now it is " + literal(b); };
  if (prepared.shape.element_count() <= most_elements) return both(prepared, given);
  const int64_t width = byte_width(prepared.dtype);
  int64_t at = 0;
  while (std::memcmp(prepared.data + at * width, given.data + at * width, static_cast<size_t>(width)) == 0) ++at;
  const auto element = [&](const Blob& blob) { return *Blob::copy_of(blob.dtype, Shape{1}, blob.data + at * width); };
  return "at element " + std::to_string(at) + " " + both(element(prepared), element(given));
}

}  // namespace

void Execution::bind_input(size_t i, const void* data) {
  if (!inputs_[i] && data) --unbound_inputs_;
  if (inputs_[i] && !data) ++unbound_inputs_;
  inputs_[i] = data;
  bindings_checked_ = false;
  for (const uint32_t v : input_views_[i]) views_[v].data = const_cast<void*>(data);
}

void Execution::bind_output(size_t i, void* data) {
  OutputBinding& binding = outputs_[i];
  if (binding.views.empty()) copies_ += (data ? 1 : 0) - (binding.user ? 1 : 0);
  binding.user = data;
  bindings_checked_ = false;
  for (const uint32_t v : binding.views) views_[v].data = data ? data : binding.home;
}

void Execution::unbind() {
  for (size_t i = 0; i < inputs_.size(); ++i) bind_input(i, nullptr);
  for (size_t i = 0; i < outputs_.size(); ++i) bind_output(i, nullptr);
}

// Where the content of output `i` at the end of the run is kept, when it is a variable's; else null.
std::byte* Execution::staged_output(size_t i) const {
  const int64_t at = plan_->output_staging[i];
  return at < 0 ? nullptr : arena_ + plan_->staging_offset() + at;
}

TensorView Execution::output(size_t i) const {
  const ValueId id = plan_->outputs[i];
  const heddle_tensor& v = views_[view_of_value_[id.index]];
  TensorView out;
  out.dtype = static_cast<DType>(v.dtype);
  out.shape = Shape(v.dims, v.rank);
  if (v.extent && v.extent_axis >= 0) out.shape[v.extent_axis] = *v.extent;
  std::byte* const staged = staged_output(i);
  const bool in_memory = staged || plan_->values[id.index].placement.kind == Placement::Kind::arena;
  out.data = outputs_[i].user ? outputs_[i].user : in_memory && left_behind_ ? nullptr : staged ? staged : v.data;
  return out;
}

// Those that did not come into being where they are wanted.
void Execution::copy_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputBinding& o = outputs_[i];
    void* const to = o.user ? o.user : staged_output(i);
    if (!to || !o.views.empty()) continue;
    const heddle_tensor& v = views_[view_of_value_[plan_->outputs[i].index]];
    const int64_t bytes = byte_width(static_cast<DType>(v.dtype)) * output(i).shape.element_count();
    if (bytes > 0 && v.data != to) std::memmove(to, v.data, static_cast<size_t>(bytes));
  }
}

Status Execution::check_inputs_bound() const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const PlanValue& value = plan_->values[plan_->inputs[i].index];
    if (!inputs_[i] && value.type.byte_size() > 0) missing.push_back(quoted(value.name));
  }
  if (missing.empty()) return {};
  return {Code::missing_input, "no data for input " + join(missing, ", "), "bind every input of the net"};
}

// Shapes were decided by these contents when the plan was made: with others, kernels would read and write what is not theirs.
Status Execution::check_contents() const {
  for (const KnownInput& known : plan_->known_inputs) {
    const void* const given = inputs_[known.input];
    if (known.content->bytes == 0 || std::memcmp(given, known.content->data, static_cast<size_t>(known.content->bytes)) == 0) continue;
    const std::string& name = plan_->values[plan_->inputs[known.input].index].name;
    const auto copy = Blob::copy_of(known.content->dtype, known.content->shape, given);
    return {Code::shape_mismatch, "input " + quoted(name) + " decides shapes: " + difference(*known.content, *copy),
            "prepare a context for this content, or use Session::run, which finds the plan by it"};
  }
  return {};
}

// An output in memory that something else of the run is read from or written to would be wrong without a word.
Status Execution::check_overlaps() {
  const auto begin_of = [](const void* data) { return reinterpret_cast<uintptr_t>(data); };
  const auto add = [&](const void* data, int64_t bytes, Region::Kind kind, size_t index) {
    if (data && bytes > 0) regions_.push_back({begin_of(data), begin_of(data) + static_cast<uintptr_t>(bytes), kind, index});
  };
  regions_.clear();
  add(arena_, plan_->context_bytes(), Region::memory, 0);
  for (size_t i = 0; i < inputs_.size(); ++i) add(inputs_[i], plan_->values[plan_->inputs[i].index].type.byte_size(), Region::input, i);
  for (size_t i = 0; i < outputs_.size(); ++i)
    add(outputs_[i].user, plan_->values[plan_->outputs[i].index].type.byte_size(), Region::output, i);
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  // Of all that began before, what reaches farthest, and of what is written, what reaches farthest.
  const Region *farthest = nullptr, *written = nullptr;
  for (const Region& region : regions_) {
    const Region* const before = region.kind == Region::input ? written : farthest;
    if (before && before->end > region.begin) return overlap(*before, region);
    if (!farthest || region.end > farthest->end) farthest = &region;
    if (region.kind != Region::input && (!written || region.end > written->end)) written = &region;
  }
  return {};
}

Status Execution::overlap(const Region& a, const Region& b) const {
  const auto text = [&](const Region& region) {
    const std::vector<ValueId>& ports = region.kind == Region::input ? plan_->inputs : plan_->outputs;
    return (region.kind == Region::input ? "input " : "output ") + quoted(plan_->values[ports[region.index].index].name);
  };
  // The subject is what has to go elsewhere: an output rather than an input, the later one of two outputs.
  const auto rank = [](const Region& region) { return std::pair(static_cast<int>(region.kind), region.index); };
  const Region &other = rank(a) < rank(b) ? a : b, &subject = rank(a) < rank(b) ? b : a;
  return {Code::invalid_argument,
          text(subject) + (other.kind == Region::memory ? " lies in the context's own memory" : " lies in the memory of " + text(other)),
          "give it memory of its own"};
}

Status Execution::admit() {
  if (unbound_inputs_ != 0) HEDDLE_CHECK(check_inputs_bound());
  if (parent_) return {};  // the execution of a subnet was chosen for these contents, and is bound by us
  if (!plan_->known_inputs.empty()) HEDDLE_CHECK(check_contents());
  if (bindings_checked_) return {};
  HEDDLE_CHECK(check_overlaps());
  bindings_checked_ = true;
  return {};
}

}  // namespace heddle
