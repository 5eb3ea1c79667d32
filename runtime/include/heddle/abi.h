/* The C boundary between Heddle and its plugins.
 *
 * A plugin is a shared library that exports one function, heddle_plugin_query, and links to nothing of Heddle's. It answers
 * with tables of operators, kernels, devices, resources and rewrite rules; the host answers its needs through a table of
 * functions. This header is C11, compiles as C++ too, and needs only <stddef.h> and <stdint.h>.
 *
 * Rules of the boundary
 *  - Every struct begins with struct_size and grows only at its end. Read a field that may be newer than the other side with
 *    HEDDLE_HAS(type, pointer, field). Padding is explicit; no struct has tail padding.
 *  - ABI 0.x: both numbers and HEDDLE_ABI_HASH must match exactly. From 1.0 on minor versions only append.
 *  - No exception crosses. Functions return heddle_status; a failing one says why through host->set_error, which copies.
 *  - Contexts and the views in them may be copied, and used on any thread, as long as their call lasts (heddle_call).
 *  - The side that allocates is the side that frees. Pointers handed over live as long as the comment beside them says.
 *  - Thread marks: [load] called once while loading, by one thread; [compile] may be called by several threads at once for
 *    different objects; [run] called by any executing thread, several at once for disjoint tile ranges.
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
#define HEDDLE_ABI_MINOR 19
/* What the numbers stand for: a hash of all that this file and device_plugin.h declare, without comments and spaces. A change to either
   moves it, and the minor number with it: tests/abi/number_test.cc says the new value. */
#define HEDDLE_ABI_HASH UINT64_C(0x18771da40ea65c66)

/* True when the other side's struct is long enough to hold `field`. */
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
  HEDDLE_ERROR_INVALID = 1,     /* arguments, attributes, shapes or data that the operator refuses */
  HEDDLE_ERROR_UNSUPPORTED = 2, /* valid, but this kernel does not do it: the host looks for another one */
  HEDDLE_ERROR_OUT_OF_MEMORY = 3,
  HEDDLE_ERROR_DEVICE = 4, /* the device or its driver failed */
  HEDDLE_ERROR_CANCELLED = 5,
  HEDDLE_ERROR_INTERNAL = 6,
  HEDDLE_ERROR_DEVICE_LOST = 7, /* the device is of no more use, until it is opened anew */
  HEDDLE_PENDING = -1           /* no error: run_subnet, and run() of a HEDDLE_KERNEL_RESUMES kernel, are to be called again */
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
  /* Reserved: nets and plugins that use them are refused at load. Those of four bits share a byte between two elements. */
  HEDDLE_RESERVED_F8E4M3 = 14,
  HEDDLE_RESERVED_F8E5M2 = 15,
  HEDDLE_RESERVED_I4 = 16,
  HEDDLE_RESERVED_U4 = 17,
  HEDDLE_RESERVED_DTYPE_COUNT = 18
};
/* A set of dtypes: bit d stands for dtype d. */
typedef uint32_t heddle_dtype_set;
#define HEDDLE_DTYPE_BIT(d) (1u << (d))

/* Physical order of a dense tensor. All zero: row-major. The logical dims never change with the layout. Embedded in other structs and
   without a size of its own: it stays these 48 bytes. */
typedef struct heddle_layout {
  uint8_t rank;        /* 0: row-major; else the number of entries of `order` */
  uint8_t block_count; /* inner blocks; 0 today */
  uint8_t flags;       /* bit 0: padding elements are zero */
  uint8_t reserved0;
  uint8_t order[HEDDLE_MAX_RANK]; /* order[0] is the outermost logical dimension; channels-last of NCHW: {0, 2, 3, 1} */
  uint8_t block_dimension[4];
  uint16_t block_size[4];
  uint32_t opaque_owner; /* non-zero: bytes that only this owner understands */
  uint32_t reserved1;
  uint64_t opaque_id;
  uint64_t opaque_bytes;
} heddle_layout;

enum {
  HEDDLE_TENSOR_CONSTANT = 1u, /* same bytes in every run of the session */
  HEDDLE_TENSOR_DYNAMIC = 2u,  /* [prepare, run] an output without extents and memory before the kernel asks for them: allocate_output */
};

enum {
  HEDDLE_SPACE_HOST = 0,
  HEDDLE_SPACE_DEVICE = 1, /* of the node's device: an address for the device's own functions, nothing that the host may read or write */
};

