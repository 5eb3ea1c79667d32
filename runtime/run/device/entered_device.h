// The device that a thread has entered: work that it enqueues next on the same device need not enter it again (HEDDLE_WORK_ENTERS).
#pragma once

#include <span>

#include "device/device.h"
#include "heddle/device_plugin.h"

namespace heddle {

// Enqueues `work` on a stream of `device`, with HEDDLE_WORK_ENTERS unless the calling thread has entered the device in its current stay in
// a run. The thread leaves the device when it leaves its runs. `alone`: the threads of the run call nothing but devices and their kernels;
// if false, all work enters, since other code may have been called since. Returns what Device::enqueue returns.
heddle_status enqueue_entering(Device& device, void* stream, heddle_work work, bool alone, const heddle_call* call);

// Enqueues the launches of a group, each of which enters its device (Device::enqueue_group).
heddle_status enqueue_group_entering(std::span<Device* const> devices, std::span<void* const> streams, std::span<heddle_work> works,
                                     const heddle_call* call);

// Makes the next work that the calling thread enqueues enter its device: the thread has called other devices or other code.
void forget_entered_device();

}  // namespace heddle
