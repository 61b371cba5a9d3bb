// What a guide's author left for the reader to fill in, and the reader did not.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.h"
#include "explain/bash/parser.h"
#include "explain/script/rule.h"
#include "explain/script/rules/marks.h"

namespace stoker::explain {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

// "<username>", "<your account>": a name in angle brackets.
std::optional<std::string> angle_name(std::string_view text) {
  const std::size_t open = text.find('<');
  const std::size_t close = text.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2)
    return std::nullopt;
  const std::size_t first = text.find_first_not_of("< ", open);
  if (first >= close || !is_letter(text[first])) return std::nullopt;
  return std::string(text.substr(open, close - open + 1));
}

// "xxx", "xxxx" as a part of a name, as in def-xxxx and xxx_usr_prod.
std::optional<std::string> crosses(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] != 'x' && text[i] != 'X') || (i > 0 && is_word(text[i - 1]))) continue;
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    if (end - i >= 3 && (end == text.size() || !is_word(text[end])))
      return std::string(text.substr(i, end - i));
  }
  return std::nullopt;
}

// "your_account", "YOUR-PROJECT", "path/to/data".
std::optional<std::string> yours(std::string_view text) {
  const std::string lower = to_lower(text);
  if (lower.find("://") != std::string::npos) return std::nullopt;  // an address may be called anything
  for (std::string_view word :
       {"your_",     "your-",   "yourname",  "youraccount", "yourproject", "yourpartition", "yourpath",
        "yourdata",  "yourdir", "yourfile",  "yourscript",  "youruser",    "yourgroup",     "yourenv",
        "youremail", "yourkey", "yourtoken", "path/to/",    "someuser",    "someprof"}) {
    const std::size_t at = lower.find(word);
    if (at == std::string::npos || (at > 0 && is_word(lower[at - 1]))) continue;
    std::size_t end = at;
    while (end < text.size() &&
           (is_word(text[end]) || text[end] == '_' || text[end] == '-' || text[end] == '/'))
      ++end;
    return std::string(text.substr(at, end - at));
  }
  return std::nullopt;
}

// "todo:ROOT", "CHANGEME": a value that says itself that it is none.
std::optional<std::string> to_do(std::string_view text) {
  const std::string lower = to_lower(text);
  const bool is_left = lower.ends_with("tofill") || lower.ends_with("to_fill") ||
                       lower.ends_with("fill_me") || lower == "todo" || lower.starts_with("todo:") ||
                       lower.starts_with("todo_") || lower.starts_with("changeme") ||
                       lower.starts_with("change_me") || lower.starts_with("replace_") ||
                       lower.starts_with("fixme") || lower.starts_with("fill_in") ||
                       lower.starts_with("insert_") || lower == "tbd" || lower.starts_with("placeholder");
  return is_left ? std::optional(std::string(text)) : std::nullopt;
}

// "/scratch/NETID/DIRECTORY": a folder by the name of what it should be called.
std::optional<std::string> named_for_its_kind(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  for (std::string_view part : split(path.substr(1), '/')) {
    if (is_one_of(part, {"NETID", "USERNAME", "USER_NAME", "DIRECTORY", "PROJECT_NAME", "GROUP_NAME", "MYDIR",
                         "username", "user_name", "yourusername"}))
      return std::string(part);
  }
  return std::nullopt;
}

// "path_to_checkpoint.ckpt", "/path-to-output/log": a file or folder; an option or a variable may be called
// so.
std::optional<std::string> path_to(std::string_view text) {
  for (std::string_view part : split(text, '/')) {
    const std::string name = to_lower(part);
    const bool is_left = (name.starts_with("path_to_") || name.starts_with("path-to-")) &&
                         !name.ends_with(".py") && !name.ends_with(".sh");
    if (is_left) return std::string(part);
  }
  return std::nullopt;
}

