#include "torch/process_group.h"

#include <algorithm>
#include <arpa/inet.h>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "base/time.h"
#include "net/port.h"
#include "net/shm/exchange.h"
#include "net/shm/two_level.h"
#include "torch/c10d_internal.h"
#include "torch/communication/gloo_between.h"
#include "torch/communication/ledger_backend.h"
#include "torch/communication/network.h"
#include "torch/communication/shm_backend.h"
#include "torch/edge.h"
#include "torch/gloo_backend.h"

namespace stoker::torch {

namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// Waits for it, as long as the store was told at its opening.
std::string text_at(c10d::TCPStore& store, const std::string& key) {
  const std::vector<std::uint8_t> value = store.get(key);
  return {value.begin(), value.end()};
}

// How long rank 0 stays for others that have to read why they cannot go on.
constexpr Duration kLastWordsWithin = std::chrono::seconds(5);

// Ranks beyond this many are named by address only: the exchange below grows with the square of their number.
constexpr std::size_t kMostNamedRanks = 256;

// gloo prints ports as they lie in memory, in network order: both readings of a port stand for its rank, that
// one first.
void add_ports(std::string_view ports, int rank, std::map<std::string, int>& rank_of_port) {
  for (std::string_view text : split(ports, ' ')) {
    std::uint64_t port = 0;
    if (!parse_number(text, &port)) continue;
    rank_of_port.insert_or_assign(std::to_string(htons(static_cast<std::uint16_t>(port))), rank);
    rank_of_port.emplace(text, rank);
  }
}

// REQUIRES: all of `others` do the same.
std::map<std::string, int> exchange_ports(c10d::TCPStore& store, Rank own, const std::vector<int>& others) {
  std::map<std::string, int> rank_of_port;
  if (others.size() >= kMostNamedRanks) return rank_of_port;
  store.set(format("ports/{}", own), bytes_of(own_ports()));
  for (const int rank : others) add_ports(text_at(store, format("ports/{}", rank)), rank, rank_of_port);
  return rank_of_port;
}

// Rank 0 learns who is missing; the others only learn that rank 0 is there.
Status roll_call(c10d::TCPStore& store, const Rendezvous& meeting, Deadline deadline) {
  store.set(format("here/{}", meeting.rank), bytes_of("1"));
  if (meeting.rank.value != 0) return {};
  RealClock clock;
  for (int rank = 1; rank < meeting.world_size.value; ++rank) {
    while (!store.check({format("here/{}", rank)})) {
      if (deadline.passed()) {
        return timeout("rank {} did not come to {}:{} within {} (of {} ranks)", rank, meeting.address,
                       meeting.port, rounded_duration(meeting.connect_within), meeting.world_size);
      }
      clock.sleep(std::chrono::milliseconds(1));
    }
  }
  return {};
}

c10::intrusive_ptr<c10d::TCPStore> open_store(const Rendezvous& meeting) {
  c10d::TCPStoreOptions options;
  options.port = meeting.port;
  options.isServer = meeting.rank.value == 0;
  options.waitWorkers = false;
  options.timeout = meeting.connect_within;
  return c10::make_intrusive<c10d::TCPStore>(meeting.address, options);
}

// Waits until all ranks have said `key`. Rank 0, which keeps the store, must not leave before the others have
// read what they want there; they need not wait for it.
void say_and_hear(c10d::TCPStore& store, const Rendezvous& meeting, std::string_view key, Deadline deadline) {
  store.set(format("{}/{}", key, meeting.rank), bytes_of("1"));
  if (meeting.rank.value != 0) return;
  RealClock clock;
  for (int rank = 1; rank < meeting.world_size.value; ++rank) {
    while (!store.check({format("{}/{}", key, rank)}) && !deadline.passed()) {
      clock.sleep(std::chrono::milliseconds(2));
    }
  }
}

// What a rank said before it left, over gloo; usually nothing.
std::string reason_of(const c10::intrusive_ptr<c10d::TCPStore>& store, int rank) {
  const std::string key = format("abandoned/{}", rank);
  try {
    return rank >= 0 && store && store->check({key}) ? text_at(*store, key) : "";
  } catch (const std::exception&) {
    return "";  // rank 0, which keeps the store, has left
  }
}

void say_why(const ProcessGroup::Objects& objects, std::string_view why) {
  try {
    objects.store->set(format("abandoned/{}", objects.meeting.rank), bytes_of(why));
  } catch (const std::exception&) {
    // Rank 0, which keeps the store, has left: the others notice that themselves.
  }
}

// What gloo threw: "rank 2 left (...)", "rank 2: out of images".
Status meaning_of(const ProcessGroup::Objects& objects, const std::exception& error) {
  const std::string text = brief(error);
  int peer = objects.others.size() == 1 ? objects.others[0] : -1;
  // "Read error [127.0.0.1]:44750: Connection reset by peer"
  if (const std::size_t at = text.find("]:"); at != std::string::npos) {
    const std::size_t end = text.find_first_not_of("0123456789", at + 2);
    const auto found = objects.rank_of_port.find(text.substr(at + 2, end - at - 2));
    if (found != objects.rank_of_port.end()) peer = found->second;
  }
  if (const std::string why = reason_of(objects.store, peer); !why.empty()) {
    return invalid("rank {}: {}", peer, why);
  }
  const std::string who = peer < 0 ? "another rank" : format("rank {}", peer);
  if (text.find("imed out") != std::string::npos) {
    return timeout("{} gave no answer within {} ({})", who, rounded_duration(objects.meeting.answer_within),
                   text);
  }
  if (text.find("onnection") != std::string::npos) return unavailable("{} left ({})", who, text);
  return internal("{}", text);
}

std::string place_of(const Rendezvous& meeting) {
  return meeting.place.empty() ? net::shm::place() : meeting.place;
}

// What rank 0 decides for all: "shm <address>", "hosts <host of each rank>", "gloo", or "error <why>".
std::string chosen_transport(c10d::TCPStore& store, const Rendezvous& meeting, const std::string& address) {
  if (meeting.transport == Transport::gloo) return "gloo";
  std::vector<std::string> places{place_of(meeting)};
  for (int rank = 1; rank < meeting.world_size.value; ++rank)
    places.push_back(text_at(store, format("place/{}", rank)));
  const net::shm::Hosts hosts = net::shm::Hosts::of_places(places);
  if (hosts.count() == 1) return "shm " + address;
  if (meeting.transport == Transport::automatic)
    return hosts.most() > 1 ? "hosts " + hosts.to_text() : "gloo";
  const auto elsewhere = std::find_if(places.begin() + 1, places.end(), [&](const std::string& place) {
    return place.empty() || place != places[0];
  });
  return format("error rank {} cannot share memory with rank 0 (train.backend: shm)",
                elsewhere - places.begin());
}

using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

net::shm::ExchangeOptions exchange_options(const ProcessGroup::Objects& objects) {
  return {.stopped_within = objects.meeting.stopped_within,
          .answer_within = objects.meeting.answer_within,
          .named_after = objects.limits.named_after(),
          .on_late = objects.meeting.on_late};
}

BackendPointer backend_of(ProcessGroup::Objects& objects, std::unique_ptr<net::shm::Collectives> ranks) {
  objects.ranks = ranks.get();
  return make_shm_backend(std::move(ranks));
}

Result<BackendPointer> over_memory(ProcessGroup::Objects& objects, Result<net::shm::Region> region) {
  RETURN_IF_ERROR(region.status());
  objects.transport = Transport::shared_memory;
  return backend_of(objects,
                    std::make_unique<net::shm::Exchange>(std::move(*region), exchange_options(objects)));
}

// Between `ranks`, of which this is one.
Result<BackendPointer> over_network(ProcessGroup::Objects& objects, const std::vector<int>& ranks) {
  const Rendezvous& meeting = objects.meeting;
  std::string interface = meeting.interface;
  if (interface.empty()) {
    OK_OR_RETURN(found, interface_towards(meeting));
    interface = found;
  }
  const auto own = std::find(ranks.begin(), ranks.end(), meeting.rank.value);
  auto backend =
      make_gloo_backend(objects.store, {static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()),
                                        interface, meeting.connect_within});
  objects.others = ranks;
  objects.others.erase(objects.others.begin() + (own - ranks.begin()));
  objects.rank_of_port = exchange_ports(*objects.store, meeting.rank, objects.others);
  return backend;
}

