// The objectives of a trial that was a run, from the run's records: points, the columns of the built-in
// trainer, and lines of the log. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"
#include "sweep/study/definition.h"

namespace stoker::trials {

/// Whether to read all of each file, or its end, which has the newest values.
enum class CurveExtent { all, end };

/// A metric of rank 0 by step, over all attempts: a later attempt counts from its first step on. Points come
/// before columns of epochs.csv (val_top1, val_loss) and metrics-0000.csv (loss, top1). Empty without it.
std::map<std::int64_t, double> read_curve(const record::RunFolder& run, std::string_view metric,
                                          CurveExtent extent);

/// The last value of each objective, in their order; without a curve, a summary value of the run or "metric:
/// value" in its log. NotFound naming the first objective without a value.
Result<std::vector<double>> read_values(const record::RunFolder& run, const sweep::Definition& definition);

}  // namespace stoker::trials
