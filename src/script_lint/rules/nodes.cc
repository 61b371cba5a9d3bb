// Rules for jobs of several nodes: commands on the first node only, and rendezvous.
#include <algorithm>
#include <array>

#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// Launcher options that use fewer nodes than the job.
bool runs_on_one_node(const ProgramCall& launcher) {
  const auto is_one = [&](std::string_view name) { return launcher.option(name) == "1"; };
  return is_one("--nodes") || is_one("-N") || launcher.has("-N1") || is_one("--ntasks") || is_one("-n") ||
         launcher.has("-n1");
}

bool reaches_all_nodes(const Script& script, const ProgramCall& call) {
  const ProgramCall* launcher = script.launcher_of(call);
  return launcher != nullptr && !runs_on_one_node(*launcher);
}

// The destination folder of the command; "" without one, or if unknown.
std::string destination(const ProgramCall& call) {
  const auto last = [&] { return call.words.empty() ? std::string() : call.words.back(); };
  if (call.program == "tar") {
    const bool extracts = !call.words.empty() && (call.has("-x") || call.has("--extract") ||
                                                  (call.words[0].find('x') != std::string::npos &&
                                                   !call.words[0].starts_with("--") &&
                                                   call.words[0].find('/') == std::string::npos));
    if (!extracts) return "";
    const auto folder = call.option("-C");
    return folder ? *folder : call.option("--directory").value_or(call.directory);
  }
  if (call.program == "unzip") return call.option("-d").value_or(call.directory);
  if (call.program == "cp" || call.program == "rsync") {
    for (const std::string& word : call.words) {
      if (word.starts_with("$SLURM_TMPDIR") || is_local_path(word))
        return word == last() || call.program == "rsync" ? word : "";
    }
    return call.words.size() >= 2 && last() == "." ? call.directory : "";
  }
  if (call.program == "virtualenv") return last();
  if (is_python(call.program) && (call.option("-m") == "venv" || call.option("-m") == "virtualenv"))
    return last();
  return "";
}

// The active virtual environment: the last "source .../bin/activate" before the command.
std::string active_environment(const Script& script, const ProgramCall& call) {
  std::string active;
  for (const ProgramCall& other : script.calls) {
    if (&other == &call) break;
    const bool sources = other.program == "source" || other.program == ".";
    if (sources && !other.words.empty() && other.words[0].ends_with("/bin/activate") &&
        !other.context.launcher)
      active = other.words[0];
  }
  return active;
}

bool is_pip_install(const ProgramCall& call) {
  const auto word = std::find(call.words.begin(), call.words.end(), "install");
  if (word == call.words.end()) return false;
  return call.program == "pip" || call.program == "pip3" ||
         (is_python(call.program) && call.option("-m") == "pip");
}

// Whether a later command runs on more nodes than the first.
bool is_used_on_all(const Script& script, const ProgramCall& call) {
  bool is_later = false;
  for (const ProgramCall& other : script.calls) {
    if (is_later && is_launcher(other.program) && !runs_on_one_node(other)) return true;
    is_later = is_later || &other == &call;
  }
  return false;
}

void find_first_node_only(const Script& script, FindingReport& report) {
  if (script.request.nodes() < 2) return;
  for (const ProgramCall& call : script.calls) {
    const Context& context = call.context;
    if (context.launcher || context.is_remote || context.is_substituted || context.loops > 0) continue;
    const std::string where = is_pip_install(call) ? active_environment(script, call) : destination(call);
    if (where.empty() || !is_local_path(where) || !is_used_on_all(script, call)) continue;
    const std::string what = is_pip_install(call) ? "pip install" : call.program;
    report.replace({call.span.begin, call.span.begin},
                   script.request.nodes() == 2
                       ? message("{} runs on the first node only; the second node has nothing in {}", what,
                                 printable(where))
                       // several others
                       : message("{} runs on the first node only; the other {} nodes have nothing in {}",
                                 what, script.request.nodes() - 1, printable(where)),
                   "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 ");
  }
}

bool starts_itself_again(const Script& script) {
  return std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return is_launcher(call.program) &&
           std::any_of(call.words.begin(), call.words.end(), [](const std::string& word) {
             return word == "$0" || word.find("BASH_SOURCE") != std::string::npos;
           });
  });
}

// Queries the node count from Slurm.
bool is_oumi(const ProgramCall& call) {
  return call.program == "oumi" && !call.words.empty() && call.words[0] == "distributed";
}

bool is_torchrun(const ProgramCall& call) {
  return call.program == "torchrun" || is_oumi(call) ||
         (is_python(call.program) && call.option("-m").value_or("").starts_with("torch.distributed."));
}

bool is_accelerate(const ProgramCall& call) {
  return is_agent(call) &&
         (call.program == "accelerate" || call.option("-m") == "accelerate.commands.launch");
}

