// Rules over how a job ends: what is lost with the node's disk, and what hides that a program failed.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

void find_syntax(const Script& script, Report& report) {
  if (!script.tree.error) return;
  const std::size_t at = std::min(script.tree.error->at, script.text.size());
  report.add({at, at}, report.say("{}: the shell stops here", script.tree.error->in(report.place().words)));
}

void find_open_heredoc(const Script& script, Report& report) {
  for (const bash::Heredoc& heredoc : script.tree.heredocs) {
    if (heredoc.is_closed || heredoc.body.begin >= heredoc.body.end) continue;
    const std::size_t begin = heredoc.body.begin == 0 ? 0 : heredoc.body.begin - 1;
    report.add({begin, begin},
               report.say("the text that begins behind this line is never closed by a line '{}': "
                          "all that follows is part of it",
                          printable(heredoc.delimiter)));
  }
}

bool is_set(const Script& script, std::string_view word, char letter) {
  if (script.text.substr(0, script.text.find('\n')).find(std::string(" -") + letter) != std::string::npos)
    return true;
  return std::any_of(script.calls.begin(), script.calls.end(), [&](const Call& call) {
    if (call.program != "set") return false;
    return std::any_of(call.words.begin(), call.words.end(), [&](const std::string& each) {
      return each == word || (each.starts_with('-') && !each.starts_with("--") && letter != '\0' &&
                              each.find(letter) != std::string::npos);
    });
  });
}

bool is_last(const Script& script, const Call& call) {
  if (script.tree.list.items.empty()) return false;
  const bash::Pipeline& last = script.tree.list.items.back().pipeline;
  return call.span.begin >= last.span.begin && call.span.end <= last.span.end;
}

// Nothing is run behind the pipe, in the loop that it is part of neither.
bool is_very_last(const Script& script, const Call& call) {
  return is_last(script, call) &&
         std::none_of(script.calls.begin(), script.calls.end(),
                      [&](const Call& other) { return other.span.begin >= call.pipeline->span.end; });
}

// The last command of a script, whose words are kept: worth more than a look at the machine.
bool is_kept_work(const Script& script, const Call& call, std::string_view last) {
  constexpr std::array<std::string_view, 36> kLooks = {
      "seff",     "sstat",  "jobstats", "nproc",      "echo",  "printf", "cat",    "date", "ls",
      "hostname", "env",    "printenv", "nvidia-smi", "which", "pwd",    "module", "free", "lscpu",
      "uname",    "squeue", "scontrol", "sacct",      "df",    "du",     "find",   "pip",  "zcat",
      "gunzip",   "cut",    "tr",       "head",       "tail",  "grep",   "sed",    "awk",  "sort"};
  const bool keeps = is_one_of(last, {"tee", "gzip", "bgzip", "pigz", "tqdm"});
  return keeps && call.place == 0 && call.context.loops == 0 && call.context.function.empty() &&
         is_last(script, call) && call.program_word == &call.pipeline->commands[0].words[0] &&
         std::find(kLooks.begin(), kLooks.end(), call.program) == kLooks.end();
}

// "for i in 1 2; do python a.py $i; done | tee log" as the last command.
void find_loop_into_tee(const Script& script, Report& report) {
  if (script.tree.list.items.empty()) return;
  const bash::Pipeline& last = script.tree.list.items.back().pipeline;
  if (last.commands.size() < 2 || last.commands.back().words.empty()) return;
  const bash::Command& first = last.commands.front();
  const bool is_tee = flat(last.commands.back().words[0], script.text) == "tee";
  if (!is_tee || first.parts.empty()) return;
  const auto work = std::find_if(script.calls.begin(), script.calls.end(), [&](const Call& call) {
    return call.span.begin >= first.span.begin && call.span.end <= first.span.end && is_work(call) &&
           !call.context.is_condition && !call.context.is_substituted;
  });
  if (work == script.calls.end()) return;
  report.insert_first(work->span,
                      report.say("a failed {} goes unnoticed: the exit code of the "
                                 "pipe is that of {}, and the job ends as COMPLETED",
                                 work->program, "tee"),
                      "set -o pipefail");
}

// "python train.py | exit 1", where || was meant: what the program says is lost, and the pipe's reader is
// gone.
void find_pipe_into_exit(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const bool is_exit = call.program == "exit" && call.place > 0 && call.pipeline != nullptr &&
                         call.place + 1 == call.pipeline->commands.size() && !call.context.is_substituted &&
                         call.program_word == &call.pipeline->commands.back().words[0];
    if (!is_exit) continue;
    const std::size_t bar = script.text.rfind('|', call.span.begin);
    report.replace(
        {bar, bar + 1},
        report.say("a pipe into exit: what the program before it says is lost, and it fails where it says "
                   "more; for \"or\" the shell has ||"),
        "||");
  }
}