/* A view; never owned by the plugin. It and what it points to are valid as long as the call it is passed to (heddle_call). */
typedef struct heddle_tensor {
  uint32_t struct_size;
  heddle_dtype dtype;
  int32_t rank;
  uint32_t flags;
  void* data;          /* in the memory that `space` names; null in infer when the value is not known */
  const int64_t* dims; /* rank entries; during run() of a bounded value the true extents, unless the kernel reads extents itself */
  int64_t element_count;
  uint64_t byte_size;
  int64_t* extent;     /* bounded values: slot for the true extent along extent_axis, in the value's memory space; else null */
  int32_t extent_axis; /* -1: no bounded axis */
  uint32_t space;      /* HEDDLE_SPACE_*; the same from prepare on. On a device it begins at a multiple of 64 bytes */
  heddle_layout layout;
} heddle_tensor;

/* What inference says about a value. */
enum {
  HEDDLE_TYPE_DYNAMIC = 1u, /* extents unknown before the operator ran and without a bound; dims of -1 */
  HEDDLE_TYPE_TRUE = 2u,    /* of a subnet's output: one bool, known to be true whatever the inputs hold */
};
typedef struct heddle_type {
  uint32_t struct_size;
  heddle_dtype dtype;
  int32_t rank;
  int32_t bounded_axis; /* -1, or the axis whose dim is an upper bound, true extent known after the operator ran */
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

/* A typed view of an attribute; lives as long as the node it belongs to (in schemas: static, a default). */
typedef struct heddle_attribute {
  uint32_t struct_size;
  heddle_attribute_type type;
  const char* name;
  int64_t i;
  double f;
  const char* s;
  uint64_t count; /* of ints, floats, strings; bytes of s */
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  const heddle_tensor* tensor;
  const heddle_subnet* subnet;
} heddle_attribute;

/* ---------------------------------------------------------------- the host's functions */

typedef int32_t heddle_log_level;
enum { HEDDLE_LOG_DEBUG = 0, HEDDLE_LOG_INFO = 1, HEDDLE_LOG_WARNING = 2, HEDDLE_LOG_ERROR = 3 };

/* Fills `bytes` at `destination`; false when it fails. Called at most once per distinct key. */
typedef heddle_status (*heddle_prepack_fill)(void* user, void* destination);

/* Of what a resource is one. Those of a wider scope do not need those of a narrower one. */
enum {
  HEDDLE_SCOPE_RUNTIME = 0,
  HEDDLE_SCOPE_DEVICE = 1, /* of a runtime */
  HEDDLE_SCOPE_SESSION = 2,
  HEDDLE_SCOPE_COMMUNICATOR = 3, /* of a session, by the name that the need gives */
  HEDDLE_SCOPE_STREAM = 4        /* of a context; on the host a context is one stream */
};

/* What create asks for. Valid during the call. */
typedef struct heddle_resource_need {
  uint32_t struct_size;
  uint32_t interface_version; /* that the plugin was built for; a published one of this or a higher version will do */
  const char* name;
  const char* communicator;               /* of communicator scope: which one; else null */
  const heddle_attribute* const* options; /* needs with other options are met by other resources */
  uint32_t option_count;
  uint32_t reserved;
} heddle_resource_need;

/* One call of the host into the plugin: every context has its own. Host functions take it, and not the context, which may be copied. It may
   be used on any thread until the call returns, and that of a step until the step is complete. */
typedef struct heddle_call heddle_call; /* opaque, owned by the host */

/* One table for the whole process. What a function has no answer to in this kind of call it answers with nothing (null, 0,
   HEDDLE_ERROR_UNSUPPORTED). */
enum { HEDDLE_MOVE_VALUE = 1u };

typedef struct heddle_host {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  /* [any] Copies `length` bytes of text; the last text of a failing call wins. A null call is ignored. */
  void (*set_error)(const heddle_call* call, heddle_status code, const char* text, size_t length);
  /* [any] Hands a line to the embedding program's log sink. */
  void (*log)(heddle_log_level level, const char* text, size_t length);
  /* [compile, in create of kernels and resources] Asks for a resource that a plugin publishes, and binds it to a slot, which is the same
     for the same need of one create. Made on first use, by the thread that asks first and under no lock; others that ask for the same one
     wait. It lives as long as what needs it. HEDDLE_ERROR_INVALID: nobody publishes it, or in an older version; it could not be made (the
     next who asks has it tried again); it needs what is being made itself. The host knows the text. */
  heddle_status (*need)(const heddle_call* call, const heddle_resource_need* need, uint32_t* slot);
  /* [compile, after need] What is in the slot. Null for stream scope in a kernel's create: those are in heddle_run_context::resources. */
  void* (*resource)(const heddle_call* call, uint32_t slot);
  /* [compile, in prepare] Memory for a packed form of constant input `input`, shared by every plan and context that asks with the
     same content, layout, key and size. `fill` writes it unless it is there. Alive as long as the plan. Null on failure.
     The first packing also tells the host that the original bytes may leave memory. */
  const void* (*prepack)(const heddle_call* call, uint32_t input, const char* key, uint64_t bytes, heddle_prepack_fill fill, void* user);
  /* [run] Scratch of the executing thread: as many bytes as prepare asked for in thread_scratch_bytes, 64-byte aligned,
     contents undefined at entry. Null on a thread that does not execute the step: scratch of a step may be used by any. */
  void* (*thread_scratch)(const heddle_call* call);
  /* [run] 0 for the thread that called run; below the number of executing threads of the run. HEDDLE_NO_THREAD on any other. */
  uint32_t (*thread_index)(const heddle_call* call);
  /* [run] Non-zero when the run was cancelled or its deadline passed: a long kernel may return HEDDLE_ERROR_CANCELLED. */
  int32_t (*cancelled)(const heddle_call* call);
  /* [run, dynamic outputs only] Memory for output `output`, with its true dims, of the rank inferred; the host owns it. Null on failure. */
  void* (*allocate_output)(const heddle_call* call, uint32_t output, const int64_t* dims, int32_t rank);
  /* [run] Runs a subnet attribute of this node, for trip `trip`, which the operator numbers as it likes: random numbers inside are the same
     for the same trip, also in another order, and run again. inputs[] are views in the order of its inputs; outputs are copied to the views
     given, whose dims must fit. An output view with null data asks for the result where it is: the host fills its dtype, rank, dims,
     element_count, byte_size and data with memory of its own, valid until the next run of a subnet through this call. Null entries:
     outputs not asked for. Returns when the subnet is done; threads of the run that have nothing else to do help.
     To a HEDDLE_KERNEL_RESUMES kernel it may answer HEDDLE_PENDING: only asynchronous steps of the subnet are left. Then run() returns that
     too, and is called again, with `resumed`, when there is more to do; it asks for the same once more, with data where it was. */
  heddle_status (*run_subnet)(const heddle_call* call, const heddle_subnet* subnet, uint64_t trip, const heddle_tensor* const* inputs,
                              uint32_t input_count, heddle_tensor* const* outputs, uint32_t output_count);
  /* [compile, in infer] What inference says about the outputs of a subnet attribute of this node when its inputs are as given (views;
     data where the content is known). outputs[] are structs of the caller, filled by the host; null entries: not asked for. */
  heddle_status (*infer_subnet)(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs,
                                uint32_t input_count, heddle_type* const* outputs, uint32_t output_count);
  /* [compile, in heddle_operator::subnets] Runs of this node will give the subnet inputs like these: views; data where it is the same in
     every run. It is compiled for them. A subnet may be declared for several. */
  heddle_status (*declare_subnet)(const heddle_call* call, const heddle_subnet* subnet, const heddle_tensor* const* inputs,
                                  uint32_t input_count);
  uint64_t abi_hash; /* HEDDLE_ABI_HASH of the host's headers */
  /* [any, steps of HEDDLE_KERNEL_ASYNC kernels] The step is done, well or not; `text`, which is copied, says why not. Exactly once for each
     run() that returned HEDDLE_OK, possibly before it did: then the step is done when that returns. From here on the call is over, and
     another is a mistake of the plugin, refused with HEDDLE_ERROR_INVALID now and later: no two runs of steps have the same token. */
  heddle_status (*complete)(const heddle_call* call, heddle_status status, const char* text, size_t length);
  /* [run, HEDDLE_KERNEL_MOVES_ONLY] Moves bytes between values, their extents and data_scratch of this node, where they lie: done when it
     returns, or on a device enqueued on the node's stream. With HEDDLE_MOVE_VALUE the source is at most 64 bytes of the kernel's own, which
     are taken during the call. */
  heddle_status (*move)(const heddle_call* call, uint32_t flags, void* destination, const void* source, uint64_t bytes);
} heddle_host;

/* ---------------------------------------------------------------- operators */

enum {
  HEDDLE_PORT_OPTIONAL = 1u,
  HEDDLE_PORT_VARIADIC = 2u,       /* the last port only: one or more values (zero or more with OPTIONAL) */
  HEDDLE_PORT_HOST = 4u,           /* lives in host memory whatever the node's device */
  HEDDLE_PORT_SHAPE_OPERAND = 8u,  /* its content decides output shapes; implies HOST */
  HEDDLE_PORT_HETEROGENEOUS = 16u, /* variadic values may differ in dtype */
  HEDDLE_PORT_MAY_UPDATE = 32u,    /* outputs: may be the next version of a variable, as the net says, that is one of the inputs: its bytes
                                      are those of the input, and the operator hands both to its subnets */
  HEDDLE_PORT_NOT_DIFFERENTIABLE =
      64u, /* real numbers without a gradient: an input is given none; from an output none comes, its output_gradients is 0 */
};

#define HEDDLE_ALIAS_ANY (-2)

typedef struct heddle_port {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* type_variable;  /* ports of one operator with the same variable have the same dtype; null: the set alone decides */
  heddle_dtype_set dtypes;    /* allowed */
  heddle_dtype default_dtype; /* outputs whose dtype no input decides; else HEDDLE_DTYPE_NONE */
  /* Outputs: index of the input port of the variable whose new version this is; of the input port whose bytes it may take, or
     HEDDLE_ALIAS_ANY for any of the same size; else -1. Of a variadic output the k-th value goes with the k-th of that port, which is
     variadic too (there may be more of those). An output that updates shares the bytes of its input. */
  int32_t updates;
  int32_t may_alias;
  int32_t index_bound_port; /* inputs: values are indices into this input ... else -1 */
  int32_t index_bound_axis; /* ... along this axis (or the attribute "axis" when -1) */
  /* Null, or what its dims are, as words between spaces: a name for an extent, the same wherever an operator says it; a number; "*" for any
     extent; "..." for any number of dims, once in a port and the same dims in all. "" is a scalar. The host compares inputs with it before
     infer, bounded ones at their bounds and again at what a run finds (HEDDLE_KERNEL_READS_EXTENTS kernels compare those), each value of a
     variadic port alike, and gives outputs the dims that follow; infer may not give them others. "... M K" and
     "... K N" make "... M N". What an output is made of stands in an input that is there: a call without that input is refused. */
  const char* dims;
} heddle_port;

/* How the ports of a subnet go with those of its operator. The subnet takes own_inputs that the operator makes itself (a trip number, a
   condition), and behind them the operator's inputs from first_input on, one by one, as they are or by slices; outputs likewise. */
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
  const heddle_attribute* default_value; /* null: absent unless given */
  const heddle_subnet_ports* ports;      /* of a subnet; null for every other type */
} heddle_attribute_schema;

