// `stoker compare A B`: docs/commands/compare.md
#include "cli/commands.h"
#include "cli/run_facts.h"
#include "report/compare/print.h"
#include "report/html/compare_page.h"

namespace stoker::cli {
namespace {

Result<std::vector<record::RunFolder>> find_group(const std::string& words, const std::string& runs) {
  std::vector<record::RunFolder> group;
  for (std::string_view word : split(words, ',')) {
    STOKER_ASSIGN_OR_RETURN(run, record::RunFolder::find(runs, std::string(trim(word))));
    group.push_back(run);
  }
  return group;
}

}  // namespace

int compare(std::span<const std::string> words, Output& out) {
  std::string before;
  std::string after;
  std::string runs = "runs";
  std::string page;
  std::vector<std::string> guard_texts;
  Arguments arguments("compare", "Compare two runs, or two groups of runs with different seeds.");
  arguments.positional("A", &before, "Run id, unique prefix, folder, 'last', or several with commas");
  arguments.positional("B", &after, "The same for the runs to compare with A");
  arguments.option("--guard", &guard_texts, "METRIC[:lower|:higher][:N%]",
                   "Exit with 1 if this result of B is worse than that of A by more than N percent");
  arguments.option("--out", &page, "FILE", "Also write the comparison with the runs' curves as an HTML page");
  arguments.option("--runs", &runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.example("stoker compare 2026-11-20 last");
  arguments.example("stoker compare 2026-11-20 last --out compare.html");
  arguments.example("stoker compare base-1,base-2 new-1,new-2 --guard val/loss:1%");
  if (const auto code = arguments.parse(words, out)) return *code;
  std::vector<report::Guard> guards;
  for (const std::string& text : guard_texts) {
    const auto guard = report::parse_guard(text);
    if (!guard.ok()) return out.fail(guard.status().with_context("--guard"));
    guards.push_back(*guard);
  }
  const auto first = find_group(before, runs);
  if (!first.ok()) return out.fail(first.error());
  const auto second = find_group(after, runs);
  if (!second.ok()) return out.fail(second.error());
  const auto facts_of_first = collect_judged_facts(*first);
  const auto facts_of_second = collect_judged_facts(*second);
  const report::RunComparison comparison = report::compare(facts_of_first, facts_of_second);
  std::vector<report::GuardVerdict> verdicts;
  bool are_met = true;
  for (const report::Guard& guard : guards) {
    const auto verdict = report::check_guard(guard, comparison);
    if (!verdict.ok()) return out.fail(verdict.status().with_context("--guard"));
    are_met = are_met && verdict->is_met;
    verdicts.push_back(*verdict);
  }
  if (!page.empty()) {
    const Status written =
        write_file(page, report::compare_page(comparison, facts_of_first, facts_of_second));
    if (!written.ok()) return out.fail(Status(written).with_context("--out"));
  }
  out.raw(report::to_plain_text(comparison));
  for (const report::GuardVerdict& verdict : verdicts)
    out.line("{}  {}", verdict.is_met ? "met    " : "not met", verdict.text);
  if (!page.empty()) out.line("\n  {}", printable(page));
  out.json(report::to_json(comparison, verdicts));
  return are_met ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli
