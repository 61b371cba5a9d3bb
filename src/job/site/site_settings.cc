#include "job/site/site_settings.h"

#include <array>

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;

constexpr std::string_view kNotKnown = "not known";
constexpr std::string_view kFrom = "Which of `sources` says so.";

constexpr std::array kSettings = {
    Setting{.key = "name", .what = "What `site:` of a job file calls it."},
    Setting{.key = "what", .what = "Its name in full and whose it is."},
    Setting{.key = "successor", .unset = "none", .what = "The site that took the place of this one."},
    Setting{.key = "sources.*.url", .what = "The page, or the command, that the values were read from."},
    Setting{.key = "sources.*.date", .what = "The day they were read there: 2026-04-18."},

    Setting{.key = "detect.clusters",
            .type = Type::texts,
            .unset = "none",
            .what = "ClusterName of slurm.conf: being on that cluster is being at this site."},
    Setting{.key = "detect.hosts",
            .type = Type::texts,
            .unset = "none",
            .what = "Host names of its login nodes, * for any letters."},
    Setting{.key = "detect.from", .what = kFrom},

    Setting{.key = "limits.time",
            .type = Type::duration,
            .unset = kNotKnown,
            .what = "The longest a job may last."},
    Setting{.key = "limits.shortest",
            .type = Type::duration,
            .unset = "none",
            .what = "Jobs should not be shorter than this."},
    Setting{.key = "limits.jobs",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "Jobs that one user may have, waiting and running."},
    Setting{.key = "limits.nodes",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "Nodes of one job."},
    Setting{.key = "limits.array",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "MaxArraySize: indices of arrays are below it."},
    Setting{.key = "limits.from", .what = kFrom},

    Setting{.key = "account.needed",
            .type = Type::boolean,
            .fallback = "false",
            .what = "Whether a job must name an account."},
    Setting{.key = "account.what", .unset = kNotKnown, .what = "What accounts look like."},
    Setting{.key = "account.command", .unset = kNotKnown, .what = "The command that lists one's accounts."},
    Setting{.key = "account.from", .what = kFrom},

    Setting{
        .key = "partitions.*.time", .type = Type::duration, .unset = kNotKnown, .what = "The longest job."},
    Setting{.key = "partitions.*.default_time",
            .type = Type::duration,
            .unset = kNotKnown,
            .what = "What a job gets that does not say."},
    Setting{.key = "partitions.*.nodes",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "The most nodes of a job."},
    Setting{.key = "partitions.*.what", .unset = "nothing", .what = "For what it is."},
    Setting{.key = "partitions.*.from", .what = kFrom},

    Setting{.key = "qos.*.partitions",
            .type = Type::texts,
            .unset = kNotKnown,
            .what = "The partitions in which it can be asked for."},
    Setting{.key = "qos.*.time",
            .type = Type::duration,
            .unset = "the partition's",
            .what = "The longest job, in place of the partition's limit."},
    Setting{.key = "qos.*.nodes",
            .type = Type::count,
            .unset = "the partition's",
            .at_least = 1,
            .what = "The most nodes of a job, in place of the partition's limit."},
    Setting{.key = "qos.*.what", .unset = "nothing", .what = "For what it is."},
    Setting{.key = "qos.*.from", .what = kFrom},

    Setting{
        .key = "nodes.*.partition", .unset = "chosen by the site", .what = "The partition that has them."},
    Setting{.key = "nodes.*.options",
            .type = Type::texts,
            .unset = "none",
            .what = "Options of sbatch that ask for them; N stands for a count."},
    Setting{.key = "nodes.*.gpu", .unset = "none", .what = "The GPU's model."},
    Setting{.key = "nodes.*.gpus",
            .type = Type::count,
            .unset = "none",
            .at_least = 1,
            .what = "GPUs of a node."},
    Setting{
        .key = "nodes.*.cores", .type = Type::count, .unset = kNotKnown, .at_least = 1, .what = "Its cores."},
    Setting{.key = "nodes.*.cores_per_gpu",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "The fair share of cores for each GPU."},
    Setting{.key = "nodes.*.memory",
            .type = Type::size,
            .unset = kNotKnown,
            .what = "Memory that jobs can have."},
    Setting{.key = "nodes.*.memory_per_gpu",
            .type = Type::size,
            .unset = kNotKnown,
            .what = "The fair share of memory for each GPU."},
    Setting{.key = "nodes.*.local_disk", .type = Type::size, .unset = kNotKnown, .what = "Its own disk."},
    Setting{.key = "nodes.*.from", .what = kFrom},

    Setting{.key = "storage.*.path", .unset = kNotKnown, .what = "Where it is; may name variables."},
    Setting{.key = "storage.*.quota", .type = Type::size, .unset = kNotKnown, .what = "Bytes by default."},
    Setting{.key = "storage.*.files",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1,
            .what = "Files by default."},
    Setting{.key = "storage.*.purge_days",
            .type = Type::count,
            .unset = "never",
            .at_least = 1,
            .what = "Files older than this are removed."},
    Setting{.key = "storage.*.what", .unset = "nothing", .what = "What else to know."},
    Setting{.key = "storage.*.from", .what = kFrom},

    Setting{.key = "quota.command", .what = "Shows how much of the quotas is used."},
    Setting{.key = "quota.from", .what = kFrom},

    Setting{.key = "network.interfaces",
            .type = Type::texts,
            .unset = kNotKnown,
            .what = "Interfaces between the nodes, the best first."},
    Setting{.key = "network.first_port",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1024,
            .at_most = 65535,
            .what = "The first port that jobs may listen on."},
    Setting{.key = "network.last_port",
            .type = Type::count,
            .unset = kNotKnown,
            .at_least = 1024,
            .at_most = 65535,
            .what = "The last one."},
    Setting{.key = "network.internet",
            .type = Type::boolean,
            .unset = kNotKnown,
            .what = "Whether compute nodes reach the Internet."},
    Setting{.key = "network.from", .what = kFrom},

    Setting{.key = "modules.system",
            .type = Type::choice,
            .unset = kNotKnown,
            .choices = "lmod|environment-modules",
            .what = "Whose `module` command it has."},
    Setting{
        .key = "modules.python", .type = Type::texts, .unset = kNotKnown, .what = "Modules with a Python."},
    Setting{.key = "modules.from", .what = kFrom},

    Setting{.key = "opinions.*.what", .what = "What its staff asks for or warns of."},
    Setting{.key = "opinions.*.cure", .unset = "none", .what = "What to do in place of it."},
    Setting{.key = "opinions.*.from", .what = kFrom},
};

}  // namespace

const config::Schema& site_schema() {
  static const config::Schema kSchema(kSettings);
  return kSchema;
}

}  // namespace stoker::job
