// Rules for #SBATCH lines: their position and option names.
#include <algorithm>
#include <cctype>

#include "script_lint/rule.h"
#include "slurm/script/option_names.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

using bash::Span;

// Reports a wrong option name, with a fix if the intended name is known.
void report_name(const Directive& directive, std::string_view likely, const Message& text,
                 FindingReport& report) {
  const std::string& typed = directive.option.typed;
  if (likely.empty()) {
    report.add(directive.span, text);
    return;
  }
  report.replace({directive.span.begin, directive.span.begin + typed.size()},
                 message("{}; did you mean {}?", text, likely), std::string(likely));
}

// "!/bin/bash": sbatch treats it as the first command and reads no options after it.
bool has_incomplete_shebang(const Script& script) { return script.text.starts_with("!/"); }

// "SBATCH --time=1:00:00": also the first command; rule not-a-directive reports it.
bool begins_with_bare_mark(const Script& script) {
  return std::string_view(script.text).substr(script.first_command).starts_with("SBATCH -");
}

void find_no_interpreter(const Script& script, FindingReport& report) {
  if (slurm::is_script(script.text)) return;
  const bool has_mark = script.text.starts_with("\xEF\xBB\xBF#!");
  if (has_mark) {
    report.replace({0, 3},
                   message("a byte order mark before #!: sbatch does not accept the file as a script"), "");
    return;
  }
  if (has_incomplete_shebang(script)) {
    report.replace(
        {0, 0},
        message("the first line is not #! and an interpreter: sbatch does not accept the file as a script"),
        "#");
    return;
  }
  report.insert_line(
      {0, 0},
      message("the first line is not #! and an interpreter: sbatch does not accept the file as a script"),
      "#!/bin/bash");
}

// Options that request resources, unlike name, time or log.
bool is_of_allocation(std::string_view option) {
  return is_one_of(option, {"--mem", "--mem-per-cpu", "--mem-per-gpu", "--gres", "--gpus", "--gpus-per-node",
                            "--gpus-per-task", "--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task",
                            "--constraint", "--exclusive"});
}

// Reported once, and fixed in all lines.
void find_late_directive(const Script& script, FindingReport& report) {
  const bool has_byte_mark = script.text.starts_with("\xEF\xBB\xBF#!");
  if (has_incomplete_shebang(script) || has_byte_mark || begins_with_bare_mark(script))
    return;  // reported for that line
  const auto first = script.source->mark(script.first_command).line;
  const std::size_t header = script.line_of(script.first_command).begin;
  const Directive* reported = nullptr;
  std::vector<Edit> edits;
  std::string moved;
  bool is_names_only = true;
  bool asks_for_more = false;  // than the header does
  for (const Directive& directive : script.request.ignored) {
    const Span line = script.line_of(directive.span.begin);
    const Directive* early = script.request.find(directive.option.name);
    const bool is_repeated = early != nullptr && early->option.value == directive.option.value;
    if (is_repeated || (!edits.empty() && edits.back().begin == line.begin)) continue;
    if (reported == nullptr) reported = &directive;
    is_names_only &= is_one_of(directive.option.name, {"--job-name", "--comment"});
    asks_for_more |= early == nullptr && is_of_allocation(directive.option.name);
    moved += std::string(script.at(line)) + "\n";
    edits.push_back({line.begin, std::min(line.end + 1, script.text.size()), ""});
  }
  if (reported == nullptr) return;
  const Span line = script.line_of(reported->span.begin);
  ScriptFinding& finding =
      report.add(line, message("{} is after the first command (line {}), where sbatch ignores options",
                               reported->option.typed, first));
  finding.fix = message("{}    (before line {})", script.at(line), first);
  // After all commands of a script with a header, such lines are notes.
  const bool is_note = !script.request.directives.empty() && !script.calls.empty() &&
                       script.calls.back().span.end < reported->span.begin;
  if ((is_note && !asks_for_more) || is_names_only) finding.level = Level::advice;
  edits.insert(edits.begin(), {header, header, moved});
  finding.edits = std::move(edits);
}

// "-time=1:00:00" means -t with the value "ime=1:00:00". For some letters sbatch accepts any value, and only
// a name is lost; otherwise it rejects the script.
std::string_view meant_with_two_dashes(const Script& script, const Directive& directive) {
  const slurm::SbatchOption& option = directive.option;
  if (option.typed.size() != 2 || option.typed.starts_with("--")) return {};
  const std::string_view whole = script.at(directive.span);
  const std::string_view name = whole.substr(0, whole.find_first_of("= "));
  if (name.size() < 4) return {};
  const std::string_view likely = slurm::suggest_option(format("-{}", name));
  return slurm::look_up_option(format("-{}", name)) == slurm::OptionName::known ? likely : std::string_view();
}

