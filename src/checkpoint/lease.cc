#include "checkpoint/lease.h"

#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layout.h"

namespace stoker::checkpoint {

namespace {

constexpr std::chrono::hours kWithoutLease(1);
// A lease is written in a moment: an empty one belongs to a writer that died, or to a full disk.
constexpr std::chrono::minutes kUnreadableLease(2);
// Clocks of two machines differ, and a writer detects its deadline slightly late.
constexpr std::chrono::minutes kSlack(2);

std::string this_boot() {
  const auto boot = read_pseudo_file("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const Path space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return format("{} {}", boot.ok() ? trim(*boot) : "unknown", space);
}

// Field 22 of /proc/<pid>/stat, counted after the name, which may contain spaces and brackets. 0: no such
// process.
std::uint64_t start_of(std::int64_t pid) {
  const auto stat = read_pseudo_file(format("/proc/{}/stat", pid));
  if (!stat.ok()) return 0;
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string_view> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
  // A zombie no longer writes.
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return 0;
  std::uint64_t started = 0;
  return parse_number(fields[19], &started) ? started : 0;
}

// A forked child continues the work of its parent; a started program has its own command line.
bool is_fork_of(std::int64_t pid) {
  if (pid != ::getppid()) return false;
  const auto own = read_pseudo_file("/proc/self/cmdline");
  const auto parent = read_pseudo_file(format("/proc/{}/cmdline", pid));
  return own.ok() && parent.ok() && *own == *parent;
}

}  // namespace

Lease make_lease(WorldSize world_size, Duration limit, WallTime now) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::int64_t pid = ::getpid();
  return {this_boot(),   printable(host), pid,
          start_of(pid), world_size,      unix_seconds(now) + Seconds(limit).count()};
}

std::string lease_text(const Lease& lease) {
  const nlohmann::ordered_json json{{"boot", lease.boot},
                                    {"host", lease.host},
                                    {"pid", lease.pid},
                                    {"started", lease.started},
                                    {"world_size", lease.world_size.value},
                                    {"expires", lease.expires}};
  return json_text(json) + "\n";
}

Result<Lease> parse_lease(std::string_view subject, std::string_view text) {
  JsonText json(subject, text);
  JsonFields fields = json.fields();
  Lease lease;
  lease.boot = fields.text("boot");
  lease.host = fields.text("host");
  lease.pid = fields.integer("pid");
  lease.started = fields.natural("started");
  const std::int64_t ranks = fields.integer("world_size");
  lease.expires = fields.number("expires");
  if (ranks < 1 || ranks > 1 << 24) fields.fail("world_size is out of range");
  if (!fields.ok()) return fields.status();
  lease.world_size = WorldSize{static_cast<int>(ranks)};
  return lease;
}

bool is_alive(const Lease& lease, WallTime now) {
  if (unix_seconds(now) > lease.expires + Seconds(kSlack).count()) return false;
  return writer_state(lease) != WriterState::ended;
}

WriterState writer_state(const Lease& lease) {
  if (lease.boot != this_boot()) return WriterState::elsewhere;
  if (lease.started == 0 || start_of(lease.pid) != lease.started) return WriterState::ended;
  return lease.pid == ::getpid() || is_fork_of(lease.pid) ? WriterState::self : WriterState::running;
}

Result<Lease> find_lease(const Path& folder) {
  for (const std::string_view name : {kLeaseName, kMakerLeaseName}) {
    const auto text = read_file(folder / name, 64_KiB);
    if (!text.ok()) continue;
    if (auto lease = parse_lease(name, *text); lease.ok()) return lease;
  }
  return not_found("{}: has no readable lease", printable(folder.string()));
}

bool is_pending_alive(const Path& folder, WallTime now) {
  if (path_exists(folder / failed_name(Rank{0}))) return false;  // aborted
  if (const auto lease = find_lease(folder); lease.ok()) return is_alive(*lease, now);
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) return false;
  const double idle = unix_seconds(now) - static_cast<double>(info.st_mtim.tv_sec);
  const bool has_lease = path_exists(folder / kLeaseName) || path_exists(folder / kMakerLeaseName);
  return idle < (has_lease ? Seconds(kUnreadableLease) : Seconds(kWithoutLease)).count();
}

}  // namespace stoker::checkpoint