enum {
  HEDDLE_TRAIT_RANDOM = 1u, /* draws from Philox(run state, stream, element): heddle/op/philox.h */
  HEDDLE_TRAIT_COLLECTIVE = 2u,
  HEDDLE_TRAIT_CHEAP = 4u,              /* cheap to recompute */
  HEDDLE_TRAIT_LAYOUT_TRANSPARENT = 8u, /* any layout, the same for same-shaped inputs and outputs */
  HEDDLE_TRAIT_SHAPE_ONLY = 16u,        /* output content depends on input shapes alone (Shape, Size) */
  HEDDLE_TRAIT_IMPURE = 32u,            /* has an effect beside its outputs: never folded, merged or pruned */
  HEDDLE_TRAIT_VIEW = 64u,              /* output 0 has the bytes of input 0, row-major: aliased, there is nothing to run */
  /* A node of two inputs gives the same with them swapped, but for the sign of a zero and which NaN it is. Patterns of rewrite rules
     match it either way. Two ports of the same dtypes, or a variadic one. */
  HEDDLE_TRAIT_COMMUTATIVE = 128u,
};
typedef int32_t heddle_precision_class;
enum { HEDDLE_PRECISION_ANY = 0, HEDDLE_PRECISION_REDUCED = 1, HEDDLE_PRECISION_FULL = 2, HEDDLE_PRECISION_PROMOTE = 3 };

