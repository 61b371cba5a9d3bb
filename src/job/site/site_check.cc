#include "job/site/site_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "slurm/script/batch_script.h"
#include "slurm/script/requested_resources.h"

namespace stoker::job {
namespace {

struct RequestNames {
  std::string_view time;
  std::string_view nodes;
  std::string_view account;
  std::string_view cpus;
  std::string_view memory;
  std::string_view jobs;
};
constexpr RequestNames kInJobFile{.time = "resources.time",
                                  .nodes = "resources.nodes",
                                  .account = "slurm.account",
                                  .cpus = "resources.cpus_per_rank",
                                  .memory = "resources.memory_per_node",
                                  .jobs = "array"};
constexpr RequestNames kInScript{.time = "--time",
                                 .nodes = "--nodes",
                                 .account = "--account",
                                 .cpus = "--cpus-per-task",
                                 .memory = "--mem",
                                 .jobs = "--array"};
constexpr std::string_view kTimeOfLink = "chain.time_per_link";

RequestNames names_in(const SiteRequest& request) {
  RequestNames names = request.written == RequestSource::batch_script ? kInScript : kInJobFile;
  if (request.is_chain) names.time = kTimeOfLink;
  return names;
}

class SiteChecker {
 public:
  SiteChecker(const SiteRequest& request, const Site& site)
      : request_(request), site_(site), name_(names_in(request)) {}

  std::vector<Finding> check_all() {
    choose_limits();
    check_time();
    check_nodes();
    check_gpus();
    check_jobs();
    check_account();
    check_shape();
    check_share();
    return std::move(findings_);
  }

 private:
  // Limits of a partition or a QoS.
  struct Limits {
    Message whose;  // "partition 'gpu'"
    std::optional<Duration> time;
    std::optional<Duration> default_time;
    std::optional<std::uint64_t> nodes;
    std::optional<std::uint64_t> gpus;
    std::optional<std::uint64_t> jobs;
    std::string from;
  };

  bool is_script() const { return request_.written == RequestSource::batch_script; }

  void add_finding(std::string_view rule, Level level, std::string_view name, const Message& what,
                   std::string_view from) {
    Finding finding{.rule = std::string(rule), .level = level, .what = what};
    const auto place = request_.where.find(name);
    finding.evidence.push_back(
        {.where = place == request_.where.end() ? std::string(name) : place->second, .text = ""});
    if (const auto source = site_.sources.find(std::string(from)); source != site_.sources.end())
      finding.evidence.push_back({.where = source->second.url, .text = source->second.date});
    findings_.push_back(std::move(finding));
  }
  void cure(Message text) { findings_.back().cure = std::move(text); }

  std::string group_source(const std::string& group) const {
    const auto from = site_.from.find(group);
    return from == site_.from.end() ? "" : from->second;
  }

  std::vector<std::string> partitions() const {
    std::vector<std::string> names;
    if (!request_.partition) return request_.constraint ? partitions_of_constraint() : default_partitions();
    for (std::string_view name : split(*request_.partition, ',')) names.emplace_back(name);
    return names;
  }

  // The partitions of the kinds of nodes that the profile requests with this constraint: "-C a100".
  std::vector<std::string> partitions_of_constraint() const {
    std::vector<std::string> names;
    const std::string option = "-C " + *request_.constraint;
    for (const auto& [name, node] : site_.nodes) {
      const bool is_selected =
          std::find(node.options.begin(), node.options.end(), option) != node.options.end();
      if (is_selected && node.partition) names.push_back(*node.partition);
    }
    return names;
  }

  // The partitions of a job that requests neither a partition nor a constraint.
  std::vector<std::string> default_partitions() const {
    const DefaultFor kind = request_.has_gpus ? DefaultFor::gpu : DefaultFor::cpu;
    std::vector<std::string> names;
    for (const auto& [name, partition] : site_.partitions) {
      if (partition.default_for == DefaultFor::all || partition.default_for == kind) names.push_back(name);
    }
    return names;
  }

