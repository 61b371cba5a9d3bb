// A rule over programs that are given a file of another language.
#include <algorithm>

#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

struct Reader {
  std::string_view ending;
  std::string_view program;  ///< that reads files of that ending
};

constexpr Reader kReadBy[] = {{".py", "python"}, {".sh", "bash"}, {".R", "Rscript"}, {".jl", "julia"}};

std::string_view reader_of(std::string_view file) {
  for (const Reader& reader : kReadBy) {
    if (file.ends_with(reader.ending)) return reader.program;
  }
  return "";
}

// What the program reads; "" for one that reads no files of these.
std::string_view language_of(const Call& call) {
  if (is_python(call.program)) return "python";
  if (is_one_of(call.program, {"bash", "sh", "source", "."})) return "bash";
  return is_one_of(call.program, {"Rscript", "julia"}) ? std::string_view(call.program) : "";
}

// "bash train.py", "python run.sh", "source train.py".
bool tell_other_language(const Call& call, Report& report) {
  const std::string_view language = language_of(call);
  if (language.empty() || call.words.empty() || call.words[0].starts_with('-')) return false;
  const std::string_view wanted = reader_of(call.words[0]);
  if (wanted.empty() || wanted == language) return false;
  report.replace(
      call.program_word->span,
      report.say("{} does not read {}: that is for {}", call.program, printable(call.words[0]), wanted),
      std::string(wanted));
  return true;
}

// "java program.jar": the name of a class.
bool tell_jar(const Call& call, const Script& script, Report& report) {
  if (call.program != "java") return false;
  const auto file = std::find_if(call.typed.begin(), call.typed.end(), [&](const bash::Word* word) {
    return !script.at(word->span).starts_with('-');
  });
  if (file == call.typed.end() || !script.at((*file)->span).ends_with(".jar")) return false;
  const bool says = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
    return word == "-jar" || word == "-cp" || word == "-classpath" || word == "--class-path" ||
           word == "-p" || word == "--module-path";
  });
  if (says) return false;
  report.replace({(*file)->span.begin, (*file)->span.begin},
                 report.say("without -jar java takes {} for the name of a class", script.at((*file)->span)),
                 "-jar ");
  return true;
}

// "sbatch python train.py": sbatch takes a script.
bool tell_submitted_program(const Call& call, const Script& script, Report& report) {
  if (call.program != "sbatch" || call.has("--wrap")) return false;
  for (std::size_t i = 0; i + 1 < call.typed.size(); ++i) {
    const std::string_view word = script.at(call.typed[i]->span);
    if (word.starts_with('-')) continue;
    if (!is_python(word) || reader_of(call.words[i + 1]) != "python") return false;
    report.add(call.typed[i]->span, report.say("sbatch takes a script, and looks for a file {}", word)).fix =
        format("sbatch --wrap=\"{}\"", script.at({call.typed[i]->span.begin, call.span.end}));
    return true;
  }
  return false;
}

void find_other_language(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    if (call.context.is_remote || call.program_word == nullptr) continue;
    if (tell_other_language(call, report) || tell_jar(call, script, report)) continue;
    tell_submitted_program(call, script, report);
  }
}

constexpr Rule kLanguageRules[] = {
    {"other-language", Level::job,
     "a shell does not read Python, nor Python a shell's lines, nor sbatch a program",
     "#!/bin/bash\n#SBATCH -n 1\nbash train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "bash: \"import: command not found\"", find_other_language},
};

}  // namespace

std::span<const Rule> language_rules() { return kLanguageRules; }

}  // namespace stoker::explain
