// A rule for programs that get a file in the wrong language.
#include <algorithm>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

struct Interpreter {
  std::string_view ending;
  std::string_view program;  ///< interpreter of such files
};

constexpr Interpreter kInterpreters[] = {
    {".py", "python"}, {".sh", "bash"}, {".R", "Rscript"}, {".jl", "julia"}};

std::string_view interpreter_for(std::string_view file) {
  for (const Interpreter& interpreter : kInterpreters) {
    if (file.ends_with(interpreter.ending)) return interpreter.program;
  }
  return "";
}

// The language of an interpreter; "" for other programs.
std::string_view language_of(const ProgramCall& call) {
  if (is_python(call.program)) return "python";
  if (is_one_of(call.program, {"bash", "sh", "source", "."})) return "bash";
  return is_one_of(call.program, {"Rscript", "julia"}) ? std::string_view(call.program) : "";
}

// "bash train.py", "python run.sh", "source train.py".
bool report_other_language(const ProgramCall& call, FindingReport& report) {
  const std::string_view language = language_of(call);
  if (language.empty() || call.words.empty() || call.words[0].starts_with('-')) return false;
  const std::string_view wanted = interpreter_for(call.words[0]);
  if (wanted.empty() || wanted == language) return false;
  report.replace(call.program_word->span,
                 message("{} cannot run {}: use {}", call.program, printable(call.words[0]), wanted),
                 std::string(wanted));
  return true;
}

// "java program.jar": java expects a class name.
bool report_jar(const ProgramCall& call, const Script& script, FindingReport& report) {
  if (call.program != "java") return false;
  const auto file = std::find_if(call.typed.begin(), call.typed.end(), [&](const bash::Word* word) {
    return !script.at(word->span).starts_with('-');
  });
  if (file == call.typed.end() || !script.at((*file)->span).ends_with(".jar")) return false;
  const bool has_option = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
    return word == "-jar" || word == "-cp" || word == "-classpath" || word == "--class-path" ||
           word == "-p" || word == "--module-path";
  });
  if (has_option) return false;
  report.replace({(*file)->span.begin, (*file)->span.begin},
                 message("without -jar java treats {} as a class name", script.at((*file)->span)), "-jar ");
  return true;
}

// "sbatch python train.py": sbatch expects a script.
bool report_submitted_program(const ProgramCall& call, const Script& script, FindingReport& report) {
  if (call.program != "sbatch" || call.has("--wrap")) return false;
  for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
    const std::string_view word = script.at(call.typed[i]->span);
    if (word.starts_with('-')) continue;
    if (!is_python(word) || interpreter_for(call.words[i + 1]) != "python") return false;
    report.add(call.typed[i]->span, message("sbatch needs a script, and looks for a file {}", word)).fix =
        format("sbatch --wrap=\"{}\"", script.at({call.typed[i]->span.begin, call.span.end}));
    return true;
  }
  return false;
}

void find_other_language(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.context.is_remote || call.program_word == nullptr) continue;
    if (report_other_language(call, report) || report_jar(call, script, report)) continue;
    report_submitted_program(call, script, report);
  }
}

constexpr Rule kLanguageRules[] = {
    {"other-language", Level::job,
     "bash cannot run Python, Python cannot run shell scripts, and sbatch needs a script",
     "#!/bin/bash\n#SBATCH -n 1\nbash train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "bash: \"import: command not found\"", find_other_language},
};

}  // namespace

std::span<const Rule> language_rules() { return kLanguageRules; }

}  // namespace stoker::script_lint