void find_wrong_letter(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (typed.size() != 2 || typed == "--") continue;
    const std::string_view meant = meant_with_two_dashes(script, directive);
    const bool is_letter = slurm::is_option_letter(typed[1]);
    if (!meant.empty()) {
      ScriptFinding& finding =
          report.replace({directive.span.begin, directive.span.begin},
                         message("one dash before a long name: sbatch reads {} with the value '{}'", typed,
                                 printable(script.at({directive.span.begin + 2, directive.span.end}))),
                         "-");
      if (is_letter && is_one_of(typed, {"-o", "-e", "-J", "-C"})) finding.level = Level::time;
    } else if (!is_letter && std::isalpha(static_cast<unsigned char>(typed[1])) != 0) {
      report.add(directive.span, message("{}: no such option, sbatch rejects the script", printable(typed)));
    }
  }
}

// Options of pyxis, shifter and other plug-ins.
bool is_of_plug_in(std::string_view name) {
  return name.starts_with("--container-") || name.starts_with("--no-container-") ||
         is_one_of(name,
                   {"--image", "--module", "--volume", "--ccm", "--uenv", "--view", "--environment", "--ear",
                    "--ipus", "--ipus-per-node", "--nvmps", "--lustre", "--beeond", "--private-tmp"});
}

bool is_of_srun(std::string_view name) {
  return is_one_of(name, {"--cpu-bind",    "--mpi",         "--label",        "--unbuffered",
                          "--overlap",     "--exact",       "--pty",          "--kill-on-bad-exit",
                          "--multi-prog",  "--bcast",       "--immediate",    "--jobid",
                          "--task-epilog", "--task-prolog", "--het-group",    "--preserve-env",
                          "--x11",         "--no-shell",    "--bell",         "--no-bell",
                          "--relative",    "--threads",     "--slurmd-debug", "--input-file"});
}

void find_misspelt_option(const Script& script, FindingReport& report) {
  find_wrong_letter(script, report);
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (!typed.starts_with("--") || is_of_plug_in(typed) ||
        slurm::look_up_option(typed) != slurm::OptionName::unknown)
      continue;
    const std::string_view likely = slurm::suggest_option(typed);
    if (is_of_srun(typed)) {
      report.add(directive.span, message("{} is an option of srun, sbatch rejects it", typed)).fix =
          format("srun {} PROGRAM", typed);
    } else if (!likely.empty()) {
      report_name(directive, likely,
                  message("{}: no such option, sbatch rejects the script", printable(typed)), report);
    } else {
      report
          .add(directive.span,
               message(
                   "{}: not an option of sbatch, which rejects the script unless a site plug-in provides it",
                   printable(typed)))
          .level = Level::advice;
    }
  }
}

void find_ambiguous_option(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (!typed.starts_with("--") || slurm::look_up_option(typed) != slurm::OptionName::ambiguous) continue;
    report_name(directive, slurm::suggest_option(typed),
                message("{}: an ambiguous abbreviation, which sbatch rejects", printable(typed)), report);
  }
}

constexpr Rule kHeaderRules[] = {
    {"no-interpreter", Level::job, "sbatch accepts only scripts that begin with #! and an interpreter",
     "#SBATCH --time=1\necho a\n", "#!/bin/bash\n#SBATCH --time=1\necho a\n",
     "sbatch: \"This does not look like a batch script\"", find_no_interpreter},
    {"late-directive", Level::job, "sbatch reads options up to the first command; later ones are comments",
     "#!/bin/bash\nmodule load cuda\n#SBATCH --gres=gpu:1\n./a\n",
     "#!/bin/bash\n#SBATCH --gres=gpu:1\nmodule load cuda\n./a\n",
     "sbatch(1): \"once the first non-comment non-whitespace line has been reached\"", find_late_directive},
    {"misspelt-option", Level::job, "sbatch rejects a script with an unknown option",
     "#!/bin/bash\n#SBATCH --ntaks-per-node=4\n", "#!/bin/bash\n#SBATCH --ntasks-per-node=4\n",
     "users' notes; sbatch: \"unrecognized option\"", find_misspelt_option},
    {"ambiguous-option", Level::job, "sbatch accepts an abbreviated option only if it is unambiguous",
     "#!/bin/bash\n#SBATCH --gpu=1\n", "#!/bin/bash\n#SBATCH --gpus=1\n",
     "sbatch: \"option '--gpu=1' is ambiguous\"", find_ambiguous_option},
};

}  // namespace

std::span<const Rule> header_rules() { return kHeaderRules; }

}  // namespace stoker::script_lint