Result<BackendPointer> over_network(ProcessGroup::Objects& objects) {
  std::vector<int> ranks(static_cast<std::size_t>(objects.meeting.world_size.value));
  std::iota(ranks.begin(), ranks.end(), 0);
  objects.transport = Transport::gloo;
  return over_network(objects, ranks);
}

// The ranks of this rank's host; null when it is the only one.
Result<std::unique_ptr<net::shm::Exchange>> meet_on_host(ProcessGroup::Objects& objects,
                                                         const net::shm::Hosts& hosts, Deadline deadline) {
  const Rank rank = objects.meeting.rank;
  const std::size_t number = hosts.host_of(rank);
  const net::shm::Seat seat = hosts.seat_of(rank);
  if (seat.size.value == 1) return std::unique_ptr<net::shm::Exchange>();
  const std::string key = format("host/{}", number);
  const auto meet = [&]() -> Result<net::shm::Region> {
    if (seat.rank.value != 0) return net::shm::join(text_at(*objects.store, key), seat, deadline);
    OK_OR_RETURN(host, net::shm::Host::open());
    objects.store->set(key, bytes_of(host.address()));
    return std::move(host).gather(seat, deadline);
  };
  auto region = meet();
  RETURN_IF_ERROR(region.status());
  net::shm::ExchangeOptions options = exchange_options(objects);
  options.answer_within += net::shm::TwoLevel::kLonger;
  options.names = hosts.ranks_of(number);
  return std::make_unique<net::shm::Exchange>(std::move(*region), options);
}

