#include "slurm/script/user_script.h"

#include <algorithm>
#include <optional>

#include "slurm/script/option_names.h"
#include "slurm/script/script_writer.h"
#include "slurm/script/task_range.h"
#include "stoker/text.h"

namespace stoker::slurm {
namespace {

// The next argument of a line, by the rules of sbatch (_get_argument of its opt.c): blanks separate, quotes
// and backslashes are removed, '#' begins a comment. Sets `is_open` for an unclosed quote.
std::optional<std::string> next_argument(std::string_view& line, bool& is_open) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  if (line.empty() || line.front() == '#') return std::nullopt;
  if (line == "\\") return std::nullopt;
  std::string argument;
  char quote = '\0';
  while (!line.empty()) {
    const char c = line.front();
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '#')) break;
    line.remove_prefix(1);
    if (c == '\\' && line.empty()) break;
    if (c == '\\') {
      argument += line.front();
      line.remove_prefix(1);
    } else if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      argument += c;
    }
  }
  is_open = quote != '\0';
  return argument;
}

// "#SBATCH hetjob" separates the components of a job.
bool is_hetjob_separator(std::string_view word) {
  const std::string lower = to_lower(word);
  return lower == "hetjob" || lower == "packjob";
}

// Parses the options after "#SBATCH".
void read_options(std::string_view line, int number, std::vector<SbatchOption>& options,
                  std::vector<StrayWord>& strays) {
  const std::size_t offset = std::string_view("#SBATCH").size();
  const std::string_view whole = line;
  bool may_take_value = false;  // the value of the last option may be the next word
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t begin = whole.size() - line.size() + offset;
    bool is_open = false;
    const auto word = next_argument(line, is_open);
    if (!word) return;
    const std::size_t word_end = whole.size() - line.size() + offset;
    if (is_open) strays.push_back({*word, begin, word_end, true});
    if (word->size() < 2 || word->front() != '-' || *word == "--") {
      if (may_take_value) {
        options.back().value = *word;
        options.back().value_begin = begin;
        options.back().end = word_end;
      } else if (!is_open &&
                 !(begin == whole.find_first_not_of(" \t") + offset && is_hetjob_separator(*word))) {
        if (!options.empty() && options.back().line == number && options.back().stray.empty())
          options.back().stray = *word;
        strays.push_back({*word, begin, word_end, false});
      }
      may_take_value = false;
      continue;
    }
    const bool is_long = word->starts_with("--");
    const std::size_t end = is_long ? std::min(word->find('='), word->size()) : 2;
    SbatchOption option{
        .name = long_option(std::string_view(*word).substr(0, end)), .value = "", .line = number};
    option.typed = word->substr(0, end);
    option.begin = begin;
    option.end = word_end;
    option.has_equals = is_long && end < word->size();
    option.value_begin = std::min(begin + end + (option.has_equals ? 1 : 0), word_end);
    if (end < word->size()) option.value = word->substr(is_long ? end + 1 : end);
    may_take_value = end == word->size() && takes_next_word(option.name);
    options.push_back(std::move(option));
  }
}

bool is_comment_or_blank(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\v\f\r");
  return first == std::string_view::npos || line[first] == '#';
}

}  // namespace

const SbatchOption* UserScript::find(std::string_view name) const {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const SbatchOption& option) { return option.name == name; });
  return found == options.rend() ? nullptr : &*found;
}

bool is_script(std::string_view text) { return text.starts_with("#!"); }

Result<UserScript> read_user_script(std::string_view name, std::string_view text) {
  const std::string shown = printable(name);
  if (text.empty()) return invalid("{}: is empty", shown);
  if (text.size() > kLargestScript)
    return invalid("{}: {} bytes, but Slurm accepts at most {}", shown, text.size(), kLargestScript);
  if (!is_script(text)) {
    return invalid("{}: its first line is not #! and an interpreter, so Slurm rejects it", shown)
        .cure("sed -i '1i #!/bin/bash' {}", shell_quote(name));
  }
  if (text.find("\r\n") != std::string_view::npos) {
    return invalid("{}: has DOS line endings, which Slurm rejects", shown)
        .cure("sed -i 's/\\r$//' {}", shell_quote(name));
  }
  UserScript script;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!is_comment_or_blank(line)) break;
    // Slurm reads lines of PBS and LSF, too.
    const bool is_header = number > 1 && (line.starts_with("#SBATCH") || line.starts_with("#SLURM") ||
                                          line.starts_with("#PBS") || line.starts_with("#BSUB"));
    if (!is_header) continue;
    if (line.find('\0') != std::string_view::npos)
      return invalid("{}:{}: zero byte in an sbatch option", shown, number);
    script.header.emplace_back(line);
    std::vector<StrayWord> strays;
    if (line.starts_with("#SBATCH")) read_options(line.substr(7), number, script.options, strays);
  }
  return script;
}

