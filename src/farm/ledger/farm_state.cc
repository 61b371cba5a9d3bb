#include "farm/ledger/farm_state.h"

#include <algorithm>
#include <limits>
#include <sys/stat.h>

#include "base/file.h"
#include "base/journal.h"
#include "base/user.h"

namespace stoker::farm {

namespace {

constexpr ByteCount kMostClaimBytes = 1_GiB;
// A worker whose job is over may have a ledger that this host does not see in full yet.
constexpr double kSettledSeconds = 30;
// From 1 MB to 1 TB.
constexpr std::uint8_t kMostDoublings = 20;

template <typename Number>
void count_up(Number& number) {
  if (number < std::numeric_limits<Number>::max()) ++number;
}

}  // namespace

FarmState::FarmState(Path folder, const TaskList& list, KeepOutputs outputs)
    : folder_(std::move(folder)), list_(list), tasks_(list.size()) {
  if (outputs == KeepOutputs::yes) outputs_.resize(list.size());
}

Path FarmState::claims_folder() const { return folder_ / "claims" / format("{:016x}", list_.digest()); }

std::vector<std::string> FarmState::files() const {
  std::vector<std::string> names;
  for (const LedgerFile& file : files_) names.push_back(file.name);
  return names;
}

std::optional<std::uint32_t> FarmState::owner(TaskIndex task) const {
  if (tasks_[task].owner == 0) return std::nullopt;
  return tasks_[task].owner - 1;
}

// NFS promises fresh sizes only of files that are opened, and FUSE only after a read at the end.
Result<std::uint64_t> FarmState::size_of(const LedgerFile& file) const {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(folder_ / "ledger" / (file.name + ".log")));
  STOKER_ASSIGN_OR_RETURN(known, opened.size());
  STOKER_RETURN_IF_ERROR(opened.read_available(known, 1).status());
  return opened.size();
}

Status FarmState::find_ledgers() {
  const auto names = list_directory(folder_ / "ledger");
  if (!names) return names.error().code() == Code::not_found ? Status() : names.error();
  for (const std::string& name : *names) {
    if (!name.ends_with(".log")) continue;
    const std::string stem = name.substr(0, name.size() - 4);
    if (std::none_of(files_.begin(), files_.end(), [&](const LedgerFile& f) { return f.name == stem; }))
      files_.push_back({.name = stem});
  }
  return {};
}

// An end is applied after the claim that it belongs to: claims are read after the sizes of the ledgers.
Status FarmState::refresh() {
  STOKER_RETURN_IF_ERROR(find_ledgers());
  std::vector<std::uint64_t> sizes;
  for (const LedgerFile& file : files_) {
    STOKER_ASSIGN_OR_RETURN(size, size_of(file));
    sizes.push_back(size);
  }
  STOKER_RETURN_IF_ERROR(read_claims());
  for (std::size_t i = 0; i < sizes.size(); ++i) STOKER_RETURN_IF_ERROR(read_ledger(i, sizes[i]));
  return {};
}

Status FarmState::read_claims() {
  const Path folder = claims_folder();
  for (;; ++next_claim_) {
    const auto text = read_file(folder / format("{}", next_claim_), kMostClaimBytes);
    if (!text) return text.error().code() == Code::not_found ? Status() : text.error();
    const auto record = parse_ledger_line(trim(*text));
    const TaskClaim* const claim = record ? std::get_if<TaskClaim>(&*record) : nullptr;
    if (claim == nullptr || (!claim->tasks.empty() && claim->tasks.back() >= tasks_.size())) {
      ++damaged_;
      continue;
    }
    apply_claim(*claim);
  }
}

Status FarmState::read_ledger(std::size_t file, std::uint64_t end) {
  const Path path = folder_ / "ledger" / (files_[file].name + ".log");
  return read_journal(
      path, &files_[file].offset,
      [&](std::string_view line) {
        if (const auto record = parse_ledger_line(line)) {
          apply(file, *record);
        } else {
          ++damaged_;
        }
      },
      end);
}

// Few workers; the last ones are named most.
std::uint32_t FarmState::worker_named(const std::string& id) {
  for (std::size_t i = workers_.size(); i > 0; --i) {
    if (workers_[i - 1].id == id) return static_cast<std::uint32_t>(i);
  }
  workers_.push_back({.id = id});
  return static_cast<std::uint32_t>(workers_.size());
}

void FarmState::free_all_of(std::uint32_t worker) {
  for (TaskFacts& task : tasks_) {
    if (task.owner == worker) task.owner = 0;
  }
}

void FarmState::apply(std::size_t file, const LedgerRecord& record) {
  LedgerFile& ledger = files_[file];
  if (const auto* const end = std::get_if<TaskEnd>(&record)) return apply_end(file, *end);
  if (const auto* const start = std::get_if<WorkerStart>(&record)) {
    if (ledger.worker > 0) {
      workers_[ledger.worker - 1].is_over = true;
      free_all_of(ledger.worker);
    }
    ledger.worker = worker_named(start->id);
    KnownWorker& worker = workers_[ledger.worker - 1];
    worker.file = ledger.name;
    worker.who = start->who;
    worker.job = start->job;
    worker.list_digest = start->list_digest;
    worker.started = start->time;
    return;
  }
  if (ledger.worker == 0) return;
  if (const auto* const freed = std::get_if<TasksFreed>(&record)) {
    if (workers_[ledger.worker - 1].list_digest != list_.digest()) return;
    for (const TaskIndex task : freed->tasks) {
      if (task < tasks_.size() && tasks_[task].owner == ledger.worker) tasks_[task].owner = 0;
    }
  } else if (std::holds_alternative<WorkerExit>(record)) {
    workers_[ledger.worker - 1].is_over = true;
    workers_[ledger.worker - 1].has_exited = true;
    free_all_of(ledger.worker);
  }
}

