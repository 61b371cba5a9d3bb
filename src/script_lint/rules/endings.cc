// Rules for the end of a job: results on the node-local disk, and hidden failures.
#include <algorithm>
#include <array>
#include <cctype>

#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

void find_syntax(const Script& script, FindingReport& report) {
  if (!script.tree.error) return;
  const std::size_t at = std::min(script.tree.error->at, script.text.size());
  report.add({at, at}, message("{}: the shell stops here", script.tree.error->what()));
}

void find_open_heredoc(const Script& script, FindingReport& report) {
  for (const bash::Heredoc& heredoc : script.tree.heredocs) {
    if (heredoc.is_closed || heredoc.body.begin >= heredoc.body.end) continue;
    const std::size_t begin = heredoc.body.begin == 0 ? 0 : heredoc.body.begin - 1;
    report.add(
        {begin, begin},
        message(
            "the here-document after this line has no closing line '{}': it includes the rest of the script",
            printable(heredoc.delimiter)));
  }
}

bool is_set(const Script& script, std::string_view word, char letter) {
  if (script.text.substr(0, script.text.find('\n')).find(std::string(" -") + letter) != std::string::npos)
    return true;
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    if (call.program != "set") return false;
    return std::any_of(call.words.begin(), call.words.end(), [&](const std::string& each) {
      return each == word || (each.starts_with('-') && !each.starts_with("--") && letter != '\0' &&
                              each.find(letter) != std::string::npos);
    });
  });
}

bool is_last(const Script& script, const ProgramCall& call) {
  if (script.tree.list.items.empty()) return false;
  const bash::ShellPipeline& last = script.tree.list.items.back().pipeline;
  return call.span.begin >= last.span.begin && call.span.end <= last.span.end;
}

// No command follows the pipeline, also not in its loop.
bool is_very_last(const Script& script, const ProgramCall& call) {
  return is_last(script, call) &&
         std::none_of(script.calls.begin(), script.calls.end(),
                      [&](const ProgramCall& other) { return other.span.begin >= call.pipeline->span.end; });
}

// The last command with saved output: more than an inspection of the machine.
bool is_kept_work(const Script& script, const ProgramCall& call, std::string_view last) {
  constexpr std::array<std::string_view, 36> kInspections = {
      "seff",     "sstat",  "jobstats", "nproc",      "echo",  "printf", "cat",    "date", "ls",
      "hostname", "env",    "printenv", "nvidia-smi", "which", "pwd",    "module", "free", "lscpu",
      "uname",    "squeue", "scontrol", "sacct",      "df",    "du",     "find",   "pip",  "zcat",
      "gunzip",   "cut",    "tr",       "head",       "tail",  "grep",   "sed",    "awk",  "sort"};
  const bool keeps = is_one_of(last, {"tee", "gzip", "bgzip", "pigz", "tqdm"});
  return keeps && call.pipeline_index == 0 && call.context.loops == 0 && call.context.function.empty() &&
         is_last(script, call) && call.program_word == &call.pipeline->commands[0].words[0] &&
         std::find(kInspections.begin(), kInspections.end(), call.program) == kInspections.end();
}

// "for i in 1 2; do python a.py $i; done | tee log" as the last command.
void find_loop_into_tee(const Script& script, FindingReport& report) {
  if (script.tree.list.items.empty()) return;
  const bash::ShellPipeline& last = script.tree.list.items.back().pipeline;
  if (last.commands.size() < 2 || last.commands.back().words.empty()) return;
  const bash::ShellCommand& first = last.commands.front();
  const bool is_tee = flatten(last.commands.back().words[0], script.text) == "tee";
  if (!is_tee || first.parts.empty()) return;
  const auto work = std::find_if(script.calls.begin(), script.calls.end(), [&](const ProgramCall& call) {
    return call.span.begin >= first.span.begin && call.span.end <= first.span.end && is_work(call) &&
           !call.context.is_condition && !call.context.is_substituted;
  });
  if (work == script.calls.end()) return;
  report.insert_first(
      work->span,
      message(
          "a failed {} goes unnoticed: the pipe returns the exit code of {}, and the job ends as COMPLETED",
          work->program, "tee"),
      "set -o pipefail");
}

