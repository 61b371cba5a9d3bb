// What a script runs, once what comes before it was taken: one command, or lines for a file of their own.
#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "explain/draft/sheet.h"

namespace stoker::explain::draft {
namespace {

// Says something and changes nothing.
bool is_talk(const Call& call) {
  constexpr std::array<std::string_view, 18> kNames = {
      "echo",     "printf", "date", "hostname", "pwd",   "which",  "nvidia-smi", "rocm-smi", "free",
      "printenv", "uname",  "env",  "sleep",    "sinfo", "squeue", "lscpu",      "df",       "whoami"};
  return std::find(kNames.begin(), kNames.end(), call.program) != kNames.end();
}

bool is_setting_up(const Call& call) {
  return call.program == "set" || call.program == "export" || call.program == "ulimit" ||
         call.program == "umask" || call.program == "shopt" || call.program == "wait" ||
         call.program == "unset" || call.program == "cd";
}

enum class Kind { talk, setting, other, work };

Kind kind_of(const Unit& unit) {
  Kind kind = Kind::setting;  // assignments alone
  for (const Call* call : unit.calls) {
    if (call->context.is_substituted) continue;
    if (is_work(*call)) return Kind::work;
    const Kind own = is_talk(*call) ? Kind::talk : is_setting_up(*call) ? Kind::setting : Kind::other;
    kind = call == unit.calls.front() ? own : std::max(kind, own);
  }
  return unit.is_simple || kind == Kind::other ? kind : Kind::other;
}

// The first program that a launcher starts.
const Call* started_by(const Script& script, const Unit& unit, const Call& launcher) {
  const auto index = static_cast<std::size_t>(&launcher - script.calls.data());
  const auto found = std::find_if(unit.calls.begin(), unit.calls.end(), [&](const Call* call) {
    return call->context.launcher == index && call->command == launcher.command;
  });
  return found == unit.calls.end() ? nullptr : *found;
}

const Call* launcher_in(const Unit& unit) {
  const auto found = std::find_if(unit.calls.begin(), unit.calls.end(), [](const Call* call) {
    return is_launcher(call->program) && !call->context.is_substituted;
  });
  return found == unit.calls.end() ? nullptr : *found;
}

bool is_torchrun(const Call& call) {
  if (call.program == "torchrun") return true;
  const auto module = is_python(call.program) ? call.option("-m") : std::nullopt;
  return module && (*module == "torch.distributed.run" || *module == "torch.distributed.launch");
}

const Call* torchrun_in(const Unit& unit) {
  const auto found =
      std::find_if(unit.calls.begin(), unit.calls.end(), [](const Call* call) { return is_torchrun(*call); });
  return found == unit.calls.end() ? nullptr : *found;
}

// Where the script of a torchrun begins among its words; their number when it cannot be told.
std::size_t script_of_agent(const Call& call, bool* is_module) {
  constexpr std::array<std::string_view, 8> kAlone = {"--standalone", "--no_python",         "--no-python",
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
               std::find(kAlone.begin(), kAlone.end(), word) == kAlone.end()) {
      ++i;  // its value
    }
  }
  return call.words.size();
}

std::optional<std::uint64_t> number_option(const Call& call, std::initializer_list<std::string_view> names) {
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

class Finder {
 public:
  Finder(const Script& script, const Words& words, Sheet& sheet)
      : script_(script), words_(words), sheet_(sheet) {}

  Work find(const std::vector<Unit>& units, const std::vector<bool>& taken) {
    std::vector<const Unit*> rest, works, launched;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (taken[i]) continue;
      rest.push_back(&units[i]);
      if (kind_of(units[i]) != Kind::work) continue;
      works.push_back(&units[i]);
      if (launcher_in(units[i]) != nullptr || torchrun_in(units[i]) != nullptr) launched.push_back(&units[i]);
    }
    const bool has_ranks = script_.request.tasks() > 1 || script_.request.nodes() > 1;
    const bool is_agent = !launched.empty() && torchrun_in(*launched.back()) != nullptr;
    const bool can_be_ranks = !launched.empty() && launched.back()->is_simple && (has_ranks || is_agent);
    return can_be_ranks ? on_ranks(rest, *launched.back()) : once(rest, works);
  }

 private:
  void leave(const Unit& unit, std::string why) {
    sheet_.left.push_back({unit.line, summary(script_, unit), std::move(why)});
  }

  // The script's text as the ranks need it: files are where Stoker brings them.
  std::string placed(std::string text) const {
    if (sheet_.unpack.empty() && sheet_.copy.empty() && sheet_.back.empty()) return text;
    auto places = sheet_.places;
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    places.emplace_back("$SLURM_TMPDIR", "$STOKER_STAGE_DIR");
    for (const auto& [from, to] : places) {
      const std::string name = from.substr(1, from.find('/') - 1);
      const std::string rest = from.substr(std::min(from.size(), name.size() + 1));
      for (const std::string& spelling : {format("${{{}}}{}", name, rest), from}) {
        for (std::size_t at = 0; (at = text.find(spelling, at)) != std::string::npos;) {
          const std::size_t end = at + spelling.size();
          const bool goes_on = end < text.size() && spelling.back() != '}' &&
                               (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_');
          if (goes_on) {
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

  // The words as they are when no shell is needed for any; empty else.
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

  static bool is_single(const Unit& unit, const Call& call) {
    if (!unit.is_simple || call.pipeline == nullptr || call.pipeline->commands.size() != 1) return false;
    return call.command->redirections.empty() && call.command->assignments.empty();
  }

  // Variables and options of the shell that the command may need.
  std::string prelude(const std::vector<const Unit*>& rest, const Unit& work) {
    std::string lines;
    for (const Unit* unit : rest) {
      if (unit == &work) break;
      if (kind_of(*unit) == Kind::setting) lines += std::string(trim(script_.at(unit->span))) + "\n";
    }
    return lines;
  }

  Work on_ranks(const std::vector<const Unit*>& rest, const Unit& unit) {
    Work work;
    const Call* launcher = launcher_in(unit);
    const Call* agent = torchrun_in(unit);
    const Call* first = launcher == nullptr ? agent : started_by(script_, unit, *launcher);
    work.start = agent != nullptr ? Start::torchrun : Start::ranks;
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
      const Kind kind = kind_of(*other);
      if (kind == Kind::setting) continue;
      leave(*other, kind == Kind::work ? "is another command: a job file of its own, with `after:`"
                                       : "runs once and not on every rank");
    }
    const Call& outermost = *unit.calls.front();
    if (outermost.pipeline != nullptr && outermost.pipeline->commands.size() > 1)
      leave(unit, "goes through a pipe: each rank's output is in its log (stoker logs)");
    else if (outermost.command != nullptr &&
             std::any_of(outermost.command->redirections.begin(), outermost.command->redirections.end(),
                         [](const auto& r) { return !r.heredoc; }))
      leave(unit, "writes into a file: each rank's output is in its log (stoker logs)");
    if (agent != nullptr) {
      take_agent(*agent, work, &needs_lines);
    } else if (first != nullptr) {
      work.words = plain(*first->program_word, first->typed);
      needs_lines = work.words.empty() || has_heredoc(*first);
      if (needs_lines)
        work.lines = has_heredoc(*first) ? heredoc_of(*first) : exec_line(*first->program_word, *first);
    } else {
      needs_lines = true;  // what it starts cannot be told
      work.lines = std::string(trim(script_.at(unit.span)));
    }
    if (needs_lines) {
      work.words.clear();
      work.lines = placed(prelude(rest, unit) + work.lines) + "\n";
      count_arguments(rest, work);
    }
    return work;
  }

  bool has_heredoc(const Call& call) const {
    return std::any_of(call.command->redirections.begin(), call.command->redirections.end(),
                       [](const bash::Redirection& each) { return each.heredoc.has_value(); });
  }
  std::string heredoc_of(const Call& call) const {
    for (const bash::Redirection& each : call.command->redirections) {
      if (each.heredoc && *each.heredoc < script_.tree.heredocs.size())
        return std::string(trim(script_.at(script_.tree.heredocs[*each.heredoc].body)));
    }
    return "";
  }

  std::string exec_line(const bash::Word& program, const Call& call) const {
    const std::size_t end = call.typed.empty() ? program.span.end : call.typed.back()->span.end;
    return "exec " + std::string(script_.at({program.span.begin, end}));
  }

  // "torchrun --nproc_per_node=4 train.py --lr 1": python train.py --lr 1, started by launcher: torchrun.
  void take_agent(const Call& agent, Work& work, bool* needs_lines) {
    bool is_module = false;
    const std::size_t at = script_of_agent(agent, &is_module);
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
      const Kind kind = kind_of(*unit);
      const bool is_cd = std::any_of(unit->calls.begin(), unit->calls.end(),
                                     [](const Call* call) { return call->program == "cd"; });
      return kind == Kind::work || kind == Kind::talk || (kind == Kind::setting && !is_cd);
    });
    if (is_quiet && works.size() == 1) {
      const Unit& unit = *works.front();
      const Call* launcher = launcher_in(unit);
      const Call* call = launcher == nullptr ? unit.calls.front() : started_by(script_, unit, *launcher);
      if (call != nullptr && is_single(unit, *call)) work.words = plain(*call->program_word, call->typed);
    }
    if (!work.words.empty()) {
      for (const Unit* unit : rest) {
        if (kind_of(*unit) == Kind::talk) leave(*unit, "is said by the run's records");
      }
      return work;
    }
    const bool has_ranks = script_.request.tasks() > 1 || script_.request.nodes() > 1;
    for (const Unit* unit : rest) {
      if (has_ranks && launcher_in(*unit) != nullptr)
        leave(*unit, "starts tasks in a way that has no key: stoker submit SCRIPT takes the script as it is");
      work.lines +=
          (has_ranks ? std::string(trim(script_.at(unit->span))) : text_without_launcher(*unit)) + "\n";
    }
    work.lines = placed(std::move(work.lines));
    count_arguments(rest, work);
    return work;
  }

  // srun of one task inside of a rank would wait for a step that the rank itself has.
  std::string text_without_launcher(const Unit& unit) const {
    std::string text(script_.at(unit.span));
    const Call* launcher = launcher_in(unit);
    const Call* first = launcher == nullptr ? nullptr : started_by(script_, unit, *launcher);
    if (first != nullptr && launcher->span.begin >= unit.span.begin) {
      const std::size_t begin = launcher->program_word->span.begin - unit.span.begin;
      const std::size_t end = first->program_word->span.begin - unit.span.begin;
      if (begin < end && end <= text.size()) text.erase(begin, end - begin);
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

  void count_in(const bash::Word& word, Work& work) const {
    for (const bash::Piece& piece : word.pieces) {
      const bool is_argument = piece.kind == bash::PieceKind::variable && piece.text.size() == 1 &&
                               piece.text[0] >= '1' && piece.text[0] <= '9';
      if (is_argument)
        work.arguments =
            std::max<std::uint64_t>(work.arguments, static_cast<std::uint64_t>(piece.text[0] - '0'));
    }
  }
  void count_arguments(const std::vector<const Unit*>& rest, Work& work) const {
    for (const Unit* unit : rest) {
      for (const Call* call : unit->calls) {
        if (!call->context.function.empty()) continue;  // those of the function
        for (const bash::Word* word : call->typed) count_in(*word, work);
      }
      for (const Setting* setting : unit->settings) count_in(setting->assignment->value, work);
    }
  }

  const Script& script_;
  const Words& words_;
  Sheet& sheet_;
};

}  // namespace

Work find_work(const Script& script, const Words& words, const std::vector<Unit>& units,
               const std::vector<bool>& taken, Sheet& sheet) {
  return Finder(script, words, sheet).find(units, taken);
}

}  // namespace stoker::explain::draft
