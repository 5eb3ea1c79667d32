// Which process of its job this one is, as the launcher says in the environment or by PMIx.
#pragma once

#include <cstdint>

#include "heddle/op/plugin_status.h"

namespace heddle::rendezvous {

// Whether a launcher that speaks PMIx (mpirun, srun --mpi=pmix) started this process. Costs nothing: it looks at the environment.
bool started_by_pmix();

// Sets the rank of this process and how many its job has. What Open MPI and Slurm say in the environment is enough; without it this
// connects to the launcher's server, until the process ends. Thread-safe. Errors: device (no launcher started it, or its server does not
// answer).
plugin::Status pmix_place(int32_t* rank, int32_t* ranks);

}  // namespace heddle::rendezvous