// "python train.py | exit 1" instead of ||: the output is lost, and the pipe has no reader.
void find_pipe_into_exit(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool is_exit = call.program == "exit" && call.pipeline_index > 0 && call.pipeline != nullptr &&
                         call.pipeline_index + 1 == call.pipeline->commands.size() &&
                         !call.context.is_substituted &&
                         call.program_word == &call.pipeline->commands.back().words[0];
    if (!is_exit) continue;
    const std::size_t bar = script.text.rfind('|', call.span.begin);
    report.replace({bar, bar + 1},
                   message("a pipe into exit: the output of the program is lost, and it fails when it "
                           "writes more; \"or\" in the shell is ||"),
                   "||");
  }
}

void find_hidden_failure(const Script& script, FindingReport& report) {
  find_pipe_into_exit(script, report);
  const bool has_pipefail = is_set(script, "pipefail", '\0') || script.mentions("PIPESTATUS");
  if (has_pipefail || script.request.directives.empty()) return;
  find_loop_into_tee(script, report);
  const bool stops = is_set(script, "errexit", 'e');
  constexpr std::array<std::string_view, 13> kHiding = {"tee", "cat",  "tail", "head",  "grep", "awk", "sed",
                                                        "ts",  "sort", "gzip", "bgzip", "pigz", "tqdm"};
  for (const ProgramCall& call : script.calls) {
    if (call.pipeline == nullptr || call.pipeline_index + 1 >= call.pipeline->commands.size() ||
        call.context.is_condition || call.context.is_substituted || call.context.launcher ||
        call.context.is_remote)
      continue;
    const bash::ShellCommand& end = call.pipeline->commands.back();
    const std::string name = end.words.empty() ? "" : flatten(end.words[0], script.text);
    if (std::find(kHiding.begin(), kHiding.end(), name) == kHiding.end()) continue;
    if (!is_work(call) && !is_kept_work(script, call, name)) continue;
    ScriptFinding& finding = report.insert_first(
        call.span,
        message(
            "a failed {} goes unnoticed: the pipe returns the exit code of {}, and the job ends as COMPLETED",
            call.program, name),
        "set -o pipefail");
    if (!stops && !is_very_last(script, call)) finding.level = Level::time;
  }
}

void find_masked_exit_code(const Script& script, FindingReport& report) {
  if (script.tree.list.items.size() < 2 || is_set(script, "errexit", 'e') ||
      script.request.directives.empty())
    return;
  constexpr std::array<std::string_view, 8> kSmall = {"echo", "date",       "printf", "sleep",
                                                      "true", "deactivate", "ls",     "hostname"};
  const auto is_small = [&](const ProgramCall& call) {
    return std::find(kSmall.begin(), kSmall.end(), call.program) != kSmall.end();
  };
  if (script.calls.empty() || !is_small(script.calls.back()) || !is_last(script, script.calls.back())) return;
  const ProgramCall& last = script.calls.back();
  const auto work = std::find_if(script.calls.rbegin(), script.calls.rend(), [](const ProgramCall& call) {
    return is_work(call) && !call.context.launcher;
  });
  const bool is_plain = work != script.calls.rend() && !work->context.is_condition &&
                        !work->context.is_background && work->context.function.empty() &&
                        work->pipeline_index + 1 == work->pipeline->commands.size();
  if (!is_plain || last.context.is_condition || last.context.loops > 0 || script.mentions("$?")) return;
  report
      .add(last.span, message("the job ends with the exit code of {}: COMPLETED, even if {} failed",
                              last.program, work->program))
      .fix = message("set -e    (after the #SBATCH lines)");
}

