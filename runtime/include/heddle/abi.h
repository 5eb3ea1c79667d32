/* The C boundary between Heddle and its plugins.
 *
 * A plugin is a shared library that exports one function, heddle_plugin_query, and does not link to Heddle. The function returns tables of
 * operators, kernels, devices, resources and rewrite rules; the plugin calls the host through a table of functions. This header is C11,
 * also compiles as C++, and needs only <stddef.h> and <stdint.h>.
 *
 * Rules of the boundary
 *  - Every struct begins with struct_size and grows only at its end, except heddle_layout and heddle_run_state, which have no struct_size
 *    and never change. The other side may have been built with an older header: before reading a field that this header may lack, check
 *    HEDDLE_HAS(type, pointer, field). Padding is explicit; no struct has tail padding.
 *  - ABI 0.x: both version numbers and HEDDLE_ABI_HASH must match exactly. From 1.0 on minor versions only append.
 *  - No exception may cross the boundary. Functions return heddle_status; a function that fails gives the reason through host->set_error,
 *    which copies the text.
 *  - A context and the views in it may be copied, and used on any thread, until the call that received the context ends (heddle_call).
 *  - The side that allocates memory frees it. The comment next to a pointer says how long it is valid.
 *  - Thread marks: [load] called once while the plugin is loaded or unloaded, by one thread; [compile] may be called by several threads at
 * once for different objects; [run] called by any executing thread, by several at once for disjoint tile ranges; [any] called by any
 * thread.
 *  - Units: sizes in bytes, dims in elements, times in nanoseconds. Strings are UTF-8, zero-terminated.
 */
#ifndef HEDDLE_ABI_H
#define HEDDLE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ABI_MAJOR 0
#define HEDDLE_ABI_MINOR 26
/* HEDDLE_ABI_HASH is a hash of everything that this file and device_plugin.h declare, without comments and spaces: it identifies the
   declarations that the two numbers stand for. A change to either file changes the hash and requires a new minor number;
   tests/abi/number_test.cc prints the new value. */
#define HEDDLE_ABI_HASH UINT64_C(0x851a9d095d4736b1)

/* True if the other side's struct is long enough to contain `field`. */
#define HEDDLE_HAS(type, pointer, field) ((pointer)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

#define HEDDLE_MAX_RANK 8
#define HEDDLE_DYNAMIC_DIM (-1)
#define HEDDLE_NO_THREAD UINT32_MAX

#if defined(__GNUC__)
#define HEDDLE_EXPORT __attribute__((visibility("default")))
#else
#define HEDDLE_EXPORT
#endif

/* ---------------------------------------------------------------- status */

typedef int32_t heddle_status;
enum {
  HEDDLE_OK = 0,
  HEDDLE_ERROR_INVALID = 1,     /* arguments, attributes, shapes or data that the operator rejects */
  HEDDLE_ERROR_UNSUPPORTED = 2, /* valid, but not implemented by this kernel: the host tries another kernel */
  HEDDLE_ERROR_OUT_OF_MEMORY = 3,
  HEDDLE_ERROR_DEVICE = 4, /* the device or its driver failed */
  HEDDLE_ERROR_CANCELLED = 5,
  HEDDLE_ERROR_INTERNAL = 6,
  HEDDLE_ERROR_DEVICE_LOST = 7, /* the device is unusable until it is closed and opened again */
  HEDDLE_PENDING = -1           /* not an error: run_subnet, or run() of a HEDDLE_KERNEL_RESUMES kernel, must be called again */
};

/* ---------------------------------------------------------------- types and tensors */

typedef int32_t heddle_dtype;
enum {
  HEDDLE_DTYPE_NONE = 0,
  HEDDLE_F16 = 1,
  HEDDLE_BF16 = 2,
  HEDDLE_F32 = 3,
  HEDDLE_F64 = 4,
  HEDDLE_I8 = 5,
  HEDDLE_I16 = 6,
  HEDDLE_I32 = 7,
  HEDDLE_I64 = 8,
  HEDDLE_U8 = 9,
  HEDDLE_U16 = 10,
  HEDDLE_U32 = 11,
  HEDDLE_U64 = 12,
  HEDDLE_BOOL = 13, /* one byte, 0 or 1 */
  HEDDLE_DTYPE_COUNT = 14,
  /* Reserved: nets and plugins that use these are refused at load. Two elements of a four-bit type share one byte. */
  HEDDLE_RESERVED_F8E4M3 = 14,
  HEDDLE_RESERVED_F8E5M2 = 15,
  HEDDLE_RESERVED_I4 = 16,
  HEDDLE_RESERVED_U4 = 17,
  HEDDLE_RESERVED_DTYPE_COUNT = 18
};
/* A set of dtypes: bit d is set if dtype d is in the set. */
typedef uint32_t heddle_dtype_set;
#define HEDDLE_DTYPE_BIT(d) (1u << (d))

/* The physical order of a dense tensor. All zero means row-major. The logical dims never change with the layout. The struct is embedded in
   other structs. It has no struct_size, because its size of 48 bytes never changes. */
typedef struct heddle_layout {
  uint8_t rank;        /* 0: row-major; else the number of entries in `order` */
  uint8_t block_count; /* number of inner blocks; always 0 today */
  uint8_t flags;       /* bit 0: padding elements are zero */
  uint8_t reserved0;
  uint8_t order[HEDDLE_MAX_RANK]; /* order[0] is the outermost logical dimension; channels-last of NCHW: {0, 2, 3, 1} */
  uint8_t block_dimension[4];
  uint16_t block_size[4];
  uint32_t opaque_owner; /* reserved for private formats, as are opaque_id and opaque_bytes; always 0 today */
  uint32_t reserved1;
  uint64_t opaque_id;
  uint64_t opaque_bytes;
} heddle_layout;

enum {
  HEDDLE_TENSOR_CONSTANT = 1u, /* the bytes are the same in every run of the session */
  HEDDLE_TENSOR_DYNAMIC = 2u,  /* [prepare, run] an output that has neither extents nor memory until the kernel calls allocate_output */
};

enum {
  HEDDLE_SPACE_HOST = 0,
  HEDDLE_SPACE_DEVICE = 1, /* memory of the node's device: only that device's functions may use it; the host must not read or write it */
};

/* A view of a tensor; the plugin never owns the memory. The view and everything it points to are valid until the call that received the
   view returns (see heddle_call). */
