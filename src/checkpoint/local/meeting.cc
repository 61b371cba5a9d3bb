// How steps go by way of the nodes' own disks. S is a share's folder there, named for step, writer, repeat
// and rank; P the pending folder on shared storage (save/commit.cc, whose numbers are meant below).
//   a. the rank writes its files to S and fsyncs them
//   b. it writes the share's record in S and fsyncs it: the share is kept, and the memory is free
//   c. in place of 2, the rank copies its files from S to P, each block checked, and fsyncs them; then 3 to 9
//   d. once the step is published on shared storage it removes S, the record first
// The step counts as saved from 7 on, and what is there already is not touched before 9: the death of a node
// loses the steps that were between a and 7, two at most and what was in memory, and no other. When only
// processes died, the next attempt goes on from what the nodes kept. M is <directory>/.meeting-<writer>, the
// writer being the new attempt:
//   e. every rank makes M if it is not there and writes M/rank-<r>.census: the shares on its node, when it
//      is the node's first rank
//   f. rank 0 waits for all of them and chooses the newest step, newer than the newest whole one on shared
//      storage, of which one save's shares are all there; it writes M/chosen
//   g. the first rank of each node does c for the shares it found of that save, in the name of the ranks that
//      wrote them; who has rank 0's share publishes
//   h. it writes M/rank-<r>.end, with the error if there was one; rank 0 waits for the ends of all who had
//      shares of any save, and writes M/result, for which every rank waits
//   i. the first rank of each node removes its shares, unless they could not be brought: then the next
//      attempt tries again
// A crash in between leaves P and M, and the shares; the next attempt meets anew, under its own name, and
// rank 0 removes the older meetings.
#include "checkpoint/local/meeting.h"

#include <algorithm>
#include <fcntl.h>
#include <future>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/encode.h"
#include "base/file.h"
#include "base/thread.h"
#include "checkpoint/catalog.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layout.h"
#include "checkpoint/local/share.h"
#include "checkpoint/save/commit.h"
#include "checkpoint/save/slot.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kMeeting = ".meeting-";
constexpr ByteCount kNoteLimit = 16_MiB;

// What a census says of one share.
struct Sighting {
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
                   std::vector<Sighting>* sightings) {
  JsonText json(subject, text);
  Fields fields = json.fields();
  for (Fields& entry : fields.objects("shares")) {
    const std::string save = entry.text("save");
    const Step step{entry.integer("step")};
    const auto world = entry.natural("world_size"), rank = entry.natural("rank");
    if (rank >= world || world > 1 << 24) entry.fail("rank is out of range");
    sightings->push_back({seen_by, save, step, WorldSize{static_cast<int>(world & 0x1ffffff)},
                          Rank{static_cast<int>(rank & 0x1ffffff)}});
  }
  return fields.ok() ? Status() : fields.status();
}

// The save to bring; empty: none. And the newest one that is lost, with the reason.
struct Choice {
  std::string save;
  Step step{-1};
  std::vector<int> holders;  ///< by rank that saved: who brings its share. Two nodes may see one disk
  std::string lost;
};

std::string choice_text(const Choice& choice) {
  State state;
  state.set("save", choice.save);
  state.set("step", choice.step.value);
  std::string holders;
  for (const int holder : choice.holders) holders += std::to_string(holder) + " ";
  state.set("holders", holders);
  state.set("lost", choice.lost);
  return state.to_json();
}

