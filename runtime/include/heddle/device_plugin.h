/* The boundary for device backends: memory, streams and events of one kind of device ("cuda", "sim"). C11.
 *
 * A backend is a plugin like any other; heddle_plugin.devices lists it. Functions return heddle_status; a failing one gives the reason
 * through host->set_error(call, ...), as everywhere (abi.h); `call` may be null. Work on a stream runs in order; functions that enqueue
 * work return before it is done. Thread mark of all functions: [any], by several threads at once for different streams. Calls for one
 * stream never overlap, but not always come from the same thread. Kernels are called in the same way: their run enqueues work on its
 * stream.
 *
 * Failures. When work of a stream fails, the stream fails: work enqueued after it is skipped, except that events are still recorded; a
 * stream that waits for an event recorded after a failure fails too. Callbacks enqueued after a failure are called with it or, on a device
 * with HEDDLE_DEVICE_DROPS_CALLBACKS, may not be called at all. synchronize reports the failure and makes the stream usable again. A device
 * that has become unusable returns HEDDLE_ERROR_DEVICE_LOST from every call that works with it: the host closes it when everything made on
 * it is destroyed, and may then open it again.
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
  HEDDLE_COPY_VALUE_TO_DEVICE = 4 /* at most 64 bytes of host memory, which are read during the call */
};

/* Called on a thread of the backend's when everything enqueued on a stream before the callback is done. `failed` is HEDDLE_OK or the
   asynchronous error of the stream; `text`, of `length` bytes, gives the reason (valid during the call, may be null). The callback returns
   quickly and does not call the backend. The backend calls it at most once for each one enqueued, never after query or synchronize has
   reported that the stream is done or has failed, and holds no lock of its own during the call. */
typedef void (*heddle_stream_callback)(void* user, heddle_status failed, const char* text, size_t length);

/* ---------------------------------------------------------------- what a device is like */

enum {
  HEDDLE_DEVICE_UNIFIED = 1u << 0,         /* the host may access its memory while no work of the device does */
  HEDDLE_DEVICE_SHARED_EVENTS = 1u << 1,   /* its streams may wait for events of other devices of the kind */
  HEDDLE_DEVICE_DROPS_CALLBACKS = 1u << 2, /* a failed stream may drop its callbacks: the host uses query */
  HEDDLE_DEVICE_DESCRIBED = 1u << 3        /* it does not exist, `describe` made it up: plans can be made for it, nothing can run on it */
};

/* The class of a stream: the work it is used for. */
enum { HEDDLE_STREAM_COMPUTE = 0, HEDDLE_STREAM_TO_DEVICE = 1, HEDDLE_STREAM_FROM_DEVICE = 2 };

typedef struct heddle_device_properties {
  uint32_t struct_size;
  uint32_t flags;           /* HEDDLE_DEVICE_* */
  uint32_t alignment;       /* of the memory that allocate returns, in bytes: a power of two, at least 64 */
  uint32_t guard_bytes;     /* unused bytes that plans must leave past the end of each value in its memory, see heddle_launch; 0: none */
  uint32_t stream_classes;  /* bit c: copies are faster with separate streams of class c (HEDDLE_STREAM_*) */
  int32_t lowest_priority;  /* of streams */
  int32_t highest_priority; /* streams with larger values run first */
  uint32_t reserved;
} heddle_device_properties;

typedef struct heddle_stream_request {
  uint32_t struct_size;
  int32_t stream_class; /* HEDDLE_STREAM_* */
  int32_t priority;     /* between lowest_priority and highest_priority */
  uint32_t reserved;
  /* A stream that the embedding program made with the vendor's own functions (a cudaStream_t). The backend uses it; the program still owns
     it. Null: a new stream. */
  void* adopted;
} heddle_stream_request;

/* ---------------------------------------------------------------- work */

/* One step by a kernel that was written for another kind of device. Its context has addresses of this device: of tensors on it
   (heddle_tensor::space), their extents, scratch and run_state. The backend must call the kernel with a copy of the context that has
   addresses of the memory where the kernel works instead, all HEDDLE_SPACE_HOST for a "cpu" kernel, and with a host table of the backend's
   whose thread_scratch returns the memory below. It must copy the contents of inputs on the host: they are valid during the call only, as
   are this struct and the context. The kernel, its state and its resources stay valid until the stream has executed the step. The text that
   the kernel gives to set_error becomes the text of the failure. */
typedef struct heddle_launch {
  uint32_t struct_size;
  uint32_t guard_bytes; /* size of the unused memory past the end of each output (its bytes rounded up to 64), which the kernel must not
                           change */
  const heddle_kernel* kernel;
  const heddle_run_context* context;
  int64_t tiles; /* run is called with [0, tiles), then finish, unless it is null */
  uint64_t scratch_bytes;
  void* thread_scratch; /* on the device, for this step, 64-byte aligned */
  uint64_t thread_scratch_bytes;
} heddle_launch;

typedef struct heddle_copy {
  uint32_t struct_size;
  int32_t kind; /* HEDDLE_COPY_* */
  void* destination;
  const void* source;
  uint64_t bytes;
  /* The device of the source of HEDDLE_COPY_DEVICE_TO_DEVICE; null: the stream's own device. Used only if `reaches` allows it. */
  void* source_device;
} heddle_copy;

