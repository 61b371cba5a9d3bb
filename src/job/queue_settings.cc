#include "job/queue_settings.h"

#include <array>

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;

constexpr std::array kQueue = {
    Setting{.key = "chain.until",
            .type = Type::choice,
            .choices = "done",
            .help = "Continue a submitted run in one job after another, each from the last valid checkpoint, "
                    "until it is done.",
            .note = "`resources.time` is then the total time of all its jobs."},
    Setting{.key = "chain.time_per_link",
            .type = Type::duration,
            .at_least = 1,
            .help = "Time limit of each job of the chain."},
    Setting{.key = "chain.links",
            .type = Type::count,
            .unset = "from measured epochs per hour, else from `resources.time`, else 10",
            .at_least = 1,
            .at_most = 1000,
            .help = "Maximum number of jobs in the chain (with `array`, in each task's chain); jobs that are "
                    "not needed are cancelled."},

    Setting{.key = "restart.preempted",
            .type = Type::count,
            .fallback = "100",
            .at_least = 0,
            .at_most = 1e6,
            .help = "How often to restart a submitted run after a preemption."},
    Setting{.key = "restart.node_failed",
            .type = Type::count,
            .fallback = "10",
            .at_least = 0,
            .at_most = 1e6,
            .help = "How often to restart a submitted run after a node failure."},
    Setting{.key = "restart.timeout",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .help = "How often to restart a submitted run after its time limit, whether it has saved (exit "
                    "code 75) or not; in a chain, `chain.links` decides."},
    Setting{.key = "restart.failed",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .help = "How often to restart a submitted run after it has failed."},
    Setting{.key = "restart.out_of_memory",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .help = "How often to restart a submitted run after it ran out of memory."},
    Setting{.key = "restart.without_progress",
            .type = Type::count,
            .fallback = "2",
            .at_least = 1,
            .at_most = 1e6,
            .help = "Number of consecutive attempts without a newer checkpoint after which the run is given "
                    "up; preemptions and node failures do not count."},

    Setting{.key = "array.over",
            .type = Type::path,
            .help = "Table (CSV, JSON or YAML) with one task per row; each column is a parameter or a key of "
                    "the job file."},
    Setting{.key = "array.at_once",
            .type = Type::count,
            .unset = "as many as the cluster allows",
            .at_least = 1,
            .at_most = 1e6,
            .help = "Maximum number of tasks that run at the same time."},
    Setting{.key = "array.bundle",
            .type = Type::count,
            .unset = "1; more for tasks with a `resources.time` below 5 minutes",
            .at_least = 1,
            .at_most = 10000,
            .help = "Number of tasks that run one after another in a single job."},

    Setting{.key = "after",
            .type = Type::texts,
            .unset = "none",
            .help = "Job files or runs that must be done before this one starts, one per entry."},
};

}  // namespace

std::span<const config::Setting> queue_settings() { return kQueue; }

}  // namespace stoker::job
