#include "draft/work.h"

#include <algorithm>
#include <array>
#include <span>

#include "script_lint/inner_command.h"
#include "stoker/text.h"

namespace stoker::draft {
namespace {

// Prints something and changes nothing.
bool is_informational(const ProgramCall& call) {
  constexpr std::array<std::string_view, 18> kNames = {
      "echo",     "printf", "date", "hostname", "pwd",   "which",  "nvidia-smi", "rocm-smi", "free",
      "printenv", "uname",  "env",  "sleep",    "sinfo", "squeue", "lscpu",      "df",       "whoami"};
  return std::find(kNames.begin(), kNames.end(), call.program) != kNames.end();
}

bool is_setup(const ProgramCall& call) {
  return call.program == "set" || call.program == "export" || call.program == "ulimit" ||
         call.program == "umask" || call.program == "shopt" || call.program == "wait" ||
         call.program == "unset" || call.program == "cd";
}

enum class UnitKind { output, setup, other, work };

UnitKind kind_of(const Unit& unit) {
  UnitKind kind = UnitKind::setup;  // assignments alone
  for (const ProgramCall* call : unit.calls) {
    if (call->context.is_substituted) continue;
    if (is_work(*call)) return UnitKind::work;
    const UnitKind own = is_informational(*call) ? UnitKind::output
                         : is_setup(*call)       ? UnitKind::setup
                                                 : UnitKind::other;
    kind = call == unit.calls.front() ? own : std::max(kind, own);
  }
  return unit.is_simple || kind == UnitKind::other ? kind : UnitKind::other;
}

// The first program that a launcher starts.
const ProgramCall* started_by(const Script& script, const Unit& unit, const ProgramCall& launcher) {
  const auto index = static_cast<std::size_t>(&launcher - script.calls.data());
  const auto found = std::find_if(unit.calls.begin(), unit.calls.end(), [&](const ProgramCall* call) {
    return call->context.launcher == index && call->command == launcher.command;
  });
  return found == unit.calls.end() ? nullptr : *found;
}

const ProgramCall* launcher_in(const Unit& unit) {
  const auto found = std::find_if(unit.calls.begin(), unit.calls.end(), [](const ProgramCall* call) {
    return is_launcher(call->program) && !call->context.is_substituted;
  });
  return found == unit.calls.end() ? nullptr : *found;
}

bool is_torchrun(const ProgramCall& call) {
  if (call.program == "torchrun") return true;
  const auto module = is_python(call.program) ? call.option("-m") : std::nullopt;
  return module && (*module == "torch.distributed.run" || *module == "torch.distributed.launch");
}

const ProgramCall* torchrun_in(const Unit& unit) {
  const auto found = std::find_if(unit.calls.begin(), unit.calls.end(),
                                  [](const ProgramCall* call) { return is_torchrun(*call); });
  return found == unit.calls.end() ? nullptr : *found;
}

// Index of the script among the words of torchrun; their count if unknown.
std::size_t script_index(const ProgramCall& call, bool* is_module) {
  constexpr std::array<std::string_view, 8> kFlags = {"--standalone", "--no_python",         "--no-python",
                                                      "--use_env",    "--use-env",           "--run-path",
                                                      "--run_path",   "--virtual-local-rank"};
  std::size_t i = 0;
  if (is_python(call.program)) {
    while (i < call.words.size() && call.words[i] != "-m") ++i;
    i += 2;
  }
  for (; i < call.words.size(); ++i) {
    const std::string& word = call.words[i];
    if (!word.starts_with('-')) return i;
    if (word == "-m" || word == "--module") {
      *is_module = true;
    } else if (word.find('=') == std::string::npos &&
               std::find(kFlags.begin(), kFlags.end(), word) == kFlags.end()) {
      ++i;  // its value
    }
  }
  return call.words.size();
}

std::optional<std::uint64_t> number_option(const ProgramCall& call,
                                           std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    auto value = call.option(name);
    // "-n4"
    for (const std::string& word : call.words) {
      if (!value && name.size() == 2 && word.starts_with(name) && word.size() > 2) value = word.substr(2);
    }
    std::uint64_t number = 0;
    if (value && parse_number(*value, &number) && number > 0) return number;
  }
  return std::nullopt;
}

class CommandFinder {
 public:
  CommandFinder(const Script& script, const WordExpander& words, JobFileDraft& job_file)
      : script_(script), words_(words), job_file_(job_file) {}

