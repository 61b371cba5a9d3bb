#include "job/queue_settings.h"

#include <array>

namespace stoker::job {
namespace {

using config::bind;
using config::Setting;

// `Member` of the part of the job file with the helper's name.
template <auto Member>
consteval JobSetting chain(Setting setting) {
  return bind<&Job::chain, Member>(setting);
}
template <auto Member>
consteval JobSetting restart(Setting setting) {
  return bind<&Job::restart, Member>(setting);
}
template <auto Member>
consteval JobSetting array(Setting setting) {
  return bind<&Job::array, Member>(setting);
}

constexpr std::array kQueue = {
    chain<&ChainOptions::until>(
        {.key = "chain.until",
         .help = "Continue a submitted run in one job after another, each from the last valid checkpoint, "
                 "until it is done.",
         .note = "`resources.time` is then the total time of all its jobs."}),
    chain<&ChainOptions::time_per_link>(
        {.key = "chain.time_per_link", .at_least = 1, .help = "Time limit of each job of the chain."}),
    chain<&ChainOptions::links>(
        {.key = "chain.links",
         .unset = "from measured epochs per hour, else from `resources.time`, else 10",
         .at_least = 1,
         .at_most = 1000,
         .help = "Maximum number of jobs in the chain (with `array`, in each task's chain); jobs that are "
                 "not needed are cancelled."}),

    restart<&RestartOptions::preempted>({.key = "restart.preempted",
                                         .fallback = "100",
                                         .at_least = 0,
                                         .at_most = 1e6,
                                         .help = "How often to restart a submitted run after a preemption."}),
    restart<&RestartOptions::node_failed>(
        {.key = "restart.node_failed",
         .fallback = "10",
         .at_least = 0,
         .at_most = 1e6,
         .help = "How often to restart a submitted run after a node failure."}),
    restart<&RestartOptions::timeout>(
        {.key = "restart.timeout",
         .fallback = "0",
         .at_least = 0,
         .at_most = 1e6,
         .help = "How often to restart a submitted run after its time limit, whether it has saved (exit "
                 "code 75) or not; in a chain, `chain.links` decides."}),
    restart<&RestartOptions::failed>({.key = "restart.failed",
                                      .fallback = "0",
                                      .at_least = 0,
                                      .at_most = 1e6,
                                      .help = "How often to restart a submitted run after it has failed."}),
    restart<&RestartOptions::out_of_memory>(
        {.key = "restart.out_of_memory",
         .fallback = "0",
         .at_least = 0,
         .at_most = 1e6,
         .help = "How often to restart a submitted run after it ran out of memory."}),
    restart<&RestartOptions::without_progress>(
        {.key = "restart.without_progress",
         .fallback = "2",
         .at_least = 1,
         .at_most = 1e6,
         .help = "Number of consecutive attempts without a newer checkpoint after which the run is given "
                 "up; preemptions and node failures do not count."}),

    array<&ArrayOptions::over>(
        {.key = "array.over",
         .help = "Table (CSV, JSON or YAML) with one task per row; each column is a parameter or a key of "
                 "the job file."}),
    array<&ArrayOptions::at_once>({.key = "array.at_once",
                                   .unset = "as many as the cluster allows",
                                   .at_least = 1,
                                   .at_most = 1e6,
                                   .help = "Maximum number of tasks that run at the same time."}),
    array<&ArrayOptions::bundle>({.key = "array.bundle",
                                  .unset = "1; more for tasks with a `resources.time` below 5 minutes",
                                  .at_least = 1,
                                  .at_most = 10000,
                                  .help = "Number of tasks that run one after another in a single job."}),

    bind<&Job::after>({.key = "after",
                       .unset = "none",
                       .help = "Job files or runs that must be done before this one starts, one per entry."}),
};

}  // namespace

std::span<const JobSetting> queue_settings() { return kQueue; }

}  // namespace stoker::job
