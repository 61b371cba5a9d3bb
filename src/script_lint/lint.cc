#include "script_lint/lint.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <sys/stat.h>
#include <tuple>

#include "base/file.h"
#include "script_lint/rule.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::size_t kMaxFindings = 200;  // of one rule
constexpr std::size_t kLongestText = 400;
constexpr std::size_t kLongestFix = 2000;

// Completes the finding: rule name, and the corrected line if the rule set only edits.
void complete(const Script& script, const Rule& rule, ScriptFinding& finding) {
  finding.rule = rule.name;
  if (finding.fix.empty() && !finding.edits.empty()) {
    std::string after = changed_lines(script.text, finding.edits).after;
    while (after.ends_with('\n')) after.pop_back();
    finding.fix = std::move(after);
  }
  // Scripts may contain long texts.
  finding.text.clip(kLongestText);
  finding.fix.clip(kLongestFix);
}

std::vector<Edit> chosen_edits(const std::vector<ScriptFinding>& findings, std::size_t* left) {
  std::vector<Edit> all;
  std::size_t skipped = 0;
  for (const ScriptFinding& finding : findings) {
    const auto conflicts = [&](const Edit& edit) {
      return std::any_of(all.begin(), all.end(), [&](const Edit& other) {
        if (edit == other) return false;
        return edit.begin < other.end && other.begin < edit.end;
      });
    };
    if (std::any_of(finding.edits.begin(), finding.edits.end(), conflicts)) {
      ++skipped;
      continue;
    }
    for (const Edit& edit : finding.edits) {
      if (std::find(all.begin(), all.end(), edit) == all.end()) all.push_back(edit);
    }
  }
  if (left != nullptr) *left = skipped;
  // Edits at the same position: sbatch options first, because they must precede commands.
  const auto place = [](const Edit& e) { return std::tuple(e.begin, e.end, !e.text.starts_with('#')); };
  std::stable_sort(all.begin(), all.end(), [&](const Edit& a, const Edit& b) { return place(a) < place(b); });
  return all;
}

std::string edited(std::string_view text, const std::vector<Edit>& sorted) {
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : sorted) {
    out += text.substr(at, edit.begin - at);
    out += edit.text;
    at = edit.end;
  }
  return out + std::string(text.substr(at));
}

std::string with_unix_lines(std::string_view text) {
  std::string lines;
  lines.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || i + 1 >= text.size() || text[i + 1] != '\n') lines += text[i];
  }
  return lines;
}

// By its byte order mark, or by alternating zero bytes.
bool is_utf_16(std::string_view text) {
  using namespace std::string_view_literals;
  return text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv) || text.starts_with("#\0!\0"sv) ||
         text.starts_with("\0#\0!"sv);
}

}  // namespace

ScriptFinding& FindingReport::add(bash::Span at, const Message& text) {
  ScriptFinding finding;
  finding.level = level_;
  const config::Mark mark = script_.source->mark(at.begin);
  finding.line = mark.line;
  finding.column = mark.column;
  finding.text = text;
  finding.excerpt = script_.source->excerpt(at.begin);
  if (findings_.size() < kMaxFindings) findings_.push_back(std::move(finding));
  return findings_.back();
}

ScriptFinding& FindingReport::replace(bash::Span at, const Message& text, std::string instead) {
  ScriptFinding& finding = add(at, text);
  finding.edits = {{at.begin, at.end, std::move(instead)}};
  return finding;
}

ScriptFinding& FindingReport::insert_line(bash::Span at, const Message& text, std::string line) {
  const std::size_t begin = script_.line_of(at.begin).begin;
  const std::size_t first = std::min(script_.text.find_first_not_of(" \t", begin), script_.text.size());
  ScriptFinding& finding = add(at, text);
  finding.fix = line;
  finding.edits = {{begin, begin, script_.text.substr(begin, first - begin) + line + "\n"}};
  return finding;
}

ScriptFinding& FindingReport::insert_first(bash::Span at, const Message& text, std::string line) {
  const std::size_t begin = script_.line_of(script_.first_command).begin;
  ScriptFinding& finding = add(at, text);
  finding.edits = {{begin, begin, line + "\n"}};
  finding.fix = std::move(line);
  return finding;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_local_path(std::string_view path) {
  constexpr std::array<std::string_view, 6> kPlaces = {"$SLURM_TMPDIR", "$TMPDIR", "/tmp",
                                                       "/dev/shm",      "/local",  "$LOCAL_SCRATCH"};
  return std::any_of(kPlaces.begin(), kPlaces.end(), [&](std::string_view place) {
    return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
  });
}

bool LintResult::loses_job() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const ScriptFinding& finding) { return finding.level == Level::job; });
}

bool looks_like_script(std::string_view text) {
  return slurm::is_script(text) || text.starts_with("#SBATCH") || text.starts_with("\xEF\xBB\xBF#!") ||
         text.find("\n#SBATCH") != std::string_view::npos;
}