// Starts the ranks of one node. deepspeed with a host file starts the ranks of all nodes through ssh.
bool is_node_agent(const ProgramCall& call) {
  if (call.program == "deepspeed")
    return !call.has("--hostfile") && !call.has("-H") && !call.has("--launcher") &&
           !call.has("--force_multi");
  return is_torchrun(call) || is_accelerate(call);
}

std::string nodes_option(const ProgramCall& call) {
  if (call.program == "deepspeed") return "1";
  if (is_accelerate(call)) {
    const auto machines = call.option("--num_machines");
    if (machines) return *machines;
    // Its configuration may have them.
    return call.option("--num-machines").value_or(call.has("--config_file") ? "" : "1");
  }
  return call.option("--nnodes").value_or(is_oumi(call) ? "all" : "1");
}

// May start commands on other nodes, for example from a script.
bool may_start_elsewhere(const ProgramCall& call) {
  const bool is_shell = call.program == "bash" || call.program == "sh";
  return is_launcher(call.program) || call.context.is_remote || call.program == "ssh" ||
         call.program == "pdsh" || call.program.ends_with(".sh") || (is_shell && !call.has("-c"));
}

// torchrun without --nnodes in a job of several nodes: it trains on the first one only.
void find_agent_of_one_node(const Script& script, FindingReport& report) {
  const std::uint64_t nodes = script.request.nodes();
  if (nodes < 2 || starts_itself_again(script) ||
      std::any_of(script.calls.begin(), script.calls.end(), may_start_elsewhere))
    return;
  for (const ProgramCall& call : script.calls) {
    const Context& context = call.context;
    if (!is_node_agent(call) || nodes_option(call) != "1" || context.loops > 0 || !context.function.empty())
      continue;
    ScriptFinding& finding =
        report.add(call.span, message("{} starts ranks on the first of {} nodes only: the remaining nodes "
                                      "are idle, and code that expects all ranks fails",
                                      call.program, nodes));
    finding.level = Level::time;
    finding.fix =
        is_accelerate(call) ? message(
                                  "#SBATCH --nodes=1, or srun --ntasks-per-node=1 accelerate launch "
                                  "--num_machines={} --rdzv_backend=c10d",
                                  nodes)
        : call.program == "deepspeed"
            ? message("#SBATCH --nodes=1, or deepspeed --hostfile=HOSTS")
            : message("#SBATCH --nodes=1, or srun --ntasks-per-node=1 {} --nnodes={}", call.program, nodes);
    return;
  }
}

void find_agent_on_first_node(const Script& script, FindingReport& report) {
  find_agent_of_one_node(script, report);
  if (script.request.nodes() < 2 || starts_itself_again(script)) return;
  for (const ProgramCall& call : script.calls) {
    const std::string nodes = nodes_option(call);
    const Context& context = call.context;
    if (!is_node_agent(call) || context.launcher || context.is_remote || context.loops > 0 ||
        !context.function.empty() || context.is_substituted || nodes.empty() || nodes == "1" ||
        nodes.starts_with("1:"))
      continue;
    report.replace({call.span.begin, call.span.begin},
                   // several, at least two
                   message("{} starts on the first node only, and waits for {} nodes until it times out",
                           call.program, script.request.nodes()),
                   "srun --ntasks-per-node=1 --kill-on-bad-exit=1 ");
  }
}

bool is_this_host(std::string_view address) {
  const std::string_view host = address.substr(0, address.find(':'));
  return host == "localhost" || host == "127.0.0.1" || host == "0.0.0.0";
}

bool has_wide_launch(const Script& script) {
  return std::any_of(script.calls.begin(), script.calls.end(), [](const ProgramCall& call) {
    return is_launcher(call.program) && !runs_on_one_node(call);
  });
}

constexpr std::string_view kFirstHost = "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";

void find_master_address(const Script& script, FindingReport& report) {
  if (script.request.nodes() < 2 || !has_wide_launch(script)) return;
  for (const VariableSetting& setting : script.settings) {
    if (setting.name != "MASTER_ADDR") continue;
    const bool is_list = setting.value == "$SLURM_NODELIST" || setting.value == "$SLURM_JOB_NODELIST";
    const bool is_each_own =
        setting.context.launcher.has_value() &&
        (setting.value == "$(hostname)" || setting.value == "$HOSTNAME" || setting.value == "`hostname`");
    if (!is_this_host(setting.value) && !is_list && !is_each_own) continue;
    report.replace(
        setting.assignment->value.span,
        is_list
            ? message("MASTER_ADDR is the list of all {} nodes, not one of them", script.request.nodes())
            : message(
                  "MASTER_ADDR is a different machine on each of the {} nodes, so the ranks never connect",
                  script.request.nodes()),
        is_each_own ? "$SLURM_LAUNCH_NODE_IPADDR" : std::string(kFirstHost));
  }
  for (const ProgramCall& call : script.calls) {
    if (!is_torchrun(call) || !reaches_all_nodes(script, call) || nodes_option(call) == "1" ||
        call.has("--standalone"))
      continue;
    for (const char* name : {"--rdzv_endpoint", "--rdzv-endpoint", "--master_addr", "--master-addr"}) {
      const auto value = call.option(name);
      if (value && is_this_host(*value))
        report
            .add(call.span,
                 message("{}={}: a different machine on each of the {} nodes, so the ranks never connect",
                         name, printable(*value), script.request.nodes()))
            .fix = format("{}=\"{}\"", name, kFirstHost);
    }
  }
}

