#include "cli/check/script.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "cli/check/sarif.h"
#include "cli/site/sites.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "script_lint/lint.h"
#include "stoker/text.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;
using script_lint::LintResult;
using script_lint::ScriptFinding;

constexpr std::size_t kSniffBytes = std::size_t{64} << 10;  // read to detect the file type
constexpr std::chrono::seconds kSlurmTimeout{2};
constexpr std::size_t kWidest = 160;  // characters shown of a line

std::string first_bytes(const std::string& path) {
  const auto file = File::open_read(path);
  if (!file.ok()) return "";
  const auto size = file->size();
  if (!size.ok()) return "";
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(*size, kSniffBytes)), '\0');
  const auto bytes = std::span(reinterpret_cast<std::byte*>(text.data()), text.size());
  return file->read_at(0, bytes).ok() ? text : "";
}

Localized label_of(Level level, const Translator& words) {
  return level == Level::job    ? words.localize("loses the job")
         : level == Level::time ? words.localize("loses time")
                                : words.localize("advice");
}

std::string colored(const Output& out, Level level, const std::string& text) {
  if (!out.has_color()) return text;
  return (level == Level::job ? "\033[31m" : "\033[33m") + text + "\033[0m";
}

void print_lines(std::string_view mark, std::string_view lines, Output& out) {
  if (lines.empty()) return;
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  for (std::string_view line : split(lines, '\n')) {
    std::string shown = printable(line);
    if (shown.size() > kWidest) shown = printable(line.substr(0, kWidest)) + "…";
    out.line("    {} {}", mark, shown);
  }
}

void print_finding(const ScriptCheck& check, const LintResult& lint, const ScriptFinding& finding,
                   Output& out) {
  const std::string label = format("[{}: {}]", label_of(finding.level, check.words).text(), finding.rule);
  out.line("{}:{}: {} {}", printable(check.script), finding.line, printable(check.words.render(finding.text)),
           colored(out, finding.level, label));
  const script_lint::ChangedLines changed = script_lint::changed_lines(lint.text, finding.edits);
  // An edit elsewhere is not shown here.
  if (!finding.edits.empty() && changed.first == finding.line) {
    print_lines("-", changed.before, out);
    print_lines("+", changed.after, out);
    return;
  }
  if (!finding.excerpt.empty()) out.line("{}", std::string_view(finding.excerpt).substr(1));
  if (!finding.fix.empty())
    out.line("    {}", check.words.localize("try: {}", printable(check.words.render(finding.fix))).text());
}

std::size_t count_fatal(const LintResult& lint) {
  return static_cast<std::size_t>(
      std::count_if(lint.findings.begin(), lint.findings.end(),
                    [](const ScriptFinding& finding) { return finding.level == Level::job; }));
}

// "train.fixed.sbatch" beside "train.sbatch".
Path fixed_path(const ScriptCheck& check) {
  const Path path(check.script);
  if (check.fixes_in_place) return path;
  return path.parent_path() / (path.stem().string() + ".fixed" + path.extension().string());
}

struct FixResult {
  Path path;                  // empty: no file was written
  std::vector<Path> folders;  // made
  std::size_t findings = 0;
  bool loses_job = false;  // even with the fixes
};

// Creates the log folders and writes the corrected script with the original's permissions.
Result<FixResult> apply_fixes(const ScriptCheck& check, const LintResult& lint, const std::string& original) {
  FixResult fixed;
  std::size_t left = 0;
  const std::string text = script_lint::apply_edits(lint.text, lint.findings, &left);
  for (const ScriptFinding& finding : lint.findings) {
    const bool is_fixed =
        !finding.edits.empty() || !finding.folder.empty() || finding.rule == "dos-line-ends";
    fixed.findings += is_fixed ? 1 : 0;
    fixed.loses_job = fixed.loses_job || (!is_fixed && finding.level == Level::job);
    if (finding.folder.empty()) continue;
    STOKER_RETURN_IF_ERROR(make_directories(finding.folder));
    fixed.folders.push_back(finding.folder);
  }
  fixed.findings -= std::min(left, fixed.findings);
  if (text == original) return fixed;
  const Path path = fixed_path(check);
  if (!check.fixes_in_place && path_exists(path)) {
    const auto there = read_file(path);
    if (!there.ok() || *there != text) {
      return exists("{}: already exists with different content", printable(path.string()))
          .cure("rm {}", shell_quote(path.string()));
    }
  }
  std::error_code error;
  const Path real = check.fixes_in_place ? std::filesystem::canonical(path, error) : path;
  if (error) return posix_error(printable(path.string()), error.value());
  const auto permissions = std::filesystem::status(check.script, error).permissions();
  STOKER_RETURN_IF_ERROR(write_file(real, text));
  if (!error) std::filesystem::permissions(real, permissions, error);
  fixed.path = path;
  return fixed;
}

