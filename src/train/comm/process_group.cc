#include "stoker/process_group.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "net/port.h"
#include "net/shm/exchange.h"
#include "net/shm/two_level.h"
#include "stoker/exceptions.h"
#include "stoker/time.h"
#include "train/comm/c10d_internal.h"
#include "train/comm/gloo_backend.h"
#include "train/comm/host_staged_backend.h"
#include "train/comm/network.h"
#include "train/comm/peer_failure.h"
#include "train/comm/recording_backend.h"
#include "train/comm/rendezvous.h"
#include "train/comm/shm_backend.h"
#include "train/device/cuda_part.h"

namespace stoker::train {

namespace {

class TcpKeyValueStore final : public KeyValueStore {
 public:
  explicit TcpKeyValueStore(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
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

// How long rank 0 waits for peers to read the reason of a failure.
constexpr Duration kFailureExchangeTimeout = std::chrono::seconds(5);

Result<c10::intrusive_ptr<c10d::TCPStore>> open_store(const RendezvousOptions& rendezvous) {
  c10d::TCPStoreOptions options;
  options.port = rendezvous.port;
  options.isServer = rendezvous.rank.value == 0;
  options.waitWorkers = false;
  options.timeout = rendezvous.connect_within;
  // The store itself would listen on all interfaces. It closes the socket.
  if (options.isServer) {
    STOKER_ASSIGN_OR_RETURN(socket, listen_on_loopback(rendezvous));
    if (socket) options.masterListenFd = socket.release();
  }
  return c10::make_intrusive<c10d::TCPStore>(rendezvous.address, options);
}

using BackendPointer = c10::intrusive_ptr<c10d::Backend>;
using BackendType = c10d::ProcessGroup::BackendType;

net::shm::ExchangeOptions exchange_options(const ProcessGroup::Objects& objects) {
  return {.stopped_timeout = objects.rendezvous.stopped_timeout,
          .call_timeout = objects.rendezvous.call_timeout,
          .straggler_after = objects.limits.straggler_after(),
          .on_straggler = objects.rendezvous.on_straggler};
}

BackendPointer backend_of(ProcessGroup::Objects& objects, std::unique_ptr<net::shm::Collectives> ranks) {
  objects.ranks = ranks.get();
  return make_shm_backend(std::move(ranks));
}

Result<BackendPointer> shared_memory_backend(ProcessGroup::Objects& objects,
                                             Result<net::shm::Region> region) {
  STOKER_RETURN_IF_ERROR(region.status());
  objects.transport = Transport::shared_memory;
  return backend_of(objects,
                    std::make_unique<net::shm::Exchange>(std::move(*region), exchange_options(objects)));
}

// A gloo backend between `ranks`, which include this rank.
Result<BackendPointer> gloo_backend(ProcessGroup::Objects& objects, const std::vector<int>& ranks) {
  const RendezvousOptions& rendezvous = objects.rendezvous;
  std::string interface = rendezvous.interface;
  if (interface.empty()) {
    STOKER_ASSIGN_OR_RETURN(found, interface_to_rank0(rendezvous));
    interface = found;
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rendezvous.rank.value);
  auto backend =
      make_gloo_backend(objects.store, {static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()),
                                        interface, rendezvous.connect_within});
  std::vector<int> others = ranks;
  others.erase(others.begin() + (own - ranks.begin()));
  objects.peers = exchange_ports(*objects.key_values, rendezvous.rank, std::move(others));
  return backend;
}

Result<BackendPointer> gloo_backend(ProcessGroup::Objects& objects) {
  std::vector<int> ranks(static_cast<std::size_t>(objects.rendezvous.world_size.value));
  std::iota(ranks.begin(), ranks.end(), 0);
  objects.transport = Transport::gloo;
  return gloo_backend(objects, ranks);
}

// The ranks of this rank's host; null if there is only one.
Result<std::unique_ptr<net::shm::Exchange>> connect_within_host(ProcessGroup::Objects& objects,
                                                                const net::shm::Hosts& hosts,
                                                                Deadline deadline) {
  const Rank rank = objects.rendezvous.rank;
  const std::size_t number = hosts.host_of(rank);
  const net::shm::GroupPosition position = hosts.position_of(rank);
  if (position.size.value == 1) return std::unique_ptr<net::shm::Exchange>();
  const std::string key = format("host/{}", number);
  const auto join_host = [&]() -> Result<net::shm::Region> {
    if (position.rank.value != 0) return net::shm::join(objects.key_values->get(key), position, deadline);
    STOKER_ASSIGN_OR_RETURN(host, net::shm::RegionServer::open());
    objects.key_values->set(key, host.address());
    return std::move(host).create_region(position, deadline);
  };
  auto region = join_host();
  STOKER_RETURN_IF_ERROR(region.status());
  net::shm::ExchangeOptions options = exchange_options(objects);
  options.call_timeout += net::shm::TwoLevel::kPeerTimeoutMargin;
  options.global_ranks = hosts.ranks_of(number);
  return std::make_unique<net::shm::Exchange>(std::move(*region), options);
}

Result<BackendPointer> two_level_backend(ProcessGroup::Objects& objects, const net::shm::Hosts& hosts,
                                         Deadline deadline) {
  const RendezvousOptions& rendezvous = objects.rendezvous;
  objects.transport = Transport::two_level;
  net::shm::TwoLevelParts parts{hosts, rendezvous.rank, nullptr, nullptr};
  STOKER_ASSIGN_OR_RETURN(inside, connect_within_host(objects, hosts, deadline));
  parts.intra_node = std::move(inside);
  if (hosts.is_leader(rendezvous.rank)) {
    STOKER_ASSIGN_OR_RETURN(gloo, gloo_backend(objects, hosts.leaders()));
    gloo->setTimeout(rendezvous.call_timeout);
    parts.inter_node = make_gloo_inter_node(
        gloo, {.straggler_after = objects.limits.straggler_after(),
               .on_straggler = rendezvous.on_straggler,
               .explain =
                   [&objects](const std::exception& error) {
                     return to_peer_error(objects.key_values.get(), objects.rendezvous, objects.peers, error);
                   },
               .publish_failure =
                   [&objects](std::string_view why) {
                     publish_failure(*objects.key_values, objects.rendezvous.rank, why);
                   },
               .rank = rendezvous.rank.value,
               .others = objects.peers.ranks});
  }
  parts.on_level = [collective_recorder = objects.collective_recorder](net::shm::CommunicationLevel level) {
    collective_recorder->set_level(level == net::shm::CommunicationLevel::intra_node
                                       ? record::CollectiveOutcome::intra_node
                                       : record::CollectiveOutcome::inter_node);
  };
  return backend_of(objects, std::make_unique<net::shm::TwoLevel>(std::move(parts)));
}

// No rank knows alone whether all ranks share a host: each publishes its location, and rank 0 compares.
Result<BackendPointer> open_backend(ProcessGroup::Objects& objects, Deadline deadline) {
  const RendezvousOptions& rendezvous = objects.rendezvous;
  const net::shm::GroupPosition position{rendezvous.rank, rendezvous.world_size};
  std::string choice;
  if (rendezvous.rank.value == 0) {
    STOKER_ASSIGN_OR_RETURN(host, net::shm::RegionServer::open());
    choice = publish_transport(*objects.key_values, rendezvous, host.address());
    if (choice.starts_with("shm "))
      return shared_memory_backend(objects, std::move(host).create_region(position, deadline));
  } else {
    choice = receive_transport(*objects.key_values, rendezvous);
    if (choice.starts_with("shm ")) {
      return shared_memory_backend(objects, net::shm::join(choice.substr(4), position, deadline));
    }
  }
  if (choice.starts_with("error ")) {
    wait_for_acknowledgements(*objects.key_values, rendezvous, "refused",
                              Deadline::after(kFailureExchangeTimeout));
    return invalid("{}", choice.substr(6)).cure("train.backend: auto");
  }
  if (!choice.starts_with("hosts ")) return gloo_backend(objects);
  STOKER_ASSIGN_OR_RETURN(hosts, net::shm::Hosts::parse(choice.substr(6)));
  if (hosts.ranks() != rendezvous.world_size) return internal("hosts of {} ranks", hosts.ranks());
  return two_level_backend(objects, hosts, deadline);
}

Status join(ProcessGroup::Objects& objects) {
  const RendezvousOptions& rendezvous = objects.rendezvous;
  const Deadline deadline = Deadline::after(rendezvous.connect_within);
  if (!rendezvous.flight.empty()) {
    STOKER_ASSIGN_OR_RETURN(
        recorder, record::FlightRecorder::create(rendezvous.flight, rendezvous.rank.value, net::host_name()));
    objects.collective_recorder->record_to(std::move(recorder));
    objects.collective_recorder->trace_to(rendezvous.trace);
  }
  STOKER_RETURN_IF_ERROR(rendezvous.rank.value == 0 ? check_address(rendezvous)
                                                    : wait_for_rank0(rendezvous, deadline));
  STOKER_ASSIGN_OR_RETURN(store, open_store(rendezvous));
  objects.store = std::move(store);
  objects.key_values = std::make_unique<TcpKeyValueStore>(objects.store);
  STOKER_RETURN_IF_ERROR(wait_for_all_ranks(*objects.key_values, rendezvous, deadline));

  STOKER_ASSIGN_OR_RETURN(inner, open_backend(objects, deadline));
  inner->setTimeout(rendezvous.call_timeout);
  const auto type = objects.transport == Transport::gloo ? BackendType::GLOO : BackendType::CUSTOM;
  objects.group = c10::make_intrusive<c10d::ProcessGroup>(objects.store, rendezvous.rank.value,
                                                          rendezvous.world_size.value);
  objects.host_backend = make_recording_backend(inner, objects.collective_recorder, CompletionCheck::future);
  objects.group->setBackend(c10::DeviceType::CPU, type, objects.host_backend);
  objects.group->setDefaultBackend(type);
  objects.group->setGroupName("stoker");
  return {};
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Objects> objects) : objects_(std::move(objects)) {}
ProcessGroup::~ProcessGroup() = default;

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::connect(const RendezvousOptions& rendezvous) {
  auto objects = std::make_unique<Objects>(rendezvous);
  if (rendezvous.world_size.value > 1 || rendezvous.transport == Transport::nccl) {
    const std::string subject = format("rendezvous at {}:{}", rendezvous.address, rendezvous.port);
    Status joined = catch_exceptions(Code::unavailable, subject, [&] { return join(*objects); });
    STOKER_RETURN_IF_ERROR(std::move(joined).with_context(format("rank {}", rendezvous.rank)));
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(std::move(objects)));
}

// NCCL refuses two ranks of one GPU.
Status ProcessGroup::use_device(at::Device device) {
  if (device.is_cpu()) return {};
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  if (!objects_->group) return {};
  if (cuda_part() == nullptr)
    return no_cuda_part_reason()
        .with_context(format("rank {}: its model is on {}", rank(), device.str()))
        .cure("a program that is linked with a torch for CUDA (docs/gpu.md)");
  STOKER_ASSIGN_OR_RETURN(gpus, all_gather(cuda_part()->identity(device)));
  std::map<std::string, std::size_t> rank_of;
  std::string shared;
  for (std::size_t rank = 0; rank < gpus.size() && shared.empty(); ++rank) {
    const auto [first, is_new] = rank_of.emplace(gpus[rank], rank);
    if (!is_new) shared = format("ranks {} and {} use the same GPU", first->second, rank);
  }
  const bool is_nccl_wanted = objects_->rendezvous.transport == Transport::nccl;
  if (!shared.empty() && is_nccl_wanted)
    return invalid("train.backend: nccl: {}, which NCCL refuses", shared)
        .cure("train.backend: auto, or as many GPUs as ranks (resources.gpus_per_rank: 1)");
  const bool is_nccl =
      is_nccl_wanted || (shared.empty() && objects_->rendezvous.transport == Transport::automatic);
  if (is_nccl) STOKER_RETURN_IF_ERROR(cuda_part()->check_nccl());
  return catch_exceptions(Code::unavailable, "connecting GPUs", [&] {
    BackendPointer backend;
    if (is_nccl) {
      const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", objects_->store);
      backend = make_recording_backend(
          cuda_part()->make_nccl_backend(
              store, {rank().value, world_size().value, objects_->rendezvous.call_timeout}),
          objects_->collective_recorder, CompletionCheck::polled);
    } else {
      backend = make_host_staged_backend(objects_->host_backend);
    }
    objects_->device_transport = is_nccl ? Transport::nccl : objects_->transport;
    // One backend for each type: UCC is a name that the backend for the host never has.
    objects_->group->setBackend(device.type(), is_nccl ? BackendType::NCCL : BackendType::UCC, backend);
  });
}

Rank ProcessGroup::rank() const { return objects_->rendezvous.rank; }
WorldSize ProcessGroup::world_size() const { return objects_->rendezvous.world_size; }

Status ProcessGroup::all_reduce_sum(std::span<double> values) {
  return all_reduce_sum(
      at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kDouble));
}

Status ProcessGroup::all_reduce_sum(at::Tensor tensor) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    objects_->group->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("summing over ranks", error);
  }
  return {};
}

