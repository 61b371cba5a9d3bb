#include "draft/draft.h"

#include <algorithm>

#include "config/setting.h"
#include "draft/draft_internal.h"
#include "draft/options.h"
#include "draft/prepare.h"
#include "draft/words.h"
#include "draft/work.h"
#include "stoker/text.h"

namespace stoker::draft {
namespace {

using config::yaml_scalar;

std::vector<Unit> units_of(const Script& script) {
  std::vector<Unit> units;
  bool is_joined = false;
  for (const bash::Item& item : script.tree.list.items) {
    if (!is_joined) {
      units.emplace_back();
      units.back().span = item.pipeline.span;
      units.back().line = script.source->mark(item.pipeline.span.begin).line;
    }
    for (const bash::ShellCommand& command : item.pipeline.commands)
      units.back().is_simple = units.back().is_simple && command.kind == bash::CommandKind::simple;
    is_joined = item.next == bash::Connector::and_ || item.next == bash::Connector::or_;
  }
  for (std::size_t i = 0; i < units.size(); ++i)
    units[i].span.end = i + 1 < units.size() ? units[i + 1].span.begin : script.text.size();
  const auto unit_at = [&](std::size_t at) -> Unit* {
    const auto next =
        std::upper_bound(units.begin(), units.end(), at,
                         [](std::size_t place, const Unit& unit) { return place < unit.span.begin; });
    return next == units.begin() ? nullptr : &*std::prev(next);
  };
  for (const ProgramCall& call : script.calls) {
    if (Unit* unit = unit_at(call.span.begin)) unit->calls.push_back(&call);
  }
  for (const VariableSetting& setting : script.settings) {
    if (Unit* unit = unit_at(setting.assignment->span.begin)) unit->settings.push_back(&setting);
  }
  return units;
}

std::string list_yaml(const std::vector<std::string>& texts) {
  std::string yaml;
  for (const std::string& text : texts) yaml += "\n    - " + yaml_scalar(text);
  return yaml;
}

// The environment that the script creates in the job, from its packages.
void finish_environment(const DraftTarget& target, JobFileDraft& job_file, std::vector<DraftFile>& files) {
  if (!job_file.created_venv.empty() && !job_file.venv) {
    if (job_file.packages.empty() && job_file.requirement_files.size() == 1) {
      job_file.venv = job_file.requirement_files.front();
    } else if (!job_file.packages.empty() || !job_file.requirement_files.empty()) {
      std::string text;
      for (const std::string& file : job_file.requirement_files) text += "-r " + file + "\n";
      for (const std::string& package : job_file.packages) text += package + "\n";
      job_file.venv = target.stem + ".requirements.txt";
      files.push_back({*job_file.venv, std::move(text)});
    }
  }
  if (!job_file.modules.empty()) job_file.set("environment", "modules", list_yaml(job_file.modules));
  if (job_file.conda) job_file.set("environment", "conda", yaml_scalar(*job_file.conda));
  if (job_file.venv) job_file.set("environment", "venv", yaml_scalar(*job_file.venv));
  if (job_file.venv && job_file.wheelhouse)
    job_file.set("environment", "wheelhouse", yaml_scalar(*job_file.wheelhouse));
  std::string variables;
  for (const auto& [name, value] : job_file.variables)
    variables += format("\n    {}: {}", name, yaml_scalar(value));
  for (const auto& [name, reference] : job_file.references)
    variables += format("\n    {}: \"{}\"", name, reference);
  if (!variables.empty()) job_file.set("environment", "variables", std::move(variables));
}

void finish_stage(JobFileDraft& job_file) {
  if (!job_file.unpack.empty()) job_file.set("stage", "unpack", list_yaml(job_file.unpack));
  if (!job_file.copy.empty()) job_file.set("stage", "copy", list_yaml(job_file.copy));
  if (!job_file.stage_out.empty()) job_file.set("stage", "back", list_yaml(job_file.stage_out));
  if (!job_file.extra.empty()) job_file.set("slurm", "extra", list_yaml(job_file.extra));
}

// "run: ..." and its file.
std::string run_text(const std::string& name, const DraftTarget& target, const Work& work,
                     JobFileDraft& job_file, std::vector<DraftFile>& files) {
  std::string text;
  if (!work.words.empty()) {
    text = "run: " + config::yaml_text(config::Value(work.words)) + "\n";
  } else {
    const std::string file = target.stem + ".run.sh";
    std::string lines = format("#!/bin/bash\n# What {} runs.\n", printable(name));
    // `cd` comes last, so that the relative file name stays valid.
    if (job_file.working_directory)
      lines +=
          format("cd {} || exit\n", shell_quote(*std::exchange(job_file.working_directory, std::nullopt)));
    files.push_back({file, lines + work.lines});
    std::string command = "bash " + shell_quote(file);
    for (std::uint64_t i = 1; i <= work.arguments; ++i) {
      command += format(" ${{params.argument_{}}}", i);
      job_file.set("params", format("argument_{}", i), "\"\"");
    }
    text = format("run: {}\n", work.arguments > 0 ? "\"" + command + "\"" : yaml_scalar(command));
  }
  if (job_file.working_directory)
    text = format("working_directory: {}\n{}", yaml_scalar(*job_file.working_directory), text);
  if (work.launch == LaunchMode::torchrun) text += "launcher: torchrun\n";
  return text;
}

// A valid name for runs.
std::string job_name(const std::string& name, const Script& script) {
  const Directive* directive = script.request.find("--job-name");
  std::string text = directive == nullptr ? "" : directive->option.value;
  if (text.empty() || text.find_first_of("<>$%") != std::string::npos) text = Path(name).stem().string();
  std::string safe;
  for (char c : text.substr(0, 64)) {
    const bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         c == '.' || c == '_' || c == '-';
    safe += is_good ? c : '-';
  }
  if (safe.empty() || safe.front() == '.') safe.insert(0, "job");
  return safe.substr(0, 64);
}

std::string unconverted_text(const std::string& name, const std::vector<Unconverted>& left) {
  if (left.empty()) return "";
  std::string text = format("\n# Not carried over from {}:\n", printable(name));
  for (const Unconverted& each : left)
    text += format("#   line {}: {}: {}\n", each.line, each.what, each.why);
  return text;
}

// A script in another language is the command itself.
Work work_of_program(const std::string& name, const Script& script) {
  Work work;
  const std::string program = script.interpreter.empty() ? "bash" : script.interpreter;
  work.words = {program, name};
  return work;
}

// Offset of the first invalid UTF-8 byte; the size of a valid text.
std::size_t invalid_utf8_offset(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

// Offset of the first terminal control byte; the size of a text without one.
std::size_t control_byte_offset(std::string_view text) {
  const auto at = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7F;
  });
  return static_cast<std::size_t>(at - text.begin());
}

// Escaped bytes such as "\x1b" in a value; they are harmless in comments.
bool has_escapes(std::string_view job) {
  for (std::string_view line : split(job, '\n')) {
    if (!line.starts_with('#') && line.find("\\x") != std::string_view::npos) return true;
  }
  return false;
}

Status invalid_byte(const std::string& name, const Script& script, std::size_t at, std::string_view why) {
  return invalid("{}:{}: byte 0x{:02x} {}", printable(name), script.source->mark(at).line,
                 static_cast<unsigned>(static_cast<unsigned char>(script.text[at])), why);
}

}  // namespace