void find_hidden_failure(const Script& script, Report& report) {
  find_pipe_into_exit(script, report);
  const bool has_pipefail = is_set(script, "pipefail", '\0') || script.mentions("PIPESTATUS");
  if (has_pipefail || script.request.directives.empty()) return;
  find_loop_into_tee(script, report);
  const bool stops = is_set(script, "errexit", 'e');
  constexpr std::array<std::string_view, 13> kHiding = {"tee", "cat",  "tail", "head",  "grep", "awk", "sed",
                                                        "ts",  "sort", "gzip", "bgzip", "pigz", "tqdm"};
  for (const Call& call : script.calls) {
    if (call.pipeline == nullptr || call.place + 1 >= call.pipeline->commands.size() ||
        call.context.is_condition || call.context.is_substituted || call.context.launcher ||
        call.context.is_remote)
      continue;
    const bash::Command& end = call.pipeline->commands.back();
    const std::string name = end.words.empty() ? "" : flat(end.words[0], script.text);
    if (std::find(kHiding.begin(), kHiding.end(), name) == kHiding.end()) continue;
    if (!is_work(call) && !is_kept_work(script, call, name)) continue;
    ScriptFinding& finding =
        report.insert_first(call.span,
                            report.say("a failed {} goes unnoticed: the exit code of the "
                                       "pipe is that of {}, and the job ends as COMPLETED",
                                       call.program, name),
                            "set -o pipefail");
    if (!stops && !is_very_last(script, call)) finding.level = Level::time;
  }
}

void find_last_word(const Script& script, Report& report) {
  if (script.tree.list.items.size() < 2 || is_set(script, "errexit", 'e') ||
      script.request.directives.empty())
    return;
  constexpr std::array<std::string_view, 8> kSmall = {"echo", "date",       "printf", "sleep",
                                                      "true", "deactivate", "ls",     "hostname"};
  const auto is_small = [&](const Call& call) {
    return std::find(kSmall.begin(), kSmall.end(), call.program) != kSmall.end();
  };
  if (script.calls.empty() || !is_small(script.calls.back()) || !is_last(script, script.calls.back())) return;
  const Call& last = script.calls.back();
  const auto work = std::find_if(script.calls.rbegin(), script.calls.rend(),
                                 [](const Call& call) { return is_work(call) && !call.context.launcher; });
  const bool is_plain = work != script.calls.rend() && !work->context.is_condition &&
                        !work->context.is_background && work->context.function.empty() &&
                        work->place + 1 == work->pipeline->commands.size();
  if (!is_plain || last.context.is_condition || last.context.loops > 0 || script.mentions("$?")) return;
  report
      .add(last.span, report.say("the job ends with the exit code of {}: COMPLETED, even when {} has failed",
                                 last.program, work->program))
      .fix = report.say("set -e    (behind the #SBATCH lines)");
}

// Copies, moves or packs something to a place that outlives the job.
bool brings_back(const Call& call) {
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

// A word that may name a place outside the node's disk.
bool leads_out(const std::string& word) {
  const std::size_t start = word.find('=') == std::string::npos ? 0 : word.find('=') + 1;
  const std::string_view value = std::string_view(word).substr(start);
  if (value.empty() || is_local_path(value)) return false;
  return value.front() == '/' || value.front() == '~' || value.find('$') != std::string_view::npos ||
         value.starts_with("..");
}

// "cd /local/me/project" to what nothing of the script has put there: it was there before, and stays.
bool was_there_before(const Script& script, const Call& call) {
  if (!call.directory.starts_with("/local/") || call.directory.find('$') != std::string::npos) return false;
  for (const Call& other : script.calls) {
    if (&other == &call) break;
    if (is_one_of(other.program, {"cp", "rsync", "tar", "unzip", "git", "mkdir", "mktemp", "scp", "mv",
                                  "wget", "curl", "ln", "rclone", "virtualenv", "install"}))
      return false;
  }
  return true;
}

void find_results_left(const Script& script, Report& report) {
  bool is_brought_back = false;     // by a function, wherever it is called
  const Call* last_copy = nullptr;  // or what may be one
  for (const Call& call : script.calls) {
    const bool copies = brings_back(call);
    is_brought_back = is_brought_back || (copies && !call.context.function.empty());
    if (copies || call.program.ends_with(".sh") || call.program == "bash" || call.program == "sh")
      last_copy = &call;
  }
  for (const Call& call : script.calls) {
    const bool is_here = is_local_path(call.directory) && is_work(call) && !is_launcher(call.program) &&
                         !call.context.is_remote;
    if (!is_here || was_there_before(script, call) ||
        std::any_of(call.words.begin(), call.words.end(), leads_out))
      continue;
    const bool is_safe = is_brought_back || &call < last_copy;
    if (is_safe || !call.command->redirections.empty()) continue;
    const Call* launcher = script.launcher_of(call);
    const std::string what =
        !call.words.empty() && call.words[0].ends_with(".py") ? call.words[0] : call.program;
    report
        .add(launcher != nullptr ? launcher->span : call.span,
             report.say("{} runs in {}, which is emptied after the job, and nothing is copied back",
                        printable(what), printable(call.directory)))
        .fix = report.say("cp -r results \"$SLURM_SUBMIT_DIR\"/    (behind this line)");
    return;
  }
}

// The program and the file it runs: "python train.py".
std::string what_it_runs(const Call& call) {
  const auto file = std::find_if(call.words.begin(), call.words.end(),
                                 [](const std::string& word) { return word.ends_with(".py"); });
  return call.program + " " + (file == call.words.end() ? "" : *file);
}

// One of several ranks, which end together.
bool is_rank(const Call& call) {
  return std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
    return word.starts_with("--rank") || word.starts_with("--node_rank") || word.starts_with("--local_rank");
  });
}

