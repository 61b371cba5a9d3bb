// Rules over programs that are called so that they do nothing, or something else.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "explain/bash/parser.h"
#include "explain/script/rule.h"
#include "explain/script/rules/commands/interactive.h"
#include "explain/script/rules/commands/uses.h"

namespace stoker::explain {
namespace {

// "R model.R": R takes it for no file to run, and reads what it runs from its input.
void find_r_without_batch(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    if (call.program != "R" || call.words.empty() || call.words[0] == "CMD" || call.place > 0 ||
        call.context.is_remote)
      continue;
    const bool reads = std::any_of(call.command->redirections.begin(), call.command->redirections.end(),
                                   [](const bash::Redirection& each) { return each.operation[0] == '<'; });
    const bool says = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word == "-f" || word.starts_with("--file") || word == "-e" || word == "--args";
    });
    const auto file = std::find_if(call.words.begin(), call.words.end(), [](const std::string& word) {
      return !word.starts_with('-') && (word.ends_with(".R") || word.ends_with(".r"));
    });
    if (reads || says || file == call.words.end()) continue;
    report.replace(call.program_word->span,
                   report.say("R takes no file so: {} is passed over, and nothing is run", printable(*file)),
                   "Rscript");
  }
}

// The words of Python up to its own file or module; what is behind them is the program's.
std::optional<std::size_t> first_own_word(const Call& call) {
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

// "torchrun python train.py": a file "python"; "torchrun train.py --nproc_per_node=4": a word of train.py.
void find_agent_arguments(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
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
                       report.say("{} starts Python itself, and finds no file {}", call.program, word), "");
        break;
      }
      is_behind = is_behind || word.ends_with(".py");
      if (!is_torchrun || !is_behind ||
          (!word.starts_with("--nproc_per_node") && !word.starts_with("--nproc-per-node")))
        continue;
      report.add(call.typed[i]->span,
                 report.say("behind the program {} is a word of its own, and torchrun starts "
                            "one rank",
                            word.substr(0, word.find('='))));
      break;
    }
  }
}

// "python -m train.py", "python python train.py", "python 'train.py --epochs 3'".
void find_python_arguments(const Script& script, Report& report) {
  find_agent_arguments(script, report);
  for (const Call& call : script.calls) {
    if (!is_python(call.program) || call.context.is_remote) continue;
    const auto first = first_own_word(call);
    if (!first) continue;
    const std::string& word = call.words[*first];
    const bash::Word& typed = *call.typed[*first];
    if (word == "-m" && *first + 1 < call.words.size() && call.words[*first + 1].ends_with(".py")) {
      report.replace({typed.span.begin, call.typed[*first + 1]->span.begin},
                     report.say("-m takes a module's name: Python finds no module {}",
                                printable(call.words[*first + 1])),
                     "");
    } else if (word.ends_with(".ipynb")) {
      report.replace(
          typed.span,
          report.say("{} is a notebook, a list of cells in JSON, and no program for Python", printable(word)),
          word.substr(0, word.size() - 6) + ".py");
    } else if (is_python(word) && call.words.size() > *first + 1) {
      report.replace({typed.span.begin, call.typed[*first + 1]->span.begin},
                     report.say("{} stands there twice: Python finds no file {}", call.program, word), "");
    } else if (word.find(".py ") != std::string::npos && typed.pieces.size() == 1 &&
               typed.pieces[0].is_quoted && typed.pieces[0].kind == bash::PieceKind::literal) {
      report.replace(
          typed.span,
          report.say("in quotes all of it is one name: Python finds no file '{}'", printable(word)), word);
    }
  }
}

constexpr std::string_view kFirstWords[] = {
    "python", "python3", "srun",   "mpirun",     "mpiexec", "bash",      "sh",   "java", "torchrun",
    "julia",  "Rscript", "matlab", "accelerate", "conda",   "deepspeed", "echo", "cd",   "module"};

// srun "python train.py", and "$COMMAND" behind COMMAND="python train.py".
void find_quoted_command(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const std::vector<bash::Piece>& pieces = call.program_word->pieces;
    const bool is_quoted =
        !pieces.empty() && std::all_of(pieces.begin(), pieces.end(), [](const bash::Piece& piece) {
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
        report.say("in quotes all of it is the name of one program, and there is none '{}'", printable(text)),
        std::string(typed.size() > 2 ? typed.substr(1, typed.size() - 2) : typed));
    if (only_speaks(call)) finding.level = Level::time;
  }
}

// "venv/bin/activate" and "bash venv/bin/activate": what it sets ends with its own shell, or it is no
// program.
void find_not_sourced(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    if (call.context.is_remote || call.context.is_substituted) continue;
    const bool is_itself = script.at(call.program_word->span).ends_with("/bin/activate");
    const bool is_started = (call.program == "bash" || call.program == "sh") && !call.words.empty() &&
                            call.words[0].ends_with("/bin/activate");
    // Behind "conda run" and the like it is a word of theirs.
    if ((!is_itself && !is_started) || call.program_word != &call.command->words[0]) continue;
    const bool is_needed = std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& other) {
      return other.span.begin > call.span.end && !other.context.is_substituted &&
             is_python(script.at(other.program_word->span));
    });
    if (!is_needed) continue;
    const bash::Span at{call.program_word->span.begin,
                        is_itself ? call.program_word->span.begin : call.typed[0]->span.begin};
    report.replace(at,
                   report.say("without source it changes nothing here, and Python is the old one behind it"),
                   "source ");
  }
}

