#include "cli/environment/needs.h"

#include "explain/python_needs.h"
#include "launch/environment.h"
#include "launch/shell/shell_environment.h"

namespace stoker::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

std::vector<Finding> find_missing_needs(const job::Job& job, const Words& words) {
  auto loaded = launch::load_environment(job.environment, current_environment(), Deadline::after(kPatience));
  if (!loaded.ok()) {
    const bool is_conda = loaded.error().message().starts_with("environment.conda");
    return {{.rule = is_conda ? "no-conda" : "no-module",
             .level = Level::job,
             .what = std::string(loaded.error().message()),
             .evidence = {{.where = job.origins.where(is_conda ? "environment.conda" : "environment.modules"),
                           .text = ""}},
             .cure = std::string(loaded.error().cure())}};
  }
  std::vector<Finding> findings =
      explain::missing_needs(job, launch::inherited_environment(job, std::move(loaded->variables)),
                             Deadline::after(kPatience), words);
  for (const std::string& note : loaded->notes) {
    findings.push_back({.rule = "module-replaced",
                        .level = Level::advice,
                        .what = format("environment.modules: {}", note),
                        .evidence = {{.where = job.origins.where("environment.modules"), .text = ""}},
                        .cure = ""});
  }
  return findings;
}

Status check_needs(const job::Job& job, Output& out) {
  std::vector<std::string> losing;
  std::string cure;
  for (const Finding& finding : find_missing_needs(job)) {
    const std::string text = format("{}: {}", finding.evidence.front().where, finding.what);
    if (finding.level != Level::job) {
      out.note("advice: {}", text);
      continue;
    }
    losing.push_back(text);
    if (cure.empty()) cure = finding.cure;
  }
  if (losing.empty()) return {};
  Status status = not_found("{}", join(losing, "\n"));
  return cure.empty() ? status : std::move(status).cure("{}", cure);
}

}  // namespace stoker::cli