typedef struct heddle_tensor {
  uint32_t struct_size;
  heddle_dtype dtype;
  int32_t rank;
  uint32_t flags;
  void* data; /* an address in the memory that `space` names; null in infer if the content is not known */
  /* `rank` entries. A value is bounded if its extent along one axis (heddle_type::bounded_axis) is known only after the operator that
     produces it has run, but has an upper bound. The dims of a bounded value in run() are the true extents; a kernel with
     HEDDLE_KERNEL_READS_EXTENTS gets the upper bounds instead. */
  const int64_t* dims;
  int64_t element_count;
  uint64_t byte_size;
  int64_t* extent;     /* for a bounded value: where its true extent along extent_axis is kept, in the memory space of `data`; else null */
  int32_t extent_axis; /* -1: no bounded axis */
  uint32_t space;      /* HEDDLE_SPACE_*; does not change after prepare. Data on a device begins at a multiple of 64 bytes */
  heddle_layout layout;
} heddle_tensor;

/* The type of a value as shape inference determines it. */
enum {
  HEDDLE_TYPE_DYNAMIC = 1u, /* the extents are unknown until the operator has run, and have no bound; the dims are -1 */
  HEDDLE_TYPE_TRUE = 2u,    /* set by infer_subnet: this output of the subnet is one bool that is true whatever the inputs contain */
};
typedef struct heddle_type {
  uint32_t struct_size;
  heddle_dtype dtype;
  int32_t rank;
  int32_t bounded_axis; /* -1, or the axis whose dim is an upper bound; the true extent is known after the operator has run */
  uint32_t flags;
  uint32_t reserved;
  int64_t dims[HEDDLE_MAX_RANK];
} heddle_type;

/* ---------------------------------------------------------------- attributes */

typedef int32_t heddle_attribute_type;
enum {
  HEDDLE_ATTRIBUTE_NONE = 0,
  HEDDLE_ATTRIBUTE_INT = 1,
  HEDDLE_ATTRIBUTE_FLOAT = 2,
  HEDDLE_ATTRIBUTE_STRING = 3,
  HEDDLE_ATTRIBUTE_INTS = 4,
  HEDDLE_ATTRIBUTE_FLOATS = 5,
  HEDDLE_ATTRIBUTE_STRINGS = 6,
  HEDDLE_ATTRIBUTE_TENSOR = 7,
  HEDDLE_ATTRIBUTE_SUBNET = 8
};

typedef struct heddle_subnet heddle_subnet; /* opaque, owned by the host */

/* A typed view of an attribute. The view is valid as long as the node that the attribute belongs to. In a schema the view is static and
   holds the default value. */
typedef struct heddle_attribute {
  uint32_t struct_size;
  heddle_attribute_type type;
  const char* name;
  int64_t i;
  double f;
  const char* s;
  uint64_t count; /* number of ints, floats or strings; number of bytes of s */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  const heddle_tensor* tensor;
  const heddle_subnet* subnet;
} heddle_attribute;

/* ---------------------------------------------------------------- the host's functions */

typedef int32_t heddle_log_level;
enum { HEDDLE_LOG_DEBUG = 0, HEDDLE_LOG_INFO = 1, HEDDLE_LOG_WARNING = 2, HEDDLE_LOG_ERROR = 3 };

/* Writes the packed form of a constant to `destination`; returns an error status if that fails. The
   function is called only if no plan holds a packed form of the same content under the same key; after a failure it may be called again. */
typedef heddle_status (*heddle_prepack_fill)(void* user, void* destination);

/* The scope of a resource says what each object belongs to: depending on it there is one object for each runtime, device, session,
   communicator or stream. A communicator is a group of processes and devices that work together in a distributed run. Kernels give its name
   in heddle_resource_need::communicator. The embedding program declares which processes and devices belong to the communicator of that name
   (CommunicatorOptions), and the plugin finds this in heddle_resource_request. Only one run at a time uses an object of communicator scope.
   Kernels get it, like an object of stream scope, in run and not in create. The scopes are listed from the widest to the narrowest: a
   resource may need only resources of the same or a wider scope, and none of communicator or stream scope. */
enum {
  HEDDLE_SCOPE_RUNTIME = 0,
  HEDDLE_SCOPE_DEVICE = 1, /* one for each device of a runtime */
  HEDDLE_SCOPE_SESSION = 2,
  /* in a session, one for each name that kernels give in heddle_resource_need::communicator; made when a run that uses it begins */
  HEDDLE_SCOPE_COMMUNICATOR = 3,
  HEDDLE_SCOPE_STREAM = 4 /* one for each stream of a context; on the host a context has one stream */
};

/* A request for a resource, made in create. The struct must be valid during the call only. */
typedef struct heddle_resource_need {
  uint32_t struct_size;
  uint32_t interface_version; /* the interface version the plugin was built for; a resource published with this or a higher version is
                                 accepted */
  const char* name;
  const char* communicator;               /* for communicator scope: the name of the communicator; else null */
  const heddle_attribute* const* options; /* requests with different options get different resources */
  uint32_t option_count;
  uint32_t reserved;
} heddle_resource_need;

/* Identifies one call from the host into the plugin; every context contains one. Host functions take the heddle_call and not the context,
   because a context may be copied. Any thread may use a heddle_call until the function that received it returns. The heddle_call of run()
   and finish() may be used until the step is complete, which for HEDDLE_KERNEL_ASYNC is after run() has returned. */
typedef struct heddle_call heddle_call; /* opaque, owned by the host */

enum { HEDDLE_MOVE_VALUE = 1u }; /* a flag of heddle_host::move */

/* The host's functions: one table for the whole process. The mark of each function says in which calls into the plugin it is
   available. With the heddle_call of another kind of call it does nothing, and returns null, 0, HEDDLE_NO_THREAD or an error. */
