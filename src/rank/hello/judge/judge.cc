#include <algorithm>

#include "rank/hello/facts.h"
#include "rank/hello/judge/rules.h"

namespace stoker::rank::hello {
namespace {

constexpr std::size_t kMostNames = 8;

// How many GPUs the rank sees.
std::size_t visible_count(const RankFacts& facts) {
  if (!facts.visible_gpus) return facts.gpus.size();
  std::size_t count = 0;
  for (std::string_view part : split(*facts.visible_gpus, ',')) {
    const std::string_view name = trim(part);
    // CUDA stops at the first that it cannot make out.
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
    const Words& words = report.words;
    const std::string list = core_text({cores.begin(), cores.end()});
    findings->push_back(
        {.rule = "shared-cores",
         .level = Level::time,
         .what = cores.size() == 1
                     ? words.say("{} ranks on {} share 1 core ({})", ranks.size(), printable(host), list)
                     : words.say("{} ranks on {} share {} cores ({})", ranks.size(), printable(host),
                                 cores.size(), list),
         .evidence = {},
         .cure = "resources: {cpus_per_rank: 1}"});
  }
}

void judge_gpus(const RankFacts& facts, const Report& report, std::vector<Finding>* findings) {
  const Words& words = report.words;
  const std::string who = rank_on(facts.rank, facts.host, words);
  const bool matters = report.gpus_wanted > 0;
  if (!facts.gpu_problem.empty()) {
    findings->push_back({.rule = "gpu-driver",
                         .level = matters ? Level::job : Level::time,
                         .what = words.say("rank {} ({}): {}", facts.rank.value, printable(facts.host),
                                           in_words(facts.gpu_problem, words)),
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
                           .what = words.say("{}: {} names GPU {}, there are {} (0-{})", who, variable, index,
                                             facts.gpus.size(), facts.gpus.size() - 1),
                           .evidence = {},
                           .cure = "unset CUDA_VISIBLE_DEVICES"});
      return;
    }
  }
  if (!matters || visible_count(facts) >= report.gpus_wanted) return;
  const std::string shown = variable.empty()
                                ? words.say("CUDA_VISIBLE_DEVICES is not set, nvidia-smi lists none").text()
                                : variable;
  findings->push_back({.rule = "missing-gpu",
                       .level = Level::job,
                       .what = report.gpus_wanted == 1
                                   ? words.say("{} sees 0 of 1 GPU ({})", who, shown)
                                   : words.say("{} sees {} of {} GPUs ({})", who, visible_count(facts),
                                               report.gpus_wanted, shown),
                       .evidence = {},
                       .cure = format("resources: {{gpus_per_rank: {}}}      (srun --gpus-per-task={})",
                                      report.gpus_wanted, report.gpus_wanted)});
}

std::string lost(const Absent& absent, const Words& words) {
  return words.say("rank {} ({}) was lost ({}): {}", absent.rank.value, printable(absent.host),
                   in_words(absent.rung, words), in_words(absent.why, words));
}

std::string missing(const Absent& absent, const Words& words) {
  const std::string host = printable(absent.host);
  const std::string why = in_words(absent.why, words);
  return absent.why.starts_with("did not come")
             ? words.say("rank {} ({}) {}", absent.rank.value, host, why)
             : words.say("rank {} ({}) did not come: {}", absent.rank.value, host, why);
}

// Ranks of one host that have one and the same GPU for themselves: NCCL refuses duplicates.
void judge_shared_gpus(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<const RankFacts*>> by_gpu;
  for (const auto& [rank, facts] : report.ranks) {
    if (visible_count(facts) == 1 && facts.visible_gpus)
      by_gpu[format("{}\n{}", facts.host, *facts.visible_gpus)].push_back(&facts);
  }
  for (const auto& [place, ranks] : by_gpu) {
    if (ranks.size() < 2) continue;
    std::string numbers;
    for (const RankFacts* facts : ranks)
      numbers += format("{}{}", numbers.empty() ? "" : ", ", facts->rank.value);
    findings->push_back(
        {.rule = "shared-gpu",
         .level = report.gpus_wanted > 0 ? Level::job : Level::advice,
         .what = report.words.say(
             "ranks {} on {} have the same GPU (CUDA_VISIBLE_DEVICES={}), which NCCL refuses", numbers,
             printable(ranks[0]->host), printable(*ranks[0]->visible_gpus)),
         .evidence = {},
         .cure = report.words.say("srun --gpus-per-task=1      (gloo takes several ranks on one GPU)")});
  }
}

}  // namespace

