#include "cli/check/script.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/check/sarif.h"
#include "cli/site/sites.h"
#include "explain/script/lint.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::cli {
namespace {

using explain::Lint;
using explain::ScriptFinding;
using nlohmann::ordered_json;

constexpr std::size_t kLookAt = std::size_t{64} << 10;  // of a file, to tell what it is
constexpr std::chrono::seconds kAskSlurm{2};
constexpr std::size_t kWidest = 160;  // characters of a line that are shown

std::string first_bytes(const std::string& path) {
  const auto file = File::open_read(path);
  if (!file.ok()) return "";
  const auto size = file->size();
  if (!size.ok()) return "";
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(*size, kLookAt)), '\0');
  const auto bytes = std::span(reinterpret_cast<std::byte*>(text.data()), text.size());
  return file->read_at(0, bytes).ok() ? text : "";
}

Said label_of(Level level, const Words& words) {
  return level == Level::job    ? words.say("loses the job")
         : level == Level::time ? words.say("loses time")
                                : words.say("advice");
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

void print_finding(const ScriptCheck& check, const Lint& lint, const ScriptFinding& finding, Output& out) {
  const std::string label = format("[{}: {}]", label_of(finding.level, check.words).text(), finding.rule);
  out.line("{}:{}: {} {}", printable(check.script), finding.line, printable(finding.text),
           colored(out, finding.level, label));
  const explain::ChangedLines changed = explain::changed_lines(lint.text, finding.edits);
  // A change somewhere else says nothing about this line.
  if (!finding.edits.empty() && changed.first == finding.line) {
    print_lines("-", changed.before, out);
    print_lines("+", changed.after, out);
    return;
  }
  if (!finding.excerpt.empty()) out.line("{}", std::string_view(finding.excerpt).substr(1));
  if (!finding.fix.empty()) out.line("    {}", check.words.say("try: {}", printable(finding.fix)).text());
}

std::size_t count_losing(const Lint& lint) {
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

struct Mended {
  Path path;                  // empty: nothing was written
  std::vector<Path> folders;  // made
  std::size_t findings = 0;
  bool loses_job = false;  // still
};

// Makes the log folders and writes the corrected script, with the first one's permissions.
Result<Mended> mend(const ScriptCheck& check, const Lint& lint, const std::string& original) {
  Mended mended;
  std::size_t left = 0;
  const std::string text = explain::apply_edits(lint.text, lint.findings, &left);
  for (const ScriptFinding& finding : lint.findings) {
    const bool is_mended =
        !finding.edits.empty() || !finding.folder.empty() || finding.rule == "dos-line-ends";
    mended.findings += is_mended ? 1 : 0;
    mended.loses_job = mended.loses_job || (!is_mended && finding.level == Level::job);
    if (finding.folder.empty()) continue;
    RETURN_IF_ERROR(make_directories(finding.folder));
    mended.folders.push_back(finding.folder);
  }
  mended.findings -= std::min(left, mended.findings);
  if (text == original) return mended;
  const Path path = fixed_path(check);
  if (!check.fixes_in_place && path_exists(path)) {
    const auto there = read_file(path);
    if (!there.ok() || *there != text) {
      return exists("{}: is there already, and is otherwise", printable(path.string()))
          .cure("rm {}", shell_quote(path.string()));
    }
  }
  std::error_code error;
  const Path real = check.fixes_in_place ? std::filesystem::canonical(path, error) : path;
  if (error) return posix_error(printable(path.string()), error.value());
  const auto permissions = std::filesystem::status(check.script, error).permissions();
  RETURN_IF_ERROR(write_file(real, text));
  if (!error) std::filesystem::permissions(real, permissions, error);
  mended.path = path;
  return mended;
}

void print_end(const ScriptCheck& check, const Lint& lint, const std::optional<Mended>& mended, Output& out) {
  const std::size_t all = lint.findings.size();
  const std::size_t losing = count_losing(lint);
  const Words& words = check.words;
  if (all == 0) return out.line("{}", words.say("{}: nothing found", printable(check.script)).text());
  const std::string count = all == 1 ? words.say("1 finding, {} would lose the job", losing)
                                     : words.say("{} findings, {} would lose the job", all, losing);
  if (!mended) {
    const bool can_mend = std::any_of(lint.findings.begin(), lint.findings.end(), [](const ScriptFinding& f) {
      return !f.edits.empty() || !f.folder.empty();
    });
    const Path path = fixed_path(check);
    return out.line("{}", can_mend
                              ? words
                                    .say("{}; stoker check --fix {} writes {} (--in-place: the file itself)",
                                         count, printable(check.script), printable(path.string()))
                                    .text()
                              : count);
  }
  for (const Path& folder : mended->folders)
    out.line("{}", words.say("made {}", printable(folder.string())).text());
  const std::string path = printable(mended->path.string());
  out.line("{}", mended->path.empty()
                     ? words.say("{}; {} mended", count, mended->findings).text()
                     : words.say("{}; {} mended in {}", count, mended->findings, path).text());
}

ordered_json to_json(const ScriptCheck& check, const Lint& lint, const std::optional<Mended>& mended) {
  ordered_json findings = ordered_json::array();
  for (const ScriptFinding& finding : lint.findings) {
    findings.push_back({{"line", finding.line},
                        {"column", finding.column},
                        {"level", std::string(to_text(finding.level))},
                        {"rule", finding.rule},
                        {"text", finding.text},
                        {"fix", finding.fix}});
  }
  ordered_json json = {
      {"script", printable(check.script)}, {"loses_job", lint.loses_job()}, {"findings", findings}};
  if (mended)
    json["fixed"] = mended->path.empty() ? ordered_json(nullptr) : ordered_json(mended->path.string());
  return json;
}

// How long the runs of this script took that were done, as stoker submit has recorded them in runs/.
void look_at_runs(const std::string& script, explain::ScriptPlace& place) {
  constexpr std::size_t kMostRuns = 20;
  const Path runs = place.directory / "runs";
  const auto names = list_directory(runs);
  if (!names.ok()) return;
  const std::string stem = Path(script).stem().string();
  std::size_t looked_at = 0;
  // Names begin with the time.
  for (auto name = names->rbegin(); name != names->rend() && looked_at < kMostRuns; ++name) {
    if (name->find("_" + stem.substr(0, 48) + "_") == std::string::npos) continue;
    ++looked_at;
    const auto run = record::RunFolder::open(runs / *name);
    if (!run.ok() || run->description().command.empty()) continue;
    if ((place.directory / run->description().command.front()).lexically_normal() !=
        (place.directory / script).lexically_normal())
      continue;
    const record::RunState state = record::derive_state(*run);
    if (state.state != record::State::done || state.last_started <= 0) continue;
    const Duration took = std::chrono::duration_cast<Duration>(Seconds(state.ended - state.last_started));
    place.took = std::max(place.took.value_or(Duration::zero()), took);
    ++place.times;
  }
}

// The site by its profile; nothing when none is known here and none was asked for.
Result<std::optional<job::Site>> site_for(const ScriptCheck& check) {
  if (check.site == "none") return std::optional<job::Site>();
  auto found = site_named(check.site);
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

// The Slurm that jobs are submitted to from here: "slurm 23.02.7", "slurm-wlm 23.02.7". Nothing when there is
// none, or when the script is for somewhere else.
std::optional<std::uint32_t> slurm_release(const ScriptCheck& check) {
  if (const auto told = environment_value("STOKER_SLURM_RELEASE")) return release_number(*told);
  if (check.site != "auto") return std::nullopt;
  const auto said = run_program({.argv = {"sbatch", "--version"}, .environment = {}, .directory = {}},
                                Deadline::after(kAskSlurm), 4_KiB);
  if (!said.ok()) return std::nullopt;
  const std::string_view text = trim(said->out);
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || !text.starts_with("slurm")) return std::nullopt;
  return release_number(text.substr(blank + 1));
}

}  // namespace

bool names_batch_script(const std::string& word) {
  struct stat about{};
  if (::stat(word.c_str(), &about) != 0) return false;
  constexpr std::array<std::string_view, 5> kExtensions = {".sh", ".bash", ".sbatch", ".slurm", ".job"};
  const std::string extension = Path(word).extension().string();
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end() ||
         (S_ISREG(about.st_mode) && explain::looks_like_script(first_bytes(word)));
}

int check_script(const ScriptCheck& check, Output& out) {
  const auto text = explain::load_script(check.script);
  if (!text) return out.fail(text.error());
  const auto site = site_for(check);
  if (!site) return out.fail(site.error());
  std::error_code error;
  const Path directory = std::filesystem::current_path(error);
  if (error) return out.fail(posix_error("current folder", error.value()));
  explain::ScriptPlace place{.directory = directory,
                             .site = site->has_value() ? &**site : nullptr,
                             .environment = slurm::process_environment(),
                             .words = check.words,
                             .slurm = slurm_release(check)};
  look_at_runs(check.script, place);
  const Lint lint = explain::lint_script(check.script, *text, place);
  std::optional<Mended> mended;
  if (check.fixes || check.fixes_in_place) {
    auto done = mend(check, lint, *text);
    if (!done) return out.fail(done.error());
    mended = *std::move(done);
  }
  if (check.sarif) {
    const std::string text = sarif_of(check.script, lint, check.words);
    out.raw(text + "\n");
    out.json(text);
  } else {
    for (const ScriptFinding& finding : lint.findings) print_finding(check, lint, finding, out);
    print_end(check, lint, mended, out);
    out.json(json_text(to_json(check, lint, mended)));
  }
  const bool loses_job = mended ? mended->loses_job : lint.loses_job();
  return loses_job ? exit_code::kFailed : exit_code::kOk;
}

int print_rules(const Words& words, Output& out) {
  std::vector<std::vector<std::string>> rows;
  ordered_json rules = ordered_json::array();
  for (const explain::RuleText& rule : explain::rule_texts()) {
    rows.push_back(
        {std::string(rule.name), std::string(to_text(rule.level)), std::string(words.of(rule.why))});
    rules.push_back({{"rule", std::string(rule.name)},
                     {"level", std::string(to_text(rule.level))},
                     {"why", std::string(words.of(rule.why))},
                     {"example", std::string(rule.example)},
                     {"origin", std::string(rule.origin)}});
  }
  out.table({"RULE", "LEVEL", "WHY"}, rows);
  out.json(json_text(nlohmann::ordered_json{{"rules", rules}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
