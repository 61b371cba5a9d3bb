#include "cli/site/sites.h"

#include "cli/run_request.h"

namespace stoker::cli {

Result<job::SiteSearchPath> site_profile_paths() {
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  return job::site_search_path(program.parent_path(), slurm::process_environment());
}

Result<job::FoundSite> find_site_by_name(std::string_view name) {
  STOKER_ASSIGN_OR_RETURN(places, site_profile_paths());
  return job::find_site(places, name, job::detect_cluster(slurm::process_environment()));
}

std::string transfer_node_for(const std::string& host) {
  const auto places = site_profile_paths();
  return places.ok() ? job::transfer_node_of(*places, host) : "";
}

namespace {

// `request`: the resources of the job or script.
std::vector<Finding> find_violations(const job::Job& job, const job::SiteRequest& request) {
  if (job.site == "none") return {};
  const auto found = find_site_by_name(job.site);
  if (found.ok()) {
    auto findings = job::check_against_site(request, found->site);
    if (!found->requested_name.empty()) {
      findings.push_back({.rule = "old-site",
                          .level = Level::advice,
                          .what = message("site: {} is now {}", found->requested_name, found->site.name),
                          .evidence = {{.where = job.origins.where("site"), .text = ""}},
                          .cure = format("site: {}", found->site.name)});
    }
    return findings;
  }
  // A missing profile matters only if the job file names one.
  if (job.site == "auto" && found.error().code() == Code::not_found) return {};
  return {{.rule = "no-site",
           .level = Level::job,
           .what = std::string(found.error().message()),
           .evidence = {{.where = job.origins.where("site"), .text = ""}},
           .cure = std::string(found.error().cure())}};
}

// "train.sh:3: --time: ... is over the limit of ...", followed by the source of the limit.
std::string refusal_text(const Finding& finding) {
  std::string text = format("{}: {}", finding.evidence.front().where, finding.what.english());
  if (finding.evidence.size() > 1)
    text += format("\n  see {} ({})", finding.evidence[1].where, finding.evidence[1].text.english());
  return text;
}

Status report_findings(const std::vector<Finding>& findings, Output& out) {
  std::vector<std::string> refused;
  std::string cure;
  for (const Finding& finding : findings) {
    if (finding.level == Level::job) {
      refused.push_back(refusal_text(finding));
      if (cure.empty()) cure = finding.cure.english();
    } else {
      out.note("{}: {}", finding.level == Level::time ? "slow" : "advice", finding.what.english());
    }
  }
  if (refused.empty()) return {};
  Status status = invalid("{}", join(refused, "\n"));
  return cure.empty() ? status : std::move(status).cure("{}", cure);
}

}  // namespace

std::vector<Finding> find_site_violations(const job::Job& job) {
  return find_violations(job, job::site_request(job, slurm::process_environment()));
}

Status check_site_limits(const job::Job& job, Output& out) {
  return report_findings(find_site_violations(job), out);
}

Status check_script_site_limits(const job::Job& job, const job::SiteRequest& request, Output& out) {
  return report_findings(find_violations(job, request), out);
}

}  // namespace stoker::cli