// "{account}": what a program that writes scripts would have filled in. "${NAME}" is another rule's.
std::optional<std::string> in_braces(std::string_view text) {
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

// "gpu:kepler:N": a letter where a count should be.
bool has_letter_count(const Script& script, const Directive& directive) {
  const auto gpus = script.request.gpus();
  return std::any_of(gpus.begin(), gpus.end(), [&](const GpuRequest& request) {
    const std::string& count =
        request.count == "1" && directive.option.name == "--gres" ? request.type : request.count;
    return request.directive == &directive && (count == "N" || count == "n" || count == "X" || count == "x");
  });
}

bool is_for_people(std::string_view name) {
  return name == "--job-name" || name == "--comment" || name == "--mail-user" || name == "--mail-type";
}

// '<TOKEN>' and !COMMAND as a whole word.
std::optional<std::string> whole_name(std::string_view text) {
  const bool is_angle = text.size() > 3 && text.starts_with('<') && text.ends_with('>');
  const bool is_mark = text.size() > 3 && text.starts_with('!');
  if (!is_angle && !is_mark) return std::nullopt;
  const std::string_view name = text.substr(1, text.size() - (is_angle ? 2 : 1));
  const bool is_name =
      std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
  return is_name ? std::optional(std::string(text)) : std::nullopt;
}

// "@HDF5_BINARY_DIR@" of a form that a program fills in.
std::optional<std::string> between_ats(std::string_view text) {
  const std::size_t open = text.find('@');
  const std::size_t close = open == std::string_view::npos ? open : text.find('@', open + 1);
  if (close == std::string_view::npos || close < open + 4) return std::nullopt;
  const std::string_view name = text.substr(open + 1, close - open - 1);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  });
  return is_name ? std::optional(std::string(text.substr(open, close - open + 1))) : std::nullopt;
}

void find_in_directives(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    std::optional<std::string> found = placeholder_in(value);
    if (!found) found = in_braces(value);
    if (!found) found = left_in_directive(directive);
    if (!found && has_letter_count(script, directive)) found = value;
    if (!found) continue;
    ScriptFinding& finding =
        report.add(directive.value,
                   report.say("{}: '{}' is left to be filled in", directive.option.typed, printable(*found)));
    if (is_for_people(directive.option.name)) finding.level = Level::advice;
  }
}

// "#SBATCH ...", which sbatch refuses.
void find_dots(const Script& script, Report& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::string_view text = script.at(comment.span);
    if (comment.span.begin >= script.first_command || !text.starts_with("#SBATCH") ||
        trim(text.substr(7)) != "...")
      continue;
    report.add(comment.span,
               report.say("'...' is left to be filled in, and sbatch of 19.05 and later refuses it"));
  }
}

// Singularity and the like, which bring their own Python.
bool is_container(std::string_view program) {
  return is_one_of(program, {"singularity", "apptainer", "docker", "podman", "shifter", "enroot", "sarus"});
}

// All of the script's work runs in containers, so that an environment that is not there loses nothing.
bool works_in_containers(const Script& script) {
  bool has_work = false;
  for (const Call& call : script.calls) {
    if (!is_work(call) || is_launcher(call.program)) continue;
    const bool is_inside = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& other) {
      return is_container(other.program) && other.span.begin <= call.span.begin &&
             call.span.end <= other.span.end;
    });
    if (!is_inside) return false;
    has_work = true;
  }
  return has_work;
}

bool activates_environment(const Call& call) {
  return is_one_of(call.program, {"conda", "mamba", "micromamba"}) && !call.words.empty() &&
         call.words[0] == "activate";
}

void find_in_commands(const Script& script, Report& report) {
  std::set<std::size_t> lines;  // one finding for each
  for (const Call& call : script.calls) {
    // Words behind srun are those of srun, unless another shell reads them.
    const Call* launcher = script.launcher_of(call);
    if (call.program == "echo" || call.program == "printf" || call.program == "mktemp" ||
        (launcher != nullptr && launcher->command == call.command))
      continue;
    std::vector<const bash::Word*> words = {call.program_word};
    words.insert(words.end(), call.typed.begin(), call.typed.end());
    for (const bash::Word* word : words) {
      const std::string text = flat(*word, script.text);
      const bool is_option = text.find('=') != std::string::npos && text.starts_with("s/");  // of sed
      const bool is_dots = text == "..." || text.ends_with("/...");
      std::optional<std::string> found = is_dots ? std::optional(text) : crosses(text);
      if (!found && text == "XX") found = text;
      if (!found) found = yours(text);
      if (!found) found = path_to(text);
      if (!found) found = named_for_its_kind(text);
      if (!found) found = between_ats(text);
      if (!found) found = whole_name(text);
      if (!found || is_option || !lines.insert(script.line_of(word->span.begin).begin).second) continue;
      ScriptFinding& finding =
          report.add(word->span, report.say("'{}' is left to be filled in", printable(*found)));
      if (activates_environment(call) && works_in_containers(script)) finding.level = Level::advice;
    }
  }
}

// "/proj/<mydir>/data" without quotes: for the shell a file to read from and one to write to.
void find_angles_of(const bash::Command& command, const Script& script, Report& report) {
  for (std::size_t i = 1; i < command.redirections.size(); ++i) {
    const bash::Redirection& open = command.redirections[i - 1];
    const bash::Redirection& close = command.redirections[i];
    const bool is_name = open.operation == "<" && close.operation == ">" &&
                         open.span.end == close.span.begin && open.target.span.begin == open.span.begin + 1 &&
                         open.descriptor.empty() && close.descriptor.empty() && bash::literal(open.target);
    if (!is_name) continue;
    report.add(open.span, report.say("'{}>' is left to be filled in: the shell looks for a file of that name",
                                     printable(script.at(open.span))));
    return;
  }
}

