// Steps through node-local disks. S is the folder of a share there, named by step, writer, repeat and rank.
// P is the pending folder on shared storage (save/commit.cc; its numbers are used below).
//   a. the rank writes its files to S and fsyncs them
//   b. it writes the share's record in S and fsyncs it: the share is complete, and its memory is free
//   c. instead of 2, the rank copies its files from S to P, verifies each block and fsyncs them; then 3 to 9
//   d. once the step is published on shared storage, the rank removes S, the record first
// The step counts as saved from 7 on, and existing steps are not touched before 9. A lost node loses the
// steps between a and 7 (two at most) and the steps in memory. If only processes died, the next attempt
// resumes from the local shares. M is <directory>/.recovery-<writer>, where the writer is the new attempt:
//   e. every rank creates M if missing and writes M/rank-<r>.census: the shares on its node, if it is the
//      first rank of the node
//   f. rank 0 waits for all of them and chooses the newest step, newer than the newest valid one on shared
//      storage, with all shares of one save present; it writes M/chosen
//   g. the first rank of each node does c for its shares of that save, on behalf of the ranks that wrote
//   them;
//      the holder of rank 0's share publishes
//   h. it writes M/rank-<r>.end, with the error if any; rank 0 waits for this file of all ranks with shares
//   and
//      writes M/result, for which every rank waits
//   i. the first rank of each node removes its shares, unless the copy failed: the next attempt then retries
// A crash in between leaves P, M and the shares. The next attempt uses its own M, and rank 0 removes older
// ones.
#include "checkpoint/local/recovery.h"

#include <algorithm>
#include <fcntl.h>
#include <future>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "archive/safetensors.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/thread.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/save/commit.h"
#include "checkpoint/save/share.h"
#include "checkpoint/save/slot.h"

namespace stoker::checkpoint {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kRecoveryPrefix = ".recovery-";
constexpr ByteCount kNoteLimit = 16_MiB;

// A share as listed in a census.
struct FoundShare {
  Rank seen_by;
  std::string save;
  Step step;
  WorldSize world_size;
  Rank rank;
};

std::string census_text(const std::vector<Share>& shares) {
  std::string text = "{\"shares\":[";
  for (const Share& share : shares) {
    text += format("{}{{\"save\":{},\"step\":{},\"world_size\":{},\"rank\":{}}}",
                   text.back() == '[' ? "" : ",", json_string(share.marker.save), share.head.step.value,
                   share.head.world_size.value, share.rank.value);
  }
  return text + "]}";
}

Status read_census(std::string_view subject, std::string_view text, Rank seen_by,
                   std::vector<FoundShare>* found_shares) {
  JsonText json(subject, text);
  JsonFields fields = json.fields();
  for (JsonFields& entry : fields.objects("shares")) {
    const std::string save = entry.text("save");
    const Step step{entry.integer("step")};
    const auto world = entry.natural("world_size"), rank = entry.natural("rank");
    if (rank >= world || world > 1 << 24) entry.fail("rank is out of range");
    found_shares->push_back({seen_by, save, step, WorldSize{static_cast<int>(world & 0x1ffffff)},
                             Rank{static_cast<int>(rank & 0x1ffffff)}});
  }
  return fields.ok() ? Status() : fields.status();
}

// The save to recover; empty: none. And the newest lost one, with the reason.
struct RecoveryChoice {
  std::string save;
  Step step{-1};
  std::vector<int> holders;  ///< rank that copies each share, by saving rank. Two nodes may see one disk
  std::string lost;
};

std::string choice_text(const RecoveryChoice& choice) {
  StateValues state;
  state.set("save", choice.save);
  state.set("step", choice.step.value);
  std::string holders;
  for (const int holder : choice.holders) holders += std::to_string(holder) + " ";
  state.set("holders", holders);
  state.set("lost", choice.lost);
  return state.to_json();
}

Result<RecoveryChoice> parse_choice(std::string_view subject, std::string_view text) {
  STOKER_ASSIGN_OR_RETURN(state, StateValues::parse(subject, text));
  STOKER_ASSIGN_OR_RETURN(save, state.text("save"));
  STOKER_ASSIGN_OR_RETURN(step, state.integer("step"));
  STOKER_ASSIGN_OR_RETURN(lost, state.text("lost"));
  RecoveryChoice choice{save, Step{step}, {}, lost};
  STOKER_ASSIGN_OR_RETURN(holders, state.text("holders"));
  for (const std::string_view word : split(trim(holders), ' ')) {
    std::int64_t holder = 0;
    if (word.empty()) continue;
    if (!parse_number(word, &holder)) return corrupt("{}: '{}' is not a rank", subject, printable(word));
    choice.holders.push_back(static_cast<int>(holder));
  }
  return choice;
}

std::string numbers_text(const std::set<int>& numbers) {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t count = 0;
  for (const int number : numbers) {
    if (++count <= kMost) text += (text.empty() ? "" : ", ") + std::to_string(number);
  }
  return count > kMost ? format("{} and {} more", text, count - kMost) : text;
}

RecoveryChoice choose(const std::vector<FoundShare>& found_shares, Step newest_shared) {
  struct Found {
    Step step;
    WorldSize world_size;
    std::map<int, int> holders;  // of the shares, by saving rank
  };
  std::map<std::string, Found> saves;
  for (const FoundShare& seen : found_shares) {
    Found& found = saves.try_emplace(seen.save, Found{seen.step, seen.world_size, {}}).first->second;
    found.holders.emplace(seen.rank.value, seen.seen_by.value);
  }
  RecoveryChoice choice;
  Step lost{-1};
  for (const auto& [save, found] : saves) {
    if (found.step <= newest_shared) continue;
    if (std::cmp_equal(found.holders.size(), found.world_size.value)) {
      if (found.step <= choice.step) continue;
      choice = {save, found.step, {}, choice.lost};
      for (const auto& [rank, holder] : found.holders) choice.holders.push_back(holder);
    } else if (found.step > lost) {
      std::set<int> missing;
      for (int r = 0; r < found.world_size.value; ++r) {
        if (!found.holders.contains(r)) missing.insert(r);
      }
      lost = found.step;
      choice.lost = format("step {} is lost: the share of rank{} {} is on no node", found.step,
                           missing.size() == 1 ? "" : "s", numbers_text(missing));
    }
  }
  if (lost < choice.step) choice.lost.clear();
  return choice;
}

// The newest step on shared storage that is valid without reading its data.
Result<Step> newest_valid_step(const Path& directory) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(directory));
  NoProgress progress;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    STOKER_ASSIGN_OR_RETURN(info, inspect_step(directory, *step, Depth::structure, progress));
    if (info.state == StepState::valid) return *step;
  }
  return Step{-1};
}

