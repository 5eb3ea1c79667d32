// The type that a value has in every run of a net: what an input that is compared with it has to be.
#pragma once

#include <memory>
#include <string>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle::trainable {

// The dtype and dims of the value `name`: numbers, and symbols of the net's inputs. `net` is resolved. It is inferred twice with different
// numbers for the symbols. Errors: those of inference; unsupported for an extent that is neither a number nor a symbol.
Result<DeclaredType> type_of(const Net& net, const std::string& name, const std::shared_ptr<const RegistrySnapshot>& registry,
                             const Limits& limits);

}  // namespace heddle::trainable