Result<Choice> parse_choice(std::string_view subject, std::string_view text) {
  OK_OR_RETURN(state, State::parse(subject, text));
  OK_OR_RETURN(save, state.text("save"));
  OK_OR_RETURN(step, state.integer("step"));
  OK_OR_RETURN(lost, state.text("lost"));
  Choice choice{save, Step{step}, {}, lost};
  OK_OR_RETURN(holders, state.text("holders"));
  for (const std::string_view word : split(trim(holders), ' ')) {
    std::int64_t holder = 0;
    if (word.empty()) continue;
    if (!parse_number(word, &holder)) return corrupt("{}: '{}' is no rank", subject, printable(word));
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

Choice choose(const std::vector<Sighting>& sightings, Step newest_shared) {
  struct Found {
    Step step;
    WorldSize world_size;
    std::map<int, int> holders;  // of the shares, by rank that saved
  };
  std::map<std::string, Found> saves;
  for (const Sighting& seen : sightings) {
    Found& found = saves.try_emplace(seen.save, Found{seen.step, seen.world_size, {}}).first->second;
    found.holders.emplace(seen.rank.value, seen.seen_by.value);
  }
  Choice choice;
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
      choice.lost = format("step {} is lost: no node has the share of rank{} {}", found.step,
                           missing.size() == 1 ? "" : "s", numbers_text(missing));
    }
  }
  if (lost < choice.step) choice.lost.clear();
  return choice;
}

// The newest step on shared storage that is whole as far as can be seen without reading it.
Result<Step> newest_whole(const Path& directory) {
  OK_OR_RETURN(steps, step_folders(directory));
  NoProgress progress;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    OK_OR_RETURN(info, look_at_step(directory, *step, Depth::structure, progress));
    if (info.state == StepState::valid) return *step;
  }
  return Step{-1};
}

class Meeting {
 public:
  explicit Meeting(const MeetingOptions& options)
      : options_(options),
        folder_(options.directory / format("{}{}", kMeeting, options.writer)),
        deadline_(Deadline::after(options.limit)) {}

  Result<Brought> hold() {
    RETURN_IF_ERROR(open());
    if (options_.rank.value == 0) RETURN_IF_ERROR(tell_choice());
    OK_OR_RETURN(text, await("chosen", Rank{0}));
    OK_OR_RETURN(choice, parse_choice("chosen", text));
    if (choice.save.empty()) {
      remove_shares();
      return Brought{std::nullopt, choice.lost};
    }
    if (!shares_.empty()) {
      const Status status = bring(choice);
      RETURN_IF_ERROR(write_file(folder_ / end_name(options_.rank), ending_text(status)));
    }
    if (options_.rank.value == 0) RETURN_IF_ERROR(tell_result(choice));
    OK_OR_RETURN(result, await("result", Rank{0}));
    if (const Status failed = ending_of(format("step {}", choice.step), result); !failed.ok())
      return Brought{std::nullopt, std::string(failed.message())};
    remove_shares();
    return Brought{choice.step, choice.lost};
  }

 private:
  static std::string census_name(Rank rank) { return format("rank-{:04}.census", rank.value); }
  static std::string end_name(Rank rank) { return format("rank-{:04}.end", rank.value); }

  Status open() {
    if (options_.rank.value == 0) remove_older();
    if (const Status made = make_directory(folder_); !made.ok() && made.code() != Code::exists) return made;
    if (options_.is_first_of_node) shares_ = list_shares(options_.local);
    return write_file(folder_ / census_name(options_.rank), census_text(shares_));
  }

