// A rule for Windows paths, whose backslashes the shell removes.
#include <algorithm>
#include <cctype>

#include "script_lint/rule.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

bool is_letter_at(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
}

// "C:\Users\me", "D:/data", in quotes or not.
bool has_drive(std::string_view typed) {
  if (!typed.empty() && (typed[0] == '"' || typed[0] == '\'')) typed.remove_prefix(1);
  return typed.size() > 3 && is_letter_at(typed, 0) && typed[1] == ':' &&
         (typed[2] == '\\' || typed[2] == '/') && typed[3] != '/';
}

// "src\train.py" without quotes: the shell removes the backslash.
bool has_backslashes(std::string_view typed) {
  const bool is_file = typed.ends_with(".py") || typed.ends_with(".sh") || typed.ends_with(".R") ||
                       typed.ends_with(".yaml") || typed.ends_with(".json") || typed.ends_with(".csv");
  const std::size_t at = typed.find('\\');
  return is_file && at != std::string_view::npos && at > 0 && is_letter_at(typed, at + 1) &&
         typed.find_first_of("'\"$*{[(") == std::string_view::npos;
}

// Programs that interpret backslashes themselves.
bool has_own_signs(const ProgramCall& call) {
  return is_one_of(call.program,
                   {"sed", "awk", "gawk", "grep", "egrep", "perl", "find", "tr", "jq", "git", "curl", "wget",
                    "docker", "singularity", "apptainer", "ffmpeg", "rclone", "scp", "rsync"});
}

std::string with_slashes(std::string_view typed) {
  std::string out(typed);
  std::replace(out.begin(), out.end(), '\\', '/');
  return out;
}

void find_windows_path(const Script& script, FindingReport& report) {
  if (!script.is_shell) return;
  for (const VariableSetting& setting : script.settings) {
    const bash::Span at = setting.assignment->value.span;
    if (setting.assignment->is_array || !has_drive(script.at(at)) || !script.names.is_read(setting.name))
      continue;
    report.add(at, message("{} is a Windows path, which exists on no node", printable(script.at(at))));
  }
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (only_prints(call) || call.program == "echo" || has_own_signs(call) || call.context.is_remote ||
        (launcher != nullptr && launcher->command == call.command))
      continue;
    for (const bash::Word* word : call.typed) {
      const std::string_view typed = script.at(word->span);
      if (has_drive(typed)) {
        report.add(word->span, message("{} is a Windows path, which exists on no node", printable(typed)));
      } else if (has_backslashes(typed)) {
        report.replace(
            word->span,
            message("{}: the shell removes the backslashes, and no such file exists", printable(typed)),
            with_slashes(typed));
      } else {
        continue;
      }
      break;
    }
  }
}

constexpr Rule kPathRules[] = {
    {"windows-path", Level::job, "Windows folders exist on no node, and the shell removes backslashes",
     "#!/bin/bash\n#SBATCH -n 1\npython -u src\\train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\npython -u src/train.py\n", "bash(1), quoting", find_windows_path},
};

}  // namespace

std::span<const Rule> path_rules() { return kPathRules; }

}  // namespace stoker::script_lint
