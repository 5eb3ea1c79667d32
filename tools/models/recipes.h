// The recipes: nets that `heddle model NAME` writes. Weights are seeded, same bytes on every machine.
//
// Images are f32 [batch, channels, height, width], tokens i64 [batch, length]; of several inputs each has the batch first. Convolution,
// BatchNormalization and Relu are nodes of their own: the compiler folds. Parameter names are those of torchvision and
// tools/models/reference_logits.py. Pure; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::models {

// The purpose that a net is written for. For training and testing, the encoder has a head that classifies sequences into two classes, and
// dlrm's bags of lookups are one operator each, whose gradient needs no row for each lookup; inception_v3 is trained with an auxiliary
// head, whose logits are a second output.
enum class Purpose { inference, testing, training };

struct RecipeOptions {
  int64_t batch = 1;  // at least 1
  uint64_t seed = 0;  // of the weights
  Purpose purpose = Purpose::inference;
};

// The labels of a recipe's training form: none, it has none; the class of each sample; the class of each element of a sequence, whose
// logits have the classes last; the class of each pixel of an image; whether each sample was clicked, 0 or 1, for which the logits are one
// score.
enum class Labels { none, of_samples, of_elements, of_pixels, clicks };

struct Recipe {
  const char* name;
  const char* description;  // one line
  Net (*write)(const RecipeOptions&);
  Labels labels;
};

// All recipes, sorted by name.
std::span<const Recipe> list();

// Returns the recipe of that name. Errors: unknown_name, with nearest names.
Result<Recipe> find(const std::string& name);

// Builds the net of the recipe. Errors: unknown_name (with nearest names), invalid_argument (batch), limit_exceeded (batch over 65536).
Result<Net> build(const std::string& name, const RecipeOptions& options);

// Writes every parameter and running statistic, under its name, as one safetensors file, for reference_logits.py. Errors:
// file_unwritable.
Status write_weights(const Net& net, const std::filesystem::path& file);

// Counts the parameters of a net: elements of all floating-point constants and variables that are not scalars, those of subnets included,
// whatever their names. Not counted are running statistics, factors, bounds and the like (trainable/weight_choice.h), and, where some
// variables are trainable, those that are not: they are an optimizer's.
int64_t parameter_count(const Net& net);

}  // namespace heddle::models
