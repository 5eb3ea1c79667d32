// The variables of a session: read and written one by one, or all of them with a file.
#include <fmt/format.h>

#include <new>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "session/plain_values.h"
#include "session/session_impl.h"
#include "state/variables_file.h"

namespace heddle {

std::vector<std::string> Session::variables() const {
  return or_empty("no memory for the names of variables", [&] {
    std::vector<std::string> names;
    for (size_t i = 0; i < impl_->variables->size(); ++i)
      if (!impl_->variables->is_replica(i)) names.push_back(impl_->variables->name(i));
    return names;
  });
}

namespace {

Result<size_t> find_variable(const VariableStore& store, const std::string& name) {
  for (size_t i = 0; i < store.size(); ++i)
    if (store.name(i) == name) return i;
  return Status(Code::unknown_name, fmt::format("the session has no variable {}", quoted(name)), suggestion(name, store.names()));
}

}  // namespace

Result<Tensor> Session::read_variable(const std::string& name, const RunOptions& options) const try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(const size_t i, find_variable(*impl_->variables, name));
  Tensor tensor(impl_->variables->dtype(i), impl_->variables->shape(i));
  if (tensor.dtype() != impl_->variables->dtype(i)) throw std::bad_alloc();
  HEDDLE_CHECK(impl_->variables->read(i, tensor.data(), Interruption(deadline_of(options))));
  return tensor;
} catch (...) {
  return status_of_exception();
}

Status Session::write_variable(const std::string& name, const TensorView& value, const RunOptions& options) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  HEDDLE_TRY(const size_t i, find_variable(*impl_->variables, name));
  if (impl_->variables->is_replica(i))
    return {Code::invalid_argument, fmt::format("variable {} is a replica", quoted(name)),
            "write the variable that it is a replica of: all its replicas get what is written to it"};
  const DType dtype = impl_->variables->dtype(i);
  const Shape& shape = impl_->variables->shape(i);
  if (value.dtype != dtype || value.shape != shape)
    return {value.dtype != dtype ? Code::dtype_mismatch : Code::shape_mismatch,
            fmt::format("variable {} is {}{}, the value is {}{}", quoted(name), to_string(dtype), shape.text(), to_string(value.dtype),
                        value.shape.text())};
  if (!value.data && value.byte_size() > 0)
    return {Code::invalid_argument, fmt::format("the value for variable {} has no data", quoted(name)), "give its bytes"};
  return impl_->variables->write(i, value.data, Interruption(deadline_of(options)));
} catch (...) {
  return status_of_exception();
}

Status Session::initialize(uint64_t seed, bool overwrite, const RunOptions& options) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  return impl_->variables->initialize(seed, overwrite, Interruption(deadline_of(options)));
} catch (...) {
  return status_of_exception();
}

int64_t Session::variable_bytes() const {
  return impl_->variables->bytes();
}

Status Session::save_variables(const std::string& path, const RunOptions& options) const try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  return heddle::save_variables(*impl_->variables, path, Interruption(deadline_of(options)));
} catch (...) {
  return status_of_exception();
}

Status Session::load_variables(const std::string& path, const LoadVariablesOptions& what, const RunOptions& options) try {
  HEDDLE_CHECK(impl_->runtime->made.check());
  return heddle::load_variables(*impl_->variables, path, what, impl_->options.limits, Interruption(deadline_of(options)));
} catch (...) {
  return status_of_exception();
}

}  // namespace heddle
