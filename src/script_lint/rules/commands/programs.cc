// Rules for programs that do nothing or something else because of their arguments.
#include <algorithm>
#include <cctype>

#include "bash/parser.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/interactive.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "R model.R": R ignores the file and reads commands from its input.
void find_r_without_batch(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.program != "R" || call.words.empty() || call.words[0] == "CMD" || call.pipeline_index > 0 ||
        call.context.is_remote)
      continue;
    const bool reads = std::any_of(call.command->redirections.begin(), call.command->redirections.end(),
                                   [](const bash::Redirection& each) { return each.operation[0] == '<'; });
    const bool has_option = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word == "-f" || word.starts_with("--file") || word == "-e" || word == "--args";
    });
    const auto file = std::find_if(call.words.begin(), call.words.end(), [](const std::string& word) {
      return !word.starts_with('-') && (word.ends_with(".R") || word.ends_with(".r"));
    });
    if (reads || has_option || file == call.words.end()) continue;
    report.replace(call.program_word->span,
                   message("R ignores the file {} and runs nothing", printable(*file)), "Rscript");
  }
}

// Index of Python's script or module; later words belong to the program.
std::optional<std::size_t> first_own_word(const ProgramCall& call) {
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    if (call.words[i] == "-W" || call.words[i] == "-X") {
      ++i;
    } else if (call.words[i] == "-m" || !call.words[i].starts_with('-')) {
      return i;
    } else if (call.words[i].starts_with("-c")) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// "torchrun python train.py": a file "python"; "torchrun train.py --nproc_per_node=4": an argument of
// train.py.
void find_agent_arguments(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool is_torchrun = call.program == "torchrun";
    if ((!is_torchrun && call.program != "accelerate" && call.program != "deepspeed") ||
        call.context.is_remote || call.has("--no-python") || call.has("--no_python"))
      continue;
    bool is_behind = false;
    for (std::size_t i = 0; i < call.typed.size(); ++i) {
      const std::string& word = call.words[i];
      if (!is_behind && is_python(word) && i + 1 < call.words.size() &&
          (call.words[i + 1].ends_with(".py") || call.words[i + 1] == "-u" || call.words[i + 1] == "-m")) {
        report.replace({call.typed[i]->span.begin, call.typed[i + 1]->span.begin},
                       message("{} starts Python itself and finds no file {}", call.program, word), "");
        break;
      }
      is_behind = is_behind || word.ends_with(".py");
      if (!is_torchrun || !is_behind ||
          (!word.starts_with("--nproc_per_node") && !word.starts_with("--nproc-per-node")))
        continue;
      report.add(call.typed[i]->span,
                 message("after the program {} is an argument of the program, and torchrun starts one rank",
                         word.substr(0, word.find('='))));
      break;
    }
  }
}

// "python -m train.py", "python python train.py", "python 'train.py --epochs 3'".
void find_python_arguments(const Script& script, FindingReport& report) {
  find_agent_arguments(script, report);
  for (const ProgramCall& call : script.calls) {
    if (!is_python(call.program) || call.context.is_remote) continue;
    const auto first = first_own_word(call);
    if (!first) continue;
    const std::string& word = call.words[*first];
    const bash::Word& typed = *call.typed[*first];
    if (word == "-m" && *first + 1 < call.words.size() && call.words[*first + 1].ends_with(".py")) {
      report.replace(
          {typed.span.begin, call.typed[*first + 1]->span.begin},
          message("-m needs a module name: Python finds no module {}", printable(call.words[*first + 1])),
          "");
    } else if (word.ends_with(".ipynb")) {
      report.replace(typed.span,
                     message("{} is a notebook in JSON, which Python cannot run", printable(word)),
                     word.substr(0, word.size() - 6) + ".py");
    } else if (is_python(word) && call.words.size() > *first + 1) {
      report.replace({typed.span.begin, call.typed[*first + 1]->span.begin},
                     message("{} is repeated: Python finds no file {}", call.program, word), "");
    } else if (word.find(".py ") != std::string::npos && typed.pieces.size() == 1 &&
               typed.pieces[0].is_quoted && typed.pieces[0].kind == bash::PieceKind::literal) {
      report.replace(typed.span,
                     message("the quotes make it one name: Python finds no file '{}'", printable(word)),
                     word);
    }
  }
}

