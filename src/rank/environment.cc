#include "rank/environment.h"

#include <algorithm>
#include <sched.h>

namespace stoker::rank {

void set_variable(Environment& environment, std::string_view name, std::string value) {
  unset_variable(environment, name);
  environment.emplace_back(name, std::move(value));
}

void unset_variable(Environment& environment, std::string_view name) {
  std::erase_if(environment, [&](const auto& entry) { return entry.first == name; });
}

std::string variable(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return "";
}

Environment rank_environment(Environment base, const Place& place, const Rendezvous& rendezvous,
                             int threads) {
  for (std::string_view name : {kWorldVariable, kPlaceVariable, kStartVariable, kCpusVariable})
    unset_variable(base, name);
  // A script under torchrun's variables would look for an agent's store that is not there.
  std::erase_if(base, [](const auto& entry) {
    return entry.first.starts_with("TORCHELASTIC_") || entry.first == "GROUP_RANK" ||
           entry.first.starts_with("ROLE_") || entry.first.starts_with("GROUP_WORLD_");
  });
  const auto set = [&](std::string_view name, std::string value) {
    set_variable(base, name, std::move(value));
  };
  set("RANK", std::to_string(place.rank.value));
  set("LOCAL_RANK", std::to_string(place.local_rank));
  set("WORLD_SIZE", std::to_string(place.world_size.value));
  set("LOCAL_WORLD_SIZE", std::to_string(place.local_world_size));
  set("NODE_RANK", std::to_string(place.node));
  set("MASTER_ADDR", rendezvous.address);
  set("MASTER_PORT", std::to_string(rendezvous.port));
  if (variable(base, "OMP_NUM_THREADS").empty()) set("OMP_NUM_THREADS", std::to_string(threads));
  return base;
}

int cores_per_rank(int wanted, const Place& place) {
  if (wanted > 0) return wanted;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  const int cores = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
  return std::max(1, cores / std::max(1, place.local_world_size));
}

}  // namespace stoker::rank
