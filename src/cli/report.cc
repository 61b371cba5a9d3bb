// `stoker report RUN...`: docs/commands/report.md
#include <array>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "launch/status/life.h"
#include "report/html/page.h"
#include "report/json.h"
#include "report/sentence.h"
#include "report/text.h"

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 3> kForms = {"html", "text", "json"};

struct ReportOptions {
  std::vector<std::string> words;
  std::string runs = "runs";
  std::string form;
  std::string file;
};

Status check(const ReportOptions& o) {
  for (std::string_view form : kForms) {
    if (o.form == form) return {};
  }
  return invalid("report: unknown format '{}'{} (--format)", printable(o.form), suggestion(o.form, kForms));
}

/// `runs/<id>/report.html` for one run; several runs need --out.
Result<Path> page_path(const ReportOptions& o, const std::vector<report::RunFacts>& all) {
  if (!o.file.empty()) return Path(o.file);
  if (all.size() == 1) return all.front().folder / "report.html";
  return invalid("report: a page of {} runs needs --out", all.size())
      .cure("stoker report {} --out report.html", join(o.words, " "));
}

/// The command for the same report with a different output file.
std::string report_command(const ReportOptions& o, const Path& file) {
  std::string text = "stoker report";
  for (const std::string& word : o.words) text += " " + shell_quote(word);
  if (o.runs != "runs") text += " --runs " + shell_quote(o.runs);
  if (o.form != "html") text += " --format " + o.form;
  return text + " --out " + shell_quote(file.string());
}

/// Errors name the option that chose the file.
Status write_to(const Path& file, std::string_view content, const ReportOptions& o) {
  const std::string name = printable(file.string());
  const std::string_view option = o.file.empty() ? "" : " (--out)";
  const std::string own = o.form == "text" ? "report.txt" : "report." + o.form;
  if (folder_exists(file))
    return invalid("report: {}: is a folder{}", name, option).cure("{}", report_command(o, file / own));
  const Path folder = file.parent_path();
  if (!folder.empty() && !folder_exists(folder))
    return not_found("report: {}: no such folder{}", printable(folder.string()), option)
        .cure("mkdir -p {}", shell_quote(folder.string()));
  const Status written = write_file(file, content);
  if (written.ok()) return {};
  Status status(written.code(), format("report: {}{}", written.message(), option));
  return written.code() == Code::invalid ? std::move(status).cure("{}", report_command(o, own)) : status;
}

int write_page(const ReportOptions& o, const std::vector<report::RunFacts>& all, Output& out) {
  const auto path = page_path(o, all);
  if (!path) return out.fail(path.error());
  if (const Status written = write_to(*path, report::to_html(all), o); !written.ok())
    return out.fail(written);
  for (const report::RunFacts& facts : all) out.line("{}", report::result_sentence(facts));
  out.line("  {}", printable(path->string()));
  out.json(report::to_json(all));
  return exit_code::kOk;
}

int write_text(const ReportOptions& o, const std::vector<report::RunFacts>& all, Output& out) {
  const bool is_json = o.form == "json";
  const std::string content = is_json ? report::to_json(all) + "\n" : report::to_plain_text(all);
  if (!o.file.empty()) {
    if (const Status written = write_to(o.file, content, o); !written.ok()) return out.fail(written);
    out.line("{}", printable(o.file));
  } else {
    out.raw(content);
  }
  out.json(report::to_json(all));
  return exit_code::kOk;
}

}  // namespace

int report(std::span<const std::string> words, Output& out) {
  ReportOptions o;
  o.form = out.is_json() ? "json" : "html";
  Arguments arguments("report",
                      "Write a report about a run: result, curves, time split, commands to run it again.");
  arguments.positional_list("RUN", &o.words, "Run id, unique prefix, folder, or 'last' (default)");
  arguments.option("--format", &o.form, "FORM", "Set the format: html, text or json");
  arguments.option(
      "--out", &o.file, "FILE",
      "Output file (default: report.html in the run folder for html, standard output for text and json)");
  arguments.option("--runs", &o.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.example("stoker report last");
  arguments.example("stoker report last --format text");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check(o); !status.ok()) return out.fail(status);
  if (o.words.empty()) o.words.emplace_back("last");
  std::vector<record::RunFolder> runs;
  for (const std::string& word : o.words) {
    const auto run = record::RunFolder::find(o.runs, word);
    if (!run) return out.fail(run.error());
    runs.push_back(*run);
  }
  auto scheduler = make_scheduler();
  const auto lives = launch::query_life(runs, scheduler, Deadline::after(kSchedulerTimeout));
  std::vector<report::RunFacts> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const launch::RunLife& life = lives[i];
    all.push_back(report::collect_run_facts(
        runs[i], {},
        report::JudgedState{std::string(to_text(life.life)), life.note, is_over(life.life), life.records}));
  }
  return o.form == "html" ? write_page(o, all, out) : write_text(o, all, out);
}

}  // namespace stoker::cli