/* [compile] Context of infer. */
typedef struct heddle_infer_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const heddle_host* host;
  const heddle_tensor* const* inputs;        /* null entries: absent optional inputs; data is non-null when the content is known */
  heddle_type* const* outputs;               /* pre-filled: dtype from the type variables, rank 0; null entries: outputs not asked for */
  const heddle_attribute* const* attributes; /* checked, defaults filled, in the order of the schema; null: absent */
  const struct heddle_operator* op;
  const heddle_call* call;
} heddle_infer_context;
typedef heddle_status (*heddle_infer_function)(const struct heddle_infer_context* context);

/* One emitted operator of a gradient. Roles: x<i> inputs, y<i> outputs, dy<i> gradients of outputs, dx<i> gradients of inputs,
   t<k> values of the fragment; instead of x<i>/y<i> a port name, and "d" + port name for gradients. */
typedef struct heddle_gradient_node {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t copy_attributes; /* non-zero: the forward operator's attributes that the emitted operator also declares */
  const char* domain;
  const char* operator_name;
  const char* const* inputs;
  const char* const* outputs;
  const heddle_attribute* const* attributes; /* null-terminated list, or null */
} heddle_gradient_node;

/* Of heddle_gradient_builder::sparse: no index comes twice, they ascend. */
enum { HEDDLE_SPARSE_UNIQUE = 1u, HEDDLE_SPARSE_SORTED = 2u };

