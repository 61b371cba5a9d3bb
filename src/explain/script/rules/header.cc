// Rules over the #SBATCH lines: where they stand, and the names of options.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "explain/script/rule.h"
#include "slurm/script/option_names.h"
#include "slurm/script/own_script.h"

namespace stoker::explain {
namespace {

using bash::Span;

// The option's name as it was likely meant, or only what is wrong with it where that is not known.
void tell_name(const Directive& directive, std::string_view likely, const Said& text, Report& report) {
  const std::string& typed = directive.option.typed;
  if (likely.empty()) {
    report.add(directive.span, text);
    return;
  }
  report.replace({directive.span.begin, directive.span.begin + typed.size()},
                 report.say("{}; did you mean {}?", text.text(), likely), std::string(likely));
}

// "!/bin/bash": for sbatch the first command, behind which it reads no options.
bool has_half_a_mark(const Script& script) { return script.text.starts_with("!/"); }

// "SBATCH --time=1:00:00": the first command, too, and told by the rule over lines that are none.
bool begins_with_bare_mark(const Script& script) {
  return std::string_view(script.text).substr(script.first_command).starts_with("SBATCH -");
}

void find_no_interpreter(const Script& script, Report& report) {
  if (slurm::is_script(script.text)) return;
  const bool has_mark = script.text.starts_with("\xEF\xBB\xBF#!");
  if (has_mark) {
    report.replace({0, 3},
                   report.say("a byte order mark stands before #!, and sbatch takes the file for no script"),
                   "");
    return;
  }
  if (has_half_a_mark(script)) {
    report.replace(
        {0, 0},
        report.say("the first line is not #! and an interpreter, and sbatch takes the file for no script"),
        "#");
    return;
  }
  report.insert_line(
      {0, 0},
      report.say("the first line is not #! and an interpreter, and sbatch takes the file for no script"),
      "#!/bin/bash");
}

// What the job gets, and no name, time or place of its log.
bool is_of_allocation(std::string_view option) {
  return is_one_of(option, {"--mem", "--mem-per-cpu", "--mem-per-gpu", "--gres", "--gpus", "--gpus-per-node",
                            "--gpus-per-task", "--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task",
                            "--constraint", "--exclusive"});
}

// Told once, and mended in all lines.
void find_late_directive(const Script& script, Report& report) {
  const bool has_byte_mark = script.text.starts_with("\xEF\xBB\xBF#!");
  if (has_half_a_mark(script) || has_byte_mark || begins_with_bare_mark(script)) return;  // told of that line
  const auto first = script.source->mark(script.first_command).line;
  const std::size_t header = script.line_of(script.first_command).begin;
  const Directive* told = nullptr;
  std::vector<Edit> edits;
  std::string moved;
  bool is_names_only = true;
  bool asks_for_more = false;  // than the header does
  for (const Directive& directive : script.request.late) {
    const Span line = script.line_of(directive.span.begin);
    const Directive* early = script.request.find(directive.option.name);
    const bool is_said = early != nullptr && early->option.value == directive.option.value;
    if (is_said || (!edits.empty() && edits.back().begin == line.begin)) continue;
    if (told == nullptr) told = &directive;
    is_names_only &= is_one_of(directive.option.name, {"--job-name", "--comment"});
    asks_for_more |= early == nullptr && is_of_allocation(directive.option.name);
    moved += std::string(script.at(line)) + "\n";
    edits.push_back({line.begin, std::min(line.end + 1, script.text.size()), ""});
  }
  if (told == nullptr) return;
  const Span line = script.line_of(told->span.begin);
  ScriptFinding& finding = report.add(
      line, report.say("{} stands behind the first command (line {}), where sbatch reads no more options",
                       told->option.typed, first));
  finding.fix = report.say("{}    (before line {})", script.at(line), first);
  // Behind all commands of a script that has a header they are notes.
  const bool is_note = !script.request.directives.empty() && !script.calls.empty() &&
                       script.calls.back().span.end < told->span.begin;
  if ((is_note && !asks_for_more) || is_names_only) finding.level = Level::advice;
  edits.insert(edits.begin(), {header, header, moved});
  finding.edits = std::move(edits);
}

// "-time=1:00:00", which is -t with the value "ime=1:00:00". Of some letters sbatch takes any value, and what
// is lost is a name; the others it refuses.
std::string_view meant_with_two_dashes(const Script& script, const Directive& directive) {
  const slurm::OwnOption& option = directive.option;
  if (option.typed.size() != 2 || option.typed.starts_with("--")) return {};
  const std::string_view whole = script.at(directive.span);
  const std::string_view name = whole.substr(0, whole.find_first_of("= "));
  if (name.size() < 4) return {};
  const std::string_view likely = slurm::likely_option(format("-{}", name));
  return slurm::look_up_option(format("-{}", name)) == slurm::OptionName::known ? likely : std::string_view();
}

void find_wrong_letter(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (typed.size() != 2 || typed == "--") continue;
    const std::string_view meant = meant_with_two_dashes(script, directive);
    const bool is_letter = slurm::is_option_letter(typed[1]);
    if (!meant.empty()) {
      ScriptFinding& finding =
          report.replace({directive.span.begin, directive.span.begin},
                         report.say("one dash before a long name: sbatch reads {} and the value '{}'", typed,
                                    printable(script.at({directive.span.begin + 2, directive.span.end}))),
                         "-");
      if (is_letter && is_one_of(typed, {"-o", "-e", "-J", "-C"})) finding.level = Level::time;
    } else if (!is_letter && std::isalpha(static_cast<unsigned char>(typed[1])) != 0) {
      report.add(directive.span,
                 report.say("{}: no such option, and sbatch refuses the script", printable(typed)));
    }
  }
}

// Of pyxis, shifter and others that sites put beside Slurm.
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

void find_misspelt_option(const Script& script, Report& report) {
  find_wrong_letter(script, report);
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (!typed.starts_with("--") || is_of_plug_in(typed) ||
        slurm::look_up_option(typed) != slurm::OptionName::unknown)
      continue;
    const std::string_view likely = slurm::likely_option(typed);
    if (is_of_srun(typed)) {
      report.add(directive.span, report.say("{} is an option of srun; sbatch refuses it", typed)).fix =
          format("srun {} …", typed);
    } else if (!likely.empty()) {
      tell_name(directive, likely,
                report.say("{}: no such option, and sbatch refuses the script", printable(typed)), report);
    } else {
      report
          .add(directive.span,
               report.say(
                   "{}: no option of sbatch, which refuses the script unless a plug-in of the site knows it",
                   printable(typed)))
          .level = Level::advice;
    }
  }
}