Result<Draft> draft_job(const std::string& name, std::string text, const DraftTarget& target) {
  const std::unique_ptr<Script> script = read_script(name, std::move(text));
  if (script->tree.error) {
    return invalid("{}:{}: {}", printable(name), script->source->mark(script->tree.error->at).line,
                   script->tree.error->what().english())
        .cure("stoker check {}", shell_quote(name));
  }
  JobFileDraft job_file;
  Draft draft;
  const WordExpander words(*script, target);
  const std::vector<Unit> units = units_of(*script);
  std::vector<bool> converted;
  for (const Unit& unit : units) converted.push_back(convert_unit(words, unit, job_file));
  Work work = script->is_shell ? find_work(*script, words, units, converted, job_file)
                               : work_of_program(name, *script);
  if (!work.words.empty() && work.words.front().find('=') != std::string::npos) {
    // The job file parser would read NAME=value as a variable; here it is the program.
    work.words.insert(work.words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\""});
  }
  convert_options(*script, work, target.stem, job_file, draft.files);
  finish_environment(target, job_file, draft.files);
  finish_stage(job_file);
  const std::string run = run_text(name, target, work, job_file, draft.files);
  draft.job = format("# Converted from {} by stoker init. All keys: stoker check --keys\nname: {}\n\n{}",
                     printable(name), yaml_scalar(job_name(name, *script)), run);
  for (const char* group :
       {"params", "resources", "slurm", "environment", "stage", "checkpoint", "chain", "array"}) {
    const auto found = job_file.groups.find(group);
    if (found == job_file.groups.end()) continue;
    draft.job += format("\n{}:\n", group);
    for (const auto& [key, yaml] : found->second)
      draft.job += format("  {}:{}{}\n", key, yaml.starts_with('\n') ? "" : " ", yaml);
  }
  std::stable_sort(job_file.unconverted.begin(), job_file.unconverted.end(),
                   [](const Unconverted& a, const Unconverted& b) { return a.line < b.line; });
  draft.unconverted = std::move(job_file.unconverted);
  draft.job += unconverted_text(name, draft.unconverted);
  if (const std::size_t at = control_byte_offset(script->text);
      at < script->text.size() && has_escapes(draft.job)) {
    return invalid_byte(name, *script, at, "is a terminal control character and not valid in a job file")
        .cure("cat -v {}    (in quotes: $'\\e[31m')", shell_quote(name));
  }
  if (invalid_utf8_offset(draft.job) < draft.job.size()) {
    const std::size_t at = std::min(invalid_utf8_offset(script->text), script->text.size() - 1);
    return invalid_byte(name, *script, at, "is not UTF-8, as a job file must be")
        .cure("iconv -f LATIN1 -t UTF-8 {0} > {0}.utf8 && mv {0}.utf8 {0}", shell_quote(name));
  }
  return draft;
}

}  // namespace stoker::draft
