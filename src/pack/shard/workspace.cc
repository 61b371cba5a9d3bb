// Publishing protocol. A crash at any point loses at most the shards in progress:
//   1. OUT/.packing/ is created and locked; .packing/plan gets the plan's fingerprint
//   2. each shard is written to .packing/<shard>.<random>.part, synced, renamed to .packing/<shard>
//   3. its facts are written to .packing/<shard>.fragment (synced, by rename): the shard is finished
//   4. when all are finished, the shards are renamed into OUT, OUT is synced
//   5. index.bin and left-out.csv are written inside .packing/, synced, and renamed into OUT
//   6. the same for manifest.json, and OUT is synced            <- the dataset exists from here on
//   7. .packing/ is removed
// Files are never written in OUT itself, so that a crash leaves no orphans there. Readers open manifest.json,
// so there is no dataset before 6. A second call of the same plan reuses finished shards, wherever 4 was
// interrupted; after 6 it only does 7. A call of a different plan removes only the files of the first.
// Concurrent calls: the lock is flock(2), which the kernel releases on exit. On a filesystem without locks
// each call still writes its own files, and renaming whole files keeps every file intact.
#include "pack/shard/workspace.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <sys/file.h>
#include <unistd.h>

#include "dataset/manifest.h"
#include "stoker/time.h"

