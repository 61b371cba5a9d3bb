// `stoker lab shell [NODE]`: docs/commands/lab-shell.md
#include <cstdio>

#include "cli/commands.h"
#include "cli/lab/lab_name.h"
#include "lab/lab.h"

namespace stoker::cli {
namespace {

struct LabShellOptions {
  std::string name = "lab1";
  std::string node;
  std::vector<std::string> command;
};

Result<Command> command_of(const LabShellOptions& o) {
  STOKER_ASSIGN_OR_RETURN(lab, lab::open(o.name));
  std::vector<std::string> argv = o.command;
  if (argv.empty()) argv = {environment_value("SHELL").value_or("/bin/sh")};
  const Path here = std::filesystem::current_path();
  if (o.node.empty()) return lab::login_command(lab, std::move(argv), here);
  STOKER_ASSIGN_OR_RETURN(node, lab::find_node(lab, o.node));
  return lab::node_command(lab, *node, std::move(argv), here);
}

}  // namespace

int lab_shell(std::span<const std::string> words, Output& out) {
  LabShellOptions o;
  Arguments arguments("lab shell", "Open a shell in the lab, or run one command there.");
  arguments.optional_positional("NODE", &o.node, "Node (default: where the controller runs)");
  add_lab_name(arguments, &o.name);
  arguments.rest("COMMAND", &o.command, "Command to run instead of a shell");
  arguments.example("stoker lab shell n1");
  arguments.example("stoker lab shell n1 -- hostname");
  if (const auto code = arguments.parse(words, out)) return *code;
  auto command = command_of(o);
  if (!command) return out.fail(command.error());
  std::fflush(stdout);
  command->stdin_fd = 0;
  auto child = Child::spawn(*command);
  if (!child) return out.fail(child.error());
  const auto exit = child->wait(Deadline::never());
  return exit ? exit->shell_code() : out.fail(exit.error());
}

}  // namespace stoker::cli
