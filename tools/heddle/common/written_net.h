// Output and checks shared by the commands that write a net.
#pragma once

#include <string>

#include "common/command.h"
#include "common/file_roles.h"
#include "net/net.h"

namespace heddle::tool {

// Reports the object "net" of the command's JSON, and a line for people.
void report_net(const Net& net, const std::string& file, Report& report);

// Reports a training form in that object: `parameters` are the elements of its trainable variables.
void report_training_form(const Net& train, const Net& test, int64_t parameters, const std::string& file, Report& report);

// Registers the net `output` and the weights beside it as written: an error when the command reads one of them.
Status writes_net(FileRoles& roles, const std::string& output);
// Checks that both can be written, before the work whose result they are. Errors: those of FileReplacement::create.
Status check_net_writable(const std::string& output);

}  // namespace heddle::tool
