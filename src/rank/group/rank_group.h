// The supervisor of run_group: one object per attempt. Feeds the events of ranks, nodes, signals and clocks
// into group_state.h, and performs the actions. Internal to this folder. One thread.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "net/world.h"
#include "rank/folder_presence.h"
#include "rank/group/group.h"
#include "rank/group/group_sampling.h"
#include "rank/group/group_state.h"
#include "rank/group/rank_monitor.h"
#include "rank/group/starter.h"
#include "rank/process/output.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "record/events.h"

namespace stoker::rank {

class RankGroup {
 public:
  /// The servers for the ranks and, with torchrun, for the nodes.
  struct Servers {
    net::WorldServer ranks;
    std::optional<net::WorldServer> nodes;
  };
  RankGroup(const GroupOptions& options, Servers servers, SignalFd signals, record::EventWriter events);
  Result<Ending> run();

 private:
  void wait();
  void handle_signals();
  void handle_termination_signal(int signal);
  bool reached_rank_first(int signal);
  bool have_all_ended() const;
  void handle_rank_events();
  void handle_join(const net::WorldEvent& event);
  void handle_message(RankStatus& status, const net::ControlMessage& message);
  void handle_rank_start(RankStatus& status, std::int64_t pid);
  GroupSampling::Peers sampling_peers();
  void handle_rank_exit(RankStatus& status, RankExit ended);
  void refuse(const net::WorldEvent& event);
  net::ControlMessage welcome_message(const net::RankRegistry& registry) const;
  void handle_node_events();
  void handle_node_exit(int node, const RankExit& ended);
  void end_nodes();
  void pump(Starter& starter);
  void read_once(Fd& pipe, LinePrefixer* marker, LineBuffer& line_buffer, Sink& sink);
  void reap_processes();
  void handle_starter_exit(Starter& starter, Exit exit);
  void check_deadlines();
  void check_time_limit();
  void report_folder_loss(const std::optional<FolderLoss>& loss);
  bool remaining_unresponsive() const;
  void check_running(RankStatus& status);
  bool is_stopped_here(Rank rank) const;
  bool is_peer_stopped(Rank rank) const;
  bool has_hanging_rank() const;
  std::string host_at(std::string_view address) const;
  void mark_failed(RankStatus& status, DetectedFailure failure);
  void forward_signal(int signal);
  void apply(const GroupEvent& event);
  void stop_all(int signal);
  void kill_all();
  std::vector<ProcessFacts> own_processes() const;
  bool has_processes_left() const;
  void log_line(const std::string& line) { err_.push_line(line); }
  bool is_over() const;
  Result<Ending> finish();
  RankStatus& status(Rank rank) { return statuses_[static_cast<std::size_t>(rank.value)]; }
  RankMonitor& monitor(Rank rank) { return monitors_[static_cast<std::size_t>(rank.value)]; }

  const GroupOptions& options_;
  net::WorldServer server_;
  std::optional<net::WorldServer> nodes_;  // with torchrun, one per node
  bool has_ended_nodes_ = false;
  SignalFd signals_;
  record::EventWriter events_;
  FolderPresence folders_;
  std::string lost_folder_;  // why the run folder is lost; "" while it is in its place
  Sink out_;
  Sink err_;
  std::list<Starter> starters_;
  std::vector<RankStatus> statuses_;
  std::vector<RankMonitor> monitors_;
  GroupSampling sampling_;
  pid_t helper_ = -1;
  MonoTime start_time_;
  MonoTime last_turn_;
  std::optional<MonoTime> over_since_;  // all ranks are gone, the helper is not
  GroupState state_;
  MonoTime stopping_since_;
  std::string step_;  // Slurm's number of the ranks' step, once reported
  bool was_srun_killed_ = false;
  bool has_killed_ = false;
  std::optional<MonoTime> kill_at_;
  std::optional<MonoTime> checkpoint_stop_;  // a rank exited with 75: deadline for its peers to exit
};

}  // namespace stoker::rank
