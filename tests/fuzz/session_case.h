// A net through the interface that programs use: open, prepare, run over buffers with guard pages; then run again with another content of
// its integer inputs than it was prepared for.
#pragma once

#include <memory>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/dice.h"
#include "heddle/session.h"
#include "net/net.h"

namespace heddle::fuzz {

// The CPU plugin of this build on one thread. Ends the process when it does not load.
Runtime cpu_runtime();

// Limits for everything that a case may request, so that none takes long.
Limits case_limits();

// Runs the net with `feeds` by input, random numbers where null. Ends the process with a message if something was written outside a buffer.
Ending run_in_session(const Runtime& runtime, Net net, const std::vector<std::shared_ptr<const Blob>>& feeds, Dice& dice);

}  // namespace heddle::fuzz
