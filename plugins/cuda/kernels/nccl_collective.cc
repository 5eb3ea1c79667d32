// Implements the collectives of GPUs, of this process and of others, by NCCL (plugins/nccl): AllReduce, Reduce, ReduceScatter, Broadcast,
// AllGather, AllToAll and Barrier.
//
// NCCL moves bytes, and kernels combine them in the order of the host's collectives, so that the bits are those of the host, whatever way
// NCCL chose. It combines itself what has the same bits in any order, and sums of f32 and f64 where it is asked to
// (DeviceLibrary::sums_of_library).
#include <utility>

#include "device/current_device.h"
#include "kernels/common/nccl_exchange.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace nccl {
namespace {

// ---------------------------------------------------------------- operations
//
// Each has, beside create and prepare, for one tensor of one member:
//   uint32_t phases() const;                               of those that the tensors need
//   static constexpr bool always_meets;                    also where no tensor has an element
//   void move(const Exchange&, uint32_t phase) const;      calls of NCCL, which are started together for all members
//   Status combine(const Exchange&, uint32_t phase) const; work on the own stream after them

class NcclReducing : public Reducing {
 public:
  static constexpr bool always_meets = false;

 protected:
  // Whether NCCL combines the elements: in any order they give the same, or it may be its own order.
  bool by_nccl(const Place& place, heddle_dtype dtype) const {
    const bool is_float_sum = reduction() == Reduction::sum && (dtype == HEDDLE_F32 || dtype == HEDDLE_F64);
    return operators::any_order(dtype, reduction()) || (place.sums_of_library() && is_float_sum);
  }
  // range(x): what this member combines; gathers(x): whether all elements of all are gathered for that; `more_ranges`: how many it needs
  // room for in scratch besides. All tensors have room of their own there, since NCCL moves them together.
  template <class RangeOf, class Gathers>
  Status prepare_parts(const Place& place, const Device& device, PrepareContext& context, const RangeOf& range, const Gathers& gathers,
                       uint64_t more_ranges) {
    return prepare_each(context, [&](const heddle_tensor& x, uint32_t, Combination& combination, uint64_t* scratch) -> Status {
      if (place.size() == 1 || by_nccl(place, x.dtype)) return {};
      const CombinedPart part = {range(x), *scratch, gathers(x)};
      const uint64_t ranges = part.has_own_too ? place.size() : place.size() - 1 + more_ranges;
      constexpr int64_t boundary = 256;
      *scratch += static_cast<uint64_t>(blocks_of(static_cast<int64_t>(ranges * bytes_of(x, part.range.count)), boundary) * boundary);
      return combination.prepare(device, reduction(), x, place.index(), place.size(), part);
    });
  }
  // Gives each participant its range of this one's elements; those of the others come to scratch, in order.
  template <class RangeOf>
  void scatter(const Exchange& e, const RangeOf& range) const {
    char* const scratch = combination(e.tensor).scratch(e.context);
    const uint64_t own = e.bytes(range(e.place.index()).count);
    e.swap(
        [&](uint32_t other) {
          return Bytes{element_at(e.x(), range(other).first), e.bytes(range(other).count)};
        },
        [&](uint32_t other) {
          return Bytes{scratch + (other < e.place.index() ? other : other - 1) * own, own};
        });
  }
};

// A small tensor is gathered and combined by all; of a larger one each participant combines a share, which it then gives to all.
class AllReduce : public NcclReducing {
 public:
  uint32_t phases() const { return phases_; }
  Status prepare(const Place& place, const Device& device, PrepareContext& context) {
    phases_ = 1;
    for (uint32_t tensor = 0; tensor < context.input_count(); ++tensor)
      if (const heddle_tensor& x = *context.input(tensor); !by_nccl(place, x.dtype) && !is_small(place, x)) phases_ = 2;
    return prepare_parts(
        place, device, context,
        [&](const heddle_tensor& x) {
          return is_small(place, x) ? ElementRange{0, x.element_count} : share_of(x, place.index(), place.size());
        },
        [&](const heddle_tensor& x) { return is_small(place, x); }, 0);
  }
  void move(const Exchange& e, uint32_t phase) const {
    const heddle_tensor &x = e.x(), &y = e.y();
    const auto share = [&](uint32_t other) { return share_of(x, other, e.place.size()); };
    if (by_nccl(e.place, e.x().dtype)) {
      if (phase == 0) e.nccl.all_reduce(e.member, x.data, y.data, x.element_count, x.dtype, reduction());
    } else if (is_small(e.place, x)) {
      if (phase == 0) e.nccl.all_gather(e.member, x.data, combination(e.tensor).scratch(e.context), x.byte_size);
    } else if (phase == 0) {
      scatter(e, share);
    } else {
      const auto place_of = [&](uint32_t other) { return Bytes{element_at(y, share(other).first), e.bytes(share(other).count)}; };
      e.swap([&](uint32_t) { return place_of(e.place.index()); }, place_of);
    }
  }
  Status combine(const Exchange& e, uint32_t phase) const {
    if (phase != 0 || by_nccl(e.place, e.x().dtype)) return {};
    return combination(e.tensor).enqueue(e.kernel, e.context, e.tensor, element_at(e.y(), combination(e.tensor).range().first));
  }