  const SiteQos* find_qos(const std::optional<std::string>& name) const {
    const auto found = name ? site_.qos.find(*name) : site_.qos.end();
    return found == site_.qos.end() ? nullptr : &found->second;
  }

  // The requested QoS overrides the partition's limits, without one the partition's default QoS does. An
  // unknown QoS is not judged, but does not bypass enforced limits.
  void choose_limits() {
    const SiteQos* requested = find_qos(request_.qos);
    if (request_.qos && requested == nullptr && !site_.is_enforced) return;
    std::set<std::string> default_qos;
    for (const std::string& name : partitions()) {
      const auto at = site_.partitions.find(name);
      if (at == site_.partitions.end()) continue;
      const SiteQos* qos = request_.qos ? requested : find_qos(at->second.default_qos);
      if (!request_.qos && qos != nullptr) default_qos.insert(*at->second.default_qos);
      Limits limits{.whose = message("partition '{}'", name),
                    .time = at->second.time,
                    .default_time = at->second.default_time,
                    .nodes = at->second.nodes,
                    .gpus = {},
                    .jobs = {},
                    .from = at->second.from};
      if (qos != nullptr && qos->time) limits.time.reset();
      if (qos != nullptr && qos->nodes) limits.nodes.reset();
      limits_.push_back(std::move(limits));
    }
    if (requested != nullptr) add_limits(message("QoS '{}'", printable(*request_.qos)), *requested);
    for (const std::string& name : default_qos)
      add_limits(message("the default QoS '{}'", printable(name)), site_.qos.at(name));
  }

  void add_limits(Message whose, const SiteQos& qos) {
    limits_.push_back({.whose = std::move(whose),
                       .time = qos.time,
                       .default_time = {},
                       .nodes = qos.nodes,
                       .gpus = qos.gpus,
                       .jobs = qos.jobs,
                       .from = qos.from});
  }

  std::uint64_t total_gpus() const {
    return std::min<std::uint64_t>(request_.gpus_per_node.value_or(0), 100'000) *
           std::min<std::uint64_t>(request_.nodes.value_or(1), 100'000);
  }

  std::string time_cure(Duration limit) const {
    for (const auto& [name, qos] : site_.qos) {
      const bool is_longer = qos.time && *qos.time >= *request_.time;
      const bool is_large_enough = (!qos.nodes || request_.nodes.value_or(1) <= *qos.nodes) &&
                                   (!qos.gpus || total_gpus() <= *qos.gpus);
      if (!request_.qos && is_longer && is_large_enough && serves(qos))
        return is_script() ? format("#SBATCH --qos={}", name) : format("slurm: {{qos: {}}}", name);
    }
    if (is_script()) return format("#SBATCH --time={}", slurm::slurm_duration(limit));
    // A chain can run longer than a single job, also for each task of an array.
    return format("chain: {{until: done, time_per_link: {}}}", duration_text(limit));
  }
  bool serves(const SiteQos& qos) const {
    const std::vector<std::string> wanted = partitions();
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return std::find(qos.partitions.begin(), qos.partitions.end(), name) != qos.partitions.end();
    });
  }

  void check_time() {
    const auto& time = request_.time;
    for (const Limits& each : limits_) {
      if (time && each.time && *time > *each.time) {
        add_finding("over-time", Level::job, name_.time,
                    message("{}: {} is over the limit of {} ({}, site {})", name_.time, duration_text(*time),
                            each.whose, duration_text(*each.time), site_.name),
                    each.from);
        cure(time_cure(*each.time));
        return;
      }
      if (!request_.has_time && each.default_time) {
        add_finding("default-time", Level::time, name_.time,
                    message("{}: not set; the default of {} is {} (site {})", name_.time, each.whose,
                            duration_text(*each.default_time), site_.name),
                    each.from);
      }
    }
    if (time && site_.limits.time && *time > *site_.limits.time) {
      add_finding("over-time", Level::job, name_.time,
                  message("{}: {} is over the limit of every job ({}, site {})", name_.time,
                          duration_text(*time), duration_text(*site_.limits.time), site_.name),
                  group_source("limits"));
      cure(time_cure(*site_.limits.time));
    } else if (time && site_.limits.shortest && *time < *site_.limits.shortest) {
      add_finding("short-job", request_.jobs > 1 ? Level::time : Level::advice, name_.time,
                  message("{}: {} requested, but jobs should last {} at least (site {})", name_.time,
                          duration_text(*time), duration_text(*site_.limits.shortest), site_.name),
                  group_source("limits"));
    }
  }

