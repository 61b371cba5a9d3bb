// `stoker report RUN...`: docs/commands/report.md
#include <array>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/remote/host.h"
#include "cli/run_facts.h"
#include "cli/runs.h"
#include "report/html/page.h"
#include "report/json.h"
#include "report/sentence.h"
#include "report/text.h"

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 3> kForms = {"html", "text", "json"};
constexpr std::string_view kStandardOutput = "-";
constexpr std::string_view kFetchedRuns = "runs";

struct ReportOptions {
  std::vector<std::string> words;
  std::string runs = "runs";
  std::string form;
  std::string file;
  HostChoice host;

  bool has_file() const { return file.empty() ? form == "html" : file != kStandardOutput; }
};

Status check(const ReportOptions& o) {
  for (std::string_view form : kForms) {
    if (o.form == form) return {};
  }
  return invalid("report: unknown format '{}'{} (--format)", printable(o.form), suggestion(o.form, kForms));
}

/// The command for the same report with a different output file.
std::string report_command(const ReportOptions& o, const Path& file) {
  std::string text = "stoker report";
  for (const std::string& word : o.words) text += " " + shell_quote(word);
  if (o.runs != "runs") text += " --runs " + shell_quote(o.runs);
  if (o.host.is_remote()) text += " " + host_options(o.host);
  if (o.form != "html") text += " --format " + o.form;
  return text + " --out " + shell_quote(file.string());
}

std::string default_name(const ReportOptions& o) {
  return o.form == "text" ? "report.txt" : "report." + o.form;
}

/// `runs/<id>/report.html` for one run; several runs need --out.
Result<Path> page_path(const ReportOptions& o, const std::vector<report::RunFacts>& all) {
  if (!o.file.empty()) return Path(o.file);
  if (all.size() == 1) return all.front().folder / "report.html";
  return invalid("report: a page of {} runs needs --out", all.size())
      .cure("stoker report {} --out report.html", join(o.words, " "));
}

/// `runs/report-<RUN>.html` of this machine for one run of a host; several runs need --out.
Result<Path> fetched_page_path(const ReportOptions& o) {
  if (!o.file.empty()) return Path(o.file);
  if (o.words.size() > 1) {
    return invalid("report: a page of {} runs needs --out", o.words.size())
        .cure("{}", report_command(o, default_name(o)));
  }
  // RUN may be a folder, also with a slash at its end.
  const std::string run = (Path(o.words.front()) / "").parent_path().filename();
  return Path(kFetchedRuns) / format("report-{}.html", run);
}

/// The option that chose the file, for errors.
std::string_view chosen_by(const ReportOptions& o) { return o.file.empty() ? "" : " (--out)"; }

Status check_file(const Path& file, const ReportOptions& o) {
  if (folder_exists(file)) {
    return invalid("report: {}: is a folder{}", printable(file.string()), chosen_by(o))
        .cure("{}", report_command(o, file / default_name(o)));
  }
  const Path folder = file.parent_path();
  if (!folder.empty() && !folder_exists(folder))
    return not_found("report: {}: no such folder{}", printable(folder.string()), chosen_by(o))
        .cure("mkdir -p {}", shell_quote(folder.string()));
  return {};
}

Status write_to(const Path& file, std::string_view content, const ReportOptions& o) {
  STOKER_RETURN_IF_ERROR(check_file(file, o));
  const Status written = write_file(file, content);
  if (written.ok()) return {};
  Status status(written.code(), format("report: {}{}", written.message(), chosen_by(o)));
  return written.code() == Code::invalid ? std::move(status).cure("{}", report_command(o, default_name(o)))
                                         : status;
}

int write_page(const ReportOptions& o, const std::vector<report::RunFacts>& all, Output& out) {
  if (!o.has_file()) {
    out.raw(report::to_html(all));
    for (const report::RunFacts& facts : all) out.note("{}", report::result_sentence(facts));
    out.json(report::to_json(all));
    return exit_code::kOk;
  }
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
  if (o.has_file()) {
    if (const Status written = write_to(o.file, content, o); !written.ok()) return out.fail(written);
    out.line("{}", printable(o.file));
  } else if (is_json) {
    out.raw(content);
  } else {
    out.line("{}", content.substr(0, content.find_last_not_of('\n') + 1));
  }
  out.json(report::to_json(all));
  return exit_code::kOk;
}

// The arguments for a host that prints the report.
std::vector<std::string> words_for_stdout(const ReportOptions& o) {
  std::vector<std::string> words = {"--format", o.form, "--out", std::string(kStandardOutput),
                                    "--runs",   o.runs, "--"};
  words.insert(words.end(), o.words.begin(), o.words.end());
  return words;
}

// The host reads the run and queries Slurm; the file is written on this machine.
int report_on_host(const ReportOptions& o, std::span<const std::string> words, Output& out) {
  if (!o.has_file()) return run_on_host(o.host, "report", words, "", out);
  if (out.is_json()) {
    return out.fail(invalid("report: --json with --host writes no file (--out, --format html)")
                        .cure("{}", report_command(o, o.file.empty() ? default_name(o) : o.file)));
  }
  const auto path = fetched_page_path(o);
  if (!path) return out.fail(path.error());
  if (!o.file.empty()) {
    if (const Status writable = check_file(*path, o); !writable.ok()) return out.fail(writable);
  }
  std::string content;
  const int code = capture_on_host(o.host, "report", words_for_stdout(o), &content, out);
  if (code != exit_code::kOk) return code;
  Status written = o.file.empty() ? make_directories(kFetchedRuns) : Status();
  if (written.ok()) written = write_to(*path, content, o);
  if (!written.ok()) return out.fail(written);
  out.line("{}{}", o.form == "html" ? "  " : "", printable(path->string()));
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
  arguments.choices(kForms);
  arguments.option("--out", &o.file, "FILE",
                   "Output file; '-' is standard output (default: report.html in the run folder for html, "
                   "with --host runs/report-RUN.html on this machine; else '-')");
  arguments.option("--runs", &o.runs, "DIR", "Folder with the runs (the job's record.directory)");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker report last");
  arguments.example("stoker report last --format text");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check(o); !status.ok()) return out.fail(status);
  if (o.words.empty()) o.words.emplace_back("last");
  if (o.host.is_remote()) return report_on_host(o, words, out);
  std::vector<record::RunFolder> runs;
  for (const std::string& word : o.words) {
    const auto run = record::RunFolder::find(o.runs, word);
    if (!run) return out.fail(run.error());
    runs.push_back(*run);
  }
  const std::vector<report::RunFacts> all = collect_judged_facts(runs);
  return o.form == "html" ? write_page(o, all, out) : write_text(o, all, out);
}

}  // namespace stoker::cli