typedef struct heddle_host {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  /* [any] Sets the error of a call and copies `length` bytes of text. If the call fails, the last text set for it is reported. Does nothing
     if `call` is null. */
  void (*set_error)(const heddle_call* call, heddle_status code, const char* text, size_t length);
  /* [any] Passes a line to the embedding program's log function. */
  void (*log)(heddle_log_level level, const char* text, size_t length);
  /* [compile, in create of kernels and resources] Requests a resource that some plugin publishes. The host binds the resource to a slot and
     writes the slot's number to *slot; equal requests within one create get the same slot. The first thread that requests the resource
     makes it, without holding a lock; other threads that request it meanwhile wait. The resource lives at least as long as the kernels and
     resources that requested it. A resource of communicator scope may request another one of the same communicator, by a null name, if that
     one is made before it. Objects of a communicator are made in the order of their names: the kernel has to request both, and the one that
     is needed has the smaller name. HEDDLE_ERROR_INVALID: no plugin publishes the
     resource, or only an older version of it; the resource could not be made (the next request tries again); or resources need each other
     in a circle, so that the making of this one waits, directly or indirectly, for the one that makes the request. The host then has the
     error text. */
  heddle_status (*need)(const heddle_call* call, const heddle_resource_need* need, uint32_t* slot);
  /* [compile, after need] Returns the resource in the slot. In a kernel's create it returns null for a resource of communicator or stream
     scope, which run finds in heddle_run_context::resources. */
  void* (*resource)(const heddle_call* call, uint32_t slot);
  /* [compile, in prepare] Returns memory with a packed form of constant input `input`, shared by all plans and contexts that request it
     with the same content, layout, key and size. The host calls `fill` to write the packed bytes unless they exist already. The memory
     lives as long as the plan. Null on failure. The first packing of an input also permits the host to drop the original bytes from
     memory. */
  const void* (*prepack)(const heddle_call* call, uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user);
  /* [run] Returns the scratch of the executing thread: as many bytes as prepare requested in thread_scratch_bytes, 64-byte aligned, with
     undefined contents at entry. Null on a thread that does not execute the step; such a thread may still use the step's own scratch. */
  void* (*thread_scratch)(const heddle_call* call);
  /* [run] Returns the index of the executing thread: 0 for the thread that called run, always below the number of executing threads of the
     run. HEDDLE_NO_THREAD on any other thread. */
  uint32_t (*thread_index)(const heddle_call* call);
  /* [run] Returns non-zero if the run was cancelled or its deadline has passed: a long kernel may then return HEDDLE_ERROR_CANCELLED. The
     create of a resource of communicator scope may call this function too, and must return soon once it returns non-zero. */
  int32_t (*cancelled)(const heddle_call* call);
  /* [run, dynamic outputs only] Allocates memory for output `output`. `dims` are the true extents and `rank` is the inferred rank. The host
     owns the memory. Null on failure. */
  void* (*allocate_output)(const heddle_call* call, uint32_t output, const int64_t* dims, int32_t rank);
  /* [run] Runs a subnet attribute of this node and returns when the subnet is done; idle threads of the run help. A trip is one execution
     of the subnet, and the operator chooses its number `trip`. Random numbers inside the subnet depend on this number: the same number
     gives the same random numbers within a run, in whatever order the trips are executed and also if a trip is executed again. inputs[] are
     views in the order of the subnet's inputs. The results are copied to the views in outputs[], whose dims must match. If an output view
     has null data, the host fills in its dtype, rank, dims, element_count, byte_size and data; the memory at `data` belongs to the host and
     is valid until run_subnet is called again with the same `call`. Null entries are outputs that are not requested. For a
     HEDDLE_KERNEL_RESUMES kernel the function may return HEDDLE_PENDING, which means that only asynchronous steps of the subnet are left.
     run() must then return HEDDLE_PENDING too. The host calls run() again, with `resumed` set, when the subnet can continue; run() must
     then repeat the same call of run_subnet, with data at the same addresses. */
  heddle_status (*run_subnet)(const heddle_call* call, const heddle_subnet* subnet, uint64_t trip, const heddle_tensor* const* inputs,
                              uint32_t input_count, heddle_tensor* const* outputs, uint32_t output_count);
  /* [compile, in infer] Infers the types of the outputs of a subnet attribute of this node for the given inputs: views, with data where the
     content is known. outputs[] are structs of the caller that the host fills in; null entries are outputs that are not requested. */
  heddle_status (*infer_subnet)(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs,
                                uint32_t input_count, heddle_type* const* outputs, uint32_t output_count);
  /* [compile, in heddle_operator::subnets] Declares that runs of this node will run the subnet with inputs of these types: views, with data
     where the content is the same in every run. The host compiles the subnet for these inputs. Several calls may declare several sets of
     inputs for one subnet. */
  heddle_status (*declare_subnet)(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs,
                                  uint32_t input_count);
  uint64_t abi_hash; /* HEDDLE_ABI_HASH of the headers that the host was built with */
  /* [any, steps of HEDDLE_KERNEL_ASYNC kernels] Completes the step, successfully or not; `text`, which is copied, gives the reason of a
     failure. The plugin must call this function exactly once for each run() that returned HEDDLE_OK. It may do so before run() returns: the
     step is then done when run() returns. `call` is invalid after this function. Completing the step again is a mistake of the plugin; it
     is refused with HEDDLE_ERROR_INVALID, at any later time too, because every run of a step has a different `call`. */
  heddle_status (*complete)(const heddle_call* call, heddle_status status, const char* text, size_t length);
  /* [run, HEDDLE_KERNEL_MOVES_ONLY] Copies bytes between the node's values, their extents and data_scratch. `destination` and `source` are
     addresses in the memory of the node's device. On the host the copy is done when the function returns; on another device it is enqueued
     on the node's stream. With HEDDLE_MOVE_VALUE the source is at most 64 bytes of the kernel's own memory, read during the call. */
  heddle_status (*move)(const heddle_call* call, uint32_t flags, void* destination, const void* source, uint64_t bytes);
} heddle_host;

/* ---------------------------------------------------------------- operators */

enum {
  HEDDLE_PORT_OPTIONAL = 1u,
  HEDDLE_PORT_VARIADIC = 2u,       /* the last port only: one or more values (zero or more with OPTIONAL) */
  HEDDLE_PORT_HOST = 4u,           /* in host memory, whatever the node's device */
  HEDDLE_PORT_SHAPE_OPERAND = 8u,  /* its content determines output shapes; implies HOST */
  HEDDLE_PORT_HETEROGENEOUS = 16u, /* variadic values may differ in dtype */
  /* For outputs. A variable is state that lives in a session and outlives runs; each update of it makes its next version. A net may declare
     that this output is the next version of a variable that is one of the inputs. The output and that input then have the same bytes. When
     the operator runs its subnet, it must pass that input as an input of the subnet, and its own output's view as the view of the subnet's
     output. Operators inside the subnet may then make the update in place. */
  HEDDLE_PORT_MAY_UPDATE = 32u,
  /* The port holds real numbers but has no gradient. For an input no gradient is computed; for an output the handle in output_gradients is
     0 (absent). */
  HEDDLE_PORT_NOT_DIFFERENTIABLE = 64u,
};

