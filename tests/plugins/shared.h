// The object that the resources of the plugins "shared0" .. "shared7" report to: its address is an option of the need and an attribute of
// the operators. The program that made it must be the one that runs the net.
#pragma once

#include <cstdint>

struct SharedWatch {
  // A resource is about to be made, has been made, or is destroyed. `plugin`: 0 to 7. Throws nothing.
  void (*making)(SharedWatch* self, int32_t plugin, const char* name);
  void (*made)(SharedWatch* self, int32_t plugin, const char* name);
  void (*gone)(SharedWatch* self, int32_t plugin, const char* name);
  // For the resource that can break: non-zero when it has.
  int32_t (*lost)(SharedWatch* self);
};