std::string names_of(const std::set<std::string>& hosts, const Words& words) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& host : hosts) {
    if (count++ < kMostNames) text += (text.empty() ? "" : ", ") + printable(host);
  }
  if (hosts.size() <= kMostNames) return text;
  const std::size_t more = hosts.size() - kMostNames;
  return more == 1 ? words.say("{} and 1 more", text) : words.say("{} and {} more", text, more);
}

std::string host_of(const Report& report, Rank rank) {
  const auto found = report.ranks.find(rank);
  if (found != report.ranks.end() && report.has_several_hosts()) return printable(found->second.host);
  return report.words.say("rank {}", rank.value);
}

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

std::vector<Rank> callers(const Report& report) {
  std::vector<Rank> ranks;
  std::set<std::string> seen;
  for (const auto& [rank, facts] : report.ranks) {
    const bool is_gone =
        std::ranges::any_of(report.absent, [&](const Absent& absent) { return absent.rank == rank; });
    if (is_gone || facts.addresses.empty()) continue;
    if (!report.has_several_hosts() || seen.insert(facts.host).second) ranks.push_back(rank);
  }
  // Ways grow with the square of hosts: so many are tried within seconds, and fit into one message.
  constexpr std::size_t kMostHosts = 512;
  if (ranks.size() > kMostHosts) ranks.resize(kMostHosts);
  // Of one host all ranks take the same way: a few tell as much.
  constexpr std::size_t kMostOfOneHost = 4;
  if (!report.has_several_hosts() && ranks.size() > kMostOfOneHost) ranks.resize(kMostOfOneHost);
  return ranks;
}

void judge_attendance(const Report& report, std::vector<Finding>* findings) {
  for (const Absent& absent : report.absent) {
    if (absent.is_effect) continue;
    const bool has_come = absent.rung != "start";
    findings->push_back({.rule = has_come ? "lost-rank" : "absent-rank",
                         .level = Level::job,
                         .what = has_come ? lost(absent, report.words) : missing(absent, report.words),
                         .evidence = {},
                         .cure = exclusion(report, {absent.host})});
  }
}

void judge_places(const Report& report, std::vector<Finding>* findings) {
  judge_cores(report, findings);
  for (const auto& [rank, facts] : report.ranks) {
    // A rank that was lost before it told its place is missed already.
    if (!facts.addresses.empty()) judge_gpus(facts, report, findings);
  }
  judge_shared_gpus(report, findings);
}

std::vector<Finding> judge(const Report& report) {
  std::vector<Finding> findings;
  judge_attendance(report, &findings);
  judge_storage(report, &findings);
  judge_settings(report, &findings);
  judge_ways(report, &findings);
  judge_places(report, &findings);
  if (!report.ring_problem.empty() && report.absent.empty()) {
    findings.push_back({.rule = "all-reduce",
                        .level = Level::job,
                        .what = report.words.say("all ranks together: {}", report.ring_problem),
                        .evidence = {},
                        .cure = ""});
  }
  if (!report.torch_problem.empty()) {
    findings.push_back({.rule = "torch",
                        .level = Level::job,
                        .what = report.words.say("torch.distributed: {}", report.torch_problem),
                        .evidence = {},
                        .cure = ""});
  }
  // The worst first, else as found.
  std::vector<Finding> sorted;
  for (const Level level : {Level::job, Level::time, Level::advice}) {
    for (const Finding& finding : findings) {
      if (finding.level == level) sorted.push_back(finding);
    }
  }
  return sorted;
}

}  // namespace stoker::rank::hello
