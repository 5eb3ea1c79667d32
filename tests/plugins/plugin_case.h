// Which one of the plugins made of one file this is (test_plugin_cases in CMakeLists.txt).
#pragma once

extern "C" {
extern const char test_plugin_name[];  // as its library
extern const char test_plugin_case[];
}
