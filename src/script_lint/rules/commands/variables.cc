// Rules for variables that are empty when read: Slurm variables without their option, names that run into
// following letters, values that are set too late or in a different shell.
#include <algorithm>
#include <cctype>
#include <set>

#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "script_lint/rules/commands/variable_uses.h"
#include "slurm/script/requested_resources.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

struct SlurmVariable {
  std::string_view name;
  std::string_view option;  ///< the only option that sets it
};

// Output environment variables of sbatch(1), release 22.05.
constexpr SlurmVariable kOfOptions[] = {
    {"SLURM_CPUS_PER_TASK", "--cpus-per-task"}, {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
    {"SLURM_GPUS_PER_TASK", "--gpus-per-task"}, {"SLURM_GPUS", "--gpus"},
    {"SLURM_CPUS_PER_GPU", "--cpus-per-gpu"},   {"SLURM_NTASKS_PER_NODE", "--ntasks-per-node"}};

const SlurmVariable* option_variable(std::string_view name) {
  const auto found = std::find_if(std::begin(kOfOptions), std::end(kOfOptions),
                                  [&](const SlurmVariable& each) { return each.name == name; });
  return found == std::end(kOfOptions) ? nullptr : found;
}

bool is_asked_for(const Script& script, const SlurmVariable& variable) {
  return script.request.find(variable.option) != nullptr ||
         (variable.option == "--ntasks-per-node" && script.request.find("--tasks-per-node") != nullptr);
}

// Expects a count as an option value; without one it fails or consumes the next word.
bool needs_count(const ProgramCall& call) {
  return !only_prints(call) && !call.context.is_substituted &&
         !is_one_of(call.program,
                    {"make", "cmake", "ninja", "ulimit", "set", "exit", "local", "declare", "if"});
}

// Whether a program gets the value of the variable as an argument.
bool is_passed_to_program(const Script& script, std::string_view name) {
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    bool is_there = false;
    if (needs_count(call) && !call.context.is_condition)
      for_each_variable(call,
                        [&](const bash::WordPiece& piece) { is_there = is_there || piece.text == name; });
    return is_there;
  });
}

// Empty arguments: "torchrun --nproc_per_node=$SLURM_GPUS_PER_NODE" with --gres alone.
void find_unset_variable(const Script& script, FindingReport& report) {
  // A script with few options gets more on the command line of sbatch.
  const auto& directives = script.request.directives;
  const bool asks = std::any_of(directives.begin(), directives.end(), [](const Directive& each) {
    return is_one_of(each.option.name, {"--nodes", "--ntasks", "--mem", "--gres", "--gpus", "--cpus-per-task",
                                        "--ntasks-per-node", "--gpus-per-node", "--mem-per-cpu"});
  });
  if (!asks || !script.request.ignored.empty() || script.mentions("hetjob")) return;
  std::set<std::string> reported;
  const auto look = [&](const bash::WordPiece& piece) {
    const SlurmVariable* variable = option_variable(piece.text);
    if (variable == nullptr || is_asked_for(script, *variable) ||
        script.names.first_assignment(variable->name) != std::string::npos ||
        !reported.insert(piece.text).second)
      return;
    report
        .add(piece.span, message("${} is empty: Slurm sets it only with {}, which is missing", piece.text,
                                 variable->option))
        .fix = format("#SBATCH {}=1", variable->option);
  };
  for_each_exit_guard(script.tree.list, look);
  for (const VariableSetting& setting : script.settings) {
    const std::vector<bash::WordPiece>& pieces = setting.assignment->value.pieces;
    const bool is_it = pieces.size() == 1 && pieces[0].operation.empty() && !setting.is_command_scoped &&
                       !setting.context.is_condition && setting.context.function.empty();
    if (is_it && option_variable(pieces[0].text) != nullptr && is_passed_to_program(script, setting.name))
      look(pieces[0]);
  }
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    // Inside the quotes of bash -c the task's shell expands it.
    const bool is_inner = launcher != nullptr && launcher->command != call.command;
    const bool is_of_node =
        (launcher != nullptr || is_launcher(call.program)) && call.context.loops > 0;  // may not exist
    if (is_inner || is_of_node || call.context.is_remote || call.context.is_condition || !needs_count(call))
      continue;
    for_each_variable(call, look);
  }
}

// "sample" of "$sample_R1": the longest prefix with a value; "" without one.
std::string glued_name(const Script& script, std::string_view name) {
  for (std::size_t size = name.size() - 1; size >= 2; --size) {
    const std::string_view begin = name.substr(0, size);
    const std::string_view rest = name.substr(size);
    const bool is_break = rest[0] == '_' || (!has_lower(begin) && has_lower(rest.substr(0, 1)));
    if (!is_break || rest.size() < 2) continue;
    if (script.names.is_set(begin) || script.names.is_loop_variable(begin)) return std::string(begin);
  }
  return "";
}