namespace stoker::pack {

namespace {

constexpr std::string_view kPlanFile = "plan";
constexpr std::string_view kLockFile = "lock";  // parts append their number
constexpr std::string_view kPlanLockFile = "lock-plan";
constexpr std::string_view kLeftOutFile = "left-out.csv";
constexpr std::string_view kFragment = ".fragment";
constexpr std::string_view kPart = ".part";  // temporary suffix

bool is_lock(std::string_view name) { return name.starts_with(kLockFile); }

std::string shown(const Path& path) { return printable(path.string()); }

}  // namespace

Path Workspace::pending(std::string_view name) const { return out_ / dataset::kPendingFolder / name; }

Path Workspace::final_path(std::string_view name) const { return out_ / name; }

Status Workspace::check_output(const Path& out) {
  if (out == "-")
    return invalid("-: a dataset is a folder, not standard output (OUT)")
        .cure("./- for a folder of that name");
  if (!path_exists(out)) return {};
  if (!folder_exists(out)) return exists("{}: is not a folder", shown(out));
  STOKER_ASSIGN_OR_RETURN(names, list_directory(out));
  if (names.empty() || path_exists(out / dataset::kPendingFolder)) return {};
  return exists("{}: is not empty (a dataset goes into a new or empty folder)", shown(out));
}

Result<Workspace> Workspace::open(const Path& out, const DatasetPlan& dataset_plan,
                                  std::optional<PackPart> part) {
  Workspace space(out, &dataset_plan);
  space.is_part_ = part.has_value();
  STOKER_RETURN_IF_ERROR(check_output(out));
  if (!path_exists(out)) {
    STOKER_RETURN_IF_ERROR(make_directories(out));
    space.created_folder_ = true;
  }
  Status status = part ? space.claim_part(*part) : space.claim();
  if (status.ok()) status = space.check_free_space(part ? part->count : 1);
  if (!status.ok()) {
    if (space.state_ == State::fresh && status.code() != Code::unavailable) space.discard();
    return status;
  }
  space.remove_stale(part.value_or(PackPart{}));
  return space;
}

Result<Workspace> Workspace::open_for_merge(const Path& out) {
  if (!path_exists(out / dataset::kPendingFolder / kPlanFile)) {
    const Result<dataset::Manifest> whole = dataset::read_manifest(out);
    if (whole.ok()) return exists("{}: is already a complete dataset", shown(out));
    return not_found("{}: has no packed parts", shown(out))
        .cure("stoker data pack SOURCE {} --part 1/N", shell_quote(out.string()));
  }
  Workspace space(out, nullptr);
  STOKER_RETURN_IF_ERROR(space.lock(space.lock_, kLockFile, LOCK_EX, "`stoker data pack`"));
  STOKER_ASSIGN_OR_RETURN(plan, space.stored_plan());
  if (!plan) return corrupt("{}: its plan is damaged", shown(out));
  space.stored_ = std::make_unique<DatasetPlan>(std::move(*plan));
  space.dataset_plan_ = space.stored_.get();
  space.state_ = path_exists(space.final_path(dataset::kManifestFile)) ? State::published : State::resumed;
  return space;
}

bool Workspace::is_ready_to_merge(const Path& out) {
  const Workspace space(out, nullptr);
  if (path_exists(space.final_path(dataset::kManifestFile))) return false;
  const Result<std::optional<DatasetPlan>> plan = space.stored_plan();
  if (!plan.ok() || !*plan || (*plan)->shards.empty()) return false;
  return std::ranges::all_of((*plan)->shards,
                             [&](const PlannedShard& shard) { return space.has_finished(shard.file); });
}

// Unlocks explicitly: threads with a separate descriptor table may keep the file open until shortly after
// they were joined.
void FileLock::release() {
  if (file.fd() >= 0) ::flock(file.fd(), LOCK_UN);
  file = File();
}

// Filesystems without locks are used without.
Status Workspace::lock(FileLock& lock, std::string_view name, int how, std::string_view holder) const {
  if (lock.file.fd() < 0) {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_read_write(pending(name)));
    lock.file = std::move(opened);
  }
  if (::flock(lock.file.fd(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return unavailable("{}: another {} is writing there", shown(out_), holder);
  }
  return {};
}

// Step 1 without parts.
Status Workspace::claim() {
  STOKER_RETURN_IF_ERROR(make_directories(pending("")));
  STOKER_RETURN_IF_ERROR(lock(lock_, kLockFile, LOCK_EX, "`stoker data pack`"));
  return adopt_plan();
}

// Step 1 for a part: parts share the first lock, and each has its own second lock. A third lock protects
// reading and writing the plan, so that parts which start together agree on it.
Status Workspace::claim_part(const PackPart& part) {
  constexpr auto kLongest = std::chrono::seconds(60);
  STOKER_RETURN_IF_ERROR(make_directories(pending("")));
  FileLock plan_lock;
  for (const Deadline deadline = Deadline::after(kLongest);;) {
    const Status status = lock(plan_lock, kPlanLockFile, LOCK_EX, "`stoker data pack`");
    if (status.ok()) break;
    if (status.code() != Code::unavailable || deadline.passed()) return status;
    RealClock().sleep(std::chrono::milliseconds(20));
  }
  STOKER_RETURN_IF_ERROR(lock(lock_, kLockFile, LOCK_SH, "`stoker data pack`"));
  STOKER_RETURN_IF_ERROR(lock(part_lock_, format("{}-{}", kLockFile, part.number), LOCK_EX,
                              format("`stoker data pack --part {}/{}`", part.number, part.count)));
  STOKER_ASSIGN_OR_RETURN(found, stored_plan());
  if (found && (found->fingerprint != dataset_plan_->fingerprint || found->parts != dataset_plan_->parts))
    STOKER_RETURN_IF_ERROR(check_replaceable(*found));
  STOKER_RETURN_IF_ERROR(adopt_plan());
  return lock(lock_, kLockFile, LOCK_SH, "`stoker data pack`");
}

// Whether parts of a different plan or number may be replaced: no part is running, and no finished shard is
// lost.
Status Workspace::check_replaceable(const DatasetPlan& found) {
  if (path_exists(final_path(dataset::kManifestFile))) return {};  // adopt_plan() reports the error
  const bool are_running = !lock(lock_, kLockFile, LOCK_EX, "").ok();
  state_ = State::resumed;  // the files there belong to other parts
  if (found.fingerprint != dataset_plan_->fingerprint && (are_running || has_finished_any())) {
    return invalid("{}: the other parts have a different source or different options", shown(out_))
        .cure("rm -r {}", shell_quote((out_ / dataset::kPendingFolder).string()));
  }
  if (are_running)
    return invalid("{}: others pack it in {} parts, this one of {}", shown(out_), found.parts,
                   dataset_plan_->parts);
  state_ = State::fresh;
  return {};
}

Result<std::optional<DatasetPlan>> Workspace::stored_plan() const {
  if (!path_exists(pending(kPlanFile))) return std::optional<DatasetPlan>();
  STOKER_ASSIGN_OR_RETURN(text, read_file(pending(kPlanFile), 4_GiB));
  Result<DatasetPlan> dataset_plan = DatasetPlan::decode(text, shown(pending(kPlanFile)));
  // A plan of an older release, or a torn one, counts as a different plan.
  if (!dataset_plan.ok()) return std::optional(DatasetPlan{});
  return std::optional(std::move(*dataset_plan));
}

Status Workspace::write_plan() const {
  return write_file(pending(kPlanFile), dataset_plan_->encode(), Durability::synced);
}

// REQUIRES: no other process may write shards of a different plan. Compares the stored plan.
Status Workspace::adopt_plan() {
  const bool is_whole = path_exists(final_path(dataset::kManifestFile));
  STOKER_ASSIGN_OR_RETURN(found, stored_plan());
  if (found && found->fingerprint == dataset_plan_->fingerprint) {
    state_ = is_whole ? State::published : State::resumed;
    return is_whole || found->parts == dataset_plan_->parts ? Status() : write_plan();
  }
  if (is_whole) {  // a dataset of a different plan, interrupted in step 7
    state_ = State::published;
    STOKER_RETURN_IF_ERROR(clean());
    return check_output(out_);
  }
  if (found) {
    STOKER_RETURN_IF_ERROR(discard_other_plan());
    state_ = State::restarted;
  }
  return write_plan();
}

// Removes exactly the files of fragments and of steps 4 and 5.
Status Workspace::discard_other_plan() const {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (is_lock(name)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.rfind('.'));
    if (name.ends_with(kFragment) && path_exists(final_path(stem)))
      STOKER_RETURN_IF_ERROR(remove_file(final_path(stem)));
  }
  for (std::string_view name : {dataset::kIndexFile, kLeftOutFile}) {
    if (path_exists(final_path(name))) STOKER_RETURN_IF_ERROR(remove_file(final_path(name)));
  }
  for (const std::string& name : names) {
    if (!is_lock(name)) STOKER_RETURN_IF_ERROR(remove_file(pending(name)));
  }
  return {};
}

Status Workspace::check_free_space(std::uint64_t parts) const {
  if (state_ == State::resumed || state_ == State::published) return {};
  const std::uint64_t needed = dataset_plan_->shard_bytes / parts;
  const Result<ByteCount> free = free_space(out_);
  if (free.ok() && free->value < needed) {
    return no_space("{}: the shards need {}, {} are free", shown(out_), rounded({needed}), rounded(*free));
  }
  return {};
}

// Removes temporary files of crashed calls, for shards of this part only.
void Workspace::remove_stale(const PackPart& part) const {
  const Result<std::vector<std::string>> names = list_directory(pending(""));
  if (!names.ok()) return;
  std::set<std::string_view> mine;
  for (std::size_t i = part.number - 1; i < dataset_plan_->shards.size(); i += part.count)
    mine.insert(dataset_plan_->shards[i].file);
  for (const std::string& name : *names) {
    if (!name.ends_with(kPart)) continue;
    const std::string_view whole = std::string_view(name).substr(0, name.size() - kPart.size());
    if (mine.contains(whole.substr(0, whole.rfind('.')))) ::unlink(pending(name).c_str());
  }
}

bool Workspace::has_finished(std::string_view shard) const {
  return path_exists(pending(std::string(shard) + std::string(kFragment)));
}

bool Workspace::has_finished_any() const {
  const Result<std::vector<std::string>> names = list_directory(pending(""));
  return names.ok() && std::any_of(names->begin(), names->end(),
                                   [](const std::string& name) { return name.ends_with(kFragment); });
}

Path Workspace::unfinished(const ShardSpec& spec) const {
  return pending(format("{}.{}{}", spec.file, suffix_, kPart));
}

std::optional<ShardFacts> Workspace::finished(std::string_view shard) const {
  if (state_ != State::resumed) return std::nullopt;
  const Result<std::string> text = read_file(pending(std::string(shard) + std::string(kFragment)), 16_GiB);
  if (!text.ok()) return std::nullopt;
  Result<ShardFacts> facts = ShardFacts::decode(*text, dataset_plan_->fingerprint, shard);
  if (!facts.ok()) return std::nullopt;
  for (const Path& place : {pending(shard), final_path(shard)}) {
    std::error_code missing;
    if (std::filesystem::file_size(place, missing) == facts->bytes && !missing) return std::move(*facts);
  }
  return std::nullopt;
}

// Step 2.
Result<std::unique_ptr<ShardWriter>> Workspace::begin_shard(const PackPlan& plan, const ShardSpec& spec,
                                                            std::shared_ptr<ReadAhead> samples,
                                                            Hashing hashing) const {
  return ShardWriter::begin(plan, std::move(samples), unfinished(spec), hashing);
}

// The end of 2, and 3.
Result<ShardFacts> Workspace::finish_shard(const ShardSpec& spec, ShardWriter& writer) const {
  STOKER_ASSIGN_OR_RETURN(facts, writer.finish());
  STOKER_RETURN_IF_ERROR(rename_path(unfinished(spec), pending(spec.file)));
  const Path fragment = pending(spec.file + std::string(kFragment));
  STOKER_RETURN_IF_ERROR(write_file(fragment, facts.encode(dataset_plan_->fingerprint), Durability::synced));
  return std::move(facts);
}

void Workspace::remove_unfinished(const ShardSpec& spec) const { ::unlink(unfinished(spec).c_str()); }

// Steps 4 to 7.
Status Workspace::publish(const dataset::Manifest& manifest, const std::string& index,
                          const std::string& left_out_csv) {
  for (const PlannedShard& spec : dataset_plan_->shards) {
    // An interrupted step 4 has moved some.
    if (path_exists(pending(spec.file)))
      STOKER_RETURN_IF_ERROR(rename_path(pending(spec.file), final_path(spec.file)));
  }
  const auto place = [&](std::string_view name, std::string_view content) -> Status {
    STOKER_RETURN_IF_ERROR(write_file(pending(name), content, Durability::synced));
    return rename_path(pending(name), final_path(name));
  };
  STOKER_RETURN_IF_ERROR(place(dataset::kIndexFile, index));
  if (!left_out_csv.empty()) STOKER_RETURN_IF_ERROR(place(kLeftOutFile, left_out_csv));
  STOKER_RETURN_IF_ERROR(sync_directory(out_));
  STOKER_RETURN_IF_ERROR(place(dataset::kManifestFile, dataset::to_json(manifest)));
  STOKER_RETURN_IF_ERROR(sync_directory(out_));
  return clean();
}

// The plan is removed after the other files: while it exists, a call of the same plan recognizes the dataset.
// Locks are released and removed last: NFS renames open files instead of removing them. A remaining folder
// with locks is harmless.
Status Workspace::clean() {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (name != kPlanFile && !is_lock(name)) STOKER_RETURN_IF_ERROR(remove_file(pending(name)));
  }
  if (path_exists(pending(kPlanFile))) STOKER_RETURN_IF_ERROR(remove_file(pending(kPlanFile)));
  lock_.release();
  part_lock_.release();
  for (const std::string& name : names) {
    if (is_lock(name)) ::unlink(pending(name).c_str());
  }
  ::rmdir(pending("").c_str());
  return {};
}

void Workspace::discard() {
  if (is_part_) return;
  (void)discard_other_plan();
  (void)clean();
  if (created_folder_) ::rmdir(out_.c_str());
}

}  // namespace stoker::pack
