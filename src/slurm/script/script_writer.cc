#include "slurm/script/script_writer.h"

#include <algorithm>

#include "slurm/script/batch_script.h"

namespace stoker::slurm {
namespace {

Status check_value(std::string_view option, std::string_view value) {
  if (has_control_character(value)) {
    return invalid("{}: '{}' contains a control character, which an #SBATCH line cannot contain", option,
                   printable(value));
  }
  if (value.size() > kLongestValue) {
    return invalid("{}: {} bytes, but sbatch accepts at most {}", option, value.size(), kLongestValue);
  }
  return {};
}

}  // namespace

void ScriptWriter::option(std::string_view name, std::string_view value) {
  if (problem_.ok()) problem_ = check_value(name, value);
  text_ += format("#SBATCH {}={}\n", name, sbatch_quote(value));
}

void ScriptWriter::option_if(std::string_view name, std::string_view value) {
  if (!value.empty()) option(name, value);
}

void ScriptWriter::option_if(std::string_view name, int value) {
  if (value > 0) option(name, std::to_string(value));
}

void ScriptWriter::raw_option(std::string_view option) {
  const auto [name, value] = split_option(option);
  if (value.empty()) return text(format("#SBATCH {}", name));
  text(format("#SBATCH {}{}{}", name, name.starts_with("--") ? "=" : " ", sbatch_quote(value)));
}

Result<std::string> ScriptWriter::finish() && {
  STOKER_RETURN_IF_ERROR(problem_);
  return std::move(text_);
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::pair<std::string_view, std::string_view> split_option(std::string_view option) {
  const bool is_long = option.starts_with("--");
  const std::size_t end = option.find_first_of(is_long ? "= \t" : " \t");
  if (end == std::string_view::npos) return {option, ""};
  std::string_view value = option.substr(end + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  return {option.substr(0, end), value};
}

Result<std::string> log_pattern(const Path& log) {
  std::string pattern;
  for (char c : log.string()) {
    if (c == '\\') return invalid("{}: Slurm allows no backslash in log paths", printable(log.string()));
    pattern += c == '%' ? "%%" : std::string(1, c);
  }
  return pattern;
}

Status add_exec(ScriptWriter& lines, const std::vector<std::string>& words) {
  std::string line = "exec";
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) return invalid("command: an argument contains a zero byte");
    line += " " + shell_quote(word);
  }
  if (line.find_first_of("$`") != std::string::npos) {
    lines.add_comment("A $ or a backquote in a path is literal.");
    lines.add_comment("shellcheck disable=SC2016");
  }
  lines.text(line);
  return {};
}

}  // namespace stoker::slurm
