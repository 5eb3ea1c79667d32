// The checker of whole plans: accepts a plan only when it is right however the scheduler runs it. O(n^2) and more, for tests and debugging;
// shares nothing with the planner but the types.
#pragma once

#include "compile/plan.h"

namespace heddle::compiling {

// Returns ok when the plan is legal:
//   - the graph is in plan order, its predecessor counts are those of its edges, and the tail holds updates and the steps after them
//     (plan_check/update_phase_check.h); the collectives of each device are one chain;
//   - a step that reads a value runs, by the edges, after the one that writes it; no value is written twice, constants and inputs never;
//   - nothing is written over bytes that an earlier step may still be using or a later one is to read, on each arena and in each variable
//     (read after write, write after read, write after write; step scratch and the memory of subnets count as written by their step). Only
//     edges order steps, except where a plan for one thread on the host alone shares an arena: it runs in plan order;
//   - a step writes over bytes that it reads only where its operator declares so, the bytes are exactly those of one input, and no other
//     operand reads them;
//   - everything lies inside its arena, aligned, and the reported sizes are the sizes of the contents;
//   - the outputs of the net are present when the run ends.
// Plans of subnets are checked too, up to judged_steps. Code::internal names the first offence: the compiler is wrong, not its caller. Any
// thread.
//
// The arenas of other devices are checked likewise; that the events between their streams realise the edges is not examined, only
// that no step elsewhere relies on work that is merely enqueued. A plan does not record which version of a buffer a view shows: the latest
// that all its readers run after is assumed.
Status check(const Plan& plan);
// The check takes the square of the steps in time and memory: plans of more steps are not checked where nets are compiled, nor inside
// others.
constexpr size_t judged_steps = 4096;

}  // namespace heddle::compiling
