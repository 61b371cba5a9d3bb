// `stoker check JOB|SCRIPT`: docs/commands/check.md
#include "base/json/json.h"
#include "base/process.h"
#include "cli/arguments.h"
#include "cli/check/inspect.h"
#include "cli/check/nodes.h"
#include "cli/check/production.h"
#include "cli/check/script.h"
#include "cli/commands.h"
#include "cli/explain/language.h"
#include "cli/site/sites.h"
#include "config/writer.h"
#include "job/job.h"
#include "job/settings.h"
#include "preflight/preflight.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

struct CheckOptions {
  std::string job = "job.yaml";
  std::vector<std::string> set;
  bool print = false;
  bool keys = false;
  bool rules = false;
  bool production = false;
  bool on_nodes = false;
  std::string language = kLocaleLanguage;
  ScriptCheck script;
};

// "job.yaml:6:19", or the key if its default is in effect.
std::string where(const Finding& finding) {
  return finding.evidence.empty() ? "" : finding.evidence[0].where;
}

// "here" and "by default" are names in JSON output, translated only in text.
std::string where_text(const Finding& finding, const Translator& words) {
  const std::string place = where(finding);
  return place == "here"         ? words.localize("here")
         : place == "by default" ? words.localize("by default")
                                 : untranslated(place);
}

Localized headline(const CheckOptions& options, const job::Job& job, const preflight::HostContext& host,
                   std::size_t fatal) {
  const Translator& words = options.script.words;
  const std::string name = printable(options.job);
  if (fatal == 1) return words.localize("{}: not ready, 1 mistake would lose the job", name);
  if (fatal > 1) return words.localize("{}: not ready, {} mistakes would lose the job", name, fatal);
  const std::size_t ranks = job.resources.world_size();
  if (host.has_queue && !host.allocation && job.resources.nodes > 1)
    return words.localize("{}: ready to submit ({} ranks)", name, ranks);
  return ranks == 1 ? words.localize("{}: ready to run here (1 rank)", name)
                    : words.localize("{}: ready to run here ({} ranks)", name, ranks);
}

void print(const CheckOptions& options, const job::Job& job, const preflight::HostContext& host,
           const preflight::Preflight& preflight, Output& out) {
  const Translator& words = options.script.words;
  std::size_t fatal = 0;
  for (const Finding& finding : preflight.findings) fatal += finding.level == Level::job ? 1 : 0;
  out.line("{}", headline(options, job, host, fatal).text());
  for (const preflight::Fact& fact : preflight.facts)
    out.line("  {:<10}{}", words.translate(fact.name), words.render(fact.text));
  for (const Finding& finding : preflight.findings) {
    const Localized label = finding.level == Level::job    ? words.localize("mistake")
                            : finding.level == Level::time ? words.localize("slow")
                                                           : words.localize("advice");
    out.line("  {:<10}{} ({})", label.text(), words.render(finding.what), where_text(finding, words));
    if (!finding.cure.empty())
      out.line("  {:<10}{}", "", words.localize("try: {}", words.render(finding.cure)).text());
  }
}

ordered_json to_json(const CheckOptions& options, const job::Job& job, const preflight::Preflight& preflight,
                     const std::optional<NodesCheck>& nodes) {
  const Translator& words = options.script.words;
  ordered_json facts = ordered_json::array();
  for (const preflight::Fact& fact : preflight.facts)
    facts.push_back({{"name", fact.name}, {"text", words.render(fact.text)}});
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : preflight.findings) {
    findings.push_back({{"rule", finding.rule},
                        {"level", std::string(to_text(finding.level))},
                        {"what", words.render(finding.what)},
                        {"where", where(finding)},
                        {"cure", words.render(finding.cure)}});
  }
  ordered_json json = {{"job", printable(options.job)},
                       {"ready", preflight.is_ready()},
                       {"ranks", job.resources.world_size()},
                       {"facts", facts},
                       {"findings", findings},
                       {"effective", job::to_yaml(job)}};
  if (nodes) json["nodes"] = parse_json<ordered_json>(nodes_json(*nodes, words));
  return json;
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
                    {"what", std::string(setting.help)},
                    {"see", std::string(setting.note)}});
  }
  return {{"keys", keys}};
}

