// How a dataset comes to be, so that a kill at any moment loses at most the shards in work:
//   1. OUT/.packing/ is made and locked; .packing/plan gets the plan's fingerprint
//   2. each shard is written to .packing/<shard>.part, synced, renamed to .packing/<shard>
//   3. then its facts go to .packing/<shard>.fragment (synced, by rename): the shard is finished
//   4. when all are finished, the shards are renamed into OUT, OUT is synced
//   5. index.bin and left-out.csv are written inside .packing/, synced, and renamed into OUT
//   6. so is manifest.json, and OUT is synced                   <- the dataset exists from here on
//   7. .packing/ is removed
// No file is ever written in OUT itself, so that a kill leaves nothing there that has no owner.
// A reader asks for manifest.json, so before 6 there is no dataset. A second call of the same plan takes
// finished shards as they are, wherever 4 was interrupted; after 6 it only does 7. A call of another plan
// removes what the first had made, and nothing else. Two calls at once: the lock is flock(2), which a kill
// releases; where a filesystem has no locks the rename of whole files still keeps every file whole.
#include "data/pack/workspace.h"

#include <cerrno>
#include <sys/file.h>
#include <unistd.h>

#include "format/manifest.h"

namespace stoker::data {

namespace {

constexpr std::string_view kPlanFile = "plan";
constexpr std::string_view kLockFile = "lock";
constexpr std::string_view kLeftOutFile = "left-out.csv";
constexpr std::string_view kFragment = ".fragment";

std::string shown(const Path& path) { return printable(path.string()); }

}  // namespace

Path Workspace::pending(std::string_view name) const {
  return plan_->options.out / formats::kPendingFolder / name;
}

Path Workspace::final_place(std::string_view name) const { return plan_->options.out / name; }

Path Workspace::fragment(const ShardSpec& spec) const { return pending(spec.file + std::string(kFragment)); }

Status Workspace::check_output(const Path& out) {
  if (!path_exists(out)) return {};
  if (!folder_exists(out)) return exists("{}: is not a folder", shown(out));
  OK_OR_RETURN(names, list_directory(out));
  if (names.empty() || path_exists(out / formats::kPendingFolder)) return {};
  return exists("{}: is not empty (a dataset goes into a new or empty folder)", shown(out));
}

Result<Workspace> Workspace::open(const PackPlan& plan) {
  Workspace space(plan);
  const Path& out = plan.options.out;
  RETURN_IF_ERROR(check_output(out));
  if (!path_exists(out)) {
    RETURN_IF_ERROR(make_directories(out));
    space.made_folder_ = true;
  }
  Status status = space.claim();
  if (status.ok()) status = space.check_free_space();
  if (!status.ok()) {
    if (space.state_ == State::fresh && status.code() != Code::unavailable) space.discard();
    return status;
  }
  return space;
}

// Step 1.
Status Workspace::claim() {
  RETURN_IF_ERROR(make_directories(pending("")));
  OK_OR_RETURN(lock, File::open_read_write(pending(kLockFile)));
  if (::flock(lock.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return unavailable("{}: another `stoker data pack` is writing there", shown(plan_->options.out));
  }
  lock_ = std::move(lock);
  const bool is_whole = path_exists(final_place(formats::kManifestFile));
  const bool has_plan = path_exists(pending(kPlanFile));
  std::string found;
  if (has_plan) {
    OK_OR_RETURN(text, read_file(pending(kPlanFile), 1_KiB));
    found = std::move(text);
  }
  if (found == plan_->fingerprint) {
    state_ = is_whole ? State::published : State::resumed;
    return {};
  }
  if (is_whole) {  // another plan's dataset, killed in step 7
    state_ = State::published;
    RETURN_IF_ERROR(clean());
    return check_output(plan_->options.out);
  }
  if (has_plan) {
    RETURN_IF_ERROR(discard_other_plan());
    state_ = State::restarted;
  }
  return write_file(pending(kPlanFile), plan_->fingerprint, Durability::synced);
}

// Removes the files that fragments and steps 4 and 5 name, and no other.
Status Workspace::discard_other_plan() const {
  OK_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (name == kLockFile) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.rfind('.'));
    if (name.ends_with(kFragment) && path_exists(final_place(stem)))
      RETURN_IF_ERROR(remove_file(final_place(stem)));
  }
  for (std::string_view name : {formats::kIndexFile, kLeftOutFile}) {
    if (path_exists(final_place(name))) RETURN_IF_ERROR(remove_file(final_place(name)));
  }
  for (const std::string& name : names) {
    if (name != kLockFile) RETURN_IF_ERROR(remove_file(pending(name)));
  }
  return {};
}

Status Workspace::check_free_space() const {
  if (state_ == State::resumed || state_ == State::published) return {};
  const Path& out = plan_->options.out;
  const Result<ByteCount> free = free_space(out);
  if (free.ok() && free->value < plan_->shard_bytes) {
    return no_space("{}: the shards need {}, {} are free", shown(out), rounded({plan_->shard_bytes}),
                    rounded(*free));
  }
  return {};
}

std::optional<ShardFacts> Workspace::finished(const ShardSpec& spec) const {
  if (state_ != State::resumed) return std::nullopt;
  const Result<std::string> text = read_file(fragment(spec), 16_GiB);
  if (!text.ok()) return std::nullopt;
  Result<ShardFacts> facts = ShardFacts::decode(*text, plan_->fingerprint, spec.file);
  if (!facts.ok()) return std::nullopt;
  for (const Path& place : {pending(spec.file), final_place(spec.file)}) {
    std::error_code missing;
    if (std::filesystem::file_size(place, missing) == facts->bytes && !missing) return std::move(*facts);
  }
  return std::nullopt;
}

// Steps 2 and 3.
Result<ShardFacts> Workspace::write(const ShardSpec& spec, const FileDone& done) const {
  const Path part = pending(spec.file + ".part");
  Result<ShardFacts> facts = write_shard(*plan_, spec, part, done);
  Status status = facts.status();
  if (status.ok()) status = rename_path(part, pending(spec.file));
  if (status.ok()) status = write_file(fragment(spec), facts->encode(plan_->fingerprint), Durability::synced);
  if (!status.ok()) {
    ::unlink(part.c_str());
    return status;
  }
  return facts;
}

// Steps 4 to 7.
Status Workspace::publish(const formats::Manifest& manifest, const std::string& index,
                          const std::string& left_out_csv) const {
  for (const ShardSpec& spec : plan_->shards) {
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
  RETURN_IF_ERROR(sync_directory(plan_->options.out));
  RETURN_IF_ERROR(place(formats::kManifestFile, formats::to_json(manifest)));
  RETURN_IF_ERROR(sync_directory(plan_->options.out));
  return clean();
}

// The plan goes last: as long as it is there, a call of the same plan knows the dataset for its own.
Status Workspace::clean() const {
  OK_OR_RETURN(names, list_directory(pending("")));
  for (const std::string& name : names) {
    if (name != kPlanFile) RETURN_IF_ERROR(remove_file(pending(name)));
  }
  return remove_tree(pending(""));
}

void Workspace::discard() const {
  (void)discard_other_plan();
  (void)clean();
  if (made_folder_) ::rmdir(plan_->options.out.c_str());
}

}  // namespace stoker::data
