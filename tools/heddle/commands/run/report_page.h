// The style and the script of the report: zoom of the timeline, search, sorting. Nothing is loaded from elsewhere.
#pragma once

namespace heddle::tool {

extern const char* const report_style;
extern const char* const report_script;

}  // namespace heddle::tool
