#pragma once

#include <vector>

#include "heddle/trainer.h"
#include "public_calls.h"

namespace heddle::testing_memory {

// Adds the calls of heddle/trainer.h and heddle/dataset.h.
void add_trainer_calls(std::vector<PublicCall>& calls);

}  // namespace heddle::testing_memory
