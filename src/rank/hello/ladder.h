// The session behind run_session. Internal to this folder: session.cc starts the ranks, asks them and ends
// them, rungs.cc says what is asked on each rung. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "net/world.h"
#include "rank/hello/crew.h"
#include "rank/hello/session.h"

namespace stoker::rank::hello {

class Ladder {
 public:
  Ladder(const SessionOptions& options, const Audience& audience, net::WorldServer server, Crew crew);
  Result<Report> climb();
  void end();

 private:
  // session.cc
  using Questions = std::map<Rank, net::Message>;
  using Hear = std::function<Status(Rank, const net::Message&)>;
  Status start();
  Status ask(const std::string& rung, const Questions& questions, Duration limit, const Hear& hear);
  void turn(std::vector<net::Message>* answers, std::vector<Rank>* from);
  void look_for_silence(const std::string& rung, const std::set<Rank>& open);
  void look_for_missing(MonoTime first);
  void hear_crew();
  void give_up(Rank rank, const std::string& rung, std::string why);
  void lose_starters();
  void tell_cause_from_effect();
  Status check_stop() const;
  std::string host_of(Rank rank) const;
  std::string who(Rank rank) const;
  std::string told(Rank rank, std::string_view why) const;
  std::vector<Rank> present() const;
  void pass(const std::string& name, bool is_fine, std::string text);
  void skip(const std::string& name, std::string why);

  // rungs.cc
  Status names();
  Status facts();
  Status storage();
  Status connect();
  Status speed();
  Status measure(const std::vector<std::pair<Rank, Rank>>& pairs);
  Status together();
  Status torch();
  Status make_ring();
  Status collective(net::Operation operation, std::uint64_t bytes, int repeats, double* seconds);
  Status time_operations();
  std::vector<std::string> addresses_of(Rank rank) const;
  std::string best_address(Rank from, Rank to) const;

  const SessionOptions& options_;
  const Words words_;
  const Audience& audience_;
  net::WorldServer server_;
  Crew crew_;
  Report report_;
  MonoTime begin_;
  MonoTime rung_begin_;
  std::set<Rank> joined_;
  std::set<Rank> gone_;
  std::map<Rank, MonoTime> heard_;
  std::map<Rank, std::string> reached_;   // the address of its end of the connection to us
  std::map<Rank, std::string> errors_;    // of the last question
  std::map<Rank, net::Message> results_;  // the "done" of the last question
  std::set<Rank> told_silent_;
  std::map<std::string, std::string> failed_nodes_;  // on which srun could start nothing, in its words
  bool told_missing_ = false;
  bool granted_ = false;
};

}  // namespace stoker::rank::hello
