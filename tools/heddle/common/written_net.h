// What the commands that write a net say of it and ask of its files.
#pragma once

#include <string>

#include "common/command.h"
#include "common/file_roles.h"
#include "net/net.h"

namespace heddle::tool {

// The object "net" of the command's JSON, and a line for people.
void report_net(const Net& net, const std::string& file, Report& report);

// The net `output` and the weights beside it are written: an error when the command reads one of them.
Status writes_net(FileRoles& roles, const std::string& output);
// Whether both can be written at all, before the work whose result they are. Errors: those of FileReplacement::create.
Status check_net_writable(const std::string& output);

}  // namespace heddle::tool
