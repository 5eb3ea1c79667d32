// The common part of collectives, whether members of a group read each other's memory (kernels/collective.cc) or send it
// (kernels/nccl_collective.cc): who owns which elements, and the arithmetic of those who combine. A class below that takes Members asks
// them for size() and for index(), the own place among them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generate/operators/combine_launches.h"
#include "kernels/common/planned_kernel.h"
#include "shared/collective_parts.h"
#include "shared/collective_reduction.h"

namespace heddle::cuda {

using operators::Reduction;

inline char* bytes_at(const void* data, uint64_t offset) {
  return static_cast<char*>(const_cast<void*>(data)) + offset;
}

// Returns the number of bytes of so many elements of a tensor, or where its element `at` is.
inline uint64_t bytes_of(const heddle_tensor& tensor, int64_t elements) {
  return static_cast<uint64_t>(elements) * byte_width(tensor.dtype);
}
inline char* element_at(const heddle_tensor& tensor, int64_t at) {
  return bytes_at(tensor.data, bytes_of(tensor, at));
}

// Elements of a tensor.
struct ElementRange {
  int64_t first = 0, count = 0;
};

// Divides the elements of a tensor among the members, and returns those of one.
ElementRange share_of(const heddle_tensor& x, uint32_t member, uint32_t members);

// The part of a tensor that a member combines: the elements of a range, of all members.
struct CombinedPart {
  ElementRange range = {};
  uint64_t offset = 0;       // in the step's scratch, where those of the others are, in the order of members
  bool has_own_too = false;  // those of this member are there as well, in its place; else it combines those in its tensor
};

// The arithmetic of one tensor.
class Combination {
 public:
  // [prepare] `member` is one of `members`, which are two or more.
  Status prepare(const Device& device, Reduction reduction, const heddle_tensor& x, uint32_t member, uint32_t members,
                 const CombinedPart& part);
  const ElementRange& range() const { return part_.range; }
  // [run] Where the elements of the others have to be, one range after the other.
  char* scratch(const RunContext& context) const { return bytes_at(context.scratch, part_.offset); }
  // [run] Writes the combined elements of input `tensor` to `to`.
  Status enqueue(const GpuKernel& kernel, const RunContext& context, uint32_t tensor, void* to) const;

 private:
  CombinedPart part_;
  Launch launch_;
  std::shared_ptr<const Program> program_;
  cudaKernel_t kernel_ = nullptr;
};

// The common part of operations that combine.
class Reducing {
 public:
  Status create(const CreateContext& context) { return operators::read_reduction(context.attributes, &reduction_); }

 protected:
  Reduction reduction() const { return reduction_; }
  const Combination& combination(uint32_t tensor) const { return combinations_[tensor]; }
  // [prepare] prepare(x, tensor, combination, scratch): prepares what is combined of one tensor, and makes *scratch the number of bytes
  // that it and those before it need.
  template <class Prepare>
  Status prepare_each(PrepareContext& context, const Prepare& prepare) {
    combinations_ = std::vector<Combination>(context.input_count());
    uint64_t scratch = 0;
    for (uint32_t tensor = 0; tensor < context.input_count(); ++tensor)
      HEDDLE_PLUGIN_CHECK(prepare(*context.input(tensor), tensor, combinations_[tensor], &scratch));
    HEDDLE_PLUGIN_CHECK(check_scratch(context, scratch));
    context.set_scratch(scratch);
    return {};
  }

 private:
  Reduction reduction_ = Reduction::sum;
  std::vector<Combination> combinations_;  // by tensor
};

// The common part of operations with attribute "root".
class Rooted {
 public:
  Status create(const CreateContext& context) { return root_ = context.attributes.i("root"), Status(); }
  template <class Members>
  Status prepare(const Members& members, const Device&, PrepareContext&) const {
    return operators::check_root(members.size(), root_);
  }

 protected:
  uint32_t root() const { return static_cast<uint32_t>(root_); }  // once prepare has checked it

 private:
  int64_t root_ = 0;
};

// The common part of operations with attribute "size".
class Sized {
 public:
  Status create(const CreateContext& context) { return size_ = context.attributes.i("size"), Status(); }
  template <class Members>
  Status prepare(const Members& members, const Device&, PrepareContext&) const {
    return operators::check_size(members.size(), size_);
  }

 private:
  int64_t size_ = 0;
};

// An operation that combines, and has one of the attributes here.
template <class Combining, class Attribute>
class CombiningWith : public Combining, protected Attribute {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(Attribute::create(context));
    return Combining::create(context);
  }
};

}  // namespace heddle::cuda
