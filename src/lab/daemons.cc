#include "lab/daemons.h"

#include "lab/launch.h"
#include "lab/make/tools.h"

namespace stoker::lab {

Status start_slurmd(const Lab& lab, LabNode& node) {
  Daemon daemon;
  daemon.name = "slurmd-" + node.name;
  daemon.argv = {"slurmd", "-D", "-N", node.name};
  daemon.holder = node.holder;
  daemon.node = node.name;
  daemon.core = node.core;
  STOKER_ASSIGN_OR_RETURN(pid, launch(lab, daemon));
  node.slurmd = pid;
  return {};
}

Status start_controller(Lab& lab) {
  Daemon daemon;
  daemon.name = "slurmctld";
  daemon.argv = {"slurmctld", "-D"};
  daemon.holder = lab.login;
  STOKER_ASSIGN_OR_RETURN(pid, launch(lab, daemon));
  lab.controller = pid;
  return {};
}

Status wait_for_controller(const Lab& lab, Deadline deadline) {
  return wait_until(lab, {"slurmctld", lab.controller}, deadline, [&] {
    const auto answer =
        run_program(client_command(lab, {"scontrol", "ping"}), Deadline::after(std::chrono::seconds(5)));
    return answer && answer->exit.ok() && answer->out.find("is UP") != std::string::npos;
  });
}

}  // namespace stoker::lab