// Copies, moves or packs files to permanent storage.
bool copies_results(const ProgramCall& call) {
  constexpr std::array<std::string_view, 9> kNames = {"cp",  "rsync",  "mv",      "tar", "scp",
                                                      "zip", "rclone", "sgather", "ln"};
  if (std::find(kNames.begin(), kNames.end(), call.program) == kNames.end() || call.words.empty())
    return false;
  return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
    return !is_local_path(word) &&
           (word.starts_with('/') || word.starts_with('~') || word.find('$') != std::string::npos ||
            word.starts_with("..") || word.find(':') != std::string::npos);
  });
}

// A word that may name a path outside the node-local disk.
bool is_outside_node(const std::string& word) {
  const std::size_t start = word.find('=') == std::string::npos ? 0 : word.find('=') + 1;
  const std::string_view value = std::string_view(word).substr(start);
  if (value.empty() || is_local_path(value)) return false;
  return value.front() == '/' || value.front() == '~' || value.find('$') != std::string_view::npos ||
         value.starts_with("..");
}

// "cd /local/me/project" without a preceding copy: the folder is permanent.
bool was_there_before(const Script& script, const ProgramCall& call) {
  if (!call.directory.starts_with("/local/") || call.directory.find('$') != std::string::npos) return false;
  for (const ProgramCall& other : script.calls) {
    if (&other == &call) break;
    if (is_one_of(other.program, {"cp", "rsync", "tar", "unzip", "git", "mkdir", "mktemp", "scp", "mv",
                                  "wget", "curl", "ln", "rclone", "virtualenv", "install"}))
      return false;
  }
  return true;
}

void find_results_left(const Script& script, FindingReport& report) {
  bool results_are_copied = false;         // by a function, wherever it is called
  const ProgramCall* last_copy = nullptr;  // or a possible copy
  for (const ProgramCall& call : script.calls) {
    const bool copies = copies_results(call);
    results_are_copied = results_are_copied || (copies && !call.context.function.empty());
    if (copies || call.program.ends_with(".sh") || call.program == "bash" || call.program == "sh")
      last_copy = &call;
  }
  for (const ProgramCall& call : script.calls) {
    const bool is_here = is_local_path(call.directory) && is_work(call) && !is_launcher(call.program) &&
                         !call.context.is_remote;
    if (!is_here || was_there_before(script, call) ||
        std::any_of(call.words.begin(), call.words.end(), is_outside_node))
      continue;
    const bool is_safe = results_are_copied || &call < last_copy;
    if (is_safe || !call.command->redirections.empty()) continue;
    const ProgramCall* launcher = script.launcher_of(call);
    const std::string what =
        !call.words.empty() && call.words[0].ends_with(".py") ? call.words[0] : call.program;
    report
        .add(launcher != nullptr ? launcher->span : call.span,
             message("{} runs in {}, which is deleted after the job, and no results are copied",
                     printable(what), printable(call.directory)))
        .fix = message("cp -r results \"$SLURM_SUBMIT_DIR\"/    (after this line)");
    return;
  }
}

// The program and the file it runs: "python train.py".
std::string command_key(const ProgramCall& call) {
  const auto file = std::find_if(call.words.begin(), call.words.end(),
                                 [](const std::string& word) { return word.ends_with(".py"); });
  return call.program + " " + (file == call.words.end() ? "" : *file);
}

// One rank of a group that ends together.
bool is_rank(const ProgramCall& call) {
  return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
    return word.starts_with("--rank") || word.starts_with("--node_rank") || word.starts_with("--local_rank");
  });
}

