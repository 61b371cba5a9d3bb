#include "explain/draft/draft.h"

#include <algorithm>

#include "base/text.h"
#include "config/setting.h"
#include "explain/draft/sheet.h"

namespace stoker::explain {
namespace {

using config::yaml_scalar;
using draft::Sheet;
using draft::Unit;
using draft::Work;

std::vector<Unit> units_of(const Script& script) {
  std::vector<Unit> units;
  bool is_joined = false;
  for (const bash::Item& item : script.tree.list.items) {
    if (!is_joined) {
      units.emplace_back();
      units.back().span = item.pipeline.span;
      units.back().line = script.source->mark(item.pipeline.span.begin).line;
    }
    for (const bash::Command& command : item.pipeline.commands)
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
  for (const Call& call : script.calls) {
    if (Unit* unit = unit_at(call.span.begin)) unit->calls.push_back(&call);
  }
  for (const Setting& setting : script.settings) {
    if (Unit* unit = unit_at(setting.assignment->span.begin)) unit->settings.push_back(&setting);
  }
  return units;
}

std::string list_yaml(const std::vector<std::string>& texts) {
  std::string yaml;
  for (const std::string& text : texts) yaml += "\n    - " + yaml_scalar(text);
  return yaml;
}

// The environment that the script makes in the job, from what it puts into it.
void settle_environment(const DraftPlace& place, Sheet& sheet, std::vector<DraftFile>& files) {
  if (!sheet.made_environment.empty() && !sheet.venv) {
    if (sheet.packages.empty() && sheet.requirement_files.size() == 1) {
      sheet.venv = sheet.requirement_files.front();
    } else if (!sheet.packages.empty() || !sheet.requirement_files.empty()) {
      std::string text;
      for (const std::string& file : sheet.requirement_files) text += "-r " + file + "\n";
      for (const std::string& package : sheet.packages) text += package + "\n";
      sheet.venv = place.stem + ".requirements.txt";
      files.push_back({*sheet.venv, std::move(text)});
    }
  }
  if (!sheet.modules.empty()) sheet.set("environment", "modules", list_yaml(sheet.modules));
  if (sheet.conda) sheet.set("environment", "conda", yaml_scalar(*sheet.conda));
  if (sheet.venv) sheet.set("environment", "venv", yaml_scalar(*sheet.venv));
  if (sheet.venv && sheet.wheelhouse) sheet.set("environment", "wheelhouse", yaml_scalar(*sheet.wheelhouse));
  std::string variables;
  for (const auto& [name, value] : sheet.variables)
    variables += format("\n    {}: {}", name, yaml_scalar(value));
  for (const auto& [name, reference] : sheet.references)
    variables += format("\n    {}: \"{}\"", name, reference);
  if (!variables.empty()) sheet.set("environment", "variables", std::move(variables));
}

void settle_stage(Sheet& sheet) {
  if (!sheet.unpack.empty()) sheet.set("stage", "unpack", list_yaml(sheet.unpack));
  if (!sheet.copy.empty()) sheet.set("stage", "copy", list_yaml(sheet.copy));
  if (!sheet.back.empty()) sheet.set("stage", "back", list_yaml(sheet.back));
  if (!sheet.extra.empty()) sheet.set("slurm", "extra", list_yaml(sheet.extra));
}

// "run: ..." and the file it names.
std::string run_text(const std::string& name, const DraftPlace& place, const Work& work, Sheet& sheet,
                     std::vector<DraftFile>& files) {
  std::string text;
  if (!work.words.empty()) {
    text = "run: " + config::yaml_text(config::Value(work.words)) + "\n";
  } else {
    const std::string file = place.stem + ".run.sh";
    std::string lines = format("#!/bin/bash\n# What {} runs.\n", printable(name));
    // Behind `cd` the file would not be found.
    if (sheet.working_directory)
      lines += format("cd {} || exit\n", shell_quote(*std::exchange(sheet.working_directory, std::nullopt)));
    files.push_back({file, lines + work.lines});
    std::string command = "bash " + shell_quote(file);
    for (std::uint64_t i = 1; i <= work.arguments; ++i) {
      command += format(" ${{params.argument_{}}}", i);
      sheet.set("params", format("argument_{}", i), "\"\"");
    }
    text = format("run: {}\n", work.arguments > 0 ? "\"" + command + "\"" : yaml_scalar(command));
  }
  if (sheet.working_directory)
    text = format("working_directory: {}\n{}", yaml_scalar(*sheet.working_directory), text);
  if (work.start == draft::Start::torchrun) text += "launcher: torchrun\n";
  return text;
}

// A name as runs have it.
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

std::string left_text(const std::string& name, const std::vector<LeftBehind>& left) {
  if (left.empty()) return "";
  std::string text = format("\n# Not carried over from {}:\n", printable(name));
  for (const LeftBehind& each : left) text += format("#   line {}: {}: {}\n", each.line, each.what, each.why);
  return text;
}

// A program of another language is the command itself.
Work work_of_program(const std::string& name, const Script& script) {
  Work work;
  const std::string program = script.interpreter.empty() ? "bash" : script.interpreter;
  work.words = {program, name};
  return work;
}

// Where the text is no UTF-8; its size when all of it is.
std::size_t broken_letter(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

// The first byte that is for terminals and no text; the text's size when there is none.
std::size_t control_byte(std::string_view text) {
  const auto at = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7F;
  });
  return static_cast<std::size_t>(at - text.begin());
}

// Bytes of a value that stand as "\x1b"; what is told in comments does no harm.
bool has_escapes(std::string_view job) {
  for (std::string_view line : split(job, '\n')) {
    if (!line.starts_with('#') && line.find("\\x") != std::string_view::npos) return true;
  }
  return false;
}

Status refuse_byte(const std::string& name, const Script& script, std::size_t at, std::string_view why) {
  return invalid("{}:{}: byte 0x{:02x} {}", printable(name), script.source->mark(at).line,
                 static_cast<unsigned>(static_cast<unsigned char>(script.text[at])), why);
}

}  // namespace

Result<Draft> draft_job(const std::string& name, std::string text, const DraftPlace& place) {
  const std::unique_ptr<Script> script = read_script(name, std::move(text));
  if (script->tree.error) {
    return invalid("{}:{}: {}", printable(name), script->source->mark(script->tree.error->at).line,
                   script->tree.error->what())
        .cure("stoker check {}", shell_quote(name));
  }
  Sheet sheet;
  Draft draft;
  const draft::Words words(*script, place);
  const std::vector<Unit> units = units_of(*script);
  std::vector<bool> taken;
  for (const Unit& unit : units) taken.push_back(draft::take_unit(words, unit, sheet));
  Work work = script->is_shell ? draft::find_work(*script, words, units, taken, sheet)
                               : work_of_program(name, *script);
  if (!work.words.empty() && work.words.front().find('=') != std::string::npos) {
    // A job file, as the shell, takes NAME=value for a variable; here it is what a program is called.
    work.words.insert(work.words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\""});
  }
  draft::take_options(*script, work, place.stem, sheet, draft.files);
  settle_environment(place, sheet, draft.files);
  settle_stage(sheet);
  const std::string run = run_text(name, place, work, sheet, draft.files);
  draft.job = format("# Made of {} by stoker init. Every key there is: stoker check --keys\nname: {}\n\n{}",
                     printable(name), yaml_scalar(job_name(name, *script)), run);
  for (const char* group :
       {"params", "resources", "slurm", "environment", "stage", "checkpoint", "chain", "array"}) {
    const auto found = sheet.groups.find(group);
    if (found == sheet.groups.end()) continue;
    draft.job += format("\n{}:\n", group);
    for (const auto& [key, yaml] : found->second)
      draft.job += format("  {}:{}{}\n", key, yaml.starts_with('\n') ? "" : " ", yaml);
  }
  std::stable_sort(sheet.left.begin(), sheet.left.end(),
                   [](const LeftBehind& a, const LeftBehind& b) { return a.line < b.line; });
  draft.left = std::move(sheet.left);
  draft.job += left_text(name, draft.left);
  if (const std::size_t at = control_byte(script->text); at < script->text.size() && has_escapes(draft.job)) {
    return refuse_byte(name, *script, at, "is for a terminal, and no part of a script's text")
        .cure("cat -v {}    (in quotes: $'\\e[31m')", shell_quote(name));
  }
  if (broken_letter(draft.job) < draft.job.size()) {
    const std::size_t at = std::min(broken_letter(script->text), script->text.size() - 1);
    return refuse_byte(name, *script, at, "is not UTF-8, which a job file has to be")
        .cure("iconv -f LATIN1 -t UTF-8 {0} > {0}.utf8 && mv {0}.utf8 {0}", shell_quote(name));
  }
  return draft;
}

}  // namespace stoker::explain
