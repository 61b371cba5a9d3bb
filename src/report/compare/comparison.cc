#include "report/compare/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/secrets.h"
#include "report/sentence.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMaxPackages = 30;
constexpr std::size_t kShownCommit = 12;

using Key = std::pair<Aspect, std::string>;
using Facts = std::map<Key, std::string>;

Aspect aspect_of_setting(std::string_view key) {
  struct Prefix {
    std::string_view text;
    Aspect aspect;
  };
  constexpr Prefix kPrefixes[] = {
      {"data.", Aspect::data},      {"train.", Aspect::parameters},     {"params.", Aspect::parameters},
      {"run", Aspect::parameters},  {"environment.", Aspect::software}, {"resources.", Aspect::hardware},
      {"slurm.", Aspect::hardware}, {"launcher", Aspect::hardware},     {"site", Aspect::hardware},
  };
  for (const Prefix& prefix : kPrefixes) {
    if (key.starts_with(prefix.text)) return prefix.aspect;
  }
  return Aspect::other;
}

void add_job(const RunFacts& run, Facts& facts) {
  for (auto& [key, value] : settings_of(run)) facts[{aspect_of_setting(key), key}] = std::move(value);
}

void add_code(const record::CodeInfo& code, Facts& facts) {
  facts[{Aspect::code, "commit"}] =
      code.commit.empty() ? "no repository" : code.commit.substr(0, kShownCommit);
  if (!code.diff.empty())
    facts[{Aspect::code, "uncommitted changes"}] = format("CRC-32C {:08x}", crc32c(code.diff));
  for (const std::string& file : code.untracked)
    facts[{Aspect::code, "untracked " + printable(file)}] = "present";
}

void add_software(const record::EnvironmentInfo& environment, Facts& facts) {
  for (const auto& [program, version] : environment.programs) facts[{Aspect::software, program}] = version;
  for (std::string_view line : split(environment.packages, '\n')) {
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t equals = line.find("==");
    const std::string name = printable(line.substr(0, equals));
    facts[{Aspect::software, "package " + name}] =
        equals == std::string_view::npos ? "present" : printable(line.substr(equals + 2));
  }
}

void add_nodes(const std::vector<record::NodeInfo>& nodes, Facts& facts) {
  std::set<std::string> cpus, gpus, drivers, systems;
  for (const record::NodeInfo& node : nodes) {
    cpus.insert(node.cpu);
    gpus.insert(node.gpus.begin(), node.gpus.end());
    drivers.insert(node.driver);
    systems.insert(node.system + ", " + node.kernel);
  }
  const auto put = [&](const char* what, const std::set<std::string>& values) {
    std::string text = join(std::vector<std::string>(values.begin(), values.end()), "; ");
    if (!text.empty()) facts[{Aspect::hardware, what}] = std::move(text);
  };
  put("processor", cpus);
  put("GPUs", gpus);
  put("GPU driver", drivers);
  put("system", systems);
}

Facts facts_of(const RunFacts& run) {
  Facts facts;
  add_job(run, facts);
  if (run.capsule.data) {
    for (const record::DataInfo& data : *run.capsule.data)
      facts[{Aspect::data, format("version of {}", data.name)}] = data.version;
  }
  if (run.capsule.code) add_code(*run.capsule.code, facts);
  if (run.capsule.environment) add_software(*run.capsule.environment, facts);
  if (run.capsule.execution) add_nodes(*run.capsule.execution, facts);
  if (run.world_size() > 0) facts[{Aspect::hardware, "ranks"}] = std::to_string(run.world_size());
  return facts;
}

// The different values of a group, in the order of its runs.
std::string values_text(const std::vector<Facts>& group, const Key& key) {
  std::vector<std::string> values;
  for (const Facts& facts : group) {
    const auto found = facts.find(key);
    std::string value = found == facts.end() ? "-" : printable(found->second);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return join(values, ", ");
}

std::vector<FactChange> changes_between(const std::vector<Facts>& before, const std::vector<Facts>& after,
                                        std::vector<std::string>& notes) {
  std::set<Key> keys;
  for (const auto* group : {&before, &after}) {
    for (const Facts& facts : *group) {
      for (const auto& [key, value] : facts) keys.insert(key);
    }
  }
  std::vector<FactChange> changes;
  std::size_t packages = 0;
  for (const Key& key : keys) {
    FactChange change{key.first, key.second, values_text(before, key), values_text(after, key)};
    if (change.before == change.after) continue;
    change.before = hide_setting(change.what, change.before);
    change.after = hide_setting(change.what, change.after);
    if (key.second.starts_with("package ") && ++packages > kMaxPackages) continue;
    changes.push_back(std::move(change));
  }
  if (packages > kMaxPackages) notes.push_back(format("{} more packages differ", packages - kMaxPackages));
  return changes;
}

std::vector<ResultChange> results_between(const std::vector<RunFacts>& before,
                                          const std::vector<RunFacts>& after) {
  std::vector<ResultChange> changes;
  const auto entry = [&](const std::string& name) -> ResultChange& {
    for (ResultChange& change : changes) {
      if (change.name == name) return change;
    }
    changes.push_back(
        {.name = name, .better = better_of(name), .before = {}, .after = {}, .significance = {}});
    return changes.back();
  };
  for (const RunFacts& run : before) {
    for (const auto& [name, value] : results_of(run)) entry(name).before.push_back(value);
  }
  for (const RunFacts& run : after) {
    for (const auto& [name, value] : results_of(run)) entry(name).after.push_back(value);
  }
  for (ResultChange& change : changes) change.significance = significance(change.before, change.after);
  return changes;
}

void note_gaps(const std::vector<RunFacts>& group, std::vector<std::string>& notes) {
  for (const RunFacts& run : group) {
    if (run.state.state != record::State::done) notes.push_back(format("{} is {}", run.id, run.state_word));
    if (!run.job) notes.push_back(format("{}: its job file cannot be read", run.id));
    if (!run.capsule.code) notes.push_back(format("{}: its code is unknown", run.id));
  }
}

std::vector<std::string> ids_of(const std::vector<RunFacts>& group) {
  std::vector<std::string> ids;
  for (const RunFacts& run : group) ids.push_back(run.id);
  return ids;
}

}  // namespace