 private:
  static constexpr uint64_t small_bytes = 256 << 10;  // of all participants
  static bool is_small(const Place& place, const heddle_tensor& x) { return x.byte_size * place.size() <= small_bytes; }

  uint32_t phases_ = 1;  // 2: shares are given to all
};

// Each participant combines a share, and gives it to the root.
class Reduce : public CombiningWith<NcclReducing, Rooted> {
 public:
  static constexpr uint32_t phases() { return 2; }
  Status prepare(const Place& place, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(Rooted::prepare(place, device, context));
    return prepare_parts(
        place, device, context, [&](const heddle_tensor& x) { return share_of(x, place.index(), place.size()); },
        [](const heddle_tensor&) { return false; }, 1);
  }
  void move(const Exchange& e, uint32_t phase) const {
    const heddle_tensor &x = e.x(), &y = e.y();
    const auto share = [&](uint32_t other) { return share_of(x, other, e.place.size()); };
    if (by_nccl(e.place, e.x().dtype)) {
      if (phase == 0) e.nccl.reduce(e.member, x.data, y.data, x.element_count, x.dtype, reduction(), root());
    } else if (phase == 0) {
      scatter(e, share);
    } else {
      const uint64_t own = e.bytes(share(e.place.index()).count);
      e.swap(
          [&](uint32_t other) {
            return Bytes{combined(e), other == root() ? own : 0};
          },
          [&](uint32_t other) {
            return Bytes{element_at(y, share(other).first), e.place.index() == root() ? e.bytes(share(other).count) : 0};
          });
    }
  }
  Status combine(const Exchange& e, uint32_t phase) const {
    const bool is_root = e.place.index() == root();
    if (phase == 1) return is_root || e.y().byte_size == 0 ? Status() : e.kernel.fill_zero(e.context, e.y().data, e.y().byte_size);
    return by_nccl(e.place, e.x().dtype)
               ? Status()
               : combination(e.tensor).enqueue(e.kernel, e.context, e.tensor,
                                               is_root ? element_at(e.y(), combination(e.tensor).range().first) : combined(e));
  }

