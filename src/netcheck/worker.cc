#include "netcheck/worker.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "net/port.h"
#include "net/world.h"
#include "netcheck/facts.h"
#include "netcheck/gpu_facts.h"
#include "netcheck/storage.h"
#include "netcheck/torch_program.h"
#include "netcheck/wire.h"
#include "rank/environment.h"
#include "rank/gpu_binding.h"
#include "rank/member/guardian.h"
#include "rank/member/rank_config.h"
#include "rank/process/output.h"

namespace stoker::netcheck {
namespace {

using namespace std::chrono_literals;
using net::ControlMessage;

constexpr Duration kHeartbeatInterval = 500ms;
constexpr int kTickMs = 50;
constexpr std::size_t kLongestLine = 500;
constexpr std::int64_t kMaxValues = 256 << 20;  // size of one collective

class NetworkCheckWorker {
 public:
  NetworkCheckWorker(rank::RankConfig config, net::Channel session)
      : config_(std::move(config)), session_(std::move(session)) {
    const std::string& world = config_.world;
    caller_.rank = config_.place.rank;
    caller_.secret = world.substr(0, world.find('@'));
    caller_.keep_going = [this] { return keep_going(); };
  }

  int run() {
    while (keep_going()) {
      if (inbox_.empty()) {
        pollfd waiting{session_.fd(), POLLIN, 0};
        ::poll(&waiting, 1, static_cast<int>(kHeartbeatInterval / 1ms));
        continue;
      }
      const ControlMessage request = std::move(inbox_.front());
      inbox_.pop_front();
      if (request.kind == "end" || request.kind == "refused") break;
      handle_request(request);
    }
    return 0;
  }

 private:
  void handle_request(const ControlMessage& request);
  Status names(const ControlMessage& request);
  Status facts(const ControlMessage& request);
  Status storage(const ControlMessage& request);
  Status ways(const ControlMessage& request);
  Status flow(const ControlMessage& request);
  Status ring(const ControlMessage& request);
  Status collective(const ControlMessage& request, ControlMessage* done);
  Status torch(const ControlMessage& request, ControlMessage* done);
  rank::VisibleGpus visible_gpus(const ControlMessage& request) const;
  void check_master_port(RankFacts* facts);
  bool keep_going();
  void send(const ControlMessage& message) { (void)session_.send(message); }