// "$lang2" in a loop over lang1: a different last digit.
std::string sibling(const Script& script, std::string_view name) {
  if (std::isdigit(static_cast<unsigned char>(name.back())) == 0 || name.size() < 4) return "";
  for (char digit = '0'; digit <= '9'; ++digit) {
    const std::string other = std::string(name.substr(0, name.size() - 1)) + digit;
    if (other != name && script.names.is_loop_variable(other)) return other;
  }
  return "";
}

// "$sample_R1.fastq", where sample is set and sample_R1 is not.
void find_glued_variable(const Script& script, FindingReport& report) {
  if (has_external_settings(script)) return;
  std::set<std::string> reported;
  for (const ProgramCall& call : script.calls) {
    if (call.program == "echo" || call.program == "printf" || call.context.is_remote) continue;
    for_each_variable(call, [&](const bash::WordPiece& piece) {
      const std::string& name = piece.text;
      const bool is_bare = script.at(piece.span) == "$" + name;
      if (!is_bare || name.size() < 4 || !has_lower(name) || name.starts_with("SLURM_") ||
          script.names.first_assignment(name) != std::string::npos)
        return;
      const std::string other = sibling(script, name);
      if (!other.empty() && reported.insert(name).second) {
        report.replace(piece.span, message("${} is never set and is empty; did you mean ${}?", name, other),
                       "$" + other);
        return;
      }
      const std::string begin = glued_name(script, name);
      if (begin.empty() || !reported.insert(name).second) return;
      // "$data_dir" alone may come from outside; "$sample_R1" is followed by more text.
      const std::string_view rest = std::string_view(name).substr(begin.size());
      const char behind = piece.span.end < script.text.size() ? script.text[piece.span.end] : ' ';
      const bool continues =
          behind == '.' || behind == '/' || behind == '-' || behind == '$' || behind == '*' || behind == '%';
      const bool is_odd =
          rest.find_first_of("0123456789") != std::string_view::npos || rest[0] != '_' || rest.ends_with('_');
      if (!continues && !is_odd) return;
      report.replace(
          piece.span,
          message("${} is never set and is empty: the name ends after {} only with braces", name, begin),
          format("${{{}}}{}", begin, rest));
    });
  }
}

// Set by the system, Slurm or modules before the script.
bool may_be_there(std::string_view name, bool has_modules) {
  if (is_one_of(name, {"PATH",
                       "HOME",
                       "USER",
                       "PWD",
                       "HOSTNAME",
                       "TMPDIR",
                       "SHELL",
                       "LANG",
                       "IFS",
                       "SECONDS",
                       "RANDOM",
                       "LD_LIBRARY_PATH",
                       "PYTHONPATH",
                       "OMP_NUM_THREADS",
                       "CUDA_VISIBLE_DEVICES",
                       "DISPLAY",
                       "LOGNAME",
                       "OLDPWD",
                       "PS1",
                       "MANPATH",
                       "LIBRARY_PATH",
                       "CPATH"}) ||
      name.starts_with("SLURM") || name.starts_with("PBS_") || name.starts_with("BASH"))
    return true;
  return has_modules && !has_lower(name);
}

// Commands that set variables without naming them.
bool reads_modules(const Script& script) {
  return std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return is_one_of(call.program, {"module", "ml", "source", ".", "conda", "mamba", "micromamba", "spack"});
  });
}

bool is_plain_place(const Context& context) {
  return context.loops == 0 && context.function.empty() && !context.is_condition && !context.is_remote;
}

// "OUT=$BASE/out" before "BASE=/data".
void find_set_later(const Script& script, FindingReport& report) {
  if (has_external_settings(script)) return;
  const bool has_modules = reads_modules(script);
  std::set<std::string> reported;
  const auto look = [&](const bash::WordPiece& piece, std::string_view own) {
    const std::string& name = piece.text;
    if (name == own || !is_name(name) || may_be_there(name, has_modules) || reported.contains(name)) return;
    const std::size_t given = script.names.first_assignment(name);
    if (given == std::string::npos || given < piece.span.end) return;
    const VariableSetting* setting = nullptr;
    for (const std::size_t index : script.names.settings_of(name)) {
      const VariableSetting& each = script.settings[index];
      if (each.assignment->span.begin == given && !each.is_command_scoped) setting = &each;
    }
    if (setting == nullptr || !is_plain_place(setting->context)) return;
    reported.insert(name);
    report
        .add(piece.span, message("${} is empty here: line {} sets it", name, script.source->mark(given).line))
        .fix = message("{}    ({})", script.at(setting->assignment->span), message("before this line"));
  };
  for (const VariableSetting& setting : script.settings) {
    if (!is_plain_place(setting.context)) continue;
    for (const bash::WordPiece& piece : setting.assignment->value.pieces) {
      if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) look(piece, setting.name);
    }
  }
  for (const ProgramCall& call : script.calls) {
    if (is_plain_place(call.context) && !only_prints(call) && call.program != "trap")
      for_each_variable(call, [&](const bash::WordPiece& piece) { look(piece, ""); });
  }
}

