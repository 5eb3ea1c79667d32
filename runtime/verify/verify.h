// verify: TypedNet -> diagnostics. What must hold before anything is compiled: placement, hazards of variables, sparse links. All findings.
#pragma once

#include <string>

#include "base/findings.h"
#include "heddle/copies.h"
#include "net/typed_net.h"

namespace heddle {

struct VerifyOptions {
  std::string default_device = "cpu:0";
  Copies copies = Copies::warn;
};

// Findings: no_such_device (with the backend's reason), wrong_device (operator, input, both devices and the mend; a warning where copies
// are made), hazard, shape_mismatch (sparse links), and warnings for outputs of the net that are constants. Pure.
Findings verify(const TypedNet& net, const VerifyOptions& options);
// The part of it that needs no types, for nets whose types can't be inferred: devices that do not exist.
void verify_devices(const Net& net, const RegistrySnapshot& registry, const std::string& default_device, Findings& findings);
// The same behind findings of before.
void verify(const TypedNet& net, const VerifyOptions& options, Findings& findings);

}  // namespace heddle
