#include <algorithm>

#include "netcheck/facts.h"
#include "netcheck/judge/rules.h"

namespace stoker::netcheck {
namespace {

constexpr std::size_t kMaxNames = 8;

// The number of visible GPUs of the rank.
std::size_t visible_count(const RankFacts& facts) {
  if (!facts.visible_gpus) return facts.gpus.size();
  std::size_t count = 0;
  for (std::string_view part : split(*facts.visible_gpus, ',')) {
    const std::string_view name = trim(part);
    // CUDA stops at the first invalid entry.
    if (name.empty() || name == "-1" || name == "NoDevFiles") break;
    ++count;
  }
  return count;
}

void judge_cores(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const RankFacts*>> by_host;
  for (const auto& [rank, facts] : report.ranks) {
    if (!facts.cores.empty()) by_host[facts.host].push_back(&facts);
  }
  for (const auto& [host, ranks] : by_host) {
    std::set<int> cores;
    for (const RankFacts* facts : ranks) cores.insert(facts->cores.begin(), facts->cores.end());
    if (cores.size() >= ranks.size()) continue;
    const std::string list = core_text({cores.begin(), cores.end()});
    findings->push_back(
        {.rule = "shared-cores",
         .level = Level::time,
         .what = cores.size() == 1
                     ? message("{} ranks on {} share 1 core ({})", ranks.size(), printable(host), list)
                     : message("{} ranks on {} share {} cores ({})", ranks.size(), printable(host),
                               cores.size(), list),
         .evidence = {},
         .cure = "resources: {cpus_per_rank: 1}"});
  }
}

void judge_gpus(const RankFacts& facts, const Report& report, std::vector<Finding>* findings) {
  const Message who = rank_on(facts.rank, facts.host);
  const bool matters = report.gpus_wanted > 0;
  if (!facts.gpu_problem.empty()) {
    findings->push_back({.rule = "gpu-driver",
                         .level = matters ? Level::job : Level::time,
                         .what = message("rank {} ({}): {}", facts.rank.value, printable(facts.host),
                                         reported_message(facts.gpu_problem)),
                         .evidence = {},
                         .cure = exclusion(report, {facts.host})});
  }
  const std::string variable =
      facts.visible_gpus ? format("CUDA_VISIBLE_DEVICES={}", printable(*facts.visible_gpus)) : "";
  if (facts.visible_gpus && !facts.gpus.empty()) {
    for (std::string_view part : split(*facts.visible_gpus, ',')) {
      std::int64_t index = 0;
      if (!parse_number(trim(part), &index) || index < static_cast<std::int64_t>(facts.gpus.size())) continue;
      findings->push_back({.rule = "no-such-gpu",
                           .level = Level::job,
                           .what = message("{}: {} names GPU {}, there are {} (0-{})", who, variable, index,
                                           facts.gpus.size(), facts.gpus.size() - 1),
                           .evidence = {},
                           .cure = "unset CUDA_VISIBLE_DEVICES"});
      return;
    }
  }
  if (!facts.unknown_gpu.empty()) {
    findings->push_back({.rule = "no-such-gpu",
                         .level = Level::job,
                         .what = message("{}: {} names {}, and no GPU there has this id", who, variable,
                                         printable(facts.unknown_gpu)),
                         .evidence = {},
                         .cure = "unset CUDA_VISIBLE_DEVICES"});
    return;
  }
  // Its peers would wait for it over NCCL.
  const auto has_gpu = [](const auto& entry) { return visible_count(entry.second) > 0; };
  if (!matters && visible_count(facts) == 0 && facts.visible_gpus &&
      std::ranges::any_of(report.ranks, has_gpu)) {
    findings->push_back({.rule = "rank-without-gpu",
                         .level = Level::job,
                         .what = message("{} sees no GPU ({}), but its peers do", who, variable),
                         .evidence = {},
                         .cure = "unset CUDA_VISIBLE_DEVICES"});
    return;
  }
  if (!matters || visible_count(facts) >= report.gpus_wanted) return;
  const Message shown =
      variable.empty() ? message("CUDA_VISIBLE_DEVICES is not set, nvidia-smi lists none") : variable;
  findings->push_back({.rule = "missing-gpu",
                       .level = Level::job,
                       .what = report.gpus_wanted == 1
                                   ? message("{} sees 0 of 1 GPU ({})", who, shown)
                                   : message("{} sees {} of {} GPUs ({})", who, visible_count(facts),
                                             report.gpus_wanted, shown),
                       .evidence = {},
                       .cure = format("resources: {{gpus_per_rank: {}}}      (srun --gpus-per-task={})",
                                      report.gpus_wanted, report.gpus_wanted)});
}

Message lost(const AbsentRank& absent) {
  return message("rank {} ({}) was lost ({}): {}", absent.rank.value, printable(absent.host),
                 reported_message(absent.step), reported_message(absent.why));
}

Message missing(const AbsentRank& absent) {
  const std::string host = printable(absent.host);
  const Message why = reported_message(absent.why);
  return absent.why.starts_with("did not join")
             ? message("rank {} ({}) {}", absent.rank.value, host, why)
             : message("rank {} ({}) did not join: {}", absent.rank.value, host, why);
}

// Ranks of one host that use the same GPU: NCCL refuses duplicates.
void judge_shared_gpus(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const RankFacts*>> by_gpu;
  for (const auto& [rank, facts] : report.ranks) {
    const std::string& uuid = facts.gpu_uuid;
    const bool is_one = visible_count(facts) == 1 && facts.visible_gpus;
    if (!uuid.empty() || is_one)
      by_gpu[format("{}\n{}", facts.host, uuid.empty() ? *facts.visible_gpus : uuid)].push_back(&facts);
  }
  for (const auto& [place, ranks] : by_gpu) {
    if (ranks.size() < 2) continue;
    std::string numbers;
    for (const RankFacts* facts : ranks)
      numbers += format("{}{}", numbers.empty() ? "" : ", ", facts->rank.value);
    const std::string gpu = ranks[0]->gpu_uuid.empty()
                                ? format("CUDA_VISIBLE_DEVICES={}", *ranks[0]->visible_gpus)
                                : format("{}, {}", ranks[0]->gpu, ranks[0]->gpu_uuid);
    findings->push_back({.rule = "shared-gpu",
                         .level = report.gpus_wanted > 0 ? Level::job : Level::advice,
                         .what = message("ranks {} on {} have the same GPU ({}), which NCCL refuses", numbers,
                                         printable(ranks[0]->host), printable(gpu)),
                         .evidence = {},
                         .cure = message("srun --gpus-per-task=1      (gloo allows several ranks per GPU)")});
  }
}

// GPUs of different ranks without peer access.
void judge_peer_access(const Report& report, std::vector<Finding>* findings) {
  for (const auto& [rank, node] : report.ranks) {
    std::set<int> used;
    for (const auto& [peer, facts] : report.ranks) {
      if (facts.host == node.host && facts.gpu >= 0) used.insert(facts.gpu);
    }
    std::string pairs;
    for (const GpuLink& link : node.gpu_links) {
      const bool is_used = used.contains(link.first) && used.contains(link.second);
      if (is_used && link.has_peer_access == false)
        pairs += format("{}{}-{}", pairs.empty() ? "" : ", ", link.first, link.second);
    }
    if (pairs.empty()) continue;
    findings->push_back(
        {.rule = "no-peer-access",
         .level = Level::time,
         .what = message("GPUs {} on {} have no peer access: NCCL copies between them through "
                         "host memory",
                         pairs, printable(node.host)),
         .evidence = {},
         .cure = message("nvidia-smi topo -p2p r      (shows why; IOMMU and ACS prevent it)")});
  }
}

// An all-reduce far below what the links carry: a fallback, not a matter of tuning.
void judge_gpu_speed(const Report& report, std::vector<Finding>* findings) {
  constexpr double kLeastShare = 0.3;
  if (report.gpu_timings.empty()) return;
  const GpuTiming& largest = *std::ranges::max_element(report.gpu_timings, {}, &GpuTiming::bytes);
  if (largest.bus_bytes_per_s() >= kLeastShare * largest.bound_bytes_per_s) return;
  const auto speed = [](double bytes) {
    return format("{}/s", rounded({static_cast<std::uint64_t>(bytes)}));
  };
  findings->push_back(
      {.rule = "slow-gpu-links",
       .level = Level::time,
       .what = message("NCCL reaches {} per GPU, and the links carry {}", speed(largest.bus_bytes_per_s()),
                       speed(largest.bound_bytes_per_s)),
       .evidence = {},
       .cure = message("NCCL_DEBUG=INFO shows the path: `via P2P` is direct, `via SHM` through host "
                       "memory")});
}

}  // namespace

Message names_of(const std::set<std::string>& hosts) {
  Message text;
  std::size_t count = 0;
  for (const std::string& host : hosts) {
    if (count++ == kMaxNames) break;
    if (!text.empty()) text += ", ";
    text += host_text(printable(host));
  }
  if (hosts.size() <= kMaxNames) return text;
  const std::size_t more = hosts.size() - kMaxNames;
  return more == 1 ? message("{} and 1 more", text) : message("{} and {} more", text, more);
}

std::string host_of(const Report& report, Rank rank) {
  const auto found = report.ranks.find(rank);
  if (found != report.ranks.end() && report.has_several_hosts()) return printable(found->second.host);
  return format("rank {}", rank.value);
}

Message host_text(const std::string& host) {
  constexpr std::string_view kRank = "rank ";
  return host.starts_with(kRank) ? message("rank {}", host.substr(kRank.size())) : Message(host);
}

Message host_text(const Report& report, Rank rank) { return host_text(host_of(report, rank)); }

std::string exclusion(const Report& report, const std::set<std::string>& hosts) {
  if (!report.has_several_hosts()) return "";
  std::string list;
  for (const std::string& host : hosts) list += (list.empty() ? "" : ",") + printable(host);
  return format("slurm: {{extra: [\"--exclude={}\"]}}      (sbatch --exclude={})", list, list);
}

std::string setting(std::string_view variable, std::string_view value) {
  return format("environment: {{variables: {{{}: {}}}}}      (export {}={})", variable, value, variable,
                value);
}

std::vector<Rank> probing_ranks(const Report& report) {
  std::vector<Rank> ranks;
  std::set<std::string> seen;
  for (const auto& [rank, facts] : report.ranks) {
    const bool is_gone =
        std::ranges::any_of(report.absent, [&](const AbsentRank& absent) { return absent.rank == rank; });
    if (is_gone || facts.addresses.empty()) continue;
    if (!report.has_several_hosts() || seen.insert(facts.host).second) ranks.push_back(rank);
  }
  // The number of connections is quadratic in hosts: this many take seconds and fit into one message.
  constexpr std::size_t kMaxHosts = 512;
  if (ranks.size() > kMaxHosts) ranks.resize(kMaxHosts);
  // On one host all connections use the same path: a few suffice.
  constexpr std::size_t kMaxOfOneHost = 4;
  if (!report.has_several_hosts() && ranks.size() > kMaxOfOneHost) ranks.resize(kMaxOfOneHost);
  return ranks;
}

void judge_presence(const Report& report, std::vector<Finding>* findings) {
  for (const AbsentRank& absent : report.absent) {
    if (absent.is_effect) continue;
    const bool has_joined = absent.step != "start";
    findings->push_back({.rule = has_joined ? "lost-rank" : "absent-rank",
                         .level = Level::job,
                         .what = has_joined ? lost(absent) : missing(absent),
                         .evidence = {},
                         .cure = exclusion(report, {absent.host})});
  }
}

void judge_placement(const Report& report, std::vector<Finding>* findings) {
  judge_cores(report, findings);
  for (const auto& [rank, facts] : report.ranks) {
    // A rank that was lost before it reported its facts is already reported.
    if (!facts.addresses.empty()) judge_gpus(facts, report, findings);
  }
  judge_shared_gpus(report, findings);
  judge_peer_access(report, findings);
  judge_gpu_speed(report, findings);
}

std::vector<Finding> judge(const Report& report) {
  std::vector<Finding> findings;
  judge_presence(report, &findings);
  judge_storage(report, &findings);
  judge_settings(report, &findings);
  judge_connections_and_speed(report, &findings);
  judge_placement(report, &findings);
  if (!report.ring_problem.empty() && report.absent.empty()) {
    findings.push_back({.rule = "all-reduce",
                        .level = Level::job,
                        .what = message("all-reduce: {}", report.ring_problem),
                        .evidence = {},
                        .cure = ""});
  }
  if (!report.torch_problem.empty()) {
    findings.push_back({.rule = "torch",
                        .level = Level::job,
                        .what = message("torch.distributed: {}", report.torch_problem),
                        .evidence = {},
                        .cure = ""});
  }
  // By level, else in order of detection.
  std::vector<Finding> sorted;
  for (const Level level : {Level::job, Level::time, Level::advice}) {
    for (const Finding& finding : findings) {
      if (finding.level == level) sorted.push_back(finding);
    }
  }
  return sorted;
}

}  // namespace stoker::netcheck