#define HEDDLE_ALIAS_ANY (-2)

typedef struct heddle_port {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* type_variable;  /* ports of one operator with the same variable have the same dtype; null: the set alone decides */
  heddle_dtype_set dtypes;    /* the allowed dtypes */
  heddle_dtype default_dtype; /* for outputs whose dtype no input determines; else HEDDLE_DTYPE_NONE */
  /* For outputs. `updates`: if the output is the new version of a variable, the index of the input port that takes the variable, else -1;
     the output shares the bytes of that input. `may_alias`: the index of the input port whose bytes the output may reuse, HEDDLE_ALIAS_ANY
     for any input of the same size, else -1. If the output is variadic, the input port that `updates` or `may_alias` names must be variadic
     too. The k-th value of the output is paired with the k-th value of that input port, which may have more values than the output. */
  int32_t updates;
  int32_t may_alias;
  int32_t index_bound_port; /* for an input that holds indices: the index of the input port that they refer to; else -1 */
  int32_t index_bound_axis; /* the axis of that port along which the indices count; -1: the axis that the attribute "axis" gives */
  /* Null, or the dims of the port as words separated by spaces: a name for an extent, which is the same wherever the operator uses that
     name; a number; "*" for any extent; "..." for any number of dims, at most once in a port and standing for the same dims in all ports.
     "" is a scalar. Before infer the host checks each input against these words, and each value of a variadic port separately. It checks a
     bounded input at the bound, and again with the extent that a run finds; a HEDDLE_KERNEL_READS_EXTENTS kernel must itself
     check the extent that the run finds. The host also sets the dims of outputs from these words, and infer must not set other dims: inputs
     "... M K" and "... K N" determine an output "... M N". Every name in an output must occur in an input that is present: a node without
     that input is refused. */
  const char* dims;
} heddle_port;

/* Maps the ports of a subnet to those of its operator. The first own_inputs inputs of the subnet are made by the operator itself (a trip
   number, a condition); the inputs after these are the operator's inputs from first_input on, in order, whole or as slices. In the same way
   the operator itself reads the first own_outputs outputs of the subnet, and the outputs after these are the operator's outputs from
   first_output on. */
typedef struct heddle_subnet_ports {
  uint32_t struct_size;
  uint32_t own_inputs;
  uint32_t first_input;
  uint32_t own_outputs;
  uint32_t first_output;
  uint32_t reserved;
} heddle_subnet_ports;

typedef struct heddle_attribute_schema {
  uint32_t struct_size;
  heddle_attribute_type type;
  uint32_t required;
  uint32_t reserved;
  const char* name;
  const heddle_attribute* default_value; /* null: absent unless the node gives it */
  const heddle_subnet_ports* ports;      /* for a subnet; null for every other type */
} heddle_attribute_schema;

enum {
  HEDDLE_TRAIT_RANDOM = 1u,             /* draws random numbers from Philox(run state, stream, element): heddle/op/philox.h */
  HEDDLE_TRAIT_COLLECTIVE = 2u,         /* communicates with other processes: never folded or pruned, and never moved to the host */
  HEDDLE_TRAIT_CHEAP = 4u,              /* cheap to recompute */
  HEDDLE_TRAIT_LAYOUT_TRANSPARENT = 8u, /* accepts any layout, the same one for inputs and outputs of the same shape */
  HEDDLE_TRAIT_SHAPE_ONLY = 16u,        /* the content of outputs depends on input shapes alone (Shape, Size) */
  HEDDLE_TRAIT_IMPURE = 32u,            /* has an effect besides its outputs: never folded, merged or pruned */
  HEDDLE_TRAIT_VIEW = 64u,              /* output 0 has the bytes of input 0, row-major: it is an alias and nothing is run */
  /* A node with two inputs gives the same result if the inputs are swapped, except that a zero may have the other sign and a NaN other
     bits. Patterns of rewrite rules match the node with its inputs in either order. Requires two input ports of the same dtypes, or a
     variadic port. */
  HEDDLE_TRAIT_COMMUTATIVE = 128u,
};
/* How precisely the operator must be computed. The runtime does not use this class yet. */
typedef int32_t heddle_precision_class;
enum { HEDDLE_PRECISION_ANY = 0, HEDDLE_PRECISION_REDUCED = 1, HEDDLE_PRECISION_FULL = 2, HEDDLE_PRECISION_PROMOTE = 3 };

/* [compile] The context of infer. */
typedef struct heddle_infer_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const heddle_host* host;
  const heddle_tensor* const* inputs; /* null entries: absent optional inputs; data is non-null if the content is known */
  heddle_type* const* outputs;        /* pre-filled: dtype from the type variables, rank 0; null entries: outputs that are not requested */
  const heddle_attribute* const* attributes; /* checked, with defaults filled in, in the order of the schema; null: absent */
  const struct heddle_operator* op;
  const heddle_call* call;
} heddle_infer_context;
typedef heddle_status (*heddle_infer_function)(const struct heddle_infer_context* context);

/* One operator that a gradient emits. Its inputs and outputs are named x<i> for input i of the forward operator, y<i> for output i, dy<i>
   for the gradient of output i, dx<i> for the gradient of input i, and t<k> for an intermediate value. The name of the port may be written
   instead of x<i> or y<i>, and "d" followed by that name instead of dx<i> or dy<i>. */
typedef struct heddle_gradient_node {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t copy_attributes; /* non-zero: copies those of the forward operator's attributes that the emitted operator also declares */
  const char* domain;
  const char* operator_name;
  const char* const* inputs;
  const char* const* outputs;
  const heddle_attribute* const* attributes; /* null-terminated list, or null */
} heddle_gradient_node;

/* Flags of heddle_gradient_builder::sparse. UNIQUE: no index occurs twice. SORTED: the indices ascend. */
enum { HEDDLE_SPARSE_UNIQUE = 1u, HEDDLE_SPARSE_SORTED = 2u };

