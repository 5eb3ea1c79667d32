// DeviceStreams: what one context has on the devices of its plan: the streams and events of the workspace that it works in, memory for run
// states, extents and faults, and the streams of the caller that it has adopted. enqueue() is the one place where a context puts work on a
// stream.
//
// Part of a DeviceRun. Threads: several threads may enqueue at once, but on each stream only one at a time, which the plan's edges ensure;
// the other functions that change something are called while nothing runs. Nothing is allocated after allocate(), except by adopt().
//
// `device` is numbered as in DeviceWork: 1 for `Plan::devices[0]`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "device/device.h"
#include "heddle/caller_stream.h"
#include "heddle/status.h"
#include "memory/workspace.h"
#include "run/device/entered_device.h"

namespace heddle {

class DeviceStreams {
 public:
  static constexpr uint64_t no_label = UINT64_MAX;

  // `plan` must outlive it.
  explicit DeviceStreams(const Plan& plan);
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;
  // Allocates the memory for run states, extents and faults; call it once, first. Errors: out_of_memory, device_failed.
  Status allocate();

  // Moves to the streams and events of a workspace that has reserved for the plan, and to the context's current memory.
  void follow(const Workspace& workspace, const ContextMemory& memory);
  // For the `subnet`-th subnet of step `step` on a device: moves to that step's stream, which nothing else uses while the step is being
  // enqueued. The work of the subnet counts as the step's.
  void follow(const DeviceStreams& outer, uint32_t step, uint32_t subnet, const ContextMemory& memory);
  // Call it before each run. `observed`: other code is called between its steps.
  void begin(bool observed) { observed_ = observed; }
  bool observed() const { return observed_; }
  // Errors: device_lost.
  Status usable() const;

  const Plan& plan() const { return plan_; }
  uint32_t device_count() const { return static_cast<uint32_t>(devices_.size()); }
  Device& device(uint32_t device) const { return *devices_[device - 1u].device; }
  uint32_t stream_count(uint32_t device) const { return static_cast<uint32_t>(devices_[device - 1u].streams.size()); }
  void* stream(uint32_t device, uint32_t stream) const { return devices_[device - 1u].streams[stream]; }
  void* stream(const DeviceWork& work) const { return stream(work.device, work.stream); }
  // The events that the step's stream waits for before the step, and the event recorded after it; null: none.
  std::span<void* const> waits(uint32_t step) const { return {waits_.data() + wait_begin_[step], waits_.data() + wait_begin_[step + 1]}; }
  void* record(uint32_t step) const { return records_[step]; }
  // The context's staging memory on the host, and the begin of its arena on a device.
  std::byte* staging() const { return staging_; }
  const std::byte* arena(uint32_t device) const { return devices_[device - 1u].arena; }
  // The extents of values on a device, by slot, in its memory; null: it has none.
  int64_t* extents_on(uint32_t device) const { return static_cast<int64_t*>(devices_[device - 1u].extents.get()); }
  // The run state that steps of that stream draw random numbers from, in the device's memory.
  const heddle_run_state* run_state(const DeviceWork& work) const { return state_on(work.device, work.stream); }
  heddle_run_state* state_on(uint32_t device, uint32_t stream) const {
    return reinterpret_cast<heddle_run_state*>(static_cast<std::byte*>(devices_[device - 1u].states.get()) + stream * state_stride);
  }
  bool has_states(uint32_t device) const { return static_cast<bool>(devices_[device - 1u].states); }
  // The FaultBlock of the context on a device, or for a subnet that of the outer context; null: it has none.
  std::byte* block_on(uint32_t device) const { return devices_[device - 1u].block; }
  heddle_fault* fault_on(uint32_t device) const { return reinterpret_cast<heddle_fault*>(block_on(device)); }
  uint64_t* holds_on(uint32_t device) const { return reinterpret_cast<uint64_t*>(block_on(device) + FaultBlock::holds_at); }
  uint32_t hold_count() const { return device_count() + 1; }
  // The mark with which a step reports a fault, and its label.
  uint64_t mark_of(uint32_t step) const { return label_of(step) + 1; }
  // Call it before each run, when nothing of an earlier one is under way: sets the faults of all devices to zeros, unless
  // faults_were_clear() was called since. Errors: device_failed.
  Status clear_faults();
  void faults_were_clear() { faults_clear_ = true; }
  // Returns where the device's Faults step has copied its FaultBlock to.
  std::byte* reported(uint32_t device) const { return staging_ + plan_.devices[device - 1u].fault_staging; }
  // For a plan whose update phase joins on devices. Devices copy its words while the host uses them.
  CommitWords& commit_words() const { return *reinterpret_cast<CommitWords*>(staging_ + plan_.commit_staging); }
  // The first step on a stream that draws random numbers; -1: none.
  int32_t first_draw(uint32_t device, uint32_t stream) const { return devices_[device - 1u].first_draw[stream]; }