// "python a.py --seed 1 &" before "python a.py --seed 2" without wait: the job ends with the second command.
void find_cut_off(const Script& script, FindingReport& report) {
  const bool waits = std::any_of(script.calls.begin(), script.calls.end(),
                                 [](const ProgramCall& call) { return call.program == "wait"; });
  if (waits || script.calls.empty()) return;
  const ProgramCall& last = script.calls.back();
  const bool is_plain = is_last(script, last) && is_work(last) && !last.context.is_background &&
                        !last.context.is_condition && last.context.loops == 0 && !last.context.launcher;
  if (!is_plain) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_alike = &call != &last && !is_rank(call) && call.context.is_background &&
                          !call.context.launcher && is_work(call) && command_key(call) == command_key(last);
    if (!is_alike) continue;
    const std::size_t end = script.text.size();
    ScriptFinding& finding = report.add(
        call.span, message("this runs in the background, and the job ends with {} after it: Slurm kills it",
                           last.program));
    finding.edits = {{end, end, script.text.ends_with('\n') ? "wait\n" : "\nwait\n"}};
    finding.fix = message("wait    (as the last line)");
    return;
  }
}

// Commands that only print or clean up.
bool is_trailer(const bash::Item& item, const Script& script) {
  return std::all_of(
      item.pipeline.commands.begin(), item.pipeline.commands.end(), [&](const bash::ShellCommand& each) {
        if (each.kind != bash::CommandKind::simple) return false;
        return each.words.empty() || is_one_of(flatten(each.words[0], script.text),
                                               {"echo", "date", "printf", "hostname", "exit", "deactivate",
                                                "pwd", "true", "module", "export", "unset"});
      });
}

// The last item of the script, ignoring trailing messages.
const bash::Item& last_work(const Script& script) {
  const auto& items = script.tree.list.items;
  std::size_t at = items.size() - 1;
  while (at > 0 && items[at].next != bash::Connector::background && is_trailer(items[at], script)) --at;
  return items[at];
}

// "screen -dmS name python train.py", "tmux new -d": they return at once.
void find_detached(const Script& script, FindingReport& report) {
  const ProgramCall* detached = nullptr;
  for (const ProgramCall& call : script.calls) {
    if (detached != nullptr && is_one_of(call.program, {"wait", "sleep", "tail", "while", "read"})) return;
    const bool is_screen = call.program == "screen" && !call.words.empty() &&
                           (call.words[0].starts_with("-d") || call.words[0].starts_with("-Sdm"));
    const bool is_tmux = call.program == "tmux" && call.has("-d");
    if (is_screen || is_tmux)
      detached = &call;
    else if (detached != nullptr && is_work(call))
      return;
  }
  if (detached == nullptr) return;
  report
      .add(detached->span,
           message("{} returns at once: the script ends, and Slurm kills its processes", detached->program))
      .fix = message("run the command without {}", detached->program);
}

void find_no_wait(const Script& script, FindingReport& report) {
  if (script.tree.list.items.empty() || script.tree.error || script.request.directives.empty()) return;
  find_cut_off(script, report);
  find_detached(script, report);
  const bash::Item& last = last_work(script);
  bool is_background = last.next == bash::Connector::background;
  if (!is_background && last.pipeline.commands.size() == 1) {
    const bash::ShellCommand& loop = last.pipeline.commands[0];
    const bool is_loop = loop.kind == bash::CommandKind::for_ || loop.kind == bash::CommandKind::while_;
    is_background = is_loop && !loop.parts.empty() && !loop.parts.back().items.empty() &&
                    loop.parts.back().items.back().next == bash::Connector::background;
  }
  const std::size_t begin = last.pipeline.span.begin;
  for (const ProgramCall& call : script.calls) {
    if (call.span.begin >= begin && is_one_of(call.program, {"wait", "sbatch", "sleep", "tail", "read"}))
      return;
  }
  if (!is_background) return;
  const std::size_t end = script.text.size();
  ScriptFinding& finding = report.add(
      {begin, begin}, message("the script ends while this runs in the background: Slurm kills it"));
  finding.edits = {{end, end, script.text.ends_with('\n') ? "wait\n" : "\nwait\n"}};
  finding.fix = message("wait    (as the last line)");
}