/* Handles with which a gradient callback builds what attributes or types decide: one for each port of the operator at least, 0 where the
   node has nothing there. A callback is called when a net is derived, before any extent is known: what it emits must fit every shape. */
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
  heddle_value_handle* input_gradients; /* to be filled */
  const heddle_attribute* const* attributes;
  /* Adds one operator; writes output_count handles. Attributes are copied. */
  heddle_status (*emit)(const struct heddle_gradient_builder* builder, const char* domain, const char* operator_name,
                        const heddle_value_handle* inputs, uint32_t input_count, heddle_value_handle* outputs, uint32_t output_count,
                        const heddle_attribute* const* attributes, uint32_t attribute_count);
  const heddle_call* call;
  const struct heddle_operator* op;
  /* By port; null: absent. Dtype and rank hold for every run, dims where they are not -1. */
  const heddle_type* const* input_types;
  const heddle_type* const* output_types;
  const uint8_t*
      wanted; /* by input: whether its gradient is asked for. What is given for others is dropped, but its operators were emitted */
  /* Adds a constant of that type, all of whose dims are known; its bytes are copied. */
  heddle_status (*constant)(const struct heddle_gradient_builder* builder, const heddle_type* type, const void* data,
                            heddle_value_handle* value);
  /* In the place of input_gradients[input], of a table that rows were taken from: what came back for each row that was, in `values` of
     [n, row...], beside `indices` of [n], i32 or i64, into the table's axis 0: as often as rows were taken, and from the end where they are
     negative. Flags: HEDDLE_SPARSE_*. */
  heddle_status (*sparse)(const struct heddle_gradient_builder* builder, uint32_t input, heddle_value_handle indices,
                          heddle_value_handle values, uint32_t flags);
  /* An output of the forward operator that the net may not have asked for, a mask or a mean: then it does from now on. */
  heddle_status (*output)(const struct heddle_gradient_builder* builder, uint32_t output, heddle_value_handle* value);
} heddle_gradient_builder;
typedef heddle_status (*heddle_gradient_function)(const heddle_gradient_builder* builder);

typedef struct heddle_cost {
  uint32_t struct_size;
  uint32_t reserved;
  double flops;
  double bytes;
} heddle_cost;
/* [compile] What one run costs, by shapes: inputs without data, outputs as infer left them. Pre-filled: 0 flops, and the bytes of all
   inputs and outputs once. Both must be finite and not negative. A failure refuses the node. Operators fused behind the node are not among
   its inputs: the host adds them. */
typedef heddle_status (*heddle_cost_function)(const heddle_infer_context* context, heddle_cost* cost);

/* One call, as text: `f32[2,3] = 1 2 3 4 5 6, i64[1] = 2; axis=1 -> f32[2,1] = 3 6` (docs/writing_an_operator.md, "Examples"). Of an
   operator: inputs, attributes, outputs. Of a rewrite rule: the inputs of its pattern alone. It documents, and `heddle plugin check` runs
   it. */
