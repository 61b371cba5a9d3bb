#include "slurm/queue/cluster.h"

#include <algorithm>
#include <utility>

#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::slurm {
namespace {

constexpr std::size_t kMaxRows = 100'000;

// "64", or "64+" if the nodes of a row differ.
std::uint64_t parse_count(std::string_view text) {
  text = trim(text);
  if (text.ends_with('+')) text.remove_suffix(1);
  std::uint64_t value = 0;
  return parse_number(text, &value) ? value : 0;
}

}  // namespace

std::vector<std::string> sinfo_arguments() {
  return {"sinfo", "--noheader", "--exact", "--format=%P|%l|%L|%D|%c|%m|%d|%G"};
}

Status parse_config(std::string_view text, ClusterInfo& facts) {
  for (std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    std::uint64_t number = 0;
    if (key == "ClusterName") facts.name = printable(value);
    if (key == "SLURM_VERSION") facts.version = printable(value);
    if (key == "MaxArraySize" && parse_number(value, &number)) facts.max_array_size = number;
  }
  return facts.name.empty() ? corrupt("scontrol: printed no configuration") : Status();
}

std::pair<std::string, std::uint64_t> parse_gpus(std::string_view gres) {
  for (std::string_view entry : split(gres, ',')) {
    entry = trim(entry.substr(0, entry.find('(')));
    if (entry != "gpu" && !entry.starts_with("gpu:")) continue;
    const auto parts = split(entry, ':');
    std::uint64_t count = 0;
    const bool has_count = parts.size() > 1 && parse_number(parts.back(), &count);
    if (!has_count) count = 1;
    const bool has_type = parts.size() > (has_count ? 2u : 1u);
    return {has_type ? printable(parts[1]) : "gpu", count};
  }
  return {"", 0};
}

Result<std::vector<PartitionNodes>> parse_partitions(std::string_view text) {
  std::vector<PartitionNodes> found;
  for (std::string_view line : split(text, '\n')) {
    const auto columns = split(line, '|');
    if (columns.size() != 8 || found.size() == kMaxRows) continue;
    PartitionNodes nodes;
    std::string_view name = trim(columns[0]);
    nodes.is_default = name.ends_with('*');
    if (nodes.is_default) name.remove_suffix(1);
    nodes.partition = printable(name);
    nodes.time = parse_slurm_limit(columns[1]);
    nodes.default_time = parse_slurm_limit(columns[2]);
    nodes.nodes = parse_count(columns[3]);
    nodes.cores = parse_count(columns[4]);
    nodes.memory = ByteCount{std::min<std::uint64_t>(parse_count(columns[5]), 1u << 30) << 20};
    nodes.disk = ByteCount{std::min<std::uint64_t>(parse_count(columns[6]), 1u << 30) << 20};
    std::tie(nodes.gpu, nodes.gpus) = parse_gpus(columns[7]);
    if (!nodes.partition.empty() && nodes.nodes > 0) found.push_back(std::move(nodes));
  }
  if (found.empty()) return corrupt("sinfo: printed no partition");
  return found;
}

std::vector<std::string> parse_accounts(std::string_view text) {
  std::vector<std::string> accounts;
  for (std::string_view line : split(text, '\n')) {
    const auto columns = split(line, '|');
    // Rows without a user describe the account itself.
    if (columns.size() < 2 || trim(columns[1]).empty()) continue;
    std::string account = printable(trim(columns[0]));
    if (std::find(accounts.begin(), accounts.end(), account) == accounts.end() && !account.empty())
      accounts.push_back(std::move(account));
  }
  return accounts;
}

}  // namespace stoker::slurm
