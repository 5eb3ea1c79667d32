#include <iterator>

#include "conformance/cases/meeting_sizes.h"
#include "conformance/reference.h"

namespace heddle::conformance {

const std::vector<Row>& rows() {
  static const std::vector<Row>& all = *[] {
    auto* rows = new std::vector<Row>();
    for (const auto family : {pointwise_rows,
                              pointwise_unary_rows,
                              pointwise_activation_rows,
                              pointwise_cast_rows,
                              pointwise_program_rows,
                              pointwise_other_rows,
                              movement_rows,
                              movement_gradient_rows,
                              block_rows,
                              shape_rows,
                              indexing_rows,
                              scatter_rows,
                              lookup_rows,
                              selection_rows,
                              convolution_rows,
                              convolution_gradient_rows,
                              pooling_rows,
                              pooling_gradient_rows,
                              matrix_rows,
                              image_rows,
                              image_gradient_rows,
                              resize_rows,
                              collective_rows,
                              control_rows,
                              recurrent_rows,
                              recurrent_gradient_rows,
                              reduction_rows,
                              along_axis_rows,
                              normalization_rows,
                              normalization_channel_rows,
                              normalization_gradient_rows,
                              training_rows,
                              loss_gradient_rows,
                              optimizer_rows,
                              table_rows,
                              random_rows}) {
      std::vector<Row> own = family();
      for (Row& row : own)
        for (Case& one : cases_where_sizes_meet(row.type)) row.cases.push_back(std::move(one));
      rows->insert(rows->end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
    }
    return rows;
  }();
  return all;
}

}  // namespace heddle::conformance