  const rank::RankConfig config_;
  net::Channel session_;
  netcheck::Caller caller_;
  std::deque<ControlMessage> inbox_;
  MonoTime last_heartbeat_;
  bool is_over_ = false;
  std::vector<std::string> own_addresses_;  // addresses of this host's name
  std::optional<netcheck::PeerServer> server_;
  std::optional<netcheck::Ring> ring_;
};

Deadline limit_of(const ControlMessage& request, std::string_view name = "limit_s") {
  const double seconds = std::clamp(request.number(name).value_or(30), 0.001, 3600.0);
  return Deadline::after(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

// Sends heartbeats during long operations, and detects the end of the session.
bool NetworkCheckWorker::keep_going() {
  if (mono_now() - last_heartbeat_ >= kHeartbeatInterval) {
    last_heartbeat_ = mono_now();
    if (!session_.has_unsent()) send({"heartbeat", {}});
  }
  if (session_.has_unsent()) (void)session_.flush();
  const auto messages = session_.receive();
  if (messages.ok()) inbox_.insert(inbox_.end(), messages->begin(), messages->end());
  is_over_ = is_over_ || !messages.ok() || session_.is_closed();
  return !is_over_;
}

void NetworkCheckWorker::handle_request(const ControlMessage& request) {
  ControlMessage done{"done", {}};
  Status status;
  if (request.kind == "names") status = names(request);
  if (request.kind == "facts") status = facts(request);
  if (request.kind == "storage") status = storage(request);
  if (request.kind == "ways") status = ways(request);
  if (request.kind == "flow") status = flow(request);
  if (request.kind == "ring") status = ring(request);
  if (request.kind == "collective") status = collective(request, &done);
  if (request.kind == "torch") status = torch(request, &done);
  if (!status.ok()) done.with("error", std::string(status.message()));
  send(done.with("of", request.kind));
}

Status NetworkCheckWorker::names(const ControlMessage& request) {
  std::vector<std::string> all;
  for (std::string_view name : split(request.text("names"), ',')) {
    if (!name.empty()) all.emplace_back(name);
  }
  char own[256] = "";
  (void)::gethostname(own, sizeof own - 1);
  all.emplace_back(own);
  auto answers = netcheck::resolve(all, limit_of(request));
  own_addresses_ = answers.back().addresses;
  answers.pop_back();
  for (const netcheck::ResolvedName& answer : answers) send(to_message(answer));
  return {};
}

void NetworkCheckWorker::check_master_port(RankFacts* facts) {
  if (caller_.rank.value != 0) return;
  if (const auto free = net::PortReservation::find(static_cast<std::uint64_t>(::getpid()) * 7919); free.ok())
    facts->free_port = free->port();
  const std::string wish = environment_value("MASTER_PORT").value_or("");
  if (wish.empty()) return;
  std::int64_t port = 0;
  if (!parse_number(wish, &port) || port < 1 || port > 65535) {
    facts->master_problem = format("'{}' is not a port", printable(wish));
    return;
  }
  facts->master_port = static_cast<int>(port);
  const auto taken = net::PortReservation::reserve(static_cast<std::uint16_t>(port));
  if (taken.ok()) return;
  const std::string holder = port_holder(static_cast<int>(port));
  facts->master_problem = std::string(taken.status().message()) + (holder.empty() ? "" : ": " + holder);
}

// CUDA_VISIBLE_DEVICES as a run would set it.
rank::VisibleGpus NetworkCheckWorker::visible_gpus(const ControlMessage& request) const {
  const rank::VisibleGpus visible = environment_value("CUDA_VISIBLE_DEVICES");
  const rank::GpuShare share{.gpus_per_rank = static_cast<int>(request.integer("gpus_per_rank").value_or(0)),
                             .ranks_per_gpu = static_cast<int>(request.integer("ranks_per_gpu").value_or(1)),
                             .is_in_step = config_.is_in_step};
  // With too few, it stays unchanged, and the report names them.
  const auto own = rank::gpus_of_rank(share, visible, config_.place);
  return own.ok() && *own ? *own : visible;
}

Status NetworkCheckWorker::facts(const ControlMessage& request) {
  RankFacts facts;
  const Environment environment = current_environment();
  facts.node = config_.place.node;
  facts.local_rank = config_.place.local_rank;
  facts.cores = usable_cores();
  facts.visible_gpus = visible_gpus(request);
  GpuList list = list_gpus(environment, limit_of(request, "gpu_limit_s"));
  facts.gpus = std::move(list.gpus);
  facts.gpu_problem = std::move(list.problem);
  // A driver that does not answer nvidia-smi would not answer here either.
  if (facts.gpu_problem.empty())
    add_gpu_facts(observe::GpuReader::open(), static_cast<int>(request.integer("gpus_per_rank").value_or(0)),
                  &facts);
  facts.interfaces = net::interfaces();
  facts.fabric = fabric_ports();
  facts.variables = network_variables(environment);
  const auto value = [&](const std::string& name) -> std::optional<std::string_view> {
    const auto found = facts.variables.find(name);
    return found == facts.variables.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
  facts.gloo = net::choose_gloo_interface(value("GLOO_SOCKET_IFNAME"), own_addresses_, facts.interfaces);
  facts.nccl = net::choose_nccl_interface(value("NCCL_SOCKET_IFNAME"), facts.interfaces);
  check_master_port(&facts);
  const auto reach =
      request.text("reach") == "network" ? net::ListenScope::network : net::ListenScope::loopback;
  STOKER_ASSIGN_OR_RETURN(server, netcheck::PeerServer::start(caller_.rank, caller_.secret, reach));
  server_ = std::move(server);
  facts.addresses = server_->addresses();
  for (const ControlMessage& message : to_messages(facts)) send(message);
  return {};
}

Status NetworkCheckWorker::storage(const ControlMessage& request) {
  STOKER_ASSIGN_OR_RETURN(paths, parse_paths(request.text("paths")));
  const NodeView view = check_storage(paths, current_environment(), limit_of(request), caller_.keep_going);
  send(to_message(view, RealClock().wall().time_since_epoch().count()));
  return {};
}

Status NetworkCheckWorker::ways(const ControlMessage& request) {
  STOKER_ASSIGN_OR_RETURN(wanted, parse_targets(request.text("lines")));
  const netcheck::RouteTimeouts limits{.connect = limit_of(request, "connect_s").left(),
                                       .answer = limit_of(request, "answer_s").left()};
  STOKER_ASSIGN_OR_RETURN(tried, netcheck::probe_routes(std::move(wanted), caller_, limits));
  for (const netcheck::Route& way : tried) send(to_message(way));
  return {};
}

Status NetworkCheckWorker::flow(const ControlMessage& request) {
  STOKER_ASSIGN_OR_RETURN(to, parse_targets(request.text("lines")));
  for (const netcheck::Route& way : to) {
    STOKER_ASSIGN_OR_RETURN(
        flow, netcheck::measure_bandwidth(way.to, way.address, caller_, limit_of(request).left()));
    send(to_message(flow));
  }
  return {};
}

Status NetworkCheckWorker::ring(const ControlMessage& request) {
  STOKER_ASSIGN_OR_RETURN(to, parse_targets(request.text("lines")));
  const auto size = request.integer("size").value_or(0);
  const auto previous = request.integer("previous").value_or(-1);
  if (!server_ || to.size() != 1 || size < 2 || size > 1'000'000 || previous < 0 || previous >= size)
    return invalid("ring: invalid request");
  const Deadline deadline = limit_of(request);
  STOKER_ASSIGN_OR_RETURN(next, netcheck::connect_ring(to[0].to, to[0].address, caller_, deadline));
  STOKER_ASSIGN_OR_RETURN(
      from, server_->accept_ring_connection(Rank(static_cast<int>(previous)), deadline, caller_.keep_going));
  ring_.emplace(caller_.rank, WorldSize(static_cast<int>(size)), std::move(next), std::move(from));
  return {};
}

Status NetworkCheckWorker::collective(const ControlMessage& request, ControlMessage* done) {
  STOKER_ASSIGN_OR_RETURN(operation, netcheck::parse_operation(request.text("operation")));
  const auto bytes = request.integer("bytes").value_or(0);
  const auto repeats = request.integer("repeats").value_or(0);
  const WorldSize size(static_cast<int>(request.integer("size").value_or(0)));
  if (!ring_ || bytes < 4 || bytes > kMaxValues || repeats < 1 || repeats > 10'000)
    return invalid("collective: invalid request");
  const Deadline deadline = limit_of(request);
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  netcheck::fill_test_values(operation, caller_.rank, size, values);
  STOKER_RETURN_IF_ERROR(ring_->run(operation, values, deadline, caller_.keep_going));
  STOKER_RETURN_IF_ERROR(netcheck::check_result(operation, caller_.rank, size, values));
  std::vector<double> times;
  std::ranges::fill(values, 0.0F);
  for (std::int64_t i = 0; i < repeats; ++i) {
    const MonoTime start = mono_now();
    STOKER_RETURN_IF_ERROR(ring_->run(operation, values, deadline, caller_.keep_going));
    times.push_back(Seconds(mono_now() - start).count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  done->with("seconds", times[times.size() / 2]);
  return {};
}

Status NetworkCheckWorker::torch(const ControlMessage& request, ControlMessage* done) {
  const double limit = Seconds(limit_of(request).left()).count();
  Command command;
  command.argv = {std::string(request.text("python")), "-c", kTorchProgram, format("{:.0f}", limit / 2),
                  std::string(request.text("measure"))};
  const rank::Rendezvous rendezvous{std::string(request.text("address")),
                                    static_cast<int>(request.integer("port").value_or(0))};
  Environment environment = rank::rank_environment(current_environment(), config_.place, rendezvous, 1);
  if (auto gpus = visible_gpus(request)) set_variable(environment, "CUDA_VISIBLE_DEVICES", *std::move(gpus));
  if (const auto own = request.integer("gpus_per_rank").value_or(0); own > 0)
    set_variable(environment, rank::kOwnGpusVariable, std::to_string(own));
  command.environment = std::move(environment);
  command.parent_death_signal = SIGKILL;
  // In a thread, because this one sends heartbeats.
  Result<Captured> result = cancelled("stopped");
  std::atomic<bool> is_over = false;
  Thread runner([&](const StopToken&) {
    result = run_program(command, limit_of(request), 1_MiB);
    is_over = true;
  });
  while (!is_over && keep_going()) ::poll(nullptr, 0, kTickMs);
  // Without a session, the result is useless, and torch must not block the exit.
  if (!is_over) ::_exit(1);
  runner.join();
  if (!result.ok()) return result.status();
  if (result->exit.ok()) {
    done->with("summary", printable(torch_summary(result->out).substr(0, kLongestLine)));
    done->with("timings", to_text(torch_timings(result->out)));
    return {};
  }
  rank::Tail errors;
  errors.feed(result->err);
  const std::string error = errors.final_line().text;
  return unavailable("{}", error.empty() ? to_text(result->exit) : error);
}

}  // namespace

Result<int> run_network_check_worker() {
  std::signal(SIGPIPE, SIG_IGN);
  STOKER_ASSIGN_OR_RETURN(config, rank::read_rank_config());
  if (config.is_under_srun) {
    STOKER_ASSIGN_OR_RETURN(exit_code, rank::guard_rank());
    if (exit_code) return *exit_code;
  }
  net::Hello hello;
  hello.rank = config.place.rank;
  hello.world_size = config.place.world_size;
  hello.host = net::host_name();
  if (config.is_under_srun) hello.node = environment_value("SLURMD_NODENAME").value_or("");
  hello.pid = ::getpid();
  STOKER_ASSIGN_OR_RETURN(session, net::join(config.world, hello, Deadline::after(config.start_limit)));
  return NetworkCheckWorker(std::move(config), std::move(session)).run();
}

}  // namespace stoker::netcheck
