#include "launch.h"

#include <algorithm>
#include <cstring>

namespace sim {
namespace {

heddle_host own_table = {};  // the table for kernels on the device
void (*error_of_host)(const heddle_call*, heddle_status, const char*, size_t) = nullptr;
thread_local Launch* current = nullptr;

constexpr size_t alignment = 64;
size_t aligned(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The run that enqueued the kernel can get its error only later, so the error is stored in the launch.
void set_error(const heddle_call* call, heddle_status code, const char* text, size_t length) {
  if (current)
    current->note(text, length);
  else
    error_of_host(call, code, text, length);
}
void* thread_scratch(const heddle_call*) {
  return current ? current->thread_scratch() : nullptr;
}
uint32_t thread_index(const heddle_call*) {
  return 0;
}
void* allocate_output(const heddle_call*, uint32_t, const int64_t*, int32_t) {
  return nullptr;
}
heddle_status run_subnet(const heddle_call*, const heddle_subnet*, uint64_t, const heddle_tensor* const*, uint32_t, heddle_tensor* const*,
                         uint32_t) {
  return HEDDLE_ERROR_UNSUPPORTED;
}
heddle_status move(const heddle_call*, uint32_t, void*, const void*, uint64_t) {
  return HEDDLE_ERROR_UNSUPPORTED;
}
heddle_status complete(const heddle_call*, heddle_status, const char*, size_t) {
  try {
    const std::string text = "operator " + (current ? current->display_name() : std::string("of a device")) +
                             " completes a step that is done when its run() returns, which is refused; mend the kernel";
    own_table.log(HEDDLE_LOG_WARNING, text.data(), text.size());
  } catch (...) {  // no memory for the text
  }
  return HEDDLE_ERROR_INVALID;
}

bool on_host(const heddle_tensor& tensor) {
  return tensor.space == HEDDLE_SPACE_HOST;
}

}  // namespace

void set_host(const heddle_host& host) {
  own_table = host;
  error_of_host = host.set_error;
  own_table.set_error = set_error;
  own_table.thread_scratch = thread_scratch;
  own_table.thread_index = thread_index;
  own_table.allocate_output = allocate_output;
  own_table.run_subnet = run_subnet;
  own_table.complete = complete;
  own_table.move = move;
}

void Launch::HostBytes::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  memory_ = std::make_unique<char[]>(bytes + alignment);
  data_ = memory_.get() + (alignment - reinterpret_cast<uintptr_t>(memory_.get()) % alignment) % alignment;
  bytes_ = bytes;
}

void Launch::reserve() {
  constexpr size_t operands = 64, dims_of_each = 6, host_bytes = 1024;
  tensors_.reserve(operands);
  inputs_.reserve(operands);
  outputs_.reserve(operands);
  dims_.reserve(operands * dims_of_each);
  host_bytes_.reserve(host_bytes);
  guards_.reserve(operands);
  watched_.reserve(operands);
}

bool Launch::is_here() {
  return current != nullptr;
}

namespace {

bool overlap(const heddle_tensor& a, const heddle_tensor* b) {
  const auto *const begin = static_cast<const char*>(a.data), *const other = b ? static_cast<const char*>(b->data) : nullptr;
  return other && other < begin + a.byte_size && begin < other + b->byte_size;
}

uint64_t sum_of(const void* data, uint64_t bytes) {
  const auto* at = static_cast<const char*>(data);
  uint64_t sum = bytes, word = 0;
  for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
    std::memcpy(&word, at, sizeof(word));
    sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
    sum ^= sum >> 29;
  }
  word = 0;
  if (bytes > 0) std::memcpy(&word, at, bytes);
  return (sum ^ word) * 0x9e3779b97f4a7c15U;
}

}  // namespace

// Compares the bytes in which the values may lie: the extents of a bounded one are known only when it has been written.
bool Launch::overlaps_input(const heddle_tensor& output) const {
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const heddle_tensor* input) { return overlap(output, input); });
}
bool Launch::overlaps_output(const heddle_tensor& input) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const heddle_tensor* output) { return overlap(input, output); });
}

void Launch::watch_inputs() {
  watched_.clear();
  for (uint32_t i = 0; watches_ && i < inputs_.size(); ++i)
    if (const heddle_tensor* const t = inputs_[i]; t && t->data && t->byte_size > 0 && !overlaps_output(*t))
      watched_.push_back({t, i, sum_of(t->data, t->byte_size)});
}

heddle_status Launch::check_inputs(std::string* why) const {
  for (const Watched& w : watched_)
    if (sum_of(w.tensor->data, w.tensor->byte_size) != w.sum) {
      *why = "changed input " + std::to_string(w.input) + ", whose bytes no output takes";
      return HEDDLE_ERROR_INTERNAL;
    }
  return HEDDLE_OK;
}

