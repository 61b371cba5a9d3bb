#include "rank/hello/member.h"

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
#include "rank/environment.h"
#include "rank/hello/facts.h"
#include "rank/hello/storage.h"
#include "rank/hello/torch_program.h"
#include "rank/hello/wire.h"
#include "rank/member/guardian.h"
#include "rank/member/invitation.h"

namespace stoker::rank::hello {
namespace {

using namespace std::chrono_literals;
using net::Message;

constexpr Duration kBeatEvery = 500ms;
constexpr int kTickMs = 50;
constexpr std::size_t kLongestLine = 500;
constexpr std::int64_t kMostValues = 256 << 20;  // bytes of one collective

class Member {
 public:
  Member(Invitation invitation, net::Channel session)
      : invitation_(std::move(invitation)), session_(std::move(session)) {
    const std::string& world = invitation_.world;
    caller_.rank = invitation_.place.rank;
    caller_.secret = world.substr(0, world.find('@'));
    caller_.keep_going = [this] { return keep_going(); };
  }

  int run() {
    while (keep_going()) {
      if (inbox_.empty()) {
        pollfd waiting{session_.fd(), POLLIN, 0};
        ::poll(&waiting, 1, static_cast<int>(kBeatEvery / 1ms));
        continue;
      }
      const Message question = std::move(inbox_.front());
      inbox_.pop_front();
      if (question.kind == "end" || question.kind == "refused") break;
      answer(question);
    }
    return 0;
  }

 private:
  void answer(const Message& question);
  Status names(const Message& question);
  Status facts(const Message& question);
  Status storage(const Message& question);
  Status ways(const Message& question);
  Status flow(const Message& question);
  Status ring(const Message& question);
  Status collective(const Message& question, Message* done);
  Status torch(const Message& question, Message* done);
  void look_for_master_port(RankFacts* facts);
  bool keep_going();
  void say(const Message& message) { (void)session_.send(message); }

