// The interface of the resources of the plugin "needy".
#pragma once

#include <cstdint>

struct Needy {
  const char* name;
  int32_t attempt;     // the number of this create call for the name in this process, from 1
  int32_t* gone;       // counts resources that are destroyed; set by users that check their order
  int32_t* went_as;    // where the resource writes that count when it is destroyed; null: nowhere
  const Needy* other;  // the resource that it was made with
};
