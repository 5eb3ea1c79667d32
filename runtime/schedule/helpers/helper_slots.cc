#include "schedule/helpers/helper_slots.h"

#include "schedule/worker.h"

namespace heddle {

HelperSlots::HelperSlots(HelperHost& host, Executor* executor, uint32_t count) : host_(host), executor_(executor), slots_(count) {
  for (uint32_t i = 0; i < count; ++i) {
    slots_[i].slots = this;
    slots_[i].worker = i + 1;
  }
  idle_.store(count, std::memory_order_relaxed);
}

void HelperSlots::call(uint32_t wanted) noexcept {
  for (Slot& slot : slots_) {
    if (wanted == 0) return;
    uint32_t expected = slot_idle;
    if (slot.state.load(std::memory_order_relaxed) != slot_idle) continue;
    // Acquire: the last helper in this slot has moved its owner reference out.
    if (!slot.state.compare_exchange_strong(expected, slot_submitted, std::memory_order_acq_rel)) continue;
    --wanted;
    idle_.fetch_sub(1, std::memory_order_relaxed);
    coming_.fetch_add(1, std::memory_order_relaxed);
    slot.alive = host_.keep_alive();
    executor_->submit(slot);
  }
}

void HelperSlots::execute(Slot& slot) noexcept {
  const std::shared_ptr<void> alive = std::move(slot.alive);
  const WorkerScope scope(slot.worker, alive.get());
  coming_.fetch_sub(1, std::memory_order_relaxed);
  slot.state.store(slot_running, std::memory_order_relaxed);
  for (;;) {
    host_.help(slot.worker);
    idle_.fetch_add(1, std::memory_order_relaxed);
    // From here on another thread may submit this slot again. A thread that offered work before it could see the slot idle does not, so
    // this thread must find that work: both write first and then look, in one total order.
    slot.state.store(slot_idle, std::memory_order_seq_cst);
    uint32_t expected = slot_idle;
    if (!host_.wanted() || !slot.state.compare_exchange_strong(expected, slot_running, std::memory_order_acq_rel)) return;
    idle_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace heddle