  const Invitation invitation_;
  net::Channel session_;
  net::Caller caller_;
  std::deque<Message> inbox_;
  MonoTime last_beat_;
  bool is_over_ = false;
  std::vector<std::string> own_addresses_;  // of what this host calls itself
  std::optional<net::PeerServer> server_;
  std::optional<net::Ring> ring_;
};

Deadline limit_of(const Message& question, std::string_view name = "limit_s") {
  const double seconds = std::clamp(question.number(name).value_or(30), 0.001, 3600.0);
  return Deadline::after(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

// A sign of life now and then while something takes its time, and an ear for the session's end.
bool Member::keep_going() {
  if (mono_now() - last_beat_ >= kBeatEvery) {
    last_beat_ = mono_now();
    if (!session_.has_unsent()) say({"beat", {}});
  }
  if (session_.has_unsent()) (void)session_.flush();
  const auto messages = session_.receive();
  if (messages.ok()) inbox_.insert(inbox_.end(), messages->begin(), messages->end());
  is_over_ = is_over_ || !messages.ok() || session_.is_closed();
  return !is_over_;
}

void Member::answer(const Message& question) {
  Message done{"done", {}};
  Status status;
  if (question.kind == "names") status = names(question);
  if (question.kind == "facts") status = facts(question);
  if (question.kind == "storage") status = storage(question);
  if (question.kind == "ways") status = ways(question);
  if (question.kind == "flow") status = flow(question);
  if (question.kind == "ring") status = ring(question);
  if (question.kind == "collective") status = collective(question, &done);
  if (question.kind == "torch") status = torch(question, &done);
  if (!status.ok()) done.with("error", std::string(status.message()));
  say(done.with("of", question.kind));
}

Status Member::names(const Message& question) {
  std::vector<std::string> all;
  for (std::string_view name : split(question.text("names"), ',')) {
    if (!name.empty()) all.emplace_back(name);
  }
  char own[256] = "";
  (void)::gethostname(own, sizeof own - 1);
  all.emplace_back(own);
  auto answers = net::resolve(all, limit_of(question));
  own_addresses_ = answers.back().addresses;
  answers.pop_back();
  for (const net::Resolved& answer : answers) say(to_message(answer));
  return {};
}

void Member::look_for_master_port(RankFacts* facts) {
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
  const auto taken = net::PortReservation::take(static_cast<std::uint16_t>(port));
  if (taken.ok()) return;
  const std::string holder = port_holder(static_cast<int>(port));
  facts->master_problem = std::string(taken.status().message()) + (holder.empty() ? "" : ": " + holder);
}

Status Member::facts(const Message& question) {
  RankFacts facts;
  const Environment environment = current_environment();
  facts.node = invitation_.place.node;
  facts.local_rank = invitation_.place.local_rank;
  facts.cores = usable_cores();
  facts.visible_gpus = environment_value("CUDA_VISIBLE_DEVICES");
  GpuList list = list_gpus(environment, limit_of(question, "gpu_limit_s"));
  facts.gpus = std::move(list.gpus);
  facts.gpu_problem = std::move(list.problem);
  facts.interfaces = net::interfaces();
  facts.fabric = fabric_ports();
  facts.variables = network_variables(environment);
  const auto value = [&](const std::string& name) -> std::optional<std::string_view> {
    const auto found = facts.variables.find(name);
    return found == facts.variables.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
  facts.gloo = net::gloo_choice(value("GLOO_SOCKET_IFNAME"), own_addresses_, facts.interfaces);
  facts.nccl = net::nccl_choice(value("NCCL_SOCKET_IFNAME"), facts.interfaces);
  look_for_master_port(&facts);
  const auto reach = question.text("reach") == "network" ? net::Reach::network : net::Reach::this_host;
  OK_OR_RETURN(server, net::PeerServer::start(caller_.rank, caller_.secret, reach));
  server_ = std::move(server);
  facts.addresses = server_->addresses();
  for (const Message& message : to_messages(facts)) say(message);
  return {};
}

Status Member::storage(const Message& question) {
  OK_OR_RETURN(paths, parse_paths(question.text("paths")));
  const NodeView view = look_at_storage(paths, current_environment(), limit_of(question), caller_.keep_going);
  say(to_message(view, RealClock().wall().time_since_epoch().count()));
  return {};
}

Status Member::ways(const Message& question) {
  OK_OR_RETURN(wanted, parse_lines(question.text("lines")));
  const net::WayLimits limits{.connect = limit_of(question, "connect_s").left(),
                              .answer = limit_of(question, "answer_s").left()};
  OK_OR_RETURN(tried, net::try_ways(std::move(wanted), caller_, limits));
  for (const net::Way& way : tried) say(to_message(way));
  return {};
}

Status Member::flow(const Message& question) {
  OK_OR_RETURN(to, parse_lines(question.text("lines")));
  for (const net::Way& way : to) {
    OK_OR_RETURN(flow, net::measure_flow(way.to, way.address, caller_, limit_of(question).left()));
    say(to_message(flow));
  }
  return {};
}

Status Member::ring(const Message& question) {
  OK_OR_RETURN(to, parse_lines(question.text("lines")));
  const auto size = question.integer("size").value_or(0);
  const auto previous = question.integer("previous").value_or(-1);
  if (!server_ || to.size() != 1 || size < 2 || size > 1'000'000 || previous < 0 || previous >= size)
    return invalid("ring: makes no sense");
  const Deadline deadline = limit_of(question);
  OK_OR_RETURN(next, net::call_for_ring(to[0].to, to[0].address, caller_, deadline));
  OK_OR_RETURN(from, server_->take_ring(Rank(static_cast<int>(previous)), deadline, caller_.keep_going));
  ring_.emplace(caller_.rank, WorldSize(static_cast<int>(size)), std::move(next), std::move(from));
  return {};
}

Status Member::collective(const Message& question, Message* done) {
  OK_OR_RETURN(operation, net::parse_operation(question.text("operation")));
  const auto bytes = question.integer("bytes").value_or(0);
  const auto repeats = question.integer("repeats").value_or(0);
  const WorldSize size(static_cast<int>(question.integer("size").value_or(0)));
  if (!ring_ || bytes < 4 || bytes > kMostValues || repeats < 1 || repeats > 10'000)
    return invalid("collective: makes no sense");
  const Deadline deadline = limit_of(question);
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  net::fill_for(operation, caller_.rank, size, values);
  RETURN_IF_ERROR(ring_->run(operation, values, deadline, caller_.keep_going));
  RETURN_IF_ERROR(net::check_result(operation, caller_.rank, size, values));
  std::vector<double> times;
  std::ranges::fill(values, 0.0F);
  for (std::int64_t i = 0; i < repeats; ++i) {
    const MonoTime start = mono_now();
    RETURN_IF_ERROR(ring_->run(operation, values, deadline, caller_.keep_going));
    times.push_back(Seconds(mono_now() - start).count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  done->with("seconds", times[times.size() / 2]);
  return {};
}

std::string last_line(std::string_view text) {
  std::string last;
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) last = printable(trim(line).substr(0, kLongestLine));
  }
  return last;
}

Status Member::torch(const Message& question, Message* done) {
  const double limit = Seconds(limit_of(question).left()).count();
  Command command;
  command.argv = {std::string(question.text("python")), "-c", kTorchProgram, format("{:.0f}", limit / 2)};
  const Rendezvous meeting{std::string(question.text("address")),
                           static_cast<int>(question.integer("port").value_or(0))};
  command.environment = rank_environment(current_environment(), invitation_.place, meeting, 1);
  command.parent_death_signal = SIGKILL;
  // In a thread, as this one gives signs of life meanwhile.
  Result<Captured> said = cancelled("stopped");
  std::atomic<bool> is_over = false;
  Thread runner([&](const StopToken&) {
    said = run_program(command, limit_of(question), 1_MiB);
    is_over = true;
  });
  while (!is_over && keep_going()) ::poll(nullptr, 0, kTickMs);
  // Without a session nobody waits for the answer, and nobody may wait for torch.
  if (!is_over) ::_exit(1);
  runner.join();
  if (!said.ok()) return said.status();
  const std::string words = last_line(said->exit.ok() ? said->out : said->err);
  if (said->exit.ok()) {
    done->with("said", words);
    return {};
  }
  return unavailable("{}", words.empty() ? to_text(said->exit) : words);
}

}  // namespace

Result<int> run_member() {
  std::signal(SIGPIPE, SIG_IGN);
  OK_OR_RETURN(invitation, read_invitation());
  if (invitation.is_under_srun) {
    OK_OR_RETURN(exit_code, guard_rank());
    if (exit_code) return *exit_code;
  }
  net::Hello hello;
  hello.rank = invitation.place.rank;
  hello.world_size = invitation.place.world_size;
  hello.host = net::host_name();
  if (invitation.is_under_srun) hello.node = environment_value("SLURMD_NODENAME").value_or("");
  hello.pid = ::getpid();
  OK_OR_RETURN(session, net::join(invitation.world, hello, Deadline::after(invitation.start_limit)));
  return Member(std::move(invitation), std::move(session)).run();
}

}  // namespace stoker::rank::hello