std::vector<SbatchOption> read_option_line(std::string_view line, int number) {
  std::vector<SbatchOption> options;
  std::vector<StrayWord> strays;
  if (line.starts_with("#SBATCH")) read_options(line.substr(7), number, options, strays);
  return options;
}

std::vector<StrayWord> stray_words(std::string_view line) {
  std::vector<SbatchOption> options;
  std::vector<StrayWord> strays;
  if (line.starts_with("#SBATCH")) read_options(line.substr(7), 1, options, strays);
  return strays;
}

Result<std::string> wrap_user_script(const UserScript& script, const Wrapping& wrapping) {
  ScriptWriter lines;
  lines.text("#!/bin/bash");
  lines.add_comment(printable(wrapping.title));
  lines.option_if("--job-name", wrapping.job_name);
  if (!wrapping.comment.empty() && !script.find("--comment")) {
    lines.add_comment("Identifies the job if its id could not be recorded.");
    lines.option("--comment", wrapping.comment);
  }
  if (!wrapping.log.empty()) {
    lines.add_comment(
        "The script names no log, so it is kept in the run folder; a requeued job appends to it.");
    lines.option("--output", wrapping.log);
    lines.option("--open-mode", "append");
  }
  if (!script.header.empty()) {
    lines.add_comment("The script's own options, unchanged. Options that come later take precedence.");
    for (const std::string& line : script.header) lines.text(line);
  }
  if (!wrapping.extra.empty()) lines.add_comment("Requested with --sbatch.");
  for (const std::string& option : wrapping.extra) {
    STOKER_RETURN_IF_ERROR(check_user_option(option).with_context("--sbatch"));
    lines.raw_option(option);
  }
  lines.text("");
  lines.add_comment(
      "exec: stoker replaces this shell. It runs a copy of the script with the script's interpreter, "
      "forwards");
  lines.add_comment("every signal to it and records how it ended.");
  STOKER_RETURN_IF_ERROR(add_exec(lines, wrapping.command));
  return std::move(lines).finish();
}

std::string log_folder(std::string_view pattern) {
  const std::size_t slash = pattern.rfind('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view folder = pattern.substr(0, std::max<std::size_t>(slash, 1));
  return folder.find_first_of("%\\") == std::string_view::npos ? std::string(folder) : "";
}

std::size_t count_tasks(std::string_view array) {
  std::size_t tasks = 0;
  for (std::string_view piece : split(array.substr(0, array.find('%')), ',')) {
    if (const auto range = read_task_range(piece)) tasks += (range->last - range->first) / range->step + 1;
  }
  return tasks;
}

std::optional<ByteCount> parse_slurm_memory(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::uint64_t count = 0;
  if (!parse_number(text.substr(0, digits), &count) || count > (std::uint64_t{1} << 40)) return std::nullopt;
  std::string unit = to_lower(text.substr(digits));
  if (unit.ends_with('b')) unit.pop_back();
  if (unit == "k") return ByteCount{count << 10};
  if (unit.empty() || unit == "m") return ByteCount{count << 20};
  if (count > (std::uint64_t{1} << 23)) return std::nullopt;
  if (unit == "g") return ByteCount{count << 30};
  if (unit == "t") return ByteCount{count << 40};
  return std::nullopt;
}

std::optional<Duration> parse_slurm_limit(std::string_view text) {
  std::uint64_t days = 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days && !parse_number(text.substr(0, dash), &days)) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (std::string_view piece : split(has_days ? text.substr(dash + 1) : text, ':')) {
    std::uint64_t number = 0;
    if (!parse_number(piece, &number) || number > 1'000'000) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() > 3 || days > 20'000) return std::nullopt;
  // Hours follow days. Without days, one number is minutes, and two are minutes and seconds.
  std::uint64_t seconds = days * 86400;
  if (has_days || numbers.size() == 3) {
    constexpr std::uint64_t kUnits[] = {3600, 60, 1};
    for (std::size_t i = 0; i < numbers.size(); ++i) seconds += numbers[i] * kUnits[i];
  } else {
    seconds += numbers[0] * 60 + (numbers.size() == 2 ? numbers[1] : 0);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace stoker::slurm
