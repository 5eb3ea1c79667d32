// The boundary's headers as a C++ program sees them, without op.h.
#include "heddle/abi.h"
#include "heddle/device_plugin.h"

static_assert(sizeof(heddle_layout::order) == HEDDLE_MAX_RANK, "one byte a dimension");
heddle_status plain(const heddle_run_context* context, int64_t begin, int64_t end);
heddle_run_function entry = plain;
