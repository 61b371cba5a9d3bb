// Rules for habits that work but cost time, hide output or make a run irreproducible.
#include <algorithm>
#include <array>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::size_t kLongestName = 256;

void find_buffered(const Script& script, FindingReport& report) {
  if (script.mentions("PYTHONUNBUFFERED") || script.request.directives.empty()) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_script =
        is_python(call.program) && is_work(call) && !call.context.is_substituted && !call.context.is_remote;
    const bool is_plain = std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
      return word.starts_with("-") && !word.starts_with("--") && word.find('u') != std::string::npos;
    });
    if (!is_script || is_plain || call.option("-m")) continue;
    const std::size_t at = call.program_word->span.end;
    report.replace(
        {at, at},
        message("Python buffers its output: the log lags behind, and its end is lost if the job is killed"),
        " -u");
    return;
  }
}

void find_conda_hook(const Script& script, FindingReport& report) {
  for (const char* hook : {"conda.sh", "shell.bash", "conda shell", "mamba shell", "shell hook", "bashrc",
                           "bash_profile", ".profile", "etc/profile"}) {
    if (script.mentions(hook)) return;
  }
  const std::string_view first = std::string_view(script.text).substr(0, script.text.find('\n'));
  if (first.find(" -l") != std::string_view::npos || first.find(" -i") != std::string_view::npos ||
      first.find("--login") != std::string_view::npos)
    return;
  bool has_module = false;
  for (const ProgramCall& call : script.calls) {
    has_module = has_module || (call.program == "module" || call.program == "ml");
    const bool activates =
        (call.program == "conda" || call.program == "mamba" || call.program == "micromamba") &&
        !call.words.empty() && call.words[0] == "activate";
    if (!activates) continue;
    const bool starts_line =
        script.text.find_first_not_of(" \t", script.line_of(call.span.begin).begin) == call.span.begin;
    if (!starts_line) continue;
    ScriptFinding& finding = report.insert_line(
        call.span,
        message("{} activate needs the hook of an interactive shell, which a batch script does not load",
                call.program),
        format("eval \"$({} shell.bash hook)\"", call.program == "micromamba" ? "conda" : call.program));
    if (has_module) finding.level = Level::advice;  // a module may provide it
    return;
  }
}

bool yields_path(std::string_view value) {
  constexpr std::array<std::string_view, 7> kPrograms = {"find ",     "ls ",       "pwd",      "dirname ",
                                                         "realpath ", "readlink ", "basename "};
  if (!value.starts_with("$(") && !value.starts_with('`')) return false;
  return std::any_of(kPrograms.begin(), kPrograms.end(), [&](std::string_view program) {
    return value.substr(value.front() == '`' ? 1 : 2).starts_with(program);
  });
}

// Whether the value may contain unexpected blanks.
bool may_have_spaces(const Script& script, const bash::WordPiece& piece) {
  if (piece.text == "@" || piece.text == "*") return true;
  if (piece.text.size() == 1 && piece.text[0] >= '1' && piece.text[0] <= '9') return true;
  const auto known = script.variables.find(piece.text);
  return known != script.variables.end() && yields_path(known->second);
}

void find_unquoted(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (call.program == "echo" || call.program == "printf" || call.program == "export" ||
        call.program == "shift")
      continue;
    for (const bash::Word* word : call.typed) {
      const bool is_bare = std::none_of(word->pieces.begin(), word->pieces.end(),
                                        [](const bash::WordPiece& piece) { return piece.is_quoted; });
      for (const bash::WordPiece& piece : word->pieces) {
        const bool is_risky = piece.kind == bash::PieceKind::variable && !piece.is_quoted &&
                              piece.operation.empty() && may_have_spaces(script, piece);
        if (!is_risky) continue;
        const Message text = message("${} without quotes is split at blanks", piece.text);
        if (is_bare) {
          report.replace(word->span, text, "\"" + std::string(script.at(word->span)) + "\"");
        } else {
          report.add(piece.span, text);
        }
        return;
      }
    }
  }
}

void find_shared_environment(const Script& script, FindingReport& report) {
  const job::Site* site = report.context().site;
  const bool has_disk =
      script.mentions("SLURM_TMPDIR") || (site != nullptr && site->storage.contains("local") &&
                                          site->storage.at("local").path == "$SLURM_TMPDIR");
  if (!has_disk) return;
  for (const ProgramCall& call : script.calls) {
    const bool sources = (call.program == "source" || call.program == ".") && !call.words.empty() &&
                         call.words[0].ends_with("/bin/activate");
    if (!sources || is_local_path(call.words[0]) || call.context.launcher) continue;
    report
        .add(call.span, message("a virtual environment on shared storage: every import reads thousands of "
                                "small files over the "
                                "network"))
        .fix =
        "virtualenv --no-download $SLURM_TMPDIR/env && source $SLURM_TMPDIR/env/bin/activate && pip install "
        "--no-index -r requirements.txt";
    return;
  }
}

