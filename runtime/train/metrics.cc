#include "train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "base/half.h"
#include "base/text/text.h"
#include "session/session_impl.h"

namespace heddle {
namespace {

constexpr const char* metric_forms = "the metrics are accuracy:LOGITS,LABELS, topK:LOGITS,LABELS with K from 1 on, and perplexity:LOSS";

bool is_label_type(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32;
}

// Returns the names of the ports that fit.
template <class Fits>
std::vector<std::string> fitting(const std::vector<PortInfo>& ports, const Fits& fits) {
  std::vector<std::string> names;
  for (const PortInfo& port : ports)
    if (fits(port)) names.push_back(port.name);
  return names;
}

// Says which names are valid in the place of one that is not. `kind`: "outputs that ...".
std::string valid_names(const std::string& wrong, const std::vector<std::string>& names, const char* kind) {
  if (names.empty()) return fmt::format("let the net have {}: it has none", kind);
  const std::string near = suggestion(wrong, names);
  return near.empty() ? fmt::format("its {}: {}", kind, all_quoted(names)) : near;
}

std::string type_text(const TensorView& view) {
  return fmt::format("{} {}", to_string(view.dtype), view.shape.text());
}

int64_t label_at(const TensorView& labels, int64_t i) {
  if (labels.dtype == DType::i32) {
    int32_t label = 0;
    std::memcpy(&label, static_cast<const std::byte*>(labels.data) + i * static_cast<int64_t>(sizeof(label)), sizeof(label));
    return label;
  }
  int64_t label = 0;
  std::memcpy(&label, static_cast<const std::byte*>(labels.data) + i * static_cast<int64_t>(sizeof(label)), sizeof(label));
  return label;
}

// Returns whether fewer than `top` classes come before that of the label: those with a larger logit, and with an equal one and a smaller
// number. Where a logit is a NaN, no order of the classes means anything.
template <class T, class ToNumber>
bool is_among(const T* row, int64_t classes, int64_t label, int64_t top, const ToNumber& to_number) {
  const auto own = to_number(row[label]);
  int64_t before = 0, nans = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const auto other = to_number(row[c]);
    before += static_cast<int64_t>(other > own) + static_cast<int64_t>(other == own && c < label);
    nans += static_cast<int64_t>(other != other);
  }
  return nans == 0 && before < top;
}

bool is_among(const TensorView& logits, int64_t row, int64_t label, int64_t top) {
  const int64_t classes = logits.shape[logits.shape.rank() - 1];
  const auto same = [](auto number) { return number; };
  switch (logits.dtype) {
    case DType::f16:
      return is_among(static_cast<const uint16_t*>(logits.data) + row * classes, classes, label, top, float_of_f16);
    case DType::bf16:
      return is_among(static_cast<const uint16_t*>(logits.data) + row * classes, classes, label, top, float_of_bf16);
    case DType::f32:
      return is_among(static_cast<const float*>(logits.data) + row * classes, classes, label, top, same);
    default:
      return is_among(static_cast<const double*>(logits.data) + row * classes, classes, label, top, same);
  }
}

// Whether the labels have the dims of the logits without the classes, and perhaps one of 1 after them.
bool are_labels_of(const Shape& labels, const Shape& logits) {
  const int rank = logits.rank() - 1;
  if (labels.rank() != rank && !(labels.rank() == rank + 1 && labels[rank] == 1)) return false;
  for (int d = 0; d < rank; ++d)
    if (labels[d] != logits[d]) return false;
  return true;
}

// Whether a run alone knows how large the output is.
bool is_known_late(Context& context, size_t output) {
  const Plan& plan = Internals::execution(context).plan();
  return plan.values[plan.outputs[output].index].type.late();
}

}  // namespace

Result<Metrics::Metric> Metrics::parse_one(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), of = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  Metric made;
  made.text = text;
  made.name = kind;
  const bool is_top = kind.starts_with("top") && kind.size() > 3 && kind.find_first_not_of("0123456789", 3) == std::string::npos;
  if (kind != "accuracy" && kind != "perplexity" && !is_top)
    return Status(Code::unknown_name, fmt::format("metric {}: there is no metric {}", quoted(text), quoted(kind)), metric_forms);
  if (is_top && (kind[3] == '0' || !parse_int(std::string_view(kind).substr(3), &made.top)))
    return Status(Code::invalid_argument, fmt::format("metric {}: {} is no number of classes", quoted(text), kind.substr(3)), metric_forms);
  if (kind == "perplexity") {
    made.values = of;
    if (!of.empty()) return made;
    return Status(Code::invalid_argument, fmt::format("metric {}: it does not say of which loss", quoted(text)), metric_forms);
  }
  const size_t comma = of.rfind(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == of.size())
    return Status(Code::invalid_argument, fmt::format("metric {}: it does not say of which logits and labels", quoted(text)), metric_forms);
  made.values = of.substr(0, comma);
  made.labels = of.substr(comma + 1);
  return made;
}

