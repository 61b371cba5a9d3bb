#include "train/trainer/environment.h"

#include <cctype>
#include <limits>
#include <unistd.h>

namespace stoker::train {

namespace {

constexpr std::string_view kData = "STOKER_DATA_";

std::string value_of(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// An integer from `least` to `most`, or `unset` if the variable is missing or empty.
struct IntegerVariable {
  std::string_view name;
  std::int64_t unset = 0;
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
};

Result<std::int64_t> read_integer(const Variables& variables, const IntegerVariable& what) {
  const std::string text = value_of(variables, what.name);
  if (text.empty()) return what.unset;
  std::int64_t value = 0;
  if (!parse_number(text, &value) || value < what.least || value > what.most) {
    return invalid("{}: '{}' is not a number from {} to {}", what.name, printable(text), what.least,
                   what.most);
  }
  return value;
}

}  // namespace

Variables process_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Result<RankEnvironment> read_environment(const Variables& variables) {
  RankEnvironment environment;
  STOKER_ASSIGN_OR_RETURN(world, read_integer(variables, {.name = "WORLD_SIZE", .unset = 1, .least = 1}));
  STOKER_ASSIGN_OR_RETURN(rank, read_integer(variables, {.name = "RANK"}));
  if (rank >= world) return invalid("RANK: {} is not below WORLD_SIZE {}", rank, world);
  STOKER_ASSIGN_OR_RETURN(port, read_integer(variables, {.name = "MASTER_PORT", .least = 1, .most = 65535}));
  STOKER_ASSIGN_OR_RETURN(local_rank, read_integer(variables, {.name = "LOCAL_RANK"}));
  environment.local_rank = static_cast<int>(local_rank);
  STOKER_ASSIGN_OR_RETURN(
      gpus, read_integer(variables, {.name = "STOKER_GPUS_PER_RANK", .unset = 1, .least = 1, .most = 64}));
  environment.gpus_per_rank = static_cast<int>(gpus);
  environment.rank = Rank(static_cast<int>(rank));
  environment.world_size = WorldSize(static_cast<int>(world));
  environment.port = static_cast<std::uint16_t>(port);
  if (const std::string address = value_of(variables, "MASTER_ADDR"); !address.empty()) {
    environment.address = address;
  }
  // All ranks share a host: nothing has to be reachable from the network.
  STOKER_ASSIGN_OR_RETURN(local_world, read_integer(variables, {.name = "LOCAL_WORLD_SIZE"}));
  if (local_world == world) environment.address = "127.0.0.1";
  if (world > 1 && port == 0) {
    return invalid("MASTER_PORT: not set, but WORLD_SIZE is {}", world).cure("stoker run JOB sets it");
  }
  environment.run_id = value_of(variables, "STOKER_RUN_ID");
  environment.attempt = value_of(variables, "STOKER_ATTEMPT_DIR");
  environment.checkpoints = value_of(variables, "STOKER_CHECKPOINT_DIR");
  environment.resume = value_of(variables, "STOKER_RESUME");
  environment.job = value_of(variables, "STOKER_JOB");
  if (const std::string text = value_of(variables, "STOKER_DEADLINE"); !text.empty()) {
    double seconds = 0;
    if (!parse_number(text, &seconds) || !(seconds > 0 && seconds < 1e10)) {
      return invalid("STOKER_DEADLINE: '{}' is not a time in Unix seconds", printable(text));
    }
    environment.deadline = WallTime(std::chrono::duration_cast<Duration>(Seconds(seconds)));
  }
  for (auto entry = variables.lower_bound(kData); entry != variables.end(); ++entry) {
    if (!entry->first.starts_with(kData)) break;
    if (!entry->second.empty()) environment.data.emplace(entry->first.substr(kData.size()), entry->second);
  }
  return environment;
}

Path dataset_folder(const RankEnvironment& environment, std::string_view name, const Path& source) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const auto found = environment.data.find(upper);
  return found == environment.data.end() ? source : Path(found->second);
}

}  // namespace stoker::train