// The position of the task now: lines may have moved since.
std::optional<TaskIndex> FarmState::index_of(const TaskEnd& end) {
  if (end.task < list_.size() && list_.key(end.task) == end.key) return end.task;
  if (by_key_.empty()) {
    for (TaskIndex task = 0; task < list_.size(); ++task) by_key_.emplace_back(list_.key(task), task);
    std::sort(by_key_.begin(), by_key_.end());
  }
  const auto found = std::lower_bound(by_key_.begin(), by_key_.end(), std::pair(end.key, TaskIndex{0}));
  if (found == by_key_.end() || found->first != end.key) return std::nullopt;
  return found->second;
}

// Once, and until the memory exceeds what the attempt used.
void FarmState::double_memory(TaskIndex index, std::uint64_t peak_bytes) {
  std::uint8_t& doublings = tasks_[index].memory_doublings;
  count_up(doublings);
  const auto memory = list_.needs(index).memory;
  if (!memory || memory->value == 0) return;
  while (doublings < kMostDoublings && (memory->value << doublings) <= peak_bytes) ++doublings;
}

void FarmState::apply_end(std::size_t file, const TaskEnd& end) {
  if (files_[file].worker > 0) {
    KnownWorker& worker = workers_[files_[file].worker - 1];
    worker.ended += 1;
    worker.last_end = end.start + end.seconds;
  }
  const auto index = index_of(end);
  if (!index) return;
  TaskFacts& task = tasks_[*index];
  if (end.outcome == TaskOutcome::done) run_times_.add(end.seconds);
  if (end.outcome == TaskOutcome::out_of_memory) double_memory(*index, end.peak_bytes);
  const bool is_newer = end.attempt > task.attempts || task.outcome == TaskOutcome::waiting;
  // Of two ends of one attempt, a success counts: its worker was taken for lost.
  if (is_newer || (end.attempt == task.attempts && is_success(end.outcome))) {
    task.attempts = static_cast<std::uint16_t>(std::min<std::uint32_t>(end.attempt, 0xFFFF));
    task.outcome = end.outcome;
    if (!outputs_.empty()) outputs_[*index] = {static_cast<std::uint32_t>(file), end.offset, end.length};
  }
  if (!end.is_kept && task.owner == files_[file].worker) task.owner = 0;
}

// A worker that was taken for lost and claims again is alive.
void FarmState::apply_claim(const TaskClaim& claim) {
  const std::uint32_t number = worker_named(claim.worker);
  KnownWorker& worker = workers_[number - 1];
  if (!worker.has_exited) worker.is_over = false;
  for (const TaskIndex task : claim.tasks) tasks_[task].owner = worker.has_exited ? 0 : number;
}

void FarmState::apply_own_claim(const TaskClaim& claim) {
  apply_claim(claim);
  ++next_claim_;
}

void FarmState::apply_own(const std::string& name, const LedgerRecord& record, std::uint64_t ledger_size) {
  auto file = std::find_if(files_.begin(), files_.end(), [&](const LedgerFile& f) { return f.name == name; });
  if (file == files_.end()) file = files_.insert(files_.end(), {.name = name});
  file->offset = ledger_size;
  apply(static_cast<std::size_t>(file - files_.begin()), record);
}

bool FarmState::is_lost(KnownWorker& worker, double now, const JobIsOver& job_is_over) const {
  if (worker.file.empty()) {
    // Its claim is there before its ledger is seen.
    if (worker.missed_since == 0) worker.missed_since = now;
    return now - worker.missed_since > Seconds(kWorkerLease).count();
  }
  const record::ProcessIdentity here = record::this_process();
  if (worker.who.host == here.host) {
    const auto boot = [](const std::string& text) { return text.substr(0, text.find(' ')); };
    if (worker.who.boot == here.boot) return !record::is_alive_on_this_host(worker.who);
    if (boot(worker.who.boot) != boot(here.boot)) return true;
  }
  struct stat facts{};
  if (::stat((folder_ / "ledger" / (worker.file + ".log")).c_str(), &facts) != 0) return false;
  const double age = now - static_cast<double>(facts.st_mtim.tv_sec);
  if (age > Seconds(kWorkerLease).count()) return true;
  return age > kSettledSeconds && !worker.job.empty() && job_is_over &&
         job_is_over(worker.job).value_or(false);
}

Status FarmState::find_lost_workers(double now, const JobIsOver& job_is_over) {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].is_over && is_lost(workers_[i], now, job_is_over)) lost.push_back(i);
  }
  if (lost.empty()) return {};
  // What it recorded before its end counts.
  STOKER_RETURN_IF_ERROR(refresh());
  for (const std::uint32_t index : lost) {
    workers_[index].is_over = true;
    free_all_of(index + 1);
  }
  return {};
}

TaskCounts FarmState::counts() const {
  TaskCounts counts;
  for (const TaskFacts& task : tasks_) {
    counts.done += task.outcome == TaskOutcome::done ? 1 : 0;
    counts.up_to_date += task.outcome == TaskOutcome::up_to_date ? 1 : 0;
    if (is_success(task.outcome)) continue;
    if (task.owner != 0) {
      ++counts.claimed;
    } else if (is_failure(task.outcome)) {
      ++counts.failed;
      counts.out_of_memory += task.outcome == TaskOutcome::out_of_memory ? 1 : 0;
      counts.timeout += task.outcome == TaskOutcome::timeout ? 1 : 0;
    } else {
      ++counts.waiting;
    }
  }
  return counts;
}

}  // namespace stoker::farm
