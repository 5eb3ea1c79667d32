#include "context/bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/text/text.h"
#include "net/literal.h"

namespace heddle {
namespace {

std::string literal(const Blob& blob) {
  std::string text;
  append_literal(text, blob);
  return text;
}

// Describes the difference between the content that was prepared for and the current one.
std::string difference(const Blob& prepared, const Blob& given) {
  constexpr int64_t max_elements = 8;
  const auto both = [](const Blob& a, const Blob& b) {
    return fmt::format("the context was prepared for {}, now it is {}", literal(a), literal(b));
  };
  if (prepared.shape.element_count() <= max_elements) return both(prepared, given);
  const int64_t width = byte_width(prepared.dtype);
  int64_t at = 0;
  while (std::memcmp(prepared.data + at * width, given.data + at * width, static_cast<size_t>(width)) == 0) ++at;
  const auto element = [&](const Blob& blob) { return *Blob::copy_of(blob.dtype, Shape{1}, blob.data + at * width); };
  return fmt::format("at element {} {}", at, both(element(prepared), element(given)));
}

}  // namespace

Bindings::Bindings(const Plan& plan, const ContextMemory& memory, ValueViews& views) : plan_(plan), memory_(memory), views_(views) {
  inputs_.assign(plan.inputs.size(), nullptr);
  input_views_.resize(plan.inputs.size());
  unbound_inputs_ = inputs_.size();
  outputs_.resize(plan.outputs.size());
  regions_.reserve(1 + inputs_.size() + outputs_.size());
  copies_ = std::count_if(plan.output_staging.begin(), plan.output_staging.end(), [](int64_t at) { return at >= 0; });
  for (size_t o = 0; o < outputs_.size(); ++o) outputs_[o].home = views.home(plan.values[plan.outputs[o].index]);
  find_views();
}

// Finds the views to patch. The first output of a storage in the arena may move it; a second output of the same storage is copied. Storages
// that a device reads or writes stay in the arena: a run may end before the device does.
void Bindings::find_views() {
  std::unordered_map<uint32_t, Output*> mover;  // by storage
  for (const PlanStep& step : plan_.steps)
    for (const auto* list : {&step.inputs, &step.outputs})
      for (const Operand& operand : *list)
        if (step.on_device && operand.value.valid()) {
          const MemoryPlace& at = plan_.values[operand.value.index].place;
          if (at.kind == MemoryPlace::Kind::arena && at.device == 0) mover.emplace(at.index, nullptr);
        }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const PlanValue& out = plan_.values[plan_.outputs[o].index];
    if (out.place.kind == MemoryPlace::Kind::arena) mover.emplace(out.place.index, out.type.late() ? nullptr : &outputs_[o]);
  }
  for (uint32_t v = 0; v < views_.size(); ++v) {
    const MemoryPlace& place = views_.value(v).place;
    if (place.kind == MemoryPlace::Kind::input) input_views_[place.index].push_back(v);
    if (place.kind != MemoryPlace::Kind::arena) continue;
    if (const auto it = mover.find(place.index); it != mover.end() && it->second) it->second->views.push_back(v);
  }
}

void Bindings::bind_input(size_t i, const void* data) {
  if (inputs_[i] == data) return;
  if (!inputs_[i] && data) --unbound_inputs_;
  if (inputs_[i] && !data) ++unbound_inputs_;
  inputs_[i] = data;
  overlaps_checked_ = false;
  for (const uint32_t v : input_views_[i]) views_[v].data = const_cast<void*>(data);
}

void Bindings::bind_output(size_t i, void* data) {
  Output& output = outputs_[i];
  if (output.user == data) return;
  if (output.views.empty()) copies_ += (data ? 1 : 0) - (output.user ? 1 : 0);
  output.user = data;
  overlaps_checked_ = false;
  patch(output);
}

void Bindings::patch(const Output& output) {
  for (const uint32_t v : output.views) views_[v].data = output.user ? output.user : output.home;
}

void Bindings::unbind() {
  for (size_t i = 0; i < inputs_.size(); ++i) bind_input(i, nullptr);
  for (size_t i = 0; i < outputs_.size(); ++i) bind_output(i, nullptr);
}

void Bindings::move() {
  left_behind_ = true;
  overlaps_checked_ = false;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    outputs_[o].home = views_.home(plan_.values[plan_.outputs[o].index]);
    if (outputs_[o].user) patch(outputs_[o]);
  }
}

// Returns where the final content of output `i` is kept if it is a variable's; otherwise null.
std::byte* Bindings::staged_output(size_t i) const {
  const int64_t at = plan_.output_staging[i];
  return at < 0 ? nullptr : memory_.staging() + at;
}

