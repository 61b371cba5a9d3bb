// How `stoker sweep` runs the trials of a sweep file: the job of a trial, where it runs, and limits. Unlike a
// Definition, it may change while the study lives. Values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/time.h"
#include "sweep/file/node_values.h"

namespace stoker::sweep {

/// Where trials run.
enum class TrialPlace {
  automatic,  ///< here inside an allocation and on a machine without Slurm, else as jobs
  here,       ///< on this machine, or on the nodes of this allocation
  jobs,       ///< each as a separate job
  array,      ///< as tasks of one array
};
constexpr std::array<std::string_view, 4> names_of(TrialPlace) { return {"auto", "here", "jobs", "array"}; }

/// Keys of a sweep file about running.
struct TrialPlan {
  Path job;                            ///< job file or batch script, relative to the sweep file; empty: none
  std::vector<std::string> arguments;  ///< of a batch script, with {name} for parameters
  std::vector<std::string> set;        ///< "key=value" for the job file, in each trial
  TrialPlace place = TrialPlace::automatic;
  std::uint32_t at_once = 1;        ///< trials that run or wait in the queue
  std::uint32_t retries = 0;        ///< further attempts of a trial that failed
  std::uint32_t resumes = 5;        ///< continuations of a trial that was preempted, lost or out of time
  std::optional<Duration> time;     ///< no trial starts later than this after the first one
  std::optional<double> gpu_hours;  ///< no trial starts when the trials have used so much
};

/// The keys that read_trial_plan() reads.
inline constexpr std::array<std::string_view, 8> kTrialPlanKeys = {
    "job", "arguments", "set", "place", "at_once", "retries", "resumes", "budget"};

/// Reads them from the map of a sweep file.
TrialPlan read_trial_plan(const config::Node& root, NodeValues& values);

}  // namespace stoker::sweep
