#include "train/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

constexpr int64_t piece_bytes = 4 << 20;  // of what all get from rank 0
constexpr size_t kept_sizes = 8;          // sizes of what is told; texts may have any
constexpr const char *sums = "sums", *gathered = "gathered", *copies = "copies";

Net collective_net(const char* name, const char* type, DType dtype, const std::string& communicator, std::vector<Attribute> attributes) {
  NetBuilder b(name);
  attributes.push_back({"communicator", communicator});
  DeclaredType declared;
  declared.dtype = dtype;
  declared.ranked = true;
  declared.dims = {Dim::named("N")};
  b.output(b.add1(type, fmt::format("the training's {}", name), {b.input("mine", declared)}, std::move(attributes), "heddle"));
  return b.finish();
}

}  // namespace

Result<std::optional<RanksOfNet>> ranks_of(const Net& net) {
  const std::string prefix = ranks_key({});
  for (const auto& [key, value] : net.metadata) {
    if (!key.starts_with(prefix)) continue;
    RanksOfNet made;
    made.communicator = key.substr(prefix.size());
    if (made.communicator.empty() || !parse_int(value, &made.ranks) || made.ranks < 1 || made.ranks > INT32_MAX)
      return Status(Code::invalid_argument, fmt::format("net {} says {} is {}", quoted(net.name), quoted(key), quoted(value)),
                    "it was made for a number of ranks: make it again");
    return made.ranks > 1 ? std::optional(made) : std::nullopt;
  }
  return std::optional<RanksOfNet>();
}

Result<std::optional<RanksOfNet>> ranks_of(const Nets& nets, const std::string& name) {
  for (const Net& net : Internals::of(nets).nets)
    if (net.name == name) return ranks_of(net);
  return Status(Code::unknown_name, fmt::format("there is no net {}", quoted(name)), "choose one of the nets");
}

Result<std::unique_ptr<RankExchange>> RankExchange::create(const Session& learner, const std::string& use) {
  const Session::Impl& session = Internals::of(learner);
  HEDDLE_TRY(const std::optional<RanksOfNet> made, ranks_of(session.net));
  const CommunicatorOptions* const declared = made ? declaration_of(session.options.communicators, made->communicator) : nullptr;
  if (!declared || declared->size == 1) return std::unique_ptr<RankExchange>();  // runs say what the session lacks
  if (declared->size != made->ranks)
    return Status(Code::invalid_argument,
                  fmt::format("net {} was made for {} ranks, and communicator {} of the session has {}", quoted(session.net.name),
                              made->ranks, quoted(made->communicator), declared->size),
                  "make it for as many ranks as there are (DataParallelOptions::ranks)");
  CommunicatorOptions own = *declared;
  own.name = fmt::format("{}.{}", made->communicator, use);
  own.devices = {"cpu"};
  SessionOptions options;
  options.limits = session.options.limits;
  options.communicators = {own};
  std::vector<Net> nets;
  nets.push_back(collective_net(sums, "AllReduce", DType::f64, own.name, {}));
  nets.push_back(collective_net(gathered, "AllGather", DType::u8, own.name, {{"size", int64_t{own.size}}}));
  nets.push_back(collective_net(copies, "Broadcast", DType::u8, own.name, {{"root", int64_t{0}}}));
  HEDDLE_TRY(Session opened, Internals::runtime_of(learner).open(std::move(nets), options));
  Internals::of(opened).communicators->fail_if_broken();
  return std::unique_ptr<RankExchange>(new RankExchange(own.rank, own.size, std::move(opened)));
}

Status RankExchange::run(const char* net, DType dtype, int64_t count, const void* given, void* result, int64_t result_bytes,
                         RunCancellation& cancellation) {
  auto found = contexts_.find({net, count});
  if (found == contexts_.end()) {
    HEDDLE_TRY(Session of, nets_.net(net));
    HEDDLE_TRY(Context made, of.prepare({{dtype, Shape{count}, nullptr}}));
    if (contexts_.size() >= kept_sizes) contexts_.clear();
    found = contexts_.emplace(std::pair(std::string(net), count), std::move(made)).first;
  }
  Context& context = found->second;
  HEDDLE_CHECK(context.bind_input(0, given));
  HEDDLE_CHECK(context.bind_output(0, result, result_bytes));
  return cancellation.run(context, {});
}

Status RankExchange::sum(std::span<double> numbers, RunCancellation& cancellation) {
  if (numbers.empty()) return {};
  const std::vector<double> mine(numbers.begin(), numbers.end());
  const auto count = static_cast<int64_t>(mine.size());
  return run(sums, DType::f64, count, mine.data(), numbers.data(), count * byte_width(DType::f64), cancellation);
}

Result<std::vector<std::string>> RankExchange::texts(const std::string& mine, RunCancellation& cancellation) {
  const auto count = static_cast<size_t>(ranks_);
  std::vector<double> lengths(count);
  lengths[static_cast<size_t>(rank_)] = static_cast<double>(mine.size());
  HEDDLE_CHECK(sum(lengths, cancellation));
  const auto longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::string> all(count);
  if (longest == 0) return all;
  std::string given = mine, got(count * longest, '\0');
  given.resize(longest);
  HEDDLE_CHECK(
      run(gathered, DType::u8, static_cast<int64_t>(longest), given.data(), got.data(), static_cast<int64_t>(got.size()), cancellation));
  for (size_t r = 0; r < count; ++r) all[r] = got.substr(r * longest, static_cast<size_t>(lengths[r]));
  return all;
}

Status RankExchange::copy_first(std::span<std::byte> bytes, RunCancellation& cancellation) {
  std::vector<std::byte> mine(std::min(bytes.size(), static_cast<size_t>(piece_bytes)));
  for (size_t at = 0; at < bytes.size(); at += mine.size()) {
    const std::span<std::byte> piece = bytes.subspan(at, std::min(mine.size(), bytes.size() - at));
    if (is_first()) std::copy(piece.begin(), piece.end(), mine.begin());
    const auto count = static_cast<int64_t>(piece.size());
    HEDDLE_CHECK(run(copies, DType::u8, count, mine.data(), piece.data(), count, cancellation));
  }
  return {};
}

void RankExchange::leave(const std::string& why) noexcept {
  Internals::of(nets_).communicators->leave(why);
}

}  // namespace heddle