  Work find(const std::vector<Unit>& units, const std::vector<bool>& converted) {
    std::vector<const Unit*> rest, works, launched;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (converted[i]) continue;
      rest.push_back(&units[i]);
      if (kind_of(units[i]) != UnitKind::work) continue;
      works.push_back(&units[i]);
      if (launcher_in(units[i]) != nullptr || torchrun_in(units[i]) != nullptr) launched.push_back(&units[i]);
    }
    const bool has_ranks = script_.request.tasks() > 1 || script_.request.nodes() > 1;
    const bool is_agent = !launched.empty() && torchrun_in(*launched.back()) != nullptr;
    const bool can_be_ranks = !launched.empty() && launched.back()->is_simple && (has_ranks || is_agent);
    return can_be_ranks ? on_ranks(rest, *launched.back()) : once(rest, works);
  }

 private:
  void mark_unconverted(const Unit& unit, std::string why) {
    job_file_.unconverted.push_back({unit.line, summary(script_, unit), std::move(why)});
  }

  // Rewrites paths to the staged files.
  std::string rewrite_paths(std::string text) const {
    if (job_file_.unpack.empty() && job_file_.copy.empty() && job_file_.stage_out.empty()) return text;
    auto path_rewrites = job_file_.path_rewrites;
    std::stable_sort(path_rewrites.begin(), path_rewrites.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    path_rewrites.emplace_back("$SLURM_TMPDIR", "$STOKER_STAGE_DIR");
    for (const auto& [from, to] : path_rewrites) {
      const std::string name = from.substr(1, from.find('/') - 1);
      const std::string rest = from.substr(std::min(from.size(), name.size() + 1));
      for (const std::string& spelling : {format("${{{}}}{}", name, rest), from}) {
        for (std::size_t at = 0; (at = text.find(spelling, at)) != std::string::npos;) {
          const std::size_t end = at + spelling.size();
          const bool continues = end < text.size() && spelling.back() != '}' &&
                                 (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_');
          if (continues) {
            at = end;
            continue;
          }
          text.replace(at, spelling.size(), to);
          at += to.size();
        }
      }
    }
    return text;
  }

  // The expanded words of a command without shell syntax; empty otherwise.
  std::vector<std::string> plain(const bash::Word& program, std::span<const bash::Word* const> words) const {
    std::vector<std::string> all;
    const auto add = [&](const bash::Word& word) {
      const auto text = words_.literal(word);
      if (text) all.push_back(*text);
      return text.has_value() && text->find("SLURM_TMPDIR") == std::string::npos;
    };
    if (!add(program) || all.front().empty()) return {};
    for (const bash::Word* word : words) {
      if (!add(*word)) return {};
    }
    return all;
  }

  static bool is_single(const Unit& unit, const ProgramCall& call) {
    if (!unit.is_simple || call.pipeline == nullptr || call.pipeline->commands.size() != 1) return false;
    return call.command->redirections.empty() && call.command->assignments.empty();
  }

  // Variables and shell options for the command.
  std::string prelude(const std::vector<const Unit*>& rest, const Unit& work) {
    std::string lines;
    for (const Unit* unit : rest) {
      if (unit == &work) break;
      if (kind_of(*unit) == UnitKind::setup) lines += std::string(trim(script_.at(unit->span))) + "\n";
    }
    return lines;
  }

  Work on_ranks(const std::vector<const Unit*>& rest, const Unit& unit) {
    Work work;
    const ProgramCall* launcher = launcher_in(unit);
    const ProgramCall* agent = torchrun_in(unit);
    const ProgramCall* first = launcher == nullptr ? agent : started_by(script_, unit, *launcher);
    work.launch = agent != nullptr ? LaunchMode::torchrun : LaunchMode::ranks;
    if (launcher != nullptr && agent == nullptr) {
      work.per_node = number_option(*launcher, {"--ntasks-per-node", "--tasks-per-node", "-ppn", "--ppn"});
      work.all = number_option(*launcher, {"--ntasks", "-n", "-np", "--np"});
    } else if (agent != nullptr) {
      work.per_node = number_option(*agent, {"--nproc_per_node", "--nproc-per-node"});
      if (!work.per_node) work.per_node = script_.request.gpus_per_node();
    }
    bool needs_lines = false;
    for (const Unit* other : rest) {
      if (other == &unit) continue;
      const UnitKind kind = kind_of(*other);
      if (kind == UnitKind::setup) continue;
      mark_unconverted(*other, kind == UnitKind::work
                                   ? "is a second command: use a separate job file with `after:`"
                                   : "runs once and not on every rank");
    }
    const ProgramCall& outermost = *unit.calls.front();
    if (outermost.pipeline != nullptr && outermost.pipeline->commands.size() > 1)
      mark_unconverted(unit, "has a pipe: each rank's log has its output (stoker logs)");
    else if (outermost.command != nullptr &&
             std::any_of(outermost.command->redirections.begin(), outermost.command->redirections.end(),
                         [](const auto& r) { return !r.heredoc; }))
      mark_unconverted(unit, "writes to a file: each rank's log has its output (stoker logs)");
    if (agent != nullptr) {
      convert_agent(*agent, work, &needs_lines);
    } else if (first != nullptr) {
      work.words = plain(*first->program_word, first->typed);
      needs_lines = work.words.empty() || has_heredoc(*first);
      if (needs_lines)
        work.lines = has_heredoc(*first) ? heredoc_of(*first) : exec_line(*first->program_word, *first);
    } else {
      needs_lines = true;  // the started program is unknown
      work.lines = std::string(trim(script_.at(unit.span)));
    }
    if (needs_lines) {
      work.words.clear();
      work.lines = rewrite_paths(prelude(rest, unit) + work.lines) + "\n";
      count_arguments(rest, work);
    }
    return work;
  }

  bool has_heredoc(const ProgramCall& call) const {
    return std::any_of(call.command->redirections.begin(), call.command->redirections.end(),
                       [](const bash::Redirection& each) { return each.heredoc.has_value(); });
  }
  std::string heredoc_of(const ProgramCall& call) const {
    for (const bash::Redirection& each : call.command->redirections) {
      if (each.heredoc && *each.heredoc < script_.tree.heredocs.size())
        return std::string(trim(script_.at(script_.tree.heredocs[*each.heredoc].body)));
    }
    return "";
  }

  std::string exec_line(const bash::Word& program, const ProgramCall& call) const {
    const std::size_t end = call.typed.empty() ? program.span.end : call.typed.back()->span.end;
    return "exec " + std::string(script_.at({program.span.begin, end}));
  }

  // "torchrun --nproc_per_node=4 train.py --lr 1": python train.py --lr 1, started by launcher: torchrun.
  void convert_agent(const ProgramCall& agent, Work& work, bool* needs_lines) {
    bool is_module = false;
    const std::size_t at = script_index(agent, &is_module);
    if (at >= agent.typed.size()) {
      *needs_lines = true;
      work.lines = exec_line(*agent.program_word, agent);
      return;
    }
    const std::string python =
        is_python(agent.program) ? std::string(script_.at(agent.program_word->span)) : "python";
    const std::span<const bash::Word* const> rest(agent.typed.begin() + static_cast<std::ptrdiff_t>(at),
                                                  agent.typed.end());
    work.words = plain(*rest.front(), rest.subspan(1));
    if (work.words.empty()) {
      *needs_lines = true;
      work.lines = format("exec {} {}{}", python, is_module ? "-m " : "",
                          script_.at({rest.front()->span.begin, rest.back()->span.end}));
      return;
    }
    if (is_module) work.words.insert(work.words.begin(), "-m");
    work.words.insert(work.words.begin(), python);
  }

  Work once(const std::vector<const Unit*>& rest, const std::vector<const Unit*>& works) {
    Work work;
    const bool is_quiet = std::all_of(rest.begin(), rest.end(), [&](const Unit* unit) {
      const UnitKind kind = kind_of(*unit);
      const bool is_cd = std::any_of(unit->calls.begin(), unit->calls.end(),
                                     [](const ProgramCall* call) { return call->program == "cd"; });
      return kind == UnitKind::work || kind == UnitKind::output || (kind == UnitKind::setup && !is_cd);
    });
    if (is_quiet && works.size() == 1) {
      const Unit& unit = *works.front();
      const ProgramCall* launcher = launcher_in(unit);
      const ProgramCall* call =
          launcher == nullptr ? unit.calls.front() : started_by(script_, unit, *launcher);
      if (call != nullptr && is_single(unit, *call)) work.words = plain(*call->program_word, call->typed);
    }
    if (!work.words.empty()) {
      for (const Unit* unit : rest) {
        if (kind_of(*unit) == UnitKind::output) mark_unconverted(*unit, "is in the run's records");
      }
      return work;
    }
    const bool has_ranks = script_.request.tasks() > 1 || script_.request.nodes() > 1;
    for (const Unit* unit : rest) {
      if (has_ranks && launcher_in(*unit) != nullptr)
        mark_unconverted(
            *unit, "starts tasks in a way without a key: stoker submit SCRIPT submits the script unchanged");
      work.lines +=
          (has_ranks ? std::string(trim(script_.at(unit->span))) : text_without_launcher(*unit)) + "\n";
    }
    work.lines = rewrite_paths(std::move(work.lines));
    count_arguments(rest, work);
    return work;
  }

  // srun inside of a rank would wait for the step of the rank itself.
  std::string text_without_launcher(const Unit& unit) const {
    std::string text(script_.at(unit.span));
    const ProgramCall* launcher = launcher_in(unit);
    const ProgramCall* first = launcher == nullptr ? nullptr : started_by(script_, unit, *launcher);
    if (first != nullptr && launcher->span.begin >= unit.span.begin) {
      const std::size_t begin = launcher->program_word->span.begin - unit.span.begin;
      const std::size_t end = first->program_word->span.begin - unit.span.begin;
      if (begin < end && end <= text.size()) text.erase(begin, end - begin);
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

  void count_in(const bash::Word& word, Work& work) const {
    for (const bash::WordPiece& piece : word.pieces) {
      const bool is_argument = piece.kind == bash::PieceKind::variable && piece.text.size() == 1 &&
                               piece.text[0] >= '1' && piece.text[0] <= '9';
      if (is_argument)
        work.arguments =
            std::max<std::uint64_t>(work.arguments, static_cast<std::uint64_t>(piece.text[0] - '0'));
    }
  }
  void count_arguments(const std::vector<const Unit*>& rest, Work& work) const {
    for (const Unit* unit : rest) {
      for (const ProgramCall* call : unit->calls) {
        if (!call->context.function.empty()) continue;  // arguments of the function
        for (const bash::Word* word : call->typed) count_in(*word, work);
      }
      for (const VariableSetting* setting : unit->settings) count_in(setting->assignment->value, work);
    }
  }

  const Script& script_;
  const WordExpander& words_;
  JobFileDraft& job_file_;
};

}  // namespace

Work find_work(const Script& script, const WordExpander& words, const std::vector<Unit>& units,
               const std::vector<bool>& converted, JobFileDraft& job_file) {
  return CommandFinder(script, words, job_file).find(units, converted);
}

}  // namespace stoker::draft
