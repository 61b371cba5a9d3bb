// A trial that ran with several seeds: its value and how far the seeds are from each other. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// The value of each objective over all seeds. REQUIRES: at least one seed, and as many values for each.
std::vector<double> average_of(const SeedValues& seeds, SeedAverage average);
/// The standard deviation of an objective over the seeds of a trial; NaN with fewer than two seeds.
double spread_of(const StudyTrial& trial, std::size_t objective);
/// The largest difference between two seeds of a trial; NaN with fewer than two seeds.
double range_of(const StudyTrial& trial, std::size_t objective);
/// "loss 0.31 ± 0.02, size 4": the values of a complete trial.
std::string values_text(const Definition& definition, const StudyTrial& trial);

}  // namespace stoker::sweep