constexpr std::string_view kFirstWords[] = {
    "python", "python3", "srun",   "mpirun",     "mpiexec", "bash",      "sh",   "java", "torchrun",
    "julia",  "Rscript", "matlab", "accelerate", "conda",   "deepspeed", "echo", "cd",   "module"};

// srun "python train.py", and "$COMMAND" behind COMMAND="python train.py".
void find_quoted_command(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const std::vector<bash::WordPiece>& pieces = call.program_word->pieces;
    const bool is_quoted =
        !pieces.empty() && std::all_of(pieces.begin(), pieces.end(), [](const bash::WordPiece& piece) {
          return piece.operation.empty() &&
                 (piece.is_quoted || (piece.kind == bash::PieceKind::literal && piece.text.empty()));
        });
    if (call.context.is_remote || !is_quoted) continue;
    const std::string text = resolved_text(*call.program_word, script);
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos || !is_one_of(std::string_view(text).substr(0, blank), kFirstWords))
      continue;
    const std::string_view typed = script.at(call.program_word->span);
    ScriptFinding& finding = report.replace(
        call.program_word->span,
        message("the quotes make it one program name, and '{}' does not exist", printable(text)),
        std::string(typed.size() > 2 ? typed.substr(1, typed.size() - 2) : typed));
    if (only_prints(call)) finding.level = Level::time;
  }
}

// "venv/bin/activate" and "bash venv/bin/activate": the settings end with that shell, or it is not
// executable.
void find_not_sourced(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.context.is_remote || call.context.is_substituted) continue;
    const bool is_itself = script.at(call.program_word->span).ends_with("/bin/activate");
    const bool is_started = (call.program == "bash" || call.program == "sh") && !call.words.empty() &&
                            call.words[0].ends_with("/bin/activate");
    // After "conda run" and similar commands it is their argument.
    if ((!is_itself && !is_started) || call.program_word != &call.command->words[0]) continue;
    const bool is_needed =
        std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& other) {
          return other.span.begin > call.span.end && !other.context.is_substituted &&
                 is_python(script.at(other.program_word->span));
        });
    if (!is_needed) continue;
    const bash::Span at{call.program_word->span.begin,
                        is_itself ? call.program_word->span.begin : call.typed[0]->span.begin};
    report.replace(at, message("without source it has no effect here, and python stays the old one"),
                   "source ");
  }
}

// "-it" of docker run, in any order.
bool wants_terminal(const ProgramCall& call) {
  bool has_input = false;
  bool has_terminal = false;
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    const std::string& word = call.words[i];
    const bool is_letters = word.size() > 1 && word[0] == '-' && word[1] != '-' && word.size() <= 4 &&
                            word.find_first_not_of("itd", 1) == std::string::npos;
    if (is_letters && word.find('d') != std::string::npos) return false;
    has_input = has_input || word == "--interactive" || (is_letters && word.find('i') != std::string::npos);
    has_terminal = has_terminal || word == "--tty" || (is_letters && word.find('t') != std::string::npos);
    if (is_one_of(word, {"bash", "sh", "python", "python3"})) break;
  }
  return has_input && has_terminal;
}

void find_terminal(const Script& script, FindingReport& report) {
  find_open_shells(script, report);
  if (script.request.directives.empty()) return;
  for (const ProgramCall& call : script.calls) {
    const bool runs = call.program == "docker" && !call.words.empty() &&
                      (call.words[0] == "run" || call.words[0] == "exec");
    if (!runs || !wants_terminal(call) || call.context.is_remote) continue;
    report
        .add(call.span,
             message("-it needs a terminal, which a batch job does not have: docker starts nothing"))
        .fix = message("docker {} without -it", call.words[0]);
  }
}

