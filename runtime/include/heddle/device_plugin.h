/* The boundary for device backends: memory, streams and events of one kind of device ("cuda", "sim"). C11.
 *
 * A plugin lists its backends in heddle_plugin.devices. Functions return heddle_status; a function that fails gives the reason through
 * host->set_error(call, ...), as everywhere (abi.h); `call` may be null. Work on a stream is done in order; a function that enqueues work
 * returns before the work is done. All functions have the thread mark [any]: several threads may call them at once for different streams.
 * Calls for one stream never overlap, but may come from different threads. The same holds for calls of the device's kernels, whose run
 * function enqueues work on the stream in its context.
 *
 * Failures. When work on a stream fails, the stream fails: the work that was enqueued after it is skipped, but events are still recorded. A
 * stream that waits for an event recorded after a failure fails too. A callback that was enqueued after a failure is called with that
 * failure; on a device with HEDDLE_DEVICE_DROPS_CALLBACKS it may not be called at all. synchronize reports the failure and makes the stream
 * usable again. When a device has become unusable, every call that works with it returns HEDDLE_ERROR_DEVICE_LOST; the host closes the
 * device when everything that was made on it is destroyed, and may then open it again.
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

/* Called on a thread of the backend when everything that was enqueued on a stream before the callback is done. `failed` is HEDDLE_OK or the
   asynchronous error of the stream; `text`, of `length` bytes, gives the reason; it is valid during the call and may be null. The callback
   returns quickly and does not call the backend. The backend calls each callback that is enqueued at most once, and never after query or
   synchronize has reported that the stream is done or has failed. The backend holds none of its locks during the call. */
typedef void (*heddle_stream_callback)(void* user, heddle_status failed, const char* text, size_t length);

/* ---------------------------------------------------------------- what a device is like */

enum {
  HEDDLE_DEVICE_UNIFIED = 1u << 0,         /* the host may access the device's memory whenever no work on the device accesses it */
  HEDDLE_DEVICE_SHARED_EVENTS = 1u << 1,   /* the device's streams may wait for events of other devices of the kind */
  HEDDLE_DEVICE_DROPS_CALLBACKS = 1u << 2, /* a failed stream may drop its callbacks: the host calls query instead */
  HEDDLE_DEVICE_DESCRIBED = 1u << 3        /* the device exists only as a text for `describe`: plans can be made for it, but not run */
};

/* The class of a stream: the work it is used for. */
enum {
  HEDDLE_STREAM_COMPUTE = 0,
  HEDDLE_STREAM_TO_DEVICE = 1,
  HEDDLE_STREAM_FROM_DEVICE = 2,
  HEDDLE_STREAM_COMMUNICATION = 3 /* the collectives of the device, all on one stream of this class */
};

