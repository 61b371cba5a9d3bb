#include "farm/list/command_line.h"

#include <algorithm>
#include <iterator>

namespace stoker::farm {

namespace {

// What a shell does itself, and its reserved words. echo and printf are left out: the programs do the same.
constexpr std::string_view kShellWords[] = {
    ".",      ":",       "[",         "[[",       "alias",   "bg",       "bind",     "break",    "builtin",
    "caller", "case",    "cd",        "command",  "compgen", "complete", "continue", "coproc",   "declare",
    "dirs",   "disown",  "do",        "done",     "elif",    "else",     "enable",   "esac",     "eval",
    "exec",   "exit",    "export",    "fc",       "fg",      "fi",       "for",      "function", "getopts",
    "hash",   "history", "if",        "jobs",     "let",     "local",    "logout",   "mapfile",  "popd",
    "pushd",  "read",    "readarray", "readonly", "return",  "select",   "set",      "shift",    "shopt",
    "source", "suspend", "test",      "then",     "time",    "times",    "trap",     "type",     "typeset",
    "ulimit", "umask",   "unalias",   "unset",    "until",   "wait",     "while"};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./,:@%+=^").find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_shell_word(std::string_view word) {
  return std::find(std::begin(kShellWords), std::end(kShellWords), word) != std::end(kShellWords);
}

// Appends the quoted text that starts at `at` and moves `at` behind it. False if it is not plain.
bool append_quoted(std::string_view line, std::size_t& at, std::string& word) {
  const char quote = line[at];
  const std::size_t end = line.find(quote, at + 1);
  if (end == std::string_view::npos) return false;
  const std::string_view text = line.substr(at + 1, end - at - 1);
  if (quote == '"' && text.find_first_of("$`\\!") != std::string_view::npos) return false;
  word += text;
  at = end + 1;
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> plain_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool is_in_word = false;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == ' ' || c == '\t') {
      if (is_in_word) words.push_back(std::move(word));
      word.clear();
      is_in_word = false;
      ++at;
      continue;
    }
    is_in_word = true;
    if (c == '\'' || c == '"') {
      if (!append_quoted(line, at, word)) return std::nullopt;
    } else if (c == '\\' && at + 1 < line.size() && line[at + 1] != '\n') {
      word += line[at + 1];
      at += 2;
    } else if (is_plain(c)) {
      if (c == '=' && words.empty()) return std::nullopt;
      word += c;
      ++at;
    } else {
      return std::nullopt;
    }
  }
  if (is_in_word) words.push_back(std::move(word));
  if (words.empty() || words[0].empty() || is_shell_word(words[0])) return std::nullopt;
  return words;
}

bool is_portable_line(std::string_view line) {
  std::string word;
  bool follows_echo = false;
  const auto ends_well = [&] {
    // Shells differ in the options of echo.
    const bool is_option = follows_echo && word.starts_with('-');
    const bool is_well = !is_option && !is_shell_word(word) && word != "printf" && word != "kill";
    if (!word.empty()) follows_echo = word == "echo";
    word.clear();
    return is_well;
  };
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    const std::string_view next = line.substr(at + 1, 1);
    if (c == '\'' || c == '"') {
      if (!append_quoted(line, at, word) || word.find('\\') != std::string::npos) return false;
      continue;
    }
    ++at;
    if (is_plain(c)) {
      word += c;
      continue;
    }
    if (!ends_well()) return false;
    if (c == '&' && next != "&" && !(at >= 2 && (line[at - 2] == '>' || line[at - 2] == '&'))) return false;
    if (c == '>' && next == "&" && !(at + 1 < line.size() && line[at + 1] >= '0' && line[at + 1] <= '9'))
      return false;
    if ((c == '|' && next == "&") || (c == '<' && (next == "<" || next == "&"))) return false;
    if (c == '&' && next == ">") return false;
    if (std::string_view(" \t><|;&").find(c) == std::string_view::npos) return false;
  }
  return ends_well();
}

Result<CommandPattern> CommandPattern::parse(const std::vector<std::string>& command) {
  CommandPattern pattern;
  pattern.is_shell_line_ = command.size() == 1 && command[0].find_first_of(" \t\n") != std::string::npos;
  for (const std::string& argument : command) {
    std::vector<PatternPart>& parts = pattern.arguments_.emplace_back(1);
    for (std::size_t i = 0; i < argument.size(); ++i) {
      const char c = argument[i];
      if ((c == '{' || c == '}') && i + 1 < argument.size() && argument[i + 1] == c) {
        parts.back().text += c;
        ++i;
        continue;
      }
      if (c != '{') {
        parts.back().text += c;
        continue;
      }
      const std::size_t end = argument.find('}', i);
      if (end == std::string::npos)
        return invalid("command: '{}' has a '{{' without its '}}'", printable(argument))
            .cure("{{{{ for a brace");
      std::string name = argument.substr(i + 1, end - i - 1);
      if (std::find(pattern.names_.begin(), pattern.names_.end(), name) == pattern.names_.end())
        pattern.names_.push_back(name);
      parts.push_back({std::move(name), true});
      parts.emplace_back();
      i = end;
    }
  }
  return pattern;
}

std::string CommandPattern::fill(const PlaceholderValues& values) const {
  std::string line;
  for (const std::vector<PatternPart>& parts : arguments_) {
    std::string argument;
    for (const PatternPart& part : parts) {
      if (!part.is_name) {
        argument += part.text;
      } else if (const auto value = values(part.text)) {
        argument += is_shell_line_ ? shell_quote(*value) : *value;
      }
    }
    if (!line.empty()) line += ' ';
    line += is_shell_line_ ? argument : shell_quote(argument);
  }
  return line;
}

}  // namespace stoker::farm