  void check_nodes() {
    if (!request_.nodes) return;
    const std::uint64_t nodes = *request_.nodes;
    for (const Limits& each : limits_) {
      if (!each.nodes || nodes <= *each.nodes) continue;
      add_finding("many-nodes", Level::job, name_.nodes,
                  message("{}: {} requested, but {} allows at most {} per job (site {})", name_.nodes, nodes,
                          each.whose, *each.nodes, site_.name),
                  each.from);
    }
    if (site_.limits.nodes && nodes > *site_.limits.nodes) {
      add_finding("many-nodes", Level::job, name_.nodes,
                  message("{}: {} requested, but a job gets {} at most (site {})", name_.nodes, nodes,
                          *site_.limits.nodes, site_.name),
                  group_source("limits"));
    }
  }

  void check_gpus() {
    for (const Limits& each : limits_) {
      if (!each.gpus || total_gpus() <= *each.gpus) continue;
      add_finding("many-gpus", Level::job, request_.gpus_by,
                  message("{}: {} requested in total, but {} allows at most {} per job (site {})",
                          request_.gpus_by, total_gpus(), each.whose, *each.gpus, site_.name),
                  each.from);
    }
  }

  void check_jobs() {
    for (const Limits& each : limits_) {
      if (!each.jobs || request_.jobs <= *each.jobs) continue;
      add_finding("many-jobs", Level::job, name_.jobs,
                  // several, being over a limit
                  message("{}: {} jobs, but {} allows a user at most {} at a time (site {})", name_.jobs,
                          request_.jobs, each.whose, *each.jobs, site_.name),
                  each.from);
    }
    if (!site_.limits.jobs || request_.jobs <= *site_.limits.jobs) return;
    add_finding("many-jobs", Level::job, name_.jobs,
                // several, being over a limit
                message("{}: {} jobs, but a user may have {} at a time (site {})", name_.jobs, request_.jobs,
                        *site_.limits.jobs, site_.name),
                group_source("limits"));
  }

  void check_account() {
    if (!site_.needs_account || request_.account) return;
    add_finding("no-account", Level::job, name_.account,
                message("{}: not set, but site {} requires one{}", name_.account, site_.name,
                        site_.account ? format(": {}", *site_.account) : ""),
                group_source("account"));
    if (site_.account_command) {
      cure(message("{} lists your accounts; {}", *site_.account_command,
                   is_script() ? "#SBATCH --account=NAME" : "slurm: {account: NAME}"));
    }
  }

  // The kinds of nodes that the job may get.
  std::vector<const SiteNode*> candidate_nodes() const {
    const std::vector<std::string> wanted = partitions();
    std::vector<const SiteNode*> nodes;
    for (const auto& [name, node] : site_.nodes) {
      const bool is_elsewhere = !wanted.empty() && node.partition &&
                                std::find(wanted.begin(), wanted.end(), *node.partition) == wanted.end();
      if (!is_elsewhere) nodes.push_back(&node);
    }
    return nodes;
  }

