#include "plugin/declared_dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/text/text.h"

namespace heddle {
namespace {

constexpr size_t longest_text = 256;

bool is_name(const std::string& word) {
  return std::isalpha(static_cast<unsigned char>(word[0])) != 0 &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::string word;
  for (const char* c = text;; ++c) {
    if (*c != '\0' && *c != ' ') {
      word += *c;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    if (*c == '\0') return words;
  }
}

// Whether both may be the same; unknown extents in `known` are then set to those of `other`.
bool join_unknown(Shape* known, const Shape& other) {
  if (known->rank() != other.rank()) return false;
  for (int i = 0; i < other.rank(); ++i) {
    if ((*known)[i] >= 0 && other[i] >= 0 && (*known)[i] != other[i]) return false;
    (*known)[i] = std::max((*known)[i], other[i]);
  }
  return true;
}

}  // namespace

bool DeclaredDims::read_port(const heddle_port& port, bool output, Port* to, std::string* error) {
  if (!port.dims) return true;
  const auto wrong = [&](const std::string& why) {
    *error = fmt::format("port {} has dims {}: {}", quoted(port.name),
                         quoted(std::string_view(port.dims, strnlen(port.dims, longest_text))), why);
    return false;
  };
  if (strnlen(port.dims, longest_text + 1) > longest_text) return wrong("too long a text");
  to->declared = &port;
  for (const std::string& word : words_of(port.dims)) {
    Dim dim;
    if (word == "...") {
      if (to->has_rest) return wrong("\"...\" stands there twice");
      to->has_rest = true;
      dim.kind = Dim::Kind::rest;
    } else if (word == "*") {
      if (output) return wrong("\"*\" does not say an extent");
    } else if (parse_int(word, &dim.extent)) {
      if (dim.extent < 0) return wrong("an extent below 0");
      dim.kind = Dim::Kind::fixed;
    } else if (is_name(word)) {
      const auto found = std::find(names_.begin(), names_.end(), word);
      if (found == names_.end() && output) return wrong(fmt::format("no input says {}", quoted(word)));
      dim.kind = Dim::Kind::named;
      dim.name = static_cast<size_t>(found - names_.begin());
      if (found == names_.end()) names_.push_back(word);
      if (names_.size() > max_names) return wrong(fmt::format("an operator has at most {} names of dimensions", max_names));
    } else {
      return wrong(fmt::format("{} is no name, no number, \"*\" or \"...\"", quoted(word)));
    }
    to->dims.push_back(dim);
  }
  to->min_rank = static_cast<int>(to->dims.size()) - (to->has_rest ? 1 : 0);
  return to->min_rank <= max_rank || wrong(fmt::format("more than {} dimensions", max_rank));
}

bool DeclaredDims::read(const heddle_operator& op, std::string* error) {
  const auto says = [](const heddle_port* port) { return port->dims != nullptr; };
  inputs_.resize(std::any_of(op.inputs, op.inputs + op.input_count, says) ? op.input_count : 0);
  outputs_.resize(std::any_of(op.outputs, op.outputs + op.output_count, says) ? op.output_count : 0);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!read_port(*op.inputs[i], false, &inputs_[i], error)) return false;
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (!read_port(*op.outputs[o], true, &outputs_[o], error)) return false;
  const bool bound_rest = std::any_of(inputs_.begin(), inputs_.end(), [](const Port& p) { return p.has_rest; });
  for (const Port& port : outputs_)
    if (port.has_rest && !bound_rest) {
      *error = fmt::format("port {} has dims {}: no input says \"...\"", quoted(port.declared->name), quoted(port.declared->dims));
      return false;
    }
  return true;
}

const DeclaredDims::Port* DeclaredDims::port_of(const std::vector<Port>& ports, size_t index) {
  if (ports.empty()) return nullptr;
  const Port& port = ports[std::min(index, ports.size() - 1)];  // a variadic last one takes all further values
  return port.declared ? &port : nullptr;
}

std::string DeclaredDims::text(const Port& port) const {
  return fmt::format("[{}]", join(words_of(port.declared->dims), ", "));
}

Status DeclaredDims::match_input(size_t input, const Port& port, const heddle_tensor& view, Bound* bound) const {
  const Shape shape(view.dims, view.rank);
  const auto wrong = [&](const std::string& why) {
    return Status(Code::shape_mismatch,
                  fmt::format("input {} is {}, declared as {}{}", quoted(port.declared->name), shape.text(), text(port), why));
  };
  const auto named = [&](size_t other) { return quoted(input_port(other)->declared->name); };
  const int beyond = view.rank - port.min_rank;
  if (beyond < 0 || (beyond > 0 && !port.has_rest)) return wrong("");
  int axis = 0;
  for (const Dim& dim : port.dims) {
    if (dim.kind == Dim::Kind::rest) {
      const Shape rest(view.dims + axis, beyond);
      if (bound->rest_said_by == no_input) {
        bound->rest = rest;
        bound->rest_said_by = input;
      } else if (!join_unknown(&bound->rest, rest)) {
        return wrong(fmt::format(": \"...\" is {} in input {}", bound->rest.text(), named(bound->rest_said_by)));
      }
      axis += beyond;
      continue;
    }
    const int64_t extent = view.dims[axis++];
    if (dim.kind == Dim::Kind::fixed && extent >= 0 && extent != dim.extent) return wrong("");
    if (dim.kind != Dim::Kind::named) continue;
    int64_t& known = bound->extents[dim.name];
    size_t& said_by = bound->said_by[dim.name];
    if (known >= 0 && extent >= 0 && known != extent)
      return wrong(fmt::format(": {} is {} in input {}", names_[dim.name], known, named(said_by)));
    if (said_by == no_input || (known < 0 && extent >= 0)) said_by = input;
    known = std::max(known, extent);
  }
  return {};
}

Status DeclaredDims::match(std::span<const heddle_tensor* const> inputs, Bound* bound) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Port* const port = input_port(i); port && inputs[i]) HEDDLE_CHECK(match_input(i, *port, *inputs[i], bound));
  return {};
}

