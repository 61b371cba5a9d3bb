// `stoker check JOB|SCRIPT`: docs/commands/check.md
#include "base/json/json.h"
#include "base/process.h"
#include "cli/arguments.h"
#include "cli/check/nodes.h"
#include "cli/check/production.h"
#include "cli/check/script.h"
#include "cli/commands.h"
#include "cli/environment/needs.h"
#include "cli/explain/language.h"
#include "cli/site/sites.h"
#include "config/writer.h"
#include "explain/preflight/preflight.h"
#include "job/job.h"
#include "job/settings.h"

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
  std::string language = kLanguageOfLocale;
  ScriptCheck script;
};

// "job.yaml:6:19", or the setting itself where its default decided.
std::string where(const Finding& finding) {
  return finding.evidence.empty() ? "" : finding.evidence[0].where;
}

// "here" and "by default" are names in JSON output.
std::string where_text(const Finding& finding, const Words& words) {
  const std::string place = where(finding);
  return place == "here"         ? words.say("here")
         : place == "by default" ? words.say("by default")
                                 : quoted(place);
}

Said headline(const CheckOptions& options, const job::Job& job, const explain::Surroundings& around,
              std::size_t losing) {
  const Words& words = options.script.words;
  const std::string name = printable(options.job);
  if (losing == 1) return words.say("{}: not ready, 1 mistake would lose the job", name);
  if (losing > 1) return words.say("{}: not ready, {} mistakes would lose the job", name, losing);
  const std::size_t ranks = job.resources.world_size();
  if (around.has_queue && !around.allocation && job.resources.nodes > 1)
    return words.say("{}: ready to submit ({} ranks)", name, ranks);
  return ranks == 1 ? words.say("{}: ready to run here (1 rank)", name)
                    : words.say("{}: ready to run here ({} ranks)", name, ranks);
}

void print(const CheckOptions& options, const job::Job& job, const explain::Surroundings& around,
           const explain::Preflight& preflight, Output& out) {
  const Words& words = options.script.words;
  std::size_t losing = 0;
  for (const Finding& finding : preflight.findings) losing += finding.level == Level::job ? 1 : 0;
  out.line("{}", headline(options, job, around, losing).text());
  for (const explain::Fact& fact : preflight.facts) out.line("  {:<10}{}", words.of(fact.name), fact.text);
  for (const Finding& finding : preflight.findings) {
    const Said label = finding.level == Level::job    ? words.say("mistake")
                       : finding.level == Level::time ? words.say("slow")
                                                      : words.say("advice");
    out.line("  {:<10}{} ({})", label.text(), finding.what, where_text(finding, words));
    if (!finding.cure.empty()) out.line("  {:<10}{}", "", words.say("try: {}", finding.cure).text());
  }
}

ordered_json to_json(const CheckOptions& options, const job::Job& job, const explain::Preflight& preflight,
                     const std::optional<NodesCheck>& nodes) {
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
  ordered_json json = {{"job", printable(options.job)},
                       {"ready", preflight.is_ready()},
                       {"ranks", job.resources.world_size()},
                       {"facts", facts},
                       {"findings", findings},
                       {"effective", job::to_yaml(job)}};
  if (nodes) json["nodes"] = parse_json<ordered_json>(nodes_json(*nodes));
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
                    {"what", std::string(setting.what)},
                    {"see", std::string(setting.see)}});
  }
  return {{"keys", keys}};
}