Status ProcessGroup::broadcast_from_rank0(at::Tensor tensor) {
  if (!objects_->group) return {};
  try {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    objects_->group->broadcast(tensors)->wait();
  } catch (const std::exception& error) {
    return explain("copying from rank 0", error);
  }
  return {};
}

Result<std::vector<std::string>> ProcessGroup::all_gather(std::string_view own) {
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
  if (!objects_->group || objects_->has_peer_failure) return;
  if (objects_->transport != Transport::shared_memory) publish_failure(*objects_->key_values, rank(), why);
  if (objects_->ranks != nullptr) objects_->ranks->abandon(why);
}

std::vector<std::string> ProcessGroup::collect_failures(std::string_view own, Duration within) {
  if (objects_->group) return exchange_failures(*objects_->key_values, objects_->rendezvous, own, within);
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

void ProcessGroup::record_step_time(double seconds) {
  objects_->limits.record_step_time(seconds);
  if (objects_->ranks == nullptr) return;
  objects_->ranks->set_straggler_after(objects_->limits.straggler_after());
  objects_->ranks->set_call_timeout(objects_->limits.ended_after());
}

Transport ProcessGroup::transport() const { return objects_->transport; }
Transport ProcessGroup::device_transport() const { return objects_->device_transport; }

Traffic ProcessGroup::traffic() const { return objects_->collective_recorder->traffic(); }

Status ProcessGroup::explain(std::string_view operation, const std::exception& error) const {
  const auto* status = dynamic_cast<const StatusError*>(&error);
  Status meaning = status != nullptr ? status->status()
                                     : to_peer_error(objects_->key_values.get(), objects_->rendezvous,
                                                     objects_->peers, error);
  if (meaning.code() == Code::invalid) objects_->has_peer_failure = true;
  return std::move(meaning).with_context(format("rank {}: {}", rank(), operation));
}

}  // namespace stoker::train