// "python a.py --seed 1 &" before "python a.py --seed 2", and no wait: the second one's end is the first
// one's.
void find_cut_off(const Script& script, Report& report) {
  const bool waits = std::any_of(script.calls.begin(), script.calls.end(),
                                 [](const Call& call) { return call.program == "wait"; });
  if (waits || script.calls.empty()) return;
  const Call& last = script.calls.back();
  const bool is_plain = is_last(script, last) && is_work(last) && !last.context.is_background &&
                        !last.context.is_condition && last.context.loops == 0 && !last.context.launcher;
  if (!is_plain) return;
  for (const Call& call : script.calls) {
    const bool is_alike = &call != &last && !is_rank(call) && call.context.is_background &&
                          !call.context.launcher && is_work(call) && what_it_runs(call) == what_it_runs(last);
    if (!is_alike) continue;
    const std::size_t end = script.text.size();
    ScriptFinding& finding = report.add(
        call.span, report.say("this runs in the background, and the job ends with the {} behind it: "
                              "Slurm kills it where it is then",
                              last.program));
    finding.edits = {{end, end, script.text.ends_with('\n') ? "wait\n" : "\nwait\n"}};
    finding.fix = report.say("wait    (as the last line)");
    return;
  }
}

// Commands that say something and are done.
bool is_small_talk(const bash::Item& item, const Script& script) {
  return std::all_of(
      item.pipeline.commands.begin(), item.pipeline.commands.end(), [&](const bash::Command& each) {
        if (each.kind != bash::CommandKind::simple) return false;
        return each.words.empty() || is_one_of(flat(each.words[0], script.text),
                                               {"echo", "date", "printf", "hostname", "exit", "deactivate",
                                                "pwd", "true", "module", "export", "unset"});
      });
}

// What the script ends with, words to the reader left out.
const bash::Item& last_work(const Script& script) {
  const auto& items = script.tree.list.items;
  std::size_t at = items.size() - 1;
  while (at > 0 && items[at].next != bash::Connector::background && is_small_talk(items[at], script)) --at;
  return items[at];
}

// "screen -dmS name python train.py", "tmux new -d": they return at once.
void find_detached(const Script& script, Report& report) {
  const Call* detached = nullptr;
  for (const Call& call : script.calls) {
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
           report.say("{} returns at once: the script ends, and Slurm kills what it has started",
                      detached->program))
      .fix = report.say("the command itself, without {}", detached->program);
}

void find_no_wait(const Script& script, Report& report) {
  if (script.tree.list.items.empty() || script.tree.error || script.request.directives.empty()) return;
  find_cut_off(script, report);
  find_detached(script, report);
  const bash::Item& last = last_work(script);
  bool is_background = last.next == bash::Connector::background;
  if (!is_background && last.pipeline.commands.size() == 1) {
    const bash::Command& loop = last.pipeline.commands[0];
    const bool is_loop = loop.kind == bash::CommandKind::for_ || loop.kind == bash::CommandKind::while_;
    is_background = is_loop && !loop.parts.empty() && !loop.parts.back().items.empty() &&
                    loop.parts.back().items.back().next == bash::Connector::background;
  }
  const std::size_t begin = last.pipeline.span.begin;
  for (const Call& call : script.calls) {
    if (call.span.begin >= begin && is_one_of(call.program, {"wait", "sbatch", "sleep", "tail", "read"}))
      return;
  }
  if (!is_background) return;
  const std::size_t end = script.text.size();
  ScriptFinding& finding = report.add(
      {begin, begin},
      report.say(
          "the script ends while this runs in the background, and the job with it: Slurm kills it at once"));
  finding.edits = {{end, end, script.text.ends_with('\n') ? "wait\n" : "\nwait\n"}};
  finding.fix = report.say("wait    (as the last line)");
}

