// Metrics: numbers of an evaluation that its net does not compute itself, from outputs and labels of each batch (TrainerOptions::metrics).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/session.h"
#include "train/fed_net.h"

namespace heddle {

// Copies are independent of each other. After the first batch nothing is allocated.
class Metrics {
 public:
  // Errors: invalid_argument (a text of another form), unknown_name (of a metric), duplicate_name.
  static Result<Metrics> parse(const std::vector<std::string>& texts);

  bool empty() const { return metrics_.empty(); }
  // Whether one of them is called `mean`.
  bool has(const std::string& mean) const;
  // Finds what they are of in a net. Errors: unknown_name; duplicate_name (the net has a number of the name of a metric);
  // invalid_argument (an output is on a device).
  Status find(const FedNet& net);
  // Checks dtypes and shapes as far as they are known of a batch that was fed, before it runs. Errors: dtype_mismatch, shape_mismatch.
  Status check(const FedNet& net, Context& prepared) const;

  // An evaluation: begin(), take() for each batch after it ran, and add_to(), which appends a mean for each metric. Errors of take(): those
  // of check(); invalid_argument, naming the sample of a label that is no class.
  void begin();
  Status take(const FedNet& net, const Context& ran);
  void add_to(std::vector<std::pair<std::string, double>>* means) const;
  // Each of several ranks has its own sums: add_sums() appends them, and take_sums() replaces them by those of all. Returns how many it has
  // taken.
  void add_sums(std::vector<double>* sums) const;
  size_t take_sums(std::span<const double> sums);
  // Appends the names of these means.
  void add_names(std::vector<std::string>* names) const;

 private:
  struct Metric {
    std::string text;            // "top5:logits,labels"
    std::string name;            // of its mean: "top5"
    std::string values, labels;  // the names of its logits and labels; or of its loss, and none
    int64_t top = 1;             // a label counts if it is among so many classes
    size_t output = 0;           // the values
    size_t labels_at = 0;        // an input or an output
    bool labels_are_input = false;
    int64_t counted = 0, correct = 0;  // labels; or samples, and nothing
    double sum = 0;                    // of the loss
    bool is_perplexity() const { return labels.empty(); }
  };
  static Result<Metric> parse_one(const std::string& text);
  static TensorView labels_of(const Metric& metric, const FedNet& net, const Context& context);
  static Status check_one(const Metric& metric, const FedNet& net, const TensorView& values, const TensorView& labels);
  static Status count(Metric& metric, const FedNet& net, const TensorView& logits, const TensorView& labels);

  std::vector<Metric> metrics_;
};

}  // namespace heddle