/* A flag of heddle_work. If it is set, the backend must set anew what the vendor's libraries keep for each thread (CUDA: the current
   device), because this is the first call of `enqueue` for the device on its thread, or other code may have run there since the last one.
   Without the flag the thread has since run only the runtime and kernels of this device; enqueue then need not set it, and they leave it
   unchanged. */
enum { HEDDLE_WORK_ENTERS = 1u << 0 };

/* Work to enqueue in one call, in this order: waits, a copy or a launch, a record, a callback. If the call fails, the callback is not
   called, and it does not matter how much of the rest was enqueued. The struct and what it points to are valid during the call only. */
typedef struct heddle_work {
  uint32_t struct_size;
  uint32_t wait_count;
  uint64_t label;                  /* what failed_label returns for work enqueued from now on, until a call sets another label */
  void* const* waits;              /* events: the following work waits for the last record of each; the host does not wait */
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
  /* Returns the number of devices. Without a device it returns HEDDLE_OK with 0, and still gives the reason through set_error. */
  heddle_status (*count)(int32_t* count, const heddle_call* call);
  heddle_status (*open)(int32_t index, void** device, const heddle_call* call);
  void (*close)(void* device);
  /* Returns one line for people. */
  const char* (*description)(void* device);
  heddle_status (*memory_info)(void* device, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call* call);
  /* Fills in all fields except struct_size. */
  heddle_status (*properties)(void* device, heddle_device_properties* properties, const heddle_call* call);
  /* Allocates memory of the device, aligned as its properties declare; addresses within it may be passed to copies and kernels. The host
     never reads or writes through them unless the memory is unified. HEDDLE_ERROR_OUT_OF_MEMORY if there is not enough. */
  heddle_status (*allocate)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release)(void* device, void* memory);
  heddle_status (*create_stream)(void* device, const heddle_stream_request* request, void** stream, const heddle_call* call);
  /* Waits for the stream's work to end, except for work that was aborted and does not respond. An adopted stream is
     only forgotten and not accessed: its owner may have destroyed it already. */
  void (*destroy_stream)(void* device, void* stream);
  heddle_status (*create_event)(void* device, void** event, const heddle_call* call);
  void (*destroy_event)(void* device, void* event);
  /* Enqueues work. Host memory of copies is ordinary memory or memory from allocate_host; it stays unchanged until the stream has executed
     the copy. */
  heddle_status (*enqueue)(void* device, void* stream, const heddle_work* work, const heddle_call* call);
  /* Waits until everything enqueued on the stream is done and returns the first asynchronous error. */
  heddle_status (*synchronize)(void* device, void* stream, const heddle_call* call);

  /* All functions below are optional: null. */

  /* Returns without waiting: HEDDLE_OK if everything enqueued on the stream is done; HEDDLE_PENDING if not yet; else the stream's failure,
     which stays until synchronize. Required with HEDDLE_DEVICE_DROPS_CALLBACKS. */
  heddle_status (*query)(void* device, void* stream, const heddle_call* call);
  /* Returns the label of the work that failed; called once after a failing synchronize. UINT64_MAX: the device does not know. Without this
     function an asynchronous error names every operator that may have caused it. */
  uint64_t (*failed_label)(void* device, void* stream);
  /* Requests that all work enqueued on the stream end soon and fail with HEDDLE_ERROR_CANCELLED, including work that would never end by
     itself. May be called while another call for the stream is in progress; a stream without work does not change. */
  heddle_status (*abort_stream)(void* device, void* stream, const heddle_call* call);
  /* Both or neither. Allocate and release host memory that this device copies from and to quickly and without making the caller wait
     (pinned); it serves all devices of the kind. */
  heddle_status (*allocate_host)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release_host)(void* device, void* memory);
  /* Both or neither. Pin and unpin existing host memory, aligned to 64 bytes. */
  heddle_status (*register_host)(void* device, void* memory, uint64_t bytes, const heddle_call* call);
  void (*unregister_host)(void* device, void* memory);
  /* Returns non-zero if copies to `device` may read directly from `source`, another device of the kind. */
  int32_t (*reaches)(void* device, void* source);
  /* The kind of device ("cpu") whose kernels this device runs for operators of which it has no kernel: enqueue then accepts launches. The
     host creates and prepares these kernels as for that kind, with constants and their packed forms in host memory; asynchronous kernels
     are excluded. */
  const char* runs_kernels_of;
  /* Makes the backend offer, from now on and for the whole process, the devices that `text` describes and none of the machine's. The
     backend defines the format of the text; an empty one stands for a description that the backend knows itself. The properties of the
     devices have HEDDLE_DEVICE_DESCRIBED. Their memory has addresses but no content; enqueued work completes at once and does nothing;
     values that only the vendor's libraries could give are estimates on the large side. Must be called before anything else.
     HEDDLE_ERROR_INVALID: the text describes no device, or the backend was already used for devices of the machine. */
  heddle_status (*describe)(const char* text, uint64_t length, const heddle_call* call);
  /* Called when the calling thread, which has entered the device (HEDDLE_WORK_ENTERS), is about to return to code outside the runtime:
     restores what was set for the thread as it was when it entered. Called once after a thread's work for a run, also if `enqueue`
     failed. */
  void (*leave)(void* device);
} heddle_device_backend;

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DEVICE_PLUGIN_H */