  // The maximum over the kinds of nodes; nothing if the value of any kind is unknown.
  template <typename Value>
  static std::optional<Value> most(const std::vector<const SiteNode*>& nodes,
                                   std::optional<Value> SiteNode::* field) {
    std::optional<Value> best;
    for (const SiteNode* node : nodes) {
      if (!(node->*field)) return std::nullopt;
      best = best ? std::max(*best, *(node->*field)) : *(node->*field);
    }
    return best;
  }

  void check_shape() {
    std::vector<const SiteNode*> nodes = candidate_nodes();
    const std::uint64_t gpus = request_.gpus_per_node.value_or(0);
    if (gpus > 0) std::erase_if(nodes, [](const SiteNode* node) { return node->gpus.value_or(0) == 0; });
    if (nodes.empty()) return;
    const std::string_view from = nodes.front()->from;
    if (const auto most_gpus = most(nodes, &SiteNode::gpus); gpus > 0 && most_gpus && gpus > *most_gpus) {
      add_finding("many-gpus", Level::job, request_.gpus_by,
                  message("{}: {} on each node, but no node has more than {} (site {})", request_.gpus_by,
                          gpus, *most_gpus, site_.name),
                  from);
      const std::uint64_t all = gpus * request_.nodes.value_or(1);
      cure(message("nodes: {}, GPUs on each: {}", (all + *most_gpus - 1) / *most_gpus, *most_gpus));
    }
    const std::uint64_t cpus = std::min<std::uint64_t>(request_.cpus_per_task.value_or(0), 100'000) *
                               std::min<std::uint64_t>(request_.tasks_per_node, 100'000);
    if (const auto cores = most(nodes, &SiteNode::cores); cores && cpus > *cores) {
      add_finding("many-cores", Level::job, name_.cpus,
                  // several, being over a limit
                  message("{}: {} cores on each node, but no node has more than {} (site {})", name_.cpus,
                          cpus, *cores, site_.name),
                  from);
    }
    const auto memory = most(nodes, &SiteNode::memory);
    if (memory && request_.memory_per_node && *request_.memory_per_node > *memory) {
      add_finding("much-memory", Level::job, name_.memory,
                  message("{}: {} on each node, but jobs get {} at most (site {})", name_.memory,
                          rounded(*request_.memory_per_node), rounded(*memory), site_.name),
                  from);
    }
  }

  // Cores beyond a GPU's share make other GPUs of the node unusable, and those are charged as well.
  void check_share() {
    if (request_.gpus_per_task == 0 || !request_.cpus_per_task) return;
    std::uint64_t share = 0;
    std::string_view from;
    for (const SiteNode* node : candidate_nodes()) {
      if (node->cores_per_gpu.value_or(0) <= share) continue;
      share = *node->cores_per_gpu;
      from = node->from;
    }
    const std::uint64_t fair = share * request_.gpus_per_task;
    if (share == 0 || *request_.cpus_per_task <= fair) return;
    add_finding("unfair-share", Level::advice, name_.cpus,
                request_.gpus_per_task == 1
                    ? message("{}: {} with 1 GPU, whose fair share is {} at most (site {})", name_.cpus,
                              *request_.cpus_per_task, fair, site_.name)
                    : message("{}: {} with {} GPUs, whose fair share is {} at most (site {})", name_.cpus,
                              *request_.cpus_per_task, request_.gpus_per_task, fair, site_.name),
                from);
    cure(is_script() ? format("#SBATCH --cpus-per-task={}", fair)
                     : format("resources: {{cpus_per_rank: {}}}", fair));
  }

  const SiteRequest& request_;
  const Site& site_;
  const RequestNames name_;
  std::vector<Limits> limits_;
  std::vector<Finding> findings_;
};

// "a100" of --constraint=a100 and -Ca100.
std::optional<std::string> constraint_in(const std::vector<std::string>& options) {
  for (std::string_view option : options) {
    for (std::string_view name : {"--constraint=", "--constraint ", "-C=", "-C ", "-C"}) {
      if (option.starts_with(name)) return std::string(trim(option.substr(name.size())));
    }
  }
  return std::nullopt;
}

std::optional<std::string> given_or(const std::optional<std::string>& given,
                                    const std::optional<std::string>& otherwise) {
  return given ? given : otherwise;
}

}  // namespace

SiteRequest site_request(const Job& job, const slurm::Lookup& environment) {
  SiteRequest request;
  request.is_chain = job.chain.is_enabled();
  request.time = request.is_chain ? job.chain.time_per_link : job.resources.time;
  request.nodes = job.resources.nodes;
  request.partition = given_or(job.slurm.partition, environment("SBATCH_PARTITION"));
  request.constraint = constraint_in(job.slurm.extra);
  request.qos = given_or(job.slurm.qos, environment("SBATCH_QOS"));
  request.account = given_or(job.slurm.account, environment("SBATCH_ACCOUNT"));
  request.gpus_per_task = job.resources.gpus_per_rank;
  request.cpus_per_task = job.resources.cpus_per_rank;
  request.tasks_per_node = job.resources.ranks_per_node;
  request.has_gpus = job.resources.gpus_per_node() > 0;
  if (request.has_gpus) request.gpus_per_node = job.resources.gpus_per_node();
  if (job.resources.ranks_per_gpu > 1) request.gpus_by = "resources.ranks_per_gpu";
  request.memory_per_node = job.resources.memory_per_node;
  request.has_time = request.time.has_value();
  for (std::string_view key : {kInJobFile.time, kTimeOfLink, kInJobFile.nodes, kInJobFile.account,
                               kInJobFile.cpus, kInJobFile.memory, std::string_view(request.gpus_by)}) {
    if (std::string where = job.origins.where(key); where != "default")
      request.where.emplace(key, std::move(where));
  }
  return request;
}

SiteRequest site_request(const GivenOptions& options, const std::string& script,
                         const slurm::Lookup& environment) {
  // Environment variables that override options.
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {{"--time", "SBATCH_TIMELIMIT"},
                                                                          {"--partition", "SBATCH_PARTITION"},
                                                                          {"--qos", "SBATCH_QOS"},
                                                                          {"--account", "SBATCH_ACCOUNT"}};
  SiteRequest request{.written = RequestSource::batch_script};
  const auto value = [&](std::string_view name) -> std::optional<std::string> {
    for (const auto& [option, variable] : kVariables) {
      if (option != name) continue;
      if (auto set = environment(variable)) {
        request.where[std::string(name)] = std::string(variable);
        return set;
      }
    }
    const auto given = options(name);
    if (!given) return std::nullopt;
    request.where[std::string(name)] = given->where;
    return given->value;
  };
  for (const char* option : {"--time", "--account"}) request.where[option] = script;  // where they are not
  const slurm::RequestedResources asked(value);
  request.has_time = value("--time").has_value();
  request.time = asked.time();
  if (value("--nodes")) request.nodes = asked.nodes();
  request.partition = value("--partition");
  request.constraint = value("--constraint");
  request.qos = value("--qos");
  request.account = value("--account");
  request.cpus_per_task = asked.number("--cpus-per-task");
  request.tasks_per_node = std::max<std::uint64_t>(asked.tasks_per_node().value_or(1), 1);
  request.gpus_per_node = asked.gpus_per_node();
  if (const auto gpus = asked.gpus(); !gpus.empty()) {
    request.gpus_by = gpus.front().option;
    request.has_gpus = request.gpus_per_node != 0;
  }
  const std::uint64_t gpus = request.gpus_per_node.value_or(0);
  if (gpus % request.tasks_per_node == 0) request.gpus_per_task = gpus / request.tasks_per_node;
  request.memory_per_node = asked.memory_per_node();
  request.jobs = std::max<std::uint64_t>(asked.array_tasks(), 1);
  return request;
}

std::vector<Finding> check_against_site(const SiteRequest& request, const Site& site) {
  return SiteChecker(request, site).check_all();
}

}  // namespace stoker::job
