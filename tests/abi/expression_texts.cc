// expression_texts PLUGIN.so...: prints the pointwise texts of all their operators, one a line.
#include <cstdio>
#include <string>

#include "plugin/registry.h"

int main(int count, char** files) {
  heddle::Registry registry;
  for (int i = 1; i < count; ++i)
    if (const heddle::Status status = registry.load(files[i]); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.text().c_str());
      return 1;
    }
  int texts = 0;
  const auto snapshot = registry.snapshot();
  for (const auto& plugin : snapshot->plugins())
    for (const heddle::OperatorSchema& schema : plugin->operators)
      if (schema.op->pointwise) std::printf("%s\n", schema.op->pointwise), ++texts;
  return texts > 0 ? 0 : 1;
}