// What only the other kind of file takes.
Status check_flags(const CheckOptions& options, bool is_script) {
  const ScriptCheck& script = options.script;
  const bool is_of_script = script.fixes || script.fixes_in_place || script.sarif || script.site != "auto";
  if (!is_script && is_of_script) {
    return invalid("{}: is no batch script, and --fix, --in-place, --sarif and --site are for those",
                   printable(options.job));
  }
  if (is_script && (options.print || !options.set.empty() || options.production || options.on_nodes)) {
    return invalid("{}: is a batch script, and --set, --print, --production and --on-nodes are for job files",
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
  arguments.optional_positional("JOB|SCRIPT", &options.job, "the job file [job.yaml], or a batch script");
  arguments.option("--set", &options.set, "KEY.PATH=VALUE", "replaces a value of the job file");
  arguments.flag("--print", &options.print, "prints the effective file and where each value came from");
  arguments.flag("--keys", &options.keys, "lists every key a job file may have, and does nothing else");
  arguments.flag("--fix", &options.script.fixes, "of a script: writes NAME.fixed.EXT, corrected");
  arguments.flag("--in-place", &options.script.fixes_in_place, "of a script: corrects the file itself");
  arguments.flag("--sarif", &options.script.sarif, "of a script: prints the findings as SARIF");
  arguments.option("--site", &options.script.site, "NAME",
                   "of a script: the cluster it is for; none for any");
  arguments.flag("--on-nodes", &options.on_nodes,
                 "starts the job's ranks for a minute, without the job, and looks from there, too");
  arguments.flag("--production", &options.production,
                 "answers a list of 13 questions about a job that is to run unattended");
  arguments.flag("--rules", &options.rules, "lists what is looked for in a script, and does nothing else");
  add_language_option(arguments, &options.language);
  arguments.example("stoker check job.yaml --set train.epochs=3 --print");
}

int print_keys(Output& out) {
  out.raw(config::text_table(job::schema()));
  out.json(json_text(keys_json()));
  return exit_code::kOk;
}

int check_job(const CheckOptions& options, const job::Job& job, const Words& words, Output& out) {
  if (options.print && !out.is_json()) {
    out.raw(job::to_yaml(job));
    return exit_code::kOk;
  }
  Result<explain::Surroundings> around = explain::look_around();
  if (!around) return out.fail(around.error());
  around->has_queue = !job::look_for_cluster(slurm::process_environment()).cluster.empty();
  if (job.site != "none") {
    if (auto found = site_named(job.site); found.ok()) around->site = std::move(found->site);
  }
  if (options.production) return check_production(options.job, job, around->site, words, out);
  explain::Preflight preflight = explain::preflight(job, *around, words);
  for (Finding& finding : find_missing_needs(job, words)) preflight.findings.push_back(std::move(finding));
  for (Finding& finding : find_site_objections(job, words)) preflight.findings.push_back(std::move(finding));
  print(options, job, *around, preflight, out);
  std::optional<NodesCheck> nodes;
  if (options.on_nodes) {
    auto looked = look_from_nodes(job, words, out);
    if (!looked) return out.fail(looked.error());
    nodes = std::move(*looked);
    print_nodes(*nodes, out);
    preflight.findings.insert(preflight.findings.end(), nodes->findings.begin(), nodes->findings.end());
  }
  out.json(json_text(to_json(options, job, preflight, nodes)));
  return preflight.is_ready() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace

int check(std::span<const std::string> words, Output& out) {
  CheckOptions options;
  Arguments arguments(
      "check",
      "Checks a job file, and what it needs: data, programs, folders, cores. Or a batch script "
      "of your own: what would lose the job, what loses time. Runs nothing.");
  declare(arguments, options);
  if (const auto code = arguments.parse(words, out)) return *code;
  if (options.keys) return print_keys(out);
  const auto spoken = words_named(options.language);
  if (!spoken) return out.fail(spoken.error());
  options.script.words = *spoken;
  if (options.rules) return print_rules(*spoken, out);
  const bool is_script = names_batch_script(options.job);
  if (const Status flags = check_flags(options, is_script); !flags.ok()) return out.fail(flags);
  options.script.script = options.job;
  if (is_script) return check_script(options.script, out);
  const Result<job::Job> job = job::load(options.job, {.environment = environment(), .set = options.set});
  if (!job) return out.fail(job.error());
  return check_job(options, *job, *spoken, out);
}

}  // namespace stoker::cli
