#include "generate/kernel_text.h"

namespace heddle::cuda {

void KernelText::write(std::initializer_list<const char*> files, KernelSource* source) const {
  for (const char* const file : files) source->use(file);
  const std::string scope = source->prefix + scope_ + "_scope";
  std::string text = "namespace " + scope + " {\n", own;
  for (const Type& type : types_) {
    text += "typedef " + type.is + " " + type.name + ";\n";
    own += "  typedef " + scope + "::" + type.name + " " + type.name + ";\n";
  }
  text += "struct Parameters {\n" + members_ + "};\n" + helpers + head + "struct F {\n" + own + functions + "};\n";
  for (const Kernel& kernel : kernels_) {
    const std::string entry = source->entry(scope_ + (kernel.name.empty() ? "" : "_" + kernel.name));
    text += (kernel.threads > 0 ? "HEDDLE_BOUNDED_KERNEL(" + entry + ", Parameters, p, " + std::to_string(kernel.threads) + ")"
                                : "HEDDLE_KERNEL(" + entry + ", Parameters, p)") +
            " {\n  " + kernel.body + "(p);\n}\n";
  }
  source->text += text + "}\n";
}

}  // namespace heddle::cuda