void print_summary(const ScriptCheck& check, const LintResult& lint, const std::optional<FixResult>& fixed,
                   Output& out) {
  const std::size_t all = lint.findings.size();
  const std::size_t fatal = count_fatal(lint);
  const Translator& words = check.words;
  if (all == 0) return out.line("{}", words.localize("{}: no findings", printable(check.script)).text());
  const std::string count = all == 1 ? words.localize("1 finding, {} would lose the job", fatal)
                                     : words.localize("{} findings, {} would lose the job", all, fatal);
  if (!fixed) {
    const bool can_fix = std::any_of(lint.findings.begin(), lint.findings.end(), [](const ScriptFinding& f) {
      return !f.edits.empty() || !f.folder.empty();
    });
    const Path path = fixed_path(check);
    return out.line(
        "{}", can_fix ? words
                            .localize("{}; stoker check --fix {} writes {} (--in-place: the file itself)",
                                      count, printable(check.script), printable(path.string()))
                            .text()
                      : count);
  }
  for (const Path& folder : fixed->folders)
    out.line("{}", words.localize("created {}", printable(folder.string())).text());
  const std::string path = printable(fixed->path.string());
  out.line("{}", fixed->path.empty()
                     ? words.localize("{}; {} fixed", count, fixed->findings).text()
                     : words.localize("{}; {} fixed in {}", count, fixed->findings, path).text());
}

ordered_json to_json(const ScriptCheck& check, const LintResult& lint,
                     const std::optional<FixResult>& fixed) {
  ordered_json findings = ordered_json::array();
  for (const ScriptFinding& finding : lint.findings) {
    findings.push_back({{"line", finding.line},
                        {"column", finding.column},
                        {"level", std::string(to_text(finding.level))},
                        {"rule", finding.rule},
                        {"text", check.words.render(finding.text)},
                        {"fix", check.words.render(finding.fix)}});
  }
  ordered_json json = {
      {"script", printable(check.script)}, {"loses_job", lint.loses_job()}, {"findings", findings}};
  if (fixed) json["fixed"] = fixed->path.empty() ? ordered_json(nullptr) : ordered_json(fixed->path.string());
  return json;
}

// Reads the durations of completed runs of this script, recorded by stoker submit in runs/.
void read_past_runs(const std::string& script, script_lint::LintContext& context) {
  constexpr std::size_t kMaxRuns = 20;
  const Path runs = context.directory / "runs";
  const auto names = list_directory(runs);
  if (!names.ok()) return;
  const std::string stem = Path(script).stem().string();
  std::size_t read_count = 0;
  // Names begin with a timestamp.
  for (auto name = names->rbegin(); name != names->rend() && read_count < kMaxRuns; ++name) {
    if (name->find("_" + stem.substr(0, 48) + "_") == std::string::npos) continue;
    ++read_count;
    const auto run = record::RunFolder::open(runs / *name);
    if (!run.ok() || run->description().command.empty()) continue;
    if ((context.directory / run->description().command.front()).lexically_normal() !=
        (context.directory / script).lexically_normal())
      continue;
    const record::RunState state = record::derive_state(*run);
    if (state.state != record::State::done || state.last_started <= 0) continue;
    const Duration took = std::chrono::duration_cast<Duration>(Seconds(state.ended - state.last_started));
    context.longest_run = std::max(context.longest_run.value_or(Duration::zero()), took);
    ++context.run_count;
  }
}

// The site profile; empty if this cluster is unknown and --site is not set.
Result<std::optional<job::Site>> site_for(const ScriptCheck& check) {
  if (check.site == "none") return std::optional<job::Site>();
  auto found = find_site_by_name(check.site);
  if (found.ok()) return std::optional(std::move(found->site));
  if (check.site == "auto") return std::optional<job::Site>();
  return found.error();
}

