// Wraps one descriptor of cuDNN's backend API, and converts its errors to those of the host.
#pragma once

#include <string>
#include <utility>

#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda::cudnn {

using plugin::Status;

// Returns an error such as "cuDNN: convolution: CONVOLUTION_PRE_PADDINGS: CUDNN_STATUS_BAD_PARAM (1 != elemCount)". Anything that cuDNN
// does not support is reported as unsupported.
Status failed(const std::string& what, cudnnStatus_t status);

// Owns a descriptor, which is set, then finalized, then read-only; a finalized one may be read by any number of threads.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)), what_(std::exchange(other.what_, "descriptor")) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      descriptor_ = std::exchange(other.descriptor_, nullptr);
      what_ = other.what_;
    }
    return *this;
  }

  // `what` is its name in errors, and must be a literal.
  static Status make(cudnnBackendDescriptorType_t type, const char* what, Descriptor* made);
  // `name` is the attribute's name in errors.
  Status set(cudnnBackendAttributeName_t attribute, const char* name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  Status set(cudnnBackendAttributeName_t attribute, const char* name, const Descriptor& value);
  Status finalize();
  // Returns how many elements there are, and writes at most `most` of them.
  Status get(cudnnBackendAttributeName_t attribute, const char* name, cudnnBackendAttributeType_t type, int64_t most, int64_t* count,
             void* values) const;
  cudnnBackendDescriptor_t get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ != nullptr; }

 private:
  void reset();
  std::string text(const char* name) const { return std::string(what_) + ": " + name; }

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  const char* what_ = "descriptor";
};

// Sets attribute CUDNN_ATTR_name of type CUDNN_TYPE_type. On failure returns from the enclosing function, which must return a Status.
#define HEDDLE_CUDNN_SET(descriptor, name, type, count, values) \
  HEDDLE_PLUGIN_CHECK((descriptor).set(CUDNN_ATTR_##name, #name, CUDNN_TYPE_##type, static_cast<int64_t>(count), values))
// Does the same for an attribute that is a descriptor.
#define HEDDLE_CUDNN_SET_DESCRIPTOR(descriptor, name, value) HEDDLE_PLUGIN_CHECK((descriptor).set(CUDNN_ATTR_##name, #name, value))

}  // namespace heddle::cuda::cudnn
