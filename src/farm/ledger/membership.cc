// A claim is decided by one file:
//   1. the worker reads all claims and ledgers, and chooses tasks without an owner
//   2. it writes them to a temporary file
//   3. it links that file as claims/<list>/<n>, where n is the first number that it has not read   <- decided
//   4. if the number exists already, it reads that claim and starts again at 1
// link(2) is atomic also on NFS. A worker that is killed before 3 leaves one file, one that is killed later
// is found lost, and its tasks are claimed again.
#include "farm/ledger/membership.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/process.h"
#include "base/user.h"

namespace stoker::farm {

namespace {

constexpr std::string_view kFarmFile = "farm.json";
constexpr int kFarmVersion = 1;
constexpr int kMostWorkers = 4096;  // of one host
constexpr int kClaimTries = 1000;
constexpr Duration kStaleWait = std::chrono::milliseconds(200);

// Jobs of one node may have separate network namespaces, and with them separate slots.
std::string ledger_prefix(const std::string& job) {
  std::string prefix = host_name();
  if (const auto node = environment_value("SLURMD_NODENAME"); node && *node != prefix) prefix += "-" + *node;
  if (!job.empty()) prefix += "-j" + job;
  std::replace(prefix.begin(), prefix.end(), '/', '_');
  return prefix;
}

// A socket bound to an abstract name, which the kernel frees when the process ends. Not open if the name is
// in use. Children do not inherit it.
Result<Fd> lock_name(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return posix_error("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.begin(), length, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  if (errno == EADDRINUSE) return Fd();
  return posix_error(format("socket @{}", name), errno);
}

// Cuts off a line that a killed process did not finish.
Status cut_unfinished(File& ledger) {
  STOKER_ASSIGN_OR_RETURN(size, ledger.size());
  if (size == 0) return {};
  STOKER_ASSIGN_OR_RETURN(reader, File::open_read(ledger.path()));
  std::uint64_t end = size;
  while (end > 0) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, 4096);
    std::string part(end - begin, '\0');
    STOKER_RETURN_IF_ERROR(reader.read_at(begin, std::as_writable_bytes(std::span(part))));
    if (const std::size_t found = part.rfind('\n'); found != std::string::npos) {
      end = begin + found + 1;
      break;
    }
    end = begin;
  }
  return end < size ? ledger.truncate(end) : Status();
}

}  // namespace

Result<std::string> farm_id(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(folder / kFarmFile, 1_MiB));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool is_farm = json.is_object() && json.contains("version") && json["version"].is_number_integer() &&
                       json.contains("id") && json["id"].is_string();
  if (!is_farm) return corrupt("{}: not the description of a farm", folder / kFarmFile);
  if (json["version"].get<std::int64_t>() != kFarmVersion)
    return invalid("{}: version {} (this Stoker reads {})", folder / kFarmFile,
                   json["version"].get<std::int64_t>(), kFarmVersion);
  return json["id"].get<std::string>();
}

Status prepare_farm(const Path& folder) {
  const Path target = folder / kFarmFile;
  if (!path_exists(target)) {
    if (path_exists(folder) && !folder_exists(folder)) return invalid("{}: is not a folder", folder);
    for (std::string_view name : {"ledger", "output", "running", "claims"})
      STOKER_RETURN_IF_ERROR(make_directories(folder / name));
    const std::string id = random_name(12);
    const Path own = folder / format("{}.{}.tmp", kFarmFile, id);
    STOKER_RETURN_IF_ERROR(
        write_file(own, format("{{\"version\":{},\"id\":\"{}\"}}\n", kFarmVersion, id), Durability::synced));
    // A link, unlike a rename, does not replace the farm that another process creates at the same time.
    const int problem = ::link(own.c_str(), target.c_str()) == 0 ? 0 : errno;
    STOKER_RETURN_IF_ERROR(remove_file(own));
    if (problem != 0 && problem != EEXIST) return posix_error(target.string(), problem);
  }
  return farm_id(folder).status();
}

