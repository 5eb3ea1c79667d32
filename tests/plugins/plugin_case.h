// Says which of the plugins that are built from one file this is (test_plugin_cases in CMakeLists.txt).
#pragma once

extern "C" {
extern const char test_plugin_name[];  // the name of its library
extern const char test_plugin_case[];
}
