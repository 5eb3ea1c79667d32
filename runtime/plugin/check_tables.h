// Checks a plugin's tables before any part of them is used.
#pragma once

#include "heddle/abi.h"
#include "heddle/status.h"

namespace heddle {

// Code::plugin_invalid naming the operator or kernel and what is wrong with it.
Status check_tables(const heddle_plugin& plugin);

}  // namespace heddle