/* A gradient callback builds a gradient that depends on attributes or types. It works with handles of values: the builder has one
   handle for each port, or one for each value of a variadic port; a handle is 0 if the node has no value there. The callback is called when
   a net is derived, before any extent is known: the operators that it emits must be valid for every shape. */
typedef uint64_t heddle_value_handle; /* 0: absent */
typedef struct heddle_gradient_builder {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const heddle_host* host;
  const heddle_value_handle* inputs;
  const heddle_value_handle* outputs;
  const heddle_value_handle* output_gradients;
  heddle_value_handle* input_gradients; /* filled by the callback */
  const heddle_attribute* const* attributes;
  /* Adds one operator to the gradient and writes output_count handles. Attributes are copied. */
  heddle_status (*emit)(const struct heddle_gradient_builder* builder, const char* domain, const char* operator_name,
                        const heddle_value_handle* inputs, uint32_t input_count, heddle_value_handle* outputs, uint32_t output_count,
                        const heddle_attribute* const* attributes, uint32_t attribute_count);
  const heddle_call* call;
  const struct heddle_operator* op;
  /* Types by port; null: absent. The dtype, the rank and all dims other than -1 are the same in every run. */
  const heddle_type* const* input_types;
  const heddle_type* const* output_types;
  const uint8_t* wanted; /* by input: non-zero if the gradient of this input is requested. Emit nothing for other inputs: their gradients
                            are dropped */
  /* Adds a constant of `type`, all of whose dims must be known; its bytes are copied. */
  heddle_status (*constant)(const struct heddle_gradient_builder* builder, const heddle_type* type, const void* data,
                            heddle_value_handle* value);
  /* For an input that is a table from which the operator gathers rows: sets the gradient of input `input` as a list of rows instead of a
     dense tensor. Call this instead of setting input_gradients[input]. `values`, of dims [n, row...], has one gradient for each time a row
     was gathered. `indices`, of dims [n] and dtype i32 or i64, has the positions of these rows along axis 0 of the table; negative
     positions count from the end. Flags: HEDDLE_SPARSE_*. */
  heddle_status (*sparse)(const struct heddle_gradient_builder* builder, uint32_t input, heddle_value_handle indices,
                          heddle_value_handle values, uint32_t flags);
  /* Returns an output of the forward operator that the net may not have requested, such as a mask or a mean; the net requests it from then
     on. */
  heddle_status (*output)(const struct heddle_gradient_builder* builder, uint32_t output, heddle_value_handle* value);
} heddle_gradient_builder;
typedef heddle_status (*heddle_gradient_function)(const heddle_gradient_builder* builder);

typedef struct heddle_cost {
  uint32_t struct_size;
  uint32_t reserved;
  double flops;
  double bytes;
} heddle_cost;
/* [compile] Computes the cost of one run of a node from shapes: the inputs have no data, the outputs have the types that infer set. The
   host pre-fills *cost with 0 flops and the bytes of all inputs and outputs, each counted once. Both numbers must be finite and not
   negative. If the function fails, the node is refused. The host adds the cost of operators that are fused into the node. */
typedef heddle_status (*heddle_cost_function)(const heddle_infer_context* context, heddle_cost* cost);

/* One call, as text: `f32[2,3] = 1 2 3 4 5 6, i64[1] = 2; axis=1 -> f32[2,1] = 3 6` (docs/writing_an_operator.md, "Examples"). The example
   of an operator gives inputs, attributes and outputs; the example of a rewrite rule gives only inputs of the pattern. Examples are
   documentation, and `heddle plugin check` runs them. */
typedef struct heddle_example {
  uint32_t struct_size;
  uint32_t reserved;
  const char* text;
  const char* source; /* how the expected outputs were obtained: "by hand", "NumPy", but not from a kernel of this plugin; null: the
                         example gives no source */
} heddle_example;

typedef struct heddle_operator {
  uint32_t struct_size;
  /* The operator's since-version within its domain. A node may declare a version; for a node without one, the version that its
     net declares for the node's domain applies. The node uses the operator with the highest version that does not exceed it. */
  int32_t version;
  const char* domain; /* "" is ONNX's; Heddle's own is "heddle" */
  const char* name;
  const char* doc; /* what the operator does, in sentences; null or "": not said */
  const heddle_port* const* inputs;
  const heddle_port* const* outputs;
  const heddle_attribute_schema* const* attributes;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  uint32_t traits;
  heddle_precision_class precision;
  uint32_t gradient_node_count;
  heddle_infer_function infer;
  /* Declares how the subnets of a node are run: calls host->declare_subnet for each set of inputs with which a run of the node may run a
     subnet, and for no others. If the known content of an input shows that runs never use a subnet, the function does not declare that
     subnet. The context is that of infer, but without types of outputs. Null if no attribute is a subnet. */
  heddle_infer_function subnets;
  heddle_cost_function cost; /* null: flops follow from `pointwise` or are unknown; bytes are those of inputs and outputs */
  const heddle_gradient_node* const* gradient_nodes;
  heddle_gradient_function gradient; /* null: gradient_nodes apply; if gradient_node_count is 0 too, there is no gradient */
  const char* pointwise;             /* null, or output 0 as an expression over input and attribute names (expression.h) */
  const void* user;                  /* for the plugin's own use; infer finds it through context->op */
  const heddle_example* const* examples;
  uint32_t example_count;
  uint32_t reserved;
  /* For people, as doc is; null: not said. */
  const char* formula; /* how outputs follow from inputs, where `pointwise` does not say it: "Y = alpha A' B' + beta C" */
  const char* shapes;  /* how the dims of outputs follow, in words: "Y is [rows of A', columns of B']" */
  const char* file;    /* the source file that declares the operator, as its compiler was given it */
} heddle_operator;

/* ---------------------------------------------------------------- kernels */

/* [compile] The context of create, formats and accepts_epilogue. */
typedef struct heddle_create_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const heddle_host* host;
  const heddle_type* const* inputs; /* null entries: absent */
  const heddle_type* const* outputs;
  const heddle_attribute* const* attributes; /* in the order of the schema; null: absent; valid as long as the kernel's state */
  const heddle_operator* op;
  const char* node_name;
  const char* device;   /* "cpu:0" */
  void* device_handle;  /* the device plugin's handle; null on cpu */
  uint32_t max_threads; /* the largest number of executing threads of a run, for pools made in advance. Results must not depend on it */
  uint32_t epilogue_op_count; /* number of ops in the epilogue fused into this node */
  const struct heddle_epilogue_op* const* epilogue_ops;
  const heddle_call* call;
} heddle_create_context;

