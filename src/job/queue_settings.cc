#include <array>

#include "job/settings.h"

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;

constexpr std::array kQueue = {
    Setting{.key = "chain.until",
            .type = Type::choice,
            .choices = "done",
            .what = "A submitted run goes on in job after job, each from the last valid checkpoint, until it "
                    "is done.",
            .see = "`resources.time` is then the time of all its jobs together."},
    Setting{.key = "chain.time_per_link",
            .type = Type::duration,
            .at_least = 1,
            .what = "The time limit of each job of the chain."},
    Setting{.key = "chain.links",
            .type = Type::count,
            .unset = "from measured epochs per hour, else from `resources.time`, else 10",
            .at_least = 1,
            .at_most = 1000,
            .what = "Jobs of the chain at most, of each task's where there is an `array`; those that are not "
                    "needed are withdrawn."},

    Setting{.key = "restart.preempted",
            .type = Type::count,
            .fallback = "100",
            .at_least = 0,
            .at_most = 1e6,
            .what = "How often a submitted run goes on by itself after a preemption."},
    Setting{.key = "restart.node_failed",
            .type = Type::count,
            .fallback = "10",
            .at_least = 0,
            .at_most = 1e6,
            .what = "The same after the loss of a node."},
    Setting{.key = "restart.timeout",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .what =
                "The same when its time is over, whether it has saved (exit code 75) or not; in a chain its "
                "links decide."},
    Setting{.key = "restart.failed",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .what = "The same after a failure of its own."},
    Setting{.key = "restart.out_of_memory",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .what = "The same when it ran out of memory."},
    Setting{.key = "restart.without_progress",
            .type = Type::count,
            .fallback = "2",
            .at_least = 1,
            .at_most = 1e6,
            .what =
                "So many attempts in a row that leave no newer checkpoint end it; preemptions and lost nodes "
                "are not counted."},

    Setting{
        .key = "array.over",
        .type = Type::path,
        .what =
            "A table (CSV, JSON or YAML) with one task a row: a column is a parameter, or a key of the job "
            "file."},
    Setting{.key = "array.at_once",
            .type = Type::count,
            .unset = "as many as the cluster gives",
            .at_least = 1,
            .at_most = 1e6,
            .what = "Tasks that may run at the same time."},
    Setting{.key = "array.bundle",
            .type = Type::count,
            .unset = "1; more for tasks with a `resources.time` below 5 minutes",
            .at_least = 1,
            .at_most = 10000,
            .what = "So many tasks share a job of the queue, one after the other."},

    Setting{.key = "after",
            .type = Type::texts,
            .unset = "none",
            .what = "Job files or runs, one an entry, that must be done before this one starts."},
};

}  // namespace

std::span<const config::Setting> queue_settings() { return kQueue; }

}  // namespace stoker::job
