// docs/operators_by_device.md: which operator runs on which device, and how, read from the registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/kernel_families.h"
#include "plugin/registry.h"

namespace heddle::cuda {
namespace {

constexpr const char* dtype_names[] = {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"};
constexpr DType dtypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,   DType::u16, DType::u32, DType::u64, DType::boolean};

heddle_dtype_set bit(DType dtype) {
  return heddle_dtype_set{1} << static_cast<int>(dtype);
}

// The port whose dtype the table uses: the first input of several dtypes, else the first such output, else the first port there is.
struct Governing {
  const heddle_port* port = nullptr;
  bool output = false;
  uint32_t index = 0;
};
Governing governing_port(const heddle_operator& op) {
  const auto many = [](const heddle_port& port) { return (port.dtypes & (port.dtypes - 1)) != 0; };
  for (uint32_t i = 0; i < op.input_count; ++i)
    if (many(*op.inputs[i])) return {op.inputs[i], false, i};
  for (uint32_t i = 0; i < op.output_count; ++i)
    if (many(*op.outputs[i])) return {op.outputs[i], true, i};
  if (op.input_count > 0) return {op.inputs[0], false, 0};
  return {op.outputs[0], true, 0};
}

using Kernels = std::map<std::string, std::vector<const heddle_kernel*>>;  // by device kind, domain and operator

Kernels all_kernels(const RegistrySnapshot& registry) {
  Kernels kernels;
  for (const auto& plugin : registry.plugins()) {
    const heddle_plugin& tables = plugin->library->plugin();
    for (uint32_t k = 0; k < tables.kernel_count; ++k) {
      const heddle_kernel& kernel = *tables.kernels[k];
      kernels[std::string(kernel.device_kind) + " " + (kernel.domain ? kernel.domain : "") + "::" + kernel.operator_name].push_back(
          &kernel);
    }
  }
  return kernels;
}

// Returns the first kernel that takes `dtype` at the governing port.
const heddle_kernel* kernel_for(const Kernels& kernels, const char* kind, const OperatorSchema& schema, const Governing& by, DType dtype) {
  const auto found = kernels.find(std::string(kind) + " " + schema.domain + "::" + schema.name);
  if (found == kernels.end()) return nullptr;
  for (const heddle_kernel* kernel : found->second) {
    const heddle_dtype_set* const sets = by.output ? kernel->output_dtypes : kernel->input_dtypes;
    const uint32_t count = by.output ? kernel->output_dtype_count : kernel->input_dtype_count;
    if (kernel->version == schema.version && (!sets || by.index >= count || (sets[by.index] & bit(dtype)))) return kernel;
  }
  return nullptr;
}

std::string cell(const Kernels& kernels, const OperatorSchema& schema, const Governing& by, DType dtype) {
  if (!(by.port->dtypes & bit(dtype))) return "";
  const bool expression = schema.op->pointwise != nullptr;
  const heddle_kernel* const own = kernel_for(kernels, "cuda", schema, by, dtype);
  const heddle_kernel* const host = kernel_for(kernels, "cpu", schema, by, dtype);
  std::string text = expression || host ? "c" : "";
  if (own)
    text += own->name && std::string(own->name).rfind("cuda:cu", 0) == 0 ? "L" : "K";  // cuda:cublaslt_..., cuda:cudnn_...
  else if (expression)
    text += "E";
  else if (schema.has_trait(HEDDLE_TRAIT_VIEW) || (host && (host->flags & HEDDLE_KERNEL_MOVES_ONLY)))
    text += "R";
  return text;
}

std::string table() {
  Registry loaded;
  const Status status = loaded.load(std::vector<std::filesystem::path>{HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/cuda.so"});
  EXPECT_TRUE(status.ok()) << status.text();
  const auto registry = loaded.snapshot();
  const Kernels kernels = all_kernels(*registry);
  std::map<std::string, const OperatorSchema*> operators;
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain))
      operators[domain.empty() ? name : domain + "::" + name] = registry->find_operator(domain, name);
  std::string text = "| operator |";
  for (const char* name : dtype_names) text += std::string(" ") + name + " |";
  text += "\n| --- |";
  for (size_t i = 0; i < std::size(dtypes); ++i) text += " --- |";
  text += "\n";
  for (const auto& [name, schema] : operators) {
    const Governing by = governing_port(*schema->op);
    text += "| " + name + " |";
    for (const DType dtype : dtypes) text += " " + cell(kernels, *schema, by, dtype) + " |";
    text += "\n";
  }
  return text;
}

TEST(CudaTable, DocumentationSaysWhatTheRegistryDoes) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/operators_by_device.md");
  std::ostringstream documented;
  documented << file.rdbuf();
  const std::string made = table();
  EXPECT_NE(documented.str().find(made), std::string::npos) << "the table of docs/operators_by_device.md has to be:\n" << made;
}

// An operator that takes floats and has no kernel for "cuda" is listed in the page, with the reason.
TEST(CudaTable, WhatStaysOnTheHostIsListedWithAReason) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/operators_by_device.md");
  std::set<std::string> listed, wanted;
  bool in_list = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) in_list = line == "## What stays on the host";
    const size_t end = line.find("`", 3);
    if (in_list && line.rfind("- `", 0) == 0 && end != std::string::npos) listed.insert(line.substr(3, end - 3));
  }
  std::istringstream made(table());
  for (std::string line; std::getline(made, line);) {
    const std::string name = line.substr(2, line.find(" |") - 2);
    if (line.find(" c |") != std::string::npos && line.find("cE") == std::string::npos && line.find("cL") == std::string::npos &&
        line.find("cK") == std::string::npos && line.find("cR") == std::string::npos)
      wanted.insert(name);
  }
  EXPECT_EQ(listed, wanted);
}

// docs/cuda.md describes the observations of every family of kernels exactly once.
TEST(CudaTable, EachFamilyHasARowOfWhatWasSeen) {
  std::vector<std::string> families, rows;
#define HEDDLE_CUDA_FAMILY_NAME(name) families.push_back(#name);
  HEDDLE_CUDA_FAMILIES(HEDDLE_CUDA_FAMILY_NAME)
#undef HEDDLE_CUDA_FAMILY_NAME
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/cuda.md");
  bool in_section = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) in_section = line == "## What was seen, by family";
    if (!in_section || line.rfind("| `", 0) != 0) continue;
    const std::string cell = line.substr(0, line.find(" |", 1));
    for (size_t begin = cell.find('`'); begin != std::string::npos;) {
      const size_t end = cell.find('`', begin + 1);
      rows.push_back(cell.substr(begin + 1, end - begin - 1));
      begin = cell.find('`', end + 1);
    }
  }
  std::sort(families.begin(), families.end());
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, families);
}

}  // namespace
}  // namespace heddle::cuda