bool lists_by_time(const bash::ShellCommand& command, const Script& script) {
  std::vector<std::string> words;
  for (const bash::Word& word : command.words) words.push_back(flatten(word, script.text));
  const auto ls = std::find(words.begin(), words.end(), "ls");
  if (ls == words.end() || (ls != words.begin() && words[0] != "xargs")) return false;
  return std::any_of(ls, words.end(), [](const std::string& word) {
    return word.starts_with('-') && !word.starts_with("--") && word.find('t') != std::string::npos;
  });
}

void find_newest_by_time(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    if (!call.context.is_substituted || call.pipeline_index != 0 || call.pipeline == nullptr ||
        call.pipeline->commands.size() < 2)
      continue;
    const auto& commands = call.pipeline->commands;
    const std::string last =
        commands.back().words.empty() ? "" : flatten(commands.back().words[0], script.text);
    const bool sorts = std::any_of(commands.begin(), commands.end(), [&](const bash::ShellCommand& each) {
      return lists_by_time(each, script);
    });
    if ((last != "head" && last != "tail") || !sorts || call.program_word != &commands[0].words[0]) continue;
    const std::string text = to_lower(script.at(script.line_of(call.pipeline->span.begin)));
    const bool is_checkpoint = text.find("ckpt") != std::string::npos ||
                               text.find("checkpoint") != std::string::npos ||
                               text.find(".pt") != std::string::npos || text.find(".h5") != std::string::npos;
    if (!is_checkpoint) continue;
    report
        .add(call.pipeline->span, message("the newest file may be a checkpoint that was truncated during "
                                          "writing, and every later link fails on it"))
        .fix = "stoker checkpoint latest FOLDER";
  }
}

constexpr Rule kEndingRules[] = {
    {"syntax", Level::job, "the shell stops at a syntax error", "#!/bin/bash\nif true; then\n  ./a\n",
     "#!/bin/bash\nif true; then\n  ./a\nfi\n", "bash -n", find_syntax},
    {"open-heredoc", Level::job, "a here-document without its closing line includes the rest of the script",
     "#!/bin/bash\ncat <<EOF > a\nb\n EOF\n./run\n", "#!/bin/bash\ncat <<EOF > a\nb\nEOF\n./run\n",
     "bash(1), here-documents", find_open_heredoc},
    {"hidden-failure", Level::job,
     "a pipe returns the exit code of its last command, even if the first one failed",
     "#!/bin/bash\n#SBATCH -n 1\npython train.py | tee log\n",
     "#!/bin/bash\n#SBATCH -n 1\nset -o pipefail\npython train.py | tee log\n", "bash(1), pipelines",
     find_hidden_failure},
    {"masked-exit-code", Level::advice, "a script returns the exit code of its last command",
     "#!/bin/bash\n#SBATCH -n 1\npython train.py\necho done\n",
     "#!/bin/bash\n#SBATCH -n 1\nset -e\npython train.py\necho done\n", "bash(1)", find_masked_exit_code},
    {"results-left", Level::job, "the node-local disk is emptied when the job ends",
     "#!/bin/bash\n#SBATCH -n 1\ncd $SLURM_TMPDIR\npython train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd $SLURM_TMPDIR\npython train.py\ncp -r out $SLURM_SUBMIT_DIR\n",
     "sites' guides to node-local storage", find_results_left},
    {"no-wait", Level::job, "processes in the background are killed when the script ends",
     "#!/bin/bash\n#SBATCH -n 2\nfor i in 1 2; do\n  python train.py $i &\ndone\n",
     "#!/bin/bash\n#SBATCH -n 2\nfor i in 1 2; do\n  python train.py $i &\ndone\nwait\n",
     "sites' guides to packing jobs", find_no_wait},
    {"newest-by-time", Level::time, "the newest file was being written when the previous job was killed",
     "#!/bin/bash\nLAST=$(ls -t ckpt/*.pt | head -1)\n",
     "#!/bin/bash\nLAST=$(stoker checkpoint latest ckpt)\n", "a site's machine-learning tutorial",
     find_newest_by_time},
};

}  // namespace

std::span<const Rule> ending_rules() { return kEndingRules; }

}  // namespace stoker::script_lint
