#pragma once

#include <string>
#include <vector>

#include "heddle/trainer.h"
#include "public_calls.h"

namespace heddle::testing_memory {

// Returns a checkpoint of "train".
std::string checkpoint_of_line(const World& world);

// Adds the calls of heddle/trainer.h and heddle/dataset.h.
void add_trainer_calls(std::vector<PublicCall>& calls);

}  // namespace heddle::testing_memory
