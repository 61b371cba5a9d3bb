#include "report/html/page.h"

#include "base/version.h"
#include "report/html/frame.h"
#include "report/html/markup.h"
#include "report/html/media_section.h"
#include "report/html/overview_section.h"
#include "report/html/sections.h"
#include "report/html/style.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "stoker/time.h"

namespace stoker::report {

namespace {

constexpr std::string_view kStyles[] = {html::kStyle};
constexpr std::string_view kScripts[] = {html::kScript};

std::string footer(const RunFacts& facts) {
  const WallTime now(std::chrono::duration_cast<Duration>(Seconds(facts.now)));
  return html::element(
      "footer", "",
      format("Created by stoker {} at {} from {}. As JSON: stoker report {} --format json", version(),
             utc_text(now), printable(facts.folder.string()), shell_quote(printable(facts.id))));
}

std::string page_of(const RunFacts& facts) {
  return "<main>\n" + html::header(facts) + html::notes_section(facts) + html::tasks_sections(facts) +
         html::attempts_section(facts) + html::logs_section(facts) + html::learning_section(facts) +
         html::metrics_section(facts) + html::media_section(facts) + html::time_section(facts) +
         html::traced_section(facts) + html::machine_section(facts) + html::checkpoints_section(facts) +
         html::facts_section(facts) + html::rerun_section(facts) + footer(facts) + "\n</main>\n";
}

std::string overview_page(const Overview& overview) {
  return "<main>\n<header>" + html::element("p", "over", "Stoker report") +
         html::element("h1", "", count_text(overview)) + "</header>\n" + html::overview_sections(overview) +
         "</main>\n";
}

}  // namespace

std::string to_html(std::span<const RunFacts> runs) {
  const std::string title = runs.size() == 1 ? result_sentence(runs[0]) : format("{} runs", runs.size());
  std::string out = html::page_head(title, kStyles, kScripts);
  if (runs.size() > 1) out += overview_page(overview_of_runs(runs));
  for (const RunFacts& facts : runs) out += page_of(facts);
  return out + html::page_end(kScripts);
}

}  // namespace stoker::report