void DeclaredDims::fill(size_t index, const Bound& bound, Shape* shape) const {
  const Port* const port = input_port(index);
  if (!port) return;
  int axis = 0;
  const auto say = [&](int64_t extent) {
    if (axis < shape->rank() && (*shape)[axis] < 0) (*shape)[axis] = extent;
    ++axis;
  };
  const int beyond = shape->rank() - port->min_rank;
  const bool rest_known = bound.rest_said_by != no_input && bound.rest.rank() == beyond;
  for (const Dim& dim : port->dims) {
    if (dim.kind == Dim::Kind::rest)
      for (int i = 0; i < beyond; ++i) say(rest_known ? bound.rest[i] : -1);
    else
      say(dim.kind == Dim::Kind::named ? bound.extents[dim.name] : dim.kind == Dim::Kind::fixed ? dim.extent : -1);
  }
}

Status DeclaredDims::follow(size_t output, const Bound& bound, heddle_type* type) const {
  if (!output_port(output)) return {};
  const Port& port = *output_port(output);
  for (const Dim& dim : port.dims)
    if ((dim.kind == Dim::Kind::named && bound.said_by[dim.name] == no_input) ||
        (dim.kind == Dim::Kind::rest && bound.rest_said_by == no_input))
      return {Code::shape_mismatch, fmt::format("output {} is declared as {}, and the inputs that say these dimensions are absent",
                                                quoted(port.declared->name), text(port))};
  if (port.min_rank + bound.rest.rank() > max_rank && port.has_rest)
    return {Code::shape_mismatch, fmt::format("output {} would have more than {} dimensions", quoted(port.declared->name), max_rank)};
  const Shape shape = shape_of(port, bound.extents, bound.rest);
  type->rank = shape.rank();
  for (int i = 0; i < shape.rank(); ++i) type->dims[i] = shape[i];
  return {};
}

Status DeclaredDims::check_output(size_t output, const Bound& bound, const TensorType& type) const {
  if (!output_port(output)) return {};
  const Port& port = *output_port(output);
  heddle_type declared = {};
  HEDDLE_CHECK(follow(output, bound, &declared));
  Shape expected(declared.dims, declared.rank);
  if (!type.dynamic && join_unknown(&expected, type.shape)) return {};
  return {Code::shape_mismatch, fmt::format("the operator gives output {} the dims {}, and declares it as {}", quoted(port.declared->name),
                                            type.dynamic ? "that the run finds" : type.shape.text(), text(port))};
}

Shape DeclaredDims::shape_of(const Port& port, std::span<const int64_t> extents, const Shape& rest) {
  Shape shape;
  for (const Dim& dim : port.dims) {
    if (dim.kind == Dim::Kind::rest) {
      for (int i = 0; i < rest.rank(); ++i) shape.push_back(rest[i]);
      continue;
    }
    constexpr int64_t any = 3;
    shape.push_back(dim.kind == Dim::Kind::named ? extents[dim.name] : dim.kind == Dim::Kind::fixed ? dim.extent : any);
  }
  return shape;
}

}  // namespace heddle