typedef struct heddle_example {
  uint32_t struct_size;
  uint32_t reserved;
  const char* text;
  const char* source; /* where the outputs come from, which no kernel of this plugin made ("by hand", "NumPy"); null: none are given */
} heddle_example;

typedef struct heddle_operator {
  uint32_t struct_size;
  int32_t version;    /* the operator's since-version within its domain; a net asks for the highest version <= its own */
  const char* domain; /* "" is ONNX's; Heddle's own is "heddle" */
  const char* name;
  const char* doc; /* one line */
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
  /* What each subnet of a node is run with: calls host->declare_subnet for those that runs of the node may need, and no others: what is
     known about its inputs may rule one out. A context as infer's, whose outputs stay empty. Null where no attribute is a subnet. */
  heddle_infer_function subnets;
  heddle_cost_function cost; /* null: flops are what `pointwise` says or unknown, bytes those of inputs and outputs */
  const heddle_gradient_node* const* gradient_nodes;
  heddle_gradient_function gradient; /* null: the nodes above, or no gradient */
  const char* pointwise;             /* null, or the value of output 0 as an expression of input and attribute names (expression.h) */
  const void* user;                  /* the plugin's own; infer finds it through context->op */
  const heddle_example* const* examples;
  uint32_t example_count;
  uint32_t reserved;
} heddle_operator;

/* ---------------------------------------------------------------- kernels */

/* [compile] Context of create, formats and accepts_epilogue. */
typedef struct heddle_create_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const heddle_host* host;
  const heddle_type* const* inputs; /* null entries: absent */
  const heddle_type* const* outputs;
  const heddle_attribute* const* attributes; /* in the order of the schema; null: absent; they live as long as the state */
  const heddle_operator* op;
  const char* node_name;
  const char* device;   /* "cpu:0" */
  void* device_handle;  /* of the device plugin; null on cpu */
  uint32_t max_threads; /* executing threads a run may have: for pools made in advance. Nothing that shapes results depends on it */
  uint32_t epilogue_op_count; /* of the epilogue fused into this node */
  const struct heddle_epilogue_op* const* epilogue_ops;
  const heddle_call* call;
} heddle_create_context;

/* [compile] Context of prepare: shapes and layouts are known, constants readable. */
typedef struct heddle_prepare_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t reserved;
  const heddle_host* host;
  const heddle_call* call;
  const heddle_tensor* const* inputs; /* data non-null for constants, in the memory space of the view */
  const heddle_tensor* const* outputs;
  const void* const* host_data; /* by input: the bytes of a constant where the host may read them, row-major; null: not a constant */
  void* state;
  uint64_t scratch_budget; /* what scratch_bytes may be at most: a choice of algorithm stays within it, or prepare answers UNSUPPORTED */
  /* to be filled; pre-filled with 0, 0, 1, 0 and all of its inputs on the host */
  uint64_t scratch_bytes;        /* per step */
  uint64_t thread_scratch_bytes; /* per executing thread */
  int64_t tile_count;            /* a function of shape alone; 0: nothing to do */
  double cost_ns;                /* first guess of one run on one thread; 0: unknown */
  /* Of a step on a device: bit i: run() reads input i itself, on the host, before it returns; from 63 on all inputs share bit 63. */
  uint64_t reads_host;
  uint64_t data_scratch_bytes; /* of HEDDLE_KERNEL_MOVES_ONLY: per step, in the memory of the node's device */
} heddle_prepare_context;

/* What random numbers depend on, beside the node's stream and the element. Lies where the node works, so that what was enqueued once reads
   other numbers when it is run again. 24 bytes for ever. */
typedef struct heddle_run_state {
  uint64_t seed;
  uint64_t step; /* the net's step counter */
  uint64_t trip; /* 0; in a subnet a number of its own for each trip: of this run_subnet and of those around it */
} heddle_run_state;

