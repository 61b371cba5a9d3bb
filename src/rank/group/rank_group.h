// The supervisor behind run_group: one object per attempt. Internal to this folder: group_start.cc starts,
// group.cc pumps and ends, group_watch.cc listens to the ranks and judges them, group_nodes.cc to the nodes
// where torchrun starts them. One thread.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "net/world.h"
#include "observe/system_sampler.h"
#include "rank/group/group.h"
#include "rank/process/output.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "record/events.h"

namespace stoker::rank {

// A process we started: a `stoker rank`, or the one that starts them all.
struct Starter {
  Child child;
  std::optional<int> rank;  // none: srun, or this node's torchrun
  Fd out;
  Fd err;
  LineMarker out_lines;  // of all ranks but 0
  LineMarker err_lines;
  LineKeeper out_keeper;  // of rank 0
  LineKeeper err_keeper;
  bool has_ended = false;
};

// What we follow of one rank beside its story.
struct Follow {
  std::optional<MonoTime> heard;
  Beat beat;
  bool told_stopped = false;
  bool told_silent = false;
  bool asked = false;  // whether it is still there
  bool told_unheard = false;
  bool told_waits = false;
  bool is_deaf = false;                   // it was ended for giving no sign
  std::optional<MonoTime> ended_outside;  // heard then: somebody asked it to end, and not we
};

class RankGroup {
 public:
  /// What the ranks and, where there are any, the nodes of torchrun connect to.
  struct Servers {
    net::WorldServer ranks;
    std::optional<net::WorldServer> nodes;
  };
  RankGroup(const GroupOptions& options, Servers servers, SignalFd signals, record::EventWriter events);
  Result<Ending> run();

 private:
  Status start_all();
  Environment environment_of_starters() const;
  Status start_by_srun(std::vector<std::string> argv, Environment environment);
  Status start_each(const std::vector<std::string>& argv, const Environment& base);
  Result<Starter> start_one(std::vector<std::string> argv, Environment environment, std::optional<int> rank);
  void start_helper();
  void wait();
  void hear_signals();
  void asked_to_end(int signal);
  bool came_to_a_rank_first(int signal);
  bool have_all_ended() const;
  void hear_world();
  void joined(const net::WorldEvent& event);
  void heard(RankStory& story, const net::Message& message);
  void rank_started(RankStory& story, std::int64_t pid);
  void start_sampling();
  void rank_ended(RankStory& story, Ended ended);
  void refuse(const net::WorldEvent& event);
  net::Message welcome_to(const net::Roster& roster) const;
  void hear_nodes();
  void node_ended(int node, const Ended& ended);
  void end_nodes();
  void pump(Starter& starter);
  void read_once(Fd& pipe, LineMarker* marker, LineKeeper& keeper, Sink& sink);
  void look_after_processes();
  void starter_ended(Starter& starter, Exit exit);
  void keep_deadlines();
  void keep_time();
  bool are_the_rest_deaf() const;
  void keep_watch(RankStory& story, Follow& follow);
  bool keep_in_touch(RankStory& story, Follow& follow);
  void tell_what_it_waits_for(const RankStory& story, Follow& follow);
  bool is_stopped_here(Rank rank) const;
  std::string host_at(std::string_view address) const;
  enum class Loss { no, yes };
  void accuse(RankStory& story, std::string what, int exit_code, Loss loss = Loss::no);
  void pass_on(int signal);
  void stop_all(int signal, std::string why);
  void kill_all();
  std::vector<ProcessFacts> ours() const;
  bool is_anything_left() const;
  void tell(const std::string& line) { err_.push_line(line); }
  bool is_over() const;
  Ending conclude() const;
  Result<Ending> finish();
  RankStory& story(Rank rank) { return stories_[static_cast<std::size_t>(rank.value)]; }
  Follow& follow(Rank rank) { return follow_[static_cast<std::size_t>(rank.value)]; }

  const GroupOptions& options_;
  net::WorldServer server_;
  std::optional<net::WorldServer> nodes_;  // of torchrun, one on each
  bool has_ended_nodes_ = false;
  SignalFd signals_;
  record::EventWriter events_;
  Sink out_;
  Sink err_;
  std::list<Starter> starters_;
  std::vector<RankStory> stories_;
  std::vector<Follow> follow_;
  std::vector<observe::RankProcess> processes_;
  std::unique_ptr<observe::SamplerThread> sampler_;
  bool wants_sampling_ = options_.sample_every > Duration::zero();
  pid_t helper_ = -1;
  MonoTime start_time_;
  MonoTime last_turn_;
  std::optional<MonoTime> over_since_;  // all ranks are gone, the helper is not
  bool welcomed_ = false;
  bool out_of_time_ = false;
  bool notified_ = false;          // the ranks were asked to save and stop before the time is over
  bool was_asked_to_end_ = false;  // by a signal, perhaps one that no longer decided anything
  int interrupted_by_ = 0;
  std::optional<double> ended_at_;  // Unix seconds when a signal or the time ended ranks that were well
  std::string refusal_;
  int refusal_code_ = 0;
  std::string stopping_;  // why; "" while all is well
  MonoTime stopping_since_;
  std::string step_;  // Slurm's number of the ranks' step, once one of them has told it
  bool was_srun_killed_ = false;
  bool has_killed_ = false;
  std::optional<MonoTime> kill_at_;
  std::optional<MonoTime> checkpoint_stop_;  // a rank left with 75: when the others should have, too
};

}  // namespace stoker::rank
