// This process as a client of its launcher's PMIx server.
#pragma once

#include <pmix.h>

#include <string>

#include "heddle/op/plugin_status.h"

namespace heddle::rendezvous {

// Connects to the server when it is first called, for as long as the process lives, and sets the name that this process has there.
// Thread-safe. Errors: device (no launcher started this process, or its server does not answer within ten seconds).
//
// The connection is ended when the process exits: mpirun takes a process that does not say so for one that has failed, and ends the others.
// Ending it waits for no other process, dead or alive, but for the own server alone, and two seconds at most.
plugin::Status pmix_client(pmix_proc_t* self);

// Reads what the launcher says of the whole job. Errors: device.
plugin::Status pmix_job_size(const pmix_proc_t& self, int32_t* ranks);

// Reads `key` of the process `owner` as it is now. Errors: device (the server is gone, or does not answer within two seconds).
plugin::Status pmix_get(const pmix_proc_t& owner, const std::string& key, std::string* value, bool* found);

}  // namespace heddle::rendezvous