/* [compile] The context of prepare: shapes and layouts are known, constants are readable. */
typedef struct heddle_prepare_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  /* HEDDLE_KERNEL_GROUP: the number of parts of the step's group, and which of them the step is; 0 for other steps, and on "cpu". */
  uint16_t group_size;
  uint16_t group_index;
  const heddle_host* host;
  const heddle_call* call;
  const heddle_tensor* const* inputs; /* data is non-null for constants, in the memory space of the view */
  const heddle_tensor* const* outputs;
  const void* const* host_data; /* by input: the bytes of a constant in host memory, row-major; null: not a constant */
  void* state;
  uint64_t scratch_budget; /* upper bound for scratch_bytes: prepare chooses an algorithm that stays within it, or returns UNSUPPORTED */
  /* The kernel fills in the following fields. The host has pre-filled tile_count with 1, reads_host with the bits of all inputs that are in
     host memory, and the others with 0. */
  uint64_t scratch_bytes;        /* for the step, in one block */
  uint64_t thread_scratch_bytes; /* for each executing thread */
  int64_t tile_count;            /* must depend on shapes only; 0: nothing to do */
  double cost_ns;                /* first estimate of one run on one thread; 0: unknown */
  /* For a step on a device: bit i is set if run() itself reads input i on the host before it returns; inputs from 63 on share bit 63. */
  uint64_t reads_host;
  uint64_t data_scratch_bytes; /* for HEDDLE_KERNEL_MOVES_ONLY: scratch for the step, in the memory of the node's device */
  /* HEDDLE_KERNEL_GROUP: the rank of this process in the communicator that the node's attribute names, and how many there are, as the
     embedding program says it; 0 and 1 if it says nothing of the communicator. 0 for other steps, and on "cpu". */
  uint32_t rank;
  uint32_t rank_count;
} heddle_prepare_context;

/* The state that random numbers depend on, besides the node's stream and the element. The struct is in the memory of the node's device.
   A device that repeats earlier work without a new call of enqueue, as with a CUDA graph, thus reads the current seed, step and trip. The
   size is 24 bytes and never changes. */
typedef struct heddle_run_state {
  uint64_t seed;
  uint64_t step; /* the net's step counter */
  /* 0 outside subnets. In a subnet a number that differs for each trip: the host computes it from the `trip` argument of the run_subnet
     call that runs this subnet and from those of all enclosing run_subnet calls. */
  uint64_t trip;
} heddle_run_state;

/* An index of a run's data that is out of range, as found by a kernel on a device, which cannot return an error for what it finds in the
   device's memory. The struct is in the memory of that device. Each context has one for each device; `mark` is 0 when a run begins. */
typedef struct heddle_fault {
  uint64_t mark; /* heddle_run_context::fault_mark of the step that set the other fields; 0: no index was out of range */
  int64_t index; /* the index, which is outside of lower .. upper */
  int64_t lower;
  int64_t upper;
} heddle_fault;

/* [run] The context of run and finish: one step, run by one Context (heddle/session.h). */
typedef struct heddle_run_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t random_stream;             /* constant id of this node's random stream; in a subnet a hash of that id and of the subnet's id */
  const heddle_tensor* const* inputs; /* null entries: absent */
  heddle_tensor* const* outputs;
  void* state;
  void* scratch;                     /* 64-byte aligned; belongs to this step in this context */
  void* stream;                      /* the device's stream; null on cpu */
  const heddle_run_state* run_state; /* in the memory of the node's device; null if the operator does not have HEDDLE_TRAIT_RANDOM */
  const heddle_host* host;
  const heddle_call* call;
  void* const* resources; /* by slot: the resources that create requested */
  uint32_t resource_count;
  uint32_t resumed;   /* 1: run() returned HEDDLE_PENDING and is called again, with scratch unchanged since then; else 0 */
  void* data_scratch; /* 64-byte aligned, in the memory of the node's values; null if prepare requested none */
  /* The deadline of the run, in nanoseconds of CLOCK_MONOTONIC (std::chrono::steady_clock); 0: none. Set only for asynchronous kernels and
     for kernels that use a resource of communicator scope or have collectives in their subnets; 0 for all other kernels. */
  int64_t deadline_ns;
  /* For kernels with HEDDLE_KERNEL_USES_FAULT; null for all others, and where the plan reads no report of the step. A kernel that finds an
     index out of range replaces fault->mark by `fault_mark`, atomically and only if it is 0. If it was 0, the kernel then sets the other
     fields. In any case the kernel goes on, with any result, and accesses no memory out of bounds. The host reads the struct when all work
     that the run has on the device is done; the run then fails with the operator, the index and its bounds. */
  heddle_fault* fault;
  uint64_t fault_mark;
  /* For a kernel of an operator that updates a variable: words in the memory of the node's device, written by work that is enqueued before
     this step. Unless all are 0, the run fails or was stopped, and the kernel must leave its outputs as they are. Null, with the count 0,
     if the host knows before it enqueues the step that the run goes on, and on "cpu". The kernel has HEDDLE_KERNEL_USES_FAULT, or is run
     by heddle_launch. */
  const uint64_t* holds;
  uint32_t hold_count;
  uint32_t reserved;
  /* For HEDDLE_TRAIT_RANDOM: the number of the first element of output 0. It is not 0 if the node computes a part of a batch: its elements
     then have the numbers that they have in the whole batch, and so have the random numbers that are drawn for them. */
  uint64_t random_first;
} heddle_run_context;

/* Computes tiles [begin, end). Several threads may call it at once for disjoint ranges of one step. It must not allocate, synchronise,
   start threads or wait; an asynchronous kernel (HEDDLE_KERNEL_ASYNC) starts its work and returns. */
typedef heddle_status (*heddle_run_function)(const heddle_run_context* context, int64_t begin, int64_t end);
/* Combines the partial results that tiles left in scratch, in tile order; called once, after all tiles. */
typedef heddle_status (*heddle_finish_function)(const heddle_run_context* context);

