#include "script_lint/rules/placeholder_text.h"

#include <algorithm>
#include <array>

#include <re2/re2.h>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// The first group of the match.
std::optional<std::string> first(std::string_view text, const re2::RE2& expression) {
  std::string found;
  if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), expression, &found))
    return std::nullopt;
  return found;
}

// Markers of template engines, CMake, autoconf and sed templates.
const re2::RE2& template_markers() {
  static const re2::RE2 kMarks(
      R"((\{\{+[ #/:]*[A-Za-z_][^{}]*\}\}+|\{%.*%\}|<%.+%>|@@\w+@@|@[A-Z][A-Z0-9_]{2,}@|%%[A-Za-z][\w-]{2,}%%|%\(\w+\)[sd]|)"
      R"(##\w+##|#[A-Z][A-Z0-9_]{2,}#|X{3}[A-Za-z0-9_]+X{3}|!!!+\w+!!!+|(?:^|/)__[A-Z][A-Z0-9_]*__(?:$|[/.])))");
  return kMarks;
}

// A part begins at the start or after one of these characters; blanks do not separate parts, because
// instructions contain them.
#define STOKER_PART "(?:^|[/=:,])"
const std::array<re2::RE2, 10>& placeholder_parts() {
  static const std::array<re2::RE2, 10> kParts = {
      // Addressed to the reader: "your_env", "yourname/data", "name_of_your_env".
      re2::RE2(STOKER_PART R"((?i)(your[\w-][\w.-]*))"),
      re2::RE2(STOKER_PART R"((?i)(\w*(?:_|\b)(?:of|to|insert|enter|put|with|replace|add|change)_your_\w*))"),
      // "path/to/data", "path_to_data.csv", "full-path-to-x", "PathToYourEnv".
      re2::RE2(STOKER_PART R"((?i)((?:full|abs|absolute)?[_-]?path[_-]to[_-][\w.-]+))"),
      re2::RE2(STOKER_PART
               R"(((?i:path/to)(?:/.*)?$|(?i:path/to)/|PathTo[A-Z]\w*|PATHTO[A-Z]\w+|pathto(?:your|/)))"),
      // In capitals, in several languages: "NAME_OF_PROGRAM.py", "NOMBRE_DEL_PROGRAMA.py".
      re2::RE2(STOKER_PART
               R"(((?:NAME|NOMBRE|NOM|NOME|PATH|RUTA|CHEMIN|PFAD|DIR|FOLDER|CARPETA|DOSSIER|TITLE)_)"
               R"((?:OF|TO|DE|DEL|DU|DA|DO|AL|AU|A|ZU|ZUM|ZUR)_[A-Z][\w.-]*))"),
      // A root folder that exists nowhere.
      re2::RE2(R"(^(/(?i:path|full_path|path_here|some/path|some_path|full/path|absolute/path)/))"),
      // "[path-to-data]/a", "[training-dir]": words, unlike a glob pattern.
      re2::RE2(STOKER_PART R"((\[[A-Za-z]{2,}(?:[-_ ][A-Za-z]{2,})+\])(?:/|$))"),
      // An omitted path component.
      re2::RE2(STOKER_PART R"((\.\.\.|…)(?:/|$))"),
      re2::RE2(
          R"(/(username|user_name|userName|USERNAME|USER_NAME|UserName|USER|NETID|DIRECTORY|PROJECT_NAME|)"
          R"(GROUP_NAME|MYDIR|someuser|someprof|some_user)(?:/|$))"),
      // "/data/<user>/set", "<root>/set"; "{ROOT}/set".
      re2::RE2(R"(((?:^|/)<[A-Za-z][\w .,'-]*>/|/<[A-Za-z][\w .,'-]*>(?:$|[/._-])|^\{[A-Za-z][\w .'-]*\}/|)"
               R"(/\{[A-Z][A-Z0-9_]+\}(?:$|/)))")};
  return kParts;
}
#undef STOKER_PART

const re2::RE2& placeholder_phrases() {
  static const re2::RE2 kPhrases(
      R"(^(<[A-Za-z][^<>]*[ _-][^<>]*>|<[A-Z][A-Z0-9_]+>|\[[A-Za-z][^\[\]]* [^\[\]]*\]|)"
      R"((?i:(?:the |full |absolute )?path (?:to|of|for) [\w ,.'/-]+|your [\w-]+(?: [\w-]+){0,4}|)"
      R"(where (?:you|your|is|to) [\w ,.'/-]+|(?:insert|enter|specify|put|fill in|name of|location of) )"
      R"((?:your|the|path|paths|name|a|an|here)\b[\w ,.'/-]*))$)");
  return kPhrases;
}

const re2::RE2& todo_markers() {
  static const re2::RE2 kToDos(
      R"((?:^|[^A-Za-z])((?:[A-Z0-9]+_)*PLACEHOLDER|(?:REPLACE|INSERT|ENTER|CHANGE)_(?:WITH|THIS|YOUR|BY|THE)_[A-Z_]+|CHANGE_?ME|REPLACE_?ME|FILL_?ME|FILL_?IN|FIX_?ME|\*{3}REMOVED\*{3}|(?:[A-Z][A-Z0-9]*_)+ARG)(?:$|[^A-Za-z]))");
  return kToDos;
}