  void remove_older() const {
    const auto names = list_directory(options_.directory);
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (name.starts_with(kMeeting) && name != folder_.filename())
        (void)remove_tree(options_.directory / name);
    }
  }

  // Waits for a file of the meeting that `who` writes.
  Result<std::string> await(const std::string& name, Rank who) const {
    for (Duration pause = 1ms;; pause = std::min<Duration>(pause * 2, 200ms)) {
      // Opening the folder makes a client of a network filesystem look anew.
      const Fd fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto text = read_file(folder_ / name, kNoteLimit);
      if (text.ok() || text.error().code() != Code::not_found) return text;
      if (deadline_.passed()) {
        return timeout("rank {} did not come to look for kept steps within {} (timeouts.checkpoint)", who,
                       rounded_duration(options_.limit));
      }
      RealClock().sleep(std::min(pause, deadline_.left()));
    }
  }

  Status tell_choice() {
    std::vector<Sighting> sightings;
    for (int r = 0; r < options_.world_size.value; ++r) {
      const std::string name = census_name(Rank{r});
      OK_OR_RETURN(text, await(name, Rank{r}));
      const std::size_t before = sightings.size();
      RETURN_IF_ERROR(read_census(name, text, Rank{r}, &sightings));
      if (sightings.size() > before) holders_.push_back(Rank{r});
    }
    OK_OR_RETURN(newest, newest_whole(options_.directory));
    return write_file(folder_ / "chosen", choice_text(choose(sightings, newest)));
  }

  // "ok", or the error.
  static std::string ending_text(const Status& status) { return status.ok() ? "ok" : failure_text(status); }
  static Status ending_of(std::string_view subject, std::string_view text) {
    return text == "ok" ? Status() : parse_failure(subject, text);
  }

  Status tell_result(const Choice& choice) {
    Status failed;
    for (const Rank holder : holders_) {
      OK_OR_RETURN(text, await(end_name(holder), holder));
      if (failed.ok()) failed = ending_of(format("rank {}", holder), text);
    }
    const auto manifest = read_manifest(options_.directory / step_folder_name(choice.step));
    if (failed.ok() && (!manifest.ok() || manifest->save != choice.save))
      failed = unavailable("was not committed");
    return write_file(folder_ / "result", ending_text(failed));
  }

  // Copies this node's shares of the chosen save. On a thread of its own, since what it calls can be stopped.
  Status bring(const Choice& choice) {
    std::promise<Status> done;
    const Thread thread([&](const StopToken& stop) { done.set_value(bring_shares(choice, stop)); });
    return done.get_future().get();  // each step of it looks at the meeting's deadline
  }

  Status bring_shares(const Choice& choice, const StopToken& stop) {
    std::vector<const Share*> mine;
    for (const Share& share : shares_) {
      const auto saved_as = static_cast<std::size_t>(share.rank.value);
      const bool is_chosen = share.marker.save == choice.save && saved_as < choice.holders.size();
      if (is_chosen && choice.holders[saved_as] == options_.rank.value) mine.push_back(&share);
    }
    // Rank 0's last: its part of the commit waits for the others'.
    std::ranges::sort(mine, [](const Share* a, const Share* b) { return a->rank > b->rank; });
    for (const Share* share : mine) RETURN_IF_ERROR(bring_share(*share, stop));
    return {};
  }

  Status bring_share(const Share& share, const StopToken& stop) {
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
    pending.give_up(status, share.marker.files);
    return status;
  }

  static Status commit_share(const Share& share, PendingStep& pending, const StopToken& stop) {
    RETURN_IF_ERROR(pending.open());
    RETURN_IF_ERROR(copy_share_files(share, pending.folder(), stop));
    RETURN_IF_ERROR(pending.sync_folders(share.marker.files));
    RETURN_IF_ERROR(pending.tell_ready(share.marker));
    if (share.rank.value != 0) return {};
    OK_OR_RETURN(markers, pending.collect(share.marker, stop));
    const Manifest manifest = complete_manifest(share.head, std::move(markers));
    RETURN_IF_ERROR(check_pieces("shares of the ranks", manifest));
    return pending.publish(manifest);
  }

  void remove_shares() const {
    for (const Share& share : shares_) remove_share(share.folder);
  }

  const MeetingOptions& options_;
  const Path folder_;
  const Deadline deadline_;
  std::vector<Share> shares_;  // of this node
  std::vector<Rank> holders_;  // rank 0: who has shares
};

}  // namespace

Result<Brought> bring_kept_steps(const MeetingOptions& options) {
  RETURN_IF_ERROR(make_directories(options.directory));
  auto brought = Meeting(options).hold();
  if (brought.ok()) return brought;
  return std::move(brought).error().with_context("checkpoint.local");
}

}  // namespace stoker::checkpoint
