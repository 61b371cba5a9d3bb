// Tries loader settings on a dataset, each in a process of its own, so that one trial's memory and threads
// are not another's. Used by `stoker data bench`. Call it while the process has one thread: it forks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "data/loader.h"
#include "data/trials/trial.h"

namespace stoker::data {

struct BenchOptions {
  Path dataset;
  std::string split;  ///< empty: the only one, or "train"
  std::uint32_t batch = 64;
  std::string recipe = "imagenet-train";
  std::uint32_t most_threads = 0;  ///< 0: the cores of this process
  Duration per_trial = std::chrono::seconds(2);
};

/// Told of each trial as it ends.
using TrialEnded = std::function<void(const Trial&)>;

/// Threads first, then the number of batches ahead with the best of them. Fails as Loader::open does.
Result<std::vector<Trial>> bench_loader(const BenchOptions& options, const TrialEnded& ended);

/// The same over somebody's Python function, by `<python> -m stoker.bench`: torch's DataLoader and
/// stoker.DataLoader over the dataset that `module:function` returns when called with the dataset's path.
/// Fails with what Python says last on standard error.
struct PythonBench {
  std::string function;  ///< "module:function"
  std::string python = "python3";
};
Result<std::vector<Trial>> bench_python(const BenchOptions& options, const PythonBench& python,
                                        const TrialEnded& ended);

}  // namespace stoker::data