void find_window(const Script& script, FindingReport& report) {
  if (script.mentions("xvfb") || script.mentions("MPLBACKEND")) return;
  for (const bash::Heredoc& heredoc : script.tree.heredocs) {
    const std::size_t at = script.at(heredoc.body).find("plt.show(");
    if (at == std::string_view::npos) continue;
    report
        .add({heredoc.body.begin + at, heredoc.body.begin + at + 8},
             message("plt.show() needs a display, which a batch job does not have"))
        .fix = "plt.savefig(\"figure.png\")";
  }
  for (const VariableSetting& setting : script.settings) {
    if (setting.name != "DISPLAY" || setting.value.empty()) continue;
    report.add(setting.assignment->span, message("DISPLAY needs a screen, which a batch job does not have"))
        .fix = "export MPLBACKEND=Agg";
  }
  for (const ProgramCall& call : script.calls) {
    if (call.program == "srun" && call.has("--x11"))
      report.add(call.span, message("--x11 needs a terminal, which a batch job does not have"));
  }
}

bool is_random(const bash::Word& word) {
  return std::any_of(word.pieces.begin(), word.pieces.end(), [](const bash::WordPiece& piece) {
    return piece.kind == bash::PieceKind::variable && piece.text == "RANDOM";
  });
}

// Texts after "echo $", in lower case.
PrefixSet echoed(const Script& script) {
  std::vector<std::string_view> names;
  const std::string_view lower = script.lower;
  for (const std::string_view sign : {"echo $", "echo \"$"}) {
    for (std::size_t at = lower.find(sign); at != std::string_view::npos; at = lower.find(sign, at + 1))
      names.push_back(lower.substr(at + sign.size(), kLongestName));
  }
  return PrefixSet(std::move(names));
}

void find_unseeded(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    for (std::size_t i = 0; i < call.typed.size(); ++i) {
      const bool is_seed = to_lower(call.words[i]).find("seed") != std::string::npos ||
                           (i > 0 && to_lower(call.words[i - 1]).ends_with("seed"));
      if (is_seed && is_random(*call.typed[i]))
        report
            .add(call.typed[i]->span,
                 message("a random seed that is not logged: this run cannot be reproduced"))
            .fix = "seed=${SLURM_ARRAY_TASK_ID:-1}";
    }
  }
  const PrefixSet reported = echoed(script);
  for (const VariableSetting& setting : script.settings) {
    const std::string name = to_lower(setting.name);
    if (name.ends_with("seed") && is_random(setting.assignment->value) && !reported.has_prefix(name))
      report
          .add(setting.assignment->span,
               message("a random seed that is not logged: this run cannot be reproduced"))
          .fix = format("{}=${{SLURM_ARRAY_TASK_ID:-1}}", setting.name);
  }
}

constexpr Rule kHabitRules[] = {
    {"python-buffered", Level::advice,
     "Python writes to a file in large blocks; a killed job loses the last ones",
     "#!/bin/bash\n#SBATCH -n 1\npython train.py\n", "#!/bin/bash\n#SBATCH -n 1\npython -u train.py\n",
     "python(1), -u", find_buffered},
    {"conda-hook", Level::time,
     "without its hook conda activate fails, and the script continues with a different Python",
     "#!/bin/bash\nconda activate ml\n",
     "#!/bin/bash\neval \"$(conda shell.bash hook)\"\nconda activate ml\n",
     "conda: \"Run 'conda init' before 'conda activate'\"", find_conda_hook},
    {"unquoted", Level::advice, "the shell splits unquoted text at blanks",
     "#!/bin/bash\npython -u a.py $1\n", "#!/bin/bash\npython -u a.py \"$1\"\n", "shellcheck SC2086",
     find_unquoted},
    {"environment-on-shared", Level::time, "shared storage is slow with thousands of small files",
     "#!/bin/bash\nsource ~/env/bin/activate\ntar xf a.tar -C $SLURM_TMPDIR\n",
     "#!/bin/bash\nsource $SLURM_TMPDIR/env/bin/activate\ntar xf a.tar -C $SLURM_TMPDIR\n",
     "a site's machine-learning tutorial", find_shared_environment},
    {"window", Level::time, "a batch job has no display", "#!/bin/bash\nexport DISPLAY=:0\n",
     "#!/bin/bash\nexport MPLBACKEND=Agg\n", "matplotlib's guide to backends", find_window},
    {"unseeded", Level::advice, "a run without a logged seed cannot be reproduced",
     "#!/bin/bash\n./a --seed $RANDOM\n", "#!/bin/bash\n./a --seed 7\n", "reproducibility check-lists",
     find_unseeded},
};

}  // namespace

std::span<const Rule> habit_rules() { return kHabitRules; }

}  // namespace stoker::script_lint
