#include "run/device/entered_device.h"

#include <utility>

#include "schedule/worker.h"

namespace heddle {
namespace {

// The device that the calling thread enqueued on last, and in which of its stays in a run. Null: it may have called other code since.
thread_local const Device* entered = nullptr;
thread_local uint64_t entered_in = 0;
// The device that the thread has yet to leave; its run is under way until then.
thread_local Device* to_leave = nullptr;

bool enters(const Device& device, bool alone) {
  const uint64_t stay = worker_stay();
  alone = alone && stay != 0;
  if (alone && entered == &device && entered_in == stay) return false;
  entered = alone ? &device : nullptr;
  entered_in = stay;
  return true;
}

void leave_device() {
  if (to_leave) std::exchange(to_leave, nullptr)->leave();
}

// Among devices of one kind the thread leaves only the last: that restores the settings from before it entered the first.
void leave_later(Device& device) {
  if (to_leave && !to_leave->is_of_kind_of(device)) leave_device();
  to_leave = &device;
  when_thread_leaves_runs(leave_device);
  if (worker_stay() == 0) leave_device();
}

}  // namespace

heddle_status enqueue_entering(Device& device, void* stream, heddle_work work, bool alone, const heddle_call* call) {
  work.flags = enters(device, alone) ? uint32_t{HEDDLE_WORK_ENTERS} : 0u;
  const heddle_status status = device.enqueue(stream, work, call);
  if ((work.flags & HEDDLE_WORK_ENTERS) != 0 && device.can_be_left()) leave_later(device);
  return status;
}

heddle_status enqueue_group_entering(std::span<Device* const> devices, std::span<void* const> streams, std::span<heddle_work> works,
                                     const heddle_call* call) {
  for (heddle_work& work : works) work.flags = HEDDLE_WORK_ENTERS;
  forget_entered_device();
  const heddle_status status = Device::enqueue_group(devices, streams, works, call);
  if (devices[0]->can_be_left()) leave_later(*devices[0]);
  return status;
}

void forget_entered_device() {
  entered = nullptr;
}

}  // namespace heddle
