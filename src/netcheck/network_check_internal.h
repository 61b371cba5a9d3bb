// The session behind run_network_check. Internal to this folder: network_check.cc starts the ranks, sends
// them requests and ends them, network_check_internal.cc has the requests of
// each step. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "net/world.h"
#include "netcheck/network_check.h"
#include "netcheck/worker_set.h"

namespace stoker::netcheck {

class NetworkCheck {
 public:
  NetworkCheck(const NetworkCheckOptions& options, const CheckListener& listener, net::WorldServer server,
               WorkerSet workers);
  Result<Report> run();
  void end();

 private:
  // network_check.cc
  using Requests = std::map<Rank, net::ControlMessage>;
  using ReplyHandler = std::function<Status(Rank, const net::ControlMessage&)>;
  Status start();
  Status run_step(const std::string& step, const Requests& requests, Duration limit,
                  const ReplyHandler& on_reply);
  void poll_once(std::vector<net::ControlMessage>* answers, std::vector<Rank>* from);
  void check_silent_ranks(const std::string& step, const std::set<Rank>& open);
  void report_missing_ranks(MonoTime first);
  void read_worker_output();
  void mark_absent(Rank rank, const std::string& step, std::string why);
  void mark_unstarted();
  void mark_side_effects();
  Status check_stop() const;
  std::string host_of(Rank rank) const;
  Message who(Rank rank) const;
  Message rank_error(Rank rank, std::string_view why) const;
  std::vector<Rank> present() const;
  void finish_step(const std::string& name, bool is_fine, Message text);
  void skip_step(const std::string& name, Message why);

  // network_check_internal.cc
  Status names();
  Status facts();
  Status storage();
  Status connect();
  Status speed();
  Status measure(const std::vector<std::pair<Rank, Rank>>& pairs);
  Status check_all_reduce();
  Status torch();
  Status make_ring();
  Status collective(netcheck::Operation operation, std::uint64_t bytes, int repeats, double* seconds);
  Status time_operations();
  std::vector<std::string> addresses_of(Rank rank) const;
  std::string best_address(Rank from, Rank to) const;

  const NetworkCheckOptions& options_;
  const CheckListener& listener_;
  net::WorldServer server_;
  WorkerSet workers_;
  Report report_;
  MonoTime begin_;
  MonoTime step_begin_;
  std::set<Rank> joined_;
  std::set<Rank> gone_;
  std::map<Rank, MonoTime> last_message_;
  std::map<Rank, std::string> reached_;          // the address of its end of our connection
  std::map<Rank, std::string> errors_;           // of the last request
  std::map<Rank, net::ControlMessage> results_;  // the "done" of the last request
  std::set<Rank> reported_silent_;
  std::map<std::string, std::string>
      failed_nodes_;  // nodes on which srun could start nothing, with its message
  bool reported_missing_ = false;
  bool is_granted_ = false;
};

}  // namespace stoker::netcheck