  // Returns the label under which a device reports a failure of the step's work. That is the step's number; in a subnet it is the number of
  // the outer step in the low 32 bits, and above it the subnet's number and that of its step in 4 and 28 bits. Steps of deeper subnets
  // count as the step of the subnet.
  uint64_t label_of(uint32_t step) const;
  struct Origin {
    uint32_t step = 0;
    bool of_the_outer = false;  // for a subnet: the step is another one of the outer net
    std::string inside;         // for a step with a subnet: where in it, to be appended to the text of the failure
  };
  // Returns the origin of the work of a label, as far as this plan knows it; nullopt: no work of the context has this label.
  std::optional<Origin> origin_of(uint64_t label) const;

  // A stream of the caller, kept for the caller's next run.
  struct Adopted {
    void* native = nullptr;
    uint32_t device = 1;
    DeviceStream stream;
    DeviceEvent reached;  // for recording how far the caller's work on it has come
  };
  // Returns the adopted stream, adopting it if it is not known. Valid until the next call. Errors: invalid_argument (no such device in the
  // plan), device_failed.
  Result<Adopted*> adopt(const CallerStream& option);
  // Returns the error for a stream of a device that the plan does not use.
  static Status stream_without_work(const CallerStream& option);
  // Forgets adopted streams if many are kept: the caller brings other streams for every run, and those of earlier runs are done.
  void forget_adopted();

  // Enqueues `work` on a stream of the device. The text of a failure is left with `call`.
  heddle_status enqueue(Device& device, void* stream, heddle_work work, uint64_t label, const heddle_call* call) const {
    work.struct_size = sizeof(work);
    work.label = label;
    return enqueue_entering(device, stream, work, plan_.devices_alone && !observed_, call);
  }

 private:
  static constexpr size_t state_stride = 64;
  // The part of the context on one device.
  struct OnDevice {
    Device* device = nullptr;    // the plan's
    std::vector<void*> streams;  // the workspace's
    std::byte* arena = nullptr;
    std::vector<int32_t> first_draw;  // by stream
    DeviceMemory extents;             // by slot, where a value on it has one
    DeviceMemory states;              // by stream, if any draws
    DeviceMemory faults;              // its own FaultBlock
    std::byte* block = nullptr;
  };
  Status allocate_states();
  Status allocate_faults();
  Status allocate_extents();
  void move_to(const ContextMemory& memory);

  const Plan& plan_;
  std::vector<OnDevice> devices_;
  std::vector<void*> waits_;          // of all steps, one after the other
  std::vector<uint32_t> wait_begin_;  // by step: where its waits begin
  std::vector<void*> records_;        // by step; null: none
  std::vector<Adopted> adopted_;
  std::byte* staging_ = nullptr;
  uint64_t outer_label_ = no_label;  // for a subnet: the label of the outer step
  uint32_t subnet_ = 0;
  bool observed_ = false;
  bool faults_clear_ = false;
};

}  // namespace heddle
