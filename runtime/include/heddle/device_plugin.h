/* The boundary for device backends: memory, streams and events of one kind of device ("cuda", "sim"). C11.
 *
 * A backend is a plugin like any other; heddle_plugin.devices lists it. All calls return heddle_status; a failing one says
 * why through host->set_error(call, ...), as everywhere (abi.h); `call` may be null. Work on a stream runs in order; the calls that enqueue
 * return before the work is done. Thread mark of all functions: [any], several threads for different streams at once; calls for one stream
 * are made one after the other and never overlap, not always by the same thread. Kernels are called like that too: run enqueues on its
 * stream.
 *
 * Failure. The first work of a stream that fails makes the stream fail: what is enqueued behind it is skipped, except that events are still
 * recorded; a stream that waits for an event recorded behind a failure fails too. Callbacks behind a failure are called with it, or, on a
 * device with HEDDLE_DEVICE_DROPS_CALLBACKS, not at all. synchronize reports the failure and makes the stream usable again. A device that
 * is of no more use answers every call that works with it with HEDDLE_ERROR_DEVICE_LOST: it is closed, once everything made on it is
 * destroyed, and may be opened anew.
 *
 * docs/writing_a_device.md walks through plugins/sim.
 */
#ifndef HEDDLE_DEVICE_PLUGIN_H
#define HEDDLE_DEVICE_PLUGIN_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HEDDLE_COPY_HOST_TO_DEVICE = 1,
  HEDDLE_COPY_DEVICE_TO_HOST = 2,
  HEDDLE_COPY_DEVICE_TO_DEVICE = 3,
  HEDDLE_COPY_VALUE_TO_DEVICE = 4 /* of at most 64 bytes on the host, which are taken during the call */
};

/* Called on a thread of the backend's when everything enqueued on a stream before it is done; `failed` is HEDDLE_OK or the
   asynchronous error of the stream, `text`, of `length` bytes, says why (valid during the call, may be null). It returns quickly and does
   not call the backend; the backend calls it at most once for each that it has taken, never behind a query or synchronize that said that
   the stream is done or has failed, and holds no lock of its own meanwhile. */
typedef void (*heddle_stream_callback)(void* user, heddle_status failed, const char* text, size_t length);

/* ---------------------------------------------------------------- what a device is like */

enum {
  HEDDLE_DEVICE_UNIFIED = 1u << 0,         /* the host may read and write its memory while no work of the device does */
  HEDDLE_DEVICE_SHARED_EVENTS = 1u << 1,   /* its streams may wait for events of other devices of the kind */
  HEDDLE_DEVICE_DROPS_CALLBACKS = 1u << 2, /* a failed stream may forget its callbacks: the host asks with query */
  HEDDLE_DEVICE_DESCRIBED = 1u << 3        /* it is not here, but made up by `describe`: plans are made for it, and nothing runs on it */
};

/* What a stream is for. */
enum { HEDDLE_STREAM_COMPUTE = 0, HEDDLE_STREAM_TO_DEVICE = 1, HEDDLE_STREAM_FROM_DEVICE = 2 };

typedef struct heddle_device_properties {
  uint32_t struct_size;
  uint32_t flags;           /* HEDDLE_DEVICE_* */
  uint32_t alignment;       /* of what allocate gives, in bytes: a power of two, at least 64 */
  uint32_t guard_bytes;     /* that plans are to leave unused behind each value in its memory, as heddle_launch says; 0: none */
  uint32_t stream_classes;  /* bit c: copies gain by streams of class c (HEDDLE_STREAM_*) beside those that compute */
  int32_t lowest_priority;  /* of streams */
  int32_t highest_priority; /* larger goes first */
  uint32_t reserved;
} heddle_device_properties;

typedef struct heddle_stream_request {
  uint32_t struct_size;
  int32_t stream_class; /* HEDDLE_STREAM_* */
  int32_t priority;     /* within those of the properties */
  uint32_t reserved;
  /* A stream that the embedding program made by the vendor's own functions (a cudaStream_t): it is worked with, and stays its owner's.
     Null: a new one. */
  void* adopted;
} heddle_stream_request;

/* ---------------------------------------------------------------- work */

/* One step by a kernel that was written for another kind of device. Its context has the addresses of this device: of tensors on it
   (heddle_tensor::space), their extents, scratch and run_state. The kernel is to be called with a copy that has those of the memory it
   works in instead, all of it HEDDLE_SPACE_HOST for one of "cpu", and with a host table of the backend's whose thread_scratch answers with
   the memory below. What inputs on the host hold is to be copied: it stays as it is during the call only, as this struct and the context
   do. The kernel, its state and resources stay until the stream has passed. What it says by set_error is the failure's text. */
typedef struct heddle_launch {
  uint32_t struct_size;
  uint32_t guard_bytes; /* behind each output, its bytes rounded up to 64, that hold nothing and that the kernel must leave alone */
  const heddle_kernel* kernel;
  const heddle_run_context* context;
  int64_t tiles; /* run is called with [0, tiles), then finish, unless it is null */
  uint64_t scratch_bytes;
  void* thread_scratch; /* on the device, of this step, 64-byte aligned */
  uint64_t thread_scratch_bytes;
} heddle_launch;

