#include "script_lint/launches/launch_check.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/file.h"
#include "bash/parser.h"
#include "script_lint/inner_command.h"
#include "script_lint/launches/agent.h"
#include "script_lint/launches/task_layout.h"
#include "script_lint/rule.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr int kDeepestCall = 4;
constexpr std::size_t kMaxScripts = 32;  // called ones that are read
constexpr ByteCount kLargestCalled = 1_MiB;

// Values that differ between the copies of a command.
constexpr std::array<std::string_view, 12> kOfTask = {
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURMD_NODENAME",      "PMI_RANK",
    "PMIX_RANK",    "hostname",      "HOSTNAME",     "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
    "uuidgen",      "RANDOM"};
constexpr std::array<std::string_view, 3> kTaskNumbers = {"SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID"};
constexpr std::array<std::string_view, 4> kOfRank = {"$RANK", "$LOCAL_RANK", "$NODE_RANK", "$STOKER_RUN_"};

constexpr std::string_view kHeadNode = "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
constexpr std::string_view kPort = "$((10000 + SLURM_JOB_ID % 20000))";

// The problems of this model, and rules about the ranks and addresses of the started processes.
constexpr std::array<std::string_view, 8> kRankStartRules = {
    "separate-trainings",  "rendezvous",         "agent-per-task", "nested-launcher",
    "agent-on-first-node", "expanded-too-early", "master-address", "mpirun-per-task"};

using Names = std::set<std::string, std::less<>>;

// Where called scripts and configuration files are.
struct LaunchPlace {
  Path directory;
  slurm::Lookup environment;
  std::optional<double> as_of;
};

// A text whose commands start together in some layout.
struct LaunchUnit {
  const Script& script;
  TaskLayout layout;
  const std::map<std::string, std::string>* outer = nullptr;  // variables of the calling script
  std::optional<bash::Span> at = {};                          // in the outermost script; empty: this one
  std::string file = {};                                      // the called script; "" for the outermost one
  const ProgramCall* caller = nullptr;                        // its arguments are "$@"
  const Script* caller_script = nullptr;
  int depth = 0;
  std::string early_text = {};  // the early variable whose value this text is; "" for other texts
  Names early = {};             // with a task's number, but set before the tasks start: 0 in all of them
};

bool reads_any(const bash::Word& word, const Names& names) {
  return std::any_of(word.pieces.begin(), word.pieces.end(), [&](const bash::WordPiece& piece) {
    return piece.kind == bash::PieceKind::variable && names.contains(piece.text);
  });
}

// The early variables after the settings of this text: "NODE_RANK=$SLURM_NODEID", and variables that contain
// them.
Names early_names(const LaunchUnit& unit) {
  Names early = unit.early;
  if (unit.layout.has_copies()) {
    for (const VariableSetting& setting : unit.script.settings) early.erase(setting.name);
    return early;
  }
  early.insert(kTaskNumbers.begin(), kTaskNumbers.end());
  for (const VariableSetting& setting : unit.script.settings) {
    if (setting.is_command_scoped || setting.context.launcher || !reads_any(setting.assignment->value, early))
      continue;
    early.insert(setting.name);
  }
  // Read by the tasks themselves, or by the rule "expanded-too-early".
  for (std::string_view number : kTaskNumbers) early.erase(std::string(number));
  return early;
}

class LaunchCheck {
 public:
  LaunchCheck(JobCounts counts, LaunchPlace place, const job::Job* job)
      : counts_(counts), place_(std::move(place)), job_(job) {}

  void check(LaunchUnit unit) {
    unit.early = early_names(unit);
    for (const ProgramCall& call : unit.script.calls) {
      if (call.context.is_remote || problems_.size() >= kMaxScripts) continue;
      const ProgramCall* launcher = unit.script.launcher_of(call);
      const TaskLayout layout = launcher == nullptr ? unit.layout : layout_of(*launcher, inner_counts(unit));
      // Inside of a launcher that is reported itself.
      if (launcher != nullptr && unit.layout.has_copies()) continue;
      check_call(unit, call, launcher, layout);
    }
  }

  std::vector<LaunchProblem> take() { return std::move(problems_); }

