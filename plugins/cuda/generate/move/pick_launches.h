// Implements operators each of whose output elements shows one element of the input, selected by an index, a length or a position
// (text/pick.cuh): Gather, GatherND, GatherElements, ReverseSequence, Trilu, OneHot and Pad. An index out of range or a length longer than
// the sequence gives zeros, and is reported (text/fault.cuh).
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"
#include "shared/movement/pads.h"

namespace heddle::cuda {

class PickLaunches : public Launches {
 public:
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 protected:
  // Returns the name of the way of picking in text/pick.cuh.
  virtual const char* way() const = 0;
  // Writes the parameters that follow y, x and count. If `for_text`, their values do not matter, and content of operands may be missing.
  virtual plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const = 0;
  // Adds the members of F after nothing(), constants among them.
  virtual void functions(const Operands&, KernelText*) const {}
  // Returns the number of bytes that are picked together.
  virtual int64_t row_bytes(const Operands& operands) const { return width(operands); }
  // Returns true if operands must be read on the host; they are checked in a run whose content varies.
  virtual bool reads_operands(const Operands&) const { return false; }
  virtual bool knows_operands(const Operands&) const { return true; }
  virtual std::string nothing(const Operands&) const { return "T()"; }
  virtual uint32_t source_port() const { return 0; }

  static int64_t width(const Operands& operands) { return static_cast<int64_t>(plugin::byte_width(operands.output(0)->dtype)); }
  // Writes a number of units or lines, and the divider by which the text counts them.
  void count(ParameterWriter& writer, const char* name, const char* divider, int64_t value) const {
    writer.number(name, value);
    writer.number(divider, divider_of(value, wide_));
  }
  int64_t unit_ = 1;
  bool varies_ = false, wide_ = false;

 private:
  int64_t units(const Operands& operands) const { return static_cast<int64_t>(operands.output(0)->byte_size) / unit_; }
  plugin::Status all_parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const;
};

class GatherLaunches final : public PickLaunches {
 public:
  int64_t axis = 0;

 private:
  const char* way() const override { return "Rows"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  int64_t row_bytes(const Operands& operands) const override;
};

class GatherNDLaunches final : public PickLaunches {
 public:
  int64_t batch = 0;

 private:
  const char* way() const override { return "Tuples"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
  int64_t row_bytes(const Operands& operands) const override;
};

class GatherElementsLaunches final : public PickLaunches {
 public:
  int64_t axis = 0;

 private:
  const char* way() const override { return "Elements"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
};

class ReverseLaunches final : public PickLaunches {
 public:
  bool time_first = true;

 private:
  const char* way() const override { return "Reversed"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
  int64_t row_bytes(const Operands& operands) const override;
};

class TriluLaunches final : public PickLaunches {
 public:
  bool upper = true;

 private:
  const char* way() const override { return "Triangle"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
};

class OneHotLaunches final : public PickLaunches {
 public:
  int64_t axis = -1;

 private:
  const char* way() const override { return "Hot"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  bool reads_operands(const Operands& operands) const override { return !operands.is_constant(1); }
  bool knows_operands(const Operands& operands) const override { return operands.is_known(1); }
  uint32_t source_port() const override { return 2; }
};

class PadLaunches final : public PickLaunches {
 public:
  operators::PadMode mode = operators::PadMode::constant;

 private:
  const char* way() const override { return "Padded"; }
  plugin::Status parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
  int64_t row_bytes(const Operands& operands) const override;
  bool reads_operands(const Operands& operands) const override {
    return !operands.is_constant(operators::pads_port) || !operands.is_constant(operators::pad_axes_port);
  }
  bool knows_operands(const Operands& operands) const override {
    return operands.is_known(operators::pads_port) && operands.is_known(operators::pad_axes_port);
  }
  std::string nothing(const Operands& operands) const override;
  plugin::Status look(const Operands& operands, operators::PadPlan* plan) const;
};

}  // namespace heddle::cuda