void find_ambiguous_option(const Script& script, Report& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& typed = directive.option.typed;
    if (!typed.starts_with("--") || slurm::look_up_option(typed) != slurm::OptionName::ambiguous) continue;
    tell_name(directive, slurm::likely_option(typed),
              report.say("{}: the beginning of several options, which sbatch refuses", printable(typed)),
              report);
  }
}

constexpr Rule kHeaderRules[] = {
    {"no-interpreter", Level::job, "sbatch takes only scripts that begin with #! and an interpreter",
     "#SBATCH --time=1\necho a\n", "#!/bin/bash\n#SBATCH --time=1\necho a\n",
     "sbatch: \"This does not look like a batch script\"", find_no_interpreter},
    {"late-directive", Level::job,
     "sbatch reads options down to the first command; what stands behind it is a comment",
     "#!/bin/bash\nmodule load cuda\n#SBATCH --gres=gpu:1\n./a\n",
     "#!/bin/bash\n#SBATCH --gres=gpu:1\nmodule load cuda\n./a\n",
     "sbatch(1): \"once the first non-comment non-whitespace line has been reached\"", find_late_directive},
    {"misspelt-option", Level::job, "sbatch refuses a script with an option that it does not know",
     "#!/bin/bash\n#SBATCH --ntaks-per-node=4\n", "#!/bin/bash\n#SBATCH --ntasks-per-node=4\n",
     "users' notes; sbatch: \"unrecognized option\"", find_misspelt_option},
    {"ambiguous-option", Level::job,
     "the beginning of an option's name is enough only when it is the beginning of one",
     "#!/bin/bash\n#SBATCH --gpu=1\n", "#!/bin/bash\n#SBATCH --gpus=1\n",
     "sbatch: \"option '--gpu=1' is ambiguous\"", find_ambiguous_option},
};

}  // namespace

std::span<const Rule> header_rules() { return kHeaderRules; }

}  // namespace stoker::explain