typedef struct heddle_copy {
  uint32_t struct_size;
  int32_t kind; /* HEDDLE_COPY_* */
  void* destination;
  const void* source;
  uint64_t bytes;
  /* Where the source of HEDDLE_COPY_DEVICE_TO_DEVICE lies; null: on the stream's own device. Only where `reaches` says so. */
  void* source_device;
} heddle_copy;

/* Of heddle_work::flags. What the vendor's libraries keep for each thread (CUDA: the current device) is to be set anew: this is the first
   call of `enqueue` for the device on its thread, or other code may have run there since the last one. Without the flag the thread has run
   nothing since but the runtime and kernels of this device, which enqueue between two of these calls, need not set it either, and leave it
   as it is. */
enum { HEDDLE_WORK_ENTERS = 1u << 0 };

/* What is enqueued at once, in this order: waits, a copy or a launch, a record, a callback. When the call fails the callback is not
   called, and how much of the rest was enqueued does not matter. The struct and what it points to stay during the call only. */
typedef struct heddle_work {
  uint32_t struct_size;
  uint32_t wait_count;
  uint64_t label;                  /* the number that failed_label gives for what is enqueued from now on, until another is said */
  void* const* waits;              /* events: what follows waits for the last record of each; no host wait */
  const heddle_copy* copy;         /* or null */
  const heddle_launch* launch;     /* or null */
  void* record;                    /* an event of the stream's device, or null */
  heddle_stream_callback callback; /* or null */
  void* user;
  uint32_t flags; /* HEDDLE_WORK_* */
  uint32_t reserved;
} heddle_work;

/* ---------------------------------------------------------------- the backend */

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
  /* Fills all but struct_size. */
  heddle_status (*properties)(void* device, heddle_device_properties* properties, const heddle_call* call);
  /* Memory of the device, aligned as its properties say; addresses within it may be handed to copies and kernels. The host never reads or
     writes through them, unless the memory is unified. HEDDLE_ERROR_OUT_OF_MEMORY when there is not enough. */
  heddle_status (*allocate)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release)(void* device, void* memory);
  heddle_status (*create_stream)(void* device, const heddle_stream_request* request, void** stream, const heddle_call* call);
  /* Waits for its work to end, but for one that was aborted and does not answer. An adopted one: lets go of it, and
     touches nothing of it: its owner may have destroyed it since. */
  void (*destroy_stream)(void* device, void* stream);
  heddle_status (*create_event)(void* device, void** event, const heddle_call* call);
  void (*destroy_event)(void* device, void* event);
  /* Host memory of copies is ordinary memory, or that of allocate_host; it stays as it is until the stream has passed the copy. */
  heddle_status (*enqueue)(void* device, void* stream, const heddle_work* work, const heddle_call* call);
  /* Waits until everything enqueued on the stream is done and reports the first asynchronous error. */
  heddle_status (*synchronize)(void* device, void* stream, const heddle_call* call);

  /* From here on all are optional: null. */

  /* Without waiting: HEDDLE_OK, everything enqueued on the stream is done; HEDDLE_PENDING, not yet; else its failure, which stays until
     synchronize. Not null with HEDDLE_DEVICE_DROPS_CALLBACKS. */
  heddle_status (*query)(void* device, void* stream, const heddle_call* call);
  /* The number of the work that failed, asked once after a failing synchronize; UINT64_MAX: the device does not know. Without it an
     asynchronous error names every operator that it may come from. */
  uint64_t (*failed_label)(void* device, void* stream);
  /* Nothing comes of what is enqueued on the stream: it is to end soon, as failed with HEDDLE_ERROR_CANCELLED, also what would never end by
     itself. It may come while another call for the stream is under way; a stream without work stays as it is. */
  heddle_status (*abort_stream)(void* device, void* stream, const heddle_call* call);
  /* Both or neither. Host memory that copies of this device are fast from and to, and do not keep the caller waiting (pinned), for all
     devices of the kind. */
  heddle_status (*allocate_host)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release_host)(void* device, void* memory);
  /* Both or neither. The same of memory that is there already, aligned to 64 bytes, until it is let go. */
  heddle_status (*register_host)(void* device, void* memory, uint64_t bytes, const heddle_call* call);
  void (*unregister_host)(void* device, void* memory);
  /* Non-zero: copies to `device` may come straight from `source`, another one of the kind. */
  int32_t (*reaches)(void* device, void* source);
  /* The device runs kernels that were written for this kind ("cpu") of operators for which it has none of its own: enqueue takes launches.
     The host creates and prepares them as that kind's, with constants, and packed forms of them, on the host; not asynchronous ones. */
  const char* runs_kernels_of;
  /* From now on, and for the whole process, the backend offers the devices that `text` tells of, and none that are here: how a text tells
     is the backend's to say; of no length, it is one that the backend knows itself. Their properties have HEDDLE_DEVICE_DESCRIBED. Memory
     on them has addresses and no content, what is enqueued is done at once and does nothing, and what only the vendor's libraries would
     tell are guesses on the large side. Called before anything else. HEDDLE_ERROR_INVALID: the text tells of none, or the backend has been
     asked for devices that are here. */
  heddle_status (*describe)(const char* text, uint64_t length, const heddle_call* call);
  /* The calling thread, which has entered the device (HEDDLE_WORK_ENTERS), is about to go back to code that is not the runtime's: what was
     set for the thread is put back as it was when it entered. Called once after a thread's work for a run, also where `enqueue` failed. */
  void (*leave)(void* device);
} heddle_device_backend;

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DEVICE_PLUGIN_H */
