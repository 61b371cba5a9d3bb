#include "job/site/site_settings.h"

#include <array>
#include <string>
#include <vector>

namespace stoker::job {
namespace {

using config::bind;
using config::SettingReader;
using config::SettingWriter;

constexpr std::string_view kNotKnown = "not known";
constexpr std::string_view kFrom = "Key of `sources` with the evidence.";

// `from` of a map with fixed keys, for all of them.
void read_group_source(const SettingReader& reader, std::string_view key, std::string_view, Site& site) {
  if (const auto* source = reader.effective().find<std::string>(key))
    site.from[std::string(key.substr(0, key.find('.')))] = *source;
}

void write_group_source(SettingWriter& writer, std::string_view key, std::string_view, const Site& site) {
  const auto found = site.from.find(std::string(key.substr(0, key.find('.'))));
  if (found != site.from.end()) writer(key, found->second);
}

consteval SiteSetting source_of_group(std::string_view key) {
  return {.setting = {.key = key, .help = kFrom}, .read = &read_group_source, .write = &write_group_source};
}

// A site without rules for accounts has no `account`.
void write_needs_account(SettingWriter& writer, std::string_view key, std::string_view, const Site& site) {
  if (site.from.contains("account")) writer(key, site.needs_account);
}

consteval SiteSetting written_by(void (*write)(SettingWriter&, std::string_view, std::string_view,
                                               const Site&),
                                 SiteSetting bound) {
  bound.write = write;
  return bound;
}

constexpr std::array kSettings = {
    bind<&Site::name>({.key = "name", .help = "Name of the site in `site:` of a job file."}),
    bind<&Site::what>({.key = "what", .help = "Full name and owner of the cluster."}),
    bind<&Site::successor>({.key = "successor", .unset = "none", .help = "Site that replaces this one."}),

    bind<&Site::clusters>(
        {.key = "detect.clusters",
         .unset = "none",
         .help = "ClusterName in slurm.conf; a machine of such a cluster is at this site."}),
    bind<&Site::hosts>({.key = "detect.hosts",
                        .unset = "none",
                        .help = "Host names of the login nodes; * matches any characters."}),
    source_of_group("detect.from"),

    bind<&Site::limits, &SiteLimits::time>(
        {.key = "limits.time", .unset = kNotKnown, .help = "Maximum duration of a job."}),
    bind<&Site::limits, &SiteLimits::shortest>(
        {.key = "limits.shortest", .unset = "none", .help = "Recommended minimum duration of a job."}),
    bind<&Site::limits, &SiteLimits::jobs>({.key = "limits.jobs",
                                            .unset = kNotKnown,
                                            .at_least = 1,
                                            .help = "Maximum number of jobs per user, pending and running."}),
    bind<&Site::limits, &SiteLimits::nodes>({.key = "limits.nodes",
                                             .unset = kNotKnown,
                                             .at_least = 1,
                                             .help = "Maximum number of nodes per job."}),
    bind<&Site::limits, &SiteLimits::array>({.key = "limits.array",
                                             .unset = kNotKnown,
                                             .at_least = 1,
                                             .help = "MaxArraySize: array indices must be below it."}),
    source_of_group("limits.from"),

    written_by(
        &write_needs_account,
        bind<&Site::needs_account>(
            {.key = "account.needed", .fallback = "false", .help = "Whether a job must name an account."})),
    bind<&Site::account>({.key = "account.what", .unset = kNotKnown, .help = "Form of account names."}),
    bind<&Site::account_command>(
        {.key = "account.command", .unset = kNotKnown, .help = "Command that lists the user's accounts."}),
    source_of_group("account.from"),

    bind<&Site::partitions, &SitePartition::time>(
        {.key = "partitions.*.time", .unset = kNotKnown, .help = "Maximum duration of a job."}),
    bind<&Site::partitions, &SitePartition::default_time>(
        {.key = "partitions.*.default_time",
         .unset = kNotKnown,
         .help = "Time limit of a job that requests none."}),
    bind<&Site::partitions, &SitePartition::nodes>({.key = "partitions.*.nodes",
                                                    .unset = kNotKnown,
                                                    .at_least = 1,
                                                    .help = "Maximum number of nodes per job."}),
    bind<&Site::partitions, &SitePartition::default_qos>(
        {.key = "partitions.*.default_qos",
         .unset = kNotKnown,
         .help = "QOS of a job that requests none; a key of `qos`."}),
    bind<&Site::partitions, &SitePartition::default_for>(
        {.key = "partitions.*.default_for",
         .unset = "none",
         .help = "Jobs that get this partition if they request none: all, with GPUs, or without."}),
    bind<&Site::partitions, &SitePartition::what>(
        {.key = "partitions.*.what", .unset = "nothing", .help = "Purpose of the partition."}),
    bind<&Site::partitions, &SitePartition::from>({.key = "partitions.*.from", .help = kFrom}),

    bind<&Site::qos, &SiteQos::partitions>({.key = "qos.*.partitions",
                                            .unset = kNotKnown,
                                            .help = "Partitions in which the QOS can be requested."}),
    bind<&Site::qos, &SiteQos::time>({.key = "qos.*.time",
                                      .unset = "the partition's",
                                      .help = "Maximum duration of a job; overrides the partition's limit."}),
    bind<&Site::qos, &SiteQos::nodes>(
        {.key = "qos.*.nodes",
         .unset = "the partition's",
         .at_least = 1,
         .help = "Maximum number of nodes per job; overrides the partition's limit."}),
    bind<&Site::qos, &SiteQos::gpus>(
        {.key = "qos.*.gpus", .unset = kNotKnown, .at_least = 1, .help = "Maximum number of GPUs per job."}),
    bind<&Site::qos, &SiteQos::jobs>({.key = "qos.*.jobs",
                                      .unset = kNotKnown,
                                      .at_least = 1,
                                      .help = "Maximum number of jobs per user, pending and running."}),
    bind<&Site::qos, &SiteQos::what>(
        {.key = "qos.*.what", .unset = "nothing", .help = "Purpose of the QOS."}),
    bind<&Site::qos, &SiteQos::from>({.key = "qos.*.from", .help = kFrom}),

    bind<&Site::nodes, &SiteNode::partition>({.key = "nodes.*.partition",
                                              .unset = "chosen by the site",
                                              .help = "Partition that contains these nodes."}),
    bind<&Site::nodes, &SiteNode::options>(
        {.key = "nodes.*.options",
         .unset = "none",
         .help = "sbatch options that request these nodes; N is a placeholder for a number."}),
    bind<&Site::nodes, &SiteNode::gpu>({.key = "nodes.*.gpu", .unset = "none", .help = "GPU model."}),
    bind<&Site::nodes, &SiteNode::gpus>(
        {.key = "nodes.*.gpus", .unset = "none", .at_least = 1, .help = "Number of GPUs per node."}),
    bind<&Site::nodes, &SiteNode::cores>(
        {.key = "nodes.*.cores", .unset = kNotKnown, .at_least = 1, .help = "Number of cores per node."}),
    bind<&Site::nodes, &SiteNode::cores_per_gpu>({.key = "nodes.*.cores_per_gpu",
                                                  .unset = kNotKnown,
                                                  .at_least = 1,
                                                  .help = "Fair share of cores per GPU."}),
    bind<&Site::nodes, &SiteNode::memory>(
        {.key = "nodes.*.memory", .unset = kNotKnown, .help = "Memory available to jobs, per node."}),
    bind<&Site::nodes, &SiteNode::memory_per_gpu>(
        {.key = "nodes.*.memory_per_gpu", .unset = kNotKnown, .help = "Fair share of memory per GPU."}),
    bind<&Site::nodes, &SiteNode::local_disk>(
        {.key = "nodes.*.local_disk", .unset = kNotKnown, .help = "Size of the local disk."}),
    bind<&Site::nodes, &SiteNode::from>({.key = "nodes.*.from", .help = kFrom}),

    bind<&Site::storage, &SiteStorage::path>({.key = "storage.*.path",
                                              .unset = kNotKnown,
                                              .help = "Path of the filesystem; may contain variables."}),
    bind<&Site::storage, &SiteStorage::quota>(
        {.key = "storage.*.quota", .unset = kNotKnown, .help = "Default quota in bytes."}),
    bind<&Site::storage, &SiteStorage::files>(
        {.key = "storage.*.files", .unset = kNotKnown, .at_least = 1, .help = "Default quota in files."}),
    bind<&Site::storage, &SiteStorage::purge_days>({.key = "storage.*.purge_days",
                                                    .unset = "never",
                                                    .at_least = 1,
                                                    .help = "Age at which files are deleted."}),
    bind<&Site::storage, &SiteStorage::shared>(
        {.key = "storage.*.shared",
         .unset = "no",
         .help = "Of storage.cache: let users of a node copy shards from the caches of their peers."}),
    bind<&Site::storage, &SiteStorage::what>(
        {.key = "storage.*.what", .unset = "nothing", .help = "Additional information."}),
    bind<&Site::storage, &SiteStorage::from>({.key = "storage.*.from", .help = kFrom}),

    bind<&Site::quota_command>(
        {.key = "quota.command", .help = "Command that shows how much of the quotas is used."}),
    source_of_group("quota.from"),

    bind<&Site::interfaces>({.key = "network.interfaces",
                             .unset = kNotKnown,
                             .help = "Network interfaces between the nodes, best first."}),
    bind<&Site::first_port>({.key = "network.first_port",
                             .unset = kNotKnown,
                             .at_least = 1024,
                             .at_most = 65535,
                             .help = "First port that jobs may listen on."}),
    bind<&Site::last_port>({.key = "network.last_port",
                            .unset = kNotKnown,
                            .at_least = 1024,
                            .at_most = 65535,
                            .help = "Last port that jobs may listen on."}),
    bind<&Site::has_internet>({.key = "network.internet",
                               .unset = kNotKnown,
                               .help = "Whether compute nodes have Internet access."}),
    source_of_group("network.from"),

    bind<&Site::transfer_host>(
        {.key = "transfer.host",
         .unset = "none",
         .help = "Host name of the node for copies from and to other machines; `stoker data push` uses it."}),
    source_of_group("transfer.from"),

    bind<&Site::module_system>({.key = "modules.system",
                                .unset = kNotKnown,
                                .choices = "lmod|environment-modules",
                                .help = "Software that provides the `module` command."}),
    bind<&Site::python_modules>(
        {.key = "modules.python", .unset = kNotKnown, .help = "Modules that provide Python."}),
    source_of_group("modules.from"),

    bind<&Site::opinions, &SiteOpinion::what>(
        {.key = "opinions.*.what", .help = "Recommendation or warning of the site's staff."}),
    bind<&Site::opinions, &SiteOpinion::cure>(
        {.key = "opinions.*.cure", .unset = "none", .help = "Recommended alternative."}),
    bind<&Site::opinions, &SiteOpinion::from>({.key = "opinions.*.from", .help = kFrom}),

    bind<&Site::sources, &SiteSource::url>(
        {.key = "sources.*.url", .help = "Source of the values: a web page or a command."}),
    bind<&Site::sources, &SiteSource::date>(
        {.key = "sources.*.date", .help = "Date when they were read, such as 2026-04-18."}),
};

}  // namespace

std::span<const SiteSetting> site_settings() { return kSettings; }

const config::Schema& site_schema() {
  static const std::vector<config::Setting> kDeclarations = config::declarations(site_settings());
  static const config::Schema kSchema(kDeclarations);
  return kSchema;
}

}  // namespace stoker::job
