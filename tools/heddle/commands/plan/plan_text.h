// A plan for people and programs: text, JSON, Graphviz and SVG.
#pragma once

#include <string>

#include "common/command.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

Json plan_json(const PlanInfo& plan);
std::string plan_text(const PlanInfo& plan);
// Graphviz of the steps.
std::string plan_dot(const PlanInfo& plan);
// Memory over steps: one rectangle per buffer, with its value's name, time across and offset up.
std::string plan_svg(const PlanInfo& plan);
// Escapes text of a file for a page or picture.
std::string escape_xml(const std::string& text);

}  // namespace heddle::tool