// The error is attributed to the kernel that wrote the extent.
heddle_status Launch::check_written_extents(std::string* why) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const heddle_tensor* const t = outputs_[i];
    if (!t || !t->extent || t->extent_axis < 0) continue;
    if (*t->extent >= 0 && *t->extent <= t->dims[t->extent_axis]) continue;
    *why = "wrote extent " + std::to_string(*t->extent) + ", the bound is " + std::to_string(t->dims[t->extent_axis]) + ", of output " +
           std::to_string(i);
    return HEDDLE_ERROR_INTERNAL;
  }
  return HEDDLE_OK;
}

constexpr int no_number = 0xff, guard_byte = 0xa5;

// A kernel relies on the extents that it reads.
heddle_status Launch::check_extents(std::string* why) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const heddle_tensor* const t = inputs_[i];
    if (!t || !t->extent || t->extent_axis < 0) continue;
    if (*t->extent >= 0 && *t->extent <= t->dims[t->extent_axis]) continue;
    *why = "input " + std::to_string(i) + " has extent " + std::to_string(*t->extent) + " where the bound is " +
           std::to_string(t->dims[t->extent_axis]);
    return HEDDLE_ERROR_INVALID;
  }
  return HEDDLE_OK;
}

void Launch::set_guards() {
  for (const heddle_tensor* output : outputs_)
    if (output && output->data && guard_bytes_ > 0 && !overlaps_input(*output)) std::memset(output->data, no_number, output->byte_size);
  for (const Guard& guard : guards_) std::memset(guard.begin, guard_byte, guard.bytes);
}

heddle_status Launch::check_guards(std::string* why) const {
  for (const Guard& guard : guards_)
    for (uint32_t i = 0; i < guard.bytes; ++i)
      if (guard.begin[i] != static_cast<char>(guard_byte)) {
        *why = "wrote past the end of output " + std::to_string(guard.output) + ", " + std::to_string(i) + " bytes into the guard after it";
        return HEDDLE_ERROR_INTERNAL;
      }
  return HEDDLE_OK;
}

bool Launch::place(heddle_tensor& tensor, const heddle_tensor& original, const Memory& memory, size_t* host_bytes) {
  tensor = original;
  tensor.space = HEDDLE_SPACE_HOST;
  dims_.insert(dims_.end(), original.dims, original.dims + original.rank);
  if (original.byte_size > 0 && on_host(original)) {
    tensor.data = std::memcpy(host_bytes_.data() + *host_bytes, original.data, original.byte_size);
    *host_bytes += aligned(original.byte_size);
  }
  if (on_host(original)) return true;
  if (original.byte_size > 0) tensor.data = memory.shadow(original.data, original.byte_size);
  // A value without bytes may still have an extent.
  if (original.extent) tensor.extent = reinterpret_cast<int64_t*>(memory.shadow(original.extent, sizeof(int64_t)));
  return (tensor.data || original.byte_size == 0) && (tensor.extent || !original.extent);
}

