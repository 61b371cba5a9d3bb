#include "job/site/describe.h"

#include <algorithm>

#include "config/schema.h"

namespace stoker::job {
namespace {

std::string key_of(std::string_view text) {
  std::string key;
  for (char c : text.substr(0, 60)) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    key += is_plain ? c : '_';
  }
  if (key.empty() || !config::is_name(key)) key.insert(0, "n");
  return key;
}

void add_nodes(const slurm::PartitionNodes& seen, Site& site) {
  SiteNode node;
  node.partition = seen.partition;
  if (seen.cores > 0) node.cores = seen.cores;
  if (seen.memory.value > 0) node.memory = seen.memory;
  if (seen.disk.value > 0) node.local_disk = seen.disk;
  if (seen.gpus > 0) {
    node.gpu = seen.gpu;
    node.gpus = seen.gpus;
    if (seen.cores >= seen.gpus) node.cores_per_gpu = seen.cores / seen.gpus;
    if (seen.memory.value > 0)
      node.memory_per_gpu = ByteCount{seen.memory.value / seen.gpus / (1u << 20) << 20};
    node.options = {seen.gpu == "gpu" ? "--gpus-per-node=N" : format("--gpus-per-node={}:N", seen.gpu)};
  }
  node.from = "sinfo";
  std::string key = key_of(seen.partition);
  for (int i = 2; site.nodes.contains(key); ++i) key = format("{}-{}", key_of(seen.partition), i);
  site.nodes.emplace(std::move(key), std::move(node));
}

}  // namespace

Site describe_cluster(const slurm::ClusterInfo& facts, const MachineInfo& seen) {
  Site site;
  site.name = to_lower(key_of(facts.name));
  site.what = format("{}, a cluster with Slurm {}", facts.name, facts.version.empty() ? "?" : facts.version);
  const auto add_source = [&](std::string name, std::string url) {
    site.sources[std::move(name)] = {.url = std::move(url), .date = seen.day};
  };
  add_source("scontrol", "scontrol show config");
  add_source("sinfo", "sinfo");
  site.clusters = {to_lower(facts.name)};
  site.from["detect"] = "scontrol";
  if (facts.max_array_size) {
    site.limits.array = facts.max_array_size;
    site.from["limits"] = "scontrol";
  }
  for (const slurm::PartitionNodes& each : facts.partitions) {
    if (config::is_name(each.partition)) {
      SitePartition& partition = site.partitions[each.partition];
      partition.time = each.time;
      if (each.default_time != each.time) partition.default_time = each.default_time;
      if (each.is_default) partition.what = "the default";
      partition.from = "sinfo";
    }
    add_nodes(each, site);
  }
  if (!facts.accounts.empty()) {
    add_source("sshare", "sshare");
    site.account = join(facts.accounts, ", ");
    site.account_command = "sshare -U";
    site.from["account"] = "sshare";
  }
  if (!seen.storage.empty() || seen.has_lmod || seen.has_modules || !seen.quota_command.empty())
    add_source("here", "the login node");
  for (const std::string& variable : seen.storage) {
    SiteStorage& storage = site.storage[variable == "SLURM_TMPDIR" ? "local" : to_lower(variable)];
    storage.path = "$" + variable;
    storage.from = "here";
  }
  if (!seen.quota_command.empty()) {
    site.quota_command = seen.quota_command;
    site.from["quota"] = "here";
  }
  if (seen.has_lmod || seen.has_modules) {
    site.module_system = seen.has_lmod ? "lmod" : "environment-modules";
    site.from["modules"] = "here";
  }
  return site;
}

}  // namespace stoker::job
