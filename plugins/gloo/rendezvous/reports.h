// Reports of a collective that failed, so that all ranks can say who was missing: a rank writes its own once for an attempt (meeting.h),
// and reads those of the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/job_store.h"
#include "shared/ranks/rank_report.h"

namespace heddle::rendezvous {

using Report = operators::RankReport;

// One text for a report, and back. decode() returns false for any other text, one that is cut off or damaged included.
std::string encode(const Report& report);
bool decode(std::string_view text, Report* report);

// Writes the report of `rank`, whose store this is. A second call for an attempt changes nothing.
Status report(Store& store, const std::string& attempt, int32_t rank, const Report& report);

// Reads the reports that are there into `reports`, by rank, but for those that it has already; nullopt: the rank has written none so far. A
// report that is damaged is one with that reason. Errors: those of Store::get(); what was read before is in `reports`.
Status read_reports(Store& store, const std::string& attempt, int32_t ranks, std::vector<std::optional<Report>>* reports);

}  // namespace heddle::rendezvous