/* [run] One step of one context. */
typedef struct heddle_run_context {
  uint32_t struct_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t random_stream;             /* constant id of this node's random stream; in a subnet a hash of it and of the subnet's */
  const heddle_tensor* const* inputs; /* null entries: absent */
  heddle_tensor* const* outputs;
  void* state;
  void* scratch;                     /* 64-byte aligned, of this step in this context */
  void* stream;                      /* the device's stream; null on cpu */
  const heddle_run_state* run_state; /* in the memory of the node's device; null: the operator does not have HEDDLE_TRAIT_RANDOM */
  const heddle_host* host;
  const heddle_call* call;
  void* const* resources; /* by slot: what create asked for */
  uint32_t resource_count;
  uint32_t resumed;   /* 1: run() answered HEDDLE_PENDING before and goes on, scratch is as it left it; else 0 */
  void* data_scratch; /* 64-byte aligned, where the node's values lie; null: prepare asked for none */
} heddle_run_context;

/* Computes tiles [begin, end). Several threads may run disjoint ranges of one step at once. Must not allocate, synchronise, start
   threads or wait; an asynchronous one (HEDDLE_KERNEL_ASYNC) starts its work and returns. */
typedef heddle_status (*heddle_run_function)(const heddle_run_context* context, int64_t begin, int64_t end);
/* Combines what the tiles left in scratch, in tile order; called once after all tiles. */
typedef heddle_status (*heddle_finish_function)(const heddle_run_context* context);

#define HEDDLE_FORMAT_PORTS 8
typedef struct heddle_format {
  uint32_t struct_size;
  uint32_t reserved;
  double cost_ns;                            /* relative cost with this choice */
  heddle_layout inputs[HEDDLE_FORMAT_PORTS]; /* further ports: row-major */
  heddle_layout outputs[HEDDLE_FORMAT_PORTS];
} heddle_format;

/* One operator fused behind a compute kernel, applied to its output 0. `expression` is in terms of "acc" (the value so far) and
   "operand"; canonical text as expression.h prints it. */
enum {
  HEDDLE_OPERAND_NONE = 0,
  HEDDLE_OPERAND_SAME_SHAPE = 1,
  HEDDLE_OPERAND_PER_CHANNEL = 2,
  HEDDLE_OPERAND_LAST_DIMENSION = 3,
  HEDDLE_OPERAND_SCALAR = 4
};
typedef struct heddle_epilogue_op {
  uint32_t struct_size;
  int32_t operand_input; /* index among the node's inputs; -1: none */
  int32_t operand_kind;
  uint32_t reserved;
  const char* expression;
} heddle_epilogue_op;

enum {
  /* Understands bounded inputs: prepared once, at their bounds; in run() they have dims at the bounds and the slot with the true extent.
     Its outputs have the extents that infer says for the bounds, and along a bounded axis what the kernel writes into their slot. */
  HEDDLE_KERNEL_READS_EXTENTS = 1u,
  HEDDLE_KERNEL_DYNAMIC_OUTPUTS = 2u, /* allocates its outputs with allocate_output */
  /* Output 0 may take the bytes of a SAME_SHAPE operand of the node's epilogue, in the same layout. */
  HEDDLE_KERNEL_EPILOGUE_IN_PLACE = 4u,
  /* Gives the bits that the operator's pointwise text gives, for NaN (any), zeros, infinities and denormals too. Required of a kernel
     beside a text: fusion runs the text in its place. */
  HEDDLE_KERNEL_EQUALS_POINTWISE = 8u,
  /* run() only starts the step, which has one tile; the plugin calls host->complete when it is done. Context, views, scratch and the state
     stay until then. No thread of the host waits for it. finish() is called afterwards, as always. For "cpu" only: devices have streams. */
  HEDDLE_KERNEL_ASYNC = 16u,
  /* run() may answer HEDDLE_PENDING where run_subnet did, and is called again, until it answers something else, however the run ends. One
     tile. The thread is given back meanwhile; without this it waits for asynchronous steps of the subnets. For "cpu" only. */
  HEDDLE_KERNEL_RESUMES = 32u,
  /* Touches the bytes of its tensors, but for those that lie on the host, and of data_scratch by host->move and by running subnets alone.
     So it runs on every device, from the host: what it moves, and its subnets, are enqueued on its stream. For "cpu" only. */
  HEDDLE_KERNEL_MOVES_ONLY = 64u,
};