 private:
  void check_call(const LaunchUnit& unit, const ProgramCall& call, const ProgramCall* launcher,
                  const TaskLayout& layout) {
    if (is_launcher(call.program)) {
      if (launcher == nullptr && layout.has_copies()) report_nested(unit, call, layout);
      return;
    }
    // Starts its ranks on all hosts through ssh.
    if (call.program == "horovodrun" && layout.has_copies()) return report_nested(unit, call, layout);
    const AgentContext context{unit.script, unit.outer, place_.directory, place_.environment, place_.as_of};
    if (const auto agent = read_agent(call, context)) {
      if (!layout.tasks) return;
      if (layout.has_copies()) return check_copies(unit, call, *agent, layout);
      return check_single(unit, call, *agent);
    }
    if (unit.depth >= kDeepestCall) return;
    if (const auto text = held_command(unit, call)) return check_text(unit, call, layout, *text);
    check_called(unit, call, layout);
  }

  // In the tasks of a step SLURM_NNODES and SLURM_NTASKS are the step's.
  JobCounts inner_counts(const LaunchUnit& unit) const {
    JobCounts counts = counts_;
    if (unit.layout.has_copies()) {
      counts.nodes = unit.layout.nodes;
      counts.tasks = unit.layout.tasks;
    }
    return counts;
  }

  // The text of "$CMD" or "${CMD[@]}" in the place of a program, or the arguments that "$@" runs.
  std::optional<std::string> held_command(const LaunchUnit& unit, const ProgramCall& call) const {
    const bash::WordPiece* variable =
        call.program_word == nullptr ? nullptr : only_variable(*call.program_word);
    if (variable == nullptr) return std::nullopt;
    const bash::WordPiece& piece = *variable;
    std::string text;
    if (piece.text == "@" || piece.text == "*") {
      if (unit.caller == nullptr) return std::nullopt;
      const std::size_t first = arguments_of(*unit.caller);
      if (first >= unit.caller->typed.size()) return std::nullopt;
      text = unit.caller_script->at(
          {unit.caller->typed[first]->span.begin, unit.caller->typed.back()->span.end});
      return text;
    }
    text = value_of(unit, "$" + piece.text);
    if (text.find(' ') == std::string::npos) return std::nullopt;
    if (!call.words.empty()) {
      const std::string_view typed =
          unit.script.at({call.typed.front()->span.begin, call.typed.back()->span.end});
      text += " " + value_of(unit, std::string(typed));
    }
    for (std::size_t at = 0; (at = text.find("\\\n", at)) != std::string::npos;) text.replace(at, 2, " ");
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  static std::string value_of(const LaunchUnit& unit, const std::string& text) {
    const std::string own = expand_variables(text, unit.script.variables);
    return unit.outer == nullptr ? own : expand_variables(own, *unit.outer);
  }

  // The index of the first argument of the script that the call runs.
  static std::size_t arguments_of(const ProgramCall& call) {
    if (!is_one_of(call.program, {"bash", "sh", "source", "."})) return 0;
    const auto file = std::find_if(call.words.begin(), call.words.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
    return static_cast<std::size_t>(file - call.words.begin()) + 1;
  }

  void check_text(const LaunchUnit& unit, const ProgramCall& call, const TaskLayout& layout,
                  std::string text) {
    const std::unique_ptr<Script> inner = read_script("command", std::move(text));
    std::map<std::string, std::string> variables = unit.script.variables;
    if (unit.outer != nullptr) variables.insert(unit.outer->begin(), unit.outer->end());
    LaunchUnit next{*inner, layout, &variables, unit.at ? unit.at : std::optional(call.span), unit.file};
    next.depth = unit.depth + 1;
    next.early = unit.early;
    next.early_text = early_name_in(unit, call);
    check(std::move(next));
  }

  // "bash run.sh", "./run.sh", "source run.sh"
  void check_called(const LaunchUnit& unit, const ProgramCall& call, const TaskLayout& layout) {
    const bool is_shell = is_one_of(call.program, {"bash", "sh", "source", "."});
    if (is_shell && (call.words.empty() || call.has("-c"))) return;
    std::string name = is_shell ? "" : flatten(*call.program_word, unit.script.text);
    if (is_shell) {
      const std::size_t at = arguments_of(call);
      if (at == 0 || at > call.words.size()) return;
      name = call.words[at - 1];
    } else if (!name.ends_with(".sh") && !name.ends_with(".bash") && !name.starts_with("./")) {
      return;
    }
    const auto text = read_called(unit, call, value_of(unit, name));
    if (!text) return;
    const std::unique_ptr<Script> inner = read_script(name, *text);
    if (!inner->is_shell) return;
    std::map<std::string, std::string> variables = unit.script.variables;
    if (unit.outer != nullptr) variables.insert(unit.outer->begin(), unit.outer->end());
    LaunchUnit next{*inner, layout, &variables, unit.at ? unit.at : std::optional(call.span),
                    printable(name)};
    next.caller = &call;
    next.caller_script = &unit.script;
    next.depth = unit.depth + 1;
    next.early = unit.early;
    check(std::move(next));
  }

  std::optional<std::string> read_called(const LaunchUnit& unit, const ProgramCall& call, std::string name) {
    for (std::string_view here : {"./", "$PWD/", "$SLURM_SUBMIT_DIR/"}) {
      if (name.starts_with(here)) name.erase(0, here.size());
    }
    const std::string& folder = call.directory;
    if (name.empty() || (name + folder).find_first_of("$`*?~") != std::string::npos) return std::nullopt;
    if (++scripts_ > kMaxScripts) return std::nullopt;
    const Path path = place_.directory / folder / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error) || has_changed_since(path, place_.as_of))
      return std::nullopt;
    // Its own name: a script that starts itself again for every task.
    if (unit.script.source->name() == name) return std::nullopt;
    auto text = read_file(path, kLargestCalled);
    if (!text.ok() || text->find('\0') != std::string::npos) return std::nullopt;
    return std::move(*text);
  }