// Rejects flags of the other file kind.
Status check_flags(const CheckOptions& options, bool is_script) {
  const ScriptCheck& script = options.script;
  const bool has_script_flags =
      script.fixes || script.fixes_in_place || script.sarif || script.site != "auto";
  if (!is_script && has_script_flags) {
    return invalid("{}: not a batch script; --fix, --in-place, --sarif and --site need one",
                   printable(options.job));
  }
  if (is_script && (options.print || !options.set.empty() || options.production || options.on_nodes)) {
    return invalid("{}: a batch script; --set, --print, --production and --on-nodes need a job file",
                   printable(options.job));
  }
  return {};
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (const auto& [name, value] : current_environment()) variables.push_back(format("{}={}", name, value));
  return variables;
}

void declare(Arguments& arguments, CheckOptions& options) {
  arguments.optional_positional("JOB|SCRIPT", &options.job, "Job file [job.yaml] or batch script");
  arguments.option("--set", &options.set, "KEY.PATH=VALUE", "Override a job file value");
  arguments.flag("--print", &options.print, "Print the effective job file and the origin of each value");
  arguments.flag("--keys", &options.keys, "List every job file key and exit");
  arguments.flag("--fix", &options.script.fixes, "Write the corrected script to NAME.fixed.EXT");
  arguments.flag("--in-place", &options.script.fixes_in_place, "Correct the script in place");
  arguments.flag("--sarif", &options.script.sarif, "Print the script's findings as SARIF");
  arguments.option("--site", &options.script.site, "NAME",
                   "Check a script for this cluster; none: any cluster");
  arguments.flag("--on-nodes", &options.on_nodes,
                 "Also check from the job's nodes, with a one-minute allocation");
  arguments.flag("--production", &options.production, "Answer 13 questions about an unattended job");
  arguments.flag("--rules", &options.rules, "List the rules for scripts and exit");
  add_language_option(arguments, &options.language);
  arguments.example("stoker check job.yaml --set train.epochs=3 --print");
}

int print_keys(Output& out) {
  out.raw(config::text_table(job::schema()));
  out.json(json_text(keys_json()));
  return exit_code::kOk;
}

int check_job(const CheckOptions& options, const job::Job& job, const Translator& words, Output& out) {
  if (options.print && !out.is_json()) {
    out.raw(job::to_yaml(job));
    return exit_code::kOk;
  }
  if (options.production) {
    std::optional<job::Site> site;
    if (job.site != "none") {
      if (auto found = find_site_by_name(job.site); found.ok()) site = std::move(found->site);
    }
    return check_production(options.job, job, site, words, out);
  }
  auto inspection = inspect_job(job, false);
  if (!inspection.ok()) return out.fail(inspection.error());
  preflight::Preflight& preflight = inspection->preflight;
  print(options, job, inspection->host, preflight, out);
  std::optional<NodesCheck> nodes;
  if (options.on_nodes) {
    auto checked = check_on_nodes(job, out);
    if (!checked) return out.fail(checked.error());
    nodes = std::move(*checked);
    print_nodes(*nodes, words, out);
    preflight.findings.insert(preflight.findings.end(), nodes->findings.begin(), nodes->findings.end());
  }
  out.json(json_text(to_json(options, job, preflight, nodes)));
  return preflight.is_ready() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace

int check(std::span<const std::string> words, Output& out) {
  CheckOptions options;
  Arguments arguments("check",
                      "Validate a job file and its data, programs, folders and cores, or find mistakes in a "
                      "batch script. Runs nothing.");
  declare(arguments, options);
  if (const auto code = arguments.parse(words, out)) return *code;
  if (options.keys) return print_keys(out);
  const auto language = parse_language(options.language);
  if (!language) return out.fail(language.error());
  options.script.words = *language;
  if (options.rules) return print_rules(*language, out);
  const bool is_script = is_batch_script(options.job);
  if (const Status flags = check_flags(options, is_script); !flags.ok()) return out.fail(flags);
  options.script.script = options.job;
  if (is_script) return check_script(options.script, out);
  const Result<job::Job> job = job::load(options.job, {.environment = environment(), .set = options.set});
  if (!job) return out.fail(job.error());
  return check_job(options, *job, *language, out);
}

}  // namespace stoker::cli
