// Executing primitives. See onednn_call.h.
#include "onednn/onednn_call.h"

namespace heddle::cpu::onednn {

Call::~Call() {
  for (std::atomic<Binding*>& slot : idle_) delete slot.load(std::memory_order_relaxed);
}

Status Call::create(const PrimitiveDesc& desc, std::vector<Argument> arguments, uint32_t threads) {
  if (arguments.size() > max_arguments) return {HEDDLE_ERROR_INTERNAL, "a primitive has too many arguments"};
  HEDDLE_PLUGIN_CHECK(create_primitive(primitive_, desc.get()));
  arguments_ = std::move(arguments);
  for (uint32_t i = 0; i < threads && i < capacity; ++i) {
    std::unique_ptr<Binding> binding;
    HEDDLE_PLUGIN_CHECK(make_binding(&binding));
    give(std::move(binding));
  }
  return {};
}

Status Call::make_binding(std::unique_ptr<Binding>* result) const {
  auto binding = std::make_unique<Binding>();
  HEDDLE_DNNL_CHECK("stream", dnnl_stream_create(binding->stream.out(), engine(), dnnl_stream_default_flags));
  for (size_t i = 0; i < arguments_.size(); ++i) {
    Memory& memory = binding->memories[i];
    HEDDLE_DNNL_CHECK("memory", dnnl_memory_create(memory.out(), arguments_[i].desc.get(), engine(), DNNL_MEMORY_NONE));
    binding->arguments[i] = {arguments_[i].id, memory.get()};
  }
  *result = std::move(binding);
  return {};
}

std::unique_ptr<Call::Binding> Call::take() const {
  for (std::atomic<Binding*>& slot : idle_) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    if (Binding* binding = slot.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Binding>(binding);
  }
  return nullptr;
}

void Call::give(std::unique_ptr<Binding> binding) const {
  for (std::atomic<Binding*>& slot : idle_) {
    Binding* empty = nullptr;
    if (slot.load(std::memory_order_relaxed)) continue;
    if (slot.compare_exchange_strong(empty, binding.get(), std::memory_order_release, std::memory_order_relaxed)) {
      binding.release();
      return;
    }
  }
}

Status Call::run(const Pointers& pointers) const {
  std::unique_ptr<Binding> binding = take();
  if (!binding) HEDDLE_PLUGIN_CHECK(make_binding(&binding));
  for (size_t i = 0; i < arguments_.size(); ++i)
    HEDDLE_DNNL_CHECK("data handle", set_data(binding->memories[i].get(), pointers[i], binding->stream.get()));
  HEDDLE_DNNL_CHECK("execution", dnnl_primitive_execute(primitive_.get(), binding->stream.get(), static_cast<int>(arguments_.size()),
                                                        binding->arguments.data()));
  HEDDLE_DNNL_CHECK("execution", dnnl_stream_wait(binding->stream.get()));
  give(std::move(binding));
  return {};
}

}  // namespace heddle::cpu::onednn