typedef struct heddle_kernel {
  uint32_t struct_size;
  int32_t version; /* of the operator it implements: the same number */
  const char* domain;
  const char* operator_name;
  const char* device_kind;              /* "cpu", "cuda", ... */
  const char* name;                     /* shown by plan and profiles; null: plugin:operator */
  const heddle_dtype_set* input_dtypes; /* one set per port, or null: all the schema allows */
  const heddle_dtype_set* output_dtypes;
  uint32_t input_dtype_count;
  uint32_t output_dtype_count;
  uint32_t flags;
  int32_t priority; /* the highest wins; two of one priority that both fit are a duplicate, refused at load */
  /* [compile] Any of these but run may be null. A create that fails hands nothing over: *state is ignored, never destroyed. */
  heddle_status (*create)(const heddle_create_context* context, void** state);
  heddle_status (*prepare)(heddle_prepare_context* context);
  heddle_run_function run;
  heddle_finish_function finish;
  void (*destroy)(void* state);
  /* [compile] Fills up to `capacity` choices, best first, and says how many. Null, or a failure: row-major everywhere. */
  heddle_status (*formats)(const heddle_create_context* context, heddle_format* const* choices, uint32_t capacity, uint32_t* count);
  /* [compile] Non-zero when this node, with context->epilogue_ops appended, can be run as one. */
  int32_t (*accepts_epilogue)(const heddle_create_context* context);
  /* [any, HEDDLE_KERNEL_ASYNC] The run is to end: make the step complete soon, with HEDDLE_ERROR_CANCELLED if it is not done already.
     Called at most once for a step that is under way, possibly while complete is called elsewhere; returns at once. Null: such a step is
     waited for, for a while, and then given up (its memory stays until it completes). */
  void (*abort)(const heddle_run_context* context);
} heddle_kernel;

/* ---------------------------------------------------------------- resources, rewrite rules, devices */

/* [compile] What a resource is made for. Valid during create; texts and options as long as the resource. */
typedef struct heddle_resource_request {
  uint32_t struct_size;
  int32_t scope; /* as declared */
  const heddle_host* host;
  const heddle_call* call;
  const char* name;
  const char* communicator; /* of communicator scope; else "" */
  const char* device;       /* of device and stream scope, "cuda:0"; else "" */
  void* device_handle;      /* of the device plugin; null on cpu and in wider scopes */
  void* stream;             /* of stream scope; null on cpu */
  const heddle_attribute* const* options;
  uint32_t option_count;
  uint32_t reserved;
} heddle_resource_request;

typedef struct heddle_resource {
  uint32_t struct_size;
  int32_t scope;              /* HEDDLE_SCOPE_* */
  uint32_t interface_version; /* of what create gives; a higher one only adds to it */
  uint32_t reserved;
  const char* name;        /* "plugin.thing" */
  const char* device_kind; /* of device and stream scope; else null */
  /* One that fails hands nothing over: *resource is ignored. */
  heddle_status (*create)(const heddle_resource_request* request, void** resource);
  void (*destroy)(void* resource);
  /* [any] Of communicator scope: a run ends early while an asynchronous step that uses it is under way: what waits in it is to fail soon,
     on this side. May come more than once, and at once. Null: nothing does. */
  void (*abort)(void* resource, const char* why);
  /* [any] Asked before each run that uses it, and now and then while a run waits for asynchronous steps: a failure, with its text, ends the
     run. Returns at once. Null: it does not break. */
  heddle_status (*poll_error)(void* resource, const heddle_call* call);
} heddle_resource;

/* A structural rule: both nets in Heddle's JSON text form, with the same inputs and outputs by name. Applied where `pattern` occurs
   with no inner value used outside. */
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
  uint32_t abi_major; /* what the plugin was built against; when they differ from its own the host reads no field but abi_hash */
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
  /* [load] once, after the handshake and the check of the tables; null: nothing to do */
  heddle_status (*initialize)(const heddle_host* host, const heddle_call* call);
  void (*shutdown)(void); /* [load] once, before the library closes, nothing of it in use; also after initialize failed */
  uint64_t abi_hash;      /* HEDDLE_ABI_HASH: what the plugin was built against */
} heddle_plugin;

/* [load] The one exported symbol, called once while the library is open. `host` stays valid until shutdown returned, `call` until the
   function returns. Returns static data, or null when it has none to give. A plugin that does not know the host's ABI returns a table with
   its own numbers, so that the host can name both. */
typedef const heddle_plugin* (*heddle_plugin_query_function)(const heddle_host* host, const heddle_call* call);
#define HEDDLE_PLUGIN_QUERY_SYMBOL "heddle_plugin_query"

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ABI_H */