#define HEDDLE_FORMAT_PORTS 8
typedef struct heddle_format {
  uint32_t struct_size;
  uint32_t reserved;
  double cost_ns; /* estimated nanoseconds of one run on one thread with this choice; the host adds the cost of changing layouts */
  heddle_layout inputs[HEDDLE_FORMAT_PORTS]; /* ports from HEDDLE_FORMAT_PORTS on are row-major */
  heddle_layout outputs[HEDDLE_FORMAT_PORTS];
} heddle_format;

/* The values of heddle_epilogue_op::operand_kind. */
enum {
  HEDDLE_OPERAND_NONE = 0,
  HEDDLE_OPERAND_SAME_SHAPE = 1,
  HEDDLE_OPERAND_PER_CHANNEL = 2,
  HEDDLE_OPERAND_LAST_DIMENSION = 3,
  HEDDLE_OPERAND_SCALAR = 4
};
/* One operator that is fused into a compute kernel and applied to output 0 of the kernel. `expression` computes the new value from "acc",
   the value before this operator, and "operand"; it is the canonical text that expression.h prints. */
typedef struct heddle_epilogue_op {
  uint32_t struct_size;
  int32_t operand_input; /* index into the node's inputs; -1: none */
  int32_t operand_kind;
  uint32_t reserved;
  const char* expression;
} heddle_epilogue_op;

enum {
  /* The kernel handles bounded inputs itself. It is prepared once, at the bounds. In run() the dims of an input are the bounds, and *extent
     is the true extent. The outputs have the extents that infer gives for the bounds; along a bounded axis the kernel writes the true
     extent to *extent of the output. */
  HEDDLE_KERNEL_READS_EXTENTS = 1u,
  HEDDLE_KERNEL_DYNAMIC_OUTPUTS = 2u, /* the kernel allocates its outputs with allocate_output */
  /* Output 0 may reuse the bytes of a SAME_SHAPE operand of the node's epilogue, if the operand has the layout of the output. */
  HEDDLE_KERNEL_EPILOGUE_IN_PLACE = 4u,
  /* The kernel gives the same bits as the operator's pointwise text, also for zeros, infinities and denormals; where the text gives a NaN,
     any NaN is right. Every kernel of an operator with a pointwise text must have this flag, because fusion may replace the kernel by the
     text. */
  HEDDLE_KERNEL_EQUALS_POINTWISE = 8u,
  /* run() only starts the step, which has one tile; the plugin calls host->complete when the step is done. Context, views, scratch and
     state stay valid until then. No thread of the host waits for the step. The host calls finish() after the completion. For "cpu" only:
     other devices have streams. */
  HEDDLE_KERNEL_ASYNC = 16u,
  /* run() may return HEDDLE_PENDING if run_subnet returned it. The host then calls run() again until it returns something else, even if the
     run of the net fails or is cancelled. The step has one tile. Between these calls the thread is free for other work; without this flag
     the thread waits in run_subnet for asynchronous steps of the subnet. For "cpu" only. */
  HEDDLE_KERNEL_RESUMES = 32u,
  /* The kernel accesses the bytes of data_scratch and of tensors that are not in host memory only through host->move and by running
     subnets. The host can therefore call it for a node on any device: moves and subnets are enqueued on the device's stream. For "cpu"
     only. */
  HEDDLE_KERNEL_MOVES_ONLY = 64u,
  /* The kernel reports indices that are out of range through heddle_run_context::fault. If its operator updates a variable, it obeys
     heddle_run_context::holds; an index that it reports itself leaves variables half-updated, since other updates may be made by then. For
     devices other than "cpu". */
  HEDDLE_KERNEL_USES_FAULT = 128u,
  /* The kernel is one of a collective operator (HEDDLE_TRAIT_COLLECTIVE), and has run_group: the k-th collectives of a communicator on the
     devices of this process, one on each, are launched by one call. A device that runs kernels of another kind must have enqueue_group. On
     "cpu", where a process has one device, the host calls run. */
  HEDDLE_KERNEL_GROUP = 256u,
};

typedef struct heddle_kernel {
  uint32_t struct_size;
  int32_t version; /* version of the operator that the kernel implements; must be equal to heddle_operator::version */
  const char* domain;
  const char* operator_name;
  const char* device_kind;              /* "cpu", "cuda", ... */
  const char* name;                     /* shown in plans and profiles; null: plugin:operator */
  const heddle_dtype_set* input_dtypes; /* one set per port, or null: all that the schema allows */
  const heddle_dtype_set* output_dtypes;
  uint32_t input_dtype_count;
  uint32_t output_dtype_count;
  uint32_t flags;
  int32_t priority; /* the highest is chosen; two kernels with equal priority for the same dtypes are duplicates, refused at load */
  /* [compile] All of these except run may be null. If create fails, the host ignores *state and does not destroy it. */
  heddle_status (*create)(const heddle_create_context* context, void** state);
  heddle_status (*prepare)(heddle_prepare_context* context);
  heddle_run_function run;
  heddle_finish_function finish;
  void (*destroy)(void* state);
  /* [compile] Fills in up to `capacity` choices, best first, and sets *count to their number. If the function is null or fails, all inputs
     and outputs are row-major. */
  heddle_status (*formats)(const heddle_create_context* context, heddle_format* const* choices, uint32_t capacity, uint32_t* count);
  /* [compile] Returns non-zero if this node can be run with context->epilogue_ops fused into it. */
  int32_t (*accepts_epilogue)(const heddle_create_context* context);
  /* [any, HEDDLE_KERNEL_ASYNC] Called because the run is ending early: the plugin should complete the started step soon, with
     HEDDLE_ERROR_CANCELLED if the step is not already done. Called at most once for a step, possibly while another thread calls complete;
     must return at once. If the function is null, the host waits for a started step for a limited time and then abandons it; the memory of
     the step stays allocated until it completes. */
  void (*abort)(const heddle_run_context* context);
  /* [run, HEDDLE_KERNEL_GROUP] Launches the `count` members of a group, each of a device of its own, in an order that is the same for all
     groups of a communicator; each part is the context of one member. Called once, by one thread; no other thread is in a call for any
     of the parts' streams meanwhile. A kernel written for the device enqueues on the stream of each part, on all of them or on none. It
     allocates no memory of a device. On a device that runs kernels of another kind it is called when all streams have come to their part,
     with addresses that the kernel can access, and the results are there when it returns. If it fails, no part was launched; the reason is
     given through the call of the part that failed. */
  heddle_status (*run_group)(const heddle_run_context* const* parts, uint32_t count);
} heddle_kernel;

