#include "transform/matrix_form.h"

#include <algorithm>

namespace heddle {
namespace {

// Labels of two operands grouped by their role in the product, each group in the order of `order`.
struct Groups {
  const std::string &left, &right, &output;

  std::string batch(const std::string& order) const {
    return those(order, [&](char c) { return has_label(left, c) && has_label(right, c) && has_label(output, c); });
  }
  std::string depth(const std::string& order) const {
    return those(order, [&](char c) { return has_label(left, c) && has_label(right, c) && !has_label(output, c); });
  }
  std::string rows(const std::string& order) const {
    return those(order, [&](char c) { return has_label(left, c) && !has_label(right, c); });
  }
  std::string columns(const std::string& order) const {
    return those(order, [&](char c) { return !has_label(left, c) && has_label(right, c); });
  }
  template <class Test>
  static std::string those(const std::string& order, Test test) {
    std::string labels;
    for (const char c : order)
      if (test(c)) labels += c;
    return labels;
  }
};

// Adds the cost of reading an operand that lies as `labels` as [batch, outer, inner]; sets `turned` if it is read transposed.
void meet(const std::string& labels, const std::string& batch, const std::string& outer, const std::string& inner,
          const LabelExtents& extents, bool* turned, MatrixForm* form) {
  *turned = false;
  if (labels == batch + outer + inner) return;
  *turned = batch.empty() && labels == inner + outer;
  if (!*turned) form->moved += element_count(labels, extents);
}

}  // namespace

bool has_label(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

int64_t element_count(const std::string& labels, const LabelExtents& extents) {
  int64_t count = 1;
  for (const char label : labels) count *= extents[static_cast<size_t>(label)];
  return count;
}

MatrixForm matrix_form(const std::string& first, const std::string& second, const std::string& output, bool ordered,
                       const LabelExtents& extents) {
  MatrixForm best;
  bool found = false;
  for (const bool swapped : {false, true}) {
    const std::string &left = swapped ? second : first, &right = swapped ? first : second;
    const Groups groups = {left, right, output};
    for (const std::string* batch_order : {&output, &left, &right})
      for (const std::string* depth_order : {&left, &right})
        for (const std::string* rows_order : {&output, &left})
          for (const std::string* columns_order : {&output, &right}) {
            MatrixForm form;
            form.swapped = swapped;
            form.batch = groups.batch(*batch_order);
            form.depth = groups.depth(*depth_order);
            form.rows = groups.rows(*rows_order);
            form.columns = groups.columns(*columns_order);
            meet(left, form.batch, form.rows, form.depth, extents, &form.left_turned, &form);
            meet(right, form.batch, form.depth, form.columns, extents, &form.right_turned, &form);
            if (ordered && form.result() != output) form.moved += element_count(output, extents);
            if (found && form.moved >= best.moved) continue;
            best = form;
            found = true;
          }
  }
  return best;
}

bool lies_as_matrices(const std::string& first, const std::string& second, const std::string& output, const LabelExtents& extents,
                      int64_t* calls) {
  const Groups groups = {first, second, output};
  const std::string batch = groups.batch(output), rows = groups.rows(first), columns = groups.columns(second), depth = groups.depth(first);
  if (rows.empty() || columns.empty() || depth.empty()) return false;
  const auto has_run = [](const std::string& labels, const std::string& run) { return labels.find(run) != std::string::npos; };
  for (const std::string* labels : {&first, &second, &output})
    if (has_label(batch, labels->back())) return false;
  *calls = element_count(batch, extents);
  if (has_run(first, batch) && has_run(second, batch) && has_run(output, batch)) {
    *calls = 1;
  } else {
    int64_t largest = 1;
    for (const char label : batch) largest = std::max(largest, extents[static_cast<size_t>(label)]);
    *calls /= largest;
  }
  return has_run(first, rows) && has_run(output, rows) && has_run(second, columns) && has_run(output, columns) && has_run(first, depth) &&
         has_run(second, depth);
}

}  // namespace heddle
