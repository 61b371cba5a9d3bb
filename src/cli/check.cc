// `stoker check JOB`: docs/commands/check.md
#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "config/writer.h"
#include "explain/preflight.h"
#include "job/job.h"
#include "job/settings.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string job = "job.yaml";
  std::vector<std::string> set;
  bool print = false;
  bool keys = false;
};

// "job.yaml:6:19", or the setting itself where its default decided.
std::string where(const Finding& finding) {
  return finding.evidence.empty() ? "" : finding.evidence[0].where;
}

void print(const Options& options, const job::Job& job, const explain::Preflight& preflight, Output& out) {
  const std::size_t ranks = job.resources.world_size();
  std::size_t losing = 0;
  for (const Finding& finding : preflight.findings) losing += finding.level == Level::job ? 1 : 0;
  if (losing == 0) {
    out.line("{}: ready to run here ({} rank{})", printable(options.job), ranks, ranks == 1 ? "" : "s");
  } else {
    out.line("{}: not ready, {} would lose the job", printable(options.job),
             losing == 1 ? "1 mistake" : format("{} mistakes", losing));
  }
  for (const explain::Fact& fact : preflight.facts) out.line("  {:<10}{}", fact.name, fact.text);
  for (const Finding& finding : preflight.findings) {
    const std::string_view label = finding.level == Level::job    ? "mistake"
                                   : finding.level == Level::time ? "slow"
                                                                  : "advice";
    out.line("  {:<10}{} ({})", label, finding.what, where(finding));
    if (!finding.cure.empty()) out.line("  {:<10}try: {}", "", finding.cure);
  }
}

ordered_json to_json(const Options& options, const job::Job& job, const explain::Preflight& preflight) {
  ordered_json facts = ordered_json::array();
  for (const explain::Fact& fact : preflight.facts)
    facts.push_back({{"name", fact.name}, {"text", fact.text}});
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : preflight.findings) {
    findings.push_back({{"rule", finding.rule},
                        {"level", std::string(to_text(finding.level))},
                        {"what", finding.what},
                        {"where", where(finding)},
                        {"cure", finding.cure}});
  }
  return {{"job", printable(options.job)},
          {"ready", preflight.is_ready()},
          {"ranks", job.resources.world_size()},
          {"facts", facts},
          {"findings", findings},
          {"effective", job::to_yaml(job)}};
}

ordered_json keys_json() {
  ordered_json keys = ordered_json::array();
  for (const config::Setting& setting : job::schema().settings()) {
    keys.push_back({{"key", std::string(setting.key)},
                    {"type", config::type_text(setting)},
                    {"range", config::range_text(setting)},
                    {"default", std::string(setting.fallback)},
                    {"unset", std::string(setting.unset)},
                    {"required", setting.is_required()},
                    {"what", std::string(setting.what)},
                    {"see", std::string(setting.see)}});
  }
  return {{"keys", keys}};
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const auto& [name, value] : current_environment()) variables.push_back(format("{}={}", name, value));
  return variables;
}

}  // namespace

int check(std::span<const std::string> words, Output& out) {
  Options options;
  Arguments arguments(
      "check", "Checks a job file without running it, and what it needs: data, programs, folders, cores.");
  arguments.optional_positional("JOB", &options.job, "the job file [job.yaml]");
  arguments.option("--set", &options.set, "KEY.PATH=VALUE", "replaces a value of the job file");
  arguments.flag("--print", &options.print, "prints the effective file and where each value came from");
  arguments.flag("--keys", &options.keys, "lists every key a job file may have, and does nothing else");
  arguments.example("stoker check job.yaml --set train.epochs=3 --print");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (options.keys) {
    out.raw(config::text_table(job::schema()));
    out.json(dump(keys_json()));
    return exit_code::kOk;
  }
  const Result<job::Job> job = job::load(options.job, {.environment = environment(), .set = options.set});
  if (!job) return out.fail(job.error());
  if (options.print && !out.is_json()) {
    out.raw(job::to_yaml(*job));
    return exit_code::kOk;
  }
  const Result<explain::Surroundings> around = explain::look_around();
  if (!around) return out.fail(around.error());
  const explain::Preflight preflight = explain::preflight(*job, *around);
  print(options, *job, preflight, out);
  out.json(dump(to_json(options, *job, preflight)));
  return preflight.is_ready() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