// "cd <path to the data>/": a file to read from, words, and one to write to at the end of the last of them.
void find_wide_angles(const bash::Command& command, const Script& script, Report& report) {
  if (command.redirections.size() != 2) return;
  const bash::Redirection& open = command.redirections[0];
  const bash::Redirection& close = command.redirections[1];
  const bool is_glued = open.operation == "<" && close.operation == ">" && open.descriptor.empty() &&
                        close.descriptor.empty() && open.target.span.begin == open.span.begin + 1 &&
                        close.span.begin > open.span.end;
  if (!is_glued || !bash::literal(open.target)) return;
  const bool ends_a_word =
      std::any_of(command.words.begin(), command.words.end(), [&](const bash::Word& word) {
        return word.span.end == close.span.begin && word.span.begin > open.span.end;
      });
  if (!ends_a_word || !script.at(close.target.span).starts_with('/') ||
      script.at(close.target.span).starts_with("/dev/"))
    return;
  report.add(open.span, report.say("'{}>' is left to be filled in: the shell looks for a file of that name",
                                   printable(script.at({open.span.begin, close.span.begin}))));
}

void find_angles(const bash::List& list, const Script& script, Report& report) {
  for (const bash::Item& item : list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
      find_angles_of(command, script, report);
      find_wide_angles(command, script, report);
      for (const bash::List& part : command.parts) find_angles(part, script, report);
    }
  }
}

// "#", "#.txt", "#/set" where a name was taken out; a colour is one.
bool is_hash(std::string_view value) {
  return value == "#" || value.starts_with("#.") || value.starts_with("#/");
}

// "your_key", "/data/YOUR_NAME/set": all of a name, not a part of one.
bool is_yours(std::string_view value) {
  if (value.find(' ') != std::string_view::npos || value.find('$') != std::string_view::npos) return false;
  const auto found = yours(value);
  const std::string lower = to_lower(value);
  return found && (lower.starts_with("your") || lower.find("/your") != std::string::npos);
}

bool is_used(const Script& script, const std::string& name) {
  return script.text.find("$" + name) != std::string::npos ||
         script.text.find("${" + name) != std::string::npos;
}

// TOKEN="<Your token>", DATA=/path/to/data, ROOT="todo:ROOT"
void find_in_settings(const Script& script, Report& report) {
  for (const Setting& setting : script.settings) {
    const std::string& value = setting.value;
    const auto crossed = crosses(value);
    const bool is_secret =
        setting.is_exported && (setting.name.ends_with("_KEY") || setting.name.ends_with("_TOKEN"));
    const bool is_left = value.starts_with("/path/to/") || value.starts_with("path/to/") || to_do(value) ||
                         is_yours(value) || (crossed && *crossed == value) || is_hash(value);
    if (is_left && (is_used(script, setting.name) || is_secret) && !setting.context.is_condition &&
        setting.context.function.empty()) {
      report.add(setting.assignment->value.span,
                 report.say("'{}' is left to be filled in", printable(value)));
      continue;
    }
    const auto name = angle_name(value);
    const bool is_for_you =
        to_lower(value).find("your") != std::string::npos || value.find(' ') != std::string::npos;
    if (!name || name->size() != value.size() || !is_for_you) continue;
    report.add(setting.assignment->value.span, report.say("'{}' is left to be filled in", printable(value)));
  }
}

void find_placeholder(const Script& script, Report& report) {
  find_in_settings(script, report);
  find_angles(script.tree.list, script, report);
  find_in_directives(script, report);
  find_dots(script, report);
  find_in_commands(script, report);
}

constexpr Rule kRules[] = {
    {"placeholder", Level::job, "what a guide leaves to be filled in is no account, path or count",
     "#!/bin/bash\n#SBATCH --qos=<qos_name>\n", "#!/bin/bash\n#SBATCH --qos=long\n",
     "courses' and users' notes", find_placeholder},
};

}  // namespace

std::optional<std::string> placeholder_in(std::string_view value) {
  if (value == "...") return std::string(value);
  if (auto found = angle_name(value)) return found;
  if (auto found = crosses(value)) return found;
  if (auto found = path_to(value)) return found;
  if (auto found = to_do(value)) return found;
  return yours(value);
}

std::span<const Rule> placeholder_rules() { return kRules; }

}  // namespace stoker::explain
