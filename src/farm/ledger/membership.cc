// A claim is decided by one file:
//   1. the worker reads all claims and ledgers, and chooses tasks without an owner
//   2. it creates claims/<list>/<n> by write_new_file(), where n is the first number that it has not read
//   3. if the number exists already, it reads that claim and starts again at 1
// A worker that is killed in 2 leaves one temporary file, one that is killed later is found lost, and its
// tasks are claimed again.
#include "farm/ledger/membership.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sys/stat.h>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/name_lock.h"
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
    const std::string text = format("{{\"version\":{},\"id\":\"{}\"}}\n", kFarmVersion, random_name(12));
    const Status created = write_new_file(target, text, Durability::synced);
    if (!created.ok() && created.code() != Code::exists) return created;
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
  STOKER_ASSIGN_OR_RETURN(ledger, JournalFile::open(state.folder() / "ledger" / (member.name_ + ".log")));
  member.ledger_ = std::move(ledger);
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
  for (int tries = 0; tries < kClaimTries; ++tries) {
    STOKER_RETURN_IF_ERROR(state_->refresh());
    claim.tasks.clear();
    for (TaskIndex task = 0; task < state_->list().size() && claim.tasks.size() < most; ++task) {
      if (may_claim(task)) claim.tasks.push_back(task);
    }
    if (claim.tasks.empty()) return claim.tasks;
    const Path target = state_->claims_folder() / format("{}", state_->next_claim());
    const Status written = write_new_file(target, ledger_line(claim));
    if (written.ok()) {
      state_->apply_own_claim(claim);
      return claim.tasks;
    }
    if (written.code() != Code::exists) return written;
    // A client may not see the new file for a while.
    if (!path_exists(target)) RealClock().sleep(kStaleWait);
  }
  return unavailable("{}: no claim in {} tries", state_->claims_folder(), kClaimTries);
}

Status Membership::append(const LedgerRecord& record) {
  STOKER_RETURN_IF_ERROR(ledger_.append(ledger_line(record)));
  state_->apply_own(name_, record, ledger_.size());
  return {};
}

Status Membership::heartbeat() {
  if (::futimens(ledger_.fd(), nullptr) != 0) return posix_error(ledger_.path().string(), errno);
  STOKER_RETURN_IF_ERROR(ledger_.sync());
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
