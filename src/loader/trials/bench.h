// Tries loader settings on a dataset, each in a separate process, so that memory and threads of one trial do
// not affect the next. Used by `stoker data bench`. Call it while the process has one thread: it forks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loader/trials/trial.h"
#include "stoker/loader.h"
#include "stoker/time.h"

namespace stoker::loader {

struct BenchOptions {
  Path dataset;
  std::string split;  ///< empty: the only split, or "train"
  std::uint32_t batch = 64;
  std::string recipe = "imagenet-train";
  std::uint32_t most_threads = 0;  ///< 0: the cores of this process
  Duration per_trial = std::chrono::seconds(2);
};

/// Called after each trial.
using TrialCallback = std::function<void(const Trial&)>;

/// Tries numbers of threads, then prefetch depths with the best of them. Fails as Loader::open does.
Result<std::vector<Trial>> bench_loader(const BenchOptions& options, const TrialCallback& on_trial);

/// The same for a Python function, with `<python> -m stoker.bench`: torch's DataLoader and stoker.DataLoader
/// over the dataset returned by `module:function` for the dataset's path. Fails with the last line of
/// Python's standard error.
struct PythonBench {
  std::string function;  ///< "module:function"
  std::string python = "python3";
};
Result<std::vector<Trial>> bench_python(const BenchOptions& options, const PythonBench& python,
                                        const TrialCallback& on_trial);

}  // namespace stoker::loader