Result<BackendPointer> over_both(ProcessGroup::Objects& objects, const net::shm::Hosts& hosts,
                                 Deadline deadline) {
  const Rendezvous& meeting = objects.meeting;
  objects.transport = Transport::two_level;
  net::shm::TwoLevelParts parts{hosts, meeting.rank, nullptr, nullptr};
  OK_OR_RETURN(inside, meet_on_host(objects, hosts, deadline));
  parts.inside = std::move(inside);
  if (hosts.is_first(meeting.rank)) {
    OK_OR_RETURN(gloo, over_network(objects, hosts.first_ranks()));
    gloo->setTimeout(meeting.answer_within);
    parts.between = make_gloo_between(
        gloo, {.named_after = objects.limits.named_after(),
               .on_late = meeting.on_late,
               .explain = [&objects](const std::exception& error) { return meaning_of(objects, error); },
               .say_why = [&objects](std::string_view why) { say_why(objects, why); },
               .rank = meeting.rank.value,
               .others = objects.others});
  }
  parts.on_level = [ledger = objects.ledger](net::shm::Level level) {
    ledger->moved_to(level == net::shm::Level::within_host ? record::CollectiveOutcome::within_host
                                                           : record::CollectiveOutcome::between_hosts);
  };
  return backend_of(objects, std::make_unique<net::shm::TwoLevel>(std::move(parts)));
}

// Whether all ranks are on one host is known to none of them alone: each says where it is, rank 0 compares.
Result<BackendPointer> open_backend(ProcessGroup::Objects& objects, Deadline deadline) {
  const Rendezvous& meeting = objects.meeting;
  c10d::TCPStore& store = *objects.store;
  const net::shm::Seat seat{meeting.rank, meeting.world_size};
  std::string choice;
  if (meeting.rank.value == 0) {
    OK_OR_RETURN(host, net::shm::Host::open());
    choice = chosen_transport(store, meeting, host.address());
    store.set("transport", bytes_of(choice));
    if (choice.starts_with("shm ")) return over_memory(objects, std::move(host).gather(seat, deadline));
  } else {
    store.set(format("place/{}", meeting.rank), bytes_of(place_of(meeting)));
    choice = text_at(store, "transport");
    if (choice.starts_with("shm ")) {
      return over_memory(objects, net::shm::join(choice.substr(4), seat, deadline));
    }
  }
  if (choice.starts_with("error ")) {
    say_and_hear(store, meeting, "refused", Deadline::after(kLastWordsWithin));
    return invalid("{}", choice.substr(6)).cure("train.backend: auto");
  }
  if (!choice.starts_with("hosts ")) return over_network(objects);
  OK_OR_RETURN(hosts, net::shm::Hosts::parse(choice.substr(6)));
  if (hosts.ranks() != meeting.world_size) return internal("hosts of {} ranks", hosts.ranks());
  return over_both(objects, hosts, deadline);
}

Status join(ProcessGroup::Objects& objects) {
  const Rendezvous& meeting = objects.meeting;
  const Deadline deadline = Deadline::after(meeting.connect_within);
  if (!meeting.flight.empty()) {
    OK_OR_RETURN(recorder,
                 record::FlightRecorder::create(meeting.flight, meeting.rank.value, net::host_name()));
    objects.ledger->keep_in(std::move(recorder));
    objects.ledger->trace_in(meeting.trace);
  }
  RETURN_IF_ERROR(meeting.rank.value == 0 ? check_address(meeting) : wait_for_first_rank(meeting, deadline));
  objects.store = open_store(meeting);
  RETURN_IF_ERROR(roll_call(*objects.store, meeting, deadline));

  OK_OR_RETURN(inner, open_backend(objects, deadline));
  inner->setTimeout(meeting.answer_within);
  using Type = c10d::ProcessGroup::BackendType;
  const Type type = objects.transport == Transport::gloo ? Type::GLOO : Type::CUSTOM;
  objects.group =
      c10::make_intrusive<c10d::ProcessGroup>(objects.store, meeting.rank.value, meeting.world_size.value);
  objects.group->setBackend(c10::DeviceType::CPU, type, make_ledger_backend(inner, objects.ledger));
  objects.group->setDefaultBackend(type);
  objects.group->setGroupName("stoker");
  return {};
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Objects> objects) : objects_(std::move(objects)) {}
ProcessGroup::~ProcessGroup() = default;

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::connect(const Rendezvous& meeting) {
  auto objects = std::make_unique<Objects>(meeting);
  if (meeting.world_size.value > 1) {
    const std::string subject = format("meeting at {}:{}", meeting.address, meeting.port);
    Status joined = caught(Code::unavailable, subject, [&] { return join(*objects); });
    RETURN_IF_ERROR(std::move(joined).with_context(format("rank {}", meeting.rank)));
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(std::move(objects)));
}