  struct ProblemText {
    Message text;
    Message fix;
    std::optional<Edit> edit = {};
    LauncherCopies copies = {};
  };

  void report(std::string_view rule, const LaunchUnit& unit, const ProgramCall& call,
              ProblemText problem_text) {
    LaunchProblem problem{.rule = rule,
                          .at = unit.at.value_or(call.span),
                          .text = std::move(problem_text.text),
                          .fix = std::move(problem_text.fix),
                          .edit = std::nullopt,
                          .copies = problem_text.copies};
    if (!unit.at) problem.edit = std::move(problem_text.edit);
    if (!unit.file.empty()) {
      const std::uint32_t line = unit.script.source->mark(call.span.begin).line;
      problem.text = message("{}, line {}: {}", unit.file, line, problem.text);
    }
    problems_.push_back(std::move(problem));
  }

  // srun or mpirun in each of several tasks.
  void report_nested(const LaunchUnit& unit, const ProgramCall& call, const TaskLayout& layout) {
    if (job_ != nullptr) {
      report("nested-launcher", unit, call,
             {message("each of {} ranks starts {}, and each {} starts all tasks again", *layout.tasks,
                      call.program, call.program),
              message("run: the program without {}; Stoker starts it once per rank", call.program)});
    } else {
      report("nested-launcher", unit, call,
             {message("{} starts {} once for each of {} tasks, and each one starts all tasks again",
                      layout.starter, call.program, *layout.tasks),
              message("use one of the two: {}, or {}", layout.starter, call.program)});
    }
  }

  // One call in a job of several nodes, from a called script: rules report the calls of the script itself.
  void check_single(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent) {
    const bool is_relevant = job_ != nullptr || !unit.file.empty();
    if (!is_relevant || !agent.is_complete || agent.is_standalone || agent.kind == AgentKind::deepspeed)
      return;
    const auto machines = count_value(agent.machines.value_or("1"), inner_counts(unit));
    if (!machines || *machines < 2 || call.context.loops > 0 || call.context.is_background) return;
    report("rendezvous", unit, call,
           {message("{} starts once, and waits for {} machines until it times out", agent.name, *machines),
            job_ != nullptr ? job_cure(agent) : script_cure(agent)});
  }

