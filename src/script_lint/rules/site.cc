// Rules for limits and recommendations of the site profile.
#include <algorithm>

#include "job/site/site_check.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

using job::Site;

// "; see https://… (2026-04-18)".
Message source_text(std::string_view url, std::string_view date) {
  return url.empty() ? Message() : message("; see {} ({})", url, date);
}

// Everything that the site forbids or advises against, as at submission.
std::vector<Finding> find_violations(const Script& script, const LintContext& context) {
  if (context.site == nullptr || script.request.directives.empty()) return {};
  const auto options = [&](std::string_view name) -> std::optional<job::GivenOption> {
    const Directive* directive = script.request.find(name);
    if (directive == nullptr) return std::nullopt;
    return job::GivenOption{directive->option.value, std::string(name)};
  };
  const slurm::Lookup& environment = context.environment;
  const auto unset = [](std::string_view) { return std::optional<std::string>(); };
  const auto request = job::site_request(options, "", environment ? environment : slurm::Lookup(unset));
  return job::check_against_site(request, *context.site);
}

// With line and level.
void find_limits(const Script& script, FindingReport& report) {
  for (const Finding& finding : find_violations(script, report.context())) {
    const std::string& where = finding.evidence.front().where;
    const Directive* directive = script.request.find(where);
    Message text = finding.what;
    if (where.starts_with("SBATCH_")) text += message(" ({} in your shell)", where);
    if (finding.evidence.size() > 1)
      text += source_text(finding.evidence[1].where, finding.evidence[1].text.english());
    ScriptFinding& found =
        report.add(directive == nullptr ? script.request.directives.front().span : directive->value, text);
    found.level = finding.level;
    found.fix = finding.cure;
  }
}

void find_opinions(const Script& script, FindingReport& report) {
  const Site* site = report.context().site;
  if (site == nullptr) return;
  const auto opinion = site->opinions.find("anaconda");
  if (opinion == site->opinions.end()) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_conda = call.program == "conda" || call.program == "mamba" ||
                          ((call.program == "source" || call.program == ".") && !call.words.empty() &&
                           to_lower(call.words[0]).find("conda") != std::string::npos);
    if (!is_conda) continue;
    const auto source = site->sources.find(opinion->second.from);
    Message text = message("{} (site {})", opinion->second.what, site->name);
    if (source != site->sources.end()) text += source_text(source->second.url, source->second.date);
    report.add(call.span, text).fix = opinion->second.cure.value_or("");
    return;
  }
}

constexpr Rule kSiteRules[] = {
    {"site-limit", Level::job, "a request beyond the site's limits is rejected, or waits forever", "", "",
     "the site profile", find_limits},
    {"site-opinion", Level::advice, "recommendations of the site's staff", "", "", "the site profile",
     find_opinions},
};

}  // namespace

std::span<const Rule> site_rules() { return kSiteRules; }

bool has_default_time_of_site(const Script& script, const LintContext& context) {
  const std::vector<Finding> found = find_violations(script, context);
  return std::any_of(found.begin(), found.end(),
                     [](const Finding& each) { return each.rule == "default-time"; });
}

}  // namespace stoker::script_lint