// "SEED=3 python a.py --seed $SEED": the shell expands the words before it sets the variable.
void find_set_for_command(const Script& script, FindingReport& report) {
  const bool has_modules = reads_modules(script);
  for (const ProgramCall& call : script.calls) {
    if (call.command->assignments.empty() || call.program_word != &call.command->words[0] ||
        only_prints(call) || is_one_of(call.program, {"declare", "local", "readonly", "typeset", "eval"}))
      continue;
    for (const bash::Assignment& assignment : call.command->assignments) {
      const bool is_known = may_be_there(assignment.name, has_modules) ||
                            script.names.first_assignment(assignment.name) < assignment.span.begin ||
                            assignment.value.pieces.empty();
      if (is_known) continue;
      bool is_reported = false;
      for_each_variable(call, [&](const bash::WordPiece& piece) {
        if (piece.text != assignment.name || is_reported) return;
        is_reported = true;
        report
            .add(piece.span, message("${} is empty here: an assignment before a command takes effect "
                                     "after its words are expanded",
                                     piece.text))
            .fix = format("export {}", script.at(assignment.span));
      });
    }
  }
}

void find_late_value(const Script& script, FindingReport& report) {
  find_set_later(script, report);
  find_set_for_command(script, report);
}

// Exports by set and declare.
struct Exports {
  bool is_all = false;
  PrefixSet declared;
};

Exports exports_of(const Script& script) {
  bool is_all = false;
  std::vector<std::string_view> declared;
  for (const ProgramCall& call : script.calls) {
    is_all = is_all || (call.program == "set" && (call.has("-a") || call.has("allexport")));
    if (is_one_of(call.program, {"declare", "typeset", "readonly"}) && call.has("-x"))
      declared.insert(declared.end(), call.words.begin(), call.words.end());
  }
  return {.is_all = is_all, .declared = PrefixSet(std::move(declared))};
}

// Set in the script's shell before that position, and not exported.
bool is_of_own_shell(const Script& script, const Exports& exports, std::string_view name, bash::Span quotes) {
  bool is_set = false;
  for (const std::size_t index : script.names.settings_of(name)) {
    const VariableSetting& setting = script.settings[index];
    const std::size_t at = setting.assignment->span.begin;
    if (setting.is_command_scoped || (quotes.begin <= at && at < quotes.end)) return false;
    is_set = is_set || at < quotes.begin;
  }
  return is_set && !exports.is_all && !script.names.is_exported(name) && !exports.declared.has_prefix(name);
}

// "srun bash -c './a --nodes $NODES'" where NODES is not exported.
void find_not_exported(const Script& script, FindingReport& report) {
  const Exports exports = exports_of(script);
  for (std::size_t i = 0; i < script.calls.size(); ++i) {
    const ProgramCall& shell = script.calls[i];
    if ((shell.program != "bash" && shell.program != "sh") || shell.context.is_remote) continue;
    const auto quoted = std::find_if(shell.typed.begin(), shell.typed.end(), [&](const bash::Word* word) {
      return script.text[word->span.begin] == '\'' && word->span.end > word->span.begin + 2;
    });
    if (quoted == shell.typed.end() || !shell.has("-c")) continue;
    const bash::Span quotes = (*quoted)->span;
    std::set<std::string> reported;
    // Calls inside the quotes follow the shell's call.
    for (std::size_t k = i + 1; k < script.calls.size() && script.calls[k].span.begin < quotes.end; ++k) {
      const ProgramCall& call = script.calls[k];
      if (call.span.begin <= quotes.begin || call.span.end > quotes.end || only_prints(call)) continue;
      for_each_variable(call, [&](const bash::WordPiece& piece) {
        const std::string_view inside = script.at(quotes);
        const bool is_made_there = inside.find(format("for {} in", piece.text)) != std::string_view::npos ||
                                   inside.find(format("read {}", piece.text)) != std::string_view::npos;
        if (is_made_there || !is_of_own_shell(script, exports, piece.text, quotes) ||
            !reported.insert(piece.text).second)
          return;
        report
            .add(piece.span, message("${} is not exported and is empty in the shell of bash -c", piece.text))
            .fix = format("export {}", piece.text);
      });
    }
  }
}

