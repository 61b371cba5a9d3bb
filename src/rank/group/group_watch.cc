#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/stopwatch.h"
#include "rank/group/rank_group.h"
#include "rank/process/process_tree.h"

namespace stoker::rank {

using namespace std::chrono_literals;
using net::WorldEvent;

namespace {

constexpr Duration kNoticeStopped = 3s;
constexpr Duration kNoticeSilent = 10s;
// Without a beacon silence may be all right (waiting for a download): it is worth a word later.
constexpr Duration kNoticeSilentWithoutBeacon = 60s;
constexpr Duration kNoticeUnheard = 8s;
// Then it is sent a word, to see whether its kernel takes it.
constexpr Duration kAskAfter = 3s;
constexpr Duration kNoticeWaits = 5s;
constexpr Duration kSamplingDelay = 400ms;

double wall_seconds() { return unix_seconds(RealClock().wall()); }
Duration to_duration(double seconds) { return std::chrono::duration_cast<Duration>(Seconds(seconds)); }

}  // namespace

void RankGroup::hear_world() {
  for (WorldEvent& event : server_.take()) {
    switch (event.kind) {
      case WorldEvent::Kind::joined:
        joined(event);
        break;
      case WorldEvent::Kind::message:
        heard(story(event.rank), event.message);
        break;
      case WorldEvent::Kind::refused:
        refuse(event);
        break;
      case WorldEvent::Kind::left:
        // On this machine the end of its process says more; across hosts the connection is all there is.
        if (!starters_.empty() && !starters_.front().rank && !story(event.rank).ended) {
          accuse(story(event.rank), "was lost: its connection broke (node gone, or killed from outside)", 1,
                 Loss::yes);
        }
        break;
    }
  }
}

void RankGroup::joined(const WorldEvent& event) {
  RankStory& member = story(event.rank);
  member.joined = true;
  member.host = net::place_name(event.hello);
  follow(event.rank).heard = mono_now();
  if (!server_.roster().is_complete() || welcomed_ || !stopping_.empty()) return;
  welcomed_ = true;
  server_.broadcast(welcome_to(server_.roster()));
}

void RankGroup::refuse(const WorldEvent& event) {
  if (!refusal_.empty()) return;
  refusal_ = event.text;
  refusal_code_ = event.hello.problem.empty() ? 2 : 3;
  stop_all(SIGTERM, event.text);
}

// All have come: tells them where the training's own ranks meet.
net::Message RankGroup::welcome_to(const net::Roster& roster) const {
  const net::Hello& first = *roster.find(Rank(0));
  std::string address = "127.0.0.1";
  for (int r = 1; const net::Hello* hello = roster.find(Rank(r)); ++r) {
    if (hello->host == first.host) continue;
    // A rank elsewhere has reached this host as `via`; if rank 0 is not on this host, its own end works.
    address = first.host == options_.start.supervisor.host ? hello->via : first.address;
    break;
  }
  net::Message message{"welcome", {}};
  message.with("address", address).with("port", std::int64_t{first.port});
  return message.with("grace_s", Seconds(options_.timeouts.grace).count());
}

void RankGroup::heard(RankStory& member, const net::Message& message) {
  Follow& watched = follow(member.rank);
  watched.heard = mono_now();
  if (message.kind == "started") {
    if (step_.empty()) step_ = message.text("step");
    rank_started(member, message.integer("pid").value_or(0));
  } else if (message.kind == "beat") {
    watched.beat = parse_beat(message);
    member.where = watched.beat.where;
  } else if (message.kind == "ended" && !member.ended) {
    rank_ended(member, parse_ended(message));
  }
}

void RankGroup::rank_started(RankStory& member, std::int64_t pid) {
  (void)write_event(events_, record::RankStarted{.rank = member.rank.value, .host = member.host, .pid = pid});
  processes_.push_back({member.rank.value, pid});
}

// Runs that are over at once are not worth a row.
void RankGroup::start_sampling() {
  const bool are_all_here = options_.plan.start == Start::here && processes_.size() == stories_.size();
  if (sampler_ || !are_all_here || mono_now() - start_time_ < kSamplingDelay) return;
  wants_sampling_ = false;
  auto sampler =
      observe::SamplerThread::start(options_.attempt.system(0), processes_, {.every = options_.sample_every});
  if (sampler.ok()) sampler_ = std::move(*sampler);
}

void RankGroup::rank_ended(RankStory& member, Ended ended) {
  record::RankEnded event;
  event.rank = member.rank.value;
  event.host = member.host;
  if (ended.exit.signal != 0) event.signal = ended.exit.signal;
  if (ended.exit.signal == 0) event.exit_code = ended.exit.code;
  event.stopped_by_us = ended.stopped_by_us;
  event.phase = ended.where.phase;
  event.epoch = ended.where.epoch;
  event.step = ended.where.step;
  event.reason = reason(ended);
  (void)write_event(events_, event);
  const std::string who = format("rank {} ({})", member.rank.value, printable(member.host));
  if (!ended.left_behind.empty() && !ended.stopped_by_us) {
    tell(format("{} left processes behind, ended now: {}", who, ended.left_behind));
  }
  if (!ended.log_complaint.empty()) tell(format("{}: {}", who, ended.log_complaint));
  member.ended = std::move(ended);
  const int code = member.ended->exit.shell_code();
  if (!stopping_.empty()) return;
  if (member.ended->stopped_by_us) follow(member.rank).ended_outside = mono_now();
  if (code == kStoppedAfterCheckpoint) {
    if (!checkpoint_stop_) checkpoint_stop_ = mono_now() + options_.timeouts.grace;
  } else if (member.ended->stopped_by_us) {
    // Not by us after all: Slurm signals every process of a step (scancel, preemption), and a person may.
    accuse(member, format("was ended from outside: {}", reason(*member.ended)),
           code == 0 ? 128 + SIGTERM : code);
  } else if (code != 0) {
    stop_all(SIGTERM, describe_failure(member));
  }
}

void RankGroup::keep_deadlines() {
  const MonoTime time = mono_now();
  // After we were stopped ourselves (Ctrl-Z) the ranks' words of that time are only now being read.
  const bool was_away = last_turn_ != MonoTime() && time - last_turn_ > 3s;
  last_turn_ = time;
  for (RankStory& member : stories_) {
    if (was_away && follow(member.rank).heard) follow(member.rank).heard = time;
    if (stopping_.empty() && welcomed_ && !member.ended) keep_watch(member, follow(member.rank));
  }
  if (!welcomed_ && stopping_.empty() && time - start_time_ > options_.timeouts.start) {
    for (Rank rank : server_.roster().missing()) {
      accuse(story(rank),
             format("did not come within {} (timeouts.start)", rounded_duration(options_.timeouts.start)), 3);
    }
  }
  keep_time();
  end_nodes();
  if (checkpoint_stop_ && time > *checkpoint_stop_ && stopping_.empty() && !have_all_ended()) {
    stop_all(SIGTERM, "a rank left with exit code 75 (saved and stopped), others did not");
  }
  if (kill_at_ && (time > *kill_at_ || are_the_rest_deaf())) kill_all();
  if (wants_sampling_ && stopping_.empty()) start_sampling();
}

// A command that can save is asked to before the time is over, so that nothing it did is lost.
void RankGroup::keep_time() {
  if (!options_.deadline || !stopping_.empty() || have_all_ended()) return;
  const double left_s = *options_.deadline - wall_seconds();
  if (left_s < 0) {
    out_of_time_ = true;
    ended_at_ = wall_seconds();
    stop_all(SIGTERM, options_.deadline_text);
  } else if (!notified_ && welcomed_ && left_s < Seconds(options_.notice).count()) {
    notified_ = true;
    pass_on(SIGUSR1);
  }
}

// What stands still hears no SIGTERM, so there is nothing to wait for.
bool RankGroup::are_the_rest_deaf() const {
  bool has_deaf = false;
  for (const RankStory& story : stories_) {
    if (story.ended || !story.joined) continue;
    if (!follow_[static_cast<std::size_t>(story.rank.value)].is_deaf) return false;
    has_deaf = true;
  }
  return has_deaf;
}

void RankGroup::keep_watch(RankStory& member, Follow& watched) {
  const std::string who = format("rank {} ({})", member.rank.value, printable(member.host));
  const std::string place = member.where.is_known() ? " at " + to_text(member.where) : "";
  const auto limit = [](Duration setting, std::string_view name) {
    return setting > Duration::zero()
               ? format("; the run ends after {} ({})", rounded_duration(setting), name)
               : "";
  };
  const Duration stopped = to_duration(watched.beat.stopped_s);
  const Duration silent = to_duration(watched.beat.silent_s);
  const job::Timeouts& timeouts = options_.timeouts;
  if (stopped > Duration::zero() && stopped >= timeouts.stopped) {
    return accuse(member,
                  format("was stopped by a signal (state T) for {}{} (timeouts.stopped)",
                         rounded_duration(stopped), place),
                  1);
  }
  if (!keep_in_touch(member, watched)) return;
  if (timeouts.stall > Duration::zero() && silent >= timeouts.stall) {
    return accuse(member,
                  format("made no progress for {}{} (timeouts.stall)", rounded_duration(silent), place), 1);
  }
  if (stopped >= kNoticeStopped && !watched.told_stopped) {
    tell(format("{} is stopped by a signal (state T) since {}{}{}", who, rounded_duration(stopped), place,
                limit(timeouts.stopped, "timeouts.stopped")));
    watched.told_stopped = true;
  }
  if (stopped == Duration::zero() && watched.told_stopped) {
    tell(format("{} goes on", who));
    watched.told_stopped = false;
  }
  tell_what_it_waits_for(member, watched);
  const Duration notice = watched.beat.has_beacon ? kNoticeSilent : kNoticeSilentWithoutBeacon;
  if (silent >= notice && stopped == Duration::zero() && !watched.told_silent) {
    tell(format("{} is silent since {}{}: no step, no CPU time{}", who, rounded_duration(silent), place,
                limit(timeouts.stall, "timeouts.stall")));
    watched.told_silent = true;
  }
  if (silent < notice) watched.told_silent = false;
}

// False when the rank was given up. What a kernel does not acknowledge for seconds does not reach it: the
// node or the link to it is gone, whatever the load. One that acknowledges has a `stoker rank` that stands
// still, perhaps before a shared disk that does, while its training goes on: that is worth a word, not the
// run.
bool RankGroup::keep_in_touch(RankStory& member, Follow& watched) {
  const Duration unheard = mono_now() - watched.heard.value_or(mono_now());
  if (unheard < kAskAfter) {
    watched.asked = watched.told_unheard = false;
    return true;
  }
  if (!watched.asked) server_.send(member.rank, net::Message{"still there", {}});
  watched.asked = true;
  if (unheard < kNoticeUnheard) return true;
  const job::Timeouts& timeouts = options_.timeouts;
  const std::string place = member.where.is_known() ? " at " + to_text(member.where) : "";
  if (server_.unacknowledged(member.rank) > 0) {
    watched.is_deaf = true;
    accuse(member,
           format("gave no sign for {}{}, and its host acknowledges no packet: the node or its link is gone",
                  rounded_duration(unheard), place),
           1, Loss::yes);
    return false;
  }
  const bool is_stopped = is_stopped_here(member.rank);
  const Duration limit = is_stopped ? timeouts.stopped : timeouts.stall;
  const std::string_view name = is_stopped ? "timeouts.stopped" : "timeouts.stall";
  if (limit > Duration::zero() && unheard >= limit) {
    watched.is_deaf = true;
    accuse(member,
           format("gave no sign for {}{}: its `stoker rank` stands still ({})", rounded_duration(unheard),
                  place, name),
           1);
    return false;
  }
  if (!watched.told_unheard) {
    tell(format("rank {} ({}) gives no sign since {}{}: its host answers, its `stoker rank` stands still{}",
                member.rank.value, printable(member.host), rounded_duration(unheard), place,
                limit > Duration::zero()
                    ? format("; the run ends after {} ({})", rounded_duration(limit), name)
                    : ""));
    watched.told_unheard = true;
  }
  return true;
}

// On this machine /proc tells whether a signal has stopped the rank's `stoker rank`.
bool RankGroup::is_stopped_here(Rank rank) const {
  for (const Starter& starter : starters_) {
    if (starter.rank != rank.value) continue;
    const auto facts = process_facts(starter.child.pid());
    return facts.ok() && facts->state == 'T';
  }
  return false;
}

// The host that a rank knows by this address, as people call it.
std::string RankGroup::host_at(std::string_view address) const {
  for (const RankStory& story : stories_) {
    const net::Hello* hello = server_.roster().find(story.rank);
    if (hello != nullptr && hello->address == address)
      return format("rank {} ({})", story.rank.value, printable(story.host));
  }
  return printable(address);
}

// A link that is cut between two ranks holds all of them up, and none of them is to blame: their sockets tell
// which it is, long before an exchange takes too long.
void RankGroup::tell_what_it_waits_for(const RankStory& member, Follow& watched) {
  const Duration silent = to_duration(watched.beat.silent_s);
  if (watched.beat.waits_for.empty() || silent < kNoticeWaits) {
    watched.told_waits = watched.told_waits && silent >= kNoticeWaits;
    return;
  }
  if (std::exchange(watched.told_waits, true)) return;
  tell(
      format("rank {} ({}) waits since {}{}: {} acknowledges no packet of it, the link between them is cut "
             "or blocked",
             member.rank.value, printable(member.host), rounded_duration(silent),
             member.where.is_known() ? " at " + to_text(member.where) : "", host_at(watched.beat.waits_for)));
  tell("  try: stoker hello      (in the same allocation: names every link that does not work)");
}

void RankGroup::accuse(RankStory& member, std::string what, int exit_code, Loss loss) {
  if (member.judgement) return;
  member.judgement = Judgement{wall_seconds(), std::move(what), exit_code};
  member.judgement->is_loss = loss == Loss::yes;
  stop_all(SIGTERM, describe_failure(member));
}

}  // namespace stoker::rank
