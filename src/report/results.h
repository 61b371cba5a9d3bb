// The settings and results of a run by name, for comparisons between runs. Functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/facts.h"

namespace stoker::report {

/// Which values of a metric are good.
enum class Better { unknown, lower, higher };
/// By the words in its name: "val_acc", "loss", "samples/s".
Better better_of(std::string_view name);

/// All results that are finite, in the order of a table: quality, then speed. For a metric its last value.
std::vector<std::pair<std::string, double>> results_of(const RunFacts& run);

/// All settings of its job that are set, except settings that do not change a result: "train.optimizer.lr".
std::vector<std::pair<std::string, std::string>> settings_of(const RunFacts& run);

}  // namespace stoker::report
