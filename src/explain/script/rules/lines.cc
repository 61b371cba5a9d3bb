// Rules over the lines at a script's head: what is no option there, and what no machine can start.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/script/rule.h"
#include "slurm/script/option_names.h"
#include "slurm/script/own_script.h"

namespace stoker::explain {
namespace {

using bash::Span;

// The option that the word lies behind, on the same line; null at its begin.
const Directive* option_before(const Script& script, std::size_t at) {
  const Directive* before = nullptr;
  for (const Directive& directive : script.request.directives) {
    if (directive.span.begin >= script.line_of(at).begin && directive.span.begin < at) before = &directive;
  }
  return before;
}

// Told by the rules over units and over blanks beside =, or by that over dashes.
bool is_told_elsewhere(const Directive* before, const slurm::StrayWord& word) {
  if (word.text == "..." || (before != nullptr && before->option.value == "{{")) return true;
  for (std::string_view dash : {"\u2013", "\u2014", "\u2212"}) {
    if (word.text.starts_with(dash)) return true;
  }
  if (before == nullptr) return false;
  const slurm::OwnOption& option = before->option;
  const bool is_unit = option.name.starts_with("--mem") && !option.name.starts_with("--mem-bind") &&
                       is_one_of(to_lower(word.text), {"g", "gb", "t", "tb"});
  const bool is_blank =
      (option.has_equals && option.value.empty()) || (!option.has_equals && option.value.starts_with('='));
  return is_unit || is_blank;
}

// Words behind the options that are meant for people.
bool is_remark(std::string_view word) {
  return word.starts_with('(') || word.starts_with("//") || word.starts_with('!') || word.starts_with(';') ||
         word.starts_with("--") || word.starts_with("<-") || word == "-";
}

void tell_stray(const slurm::StrayWord& word, Span at, const Directive* before, Report& report) {
  if (word.is_open) {
    report.add(at, report.say("a quote that is never closed, and sbatch refuses the script"));
    return;
  }
  const Said text = report.say("'{}' belongs to no option, and sbatch of 19.05 and later refuses the script",
                               printable(word.text));
  const std::string_view name = std::string_view(word.text).substr(0, word.text.find('='));
  const bool is_option = name.size() < word.text.size() && name.size() > 2 &&
                         slurm::look_up_option(format("--{}", name)) == slurm::OptionName::known;
  if (is_option) {
    report.replace({at.begin, at.begin}, text, "--");
  } else if (is_remark(word.text)) {
    report.replace({at.begin, at.begin}, text, "# ");
  } else {
    ScriptFinding& finding = report.add(at, text);
    if (before != nullptr && is_one_of(before->option.name, {"--job-name", "--comment"}))
      finding.fix = report.say("{}=\"{} {}\"    (in quotes)", before->option.typed, before->option.value,
                               printable(word.text));
  }
}

void find_stray_word(const Script& script, Report& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::size_t begin = comment.span.begin;
    if (begin >= script.first_command) break;
    if (script.line_of(begin).begin != begin) continue;
    for (const slurm::StrayWord& word : slurm::stray_words(script.at(comment.span))) {
      const Span at{begin + word.begin, begin + word.end};
      const Directive* before = option_before(script, at.begin);
      if (is_told_elsewhere(before, word)) break;
      tell_stray(word, at, before, report);
      break;  // one for each line
    }
  }
}

// "#!/bin/bash # for the cluster", "#!/usr/bin/env bash -l": the kernel passes all of it as one word.
void find_bad_interpreter(const Script& script, Report& report) {
  if (!script.text.starts_with("#!")) return;
  const std::size_t end = std::min(script.text.find('\n'), script.text.size());
  const std::string_view line = trim(std::string_view(script.text).substr(2, end - 2));
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view program = line.substr(0, blank);
  const std::string_view argument = trim(line.substr(blank));
  const Span at{0, end};
  const std::string_view base = program.substr(program.rfind('/') + 1);
  if (!program.starts_with('/')) {
    if (program.empty()) {
      report.add(at, report.say("#! without an interpreter: the job ends at once"));
      return;
    }
    const bool is_usual = is_one_of(base, {"bash", "sh", "zsh", "env"});
    const Said text =
        report.say("#!{}: no path from the root, and the job finds no such interpreter", printable(program));
    if (is_usual && !argument.starts_with('#')) {
      report.replace(at, text,
                     base == "env" ? format("#!/usr/bin/env {}", argument) : format("#!/bin/{}", base));
    } else {
      report.add(at, text);
    }
    return;
  }
  if (base.empty()) {
    report.add(at, report.say("#!{}: a folder is no interpreter", printable(program)));
  } else if (argument.starts_with('#') && base != "env") {
    report.replace(at,
                   report.say("#!: what stands behind the interpreter is the name of a file for it, not a "
                              "comment, and the job ends at once"),
                   format("#!{}\n{}", program, argument));
  } else if (base == "env" && !argument.starts_with('-') &&
             argument.find_first_of(" \t") != std::string::npos) {
    report.replace(
        at, report.say("#!: env takes '{}' for the name of one program, and finds none", printable(argument)),
        format("#!{} -S {}", program, argument));
  }
}

constexpr Rule kLineRules[] = {
    {"stray-word", Level::job,
     "sbatch refuses a script with a word in its #SBATCH lines that belongs to no option",
     "#!/bin/bash\n#SBATCH --job-name=my job\n./a\n", "#!/bin/bash\n#SBATCH --job-name=\"my job\"\n./a\n",
     "sbatch: \"Invalid directive found in batch script: job\"", find_stray_word},
    {"bad-interpreter", Level::job,
     "a job whose first line names no program that can be started ends at once",
     "#!/usr/bin/env bash -l\n#SBATCH -n 1\n./a\n", "#!/bin/bash -l\n#SBATCH -n 1\n./a\n",
     "execve(2): \"the entire string following the interpreter is passed as a single argument\"",
     find_bad_interpreter},
};

}  // namespace

std::span<const Rule> line_rules() { return kLineRules; }

}  // namespace stoker::explain
