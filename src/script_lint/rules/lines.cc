// Rules for the first lines of a script: stray words in options, and invalid interpreters.
#include <algorithm>
#include <array>

#include "script_lint/rule.h"
#include "slurm/script/option_names.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

using bash::Span;

// The option before the word on the same line; null at its beginning.
const Directive* option_before(const Script& script, std::size_t at) {
  const Directive* before = nullptr;
  for (const Directive& directive : script.request.directives) {
    if (directive.span.begin >= script.line_of(at).begin && directive.span.begin < at) before = &directive;
  }
  return before;
}

// The rules for units, for blanks around = and for dashes report these.
bool is_reported_elsewhere(const Directive* before, const slurm::StrayWord& word) {
  if (word.text == "..." || (before != nullptr && before->option.value == "{{")) return true;
  for (std::string_view dash : {"\u2013", "\u2014", "\u2212"}) {
    if (word.text.starts_with(dash)) return true;
  }
  if (before == nullptr) return false;
  const slurm::SbatchOption& option = before->option;
  const bool is_unit = option.name.starts_with("--mem") && !option.name.starts_with("--mem-bind") &&
                       is_one_of(to_lower(word.text), {"g", "gb", "t", "tb"});
  const bool is_blank =
      (option.has_equals && option.value.empty()) || (!option.has_equals && option.value.starts_with('='));
  return is_unit || is_blank;
}

// Remarks after the options.
bool is_remark(std::string_view word) {
  return word.starts_with('(') || word.starts_with("//") || word.starts_with('!') || word.starts_with(';') ||
         word.starts_with("--") || word.starts_with("<-") || word == "-";
}

void report_stray(const slurm::StrayWord& word, Span at, const Directive* before, FindingReport& report) {
  if (word.is_open) {
    report.add(at, message("an unterminated quote: sbatch rejects the script"));
    return;
  }
  const Message text =
      message("'{}' belongs to no option: sbatch 19.05 and later rejects the script", printable(word.text));
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
      finding.fix = message("{}=\"{} {}\"    (in quotes)", before->option.typed, before->option.value,
                            printable(word.text));
  }
}

void find_stray_word(const Script& script, FindingReport& report) {
  for (const bash::Comment& comment : script.tree.comments) {
    const std::size_t begin = comment.span.begin;
    if (begin >= script.first_command) break;
    if (script.line_of(begin).begin != begin) continue;
    for (const slurm::StrayWord& word : slurm::stray_words(script.at(comment.span))) {
      const Span at{begin + word.begin, begin + word.end};
      const Directive* before = option_before(script, at.begin);
      if (is_reported_elsewhere(before, word)) break;
      report_stray(word, at, before, report);
      break;  // one for each line
    }
  }
}

// Bytes of a typographic dash or minus at the beginning, as in "–l" from a word processor; 0 without one.
std::size_t dash_length(std::string_view text) {
  const bool is_dash =
      text.starts_with("\xe2\x80") && text.size() > 2 && text[2] >= '\x90' && text[2] <= '\x95';
  return is_dash || text.starts_with("\xe2\x88\x92") ? 3 : 0;
}

// "#!/bin/bash # for the cluster", "#!/usr/bin/env bash -l": the kernel passes the rest as one argument.
void find_bad_interpreter(const Script& script, FindingReport& report) {
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
      report.add(at, message("#! without an interpreter: the job ends at once"));
      return;
    }
    const bool is_usual = is_one_of(base, {"bash", "sh", "zsh", "env"});
    const Message text =
        message("#!{}: no path from the root, and the job finds no such interpreter", printable(program));
    if (is_usual && !argument.starts_with('#')) {
      report.replace(at, text,
                     base == "env" ? format("#!/usr/bin/env {}", argument) : format("#!/bin/{}", base));
    } else {
      report.add(at, text);
    }
    return;
  }
  if (base.empty()) {
    report.add(at, message("#!{}: a folder is not an interpreter", printable(program)));
  } else if (argument.starts_with('#') && base != "env") {
    report.replace(at,
                   message("#!: the interpreter takes the text after its name as a file, not as a comment, "
                           "and the job ends at once"),
                   format("#!{}\n{}", program, argument));
  } else if (is_one_of(base, {"bash", "sh", "dash", "ksh", "zsh"}) && !argument.empty() &&
             argument.find_first_of("-+") != 0) {
    const Message text =
        message("#!: {} takes '{}' as the file to run, and the job ends at once", base, printable(argument));
    if (const std::size_t dash = dash_length(argument); dash > 0) {
      report.replace(at, text, format("#!{} -{}", program, argument.substr(dash)));
    } else {
      report.replace(at, text, format("#!{}", program));
    }
  } else if (base == "env" && !argument.starts_with('-') &&
             argument.find_first_of(" \t") != std::string::npos) {
    report.replace(at, message("#!: env looks for a program named '{}', and finds none", printable(argument)),
                   format("#!{} -S {}", program, argument));
  }
}

constexpr Rule kLineRules[] = {
    {"stray-word", Level::job,
     "sbatch rejects a script with a word in #SBATCH lines that belongs to no option",
     "#!/bin/bash\n#SBATCH --job-name=my job\n./a\n", "#!/bin/bash\n#SBATCH --job-name=\"my job\"\n./a\n",
     "sbatch: \"Invalid directive found in batch script: job\"", find_stray_word},
    {"bad-interpreter", Level::job, "a job with an invalid interpreter in the first line ends at once",
     "#!/usr/bin/env bash -l\n#SBATCH -n 1\n./a\n", "#!/bin/bash -l\n#SBATCH -n 1\n./a\n",
     "execve(2): \"the entire string following the interpreter is passed as a single argument\"",
     find_bad_interpreter},
};

}  // namespace

std::span<const Rule> line_rules() { return kLineRules; }

}  // namespace stoker::script_lint