// The number of elements of a literal array; nothing for a computed one.
std::optional<std::uint64_t> list_size(const Script& script, std::string_view name) {
  std::optional<std::uint64_t> size;
  for (const std::size_t index : script.names.settings_of(name)) {
    const bash::Assignment& list = *script.settings[index].assignment;
    if (size || !list.is_array || list.appends || list.elements.empty()) return std::nullopt;
    for (const bash::Word& word : list.elements) {
      const std::string_view text = script.at(word.span);
      const bool is_quoted = text.starts_with('"') || text.starts_with('\'');
      if (text.find_first_of("$`") != std::string_view::npos ||
          (!is_quoted && text.find_first_of("*?{[") != std::string_view::npos))
        return std::nullopt;
    }
    size = list.elements.size();
  }
  return size;
}

// "${names[$SLURM_ARRAY_TASK_ID]}" with --array=1-4 and four names: bash arrays start at 0.
void find_array_index(const Script& script, FindingReport& report) {
  const Directive* array = script.request.find("--array");
  if (array == nullptr || script.interpreter == "zsh") return;
  const auto largest = slurm::max_array_index(array->option.value);
  if (!largest) return;
  for (const char* index : {"[$SLURM_ARRAY_TASK_ID]", "[SLURM_ARRAY_TASK_ID]", "[${SLURM_ARRAY_TASK_ID}]"}) {
    for (std::size_t at = script.text.find(index); at != std::string::npos;
         at = script.text.find(index, at + 1)) {
      const std::size_t open = script.text.rfind("${", at);
      if (open == std::string::npos) continue;
      const std::string_view name = script.at({open + 2, at});
      const auto size = is_name(name) ? list_size(script, name) : std::nullopt;
      if (!size || *size < 2 || *largest < *size) continue;  // one element: a switch
      report
          .add({open, at},
               message("{} has {} elements, starting at 0: array task {} gets none", name, *size, *largest))
          .fix = format("#SBATCH --array=0-{}", *size - 1);
      return;
    }
  }
}

constexpr Rule kVariableRules[] = {
    {"unset-variable", Level::job, "Slurm sets many variables only if the job uses their option",
     "#!/bin/bash\n#SBATCH --nodes=1 --gres=gpu:2\ntorchrun --nproc_per_node=$SLURM_GPUS_PER_NODE train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=2\ntorchrun --nproc_per_node=$SLURM_GPUS_PER_NODE "
     "train.py\n",
     "sbatch(1), output environment variables: \"Only set if ... is specified\"", find_unset_variable},
    {"glued-variable", Level::job, "a variable name continues while letters, digits and _ follow",
     "#!/bin/bash\n#SBATCH -n 1\nfor sample in a b; do\n  ./run $sample_1.fastq\ndone\n",
     "#!/bin/bash\n#SBATCH -n 1\nfor sample in a b; do\n  ./run ${sample}_1.fastq\ndone\n",
     "students' scripts", find_glued_variable},
    {"late-value", Level::job, "a variable is empty before the line that sets it",
     "#!/bin/bash\n#SBATCH -n 1\nout=$base/out\nbase=/data\n./run $out\n",
     "#!/bin/bash\n#SBATCH -n 1\nbase=/data\nout=$base/out\n./run $out\n", "shellcheck SC2154, SC2097",
     find_late_value},
    {"not-exported", Level::job, "a new shell sees only exported variables",
     "#!/bin/bash\n#SBATCH -n 1\nfile=/data/a\nsrun bash -c './run $file'\n",
     "#!/bin/bash\n#SBATCH -n 1\nexport file=/data/a\nsrun bash -c './run $file'\n", "bash(1), environment",
     find_not_exported},
    {"array-index", Level::job, "bash arrays start at 0",
     "#!/bin/bash\n#SBATCH --array=1-2\nsets=(a b)\n./run ${sets[$SLURM_ARRAY_TASK_ID]}\n",
     "#!/bin/bash\n#SBATCH --array=0-1\nsets=(a b)\n./run ${sets[$SLURM_ARRAY_TASK_ID]}\n", "bash(1), arrays",
     find_array_index},
};

}  // namespace

std::span<const Rule> variable_rules() { return kVariableRules; }

}  // namespace stoker::script_lint
