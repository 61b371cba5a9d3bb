// The requests of each step, and the recording of their results.
#include "netcheck/network_check_internal.h"

#include <algorithm>
#include <cmath>

#include "netcheck/reported_message.h"
#include "netcheck/torch_program.h"
#include "netcheck/wire.h"

namespace stoker::netcheck {

using namespace std::chrono_literals;
using netcheck::Operation;

namespace {

constexpr Duration kLookupTimeout = 10s;
constexpr Duration kGpuList = 15s;
constexpr Duration kConnect = 5s;
constexpr Duration kAnswer = 20s;
constexpr Duration kTransfer = 10s;
constexpr Duration kStorageTimeout = 10s;
constexpr Duration kTorch = 120s;  // the first import from a shared disk is slow
constexpr Duration kSlack = 20s;   // extra time on a loaded machine
constexpr std::size_t kMaxAddresses = 4;
constexpr std::size_t kMaxNames = 512;  // each is resolved on every rank
constexpr Duration kSpeedBudget = 20s;
constexpr double kOneTiming = 0.15;   // seconds per line of the table
constexpr double kLongestTiming = 2;  // slower sizes are skipped
constexpr int kMaxRepeats = 20;
constexpr std::uint64_t kSmall = 1 << 10;
constexpr std::uint64_t kSizes[] = {1 << 10, 64 << 10, 1 << 20, 16 << 20};

double seconds(Duration duration) { return Seconds(duration).count(); }

net::ControlMessage with_gpus(net::ControlMessage request, const NetworkCheckOptions& options) {
  return std::move(request.with("gpus_per_rank", std::int64_t{options.gpus_per_rank})
                       .with("ranks_per_gpu", std::int64_t{options.plan.ranks_per_gpu}));
}

// Keeps the slowest rank of each size.
void merge_timings(const std::vector<GpuTiming>& of_rank, std::vector<GpuTiming>& all) {
  for (const GpuTiming& timing : of_rank) {
    const auto same = std::ranges::find(all, timing.bytes, &GpuTiming::bytes);
    if (same == all.end()) {
      all.push_back(timing);
    } else {
      same->seconds = std::max(same->seconds, timing.seconds);
    }
  }
}

// The slowest link of a GPU. Between hosts, the network decides, which NVML does not know.
double gpu_bound(const Report& report) {
  double least = 0;
  for (const auto& [rank, facts] : report.ranks) {
    if (facts.gpu_bytes_per_s <= 0) return 0;
    least = least == 0 ? facts.gpu_bytes_per_s : std::min(least, facts.gpu_bytes_per_s);
  }
  return report.has_several_hosts() ? 0 : least;
}

std::string host_part(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

// Pairs of one round share no rank: the circle method for tournaments.
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

Status NetworkCheck::names() {
  const std::vector<Rank> all = present();
  const std::span<const std::string> hosts(report_.hosts.data(), std::min(report_.hosts.size(), kMaxNames));
  Requests requests;
  for (const Rank rank : all) {
    net::ControlMessage request{"names", {}};
    request.with("names", ::stoker::join(hosts, ",")).with("limit_s", seconds(kLookupTimeout));
    requests[rank] = std::move(request);
  }
  double slowest = 0;
  bool is_fine = true;
  STOKER_RETURN_IF_ERROR(run_step("names", requests, kLookupTimeout + kSlack,
                                  [&](Rank rank, const net::ControlMessage& message) -> Status {
                                    STOKER_ASSIGN_OR_RETURN(answer, parse_resolved(message));
                                    slowest = std::max(slowest, answer.seconds);
                                    is_fine =
                                        is_fine && (answer.error.empty() || !report_.has_several_hosts());
                                    report_.names.push_back({rank, std::move(answer)});
                                    return {};
                                  }));
  const Message ranks = rank_count(all.size());
  const std::string longest = rounded_duration(std::chrono::duration_cast<Duration>(Seconds(slowest)));
  finish_step("names", is_fine,
              !is_fine            ? message("not all names resolve everywhere")
              : hosts.size() == 1 ? message("1 name on {}, at most {}", ranks, longest)
                                  : message("{} names on {}, at most {}", hosts.size(), ranks, longest));
  return {};
}

Status NetworkCheck::facts() {
  const bool is_remote = options_.plan.start == rank::StartMethod::srun;
  Requests requests;
  for (const Rank rank : present()) {
    net::ControlMessage request{"facts", {}};
    request.with("reach", is_remote ? "network" : "this host").with("gpu_limit_s", seconds(kGpuList));
    requests[rank] = with_gpus(std::move(request), options_);
  }
  STOKER_RETURN_IF_ERROR(
      run_step("ranks", requests, kGpuList + kSlack, [&](Rank rank, const net::ControlMessage& message) {
        return parse_fact(message, &report_.ranks[rank]);
      }));
  for (const auto& [rank, error] : errors_) mark_absent(rank, "ranks", error);
  finish_step("ranks", errors_.empty(),
              results_.size() == 1 ? message("1 rank reported its location")
                                   : message("{} ranks reported their location", results_.size()));
  return {};
}

// Every rank is asked, because each node has its own view.
Status NetworkCheck::storage() {
  STOKER_ASSIGN_OR_RETURN(sent, parse_paths(to_lines(options_.paths)));
  report_.paths = std::move(sent);
  report_.local_needed = options_.local_needed;
  Requests requests;
  for (const Rank rank : present()) {
    net::ControlMessage request{"storage", {}};
    requests[rank] =
        request.with("paths", to_lines(report_.paths)).with("limit_s", Seconds(kStorageTimeout).count());
  }
  const WallTime asked = RealClock().wall();
  STOKER_RETURN_IF_ERROR(run_step("storage", requests, kStorageTimeout + kSlack,
                                  [&](Rank rank, const net::ControlMessage& message) -> Status {
                                    std::int64_t wall_ns = 0;
                                    STOKER_ASSIGN_OR_RETURN(view, parse_view(message, &wall_ns));
                                    // Its clock was read at some time between the request and now.
                                    const Duration taken = RealClock().wall() - asked;
                                    const Duration middle = asked.time_since_epoch() + taken / 2;
                                    view.clock_s = Seconds(Duration(wall_ns) - middle).count();
                                    view.clock_error_s = Seconds(taken / 2).count();
                                    report_.views[rank] = std::move(view);
                                    return {};
                                  }));
  std::size_t problems = 0;
  for (const auto& [rank, view] : report_.views)
    problems += static_cast<std::size_t>(
        std::ranges::count_if(view.problems, [](const auto& p) { return !p.empty(); }));
  const std::size_t paths = report_.paths.size();
  const Message ranks = rank_count(report_.views.size());
  finish_step("storage", problems == 0 && errors_.empty(),
              problems == 1  ? message("1 path differs from the checking host")
              : problems > 1 ? message("{} paths differ from the checking host", problems)
              : paths == 1   ? message("1 path the same on {}", ranks)
                             : message("{} paths the same on {}", paths, ranks));
  return {};
}

// The addresses of a rank: the one that gloo would publish comes first.
std::vector<std::string> NetworkCheck::addresses_of(Rank rank) const {
  const RankFacts& facts = report_.ranks.at(rank);
  std::vector<std::string> addresses = facts.addresses;
  const std::string wanted = facts.gloo.chosen ? facts.gloo.chosen->address : "";
  const auto found = std::ranges::find_if(
      addresses, [&](const std::string& address) { return host_part(address) == wanted; });
  if (found != addresses.end()) std::rotate(addresses.begin(), found, found + 1);
  if (addresses.size() > kMaxAddresses) addresses.resize(kMaxAddresses);
  return addresses;
}

std::string NetworkCheck::best_address(Rank from, Rank to) const {
  for (const ConnectionProbe& tried : report_.ways) {
    if (tried.from == from && tried.way.to == to && tried.way.error.empty()) return tried.way.address;
  }
  const std::vector<std::string> addresses = addresses_of(to);
  return addresses.empty() ? "" : addresses.front();
}

Status NetworkCheck::connect() {
  const std::vector<Rank> all = probing_ranks(report_);
  if (all.size() < 2) {
    skip_step("connect",
              report_.absent.empty() ? message("needs at least 2 ranks") : message("only one rank is left"));
    return {};
  }
  Requests requests;
  std::map<Rank, std::string> first;
  for (const Rank to : all) {
    const auto addresses = addresses_of(to);
    if (!addresses.empty()) first[to] = addresses.front();
  }
  for (const Rank from : all) {
    std::vector<netcheck::Route> ways;
    for (const Rank to : all) {
      if (to == from) continue;
      for (const std::string& address : addresses_of(to)) ways.push_back({.to = to, .address = address});
    }
    net::ControlMessage request{"ways", {}};
    request.with("lines", to_lines(ways)).with("connect_s", seconds(kConnect));
    requests[from] = request.with("answer_s", seconds(kAnswer));
  }
  STOKER_RETURN_IF_ERROR(run_step("connect", requests, kConnect + kAnswer + kSlack,
                                  [&](Rank from, const net::ControlMessage& message) -> Status {
                                    STOKER_ASSIGN_OR_RETURN(way, parse_way(message));
                                    const bool is_first = first[way.to] == way.address;
                                    report_.ways.push_back({from, std::move(way), is_first});
                                    return {};
                                  }));
  std::size_t works = 0;
  std::size_t tried = 0;
  for (const ConnectionProbe& way : report_.ways) {
    tried += way.is_first ? 1 : 0;
    works += way.is_first && way.way.error.empty() ? 1 : 0;
  }
  const std::size_t wanted = all.size() * (all.size() - 1);
  const std::size_t hosts = report_.hosts.size();
  const bool has_several = report_.has_several_hosts();
  const bool is_part = has_several && all.size() + report_.absent.size() < hosts;
  finish_step("connect", works == wanted && tried == wanted,
              all.size() == 1 ? message("1 rank, no connections")
              : is_part
                  ? message("{} of {} connections between {} nodes, of {}", works, wanted, all.size(), hosts)
              // several of both
              : has_several ? message("{} of {} connections between {} nodes", works, wanted, all.size())
                            : message("{} of {} connections between {} ranks", works, wanted, all.size()));
  return {};
}

Status NetworkCheck::measure(const std::vector<std::pair<Rank, Rank>>& pairs) {
  Requests requests;
  for (const auto& [from, to] : pairs) {
    net::ControlMessage request{"flow", {}};
    request.with("lines", to_lines({{.to = to, .address = best_address(from, to)}}));
    requests[from] = request.with("limit_s", seconds(kTransfer));
  }
  if (requests.empty()) return {};
  return run_step("speed", requests, 4 * kTransfer + kSlack,
                  [&](Rank from, const net::ControlMessage& message) -> Status {
                    STOKER_ASSIGN_OR_RETURN(flow, parse_flow(message));
                    for (MeasuredFlow& known : report_.flows) {
                      if (known.from != from || known.flow.to != flow.to) continue;
                      if (flow.error.empty() && flow.bytes_per_s() > known.flow.bytes_per_s())
                        known.flow = std::move(flow);
                      return {};
                    }
                    report_.flows.push_back({from, std::move(flow)});
                    return {};
                  });
}

Status NetworkCheck::speed() {
  const std::vector<Rank> all = probing_ranks(report_);
  if (!options_.measures_speed || all.size() < 2) {
    skip_step("speed",
              options_.measures_speed ? message("needs at least 2 ranks") : message("disabled (--no-speed)"));
    return {};
  }
  const auto is_open = [&](const std::pair<Rank, Rank>& pair) {
    return !gone_.contains(pair.first) && !gone_.contains(pair.second) &&
           std::ranges::any_of(report_.ways, [&](const ConnectionProbe& tried) {
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
    STOKER_RETURN_IF_ERROR(measure(round));
  }
  // A short load makes any link look slow: the best of three counts.
  for (int again = 0; again < 2; ++again) {
    const auto pairs = report_.has_several_hosts() ? slow_pairs(report_) : measured_pairs(report_);
    for (const auto& pair : pairs) {
      if (is_open(pair)) STOKER_RETURN_IF_ERROR(measure({pair}));
    }
  }
  const bool is_fine = std::ranges::all_of(
      report_.flows, [](const MeasuredFlow& measured) { return measured.flow.error.empty(); });
  const netcheck::Link slowest = slowest_link(report_);
  const std::size_t count = report_.flows.size();
  const std::string least = rounded({static_cast<std::uint64_t>(slowest.bytes_per_s)});
  Message text = count == 1 ? message("1 connection measured, {}/s", least)
                            : message("{} connections measured, the slowest {}/s", count, least);
  if (left_out > 0) text += message("; {} skipped after {}", left_out, rounded_duration(kSpeedBudget));
  finish_step("speed", is_fine && slow_pairs(report_).empty(), std::move(text));
  return {};
}

Status NetworkCheck::make_ring() {
  const int size = options_.plan.world_size().value;
  Requests requests;
  for (int r = 0; r < size; ++r) {
    const Rank next((r + 1) % size);
    net::ControlMessage request{"ring", {}};
    request.with("lines", to_lines({{.to = next, .address = best_address(Rank(r), next)}}));
    request.with("size", std::int64_t{size}).with("previous", std::int64_t{(r + size - 1) % size});
    requests[Rank(r)] = request.with("limit_s", seconds(options_.limit));
  }
  STOKER_RETURN_IF_ERROR(run_step("all-reduce", requests, options_.limit + kSlack,
                                  [](Rank, const net::ControlMessage&) { return Status(); }));
  for (const auto& [rank, error] : errors_) report_.ring_problem = rank_error(rank, error);
  return {};
}

Status NetworkCheck::collective(Operation operation, std::uint64_t bytes, int repeats, double* slowest) {
  Requests requests;
  for (const Rank rank : present()) {
    net::ControlMessage request{"collective", {}};
    request.with("operation", std::string(to_text(operation))).with("repeats", std::int64_t{repeats});
    request.with("bytes", static_cast<std::int64_t>(bytes)).with("limit_s", seconds(options_.limit));
    requests[rank] = request.with("size", std::int64_t{options_.plan.world_size().value});
  }
  STOKER_RETURN_IF_ERROR(run_step("all-reduce", requests, options_.limit + kSlack,
                                  [](Rank, const net::ControlMessage&) { return Status(); }));
  *slowest = 0;
  for (const auto& [rank, error] : errors_) report_.ring_problem = rank_error(rank, error);
  for (const auto& [rank, done] : results_) *slowest = std::max(*slowest, done.number("seconds").value_or(0));
  if (!report_.absent.empty() && report_.ring_problem.empty())
    report_.ring_problem = rank_error(report_.absent.back().rank, report_.absent.back().why);
  return {};
}

Status NetworkCheck::time_operations() {
  const WorldSize size = options_.plan.world_size();
  const netcheck::Link link = slowest_link(report_);
  for (const Operation operation : netcheck::kOperations) {
    double last = 0;  // of the previous size, to estimate the next
    for (const std::uint64_t bytes : kSizes) {
      const double bound = shortest_time(operation, size, bytes, link);
      const double expected = std::max(bound, last);
      if (expected > kLongestTiming) break;
      const int repeats = std::clamp(static_cast<int>(kOneTiming / std::max(expected, 1e-6)), 1, kMaxRepeats);
      double taken = 0;
      STOKER_RETURN_IF_ERROR(collective(operation, bytes, repeats, &taken));
      if (!report_.ring_problem.empty()) return {};
      report_.timings.push_back({operation, bytes, taken, bound});
      last = taken;
    }
  }
  return {};
}

Status NetworkCheck::check_all_reduce() {
  const WorldSize size = options_.plan.world_size();
  if (size.value < 2) {
    skip_step("all-reduce", message("needs at least 2 ranks"));
    return {};
  }
  const bool is_connected = std::ranges::all_of(
      report_.ways, [](const ConnectionProbe& tried) { return !tried.is_first || tried.way.error.empty(); });
  if (!report_.absent.empty() || !is_connected) {
    skip_step("all-reduce", report_.absent.empty() ? message("some ranks cannot reach each other")
                                                   : message("some ranks are missing"));
    return {};
  }
  STOKER_RETURN_IF_ERROR(make_ring());
  double taken = 0;
  if (report_.ring_problem.empty())
    STOKER_RETURN_IF_ERROR(collective(Operation::all_reduce, kSmall, 1, &taken));
  const bool is_exact = report_.ring_problem.empty();
  if (is_exact && options_.measures_speed) STOKER_RETURN_IF_ERROR(time_operations());
  const bool is_fine = report_.ring_problem.empty();
  finish_step("all-reduce", is_fine,
              is_fine ? message("exact over stoker's own TCP, ranks: {}", size.value) : report_.ring_problem);
  return {};
}

// Tests the job's own library on the network that it selects.
Status NetworkCheck::torch() {
  if (options_.python.empty()) {
    skip_step("torch", message("no Python to test (--python)"));
    return {};
  }
  if (!report_.absent.empty() || !report_.ring_problem.empty()) {
    skip_step("torch", report_.absent.empty() ? message("the all-reduce failed already")
                                              : message("some ranks are missing"));
    return {};
  }
  const int size = options_.plan.world_size().value;
  const RankFacts& first = report_.ranks.at(Rank(0));
  const std::string address =
      report_.has_several_hosts() ? host_part(best_address(Rank(size - 1), Rank(0))) : "127.0.0.1";
  Requests requests;
  for (const Rank rank : present()) {
    net::ControlMessage request{"torch", {}};
    request.with("python", options_.python).with("address", address);
    request.with("port", std::int64_t{first.free_port}).with("limit_s", seconds(kTorch));
    request.with("measure", options_.measures_speed ? "speed" : "");
    requests[rank] = with_gpus(std::move(request), options_);
  }
  STOKER_RETURN_IF_ERROR(run_step("torch", requests, kTorch + kSlack,
                                  [](Rank, const net::ControlMessage&) { return Status(); }));
  std::string summary;
  std::size_t without = 0;
  for (const auto& [rank, done] : results_) {
    summary = std::max(summary, std::string(done.text("summary")));
    merge_timings(torch_timings(done.text("timings")), report_.gpu_timings);
    const bool is_missing =
        errors_.contains(rank) && errors_[rank].find("No module named 'torch'") != std::string::npos;
    without += is_missing ? 1 : 0;
  }
  if (without == results_.size()) {
    skip_step("torch", message("{} has no torch", options_.python));
    return {};
  }
  // The first failure in time is unknown. An error that is not just a closed connection is more likely the
  // cause.
  for (const auto& [rank, error] : errors_) {
    const bool is_effect = error.find("onnection closed by peer") != std::string::npos ||
                           error.find("onnection reset by peer") != std::string::npos;
    if (report_.torch_problem.empty() || !is_effect) report_.torch_problem = rank_error(rank, error);
  }
  for (GpuTiming& timing : report_.gpu_timings) {
    timing.ranks = size;
    timing.bound_bytes_per_s = gpu_bound(report_);
  }
  const bool is_fine = report_.torch_problem.empty() && report_.absent.empty();
  finish_step("torch", is_fine, is_fine ? printable(summary) : report_.torch_problem);
  return {};
}

}  // namespace stoker::netcheck