  void check_copies(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                    const TaskLayout& layout) {
    if (!agent.is_complete || has_torch_variables(unit)) return;
    const std::uint64_t copies = *layout.tasks;
    if (agent.kind == AgentKind::deepspeed) return check_deepspeed(unit, call, agent, layout);
    const std::string machines = agent.machines.value_or("1");
    const std::size_t colon = machines.find(':');
    JobCounts counts = counts_;
    counts.nodes = layout.nodes;
    counts.tasks = layout.tasks;
    counts.tasks_per_node = layout.tasks_per_node();
    const auto least = count_value(machines.substr(0, colon), counts);
    const auto most = colon == std::string::npos ? least : count_value(machines.substr(colon + 1), counts);
    if (agent.is_standalone || most == 1) {
      if (is_meant_to_be_separate(unit, call) || is_single_process(unit, agent)) return;
      if (report_several_on_a_node(unit, call, agent, layout)) return;
      return report_separate(unit, call, agent, layout, most == 1);
    }
    if (most && *most < copies && report_several_on_a_node(unit, call, agent, layout)) return;
    if (least && *least > copies)
      return report_count(unit, call, agent,
                          message("{} waits for {} machines until it times out: {} starts only {}",
                                  agent.name, *least, starter(layout), copies));
    if (most && *most < copies)
      return report_count(unit, call, agent,
                          message("{} starts {} copies of {} for {} machines: the remaining copies fail",
                                  starter(layout), copies, agent.name, *most));
    check_rendezvous(unit, call, agent, layout);
    check_processes(unit, call, agent, least, counts);
  }

  // torchrun reads PET_NNODES, PET_NODE_RANK and similar variables.
  bool has_torch_variables(const LaunchUnit& unit) const {
    const auto is_torch = [](const VariableSetting& setting) { return setting.name.starts_with("PET_"); };
    if (std::any_of(unit.script.settings.begin(), unit.script.settings.end(), is_torch)) return true;
    if (unit.outer != nullptr && std::any_of(unit.outer->begin(), unit.outer->end(),
                                             [](const auto& each) { return each.first.starts_with("PET_"); }))
      return true;
    return job_ != nullptr &&
           std::any_of(job_->environment.variables.begin(), job_->environment.variables.end(),
                       [](const auto& each) { return each.first.starts_with("PET_"); });
  }

  std::string starter(const TaskLayout& layout) const {
    return job_ != nullptr ? "Stoker" : layout.starter.empty() ? "the job" : layout.starter;
  }

  // Each task has other arguments: a sweep.
  bool is_meant_to_be_separate(const LaunchUnit& unit, const ProgramCall& call) const {
    const auto differs = [&](std::string_view text) {
      const auto has = [&](std::string_view name) { return text.find(name) != std::string_view::npos; };
      return std::any_of(kOfTask.begin(), kOfTask.end(), has) ||
             (job_ != nullptr && std::any_of(kOfRank.begin(), kOfRank.end(), has));
    };
    if (differs(call.directory)) return true;
    for (const VariableSetting& setting : unit.script.settings) {
      if (setting.name.ends_with("_VISIBLE_DEVICES") && differs(setting.value)) return true;
    }
    bool is_place = false;  // of a rank or an address
    for (const std::string& raw : call.words) {
      const std::string word = value_of(unit, raw);
      const bool names_place =
          word.find("rank") != std::string::npos || word.find("master") != std::string::npos ||
          word.find("rdzv") != std::string::npos || word.find("main_process") != std::string::npos ||
          word.find("main-process") != std::string::npos;
      const bool is_place_option = word.starts_with("--") && names_place;
      if (!is_place && !is_place_option && differs(word)) return true;
      is_place = is_place_option && word.find('=') == std::string::npos;
    }
    return false;
  }

  // "accelerate launch --num_processes 1" passes RANK and WORLD_SIZE on to its process.
  bool is_single_process(const LaunchUnit& unit, const Agent& agent) const {
    if (agent.kind != AgentKind::accelerate || agent.processes != "1") return false;
    return job_ != nullptr || unit.script.names.is_set("RANK") || unit.script.names.is_set("WORLD_SIZE");
  }