bool Launch::capture(const heddle_launch& launch, const Memory& memory, bool watches, std::string* why) {
  const heddle_run_context& c = *launch.context;
  kernel_ = launch.kernel;
  tiles_ = launch.tiles;
  guard_bytes_ = launch.guard_bytes;
  watches_ = watches;
  guards_.clear();
  context_ = c;
  context_.host = &own_table;
  const size_t count = size_t{c.input_count} + c.output_count;
  tensors_.assign(count, {});
  inputs_.assign(c.input_count, nullptr);
  outputs_.assign(c.output_count, nullptr);
  dims_.clear();
  size_t host_bytes = 0;
  for (uint32_t i = 0; i < c.input_count; ++i)
    if (c.inputs[i] && on_host(*c.inputs[i])) host_bytes += aligned(c.inputs[i]->byte_size);
  host_bytes_.reserve(host_bytes);
  host_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool input = i < c.input_count;
    const heddle_tensor* const original = input ? c.inputs[i] : c.outputs[i - c.input_count];
    if (!original) continue;
    const std::string name = (input ? "input " : "output ") + std::to_string(input ? i : i - c.input_count);
    if (!input && on_host(*original)) return *why = name + " lies on the host", false;
    // An output without bytes has no memory of its own, and others may follow at its address. The padding up to the guard must not be
    // written either.
    if (!input && guard_bytes_ > 0 && !original->extent && original->data && original->byte_size > 0) {
      const auto bytes = static_cast<uint32_t>(aligned(original->byte_size) - original->byte_size + guard_bytes_);
      if (char* const guard = memory.shadow(static_cast<char*>(original->data) + original->byte_size, bytes))
        guards_.push_back({guard, bytes, static_cast<uint32_t>(i - c.input_count)});
    }
    if (!place(tensors_[i], *original, memory, &host_bytes)) return *why = name + " does not lie in this device's memory", false;
    if (input)
      inputs_[i] = &tensors_[i];
    else
      outputs_[i - c.input_count] = &tensors_[i];
  }
  const int64_t* dims = dims_.data();
  for (size_t i = 0; i < count; ++i) {
    tensors_[i].dims = dims;
    dims += tensors_[i].rank;
  }
  context_.inputs = inputs_.data();
  context_.outputs = outputs_.data();
  context_.stream = nullptr;
  thread_scratch_ = launch.thread_scratch_bytes == 0 ? nullptr : memory.shadow(launch.thread_scratch, launch.thread_scratch_bytes);
  context_.scratch = launch.scratch_bytes == 0 ? nullptr : memory.shadow(c.scratch, launch.scratch_bytes);
  context_.fault = nullptr;
  context_.holds = nullptr;
  context_.hold_count = 0;
  hold_count_ = c.hold_count;
  holds_ = reinterpret_cast<const uint64_t*>(memory.shadow(c.holds, c.hold_count * sizeof(uint64_t)));
  if (hold_count_ > 0 && !holds_) return *why = "what holds the update does not lie in this device's memory", false;
  if (c.run_state) context_.run_state = reinterpret_cast<const heddle_run_state*>(memory.shadow(c.run_state, sizeof(heddle_run_state)));
  if ((launch.thread_scratch_bytes > 0 && !thread_scratch_) || (launch.scratch_bytes > 0 && !context_.scratch))
    return *why = "scratch does not lie in this device's memory", false;
  if (c.run_state && !context_.run_state) return *why = "the state of the run does not lie in this device's memory", false;
  return true;
}

template <class Call>
heddle_status Launch::call(const Call& call) {
  current = this;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = call();
  } catch (...) {
    text_ = "threw an exception across the plugin boundary";
  }
  current = nullptr;
  return status;
}

heddle_status Launch::run(const std::string& wrong, std::string* why) {
  if (std::any_of(holds_, holds_ + hold_count_, [](uint64_t hold) { return hold != 0; })) return HEDDLE_OK;
  if (const heddle_status bad = begin(why); bad != HEDDLE_OK) return bad;
  const heddle_status status = call([this] {
    const heddle_status ran = kernel_->run(&context_, 0, tiles_);
    return ran == HEDDLE_OK && kernel_->finish ? kernel_->finish(&context_) : ran;
  });
  return end(status, wrong, why);
}

heddle_status Launch::run_group(const std::vector<Launch*>& parts, std::vector<const heddle_run_context*>& contexts,
                                const std::string& wrong, std::string* why) {
  contexts.clear();
  for (Launch* const part : parts) {
    if (const heddle_status bad = part->begin(why); bad != HEDDLE_OK) return bad;
    contexts.push_back(&part->context_);
  }
  heddle_status status =
      parts[0]->call([&] { return parts[0]->kernel_->run_group(contexts.data(), static_cast<uint32_t>(contexts.size())); });
  for (Launch* const part : parts) status = part->end(status, wrong, why);
  return status;
}

heddle_status Launch::begin(std::string* why) {
  text_.clear();
  if (const heddle_status bad = check_extents(why); bad != HEDDLE_OK) return bad;
  set_guards();
  watch_inputs();
  return HEDDLE_OK;
}

// `status`: of the kernel.
heddle_status Launch::end(heddle_status status, const std::string& wrong, std::string* why) {
  if (status == HEDDLE_PENDING) {  // no subnet will complete: the kernel would never be called again
    status = HEDDLE_ERROR_INTERNAL;
    text_ = "is pending, and waits for no subnet";
  }
  if (status != HEDDLE_OK && !text_.empty()) *why = text_;
  if (status == HEDDLE_OK) status = check_guards(why);
  if (status == HEDDLE_OK) status = check_inputs(why);
  if (status == HEDDLE_OK) status = check_written_extents(why);
  const heddle_tensor* const first = outputs_.empty() ? nullptr : outputs_[0];
  if (first && wrong == kernel_->operator_name && first->dtype == HEDDLE_F32 && first->element_count > 0)
    *static_cast<float*>(first->data) += 0.5F;
  return status;
}

uint64_t Launch::input_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < context_.input_count; ++i)
    if (context_.inputs[i]) bytes += context_.inputs[i]->byte_size;
  return bytes;
}

}  // namespace sim