Result<Metrics> Metrics::parse(const std::vector<std::string>& texts) {
  Metrics made;
  for (const std::string& text : texts) {
    HEDDLE_TRY(Metric one, parse_one(text));
    if (made.has(one.name))
      return Status(Code::duplicate_name, fmt::format("metric {}: there is another one whose mean is {}", quoted(text), quoted(one.name)),
                    "leave one of them out");
    made.metrics_.push_back(std::move(one));
  }
  return made;
}

bool Metrics::has(const std::string& mean) const {
  return std::any_of(metrics_.begin(), metrics_.end(), [&](const Metric& m) { return m.name == mean; });
}

Status Metrics::find(const FedNet& net) {
  const Session::Impl& session = Internals::of(net.session());
  const std::vector<PortInfo>&outputs = net.outputs(), inputs = session.inputs();
  const auto wrong = [&](const Metric& metric, Code code, const std::string& what, const std::string& hint) -> Status {
    return {code, fmt::format("metric {}: net {} {}", quoted(metric.text), quoted(net.session().name()), what), hint};
  };
  // Where a file does not say what an output is, check() will.
  const auto may_be_float = [](const PortInfo& port) { return is_float(port.dtype) || port.dtype == DType::none; };
  const auto is_logits = [&](const PortInfo& port) { return may_be_float(port) && (!port.ranked || port.shape.rank() >= 2); };
  const auto is_loss = [&](const PortInfo& port) { return may_be_float(port) && (!port.ranked || port.shape.rank() == 0); };
  const auto is_labels = [](const PortInfo& port) { return is_label_type(port.dtype); };
  for (Metric& metric : metrics_) {
    const std::optional<size_t> clash = net.output(metric.name), values = net.output(metric.values);
    if (clash && outputs[*clash].shape.rank() == 0)  // of an unknown rank, too
      return wrong(metric, Code::duplicate_name, fmt::format("has the output {} itself", quoted(metric.name)),
                   "leave the metric out: the net computes that mean");
    if (!values)
      return wrong(metric, Code::unknown_name, fmt::format("has no output {}", quoted(metric.values)),
                   metric.is_perplexity()
                       ? valid_names(metric.values, fitting(outputs, is_loss), "outputs that may be one number")
                       : valid_names(metric.values, fitting(outputs, is_logits), "outputs that may have an axis of classes"));
    metric.output = *values;
    std::vector<std::string> read = {metric.values};
    if (!metric.is_perplexity()) {
      const std::optional<size_t> input = net.input(metric.labels), output = net.output(metric.labels);
      if (!input && !output) {
        std::vector<std::string> names = fitting(inputs, is_labels);
        for (std::string& name : fitting(outputs, is_labels)) names.push_back(std::move(name));
        return wrong(metric, Code::unknown_name, fmt::format("has no input or output {}", quoted(metric.labels)),
                     valid_names(metric.labels, names, "inputs and outputs that may be labels"));
      }
      metric.labels_are_input = input.has_value();
      metric.labels_at = input ? *input : *output;
      if (!input) read.push_back(metric.labels);
    }
    for (const auto& placed : session.options.placed_ports)
      if (std::find(read.begin(), read.end(), placed.first) != read.end())
        return wrong(metric, Code::invalid_argument,
                     fmt::format("has output {} on a device, and metrics are computed on the host", quoted(placed.first)),
                     "open the session without that placed port");
  }
  return {};
}

TensorView Metrics::labels_of(const Metric& metric, const FedNet& net, const Context& context) {
  if (metric.is_perplexity()) return {};
  return metric.labels_are_input ? net.fed(metric.labels_at) : context.output(metric.labels_at);
}

