#include "cli/environment/dependencies.h"

#include "launch/start/environment.h"
#include "preflight/python_dependencies.h"

namespace stoker::cli {
namespace {

constexpr std::chrono::seconds kTimeout{60};

}  // namespace

std::vector<Finding> find_missing_dependencies(const job::Job& job, Result<launch::ShellEnvironment> loaded) {
  if (!loaded.ok()) {
    const bool is_conda = loaded.error().message().starts_with("environment.conda");
    return {{.rule = is_conda ? "no-conda" : "no-module",
             .level = Level::job,
             .what = std::string(loaded.error().message()),
             .evidence = {{.where = job.origins.where(is_conda ? "environment.conda" : "environment.modules"),
                           .text = ""}},
             .cure = std::string(loaded.error().cure())}};
  }
  std::vector<Finding> findings = preflight::check_python_dependencies(
      job, launch::inherited_environment(job, std::move(loaded->variables)), Deadline::after(kTimeout));
  for (const std::string& note : loaded->notes) {
    findings.push_back({.rule = "module-replaced",
                        .level = Level::advice,
                        .what = format("environment.modules: {}", note),
                        .evidence = {{.where = job.origins.where("environment.modules"), .text = ""}},
                        .cure = ""});
  }
  return findings;
}

}  // namespace stoker::cli
