/* The boundary for device backends: memory, streams and events of one kind of device ("cuda", "sim"). C11.
 *
 * A backend is a plugin like any other; heddle_plugin.devices lists it. All calls return heddle_status; a failing one says
 * why through host->set_error(call, ...), as everywhere (abi.h); `call` may be null. Work on a stream runs in order; the calls that enqueue
 * return before the work is done. Thread mark of all functions: [any], several threads for different streams at once; calls for one stream
 * are made one after the other and never overlap, not always by the same thread. Kernels are called like that too: run enqueues on its
 * stream.
 *
 * Failure. The first work of a stream that fails makes the stream fail: what is enqueued behind it is skipped, except that records and
 * notifies still happen; a stream that waits for an event recorded behind a failure fails too. synchronize reports the failure and makes
 * the stream usable again; a stream that stays broken fails every synchronize.
 *
 * docs/writing_a_device.md walks through tests/plugins/proto_device.cc.
 */
#ifndef HEDDLE_DEVICE_PLUGIN_H
#define HEDDLE_DEVICE_PLUGIN_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HEDDLE_COPY_HOST_TO_DEVICE = 1, HEDDLE_COPY_DEVICE_TO_HOST = 2, HEDDLE_COPY_DEVICE_TO_DEVICE = 3 };

/* Called on a thread of the backend's when everything enqueued on a stream before it is done; `failed` is HEDDLE_OK or the
   asynchronous error of the stream, `text`, of `length` bytes, says why (valid during the call, may be null). It returns quickly and does
   not call the backend; the backend calls it exactly once for each notify that returned HEDDLE_OK, and holds no lock of its own meanwhile.
 */
typedef void (*heddle_stream_callback)(void* user, heddle_status failed, const char* text, size_t length);

/* One step by a kernel that was written for another kind of device. Its context has the addresses of this device: of tensors on it
   (heddle_tensor::space), scratch and run_state. The kernel is to be called with a copy that has those of the memory it works in instead,
   all of it HEDDLE_SPACE_HOST for one of "cpu", and with a host table of the backend's whose thread_scratch answers with the memory below.
 */
typedef struct heddle_launch {
  uint32_t struct_size;
  uint32_t reserved;
  const heddle_kernel* kernel;
  const heddle_run_context* context;
  int64_t tiles; /* run is called with [0, tiles), then finish, unless it is null */
  uint64_t scratch_bytes;
  void* thread_scratch; /* on the device, of this step, 64-byte aligned */
  uint64_t thread_scratch_bytes;
} heddle_launch;

typedef struct heddle_device_backend {
  uint32_t struct_size;
  uint32_t reserved;
  const char* kind;
  /* Number of devices. None is HEDDLE_OK with 0, and a reason said all the same. */
  heddle_status (*count)(int32_t* count, const heddle_call* call);
  heddle_status (*open)(int32_t index, void** device, const heddle_call* call);
  void (*close)(void* device);
  /* One line for people. */
  const char* (*description)(void* device);
  heddle_status (*memory_info)(void* device, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call* call);
  /* Memory of the device, aligned to 64 bytes or more; addresses within it may be handed to copy, fill and kernels. The host never
     reads or writes through them. HEDDLE_ERROR_OUT_OF_MEMORY when there is not enough. */
  heddle_status (*allocate)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release)(void* device, void* memory);
  heddle_status (*create_stream)(void* device, void** stream, const heddle_call* call);
  void (*destroy_stream)(void* device, void* stream);
  /* Enqueues a copy of `bytes`; `kind` is one of HEDDLE_COPY_*. Host memory is ordinary memory and stays as it is until the stream has
     passed the copy. */
  heddle_status (*copy)(void* device, void* stream, void* destination, const void* source, uint64_t bytes, int32_t kind,
                        const heddle_call* call);
  /* Enqueues a fill with a byte value. */
  heddle_status (*fill)(void* device, void* stream, void* memory, int32_t value, uint64_t bytes, const heddle_call* call);
  /* Waits until everything enqueued on the stream is done and reports the first asynchronous error. */
  heddle_status (*synchronize)(void* device, void* stream, const heddle_call* call);
  heddle_status (*create_event)(void* device, void** event, const heddle_call* call);
  void (*destroy_event)(void* device, void* event);
  heddle_status (*record)(void* device, void* stream, void* event, const heddle_call* call);
  /* Later work of `stream` waits for the event's last record; no host wait. */
  heddle_status (*wait)(void* device, void* stream, void* event, const heddle_call* call);
  /* Enqueues a host callback. */
  heddle_status (*notify)(void* device, void* stream, heddle_stream_callback callback, void* user, const heddle_call* call);
  /* Optional, both or neither. What is enqueued on the stream from now on belongs to operator `number` of the run. */
  void (*label)(void* device, void* stream, uint64_t number);
  /* The number of the work that failed, asked once after a failing synchronize; UINT64_MAX: the device does not know. Without it an
     asynchronous error names every operator that it may come from. */
  uint64_t (*failed_label)(void* device, void* stream);
  /* Optional, both or neither. The device runs kernels that were written for this kind ("cpu") of operators for which it has none of its
     own. The host creates and prepares them as that kind's, with constants, and packed forms of them, on the host; not those of operators
     that run subnets, nor asynchronous ones. */
  const char* runs_kernels_of;
  /* Enqueues such a step. `launch`, its context, and what inputs on the host hold stay as they are during the call only: they are to be
     copied. The kernel, its state and resources stay until the stream has passed. What it says by set_error is the failure's text. */
  heddle_status (*launch)(void* device, void* stream, const heddle_launch* launch, const heddle_call* call);
} heddle_device_backend;

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DEVICE_PLUGIN_H */