// Fast path: most words contain no placeholder and need no regular expression.
bool is_plain(std::string_view text) {
  if (text.starts_with('x') || text.starts_with("your") || text.starts_with("path")) return false;
  return std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

constexpr std::string_view kKinds[] = {
    "account",    "accounts",      "acct",        "accounting", "allocation",  "alloc",
    "project",    "proj",          "group",       "grp",        "queue",       "partition",
    "qos",        "cluster",       "reservation", "name",       "id",          "code",
    "number",     "charge",        "billing",     "budget",     "user",        "username",
    "pi",         "slurm",         "groupname",   "piname",     "accountname", "queuename",
    "accountid",  "partitionname", "projectname", "projectid",  "qosname",     "clustername",
    "projectcode"};
constexpr std::string_view kFillers[] = {"my",  "your",    "the",  "some",   "other",   "any",
                                         "an",  "of",      "here", "enter",  "insert",  "desired",
                                         "put", "specify", "this", "choose", "correct", "relevant"};

}  // namespace

std::optional<std::string> template_marker(std::string_view text) { return first(text, template_markers()); }

std::optional<std::string> placeholder_part(std::string_view text) {
  if (is_plain(text)) return std::nullopt;
  if (text.find("://") != std::string_view::npos || text.starts_with("./...")) return std::nullopt;
  if (auto found = x_placeholder(text)) return found;
  if (auto found = first(text, todo_markers())) return found;
  for (const re2::RE2& part : placeholder_parts()) {
    auto found = first(text, part);
    // A program may have such a name.
    const bool is_program =
        found && to_lower(*found).starts_with("path") && (found->ends_with(".py") || found->ends_with(".sh"));
    if (found && !is_program) return found;
  }
  return std::nullopt;
}

std::optional<std::string> placeholder_phrase(std::string_view text) {
  return first(text, placeholder_phrases());
}

bool is_instruction(std::string_view text) {
  static const re2::RE2 kInstructions(
      R"(^(?i:copy|see|set|put|add|insert|enter|specify|choose|select|edit|provide|replace|fill|give|change|use|write))"
      R"( [\w ,.;:'/=<>()\[\]-]{8,}$)");
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kInstructions);
}

std::optional<std::string> x_placeholder(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] != 'x' && text[i] != 'X') || (i > 0 && is_word(text[i - 1]))) continue;
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    if (end - i >= 3 && (end == text.size() || !is_word(text[end])))
      return std::string(text.substr(i, end - i));
  }
  return std::nullopt;
}

std::optional<std::string> todo_marker(std::string_view text) {
  const std::string lower = to_lower(text);
  const bool is_left =
      lower.ends_with("tofill") || lower.ends_with("to_fill") || lower.ends_with("fill_me") ||
      lower == "todo" || lower.starts_with("todo:") || lower.starts_with("todo_") ||
      lower.starts_with("changeme") || lower.starts_with("change_me") || lower.starts_with("change_this") ||
      lower.starts_with("replace_") || lower.starts_with("fixme") || lower.starts_with("fill_in") ||
      lower.starts_with("insert_") || lower == "tbd" || lower.starts_with("placeholder");
  return is_left ? std::optional(std::string(text)) : first(text, todo_markers());
}

std::optional<std::string> angle_placeholder(std::string_view text) {
  const std::size_t open = text.find('<');
  const std::size_t close = text.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2)
    return std::nullopt;
  const std::size_t first = text.find_first_not_of("< ", open);
  if (first >= close || !is_letter(text[first])) return std::nullopt;
  return std::string(text.substr(open, close - open + 1));
}

std::optional<std::string> brace_placeholder(std::string_view text) {
  for (std::size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const bool is_name = name.size() > 1 && is_letter(name[0]) &&
                         std::all_of(name.begin(), name.end(), [](char c) { return is_word(c) || c == '_'; });
    if (is_name && (open == 0 || text[open - 1] != '$'))
      return std::string(text.substr(open, close - open + 1));
  }
  return std::nullopt;
}

std::optional<std::string> whole_word_placeholder(std::string_view text) {
  const bool is_angle = text.size() > 3 && text.starts_with('<') && text.ends_with('>');
  const bool is_mark = text.size() > 3 && text.starts_with('!');
  if (!is_angle && !is_mark) return std::nullopt;
  const std::string_view name = text.substr(1, text.size() - (is_angle ? 2 : 1));
  // "<data>", while "<mask>" may be a token of a text.
  if (is_angle &&
      is_one_of(name, {"data", "path", "dir", "folder", "file", "user", "username", "account", "project",
                       "dataset", "output", "input", "directory", "filename", "env", "config", "host"}))
    return std::string(text);
  const bool is_name =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
  return is_name ? std::optional(std::string(text)) : std::nullopt;
}

bool is_generic_name(std::string_view text) {
  std::size_t words = 0;
  bool has_kind = false;
  bool has_number = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end == i) {
      has_number = has_number || (text[i] >= '0' && text[i] <= '9');
      ++i;
      continue;
    }
    std::string word = to_lower(text.substr(i, end - i));
    // "myaccount", "yourproject".
    for (std::string_view prefix : {"my", "your", "the"}) {
      const bool is_glued = word.size() > prefix.size() && word.starts_with(prefix) &&
                            is_one_of(std::string_view(word).substr(prefix.size()), kKinds);
      if (!is_glued) continue;
      word.erase(0, prefix.size());
      ++words;
      break;
    }
    const bool is_kind = is_one_of(word, kKinds);
    if (!is_kind && !is_one_of(word, kFillers)) return false;
    has_kind = has_kind || is_kind;
    ++words;
    i = end;
  }
  const bool is_upper = std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return has_kind && !has_number && (words > 1 || (is_upper && text != "CLUSTER"));
}

}  // namespace stoker::script_lint
