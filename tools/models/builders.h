// The builder function of each recipe. Options are checked by build() in recipes.cc.
#pragma once

#include "models/recipes.h"

namespace heddle::models {

Net densenet121(const RecipeOptions& options);
Net digits(const RecipeOptions& options);
Net dlrm(const RecipeOptions& options);
Net encoder(const RecipeOptions& options);
Net gru_seq2seq(const RecipeOptions& options);
Net inception_v3(const RecipeOptions& options);
Net lenet(const RecipeOptions& options);
Net lstm_tagger(const RecipeOptions& options);
Net mlp(const RecipeOptions& options);
Net mobilenet_v2(const RecipeOptions& options);
Net photos(const RecipeOptions& options);
Net resnet18(const RecipeOptions& options);
Net resnet50(const RecipeOptions& options);
Net unet(const RecipeOptions& options);

}  // namespace heddle::models