Result<Membership> Membership::join(FarmState& state, const std::string& job) {
  Membership member(state);
  STOKER_ASSIGN_OR_RETURN(farm, farm_id(state.folder()));
  const std::string prefix = ledger_prefix(job);
  for (int slot = 0; slot < kMostWorkers && !member.slot_; ++slot) {
    member.name_ = format("{}-{}", prefix, slot);
    STOKER_ASSIGN_OR_RETURN(socket, lock_name(format("stoker-farm-{}-{}", farm, member.name_)));
    member.slot_ = std::move(socket);
  }
  if (!member.slot_)
    return unavailable("{}: {} of this host use the farm", state.folder(), counted(kMostWorkers, "worker"));
  STOKER_ASSIGN_OR_RETURN(ledger, File::open_append(state.folder() / "ledger" / (member.name_ + ".log")));
  STOKER_RETURN_IF_ERROR(cut_unfinished(ledger));
  STOKER_ASSIGN_OR_RETURN(size, ledger.size());
  member.ledger_ = std::move(ledger);
  member.size_ = size;
  STOKER_RETURN_IF_ERROR(state.refresh());
  for (const KnownWorker& other : state.workers()) {
    if (other.is_over || other.list_digest == state.list().digest() || other.file == member.name_ ||
        other.file.empty())
      continue;
    return exists("{}: {} (pid {}) works with another version of the list", state.folder(), other.who.host,
                  other.who.pid);
  }
  STOKER_RETURN_IF_ERROR(make_directories(state.claims_folder()));
  member.id_ = random_name(12);
  WorkerStart start{.id = member.id_,
                    .who = record::this_process(),
                    .job = job,
                    .list_digest = state.list().digest(),
                    .time = unix_seconds(RealClock().wall())};
  STOKER_RETURN_IF_ERROR(member.append(start));
  for (std::size_t i = 0; i < state.workers().size(); ++i) {
    if (state.workers()[i].id == member.id_) member.worker_ = static_cast<std::uint32_t>(i);
  }
  STOKER_RETURN_IF_ERROR(member.heartbeat());
  return member;
}

Result<std::vector<TaskIndex>> Membership::claim(std::size_t most,
                                                 const std::function<bool(TaskIndex)>& may_claim) {
  TaskClaim claim{.worker = id_, .tasks = {}};
  const Path own = state_->claims_folder() / format(".{}.tmp", id_);
  for (int tries = 0; tries < kClaimTries; ++tries) {
    STOKER_RETURN_IF_ERROR(state_->refresh());
    claim.tasks.clear();
    for (TaskIndex task = 0; task < state_->list().size() && claim.tasks.size() < most; ++task) {
      if (may_claim(task)) claim.tasks.push_back(task);
    }
    if (claim.tasks.empty()) return claim.tasks;
    STOKER_RETURN_IF_ERROR(write_file(own, ledger_line(claim), Durability::none));
    const Path target = state_->claims_folder() / format("{}", state_->next_claim());
    int problem = ::link(own.c_str(), target.c_str()) == 0 ? 0 : errno;
    // NFS may repeat a request whose answer was lost: two links are the own claim.
    struct stat facts{};
    if (problem == EEXIST && ::stat(own.c_str(), &facts) == 0 && facts.st_nlink == 2) problem = 0;
    STOKER_RETURN_IF_ERROR(remove_file(own));
    if (problem == 0) {
      state_->apply_own_claim(claim);
      return claim.tasks;
    }
    if (problem != EEXIST) return posix_error(target.string(), problem);
    // A client may not see the new file for a while.
    if (!path_exists(target)) RealClock().sleep(kStaleWait);
  }
  return unavailable("{}: no claim in {} tries", state_->claims_folder(), kClaimTries);
}

// A write that was cut by a full disk leaves a part of a line; the next record would continue it.
Status Membership::append(const LedgerRecord& record) {
  const std::string line = ledger_line(record);
  const Status written = ledger_.write(line);
  if (!written.ok()) {
    (void)ledger_.truncate(size_);
    return written;
  }
  size_ += line.size();
  is_dirty_ = true;
  state_->apply_own(name_, record, size_);
  return {};
}

Status Membership::heartbeat() {
  if (::futimens(ledger_.fd(), nullptr) != 0) return posix_error(ledger_.path().string(), errno);
  if (is_dirty_ && ::fdatasync(ledger_.fd()) != 0) return posix_error(ledger_.path().string(), errno);
  is_dirty_ = false;
  struct stat facts{};
  if (::fstat(ledger_.fd(), &facts) != 0) return posix_error(ledger_.path().string(), errno);
  filesystem_time_ = static_cast<double>(facts.st_mtim.tv_sec);
  return {};
}

Status Membership::leave() {
  STOKER_RETURN_IF_ERROR(append(WorkerExit{unix_seconds(RealClock().wall())}));
  return heartbeat();
}

}  // namespace stoker::farm