class LocalRecovery {
 public:
  explicit LocalRecovery(const RecoveryOptions& options)
      : options_(options),
        folder_(options.directory / format("{}{}", kRecoveryPrefix, options.writer)),
        deadline_(Deadline::after(options.limit)) {}

  Result<RecoveredStep> run() {
    STOKER_RETURN_IF_ERROR(open());
    if (options_.rank.value == 0) STOKER_RETURN_IF_ERROR(write_choice());
    STOKER_ASSIGN_OR_RETURN(text, wait_for_file("chosen", Rank{0}));
    STOKER_ASSIGN_OR_RETURN(choice, parse_choice("chosen", text));
    if (choice.save.empty()) {
      remove_shares();
      return RecoveredStep{std::nullopt, choice.lost};
    }
    if (!shares_.empty()) {
      const Status status = copy_shares_aside(choice);
      STOKER_RETURN_IF_ERROR(write_file(folder_ / end_name(options_.rank), ending_text(status)));
    }
    if (options_.rank.value == 0) STOKER_RETURN_IF_ERROR(write_result(choice));
    STOKER_ASSIGN_OR_RETURN(result, wait_for_file("result", Rank{0}));
    if (const Status failed = ending_of(format("step {}", choice.step), result); !failed.ok())
      return RecoveredStep{std::nullopt, std::string(failed.message())};
    remove_shares();
    return RecoveredStep{choice.step, choice.lost};
  }

 private:
  static std::string census_name(Rank rank) { return format("rank-{:04}.census", rank.value); }
  static std::string end_name(Rank rank) { return format("rank-{:04}.end", rank.value); }

  Status open() {
    if (options_.rank.value == 0) remove_older();
    if (const Status made = make_directory(folder_); !made.ok() && made.code() != Code::exists) return made;
    if (options_.is_local_rank0) shares_ = list_shares(options_.local);
    return write_file(folder_ / census_name(options_.rank), census_text(shares_));
  }