TensorView Bindings::output(size_t i) const {
  const ValueId id = plan_.outputs[i];
  const heddle_tensor& v = views_.of(id);
  TensorView out;
  out.dtype = static_cast<DType>(v.dtype);
  out.shape = Shape(v.dims, v.rank);
  if (v.extent && v.extent_axis >= 0 && v.space == HEDDLE_SPACE_HOST) out.shape[v.extent_axis] = *v.extent;
  std::byte* const staged = staged_output(i);
  const bool in_memory = staged || plan_.values[id.index].place.kind == MemoryPlace::Kind::arena;
  out.data = outputs_[i].user ? outputs_[i].user : in_memory && left_behind_ ? nullptr : staged ? staged : v.data;
  return out;
}

Status Bindings::copy_those_elsewhere(const CopyOnDevice& on_device) {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    void* const to = o.user ? o.user : staged_output(i);
    if (!to || !o.views.empty()) continue;
    const heddle_tensor& v = views_.of(plan_.outputs[i]);
    const int64_t bytes = byte_width(static_cast<DType>(v.dtype)) * output(i).shape.element_count();
    if (bytes == 0 || v.data == to) continue;
    if (v.space == HEDDLE_SPACE_HOST)
      std::memmove(to, v.data, static_cast<size_t>(bytes));
    else
      HEDDLE_CHECK(on_device(plan_.values[plan_.outputs[i].index].place.device, to, v.data, bytes));
  }
  return {};
}

Status Bindings::missing_inputs() const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const PlanValue& value = plan_.values[plan_.inputs[i].index];
    if (!inputs_[i] && value.type.byte_size() > 0) missing.push_back(quoted(value.name));
  }
  if (missing.empty()) return {};
  return {Code::missing_input, fmt::format("no data for input {}", join(missing, ", ")), "bind every input of the net"};
}

// These contents decided shapes when the plan was made: with others, kernels would read and write out of bounds.
Status Bindings::compare_contents() const {
  for (const KnownInput& known : plan_.known_inputs) {
    const void* const given = inputs_[known.input];
    if (known.content->bytes == 0 || std::memcmp(given, known.content->data, static_cast<size_t>(known.content->bytes)) == 0) continue;
    const std::string& name = plan_.values[plan_.inputs[known.input].index].name;
    const auto copy = Blob::copy_of(known.content->dtype, known.content->shape, given);
    return {Code::shape_mismatch, fmt::format("input {} decides shapes: {}", quoted(name), difference(*known.content, *copy)),
            "prepare a context for this content, or use Session::run, which finds the plan by it"};
  }
  return {};
}

// An output in memory that the run also reads or writes otherwise would be wrong without an error.
Status Bindings::find_overlap() {
  const auto begin_of = [](const void* data) { return reinterpret_cast<uintptr_t>(data); };
  const auto add = [&](const void* data, int64_t bytes, Region::Kind kind, size_t index) {
    if (data && bytes > 0) regions_.push_back({begin_of(data), begin_of(data) + static_cast<uintptr_t>(bytes), kind, index});
  };
  regions_.clear();
  add(memory_.arena(0), plan_.context_bytes(), Region::memory, 0);
  for (size_t i = 0; i < inputs_.size(); ++i) add(inputs_[i], plan_.values[plan_.inputs[i].index].type.byte_size(), Region::input, i);
  for (size_t i = 0; i < outputs_.size(); ++i)
    add(outputs_[i].user, plan_.values[plan_.outputs[i].index].type.byte_size(), Region::output, i);
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  // Among the regions that began before, the one that reaches farthest, and the written one that reaches farthest.
  const Region *farthest = nullptr, *written = nullptr;
  for (const Region& region : regions_) {
    const Region* const before = region.kind == Region::input ? written : farthest;
    if (before && before->end > region.begin) return overlap(*before, region);
    if (!farthest || region.end > farthest->end) farthest = &region;
    if (region.kind != Region::input && (!written || region.end > written->end)) written = &region;
  }
  overlaps_checked_ = true;
  return {};
}

Status Bindings::overlap(const Region& a, const Region& b) const {
  const auto text = [&](const Region& region) {
    const std::vector<ValueId>& ports = region.kind == Region::input ? plan_.inputs : plan_.outputs;
    return fmt::format("{} {}", region.kind == Region::input ? "input" : "output", quoted(plan_.values[ports[region.index].index].name));
  };
  // The subject is the region that has to be moved: an output rather than an input, the later one of two outputs.
  const auto rank = [](const Region& region) { return std::pair(static_cast<int>(region.kind), region.index); };
  const Region &other = rank(a) < rank(b) ? a : b, &subject = rank(a) < rank(b) ? b : a;
  return {Code::invalid_argument,
          other.kind == Region::memory ? fmt::format("{} lies in the context's own memory", text(subject))
                                       : fmt::format("{} lies in the memory of {}", text(subject), text(other)),
          "give it memory of its own"};
}

}  // namespace heddle
