#include "cli/check/sarif.h"

#include "base/json/json.h"
#include "base/version.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

std::string level_of(Level level) {
  return level == Level::job ? "error" : level == Level::time ? "warning" : "note";
}

ordered_json text_of(std::string_view text) { return {{"text", std::string(text)}}; }

ordered_json rules_json(const Translator& words) {
  ordered_json rules = ordered_json::array();
  for (const script_lint::RuleText& rule : script_lint::rule_texts()) {
    rules.push_back({{"id", std::string(rule.name)},
                     {"shortDescription", text_of(words.translate(rule.why))},
                     {"defaultConfiguration", {{"level", level_of(rule.level)}}}});
  }
  return rules;
}

ordered_json result_json(const std::string& name, const script_lint::ScriptFinding& finding,
                         const Translator& words) {
  const std::string fix =
      finding.fix.empty() ? untranslated("") : words.localize("fix: {}", words.render(finding.fix));
  const std::string text = words.render(finding.text) + (fix.empty() ? "" : "\n" + fix);
  const ordered_json region = {{"startLine", finding.line}, {"startColumn", finding.column}};
  const ordered_json place = {
      {"physicalLocation", {{"artifactLocation", {{"uri", name}}}, {"region", region}}}};
  return {{"ruleId", finding.rule},
          {"level", level_of(finding.level)},
          {"message", text_of(text)},
          {"locations", ordered_json::array({place})}};
}

}  // namespace

std::string to_sarif(const std::string& name, const script_lint::LintResult& lint, const Translator& words) {
  ordered_json results = ordered_json::array();
  for (const script_lint::ScriptFinding& finding : lint.findings)
    results.push_back(result_json(name, finding, words));
  const ordered_json driver = {
      {"name", "stoker"}, {"version", std::string(version())}, {"rules", rules_json(words)}};
  const ordered_json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  return json_text(nlohmann::ordered_json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                                          {"version", "2.1.0"},
                                          {"runs", ordered_json::array({run})}});
}

}  // namespace stoker::cli
