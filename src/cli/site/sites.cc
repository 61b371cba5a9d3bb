#include "cli/site/sites.h"

#include "cli/running.h"

namespace stoker::cli {

Result<job::SitePlaces> own_site_places() {
  OK_OR_RETURN(program, own_program());
  return job::site_places(program.parent_path(), slurm::process_environment());
}

Result<job::FoundSite> site_named(std::string_view name) {
  OK_OR_RETURN(places, own_site_places());
  return job::find_site(places, name, job::look_for_cluster(slurm::process_environment()));
}

namespace {

// `request` is what the job, or the script it stands for, asks for.
std::vector<Finding> find_objections(const job::Job& job, const job::SiteRequest& request,
                                     const Words& words = Words()) {
  if (job.site == "none") return {};
  const auto found = site_named(job.site);
  if (found.ok()) {
    auto findings = job::judge_site(request, found->site, words);
    if (!found->asked_for.empty()) {
      findings.push_back({.rule = "old-site",
                          .level = Level::advice,
                          .what = words.say("site: {} is now {}", found->asked_for, found->site.name),
                          .evidence = {{.where = job.origins.where("site"), .text = ""}},
                          .cure = format("site: {}", found->site.name)});
    }
    return findings;
  }
  // Profiles that are not there are the job file's matter only when it asks for one.
  if (job.site == "auto" && found.error().code() == Code::not_found) return {};
  return {{.rule = "no-site",
           .level = Level::job,
           .what = std::string(found.error().message()),
           .evidence = {{.where = job.origins.where("site"), .text = ""}},
           .cure = std::string(found.error().cure())}};
}

// "train.sh:3: --time: ... is over the limit of ...", and below it where that is said.
std::string refusal_text(const Finding& finding) {
  std::string text = format("{}: {}", finding.evidence.front().where, finding.what);
  if (finding.evidence.size() > 1)
    text += format("\n  see {} ({})", finding.evidence[1].where, finding.evidence[1].text);
  return text;
}

Status tell(const std::vector<Finding>& findings, Output& out) {
  std::vector<std::string> refused;
  std::string cure;
  for (const Finding& finding : findings) {
    if (finding.level == Level::job) {
      refused.push_back(refusal_text(finding));
      if (cure.empty()) cure = finding.cure;
    } else {
      out.note("{}: {}", finding.level == Level::time ? "slow" : "advice", finding.what);
    }
  }
  if (refused.empty()) return {};
  Status status = invalid("{}", join(refused, "\n"));
  return cure.empty() ? status : std::move(status).cure("{}", cure);
}

}  // namespace

std::vector<Finding> find_site_objections(const job::Job& job, const Words& words) {
  return find_objections(job, job::site_request(job, slurm::process_environment()), words);
}

Status check_with_site(const job::Job& job, Output& out) { return tell(find_site_objections(job), out); }

Status check_script_with_site(const job::Job& job, const job::SiteRequest& request, Output& out) {
  return tell(find_objections(job, request), out);
}

}  // namespace stoker::cli