  bool report_several_on_a_node(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                                const TaskLayout& layout) {
    const auto per_node = layout.tasks_per_node();
    if (!per_node || *per_node < 2 || agent.processes == "1" || agent.kind != AgentKind::torchrun)
      return false;
    std::optional<Edit> edit;
    const ProgramCall* launcher = unit.script.launcher_of(call);
    const bool can_edit =
        launcher != nullptr && launcher->program == "srun" &&
        option_value(launcher->words, {"--ntasks", "-n", "--ntasks-per-node", "-N"}) == std::nullopt;
    if (can_edit) {
      const std::size_t at = launcher->program_word->span.end;
      edit = Edit{at, at, " --ntasks=$SLURM_NNODES --ntasks-per-node=1"};
    }
    report(
        "agent-per-task", unit, call,
        {// several of both
         message("{} tasks on each node start one torchrun each, with {} ranks each: one per node is enough",
                 *per_node, printable(agent.processes.value_or("1"))),
         job_ != nullptr ? job_cure(agent)
         : can_edit      ? Message()
                         : Message("srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 torchrun …"),
         std::move(edit)});
    return true;
  }

  static LauncherCopies copies_of(const TaskLayout& layout) {
    return {.count = *layout.tasks, .per_node = layout.tasks_per_node().value_or(0)};
  }

  void report_separate(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                       const TaskLayout& layout, bool has_one_machine) {
    const std::string option = agent.kind == AgentKind::accelerate ? "--num_machines" : "--nnodes";
    const std::string why = agent.is_standalone || !has_one_machine ? "--standalone" : option + " is 1";
    report("separate-trainings", unit, call,
           {message("{} starts {} copies of {}, and each one trains separately ({})", starter(layout),
                    *layout.tasks, agent.name, why),
            job_ != nullptr ? job_cure(agent) : script_cure(agent), std::nullopt, copies_of(layout)});
  }

  void report_count(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                    const Message& text) {
    report("rendezvous", unit, call, {text, job_ != nullptr ? job_cure(agent) : script_cure(agent)});
  }

  void check_deepspeed(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                       const TaskLayout& layout) {
    if (agent.machine_rank || is_meant_to_be_separate(unit, call)) return;
    if (agent.machines == "1")
      return report(
          "separate-trainings", unit, call,
          {message("{} starts {} copies of deepspeed, and each one trains separately: without "
                   "--hostfile it uses the GPUs of its node",
                   starter(layout), *layout.tasks),
           job_ != nullptr ? job_cure(agent) : script_cure(agent), std::nullopt, copies_of(layout)});
    report("nested-launcher", unit, call,
           {message("{} starts {} copies of deepspeed, and each one starts all ranks again", starter(layout),
                    *layout.tasks),
            job_ != nullptr ? job_cure(agent) : message("deepspeed without {}", starter(layout))});
  }

  void check_rendezvous(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                        const TaskLayout& layout) {
    const Message cure = job_ != nullptr ? job_cure(agent) : script_cure(agent);
    if (!agent.address) {
      report("rendezvous", unit, call,
             {agent.kind == AgentKind::accelerate
                  ? message("{} has no --main_process_ip: its {} copies never connect", agent.name,
                            *layout.tasks)
                  : message("{} has no --rdzv-endpoint or --master-addr: each of its {} copies waits for the "
                            "others on its own node",
                            agent.name, *layout.tasks),
              cure});
      return;
    }
    if (agent.has_dynamic_ranks) return;
    const std::string option = agent.kind == AgentKind::accelerate ? "--machine_rank" : "--node-rank";
    std::uint64_t number = 0;
    if (!agent.machine_rank) {
      report("rendezvous", unit, call,
             {message("{} has no {}: each of its {} copies has rank 0", agent.name, option, *layout.tasks),
              cure});
    } else if (parse_number(*agent.machine_rank, &number)) {
      report("rendezvous", unit, call,
             {message("{} {} is the same in all {} copies of {}", option, number, *layout.tasks, agent.name),
              cure});
    } else if (const auto name = early_name_in(unit, call);
               !name.empty() && is_task_number(*agent.machine_rank)) {
      report("rendezvous", unit, call,
             {message("{} is 0 in all {} copies of {}: ${} is set before {} starts them", option,
                      *layout.tasks, agent.name, name, starter(layout)),
              cure});
    }
  }

  static bool is_task_number(std::string_view value) {
    return std::any_of(kTaskNumbers.begin(), kTaskNumbers.end(),
                       [&](std::string_view name) { return value.find(name) != std::string_view::npos; });
  }

