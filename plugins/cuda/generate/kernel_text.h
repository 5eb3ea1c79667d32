// Writes the text around kernels. The code that computes is in text/, as functions of a struct F that holds what differs between kernels:
// types, sizes, one expression or another. The text around it is alike in every source and is written here, so that each family of kernels
// gives only its own part:
//
//   namespace heddle_SCOPE_scope {
//   typedef u32 Index;                and the types
//   struct Parameters { ... };        the words of a launch
//                                     helpers
//   struct F { ... };                 the types again, as text/ asks F for them, constants and functions
//   HEDDLE_KERNEL(heddle_SCOPE_NAME, Parameters, p) { function_of_text<F>(p); }
//   }
#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "generate/launch_plan.h"

namespace heddle::cuda {

// One namespace of a source.
class KernelText {
 public:
  ParameterWriter parameters{&members_, nullptr};
  std::string head;       // template head of F, if it is a template
  std::string helpers;    // functions that F calls
  std::string functions;  // member functions of F

  // `wide`: positions need 64 bits.
  KernelText(std::string scope, bool wide) : scope_(std::move(scope)) { type("Index", wide ? "u64" : "u32"); }
  KernelText(const KernelText&) = delete;
  KernelText& operator=(const KernelText&) = delete;

  // Defines a name for a type, which Parameters, F and types defined later may use.
  void type(const char* name, const std::string& is) { types_.push_back({name, is}); }
  template <class V>
  void constant(const char* name, V value) {
    functions +=
        std::string("  static constexpr ") + (std::is_same_v<V, bool> ? "bool " : "int ") + name + " = " + std::to_string(value) + ";\n";
  }
  // Adds a function of F, such as "C next(C x)" and "return x + 1;".
  void function(const std::string& head, const std::string& body) { functions += "  HEDDLE_INLINE_MEMBER " + head + " { " + body + " }\n"; }
  // Adds an entry that calls `body`, such as "copy_box<F>". Its name follows the scope's; "": the entry has the scope's name.
  void kernel(const std::string& name, const std::string& body) { kernels_.push_back({name, body, 0}); }
  // Adds an entry whose threads, `threads` in a block, work together.
  void block_kernel(const std::string& name, const std::string& body, int64_t threads) { kernels_.push_back({name, body, threads}); }

  // Puts files of text/ into the source, unless they are there already, followed by this text.
  void write(std::initializer_list<const char*> files, KernelSource* source) const;

 private:
  struct Type {
    std::string name, is;
  };
  struct Kernel {
    std::string name, body;
    int64_t threads;  // per block; 0: each thread works alone
  };
  std::string scope_, members_;
  std::vector<Type> types_;
  std::vector<Kernel> kernels_;
};

}  // namespace heddle::cuda
