// The command line as a tree of commands with their options: what is parsed, completed by shells and described by manual pages.
#pragma once

#include <functional>
#include <memory>

#include "common/command.h"

namespace heddle::tool {

// Declares every command of commands/commands.h with its own options and the common ones. `declared` is called for each, with what it
// reports to and what runs it.
void declare_application(
    CLI::App& app,
    const std::function<void(const Command& command, CLI::App& declared, const std::shared_ptr<Report>& report, const Run& run)>& declared);

// The options of an application or a command that its help shows, in their order; without --help.
std::vector<const CLI::Option*> shown_options(const CLI::App& app);

// The commands within `app`, in their order; those within them, such as "plugin check", are theirs.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

}  // namespace heddle::tool