  // "" if the call reads no early variable.
  static std::string early_name_in(const LaunchUnit& unit, const ProgramCall& call) {
    std::vector<const bash::Word*> words = call.typed;
    if (call.program_word != nullptr) words.push_back(call.program_word);
    for (const bash::Word* word : words) {
      for (const bash::WordPiece& piece : word->pieces) {
        if (piece.kind == bash::PieceKind::variable && unit.early.contains(piece.text)) return piece.text;
      }
    }
    return unit.early_text;
  }

  // accelerate divides --num_processes among the machines.
  void check_processes(const LaunchUnit& unit, const ProgramCall& call, const Agent& agent,
                       std::optional<std::uint64_t> machines, const JobCounts& counts) {
    if (agent.kind != AgentKind::accelerate || !agent.processes || !machines || *machines < 2) return;
    const auto processes = count_value(*agent.processes, counts);
    if (!processes || *processes % *machines == 0) return;
    report("rendezvous", unit, call,
           {message("--num_processes is the number on all machines: {} cannot be divided among {}",
                    *processes, *machines),
            job_ != nullptr ? job_cure(agent) : script_cure(agent)});
  }

  std::string program_text(const Agent& agent) const {
    if (agent.program.empty()) return "train.py";
    std::string text;
    for (const std::string& word : agent.program) {
      if (word == "--no_python" || word == "--no-python") continue;
      text += (text.empty() ? "" : " ") + word;
    }
    return text;
  }

  // Processes on each machine, as text for a shell.
  std::string processes_text(const Agent& agent) const {
    const auto known = agent.processes ? count_value(*agent.processes, counts_) : std::nullopt;
    if (known && agent.kind != AgentKind::accelerate && *known > 1) return std::to_string(*known);
    if (counts_.gpus_per_node.value_or(0) > 0) return std::to_string(*counts_.gpus_per_node);
    return known ? std::to_string(*known) : "1";
  }

  Message job_cure(const Agent& agent) const {
    std::string ranks = processes_text(agent);
    if (agent.kind == AgentKind::accelerate || ranks == "1")
      ranks = std::to_string(std::max(1u, job_->resources.ranks_per_node));
    return format("run: python {}    resources: {{nodes: {}, ranks_per_node: {}}}", program_text(agent),
                  job_->resources.nodes, ranks);
  }

  Message script_cure(const Agent& agent) const {
    return format(
        "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 torchrun --nnodes=$SLURM_NNODES --nproc-per-node={} "
        "--rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=\"{}:{}\" {}",
        processes_text(agent), kHeadNode, kPort, program_text(agent));
  }

  const JobCounts counts_;
  const LaunchPlace place_;
  const job::Job* const job_;  // null for a batch script
  std::vector<LaunchProblem> problems_;
  std::size_t scripts_ = 0;
};

}  // namespace

std::vector<LaunchProblem> find_launch_problems(const Script& script, const LintContext& context) {
  if (script.mentions("hetjob")) return {};
  LaunchCheck check(counts_of(script.request), {context.directory, context.environment, context.as_of},
                    nullptr);
  check.check({.script = script, .layout = {}});
  return check.take();
}

std::vector<LaunchProblem> find_launch_problems(const job::Job& job, const slurm::Lookup& environment,
                                                std::optional<double> as_of) {
  if (!job.command) return {};
  std::string text;
  if (job.command->is_shell) {
    text = job.command->arguments.back() + "\n";
  } else {
    for (const std::string& word : job.command->arguments) text += shell_quote(word) + " ";
  }
  const std::unique_ptr<Script> script = read_script("run", std::move(text));
  const job::Resources& resources = job.resources;
  JobCounts counts{.nodes = resources.nodes,
                   .tasks = resources.world_size(),
                   .tasks_per_node = resources.ranks_per_node,
                   .gpus_per_node = std::nullopt};
  if (resources.gpus_per_node() > 0) counts.gpus_per_node = resources.gpus_per_node();
  LaunchCheck check(counts, {job.working_directory, environment, as_of}, &job);
  check.check({.script = *script,
               .layout = {.tasks = resources.world_size(), .nodes = resources.nodes, .starter = "Stoker"}});
  return check.take();
}

bool is_launch_rule(std::string_view rule) {
  return std::find(kRankStartRules.begin(), kRankStartRules.end(), rule) != kRankStartRules.end();
}

}  // namespace stoker::script_lint