Rank ProcessGroup::rank() const { return objects_->meeting.rank; }
WorldSize ProcessGroup::world_size() const { return objects_->meeting.world_size; }

Status ProcessGroup::sum(std::span<double> values) {
  return sum(at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kDouble));
}

Status ProcessGroup::sum(at::Tensor tensor) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    objects_->group->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("summing over ranks", error);
  }
  return {};
}

Status ProcessGroup::copy_from_first(at::Tensor tensor) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    objects_->group->broadcast(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("copying from rank 0", error);
  }
  return {};
}

Result<std::vector<std::string>> ProcessGroup::gather(std::string_view own) {
  if (!objects_->group) return std::vector<std::string>{std::string(own)};
  const auto ranks = static_cast<std::size_t>(world_size().value);
  try {
    std::vector<at::Tensor> length{at::full({1}, static_cast<std::int64_t>(own.size()), at::kLong)};
    std::vector<std::vector<at::Tensor>> lengths(1);
    for (std::size_t i = 0; i < ranks; ++i) lengths[0].push_back(at::zeros({1}, at::kLong));
    objects_->group->allgather(lengths, length)->wait();
    std::int64_t longest = 0;
    for (const at::Tensor& found : lengths[0]) longest = std::max(longest, found.item<std::int64_t>());
    if (longest == 0) return std::vector<std::string>(ranks);

    std::vector<at::Tensor> padded{at::zeros({longest}, at::kByte)};
    std::copy(own.begin(), own.end(), padded[0].data_ptr<std::uint8_t>());
    std::vector<std::vector<at::Tensor>> all(1);
    for (std::size_t i = 0; i < ranks; ++i) all[0].push_back(at::empty({longest}, at::kByte));
    objects_->group->allgather(all, padded)->wait();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto* bytes = all[0][i].const_data_ptr<std::uint8_t>();
      texts.emplace_back(bytes, bytes + lengths[0][i].item<std::int64_t>());
    }
    return texts;
  } catch (const std::exception& error) {
    return explain("gathering from all ranks", error);
  }
}

void ProcessGroup::abandon(std::string_view why) {
  if (!objects_->group) return;
  if (objects_->transport != Transport::shared_memory) say_why(*objects_, why);
  if (objects_->ranks != nullptr) objects_->ranks->abandon(why);
}

std::vector<std::string> ProcessGroup::last_words(std::string_view own, Duration within) {
  std::vector<std::string> words(static_cast<std::size_t>(world_size().value));
  words[static_cast<std::size_t>(rank().value)] = own;
  if (!objects_->group) return words;
  const Deadline deadline = Deadline::after(within);
  RealClock clock;
  try {
    c10d::TCPStore& store = *objects_->store;
    store.set(format("words/{}", rank()), bytes_of(own));
    for (std::size_t other = 0; other < words.size(); ++other) {
      const std::string key = format("words/{}", other);
      while (!store.check({key}) && !deadline.passed()) clock.sleep(std::chrono::milliseconds(2));
      if (store.check({key})) words[other] = text_at(store, key);
    }
    say_and_hear(store, objects_->meeting, "heard", deadline);
  } catch (const std::exception&) {
    // Rank 0, which keeps the store, has left: what has been read so far is what there is.
  }
  return words;
}

Status ProcessGroup::barrier() {
  if (!objects_->group) return {};
  try {
    objects_->group->barrier()->wait();
  } catch (const std::exception& error) {
    return explain("waiting for all ranks", error);
  }
  return {};
}

void ProcessGroup::saw_step(double seconds) {
  objects_->limits.saw_step(seconds);
  if (objects_->ranks == nullptr) return;
  objects_->ranks->set_named_after(objects_->limits.named_after());
  objects_->ranks->set_answer_within(objects_->limits.ended_after());
}

Transport ProcessGroup::transport() const { return objects_->transport; }

Traffic ProcessGroup::traffic() const { return objects_->ledger->traffic(); }

Status ProcessGroup::explain(std::string_view operation, const std::exception& error) const {
  const auto* status = dynamic_cast<const StatusError*>(&error);
  Status meaning = status != nullptr ? status->status() : meaning_of(*objects_, error);
  return std::move(meaning).with_context(format("rank {}: {}", rank(), operation));
}

}  // namespace stoker::torch
