// A host kernel that runs on the device: a copy of its context in which all addresses are in the shadow of the device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/device_plugin.h"
#include "memory.h"

namespace sim {

// Must be called before the first launch, with the table that kernels would see on the host.
void set_host(const heddle_host& host);

// Used again for other launches: it keeps the memory that it has allocated.
class Launch {
 public:
  // Makes room for a launch of up to 16 operands, so that a launch allocates nothing.
  void reserve();
  // Copies the data that last only as long as the call. False: some of it is not in this device's memory, and `why` names it. `watches`:
  // the kernel must not change its inputs, except for those that share bytes with outputs.
  bool capture(const heddle_launch& launch, const Memory& memory, bool watches, std::string* why);
  // True if the calling thread is in the kernel of a launch: waiting for the device would wait for itself.
  static bool is_here();
  // Call it on the device's thread. Does nothing if the update is held. Outputs that share no bytes with inputs are filled with NaN before,
  // and the bytes from their last one to the end of their guards must not be changed. `wrong`: the operator whose first float result is
  // changed. `why`: the text of a failure.
  heddle_status run(const std::string& wrong, std::string* why);
  // Likewise, for the launches of a group, which have the same kernel: it is called once for all. Updates are not launched in groups.
  // `contexts` is filled for the call.
  static heddle_status run_group(const std::vector<Launch*>& parts, std::vector<const heddle_run_context*>& contexts,
                                 const std::string& wrong, std::string* why);

  const char* operator_name() const { return kernel_->operator_name; }
  // The bytes of all inputs.
  uint64_t input_bytes() const;
  std::string display_name() const {
    const std::string domain = kernel_->domain ? kernel_->domain : "";
    return domain.empty() ? kernel_->operator_name : domain + "::" + kernel_->operator_name;
  }
  void* thread_scratch() const { return thread_scratch_; }
  void note(const char* text, size_t length) { text_.assign(text, length); }

 private:
  // A 64-byte aligned copy of inputs on the host.
  class HostBytes {
   public:
    void reserve(size_t bytes);
    char* data() const { return data_; }

   private:
    std::unique_ptr<char[]> memory_;
    char* data_ = nullptr;
    size_t bytes_ = 0;
  };
  // Unused memory after an output.
  struct Guard {
    char* begin = nullptr;
    uint32_t bytes = 0, output = 0;
  };
  // An input that must not be changed.
  struct Watched {
    const heddle_tensor* tensor = nullptr;
    uint32_t input = 0;
    uint64_t sum = 0;
  };
  heddle_status begin(std::string* why);
  heddle_status end(heddle_status status, const std::string& wrong, std::string* why);
  template <class Call>
  heddle_status call(const Call& call);
  bool overlaps_input(const heddle_tensor& output) const;
  bool overlaps_output(const heddle_tensor& input) const;
  void watch_inputs();
  heddle_status check_inputs(std::string* why) const;
  heddle_status check_written_extents(std::string* why) const;
  void set_guards();
  heddle_status check_extents(std::string* why) const;
  heddle_status check_guards(std::string* why) const;
  bool place(heddle_tensor& tensor, const heddle_tensor& original, const Memory& memory, size_t* host_bytes);

  const heddle_kernel* kernel_ = nullptr;
  int64_t tiles_ = 0;
  heddle_run_context context_ = {};
  std::vector<heddle_tensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<const heddle_tensor*> inputs_;
  std::vector<heddle_tensor*> outputs_;
  HostBytes host_bytes_;
  void* thread_scratch_ = nullptr;
  uint32_t guard_bytes_ = 0;
  const uint64_t* holds_ = nullptr;
  uint32_t hold_count_ = 0;
  std::vector<Guard> guards_;
  bool watches_ = false;
  std::vector<Watched> watched_;
  std::string text_;  // set by set_error
};

}  // namespace sim