// "-it" of docker run, in any order.
bool wants_terminal(const Call& call) {
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

void find_terminal(const Script& script, Report& report) {
  find_open_shells(script, report);
  if (script.request.directives.empty()) return;
  for (const Call& call : script.calls) {
    const bool runs = call.program == "docker" && !call.words.empty() &&
                      (call.words[0] == "run" || call.words[0] == "exec");
    if (!runs || !wants_terminal(call) || call.context.is_remote) continue;
    report
        .add(call.span,
             report.say("-it asks for a terminal, and a batch job has none: docker starts nothing"))
        .fix = report.say("docker {} without -it", call.words[0]);
  }
}

// "export PATH=/opt/tool/bin": the programs of the system are gone.
void find_lost_path(const Script& script, Report& report) {
  for (const Setting& setting : script.settings) {
    const std::string_view typed = script.at(setting.assignment->value.span);
    const bool is_whole = typed.find_first_of("$`") == std::string_view::npos && !typed.empty() &&
                          typed.find("/usr/bin") == std::string_view::npos && typed.find("/bin:") != 0 &&
                          typed.find(":/bin") == std::string_view::npos;
    if (setting.name != "PATH" || setting.is_of_command || setting.assignment->appends || !is_whole ||
        !setting.context.function.empty() || setting.context.is_subshell || setting.context.launcher)
      continue;
    const auto lost = std::find_if(script.calls.begin(), script.calls.end(), [&](const Call& call) {
      return call.span.begin > setting.assignment->span.end &&
             is_one_of(script.at(call.program_word->span),
                       {"srun", "mkdir", "cp", "mv", "tar", "rsync", "sed", "awk", "ls", "cat", "seq", "rm"});
    });
    if (lost == script.calls.end()) continue;
    report.replace(setting.assignment->value.span,
                   report.say("PATH holds this folder alone: {} and all programs of the system are not found",
                              lost->program),
                   format("{}:$PATH", typed));
  }
}

// "/scratch/me/": a path that ends so is a folder's.
void find_folder_as_program(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const std::string_view typed = script.at(call.program_word->span);
    if (call.context.is_remote || call.context.is_condition || !typed.ends_with('/') || typed.size() < 2)
      continue;
    report
        .add(call.program_word->span,
             report.say("{} is a folder, and the shell starts no program so", printable(typed)))
        .fix = format("cd {}", typed);
  }
}

constexpr Rule kProgramRules[] = {
    {"r-without-batch", Level::job, "R runs a file by Rscript, R -f or R CMD BATCH, not by its name alone",
     "#!/bin/bash\n#SBATCH -n 1\nR model.R\n", "#!/bin/bash\n#SBATCH -n 1\nRscript model.R\n",
     "R: \"ARGUMENT 'model.R' __ignored__\"", find_r_without_batch},
    {"python-arguments", Level::job,
     "Python takes the first word for its file, and the one behind -m for a module",
     "#!/bin/bash\n#SBATCH -n 1\npython -u -m train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "python: \"Error while finding module specification for 'train.py'\"", find_python_arguments},
    {"quoted-command", Level::job, "what stands in one pair of quotes is one word, and the name of a program",
     "#!/bin/bash\n#SBATCH -n 1\nsrun \"python -u train.py\"\n",
     "#!/bin/bash\n#SBATCH -n 1\nsrun python -u train.py\n",
     "slurmstepd: \"execve(): python -u train.py: No such file or directory\"", find_quoted_command},
    {"not-sourced", Level::job, "an environment is activated in the shell that sources it, and in no other",
     "#!/bin/bash\n#SBATCH -n 1\nbash venv/bin/activate\npython -u train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\nsource venv/bin/activate\npython -u train.py\n", "students' scripts",
     find_not_sourced},
    {"no-terminal", Level::job, "a batch job has no terminal",
     "#!/bin/bash\n#SBATCH -n 1\ndocker run -it image ./run\n",
     "#!/bin/bash\n#SBATCH -n 1\ndocker run image ./run\n", "docker: \"the input device is not a TTY\"",
     find_terminal},
    {"lost-path", Level::job, "without $PATH in it a new PATH hides all programs of the system",
     "#!/bin/bash\n#SBATCH -n 1\nexport PATH=/opt/tool/bin\nsrun ./run\n",
     "#!/bin/bash\n#SBATCH -n 1\nexport PATH=/opt/tool/bin:$PATH\nsrun ./run\n",
     "bash: \"command not found\"", find_lost_path},
    {"folder-as-program", Level::job,
     "a folder is no program, and where its program's name is missing nothing starts",
     "#!/bin/bash\n#SBATCH -n 1\n/data/me/bin/\n", "#!/bin/bash\n#SBATCH -n 1\n/data/me/bin/run\n",
     "bash: \"Is a directory\"", find_folder_as_program},
};

}  // namespace

std::span<const Rule> program_rules() { return kProgramRules; }

}  // namespace stoker::explain
