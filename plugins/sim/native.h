/* Functions for programs that use simulated devices beside Heddle, like those of a vendor's own library: memory and streams of their own,
   for inputs and results that lie on a device and for streams that a run waits for. Only a simulation has its clock, which may be held and
   advanced, and the list of the work done with its times. C11.

   A device's handle (heddle_create_context.device_handle) points to a pointer to this table, which stays valid as long as a device is open.
   As with a vendor's library, a call for a device makes it the current one of its thread.
   Thread mark of all: [any]. A call for a device that the process has not opened returns null or does nothing. */
#ifndef HEDDLE_SIM_NATIVE_H
#define HEDDLE_SIM_NATIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of work, by the clock. */
typedef struct sim_span {
  uint64_t begin_ns, end_ns;
  uint64_t label; /* the step of the run it was for */
  uint64_t stream;
  int32_t device;
  int32_t stream_class; /* HEDDLE_STREAM_* */
  char name[32];        /* of the operator, or "copy" */
} sim_span;

/* Counts of one device, since it was opened. */
typedef struct sim_counts {
  uint64_t calls; /* of the backend by the host, for work: enqueue, synchronize, query */
  uint64_t works, launches, copies, pageable_copies, peer_copies, waits, records, callbacks, synchronizes, queries, allocations;
  uint64_t streams, events;   /* existing now, including a program's own, made with create_stream */
  uint64_t silences;          /* works that never end, by a fault rule */
  uint64_t entries;           /* works that entered the device (HEDDLE_WORK_ENTERS) */
  uint64_t departures;        /* threads that left it */
  uint64_t inner_allocations; /* allocations and releases of memory between the first and the last launch of a group on it */
} sim_counts;

typedef struct sim_native_table {
  uint32_t struct_size;
  uint32_t reserved;
  void* (*allocate)(int32_t device, uint64_t bytes);
  void (*release)(int32_t device, void* memory);
  void* (*create_stream)(int32_t device);
  void (*destroy_stream)(int32_t device, void* stream);
  /* Enqueues; `kind` is HEDDLE_COPY_*. */
  void (*copy)(int32_t device, void* stream, void* destination, const void* source, uint64_t bytes, int32_t kind);
  void (*synchronize)(int32_t device, void* stream);
  /* The clock of all devices. While it is held, no work that ends later than now is done; advance moves it on by `ns`, and returns when all
     work that ends until then is done. */
  void (*hold_clock)(void);
  void (*advance_clock)(uint64_t ns);
  void (*release_clock)(void);
  uint64_t (*now)(void);
  /* Work that is done, oldest first, since the first call or the last forget_spans: at most `capacity`; returns the number of all. */
  uint64_t (*spans)(sim_span* spans, uint64_t capacity);
  void (*forget_spans)(void);
  void (*counts)(int32_t device, sim_counts* counts);
} sim_native_table;

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_SIM_NATIVE_H */
