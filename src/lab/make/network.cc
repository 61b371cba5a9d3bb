#include "lab/make/network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <sched.h>
#include <set>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/name_lock.h"
#include "lab/make/tools.h"
#include "lab/processes.h"

namespace stoker::lab {
namespace {

const Path kNamespaces = "/run/netns";
const Path kLinks = "/sys/class/net";
constexpr auto kToolTime = std::chrono::seconds(30);

// "lab1-n3" of "lab1".
bool is_lab_name(std::string_view name, std::string_view lab) {
  if (!name.starts_with(lab)) return false;
  name.remove_prefix(lab.size());
  if (!name.starts_with("-n")) return false;
  name.remove_prefix(2);
  return !name.empty() && name.size() <= 2 &&
         std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// The alias of a link, which identifies the lab that created it.
constexpr std::string_view kMark = "stoker lab ";
std::string mark_of(const Path& lab_folder) { return format("{}{}", kMark, lab_folder); }

std::string mark_on(std::string_view link) {
  const auto alias = read_pseudo_file(kLinks / link / "ifalias");
  return alias ? std::string(trim(*alias)) : "";
}

// Passes the lines to `ip -batch` by a pipe: a file could be left behind after a kill.
Status ip_batch(std::string_view subject, Environment environment, std::vector<std::string> options,
                const std::string& lines) {
  STOKER_ASSIGN_OR_RETURN(input, Pipe::create());
  // All lines fit into a pipe's 64 KiB: at most 64 nodes with 300 characters each.
  if (::write(input.write.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    return posix_error(format("{}: pipe", subject), errno);
  }
  input.write.reset();
  Command command;
  command.argv = {find_tool("ip")};
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  command.argv.insert(command.argv.end(), {"-batch", "-"});
  command.environment = std::move(environment);
  command.stdin_fd = input.read.get();
  const auto done = run_tool(subject, command, Deadline::after(kToolTime));
  return done ? Status() : done.error();
}

}  // namespace

Result<NetworkLock> NetworkLock::acquire(Deadline deadline) {
  for (;;) {
    auto lock = lock_name("stoker-lab-network");
    if (!lock) return std::move(lock).error().with_context("lab: network lock");
    if (*lock) return NetworkLock(*std::move(lock));
    if (deadline.passed()) return timeout("lab: another lab is still making its network");
    RealClock().sleep(std::chrono::milliseconds(10));
  }
}

Result<std::string> free_subnet() {
  std::set<std::string> taken;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return posix_error("lab: addresses of this host", errno);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof text);
    const std::string_view address = text;
    taken.emplace(address.substr(0, address.rfind('.')));
  }
  ::freeifaddrs(all);
  for (int i = 1; i <= 254; ++i) {
    std::string subnet = format("10.77.{}", i);
    if (!taken.contains(subnet)) return subnet;
  }
  return unavailable("lab: no free network (10.77.1 to 10.77.254 are all in use)");
}

Status check_namespaces() {
  const pid_t child = ::fork();
  if (child < 0) return posix_error("lab: fork", errno);
  if (child == 0) {
    const bool is_allowed = ::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
                            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    ::_exit(is_allowed ? 0 : errno);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return unavailable("lab: the kernel refuses namespaces to this process ({})",
                     std::strerror(WEXITSTATUS(status)))
      .cure("stoker lab up --mode processes");
}

Status check_names_free(const Path& lab_folder) {
  const std::string lab = lab_folder.filename().string();
  if (path_exists(kLinks / lab)) {
    const std::string mark = mark_on(lab);
    if (mark == mark_of(lab_folder)) {
      return exists("{}: parts of a lab with this name remain", lab).cure("stoker lab down --name {}", lab);
    }
    if (!mark.starts_with(kMark)) {
      return exists("{}: the name belongs to a network interface (--name)", lab)
          .cure("stoker lab up --name other");
    }
    const Path other = mark.substr(kMark.size());
    if (find_lab_processes(other).empty()) {  // killed, or this host was restarted
      return exists("{}: the name belongs to the lab {}, none of whose processes runs", lab,
                    printable(other.string()))
          .cure("STOKER_LAB_DIR={} stoker lab down --name {}", printable(other.parent_path().string()), lab);
    }
    return exists("{}: the name belongs to the lab {} (--name)", lab, printable(other.string()))
        .cure("stoker lab up --name other");
  }
  if (const auto left = namespaces_of(lab_folder); !left.empty()) {
    return exists("{}: the network namespace {} already exists (--name)", lab, left[0])
        .cure("stoker lab down --name {}", lab);
  }
  return {};
}

std::vector<Path> orphans_named(std::string_view name) {
  std::vector<Path> orphans;
  const auto links = list_directory(kLinks);
  if (!links) return orphans;
  for (const std::string& link : *links) {
    if (link != name && !is_lab_name(link, name)) continue;
    const std::string mark = mark_on(link);
    if (!mark.starts_with(kMark)) continue;
    const Path folder = mark.substr(kMark.size());
    const auto has_namespace = [&](const std::string& cable) {
      return cable == name || path_exists(kNamespaces / cable);
    };
    const bool is_orphan = folder.filename() == name && !path_exists(folder) &&
                           std::ranges::all_of(links_of(folder), has_namespace);
    if (is_orphan && std::ranges::find(orphans, folder) == orphans.end()) orphans.push_back(folder);
  }
  return orphans;
}

Status make_network(const Lab& lab) {
  const std::string mark = mark_of(lab.folder);
  std::string lines = format("link add {0} type bridge\nlink set {0} alias \"{1}\"\n", lab.bridge, mark);
  lines += format("addr add {1}/24 dev {0}\nlink set {0} up\n", lab.bridge, lab.host_address);
  for (const LabNode& node : lab.nodes) {
    lines += format("netns add {}\n", node.network_namespace);
    lines += format("link add {} type veth peer name eth0 netns {}\n", node.link, node.network_namespace);
    lines += format("link set {0} alias \"{2}\"\nlink set {0} master {1} up\n", node.link, lab.bridge, mark);
  }
  // Marked as a process of the lab, so that `down` kills it if this process was killed.
  Environment environment = current_environment();
  environment.emplace_back("STOKER_LAB_MEMBER", lab.folder.string());
  STOKER_RETURN_IF_ERROR(ip_batch(lab.name, environment, {}, lines));
  for (const LabNode& node : lab.nodes) {
    const std::string inside =
        format("addr add {}/24 dev eth0\nlink set eth0 up\nlink set lo up\n", node.address);
    STOKER_RETURN_IF_ERROR(ip_batch(lab.name, environment, {"-netns", node.network_namespace}, inside));
  }
  return {};
}

std::vector<std::string> links_of(const Path& lab_folder) {
  const std::string lab = lab_folder.filename().string();
  std::vector<std::string> found;
  const auto entries = list_directory(kLinks);
  if (!entries) return found;
  for (const std::string& name : *entries) {
    if ((name == lab || is_lab_name(name, lab)) && mark_on(name) == mark_of(lab_folder))
      found.push_back(name);
  }
  return found;
}

std::vector<std::string> namespaces_of(const Path& lab_folder) {
  const std::string lab = lab_folder.filename().string();
  std::vector<std::string> found;
  const auto entries = list_directory(kNamespaces);
  if (!entries) return found;
  if (path_exists(kLinks / lab) && mark_on(lab) != mark_of(lab_folder)) return found;
  std::ranges::copy_if(*entries, std::back_inserter(found),
                       [&](const auto& name) { return is_lab_name(name, lab); });
  return found;
}

int remove_links(const std::vector<std::string>& links) {
  if (links.empty()) return 0;
  std::string lines;
  for (const std::string& link : links) lines += format("link del {}\n", link);
  (void)ip_batch("lab", current_environment(), {"-force"},
                 lines);  // a link may disappear with its namespace
  return static_cast<int>(
      std::ranges::count_if(links, [](const auto& link) { return !path_exists(kLinks / link); }));
}

int remove_namespaces(const std::vector<std::string>& names) {
  int removed = 0;
  for (const std::string& name : names) {
    const Path path = kNamespaces / name;
    while (::umount2(path.c_str(), MNT_DETACH) == 0) {
    }
    if (::unlink(path.c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace stoker::lab