Status Metrics::check_one(const Metric& metric, const FedNet& net, const TensorView& values, const TensorView& labels) {
  const auto wrong = [&](Code code, const std::string& name, const TensorView& view, const std::string& why,
                         const std::string& hint) -> Status {
    return {code, fmt::format("metric {}: {} is {}{}", quoted(metric.text), quoted(name), type_text(view), why), hint};
  };
  if (!is_float(values.dtype)) return wrong(Code::dtype_mismatch, metric.values, values, "", "name an output of floats");
  const int rank = values.shape.rank();
  if (metric.is_perplexity())
    return rank == 0 ? Status() : wrong(Code::shape_mismatch, metric.values, values, ", and not one number", "name an output without axes");
  if (!is_label_type(labels.dtype)) return wrong(Code::dtype_mismatch, metric.labels, labels, "", "name labels that are i64 or i32");
  if (rank < 2 || values.shape[0] != net.batch())
    return wrong(Code::shape_mismatch, metric.values, values, fmt::format(", of a batch of {} samples", net.batch()),
                 "name an output whose first axis is that of the samples, and whose last one is that of the classes");
  if (!are_labels_of(labels.shape, values.shape))
    return wrong(Code::shape_mismatch, metric.labels, labels, fmt::format(", and {} is {}", quoted(metric.values), type_text(values)),
                 "name labels with the dims of the logits but for the last one, that of the classes");
  if (metric.top > values.shape[rank - 1])
    return wrong(Code::shape_mismatch, metric.values, values, fmt::format(", fewer than {} classes", metric.top), "ask for fewer");
  return {};
}

Status Metrics::check(const FedNet& net, Context& prepared) const {
  for (const Metric& metric : metrics_) {
    const bool is_late = is_known_late(prepared, metric.output) ||
                         (!metric.is_perplexity() && !metric.labels_are_input && is_known_late(prepared, metric.labels_at));
    if (!is_late) HEDDLE_CHECK(check_one(metric, net, prepared.output(metric.output), labels_of(metric, net, prepared)));
  }
  return {};
}

void Metrics::begin() {
  for (Metric& metric : metrics_) {
    metric.counted = metric.correct = 0;
    metric.sum = 0;
  }
}

// Counts the labels of the samples that do not only fill the batch.
Status Metrics::count(Metric& metric, const FedNet& net, const TensorView& logits, const TensorView& labels) {
  const int64_t classes = logits.shape[logits.shape.rank() - 1], of_sample = labels.shape.element_count() / net.batch();
  for (int64_t i = 0; i < net.samples() * of_sample; ++i) {
    const int64_t label = label_at(labels, i);
    if (label < 0 || label >= classes)
      return {Code::invalid_argument,
              fmt::format("metric {}: label {} of sample {} is no class of {}", quoted(metric.text), label, net.sample_name(i / of_sample),
                          quoted(metric.values)),
              fmt::format("give labels from 0 to {}", classes - 1)};
    metric.correct += is_among(logits, i, label, metric.top) ? 1 : 0;
    ++metric.counted;
  }
  return {};
}

Status Metrics::take(const FedNet& net, const Context& ran) {
  for (Metric& metric : metrics_) {
    const TensorView values = ran.output(metric.output), labels = labels_of(metric, net, ran);
    HEDDLE_CHECK(check_one(metric, net, values, labels));
    if (!metric.is_perplexity()) {
      HEDDLE_CHECK(count(metric, net, values, labels));
      continue;
    }
    metric.sum += element(values, 0) * static_cast<double>(net.samples());
    metric.counted += net.samples();
  }
  return {};
}

void Metrics::add_to(std::vector<std::pair<std::string, double>>* means) const {
  for (const Metric& metric : metrics_) {
    const auto counted = static_cast<double>(metric.counted);
    means->emplace_back(metric.name,
                        metric.is_perplexity() ? std::exp(metric.sum / counted) : static_cast<double>(metric.correct) / counted);
  }
}

void Metrics::add_sums(std::vector<double>* sums) const {
  for (const Metric& metric : metrics_)
    for (const double number : {static_cast<double>(metric.counted), static_cast<double>(metric.correct), metric.sum})
      sums->push_back(number);
}

size_t Metrics::take_sums(std::span<const double> sums) {
  size_t at = 0;
  for (Metric& metric : metrics_) {
    metric.counted = static_cast<int64_t>(sums[at++]);
    metric.correct = static_cast<int64_t>(sums[at++]);
    metric.sum = sums[at++];
  }
  return at;
}

void Metrics::add_names(std::vector<std::string>* names) const {
  for (const Metric& metric : metrics_) names->push_back(metric.name);
}

}  // namespace heddle