// A literal port number.
bool is_plain_port(std::string_view value) {
  std::uint64_t port = 0;
  return parse_number(value, &port) && port > 0 && port < 65536;
}

void find_fixed_port(const Script& script, FindingReport& report) {
  if (script.request.has_whole_nodes()) return;
  // Tasks with all GPUs of a node do not share one.
  const bool is_array = script.request.array_tasks() > 1 && script.request.gpus_per_node().value_or(0) < 4;
  constexpr std::string_view kPort = "$((10000 + SLURM_JOB_ID % 20000))";
  for (const VariableSetting& setting : script.settings) {
    if (setting.name != "MASTER_PORT" || !is_plain_port(setting.value) || setting.context.loops > 0) continue;
    report
        .replace(
            setting.assignment->value.span,
            is_array
                ? message(
                      "port {} is the same for all {} tasks of the array: the second task on a node fails",
                      setting.value, script.request.array_tasks())
                : message("port {} is fixed: the second job on a node fails", setting.value),
            std::string(kPort))
        .level = is_array ? Level::job : Level::time;
  }
  for (const ProgramCall& call : script.calls) {
    for (const char* name : {"--master_port", "--master-port"}) {
      const auto value = is_agent(call) ? call.option(name) : std::nullopt;
      if (!value || !is_plain_port(*value)) continue;
      // Reported above if it is in a variable.
      const auto typed = std::find_if(call.typed.begin(), call.typed.end(), [&](const bash::Word* word) {
        return script.at(word->span).find(*value) != std::string_view::npos;
      });
      if (typed == call.typed.end()) continue;
      const std::size_t at = (*typed)->span.begin + script.at((*typed)->span).find(*value);
      report
          .replace(
              {at, at + value->size()},
              is_array
                  ? message(
                        "port {} is the same for all {} tasks of the array: the second task on a node fails",
                        *value, script.request.array_tasks())
                  : message("port {} is fixed: the second job on a node fails", *value),
              std::string(kPort))
          .level = is_array ? Level::job : Level::time;
    }
  }
}

constexpr Rule kNodeRules[] = {
    {"first-node-only", Level::job,
     "a batch script runs on the job's first node; only srun reaches the remaining ones",
     "#!/bin/bash\n#SBATCH --nodes=2\ntar xf data.tar -C $SLURM_TMPDIR\nsrun python train.py $SLURM_TMPDIR\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun --ntasks=$SLURM_NNODES --ntasks-per-node=1 tar xf data.tar -C "
     "$SLURM_TMPDIR\nsrun python train.py $SLURM_TMPDIR\n",
     "courses' exercises", find_first_node_only},
    {"agent-on-first-node", Level::job, "torchrun starts the ranks of one node; start one torchrun per node",
     "#!/bin/bash\n#SBATCH --nodes=2\ntorchrun --nnodes=2 --nproc_per_node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=4 "
     "--rdzv_backend=c10d --rdzv_endpoint=$HEAD:29400 train.py\n",
     "pytorch forums: \"torchrun hangs on 2 nodes\"", find_agent_on_first_node},
    {"master-address", Level::job, "all ranks need the address of the same machine",
     "#!/bin/bash\n#SBATCH --nodes=2\nexport MASTER_ADDR=localhost\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nexport MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | "
     "head -n 1)\nsrun python train.py\n",
     "mlc-ai/pith-train PR #91", find_master_address},
    {"fixed-port", Level::time, "on a node with several jobs a fixed port is eventually in use",
     "#!/bin/bash\n#SBATCH --gres=gpu:1\nexport MASTER_PORT=29500\nsrun python train.py\n",
     "#!/bin/bash\n#SBATCH --gres=gpu:1\nexport MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))\nsrun python "
     "train.py\n",
     "TorchDR #249, gpt-neox #768, pytorch #73320", find_fixed_port},
};

}  // namespace

std::span<const Rule> node_rules() { return kNodeRules; }

}  // namespace stoker::script_lint