// "export PATH=/opt/tool/bin": removes the system programs.
void find_lost_path(const Script& script, FindingReport& report) {
  for (const VariableSetting& setting : script.settings) {
    const std::string_view typed = script.at(setting.assignment->value.span);
    const bool is_whole = typed.find_first_of("$`") == std::string_view::npos && !typed.empty() &&
                          typed.find("/usr/bin") == std::string_view::npos && typed.find("/bin:") != 0 &&
                          typed.find(":/bin") == std::string_view::npos;
    if (setting.name != "PATH" || setting.is_command_scoped || setting.assignment->appends || !is_whole ||
        !setting.context.function.empty() || setting.context.is_subshell || setting.context.launcher)
      continue;
    const auto lost = std::find_if(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
      return call.span.begin > setting.assignment->span.end &&
             is_one_of(script.at(call.program_word->span),
                       {"srun", "mkdir", "cp", "mv", "tar", "rsync", "sed", "awk", "ls", "cat", "seq", "rm"});
    });
    if (lost == script.calls.end()) continue;
    report.replace(
        setting.assignment->value.span,
        message("PATH has only this folder: {} and all system programs are not found", lost->program),
        format("{}:$PATH", typed));
  }
}

// "/scratch/me/": a path with a trailing slash is a folder.
void find_folder_as_program(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    if (call.context.is_remote || call.context.is_condition || !typed.ends_with('/') || typed.size() < 2)
      continue;
    report.add(call.program_word->span, message("{} is a folder, not a program", printable(typed))).fix =
        format("cd {}", typed);
  }
}

constexpr Rule kProgramRules[] = {
    {"r-without-batch", Level::job, "R runs a file with Rscript, R -f or R CMD BATCH, not by its name alone",
     "#!/bin/bash\n#SBATCH -n 1\nR model.R\n", "#!/bin/bash\n#SBATCH -n 1\nRscript model.R\n",
     "R: \"ARGUMENT 'model.R' __ignored__\"", find_r_without_batch},
    {"python-arguments", Level::job,
     "Python's first argument is its file, and the argument of -m is a module",
     "#!/bin/bash\n#SBATCH -n 1\npython -u -m train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "python: \"Error while finding module specification for 'train.py'\"", find_python_arguments},
    {"quoted-command", Level::job, "text in one pair of quotes is one word, and the name of one program",
     "#!/bin/bash\n#SBATCH -n 1\nsrun \"python -u train.py\"\n",
     "#!/bin/bash\n#SBATCH -n 1\nsrun python -u train.py\n",
     "slurmstepd: \"execve(): python -u train.py: No such file or directory\"", find_quoted_command},
    {"not-sourced", Level::job, "an environment is active only in the shell that sources it",
     "#!/bin/bash\n#SBATCH -n 1\nbash venv/bin/activate\npython -u train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\nsource venv/bin/activate\npython -u train.py\n", "students' scripts",
     find_not_sourced},
    {"no-terminal", Level::job, "a batch job has no terminal",
     "#!/bin/bash\n#SBATCH -n 1\ndocker run -it image ./run\n",
     "#!/bin/bash\n#SBATCH -n 1\ndocker run image ./run\n", "docker: \"the input device is not a TTY\"",
     find_terminal},
    {"lost-path", Level::job, "a new PATH without $PATH hides all system programs",
     "#!/bin/bash\n#SBATCH -n 1\nexport PATH=/opt/tool/bin\nsrun ./run\n",
     "#!/bin/bash\n#SBATCH -n 1\nexport PATH=/opt/tool/bin:$PATH\nsrun ./run\n",
     "bash: \"command not found\"", find_lost_path},
    {"folder-as-program", Level::job, "a folder cannot run: its program name is missing",
     "#!/bin/bash\n#SBATCH -n 1\n/data/me/bin/\n", "#!/bin/bash\n#SBATCH -n 1\n/data/me/bin/run\n",
     "bash: \"Is a directory\"", find_folder_as_program},
};

}  // namespace

std::span<const Rule> program_rules() { return kProgramRules; }

}  // namespace stoker::script_lint
