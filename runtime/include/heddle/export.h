// HEDDLE_API marks what libheddle.so exports; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
#else
#define HEDDLE_API
#endif
