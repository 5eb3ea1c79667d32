// Contents of variables for nets that are not open.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

using ContentsByName = std::map<std::string, std::shared_ptr<const Blob>, std::less<>>;

// Sets the initial content of all variables of the nets, but for replicas, to the one of that name; `where` says where these are from,
// "the session" or "the checkpoint". Others are ignored. Returns
// how many were set. After an error some of the nets are changed. Errors, all at once: unknown_name, dtype_mismatch and
// shape_mismatch, naming the net and the variable.
Result<int64_t> set_contents(std::vector<Net>& nets, const ContentsByName& contents, std::string_view where);

}  // namespace heddle
