// How a dataset comes to be, so that a kill at any moment loses at most the shards in work:
//   1. OUT/.packing/ is made and locked; .packing/plan gets the plan's fingerprint
//   2. each shard is written to .packing/<shard>.<random>.part, synced, renamed to .packing/<shard>
//   3. then its facts go to .packing/<shard>.fragment (synced, by rename): the shard is finished
//   4. when all are finished, the shards are renamed into OUT, OUT is synced
//   5. index.bin and left-out.csv are written inside .packing/, synced, and renamed into OUT
//   6. so is manifest.json, and OUT is synced                   <- the dataset exists from here on
//   7. .packing/ is removed
// No file is ever written in OUT itself, so that a kill leaves nothing there that has no owner.
// A reader asks for manifest.json, so before 6 there is no dataset. A second call of the same plan takes
// finished shards as they are, wherever 4 was interrupted; after 6 it only does 7. A call of another plan
// removes what the first had made, and nothing else. Two calls at once: the lock is flock(2), which a kill
// releases; where a filesystem has no locks each call still writes files of its own, and the rename of whole
// files keeps every file whole.
#include "data/pack/workspace.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <sys/file.h>
#include <unistd.h>

#include "base/time.h"
#include "format/manifest.h"

namespace stoker::data {

namespace {

constexpr std::string_view kPlanFile = "plan";
constexpr std::string_view kLockFile = "lock";  // a part's has its number behind it
constexpr std::string_view kPlanLockFile = "lock-plan";
constexpr std::string_view kLeftOutFile = "left-out.csv";
constexpr std::string_view kFragment = ".fragment";
constexpr std::string_view kPart = ".part";  // until it is whole

bool is_lock(std::string_view name) { return name.starts_with(kLockFile); }

std::string shown(const Path& path) { return printable(path.string()); }

}  // namespace

Path Workspace::pending(std::string_view name) const { return out_ / formats::kPendingFolder / name; }

Path Workspace::final_place(std::string_view name) const { return out_ / name; }

Status Workspace::check_output(const Path& out) {
  if (!path_exists(out)) return {};
  if (!folder_exists(out)) return exists("{}: is not a folder", shown(out));
  OK_OR_RETURN(names, list_directory(out));
  if (names.empty() || path_exists(out / formats::kPendingFolder)) return {};
  return exists("{}: is not empty (a dataset goes into a new or empty folder)", shown(out));
}

Result<Workspace> Workspace::open(const Path& out, const Outline& outline, std::optional<PackPart> part) {
  Workspace space(out, &outline);
  space.is_part_ = part.has_value();
  RETURN_IF_ERROR(check_output(out));
  if (!path_exists(out)) {
    RETURN_IF_ERROR(make_directories(out));
    space.made_folder_ = true;
  }
  Status status = part ? space.claim_part(*part) : space.claim();
  if (status.ok()) status = space.check_free_space(part ? part->of : 1);
  if (!status.ok()) {
    if (space.state_ == State::fresh && status.code() != Code::unavailable) space.discard();
    return status;
  }
  space.drop_stale(part.value_or(PackPart{}));
  return space;
}

Result<Workspace> Workspace::open_for_merge(const Path& out) {
  if (!path_exists(out / formats::kPendingFolder / kPlanFile)) {
    const Result<formats::Manifest> whole = formats::read_manifest(out);
    if (whole.ok()) return exists("{}: is a whole dataset: nothing is left to merge", shown(out));
    return not_found("{}: no parts of a dataset are there", shown(out))
        .cure("stoker data pack SOURCE {} --part 1/N, and so on", shell_quote(out.string()));
  }
  Workspace space(out, nullptr);
  RETURN_IF_ERROR(space.lock(space.lock_, kLockFile, LOCK_EX, "`stoker data pack`"));
  OK_OR_RETURN(plan, space.stored_plan());
  if (!plan) return corrupt("{}: its plan is damaged", shown(out));
  space.stored_ = std::make_unique<Outline>(std::move(*plan));
  space.outline_ = space.stored_.get();
  space.state_ = path_exists(space.final_place(formats::kManifestFile)) ? State::published : State::resumed;
  return space;
}

bool Workspace::is_ready_to_merge(const Path& out) {
  const Workspace space(out, nullptr);
  if (path_exists(space.final_place(formats::kManifestFile))) return false;
  const Result<std::optional<Outline>> plan = space.stored_plan();
  if (!plan.ok() || !*plan || (*plan)->shards.empty()) return false;
  return std::ranges::all_of((*plan)->shards,
                             [&](const ShardOutline& shard) { return space.has_finished(shard.file); });
}

// Not by closing it: threads of ours that have a table of open files of their own have it open, too, until a
// moment after they were joined.
void FileLock::release() {
  if (file.fd() >= 0) ::flock(file.fd(), LOCK_UN);
  file = File();
}

// Where a filesystem has no locks we go on without.
Status Workspace::lock(FileLock& lock, std::string_view name, int how, std::string_view holder) const {
  if (lock.file.fd() < 0) {
    OK_OR_RETURN(opened, File::open_read_write(pending(name)));
    lock.file = std::move(opened);
  }
  if (::flock(lock.file.fd(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return unavailable("{}: another {} is writing there", shown(out_), holder);
  }
  return {};
}

// Step 1, for the whole.
Status Workspace::claim() {
  RETURN_IF_ERROR(make_directories(pending("")));
  RETURN_IF_ERROR(lock(lock_, kLockFile, LOCK_EX, "`stoker data pack`"));
  return take_plan();
}

// Step 1, for a part: parts share the first lock, and each has one of its own. The plan is looked at and
// written under a third, so that parts which start together agree on it.
Status Workspace::claim_part(const PackPart& part) {
  constexpr auto kLongest = std::chrono::seconds(60);
  RETURN_IF_ERROR(make_directories(pending("")));
  FileLock plan_lock;
  for (const Deadline deadline = Deadline::after(kLongest);;) {
    const Status status = lock(plan_lock, kPlanLockFile, LOCK_EX, "`stoker data pack`");
    if (status.ok()) break;
    if (status.code() != Code::unavailable || deadline.passed()) return status;
    RealClock().sleep(std::chrono::milliseconds(20));
  }
  RETURN_IF_ERROR(lock(lock_, kLockFile, LOCK_SH, "`stoker data pack`"));
  RETURN_IF_ERROR(lock(part_lock_, format("{}-{}", kLockFile, part.number), LOCK_EX,
                       format("`stoker data pack --part {}/{}`", part.number, part.of)));
  OK_OR_RETURN(found, stored_plan());
  if (found && (found->fingerprint != outline_->fingerprint || found->parts != outline_->parts))
    RETURN_IF_ERROR(replace_parts(*found));
  RETURN_IF_ERROR(take_plan());
  return lock(lock_, kLockFile, LOCK_SH, "`stoker data pack`");
}

// Whether parts of another plan, or of another number, which lie there may go: none of them is at work, and
// no finished shard is lost.
Status Workspace::replace_parts(const Outline& found) {
  if (path_exists(final_place(formats::kManifestFile))) return {};  // take_plan says what is wrong
  const bool are_at_work = !lock(lock_, kLockFile, LOCK_EX, "").ok();
  state_ = State::resumed;  // what lies there is others' work
  if (found.fingerprint != outline_->fingerprint && (are_at_work || has_finished_any())) {
    return invalid("{}: other parts pack another source, or with other options", shown(out_))
        .cure("rm -r {}", shell_quote((out_ / formats::kPendingFolder).string()));
  }
  if (are_at_work)
    return invalid("{}: others pack it in {} parts, this one of {}", shown(out_), found.parts,
                   outline_->parts);
  state_ = State::fresh;
  return {};
}

Result<std::optional<Outline>> Workspace::stored_plan() const {
  if (!path_exists(pending(kPlanFile))) return std::optional<Outline>();
  OK_OR_RETURN(text, read_file(pending(kPlanFile), 4_GiB));
  Result<Outline> outline = Outline::decode(text, shown(pending(kPlanFile)));
  // One that an older stoker wrote, or a torn one: another plan than any.
  if (!outline.ok()) return std::optional(Outline{});
  return std::optional(std::move(*outline));
}

Status Workspace::write_plan() const {
  return write_file(pending(kPlanFile), outline_->encode(), Durability::synced);
}

// REQUIRES: nobody else may write what another plan's shards are. Compares the plan that lies there.
Status Workspace::take_plan() {
  const bool is_whole = path_exists(final_place(formats::kManifestFile));
  OK_OR_RETURN(found, stored_plan());
  if (found && found->fingerprint == outline_->fingerprint) {
    state_ = is_whole ? State::published : State::resumed;
    return is_whole || found->parts == outline_->parts ? Status() : write_plan();
  }
  if (is_whole) {  // another plan's dataset, killed in step 7
    state_ = State::published;
    RETURN_IF_ERROR(clean());
    return check_output(out_);
  }
  if (found) {
    RETURN_IF_ERROR(discard_other_plan());
    state_ = State::restarted;
  }
  return write_plan();
}

// Removes the files that fragments and steps 4 and 5 name, and no other.
Status Workspace::discard_other_plan() const {
  OK_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (is_lock(name)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.rfind('.'));
    if (name.ends_with(kFragment) && path_exists(final_place(stem)))
      RETURN_IF_ERROR(remove_file(final_place(stem)));
  }
  for (std::string_view name : {formats::kIndexFile, kLeftOutFile}) {
    if (path_exists(final_place(name))) RETURN_IF_ERROR(remove_file(final_place(name)));
  }
  for (const std::string& name : names) {
    if (!is_lock(name)) RETURN_IF_ERROR(remove_file(pending(name)));
  }
  return {};
}

Status Workspace::check_free_space(std::uint64_t parts) const {
  if (state_ == State::resumed || state_ == State::published) return {};
  const std::uint64_t needed = outline_->shard_bytes / parts;
  const Result<ByteCount> free = free_space(out_);
  if (free.ok() && free->value < needed) {
    return no_space("{}: the shards need {}, {} are free", shown(out_), rounded({needed}), rounded(*free));
  }
  return {};
}

// What calls that were killed left half written, of the shards that are this part's alone.
void Workspace::drop_stale(const PackPart& part) const {
  const Result<std::vector<std::string>> names = list_directory(pending(""));
  if (!names.ok()) return;
  std::set<std::string_view> mine;
  for (std::size_t i = part.number - 1; i < outline_->shards.size(); i += part.of)
    mine.insert(outline_->shards[i].file);
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
  return pending(format("{}.{}{}", spec.file, own_, kPart));
}

std::optional<ShardFacts> Workspace::finished(std::string_view shard) const {
  if (state_ != State::resumed) return std::nullopt;
  const Result<std::string> text = read_file(pending(std::string(shard) + std::string(kFragment)), 16_GiB);
  if (!text.ok()) return std::nullopt;
  Result<ShardFacts> facts = ShardFacts::decode(*text, outline_->fingerprint, shard);
  if (!facts.ok()) return std::nullopt;
  for (const Path& place : {pending(shard), final_place(shard)}) {
    std::error_code missing;
    if (std::filesystem::file_size(place, missing) == facts->bytes && !missing) return std::move(*facts);
  }
  return std::nullopt;
}

// Step 2.
Result<std::unique_ptr<ShardWriting>> Workspace::begin_shard(const PackPlan& plan, const ShardSpec& spec,
                                                             std::shared_ptr<ReadAhead> samples,
                                                             Hashing hashing) const {
  return ShardWriting::begin(plan, std::move(samples), unfinished(spec), hashing);
}

// The end of 2, and 3.
Result<ShardFacts> Workspace::finish_shard(const ShardSpec& spec, ShardWriting& writing) const {
  OK_OR_RETURN(facts, writing.finish());
  RETURN_IF_ERROR(rename_path(unfinished(spec), pending(spec.file)));
  const Path fragment = pending(spec.file + std::string(kFragment));
  RETURN_IF_ERROR(write_file(fragment, facts.encode(outline_->fingerprint), Durability::synced));
  return std::move(facts);
}

void Workspace::drop_shard(const ShardSpec& spec) const { ::unlink(unfinished(spec).c_str()); }

// Steps 4 to 7.
Status Workspace::publish(const formats::Manifest& manifest, const std::string& index,
                          const std::string& left_out_csv) {
  for (const ShardOutline& spec : outline_->shards) {
    // An interrupted step 4 has moved some.
    if (path_exists(pending(spec.file)))
      RETURN_IF_ERROR(rename_path(pending(spec.file), final_place(spec.file)));
  }
  const auto place = [&](std::string_view name, std::string_view content) -> Status {
    RETURN_IF_ERROR(write_file(pending(name), content, Durability::synced));
    return rename_path(pending(name), final_place(name));
  };
  RETURN_IF_ERROR(place(formats::kIndexFile, index));
  if (!left_out_csv.empty()) RETURN_IF_ERROR(place(kLeftOutFile, left_out_csv));
  RETURN_IF_ERROR(sync_directory(out_));
  RETURN_IF_ERROR(place(formats::kManifestFile, formats::to_json(manifest)));
  RETURN_IF_ERROR(sync_directory(out_));
  return clean();
}

// The plan goes after the rest: as long as it is there, a call of the same plan knows the dataset for its
// own. The locks go last, given up before: NFS gives an open file another name in the folder, which then
// cannot go. A folder of locks that stays behind is no harm.
Status Workspace::clean() {
  OK_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (name != kPlanFile && !is_lock(name)) RETURN_IF_ERROR(remove_file(pending(name)));
  }
  if (path_exists(pending(kPlanFile))) RETURN_IF_ERROR(remove_file(pending(kPlanFile)));
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
  if (made_folder_) ::rmdir(out_.c_str());
}

}  // namespace stoker::data
