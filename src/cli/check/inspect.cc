#include "cli/check/inspect.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "base/process.h"
#include "cli/check/script.h"
#include "cli/environment/dependencies.h"
#include "cli/site/sites.h"
#include "launch/start/shell_environment.h"
#include "launch/start/submit.h"
#include "script_lint/lint.h"
#include "slurm/allocation.h"
#include "slurm/queue/scheduler.h"
#include "stoker/text.h"

namespace stoker::cli {
namespace {

constexpr std::chrono::seconds kLoadTimeout{60};
constexpr std::chrono::seconds kPartitionTimeout{5};
// The job would run, but other jobs and users wait for it.
constexpr std::array<std::string_view, 4> kHarmfulRules = {"array-flood", "uncapped-array", "flood",
                                                           "no-array-limit"};

bool is_refused(std::string_view rule, Level level) {
  const bool is_harmful = std::find(kHarmfulRules.begin(), kHarmfulRules.end(), rule) != kHarmfulRules.end();
  return level == Level::job || (level == Level::time && is_harmful);
}

// The PATH of the ranks: modules and conda provide programs. Other checks report a module that fails to load.
std::string search_path_of(const Result<launch::ShellEnvironment>& loaded, std::string own) {
  const std::string path = loaded.ok() ? variable(loaded->variables, "PATH") : "";
  return path.empty() ? own : path;
}

// Slurm accepts a job with more nodes than its partition has, and never starts it.
std::optional<Finding> find_excess_nodes(const job::Job& job) {
  if (job.resources.nodes < 2) return std::nullopt;
  slurm::SlurmCommands scheduler(launch::scheduler_environment(job, current_environment()));
  const auto partitions = scheduler.partitions(Deadline::after(kPartitionTimeout));
  if (!partitions.ok()) return std::nullopt;
  const std::string wanted = job.slurm.partition.value_or(environment_value("SBATCH_PARTITION").value_or(""));
  std::map<std::string, std::uint64_t> nodes;
  for (const slurm::PartitionNodes& each : *partitions) {
    const auto names = split(wanted, ',');
    const bool is_wanted = wanted.empty()
                               ? each.is_default
                               : std::find(names.begin(), names.end(), each.partition) != names.end();
    if (is_wanted) nodes[each.partition] += each.nodes;
  }
  const auto largest = std::max_element(nodes.begin(), nodes.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == nodes.end() || job.resources.nodes <= largest->second) return std::nullopt;
  return Finding{
      .rule = "many-nodes",
      .level = Level::job,
      .what = message("resources.nodes: {} requested, but partition '{}' has {}: the job would never start",
                      job.resources.nodes, largest->first, largest->second),
      .evidence = {{.where = job.origins.where("resources.nodes"), .text = ""}},
      .cure = format("resources: {{nodes: {}}}", largest->second)};
}

Status refuse(const std::vector<std::string>& fatal, const std::string& cure, const Force& force,
              Output& out) {
  if (fatal.empty()) return {};
  if (force.is_given) {
    for (const std::string& text : fatal) out.note("forced: {}", text);
    return {};
  }
  Status status = invalid("{}\n  {} --force submits it anyway", join(fatal, "\n"), force.command);
  return cure.empty() ? status : std::move(status).cure("{}", cure);
}

}  // namespace

Result<Inspection> inspect_job(const job::Job& job, bool for_queue) {
  STOKER_ASSIGN_OR_RETURN(host, preflight::inspect_host());
  Inspection inspection{.host = std::move(host), .preflight = {}};
  inspection.host.has_queue = for_queue || !job::detect_cluster(slurm::process_environment()).cluster.empty();
  if (for_queue) inspection.host.allocation.reset();
  inspection.host.has_forecasts = !for_queue;  // none of them refuses a job
  if (job.site != "none") {
    if (auto found = find_site_by_name(job.site); found.ok()) inspection.host.site = std::move(found->site);
  }
  auto loaded =
      launch::load_environment(job.environment, current_environment(), Deadline::after(kLoadTimeout));
  inspection.host.search_path = search_path_of(loaded, std::move(inspection.host.search_path));
  inspection.preflight = preflight::run_preflight(job, inspection.host);
  std::vector<Finding>& findings = inspection.preflight.findings;
  for (Finding& finding : find_missing_dependencies(job, std::move(loaded)))
    findings.push_back(std::move(finding));
  for (Finding& finding : find_site_violations(job)) findings.push_back(std::move(finding));
  const bool is_for_queue = inspection.host.has_queue && !inspection.host.allocation;
  if (auto excess = is_for_queue ? find_excess_nodes(job) : std::nullopt)
    findings.push_back(std::move(*excess));
  return inspection;
}

Status refuse_lost_job(const job::Job& job, const Force& force, Output& out) {
  STOKER_ASSIGN_OR_RETURN(inspection, inspect_job(job, true));
  std::vector<std::string> fatal;
  std::string cure;
  for (const Finding& finding : inspection.preflight.findings) {
    // A default has no place.
    const std::string place = finding.evidence.empty() ? "" : finding.evidence.front().where;
    const std::string where = place.find(':') == std::string::npos ? "" : place + ": ";
    if (!is_refused(finding.rule, finding.level)) {
      // Advice about the machine and the last run belongs to `check`.
      if (finding.rule == "no-import" || finding.rule == "module-replaced")
        out.note("advice: {}{}", where, finding.what.english());
      continue;
    }
    std::string text = where + finding.what.english();
    if (finding.evidence.size() > 1)
      text += format("\n  see {} ({})", finding.evidence[1].where, finding.evidence[1].text.english());
    fatal.push_back(std::move(text));
    if (cure.empty()) cure = finding.cure.english();
  }
  return refuse(fatal, cure, force, out);
}

Status refuse_lost_script(const std::string& script, const std::vector<std::string>& options,
                          const Force& force, Output& out) {
  STOKER_ASSIGN_OR_RETURN(lint, lint_for_submission(script, options));
  std::vector<std::string> fatal;
  std::string cure;
  for (const script_lint::ScriptFinding& finding : lint.findings) {
    // Submission creates log folders.
    if (!is_refused(finding.rule, finding.level) || !finding.folder.empty()) continue;
    fatal.push_back(format("{}:{}: {} [{}]", printable(script), finding.line,
                           printable(finding.text.english()), finding.rule));
    if (cure.empty()) cure = format("stoker check {}", shell_quote(script));
  }
  return refuse(fatal, cure, force, out);
}

}  // namespace stoker::cli
