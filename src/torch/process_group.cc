#include "torch/process_group.h"

#include <algorithm>
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
#include "torch/communication/meeting.h"
#include "torch/communication/network.h"
#include "torch/communication/parting.h"
#include "torch/communication/shm_backend.h"
#include "torch/edge.h"
#include "torch/gloo_backend.h"

namespace stoker::torch {

namespace {

class StoreBoard final : public Board {
 public:
  explicit StoreBoard(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
  void set(const std::string& key, std::string_view text) override {
    store_->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  std::string get(const std::string& key) override {
    const std::vector<std::uint8_t> value = store_->get(key);
    return {value.begin(), value.end()};
  }
  bool has(const std::string& key) override { return store_->check({key}); }

 private:
  const c10::intrusive_ptr<c10d::TCPStore> store_;
};

// How long rank 0 stays for others that have to read why they cannot go on.
constexpr Duration kLastWordsWithin = std::chrono::seconds(5);

c10::intrusive_ptr<c10d::TCPStore> open_store(const Rendezvous& meeting) {
  c10d::TCPStoreOptions options;
  options.port = meeting.port;
  options.isServer = meeting.rank.value == 0;
  options.waitWorkers = false;
  options.timeout = meeting.connect_within;
  return c10::make_intrusive<c10d::TCPStore>(meeting.address, options);
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
  std::vector<int> others = ranks;
  others.erase(others.begin() + (own - ranks.begin()));
  objects.peers = meet_peers(*objects.board, meeting.rank, std::move(others));
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
    if (seat.rank.value != 0) return net::shm::join(objects.board->get(key), seat, deadline);
    OK_OR_RETURN(host, net::shm::Host::open());
    objects.board->set(key, host.address());
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
        gloo,
        {.named_after = objects.limits.named_after(),
         .on_late = meeting.on_late,
         .explain =
             [&objects](const std::exception& error) {
               return meaning_of(objects.board.get(), objects.meeting, objects.peers, error);
             },
         .say_why = [&objects](std::string_view why) { say_why(*objects.board, objects.meeting.rank, why); },
         .rank = meeting.rank.value,
         .others = objects.peers.others});
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
  const net::shm::Seat seat{meeting.rank, meeting.world_size};
  std::string choice;
  if (meeting.rank.value == 0) {
    OK_OR_RETURN(host, net::shm::Host::open());
    choice = decide_transport(*objects.board, meeting, host.address());
    if (choice.starts_with("shm ")) return over_memory(objects, std::move(host).gather(seat, deadline));
  } else {
    choice = hear_transport(*objects.board, meeting);
    if (choice.starts_with("shm ")) {
      return over_memory(objects, net::shm::join(choice.substr(4), seat, deadline));
    }
  }
  if (choice.starts_with("error ")) {
    say_and_hear(*objects.board, meeting, "refused", Deadline::after(kLastWordsWithin));
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
  objects.board = std::make_unique<StoreBoard>(objects.store);
  RETURN_IF_ERROR(roll_call(*objects.board, meeting, deadline));

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
  if (!objects_->group || objects_->knows_why) return;
  if (objects_->transport != Transport::shared_memory) say_why(*objects_->board, rank(), why);
  if (objects_->ranks != nullptr) objects_->ranks->abandon(why);
}

std::vector<std::string> ProcessGroup::last_words(std::string_view own, Duration within) {
  if (objects_->group) return trade_last_words(*objects_->board, objects_->meeting, own, within);
  return {std::string(own)};
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
  Status meaning = status != nullptr
                       ? status->status()
                       : meaning_of(objects_->board.get(), objects_->meeting, objects_->peers, error);
  if (meaning.code() == Code::invalid) objects_->knows_why = true;
  return std::move(meaning).with_context(format("rank {}: {}", rank(), operation));
}

}  // namespace stoker::torch
