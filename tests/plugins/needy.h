// What the resources of the plugin "needy" are to their users.
#pragma once

#include <cstdint>

struct Needy {
  const char* name;
  int32_t attempt;     // the how many-th create of this name in this process; 1: the first
  int32_t* gone;       // counts resources that are destroyed; set by who wants to know their order
  int32_t* went_as;    // where the resource writes that count when it goes; null: nowhere
  const Needy* other;  // what it was made with
};