std::string_view to_text(Aspect aspect) {
  switch (aspect) {
    case Aspect::data:
      return "data";
    case Aspect::parameters:
      return "parameters";
    case Aspect::code:
      return "code";
    case Aspect::software:
      return "software";
    case Aspect::hardware:
      return "hardware";
    case Aspect::other:
      return "other";
  }
  return "";
}

double ResultChange::relative_difference() const {
  const double base = std::abs(mean_of(before));
  return base > 0 ? difference() / base : std::numeric_limits<double>::quiet_NaN();
}

RunComparison compare(const std::vector<RunFacts>& before, const std::vector<RunFacts>& after) {
  RunComparison comparison{
      .before = ids_of(before), .after = ids_of(after), .changes = {}, .results = {}, .notes = {}};
  std::vector<Facts> first, second;
  for (const RunFacts& run : before) first.push_back(facts_of(run));
  for (const RunFacts& run : after) second.push_back(facts_of(run));
  comparison.changes = changes_between(first, second, comparison.notes);
  comparison.results = results_between(before, after);
  note_gaps(before, comparison.notes);
  note_gaps(after, comparison.notes);
  return comparison;
}

Result<Guard> parse_guard(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return invalid("'{}': {}: expected METRIC[:lower|:higher][:TOLERANCE%]", printable(text), why);
  };
  Guard guard;
  std::string_view rest = text;
  while (true) {
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) break;
    const std::string_view word = rest.substr(colon + 1);
    if (word == "lower") {
      guard.better = Better::lower;
    } else if (word == "higher") {
      guard.better = Better::higher;
    } else if (word.ends_with('%')) {
      double percent = 0;
      if (!parse_number(word.substr(0, word.size() - 1), &percent) || !(percent >= 0 && percent < 1e6))
        return bad("the tolerance is no percentage");
      guard.tolerance = percent / 100;
    } else {
      break;  // a colon of the metric's name
    }
    rest = rest.substr(0, colon);
  }
  if (rest.empty()) return bad("no metric");
  guard.metric = std::string(rest);
  return guard;
}

Result<GuardVerdict> check_guard(const Guard& guard, const RunComparison& comparison) {
  const auto found = std::find_if(comparison.results.begin(), comparison.results.end(),
                                  [&](const ResultChange& result) { return result.name == guard.metric; });
  if (found == comparison.results.end() || found->before.empty() || found->after.empty()) {
    std::vector<std::string> names;
    for (const ResultChange& result : comparison.results) {
      if (!result.before.empty() && !result.after.empty()) names.push_back(printable(result.name));
    }
    return invalid("no run of one side has the metric '{}' (common metrics: {})", printable(guard.metric),
                   names.empty() ? "none" : join(names, ", "));
  }
  const Better better = guard.better != Better::unknown ? guard.better : found->better;
  if (better == Better::unknown)
    return invalid("'{}': the good direction of this metric is unknown", printable(guard.metric))
        .cure("stoker compare A B --guard {}", shell_quote(guard.metric + ":lower"));
  const double worse = (better == Better::lower ? 1 : -1) * found->difference();
  const double allowed = guard.tolerance * std::abs(mean_of(found->before));
  GuardVerdict verdict;
  const bool is_chance = found->significance && found->significance->may_be_chance();
  verdict.is_met = !(worse > allowed) || is_chance;
  const double percent = std::abs(found->relative_difference()) * 100;
  verdict.text = format(
      "{}: {} % {}{}", printable(guard.metric), significant(percent), worse > 0 ? "worse" : "better",
      worse > allowed && is_chance ? format(", within chance (p {})", significant(found->significance->p))
      : worse > 0                  ? format(", {} % are allowed", significant(guard.tolerance * 100))
                                   : "");
  return verdict;
}

}  // namespace stoker::report