 private:
  // Where a share is until it is sent: in scratch, after the elements of the others.
  char* combined(const Exchange& e) const {
    const Combination& own = combination(e.tensor);
    return own.scratch(e.context) + (e.place.size() - 1) * e.bytes(own.range().count);
  }
};

class ReduceScatter : public CombiningWith<NcclReducing, Sized> {
 public:
  static constexpr uint32_t phases() { return 1; }
  Status prepare(const Place& place, const Device& device, PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(Sized::prepare(place, device, context));
    return prepare_parts(
        place, device, context,
        [&](const heddle_tensor& x) {
          const int64_t block = x.element_count / place.size();
          return ElementRange{place.index() * block, block};
        },
        [](const heddle_tensor&) { return false; }, 0);
  }
  void move(const Exchange& e, uint32_t) const {
    const int64_t block = e.x().element_count / e.place.size();
    if (by_nccl(e.place, e.x().dtype))
      e.nccl.reduce_scatter(e.member, e.x().data, e.y().data, block, e.x().dtype, reduction());
    else
      scatter(e, [&](uint32_t other) { return ElementRange{other * block, block}; });
  }
  Status combine(const Exchange& e, uint32_t) const {
    return by_nccl(e.place, e.x().dtype) ? Status() : combination(e.tensor).enqueue(e.kernel, e.context, e.tensor, e.y().data);
  }
};

class Broadcast : public Rooted {
 public:
  static constexpr bool always_meets = false;
  static constexpr uint32_t phases() { return 1; }
  void move(const Exchange& e, uint32_t) const {
    if (e.x().byte_size > 0) e.nccl.broadcast(e.member, e.x().data, e.y().data, e.x().byte_size, root());
  }
  static Status combine(const Exchange&, uint32_t) { return {}; }
};

// Each waits for a byte of all others, which no one has before the others have come.
class Barrier {
 public:
  static constexpr bool always_meets = true;
  static constexpr uint32_t phases() { return 1; }
  static Status create(const CreateContext&) { return {}; }
  static Status prepare(const Place&, const Device&, PrepareContext& context) {
    return context.set_scratch(byte_width(HEDDLE_I32)), Status();
  }
  static void move(const Exchange& e, uint32_t) {
    if (e.tensor == 0) e.nccl.all_reduce(e.member, e.context.scratch, e.context.scratch, 1, HEDDLE_I32, Reduction::max);
  }
  static Status combine(const Exchange& e, uint32_t) { return e.kernel.copy_within(e.context, e.y().data, e.x().data, e.x().byte_size); }
};

class AllGather : public Sized {
 public:
  static constexpr bool always_meets = false;
  static constexpr uint32_t phases() { return 1; }
  static void move(const Exchange& e, uint32_t) {
    if (e.x().byte_size > 0) e.nccl.all_gather(e.member, e.x().data, e.y().data, e.x().byte_size);
  }
  static Status combine(const Exchange&, uint32_t) { return {}; }
};

class AllToAll : public Sized {
 public:
  static constexpr bool always_meets = false;
  static constexpr uint32_t phases() { return 1; }
  static void move(const Exchange& e, uint32_t) {
    const uint64_t block = e.y().byte_size / e.place.size();
    e.swap(
        [&](uint32_t other) {
          return Bytes{bytes_at(e.x().data, other * block), block};
        },
        [&](uint32_t other) {
          return Bytes{bytes_at(e.y().data, other * block), block};
        });
  }
  static Status combine(const Exchange& e, uint32_t) {
    const uint64_t block = e.y().byte_size / e.place.size();
    return e.kernel.copy_within(e.context, bytes_at(e.y().data, e.place.index() * block), bytes_at(e.x().data, e.place.index() * block),
                                block);
  }
};

// ---------------------------------------------------------------- the kernel

template <class Operation>
class NcclKernel final : public GpuKernel {
 public:
  // Where there is no NCCL, GPUs of one process copy from each other (kernels/collective.cc).
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(on(context));
    if (!library_.ask(context, "nccl.library", 1).ok()) return unsupported("it needs NCCL");
    HEDDLE_PLUGIN_CHECK(operation_.create(context));
    node_ = context.raw()->node_name;
    const std::string communicator = context.attributes.s("communicator");
    // The communicator of GPUs needs that of the ranks, which is made before it only if this kernel needs it, too.
    HEDDLE_PLUGIN_CHECK(ranks_.ask(context, "cpu.communicator", 1, communicator.c_str()));
    return nccl_.ask(context, "nccl.communicator", 1, communicator.c_str());
  }
  Status prepare(PrepareContext& context) {
    place_ = Place(context, *library_.made());
    context.set_tiles(1);
    context.reads_on_host({});
    constexpr uint32_t max_participants = 4095;  // whose trees of combinations text/combine.cuh has room for
    if (place_.size() > max_participants) return unsupported("a collective of " + std::to_string(place_.size()) + " GPUs");
    return operation_.prepare(place_, device(), context);
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const RunContext* const part = &context;
    return run_group(RunGroup(&part, 1));
  }
  Status run_group(const RunGroup& group) const {
    DeviceCollectives& nccl = *nccl_(group[0]);
    if (nccl.participants() != place_.size())
      return invalid("it was prepared for " + std::to_string(place_.size()) + " GPUs, and its communicator has " +
                     std::to_string(nccl.participants()));
    for (uint32_t i = 0; i < group.size(); ++i)
      if (of(group[i]).place_.index() != nccl.first() + i || of(group[i]).device().index != nccl.device(i))
        return invalid("its devices have another order than those of its communicator");
    if (place_.size() == 1) return copy_all(group, nccl);
    if (!Operation::always_meets && has_no_elements(group[0])) return {};
    HEDDLE_PLUGIN_CHECK(nccl.enter(Parts(group.parts(), group.size()), node_));
    const uint32_t tensors = group[0].input_count;  // the host makes groups of nodes whose tensors are alike
    for (uint32_t phase = 0; phase < of(group[0]).operation_.phases(); ++phase) {
      nccl.begin();
      for (uint32_t i = 0; i < group.size(); ++i)
        for (uint32_t tensor = 0; tensor < tensors; ++tensor) of(group[i]).operation_.move(exchange(group, nccl, i, tensor), phase);
      HEDDLE_PLUGIN_CHECK(nccl.end());
      for (uint32_t i = 0; i < group.size(); ++i) {
        HEDDLE_PLUGIN_CHECK(EnteredDevice::enter(of(group[i]).device().index));
        for (uint32_t tensor = 0; tensor < tensors; ++tensor)
          HEDDLE_PLUGIN_CHECK(of(group[i]).operation_.combine(exchange(group, nccl, i, tensor), phase));
      }
    }
    return nccl.leave();
  }