// 2302 of "23.02.7".
std::optional<std::uint32_t> release_number(std::string_view text) {
  const auto parts = split(trim(text), '.');
  std::uint64_t year = 0;
  std::uint64_t month = 0;
  const bool is_release = parts.size() >= 2 && parse_number(parts[0], &year) &&
                          parse_number(parts[1], &month) && year < 100 && month <= 12;
  return is_release ? std::optional(static_cast<std::uint32_t>(year * 100 + month)) : std::nullopt;
}

// The local Slurm's version: "slurm 23.02.7", "slurm-wlm 23.02.7". Empty without Slurm, or for a script of a
// different cluster.
std::optional<std::uint32_t> slurm_release(const ScriptCheck& check) {
  if (const auto configured = environment_value("STOKER_SLURM_RELEASE")) return release_number(*configured);
  if (check.site != "auto") return std::nullopt;
  const auto result = run_program({.argv = {"sbatch", "--version"}, .environment = {}, .directory = {}},
                                  Deadline::after(kSlurmTimeout), 4_KiB);
  if (!result.ok()) return std::nullopt;
  const std::string_view text = trim(result->out);
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || !text.starts_with("slurm")) return std::nullopt;
  return release_number(text.substr(blank + 1));
}

}  // namespace

bool is_batch_script(const std::string& word) {
  struct stat about{};
  if (::stat(word.c_str(), &about) != 0) return false;
  constexpr std::array<std::string_view, 5> kExtensions = {".sh", ".bash", ".sbatch", ".slurm", ".job"};
  const std::string extension = Path(word).extension().string();
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end() ||
         (S_ISREG(about.st_mode) && script_lint::looks_like_script(first_bytes(word)));
}

int check_script(const ScriptCheck& check, Output& out) {
  const auto text = script_lint::load_script(check.script);
  if (!text) return out.fail(text.error());
  const auto site = site_for(check);
  if (!site) return out.fail(site.error());
  std::error_code error;
  const Path directory = std::filesystem::current_path(error);
  if (error) return out.fail(posix_error("current folder", error.value()));
  script_lint::LintContext context{.directory = directory,
                                   .site = site->has_value() ? &**site : nullptr,
                                   .environment = slurm::process_environment(),
                                   .slurm = slurm_release(check)};
  read_past_runs(check.script, context);
  const LintResult lint = script_lint::lint_script(check.script, *text, context);
  std::optional<FixResult> fixed;
  if (check.fixes || check.fixes_in_place) {
    auto done = apply_fixes(check, lint, *text);
    if (!done) return out.fail(done.error());
    fixed = *std::move(done);
  }
  if (check.sarif) {
    const std::string text = to_sarif(check.script, lint, check.words);
    out.raw(text + "\n");
    out.json(text);
  } else {
    for (const ScriptFinding& finding : lint.findings) print_finding(check, lint, finding, out);
    print_summary(check, lint, fixed, out);
    out.json(json_text(to_json(check, lint, fixed)));
  }
  const bool loses_job = fixed ? fixed->loses_job : lint.loses_job();
  return loses_job ? exit_code::kFailed : exit_code::kOk;
}

Result<LintResult> lint_for_submission(const std::string& script, const std::vector<std::string>& options) {
  STOKER_ASSIGN_OR_RETURN(text, script_lint::load_script(script));
  std::error_code error;
  const Path directory = std::filesystem::current_path(error);
  if (error) return posix_error("current folder", error.value());
  // A separate check compares the limits of the site.
  return script_lint::lint_script(script, std::move(text),
                                  {.directory = directory,
                                   .environment = slurm::process_environment(),
                                   .slurm = slurm_release(ScriptCheck{}),
                                   .options = options});
}

int print_rules(const Translator& words, Output& out) {
  std::vector<std::vector<std::string>> rows;
  ordered_json rules = ordered_json::array();
  for (const script_lint::RuleText& rule : script_lint::rule_texts()) {
    rows.push_back(
        {std::string(rule.name), std::string(to_text(rule.level)), std::string(words.translate(rule.why))});
    rules.push_back({{"rule", std::string(rule.name)},
                     {"level", std::string(to_text(rule.level))},
                     {"why", std::string(words.translate(rule.why))},
                     {"example", std::string(rule.example)},
                     {"origin", std::string(rule.origin)}});
  }
  out.table({"RULE", "LEVEL", "WHY"}, rows);
  out.json(json_text(nlohmann::ordered_json{{"rules", rules}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