/* ---------------------------------------------------------------- resources, rewrite rules, devices */

/* [compile] The request to make a resource. The struct is valid during create; its texts and options are valid as long as the resource. */
typedef struct heddle_resource_request {
  uint32_t struct_size;
  int32_t scope; /* as the plugin declared it */
  const heddle_host* host;
  const heddle_call* call;
  const char* name;
  const char* communicator; /* for communicator scope: its name; else "" */
  const char* device;       /* for device and stream scope, as "cuda:0"; else "" */
  void* device_handle;      /* the device plugin's handle; null on cpu and in wider scopes */
  void* stream;             /* for stream scope; null on cpu */
  const heddle_attribute* const* options;
  uint32_t option_count;
  uint32_t reserved;
  /* The following fields are for communicator scope. In other scopes they are 0 or null, and `rendezvous` is "". `members` and `rendezvous`
     are valid during create only. */
  int32_t rank;     /* of this process, 0 to size - 1 */
  int32_t size;     /* number of processes */
  uint32_t attempt; /* 0 for the first object of this name in its session; one more each time that it is made anew */
  uint32_t member_count;
  const char* const* members; /* the devices of this process that are members, as "cuda:0" */
  const char* rendezvous;     /* how the processes find each other, as the embedding program says it; "": not said */
  int64_t timeout_ns;         /* how long an operation may wait for its peers */
  int64_t deadline_ns;        /* of the run that needs the object, in nanoseconds of CLOCK_MONOTONIC; 0: none */
} heddle_resource_request;

typedef struct heddle_resource {
  uint32_t struct_size;
  int32_t scope;              /* HEDDLE_SCOPE_* */
  uint32_t interface_version; /* version of the interface of the object that create makes; a higher version may only add to the interface */
  uint32_t reserved;
  const char* name;        /* "plugin.thing" */
  const char* device_kind; /* for device and stream scope; else null */
  /* Makes the resource. If it fails, the host ignores *resource. For communicator scope it is called when a run that needs the object
     begins, on a thread of the host's, and may wait for peers until the request's deadline or until host->cancelled(call) is non-zero. If
     create returns only after that, the run has ended without the object, and the host aborts and destroys the object. */
  heddle_status (*create)(const heddle_resource_request* request, void** resource);
  void (*destroy)(void* resource);
  /* [any] For communicator scope: called when a run that uses the resource ends early, for any reason, even if no step is in progress at
     that moment. Every operation of this process that waits in the resource, or that begins later, must then end soon with
     HEDDLE_ERROR_CANCELLED, and the plugin should make the operations fail in which peers wait for this process. poll_error must fail from
     then on. No later run uses the object: it is destroyed when this run has ended and all its work is done, and the next run that needs
     the resource makes a new object. May be called more than once, and by several threads at once. Null: no operation waits in the
     resource. */
  void (*abort)(void* resource, const char* why);
  /* [any] Called before each run that uses the resource, and repeatedly while a run waits for asynchronous steps and devices. Must return
     at once. If it returns a failure, the run ends with that failure and its text. If an object of communicator scope fails in the call
     before a run, that run does not fail: it makes a new object instead. Null: the resource does not fail. */
  heddle_status (*poll_error)(void* resource, const heddle_call* call);
  /* For communicator scope: gives `bytes` bytes of each rank to all ranks. `all` has room for size * bytes bytes, by rank. The host
     calls it before the first step of a run, unless this rank last compared the same collectives through this object, and checks with it
     that all ranks are about to run the same collectives. If only some ranks run others than before, those alone call it: the wait ends by
     its time-out. One call at a time for an object. It may wait for peers until
     deadline_ns (CLOCK_MONOTONIC; 0: none), the request's timeout_ns or abort. Null: the host compares nothing. */
  heddle_status (*exchange)(void* resource, const void* mine, uint64_t bytes, void* all, int64_t deadline_ns, const heddle_call* call);
} heddle_resource;

/* A structural rewrite rule. Both nets are in Heddle's JSON text form and must have the same input and output names. The rule is applied
   where `pattern` occurs in a net and no inner value of the match is used outside the match. */
typedef struct heddle_rewrite_rule {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  const char* pattern;
  const char* replacement;
  const heddle_example* const* examples;
  uint32_t example_count;
  uint32_t reserved1;
} heddle_rewrite_rule;

struct heddle_device_backend; /* device_plugin.h */

/* ---------------------------------------------------------------- the plugin */

typedef struct heddle_plugin {
  uint32_t struct_size;
  uint32_t abi_major; /* the ABI the plugin was built against; if it differs from the host's, the host reads no field except abi_hash */
  uint32_t abi_minor;
  uint32_t reserved;
  const char* name;
  const char* version;
  const heddle_operator* const* operators;
  const heddle_kernel* const* kernels;
  const heddle_resource* const* resources;
  const heddle_rewrite_rule* const* rules;
  const struct heddle_device_backend* const* devices;
  uint32_t operator_count;
  uint32_t kernel_count;
  uint32_t resource_count;
  uint32_t rule_count;
  uint32_t device_count;
  uint32_t reserved1;
  /* [load] Called once, after the host has checked the ABI numbers and the tables; null: nothing to do. */
  heddle_status (*initialize)(const heddle_host* host, const heddle_call* call);
  void (*shutdown)(void); /* [load] called once, before the library is closed, when nothing is in use; also if initialize failed */
  uint64_t abi_hash;      /* HEDDLE_ABI_HASH that the plugin was built against */
  /* [any] Says in one line for users what the plugin works with here, as the versions of libraries that it opens when they are needed: on
     success it passes the line to host->set_error with HEDDLE_OK, or passes none; a failure's text says why the plugin offers nothing. It
     may open libraries, so it may take long. Null: there is nothing to say. */
  heddle_status (*describe)(const heddle_host* host, const heddle_call* call);
} heddle_plugin;

/* [load] The one exported symbol, called once while the library is open. `host` is valid until shutdown has returned, `call` until the
   function returns. Returns static data, or null if the plugin has no tables. A plugin that was built for another ABI than the host's
   returns a table with the plugin's ABI numbers, so that the host's error message can name both. */
typedef const heddle_plugin* (*heddle_plugin_query_function)(const heddle_host* host, const heddle_call* call);
#define HEDDLE_PLUGIN_QUERY_SYMBOL "heddle_plugin_query"

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ABI_H */
