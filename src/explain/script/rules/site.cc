// Rules over the limits and opinions of the site, as its profile has them.
#include "base/text.h"
#include "explain/script/rule.h"
#include "job/site/judge.h"

namespace stoker::explain {
namespace {

using job::Site;

// "; see https://… (2026-04-18)".
std::string source_text(std::string_view url, std::string_view date, const Report& report) {
  return url.empty() ? quoted("") : report.say("; see {} ({})", url, date);
}

// What is asked for is judged as at submission; here it comes with the line and the level.
void find_limits(const Script& script, Report& report) {
  const Site* site = report.place().site;
  if (site == nullptr || script.request.directives.empty()) return;
  const auto options = [&](std::string_view name) -> std::optional<job::GivenOption> {
    const Directive* directive = script.request.find(name);
    if (directive == nullptr) return std::nullopt;
    return job::GivenOption{directive->option.value, std::string(name)};
  };
  const slurm::Lookup& environment = report.place().environment;
  const auto unset = [](std::string_view) { return std::optional<std::string>(); };
  const auto request = job::site_request(options, "", environment ? environment : slurm::Lookup(unset));
  for (const Finding& finding : job::judge_site(request, *site, report.place().words)) {
    const std::string& where = finding.evidence.front().where;
    const Directive* directive = script.request.find(where);
    std::string text = finding.what;
    if (where.starts_with("SBATCH_")) text += report.say(" ({} of your shell)", where).text();
    if (finding.evidence.size() > 1)
      text += source_text(finding.evidence[1].where, finding.evidence[1].text, report);
    ScriptFinding& found = report.add(
        directive == nullptr ? script.request.directives.front().span : directive->value, quoted(text));
    found.level = finding.level;
    found.fix = finding.cure;
  }
}

void find_opinions(const Script& script, Report& report) {
  const Site* site = report.place().site;
  if (site == nullptr) return;
  const auto opinion = site->opinions.find("anaconda");
  if (opinion == site->opinions.end()) return;
  for (const Call& call : script.calls) {
    const bool is_conda = call.program == "conda" || call.program == "mamba" ||
                          ((call.program == "source" || call.program == ".") && !call.words.empty() &&
                           to_lower(call.words[0]).find("conda") != std::string::npos);
    if (!is_conda) continue;
    const auto source = site->sources.find(opinion->second.from);
    std::string text = report.say("{} (site {})", opinion->second.what, site->name);
    if (source != site->sources.end()) text += source_text(source->second.url, source->second.date, report);
    report.add(call.span, quoted(text)).fix = opinion->second.cure.value_or("");
    return;
  }
}

constexpr Rule kSiteRules[] = {
    {"site-limit", Level::job, "what the site does not have or allow is refused, or waits for ever", "", "",
     "the site's profile", find_limits},
    {"site-opinion", Level::advice, "what the site's staff ask for", "", "", "the site's profile",
     find_opinions},
};

}  // namespace

std::span<const Rule> site_rules() { return kSiteRules; }

}  // namespace stoker::explain
