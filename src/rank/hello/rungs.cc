// What is asked on each rung, and how what comes back is noted down.
#include <algorithm>
#include <cmath>

#include "rank/hello/ladder.h"
#include "rank/hello/said.h"
#include "rank/hello/wire.h"

namespace stoker::rank::hello {

using namespace std::chrono_literals;
using net::Message;
using net::Operation;

namespace {

constexpr Duration kLookUp = 10s;
constexpr Duration kGpuList = 15s;
constexpr Duration kConnect = 5s;
constexpr Duration kAnswer = 20s;
constexpr Duration kTransfer = 10s;
constexpr Duration kTorch = 120s;  // a first import from a shared disk takes its time
constexpr Duration kSlack = 20s;   // what a loaded machine may add to any of them
constexpr std::size_t kMostAddresses = 4;
constexpr std::size_t kMostNames = 512;  // each is looked up on every rank
constexpr Duration kSpeedBudget = 20s;
constexpr double kOneTiming = 0.15;   // seconds spent on one line of the table
constexpr double kLongestTiming = 2;  // a size that would take longer is left out
constexpr int kMostRepeats = 20;
constexpr std::uint64_t kSmall = 1 << 10;
constexpr std::uint64_t kSizes[] = {1 << 10, 64 << 10, 1 << 20, 16 << 20};

double seconds(Duration duration) { return Seconds(duration).count(); }

std::string host_part(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

// Pairs of a round meet no other pair: the circle method of tournaments.
std::vector<std::vector<std::pair<Rank, Rank>>> rounds_of(std::vector<Rank> ranks) {
  if (ranks.size() % 2 != 0) ranks.push_back(Rank(-1));
  std::vector<std::vector<std::pair<Rank, Rank>>> rounds;
  for (std::size_t round = 0; round + 1 < ranks.size(); ++round) {
    std::vector<std::pair<Rank, Rank>> there;
    std::vector<std::pair<Rank, Rank>> back;
    for (std::size_t i = 0; i < ranks.size() / 2; ++i) {
      const Rank a = ranks[i];
      const Rank b = ranks[ranks.size() - 1 - i];
      if (a.value < 0 || b.value < 0) continue;
      there.emplace_back(a, b);
      back.emplace_back(b, a);
    }
    rounds.push_back(std::move(there));
    rounds.push_back(std::move(back));
    std::rotate(ranks.begin() + 1, ranks.end() - 1, ranks.end());
  }
  return rounds;
}

std::vector<std::pair<Rank, Rank>> measured_pairs(const Report& report) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (const MeasuredFlow& measured : report.flows) pairs.emplace_back(measured.from, measured.flow.to);
  return pairs;
}

}  // namespace

Status Ladder::names() {
  const std::vector<Rank> all = present();
  const std::span<const std::string> hosts(report_.hosts.data(), std::min(report_.hosts.size(), kMostNames));
  Questions questions;
  for (const Rank rank : all) {
    Message question{"names", {}};
    question.with("names", ::stoker::join(hosts, ",")).with("limit_s", seconds(kLookUp));
    questions[rank] = std::move(question);
  }
  double slowest = 0;
  bool is_fine = true;
  RETURN_IF_ERROR(ask("names", questions, kLookUp + kSlack, [&](Rank rank, const Message& message) -> Status {
    OK_OR_RETURN(answer, parse_resolved(message));
    slowest = std::max(slowest, answer.seconds);
    is_fine = is_fine && (answer.error.empty() || !report_.has_several_hosts());
    report_.names.push_back({rank, std::move(answer)});
    return {};
  }));
  const std::string ranks = rank_count(all.size(), words_);
  const std::string longest = rounded_duration(std::chrono::duration_cast<Duration>(Seconds(slowest)));
  pass("names", is_fine,
       !is_fine            ? words_.say("not all names resolve everywhere")
       : hosts.size() == 1 ? words_.say("1 name on {}, at most {}", ranks, longest)
                           : words_.say("{} names on {}, at most {}", hosts.size(), ranks, longest));
  return {};
}

Status Ladder::facts() {
  const bool is_remote = options_.plan.start == Start::srun;
  Questions questions;
  for (const Rank rank : present()) {
    Message question{"facts", {}};
    question.with("reach", is_remote ? "network" : "this host").with("gpu_limit_s", seconds(kGpuList));
    questions[rank] = std::move(question);
  }
  RETURN_IF_ERROR(ask("ranks", questions, kGpuList + kSlack, [&](Rank rank, const Message& message) {
    return take_in(message, &report_.ranks[rank]);
  }));
  for (const auto& [rank, error] : errors_) give_up(rank, "ranks", error);
  pass("ranks", errors_.empty(),
       results_.size() == 1 ? words_.say("1 rank told its place")
                            : words_.say("{} ranks told their place", results_.size()));
  return {};
}

// Where to call a rank: the address that gloo would give out first.
std::vector<std::string> Ladder::addresses_of(Rank rank) const {
  const RankFacts& facts = report_.ranks.at(rank);
  std::vector<std::string> addresses = facts.addresses;
  const std::string wanted = facts.gloo.chosen ? facts.gloo.chosen->address : "";
  const auto found = std::ranges::find_if(
      addresses, [&](const std::string& address) { return host_part(address) == wanted; });
  if (found != addresses.end()) std::rotate(addresses.begin(), found, found + 1);
  if (addresses.size() > kMostAddresses) addresses.resize(kMostAddresses);
  return addresses;
}

std::string Ladder::best_address(Rank from, Rank to) const {
  for (const TriedWay& tried : report_.ways) {
    if (tried.from == from && tried.way.to == to && tried.way.error.empty()) return tried.way.address;
  }
  const std::vector<std::string> addresses = addresses_of(to);
  return addresses.empty() ? "" : addresses.front();
}

Status Ladder::connect() {
  const std::vector<Rank> all = callers(report_);
  if (all.size() < 2) {
    skip("connect",
         report_.absent.empty() ? words_.say("there is one rank") : words_.say("there is one rank left"));
    return {};
  }
  Questions questions;
  std::map<Rank, std::string> first;
  for (const Rank to : all) {
    const auto addresses = addresses_of(to);
    if (!addresses.empty()) first[to] = addresses.front();
  }
  for (const Rank from : all) {
    std::vector<net::Way> ways;
    for (const Rank to : all) {
      if (to == from) continue;
      for (const std::string& address : addresses_of(to)) ways.push_back({.to = to, .address = address});
    }
    Message question{"ways", {}};
    question.with("lines", to_lines(ways)).with("connect_s", seconds(kConnect));
    questions[from] = question.with("answer_s", seconds(kAnswer));
  }
  RETURN_IF_ERROR(ask("connect", questions, kConnect + kAnswer + kSlack,
                      [&](Rank from, const Message& message) -> Status {
                        OK_OR_RETURN(way, parse_way(message));
                        const bool is_first = first[way.to] == way.address;
                        report_.ways.push_back({from, std::move(way), is_first});
                        return {};
                      }));
  std::size_t works = 0;
  std::size_t tried = 0;
  for (const TriedWay& way : report_.ways) {
    tried += way.is_first ? 1 : 0;
    works += way.is_first && way.way.error.empty() ? 1 : 0;
  }
  const std::size_t wanted = all.size() * (all.size() - 1);
  const std::size_t hosts = report_.hosts.size();
  const bool has_several = report_.has_several_hosts();
  const bool is_part = has_several && all.size() + report_.absent.size() < hosts;
  pass("connect", works == wanted && tried == wanted,
       is_part       ? words_.say("{} of {} ways between {} nodes, of {}", works, wanted, all.size(), hosts)
       : has_several ? words_.say("{} of {} ways between {} nodes", works, wanted, all.size())
                     : words_.say("{} of {} ways between {} ranks", works, wanted, all.size()));
  return {};
}

Status Ladder::measure(const std::vector<std::pair<Rank, Rank>>& pairs) {
  Questions questions;
  for (const auto& [from, to] : pairs) {
    Message question{"flow", {}};
    question.with("lines", to_lines({{.to = to, .address = best_address(from, to)}}));
    questions[from] = question.with("limit_s", seconds(kTransfer));
  }
  if (questions.empty()) return {};
  return ask("speed", questions, 4 * kTransfer + kSlack, [&](Rank from, const Message& message) -> Status {
    OK_OR_RETURN(flow, parse_flow(message));
    for (MeasuredFlow& known : report_.flows) {
      if (known.from != from || known.flow.to != flow.to) continue;
      if (flow.error.empty() && flow.bytes_per_s() > known.flow.bytes_per_s()) known.flow = std::move(flow);
      return {};
    }
    report_.flows.push_back({from, std::move(flow)});
    return {};
  });
}

Status Ladder::speed() {
  const std::vector<Rank> all = callers(report_);
  if (!options_.measures_speed || all.size() < 2) {
    skip("speed", options_.measures_speed ? words_.say("there are no two to measure")
                                          : words_.say("not wanted (--no-speed)"));
    return {};
  }
  const auto is_open = [&](const std::pair<Rank, Rank>& pair) {
    return !gone_.contains(pair.first) && !gone_.contains(pair.second) &&
           std::ranges::any_of(report_.ways, [&](const TriedWay& tried) {
             return tried.from == pair.first && tried.way.to == pair.second && tried.way.error.empty();
           });
  };
  const MonoTime start = RealClock().mono();
  std::size_t left_out = 0;
  for (auto round : rounds_of(all)) {
    std::erase_if(round, [&](const auto& pair) { return !is_open(pair); });
    if (RealClock().mono() - start > kSpeedBudget) {
      left_out += round.size();
      continue;
    }
    RETURN_IF_ERROR(measure(round));
  }
  // A busy moment makes any link look slow: the best of three counts.
  for (int again = 0; again < 2; ++again) {
    const auto pairs = report_.has_several_hosts() ? slow_pairs(report_) : measured_pairs(report_);
    for (const auto& pair : pairs) {
      if (is_open(pair)) RETURN_IF_ERROR(measure({pair}));
    }
  }
  const bool is_fine = std::ranges::all_of(
      report_.flows, [](const MeasuredFlow& measured) { return measured.flow.error.empty(); });
  const net::Link slowest = slowest_link(report_);
  const std::size_t count = report_.flows.size();
  const std::string least = rounded({static_cast<std::uint64_t>(slowest.bytes_per_s)});
  std::string text = count == 1 ? words_.say("1 way measured, {}/s", least)
                                : words_.say("{} ways measured, the slowest {}/s", count, least);
  if (left_out > 0)
    text += words_.say("; {} left out after {}", left_out, rounded_duration(kSpeedBudget)).text();
  pass("speed", is_fine && slow_pairs(report_).empty(), std::move(text));
  return {};
}

Status Ladder::make_ring() {
  const int size = options_.plan.world_size().value;
  Questions questions;
  for (int r = 0; r < size; ++r) {
    const Rank next((r + 1) % size);
    Message question{"ring", {}};
    question.with("lines", to_lines({{.to = next, .address = best_address(Rank(r), next)}}));
    question.with("size", std::int64_t{size}).with("previous", std::int64_t{(r + size - 1) % size});
    questions[Rank(r)] = question.with("limit_s", seconds(options_.limit));
  }
  RETURN_IF_ERROR(
      ask("all-reduce", questions, options_.limit + kSlack, [](Rank, const Message&) { return Status(); }));
  for (const auto& [rank, error] : errors_) report_.ring_problem = told(rank, error);
  return {};
}

Status Ladder::collective(Operation operation, std::uint64_t bytes, int repeats, double* slowest) {
  Questions questions;
  for (const Rank rank : present()) {
    Message question{"collective", {}};
    question.with("operation", std::string(to_text(operation))).with("repeats", std::int64_t{repeats});
    question.with("bytes", static_cast<std::int64_t>(bytes)).with("limit_s", seconds(options_.limit));
    questions[rank] = question.with("size", std::int64_t{options_.plan.world_size().value});
  }
  RETURN_IF_ERROR(
      ask("all-reduce", questions, options_.limit + kSlack, [](Rank, const Message&) { return Status(); }));
  *slowest = 0;
  for (const auto& [rank, error] : errors_) report_.ring_problem = told(rank, error);
  for (const auto& [rank, done] : results_) *slowest = std::max(*slowest, done.number("seconds").value_or(0));
  if (!report_.absent.empty() && report_.ring_problem.empty())
    report_.ring_problem = told(report_.absent.back().rank, report_.absent.back().why);
  return {};
}

Status Ladder::time_operations() {
  const WorldSize size = options_.plan.world_size();
  const net::Link link = slowest_link(report_);
  for (const Operation operation : net::kOperations) {
    double last = 0;  // of the size before, by which the next is judged
    for (const std::uint64_t bytes : kSizes) {
      const double bound = shortest_time(operation, size, bytes, link);
      const double expected = std::max(bound, last);
      if (expected > kLongestTiming) break;
      const int repeats =
          std::clamp(static_cast<int>(kOneTiming / std::max(expected, 1e-6)), 1, kMostRepeats);
      double taken = 0;
      RETURN_IF_ERROR(collective(operation, bytes, repeats, &taken));
      if (!report_.ring_problem.empty()) return {};
      report_.timings.push_back({operation, bytes, taken, bound});
      last = taken;
    }
  }
  return {};
}

Status Ladder::together() {
  const WorldSize size = options_.plan.world_size();
  if (size.value < 2) {
    skip("all-reduce", words_.say("there is one rank"));
    return {};
  }
  const bool is_connected = std::ranges::all_of(
      report_.ways, [](const TriedWay& tried) { return !tried.is_first || tried.way.error.empty(); });
  if (!report_.absent.empty() || !is_connected) {
    skip("all-reduce", report_.absent.empty() ? words_.say("not all ranks reach each other")
                                              : words_.say("not all ranks are here"));
    return {};
  }
  RETURN_IF_ERROR(make_ring());
  double taken = 0;
  if (report_.ring_problem.empty()) RETURN_IF_ERROR(collective(Operation::all_reduce, kSmall, 1, &taken));
  const bool is_exact = report_.ring_problem.empty();
  if (is_exact && options_.measures_speed) RETURN_IF_ERROR(time_operations());
  const bool is_fine = report_.ring_problem.empty();
  pass("all-reduce", is_fine,
       is_fine ? words_.say("exact on {} ranks, over TCP by stoker itself", size.value).text()
               : report_.ring_problem);
  return {};
}

// The job's own library over the network it chooses by itself: what the rungs before made likely, it proves.
Status Ladder::torch() {
  if (options_.python.empty()) {
    skip("torch", words_.say("no Python of a job to ask (--python)"));
    return {};
  }
  if (!report_.absent.empty() || !report_.ring_problem.empty()) {
    skip("torch", report_.absent.empty() ? words_.say("all ranks together failed already")
                                         : words_.say("not all ranks are here"));
    return {};
  }
  const int size = options_.plan.world_size().value;
  const RankFacts& first = report_.ranks.at(Rank(0));
  const std::string address =
      report_.has_several_hosts() ? host_part(best_address(Rank(size - 1), Rank(0))) : "127.0.0.1";
  Questions questions;
  for (const Rank rank : present()) {
    Message question{"torch", {}};
    question.with("python", options_.python).with("address", address);
    question.with("port", std::int64_t{first.free_port}).with("limit_s", seconds(kTorch));
    questions[rank] = std::move(question);
  }
  RETURN_IF_ERROR(ask("torch", questions, kTorch + kSlack, [](Rank, const Message&) { return Status(); }));
  std::string said;
  std::size_t without = 0;
  for (const auto& [rank, done] : results_) {
    said = std::max(said, std::string(done.text("said")));
    const bool is_missing =
        errors_.contains(rank) && errors_[rank].find("No module named 'torch'") != std::string::npos;
    without += is_missing ? 1 : 0;
  }
  if (without == results_.size()) {
    skip("torch", words_.say("{} has no torch", options_.python));
    return {};
  }
  // The first in time is not known; a rank that says more than that another one left knows more.
  for (const auto& [rank, error] : errors_) {
    const bool is_effect = error.find("onnection closed by peer") != std::string::npos ||
                           error.find("onnection reset by peer") != std::string::npos;
    if (report_.torch_problem.empty() || !is_effect) report_.torch_problem = told(rank, error);
  }
  const bool is_fine = report_.torch_problem.empty() && report_.absent.empty();
  pass("torch", is_fine, is_fine ? printable(said) : report_.torch_problem);
  return {};
}

}  // namespace stoker::rank::hello