 private:
  static const NcclKernel& of(const RunContext& context) { return *static_cast<const NcclKernel*>(context.state); }
  static Exchange exchange(const RunGroup& group, DeviceCollectives& nccl, uint32_t member, uint32_t tensor) {
    return {nccl, of(group[member]), group[member], member, tensor, of(group[member]).place_};
  }
  static bool has_no_elements(const RunContext& context) {
    for (uint32_t tensor = 0; tensor < context.input_count; ++tensor)
      if (context.inputs[tensor]->byte_size > 0) return false;
    return true;
  }
  // All that is left where there is one participant.
  static Status copy_all(const RunGroup& group, DeviceCollectives& nccl) {
    for (uint32_t tensor = 0; tensor < group[0].input_count; ++tensor) {
      const Exchange e = exchange(group, nccl, 0, tensor);
      HEDDLE_PLUGIN_CHECK(EnteredDevice::enter(of(group[0]).device().index));
      HEDDLE_PLUGIN_CHECK(e.kernel.copy_within(e.context, e.y().data, e.x().data, e.x().byte_size));
    }
    return {};
  }

  Operation operation_;
  std::string node_;
  Place place_;
  Needed<operators::DeviceLibrary> library_;
  Needed<void> ranks_;
  Needed<DeviceCollectives> nccl_;
};

template <class Operation>
void add(Builder& plugin, const char* name, const char* kernel) {
  plugin.add(std::move(Op(name, "heddle", 1).kernels_only().kernel<NcclKernel<Operation>>("cuda").kernel_name(kernel).priority(1)));
}

void add_all(Builder& plugin) {
  add<AllReduce>(plugin, "AllReduce", "nccl:AllReduce");
  add<Reduce>(plugin, "Reduce", "nccl:Reduce");
  add<ReduceScatter>(plugin, "ReduceScatter", "nccl:ReduceScatter");
  add<Broadcast>(plugin, "Broadcast", "nccl:Broadcast");
  add<Barrier>(plugin, "Barrier", "nccl:Barrier");
  add<AllGather>(plugin, "AllGather", "nccl:AllGather");
  add<AllToAll>(plugin, "AllToAll", "nccl:AllToAll");
}

}  // namespace
}  // namespace nccl

void add_nccl_collective(Builder& plugin) {
  nccl::add_all(plugin);
}

}  // namespace heddle::cuda