bool lists_by_time(const bash::Command& command, const Script& script) {
  std::vector<std::string> words;
  for (const bash::Word& word : command.words) words.push_back(flat(word, script.text));
  const auto ls = std::find(words.begin(), words.end(), "ls");
  if (ls == words.end() || (ls != words.begin() && words[0] != "xargs")) return false;
  return std::any_of(ls, words.end(), [](const std::string& word) {
    return word.starts_with('-') && !word.starts_with("--") && word.find('t') != std::string::npos;
  });
}

void find_newest_by_time(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    if (!call.context.is_substituted || call.place != 0 || call.pipeline == nullptr ||
        call.pipeline->commands.size() < 2)
      continue;
    const auto& commands = call.pipeline->commands;
    const std::string last = commands.back().words.empty() ? "" : flat(commands.back().words[0], script.text);
    const bool sorts = std::any_of(commands.begin(), commands.end(),
                                   [&](const bash::Command& each) { return lists_by_time(each, script); });
    if ((last != "head" && last != "tail") || !sorts || call.program_word != &commands[0].words[0]) continue;
    const std::string text = to_lower(script.at(script.line_of(call.pipeline->span.begin)));
    const bool is_checkpoint = text.find("ckpt") != std::string::npos ||
                               text.find("checkpoint") != std::string::npos ||
                               text.find(".pt") != std::string::npos || text.find(".h5") != std::string::npos;
    if (!is_checkpoint) continue;
    report
        .add(call.pipeline->span,
             report.say(
                 "the newest file may be a checkpoint that was cut off while it was written, and every link "
                 "after it fails on that"))
        .fix = "stoker checkpoint latest FOLDER";
  }
}

constexpr Rule kEndingRules[] = {
    {"syntax", Level::job, "the shell stops at what it cannot read", "#!/bin/bash\nif true; then\n  ./a\n",
     "#!/bin/bash\nif true; then\n  ./a\nfi\n", "bash -n", find_syntax},
    {"open-heredoc", Level::job, "without its closing line a here-document takes the rest of the script",
     "#!/bin/bash\ncat <<EOF > a\nb\n EOF\n./run\n", "#!/bin/bash\ncat <<EOF > a\nb\nEOF\n./run\n",
     "bash(1), here-documents", find_open_heredoc},
    {"hidden-failure", Level::job,
     "a pipe ends with the exit code of its last command, whatever happened to the first",
     "#!/bin/bash\n#SBATCH -n 1\npython train.py | tee log\n",
     "#!/bin/bash\n#SBATCH -n 1\nset -o pipefail\npython train.py | tee log\n", "bash(1), pipelines",
     find_hidden_failure},
    {"last-word", Level::advice, "a script's exit code is that of its last command",
     "#!/bin/bash\n#SBATCH -n 1\npython train.py\necho done\n",
     "#!/bin/bash\n#SBATCH -n 1\nset -e\npython train.py\necho done\n", "bash(1)", find_last_word},
    {"results-left", Level::job, "the node's own disk is emptied when the job ends",
     "#!/bin/bash\n#SBATCH -n 1\ncd $SLURM_TMPDIR\npython train.py\n",
     "#!/bin/bash\n#SBATCH -n 1\ncd $SLURM_TMPDIR\npython train.py\ncp -r out $SLURM_SUBMIT_DIR\n",
     "sites' guides to node-local storage", find_results_left},
    {"no-wait", Level::job, "what still runs in the background when the script ends is killed",
     "#!/bin/bash\n#SBATCH -n 2\nfor i in 1 2; do\n  python train.py $i &\ndone\n",
     "#!/bin/bash\n#SBATCH -n 2\nfor i in 1 2; do\n  python train.py $i &\ndone\nwait\n",
     "sites' guides to packing jobs", find_no_wait},
    {"newest-by-time", Level::time,
     "the newest file is the one that was being written when the job before was killed",
     "#!/bin/bash\nLAST=$(ls -t ckpt/*.pt | head -1)\n",
     "#!/bin/bash\nLAST=$(stoker checkpoint latest ckpt)\n", "a site's machine-learning tutorial",
     find_newest_by_time},
};

}  // namespace

std::span<const Rule> ending_rules() { return kEndingRules; }

}  // namespace stoker::explain