  void remove_older() const {
    const auto names = list_directory(options_.directory);
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (name.starts_with(kRecoveryPrefix) && name != folder_.filename())
        (void)remove_tree(options_.directory / name);
    }
  }

  // Waits for a file of the recovery that `who` writes.
  Result<std::string> wait_for_file(const std::string& name, Rank who) const {
    for (Duration pause = 1ms;; pause = std::min<Duration>(pause * 2, 200ms)) {
      // Opening the folder makes a client of a network filesystem refresh it.
      const Fd fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto text = read_file(folder_ / name, kNoteLimit);
      if (text.ok() || text.error().code() != Code::not_found) return text;
      if (deadline_.passed()) {
        return timeout("rank {} did not join the recovery of local steps within {} (timeouts.checkpoint)",
                       who, rounded_duration(options_.limit));
      }
      RealClock().sleep(std::min(pause, deadline_.left()));
    }
  }

  Status write_choice() {
    std::vector<FoundShare> found_shares;
    for (int r = 0; r < options_.world_size.value; ++r) {
      const std::string name = census_name(Rank{r});
      STOKER_ASSIGN_OR_RETURN(text, wait_for_file(name, Rank{r}));
      const std::size_t before = found_shares.size();
      STOKER_RETURN_IF_ERROR(read_census(name, text, Rank{r}, &found_shares));
      if (found_shares.size() > before) holders_.push_back(Rank{r});
    }
    STOKER_ASSIGN_OR_RETURN(newest, newest_valid_step(options_.directory));
    return write_file(folder_ / "chosen", choice_text(choose(found_shares, newest)));
  }

  // "ok", or the error.
  static std::string ending_text(const Status& status) { return status.ok() ? "ok" : failure_text(status); }
  static Status ending_of(std::string_view subject, std::string_view text) {
    return text == "ok" ? Status() : parse_failure(subject, text);
  }

  Status write_result(const RecoveryChoice& choice) {
    Status failed;
    for (const Rank holder : holders_) {
      STOKER_ASSIGN_OR_RETURN(text, wait_for_file(end_name(holder), holder));
      if (failed.ok()) failed = ending_of(format("rank {}", holder), text);
    }
    const auto manifest = read_manifest(options_.directory / step_folder_name(choice.step));
    if (failed.ok() && (!manifest.ok() || manifest->save != choice.save))
      failed = unavailable("was not committed");
    return write_file(folder_ / "result", ending_text(failed));
  }

  // Copies this node's shares of the chosen save. On its own thread, because the copy takes a stop token.
  Status copy_shares_aside(const RecoveryChoice& choice) {
    std::promise<Status> done;
    const Thread thread([&](const StopToken& stop) { done.set_value(copy_chosen_shares(choice, stop)); });
    return done.get_future().get();  // each of its steps checks the recovery's deadline
  }

  Status copy_chosen_shares(const RecoveryChoice& choice, const StopToken& stop) {
    std::vector<const Share*> own_shares;
    for (const Share& share : shares_) {
      const auto saved_as = static_cast<std::size_t>(share.rank.value);
      const bool is_chosen = share.marker.save == choice.save && saved_as < choice.holders.size();
      if (is_chosen && choice.holders[saved_as] == options_.rank.value) own_shares.push_back(&share);
    }
    // Rank 0's last: its part of the commit waits for its peers.
    std::ranges::sort(own_shares, [](const Share* a, const Share* b) { return a->rank > b->rank; });
    for (const Share* share : own_shares) STOKER_RETURN_IF_ERROR(copy_share(*share, stop));
    return {};
  }

  Status copy_share(const Share& share, const StopToken& stop) {
    SaverOptions as;
    as.directory = options_.directory;
    as.rank = share.rank;
    as.world_size = share.head.world_size;
    as.writer = options_.writer + "-kept";
    as.limit = options_.limit;
    as.observe = options_.observe;
    PendingStep pending(as, share.head.step, share.marker.save, deadline_);
    Status status = commit_share(share, pending, stop);
    if (status.ok()) return status;
    status = pending.explain(status);
    pending.abort(status, share.marker.files);
    return status;
  }

  static Status commit_share(const Share& share, PendingStep& pending, const StopToken& stop) {
    STOKER_RETURN_IF_ERROR(pending.open());
    STOKER_RETURN_IF_ERROR(copy_share_files(share, pending.folder(), stop));
    STOKER_RETURN_IF_ERROR(pending.sync_folders(share.marker.files));
    STOKER_RETURN_IF_ERROR(pending.write_ready_marker(share.marker));
    if (share.rank.value != 0) return {};
    STOKER_ASSIGN_OR_RETURN(markers, pending.collect(share.marker, stop));
    const StepManifest manifest = complete_manifest(share.head, std::move(markers));
    STOKER_RETURN_IF_ERROR(check_pieces("shares of the ranks", manifest));
    return pending.publish(manifest);
  }

  void remove_shares() const {
    for (const Share& share : shares_) remove_share(share.folder);
  }

  const RecoveryOptions& options_;
  const Path folder_;
  const Deadline deadline_;
  std::vector<Share> shares_;  // of this node
  std::vector<Rank> holders_;  // rank 0: ranks with shares
};

}  // namespace

Result<RecoveredStep> recover_local_steps(const RecoveryOptions& options) {
  STOKER_RETURN_IF_ERROR(make_directories(options.directory));
  auto recovered = LocalRecovery(options).run();
  if (recovered.ok()) return recovered;
  return std::move(recovered).error().with_context("checkpoint.local");
}

}  // namespace stoker::checkpoint
