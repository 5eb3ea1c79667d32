#include "commands/plugin/kernel_json.h"

namespace heddle::tool {

Json dtypes_json(heddle_dtype_set set) {
  Json list = Json::array();
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d)
    if (set >> d & 1) list.push_back(to_string(static_cast<DType>(d)));
  return list;
}

Json kernel_json(const RegistrySnapshot& registry, const KernelEntry& entry) {
  const heddle_kernel& kernel = *entry.kernel;
  const std::string domain = kernel.domain ? kernel.domain : "";
  const OperatorSchema* const schema = registry.find_operator(domain, kernel.operator_name, kernel.version);
  Json types = Json::array();
  for (uint32_t i = 0; schema && i < schema->op->input_count; ++i) {
    const heddle_dtype_set declared = schema->op->inputs[i]->dtypes;
    types.push_back(dtypes_json(kernel.input_dtypes && i < kernel.input_dtype_count ? kernel.input_dtypes[i] & declared : declared));
  }
  return {{"name", entry.name},
          {"operator", display_name(domain, kernel.operator_name)},
          {"device", kernel.device_kind},
          {"version", kernel.version},
          {"types", types}};
}

}  // namespace heddle::tool