Result<std::string> load_script(const Path& path) {
  const std::string shown = printable(path.string());
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return posix_error(shown, errno);
  // Reading a pipe would block.
  if (S_ISDIR(about.st_mode)) return invalid("{}: is a folder, expected a file", shown);
  if (!S_ISREG(about.st_mode)) return invalid("{}: is not a regular file", shown);
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size > slurm::kLargestScript) {
    return invalid("{}: {} bytes, Slurm accepts scripts of at most {}", shown, size, slurm::kLargestScript);
  }
  STOKER_ASSIGN_OR_RETURN(text, read_file(path, ByteCount{slurm::kLargestScript}));
  if (text.empty()) return invalid("{}: is empty", shown);
  if (is_utf_16(text)) {
    return invalid("{}: is UTF-16, which neither Slurm nor the shell reads", shown)
        .cure("iconv -f UTF-16 -t UTF-8 {0} > {0}.utf8 && mv {0}.utf8 {0}", shell_quote(path.string()));
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos)
    return invalid("{}: a zero byte at byte {}, and Slurm rejects such a script", shown, zero);
  return std::move(text);
}

LintResult lint_script(const std::string& name, std::string text, const LintContext& context) {
  // Classic Mac line ends: no line feed at all.
  const bool has_mac_lines = text.find('\n') == std::string::npos && text.find('\r') != std::string::npos;
  if (has_mac_lines) std::replace(text.begin(), text.end(), '\r', '\n');
  const bool has_dos_lines = text.find("\r\n") != std::string::npos;
  if (has_dos_lines) text = with_unix_lines(text);
  const std::unique_ptr<Script> script = read_script(name, std::move(text));
  override_options(context.options, script->request);
  LintResult lint;
  if (has_dos_lines || has_mac_lines) {
    ScriptFinding finding;
    finding.rule = "dos-line-ends";
    finding.level = Level::job;
    finding.text = has_dos_lines
                       ? message("DOS line ends: sbatch rejects the script")
                       : message("old Mac line ends: the shell reads the whole script as one comment");
    finding.fix = format("sed -i '{}' {}", has_dos_lines ? "s/\\r$//" : "s/\\r/\\n/g", shell_quote(name));
    lint.findings.push_back(std::move(finding));
  }
  for (std::span<const Rule> table : rule_tables()) {
    for (const Rule& rule : table) {
      FindingReport report(*script, context, rule.level);
      rule.find(*script, report);
      for (ScriptFinding& finding : report.take()) {
        complete(*script, rule, finding);
        lint.findings.push_back(std::move(finding));
      }
    }
  }
  std::stable_sort(lint.findings.begin(), lint.findings.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.line, a.column) < std::tuple(b.line, b.column);
  });
  lint.text = script->text;
  return lint;
}

std::string apply_edits(std::string_view text, const std::vector<ScriptFinding>& findings,
                        std::size_t* left) {
  return edited(text, chosen_edits(findings, left));
}

ChangedLines changed_lines(std::string_view text, const std::vector<Edit>& edits) {
  if (edits.empty()) return {};
  std::vector<Edit> sorted = edits;
  std::sort(sorted.begin(), sorted.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  const std::size_t first = sorted.front().begin;
  const std::size_t last = std::max(sorted.back().end, first);
  const std::size_t before = first == 0 ? std::string::npos : text.rfind('\n', first - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  // An inserted line does not change the line after it.
  const bool only_inserts = last == begin && sorted.back().text.ends_with('\n');
  const std::size_t end = only_inserts ? begin : std::min(text.find('\n', last), text.size() - 1) + 1;
  for (Edit& edit : sorted) {
    edit.begin -= begin;
    edit.end -= begin;
  }
  const std::string_view lines = text.substr(begin, std::min(end, text.size()) - begin);
  ChangedLines changed{.before = std::string(lines), .after = edited(lines, sorted), .first = 1};
  changed.first += static_cast<std::uint32_t>(
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
  return changed;
}

std::vector<std::span<const Rule>> rule_tables() {
  return {header_rules(),      line_rules(),     value_rules(),    omission_rules(),     conflict_rules(),
          placeholder_rules(), log_rules(),      node_rules(),     rank_rules(),         launch_rules(),
          signal_rules(),      ending_rules(),   shell_rules(),    name_rules(),         step_rules(),
          load_rules(),        habit_rules(),    tool_rules(),     cluster_rules(),      site_rules(),
          word_rules(),        program_rules(),  variable_rules(), continuation_rules(), no_work_rules(),
          path_rules(),        language_rules(), list_rules()};
}

std::vector<RuleText> rule_texts() {
  std::vector<RuleText> texts;
  texts.push_back({"dos-line-ends", Level::job, "sbatch rejects scripts with DOS line ends", "#!/bin/bash\\r",
                   "Windows editors"});
  for (std::span<const Rule> table : rule_tables()) {
    for (const Rule& rule : table) texts.push_back({rule.name, rule.level, rule.why, rule.bad, rule.origin});
  }
  return texts;
}

}  // namespace stoker::script_lint