typedef struct heddle_device_properties {
  uint32_t struct_size;
  uint32_t flags;           /* HEDDLE_DEVICE_* */
  uint32_t alignment;       /* of the memory that allocate returns, in bytes: a power of two, at least 64 */
  uint32_t guard_bytes;     /* unused bytes that plans leave past the end of each value on the device, see heddle_launch; 0: none */
  uint32_t stream_classes;  /* bit c, for c = HEDDLE_STREAM_TO_DEVICE or HEDDLE_STREAM_FROM_DEVICE: copies in that direction are faster on a
                               stream of their own; for c = HEDDLE_STREAM_COMMUNICATION: collectives run beside other work on a stream of
                               their own. The bit of HEDDLE_STREAM_COMPUTE has no effect */
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

/* One step that this device runs with a kernel written for another kind of device. `context` has addresses of this device for tensors on
   the device (heddle_tensor::space), their extents, scratch and run_state. The backend must pass a changed copy of `context` to the kernel,
   not `context` itself. In the copy these addresses are replaced by addresses that the kernel can access (for a "cpu" kernel, with
   HEDDLE_SPACE_HOST in each tensor), and `host` is a table of the backend, whose thread_scratch function returns the memory
   `thread_scratch` below. The backend must also copy the contents of inputs in host memory, because these contents, this struct and
   `context` are valid only during the call of enqueue. The kernel, its state and its resources stay valid until the stream has executed the
   step. The text that the kernel gives to set_error becomes the text of the failure. If context->hold_count is not 0, the stream reads the
   words at context->holds when it comes to the step, and does not call the kernel unless all are 0; the step is then done, without a
   failure. */
typedef struct heddle_launch {
  uint32_t struct_size;
  uint32_t guard_bytes; /* bytes of unused memory after each output, which the kernel must not change; they begin at the end of the output,
                           rounded up to a multiple of 64 */
  const heddle_kernel* kernel;
  const heddle_run_context* context;
  int64_t tiles; /* the backend calls run with [0, tiles), and then finish, unless finish is null */
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
  /* For HEDDLE_COPY_DEVICE_TO_DEVICE: the device that has `source`; null: the device of the stream. The host gives another device only if
     `reaches` allows it. */
  void* source_device;
} heddle_copy;

/* A flag of heddle_work. If it is present, the backend must establish the state that the vendor's libraries keep for each thread (CUDA: the
   current device). The host sets the flag in two cases: the thread calls `enqueue` for this device for the first time, or other code may
   have run on the thread since its last call. If the flag is absent, only the runtime and kernels of this device have run on the thread
   since then; they leave that state unchanged, and enqueue need not establish it. */
enum { HEDDLE_WORK_ENTERS = 1u << 0 };

/* Work to enqueue in one call, in this order: waits, a copy or a launch, a record, a callback. If the call fails, the callback is not
   called, and it does not matter how much of the rest was enqueued. The struct and what it points to are valid during the call only. */
typedef struct heddle_work {
  uint32_t struct_size;
  uint32_t wait_count;
  uint64_t label;              /* identifies this work, and all work that kernels put on the stream by themselves before the next call of
                                  enqueue for the stream: failed_label returns this number if such work fails */
  void* const* waits;          /* events: the following work waits for the last record of each; the host does not wait */
  const heddle_copy* copy;     /* or null */
  const heddle_launch* launch; /* or null */
  void* record;                /* an event of the stream's device, or null */
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
  /* Returns a description of the device for people, in one line. */
  const char* (*description)(void* device);
  heddle_status (*memory_info)(void* device, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call* call);
  /* Fills in all fields except struct_size. */
  heddle_status (*properties)(void* device, heddle_device_properties* properties, const heddle_call* call);
  /* Allocates memory of the device, aligned as its properties declare; addresses within the memory may be passed to copies and kernels. The
     host reads and writes through these addresses only if the memory is unified. HEDDLE_ERROR_OUT_OF_MEMORY if there is not enough. */
  heddle_status (*allocate)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release)(void* device, void* memory);
  heddle_status (*create_stream)(void* device, const heddle_stream_request* request, void** stream, const heddle_call* call);
  /* Waits for the stream's work to end, except for work that was aborted and does not respond. An adopted stream is
     only forgotten and not accessed: its owner may have destroyed it already. */
  void (*destroy_stream)(void* device, void* stream);
  heddle_status (*create_event)(void* device, void** event, const heddle_call* call);
  void (*destroy_event)(void* device, void* event);
  /* Enqueues work. Host memory of copies is ordinary memory or memory from allocate_host; it stays unchanged until the stream has executed
     the copy. Only aligned words of 8 bytes that are copied alone may be set or read by the host at any time: such a copy moves the word as
     a whole, and from memory of allocate_host when the stream comes to it. */
  heddle_status (*enqueue)(void* device, void* stream, const heddle_work* work, const heddle_call* call);
  /* Waits until everything enqueued on the stream is done and returns the first asynchronous error. */
  heddle_status (*synchronize)(void* device, void* stream, const heddle_call* call);

  /* All members below are optional and may be null. */

  /* Returns without waiting: HEDDLE_OK if everything enqueued on the stream is done; HEDDLE_PENDING if not yet; else the failure of the
     stream, which remains until synchronize is called. Required with HEDDLE_DEVICE_DROPS_CALLBACKS. */
  heddle_status (*query)(void* device, void* stream, const heddle_call* call);
  /* Returns the label of the work that failed; called once after a failing synchronize. UINT64_MAX: the device does not know. Without this
     function an asynchronous error names every operator that may have caused it. */
  uint64_t (*failed_label)(void* device, void* stream);
  /* Requests that all work enqueued on the stream end soon and fail with HEDDLE_ERROR_CANCELLED, including work that would never end by
     itself. May be called while another call for the stream is in progress; a stream without work does not change. */
  heddle_status (*abort_stream)(void* device, void* stream, const heddle_call* call);
  /* A backend has both allocate_host and release_host, or neither. They allocate and release pinned host memory: this device copies from
     and to it quickly and without making the caller wait. The memory serves all devices of the kind. */
  heddle_status (*allocate_host)(void* device, uint64_t bytes, void** memory, const heddle_call* call);
  void (*release_host)(void* device, void* memory);
  /* A backend has both register_host and unregister_host, or neither. They pin and unpin existing host memory, aligned to 64 bytes. */
  heddle_status (*register_host)(void* device, void* memory, uint64_t bytes, const heddle_call* call);
  void (*unregister_host)(void* device, void* memory);
  /* Returns non-zero if copies to `device` may read directly from `source`, another device of the kind. */
  int32_t (*reaches)(void* device, void* source);
  /* The kind of device ("cpu") whose kernels this device runs for operators that have no kernel for this device; enqueue must then accept
     launches. The host creates and prepares these kernels as it does for that other kind, with constants and their packed forms in host
     memory; asynchronous kernels are excluded. */
  const char* runs_kernels_of;
  /* Makes the backend offer the devices that `text` describes instead of the machine's devices, from now on and in the whole process. The
     backend defines the format of the text; an empty text stands for a description that is built into the backend. The properties of the
     devices have HEDDLE_DEVICE_DESCRIBED. Their memory has addresses but no content; enqueued work completes at once and does nothing;
     sizes that only the vendor's libraries could give are estimates, rather too large than too small. Must be called before anything else.
     HEDDLE_ERROR_INVALID: the text describes no device, or the backend was already used for devices of the machine. */
  heddle_status (*describe)(const char* text, uint64_t length, const heddle_call* call);
  /* Called on a thread that has entered the device (HEDDLE_WORK_ENTERS), when the thread is about to return to code outside the runtime.
     Restores the state of the thread that was in effect before the thread entered. Called once after the thread's work for a run, also if
     `enqueue` failed. */
  void (*leave)(void* device);
  /* For a backend with runs_kernels_of: enqueues the launches of a group (HEDDLE_KERNEL_GROUP) in one call, works[i] on streams[i] of
     devices[i]; no two are of one device. Each work has a launch of the same kernel and no waits. The launches are done together: when all
     streams have come to theirs, the kernel's run_group is called once, with the copies of all contexts in this order; until then the
     streams that have come wait. If the call fails, no launch was enqueued; the reason is given through the call of the context of the
     part that failed, or `call`. Without this function such kernels do not run on the device. */
  heddle_status (*enqueue_group)(void* const* devices, void* const* streams, const heddle_work* works, uint32_t count,
                                 const heddle_call* call);
} heddle_device_backend;

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_DEVICE_PLUGIN_H */
