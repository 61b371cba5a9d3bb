#include "netcheck/facts.h"

#include <algorithm>
#include <csignal>
#include <sched.h>
#include <unistd.h>

#include "base/file.h"
#include "rank/process/tcp_table.h"

namespace stoker::netcheck {
namespace {

constexpr std::size_t kMaxCores = 65536;
constexpr std::size_t kMaxGpus = 64;
constexpr std::size_t kLongestName = 200;

std::string line_of(const Path& file) {
  const auto text = read_pseudo_file(file);
  return text.ok() ? std::string(trim(*text)) : "";
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string core_text(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += format("{}{}", text.empty() ? "" : ",", cores[i]);
    if (last > i) text += format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

Result<std::vector<int>> parse_cores(std::string_view text) {
  std::vector<int> cores;
  if (text.empty()) return cores;
  for (std::string_view range : split(text, ',')) {
    const std::size_t dash = range.find('-');
    std::int64_t first = 0;
    std::int64_t last = 0;
    const bool is_range =
        parse_number(range.substr(0, dash), &first) &&
        parse_number(dash == std::string_view::npos ? range : range.substr(dash + 1), &last);
    if (!is_range || first < 0 || last < first || last >= static_cast<std::int64_t>(kMaxCores) ||
        cores.size() + static_cast<std::size_t>(last - first) >= kMaxCores) {
      return invalid("cores '{}': invalid (example: 0-3,8)", printable(text));
    }
    for (std::int64_t core = first; core <= last; ++core) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

std::vector<FabricPort> fabric_ports(const Path& sys) {
  std::vector<FabricPort> ports;
  const Path root = sys / "class/infiniband";
  const auto devices = list_directory(root);
  if (!devices.ok()) return ports;
  for (const std::string& device : *devices) {
    const auto numbers = list_directory(root / device / "ports");
    if (!numbers.ok()) continue;
    for (const std::string& number : *numbers) {
      std::int64_t port = 0;
      if (!parse_number(number, &port)) continue;
      // "4: ACTIVE"
      const std::string state = line_of(root / device / "ports" / number / "state");
      const std::size_t colon = state.find(": ");
      FabricPort one{.device = device, .port = static_cast<int>(port)};
      one.state = colon == std::string::npos ? state : state.substr(colon + 2);
      one.is_active = one.state == "ACTIVE";
      ports.push_back(std::move(one));
    }
  }
  return ports;
}

GpuList list_gpus(const Environment& environment, Deadline deadline) {
  Command command;
  command.argv = {"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"};
  command.environment = environment;
  command.parent_death_signal = SIGKILL;  // do not leave it behind with a hanging driver
  GpuList list;
  const Duration patience = deadline.left();
  const auto output = run_program(command, deadline, 1_MiB);
  if (!output.ok()) {
    if (output.status().code() == Code::timeout)
      list.problem = format("nvidia-smi did not answer within {}", rounded_duration(patience));
    return list;
  }
  std::vector<std::string_view> lines;
  for (std::string_view line : split(output->out, '\n')) {
    if (!trim(line).empty() && lines.size() < kMaxGpus) lines.push_back(trim(line));
  }
  if (!output->exit.ok()) {
    const std::string_view words = lines.empty() ? trim(output->err) : lines[0];
    list.problem = format("nvidia-smi: {}{}", to_text(output->exit),
                          words.empty() ? "" : format(", {}", printable(split(words, '\n')[0])));
    return list;
  }
  for (std::string_view line : lines) list.gpus.push_back(printable(line.substr(0, kLongestName)));
  return list;
}

std::map<std::string, std::string> network_variables(const Environment& environment) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : environment) {
    if (std::ranges::find(kVariables, name) != std::end(kVariables)) found.emplace(name, value);
  }
  return found;
}

std::string port_holder(int port, const Path& proc) {
  std::vector<std::string> inodes;
  for (const rank::TcpSocket& socket : rank::tcp_sockets(::getpid(), proc)) {
    // A socket without a process, for example in TIME_WAIT, has no inode.
    if (socket.local_port == port && socket.inode != "0") inodes.push_back(socket.inode);
  }
  const auto names = inodes.empty() ? Result<std::vector<std::string>>(not_found("")) : list_directory(proc);
  if (!names.ok()) return "";
  for (const std::string& name : *names) {
    std::int64_t pid = 0;
    if (!parse_number(name, &pid) || !rank::holds_socket(static_cast<pid_t>(pid), inodes, proc)) continue;
    return format("{} (process {})", printable(line_of(proc / name / "comm")), pid);
  }
  return "";
}

}  // namespace stoker::netcheck
