#include "record/trace/torch_flight.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "record/trace/desync.h"
#include "record/trace/pickle.h"

namespace stoker::record {

namespace {

using Index = Pickle::Index;

constexpr ByteCount kMaxBytes = 64_MiB;
constexpr std::string_view kDefaultGroup = "default_pg";
constexpr std::size_t kLongestText = 200;

struct TorchElement {
  std::string_view torch;
  std::string_view ours;
  std::uint64_t bytes;
};
constexpr std::array<TorchElement, 12> kElements = {{{"Float", "float32", 4},
                                                     {"Double", "float64", 8},
                                                     {"Half", "float16", 2},
                                                     {"BFloat16", "bfloat16", 2},
                                                     {"Long", "int64", 8},
                                                     {"Int", "int32", 4},
                                                     {"Short", "int16", 2},
                                                     {"Char", "int8", 1},
                                                     {"Byte", "uint8", 1},
                                                     {"Bool", "bool", 1},
                                                     {"Float8_e4m3fn", "float8e4m3", 1},
                                                     {"Float8_e5m2", "float8e5m2", 1}}};

// Operations whose ranks may pass tensors of different sizes.
constexpr std::array<std::string_view, 3> kUneven = {"all-to-all", "gather", "scatter"};

std::string text_of(const Pickle& pickle, Index index, std::string_view key) {
  const auto* text = pickle.find_as<std::string_view>(index, key);
  return text == nullptr ? "" : printable(text->substr(0, kLongestText));
}

std::int64_t number_of(const Pickle& pickle, Index index, std::string_view key) {
  const auto* number = pickle.find_as<std::int64_t>(index, key);
  return number == nullptr ? 0 : *number;
}

bool is_true(const Pickle& pickle, Index index, std::string_view key) {
  const auto* value = pickle.find_as<bool>(index, key);
  return value != nullptr && *value;
}

// The first item of a list.
std::optional<Index> first_of(const Pickle& pickle, Index index, std::string_view key) {
  const auto* list = pickle.find_as<Pickle::List>(index, key);
  return list == nullptr || list->items.empty() ? std::nullopt : std::optional(list->items[0]);
}

// "all-reduce" of "nccl:_all_reduce", "all-gather" of "nccl:_all_gather_base".
std::string operation_of(std::string_view name) {
  name.remove_prefix(name.rfind(':') + 1);  // npos + 1 is 0
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  if (text.starts_with('-')) text.erase(0, 1);
  if (text.ends_with("-base")) text.resize(text.size() - 5);
  if (text.ends_with("-barrier")) return "barrier";
  if (text == "allgather-into-tensor") return "all-gather";
  if (text == "reduce-scatter-tensor") return "reduce-scatter";
  return text == "alltoall" ? "all-to-all" : text;
}

std::string element_of(const Pickle& pickle, Index entry) {
  const auto first = first_of(pickle, entry, "input_dtypes");
  const auto* name = first ? std::get_if<std::string_view>(&pickle.at(*first)) : nullptr;
  if (name == nullptr) return "";
  for (const TorchElement& each : kElements) {
    if (each.torch == *name) return std::string(each.ours);
  }
  return printable(name->substr(0, kLongestText));
}

std::array<std::uint32_t, 4> shape_of(const Pickle& pickle, Index entry) {
  std::array<std::uint32_t, 4> shape{};
  const auto first = first_of(pickle, entry, "input_sizes");
  const auto* sizes = first ? std::get_if<Pickle::List>(&pickle.at(*first)) : nullptr;
  for (std::size_t i = 0; sizes != nullptr && i < std::min(shape.size(), sizes->items.size()); ++i) {
    const auto* size = std::get_if<std::int64_t>(&pickle.at(sizes->items[i]));
    shape[i] =
        size == nullptr ? 0 : static_cast<std::uint32_t>(std::clamp<std::int64_t>(*size, 0, UINT32_MAX));
  }
  return shape;
}

std::uint64_t bytes_of_element(std::string_view torch) {
  const auto found =
      std::find_if(kElements.begin(), kElements.end(), [&](const auto& each) { return each.torch == torch; });
  return found == kElements.end() ? 0 : found->bytes;
}

// Of all tensors in a list such as `input_sizes`; 0 if one is unknown or impossible.
std::uint64_t bytes_of(const Pickle& pickle, Index entry, std::string_view sizes_key,
                       std::string_view types_key) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
  const auto* tensors = pickle.find_as<Pickle::List>(entry, sizes_key);
  const auto* types = pickle.find_as<Pickle::List>(entry, types_key);
  if (tensors == nullptr || types == nullptr || tensors->items.size() != types->items.size()) return 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tensors->items.size(); ++i) {
    const auto* sizes = std::get_if<Pickle::List>(&pickle.at(tensors->items[i]));
    const auto* type = std::get_if<std::string_view>(&pickle.at(types->items[i]));
    std::uint64_t bytes = type == nullptr ? 0 : bytes_of_element(*type);
    for (std::size_t d = 0; sizes != nullptr && d < sizes->items.size(); ++d) {
      const auto* size = std::get_if<std::int64_t>(&pickle.at(sizes->items[d]));
      if (size == nullptr || *size < 0 || static_cast<std::uint64_t>(*size) > kMostBytes) return 0;
      bytes *= static_cast<std::uint64_t>(*size);
      if (bytes > kMostBytes) return 0;
    }
    if (sizes == nullptr || bytes == 0) return 0;
    sum = std::min(kMostBytes, sum + bytes);
  }
  return sum;
}

// Milliseconds of the GPU; 0 without them.
double measured_ms(const Pickle& pickle, Index entry) {
  const auto* fraction = pickle.find_as<double>(entry, "duration_ms");
  const double ms =
      fraction != nullptr ? *fraction : static_cast<double>(number_of(pickle, entry, "duration_ms"));
  return ms > 0 && ms < 1e12 ? ms : 0;
}

// "train.py:88" of the innermost frame outside of libraries.
std::string place_of(const Pickle& pickle, Index entry) {
  const auto* frames = pickle.find_as<Pickle::List>(entry, "frames");
  for (std::size_t i = 0; frames != nullptr && i < frames->items.size(); ++i) {
    const std::string file = text_of(pickle, frames->items[i], "filename");
    const bool is_library = file.find("/site-packages/") != file.npos ||
                            file.find("/dist-packages/") != file.npos || file.find("/torch/") != file.npos ||
                            file.starts_with('<');
    if (!is_library && file.ends_with(".py"))
      return format("{}:{}", file.substr(file.rfind('/') + 1), number_of(pickle, frames->items[i], "line"));
  }
  return "";
}

FlightEntry entry_of(const Pickle& pickle, Index index, std::uint64_t number) {
  FlightEntry entry{.number = number, .collective = {}};
  Collective& collective = entry.collective;
  collective.operation = operation_of(text_of(pickle, index, "profiling_name"));
  const bool is_even = std::find(kUneven.begin(), kUneven.end(), collective.operation) == kUneven.end();
  if (collective.operation != "barrier" && is_even) {
    collective.element = element_of(pickle, index);
    collective.shape = shape_of(pickle, index);
  }
  // The output of a reduce-scatter is the part of this rank.
  const bool is_scattered = collective.operation == "reduce-scatter";
  collective.bytes = is_scattered ? bytes_of(pickle, index, "output_sizes", "output_dtypes")
                                  : bytes_of(pickle, index, "input_sizes", "input_dtypes");
  // gloo's collectives stay "scheduled", but are retired.
  const bool is_done = text_of(pickle, index, "state") == "completed" || is_true(pickle, index, "retired");
  entry.outcome = is_done ? CollectiveOutcome::done : CollectiveOutcome::under_way;
  const auto begun = static_cast<double>(number_of(pickle, index, "time_created_ns"));
  const auto ended = static_cast<double>(number_of(pickle, index, "time_discovered_completed_ns"));
  entry.begun_unix_s = 1e-9 * begun;
  if (is_done && ended > begun) entry.seconds = 1e-9 * (ended - begun);
  if (is_done) entry.measured_s = 1e-3 * measured_ms(pickle, index);
  entry.place = place_of(pickle, index);
  return entry;
}

// "[0, 1]"
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  if (text.size() < 2 || text.front() != '[') return ranks;
  for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
    std::int64_t rank = 0;
    if (parse_number(trim(part), &rank) && rank >= 0 && rank <= INT32_MAX)
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// The name and the description of an entry's process group.
std::pair<std::string, std::string> group_of(const Pickle& pickle, Index entry) {
  std::pair<std::string, std::string> names;
  const auto* both = pickle.find_as<Pickle::List>(entry, "process_group");
  if (both == nullptr || both->items.size() != 2) return names;
  const auto text = [&](Index index) {
    const auto* found = std::get_if<std::string_view>(&pickle.at(index));
    return found == nullptr ? "" : printable(found->substr(0, kLongestText));
  };
  return {text(both->items[0]), text(both->items[1])};
}

class GroupBuilder {
 public:
  explicit GroupBuilder(int rank) { flight_.rank = rank; }

  void add_groups(const Pickle& pickle) {
    const auto* groups = pickle.find_as<Pickle::Dictionary>(pickle.root(), "pg_config");
    for (std::size_t i = 0; groups != nullptr && i + 1 < groups->pairs.size(); i += 2) {
      const Index config = groups->pairs[i + 1];
      // Without a name it is the default group.
      TorchGroup& group = group_named(text_of(pickle, config, "name"), text_of(pickle, config, "desc"));
      const auto* ranks = pickle.find_as<std::string_view>(config, "ranks");
      if (ranks != nullptr) group.ranks = ranks_in(*ranks);
    }
  }

  void add_entry(const Pickle& pickle, Index index) {
    const std::int64_t number = number_of(pickle, index, "collective_seq_id");
    if (number <= 0 || is_true(pickle, index, "is_p2p")) return;
    const auto [name, description] = group_of(pickle, index);
    std::vector<FlightEntry>& entries = group_named(name, description).flight.entries;
    FlightEntry entry = entry_of(pickle, index, static_cast<std::uint64_t>(number));
    // The parts of a coalesced collective have its number, and precede it.
    if (!entries.empty() && entries.back().number == entry.number) entries.pop_back();
    entries.push_back(std::move(entry));
  }

  TorchFlight finish() && {
    for (TorchGroup& group : flight_.groups)
      std::stable_sort(group.flight.entries.begin(), group.flight.entries.end(),
                       [](const FlightEntry& a, const FlightEntry& b) { return a.number < b.number; });
    return std::move(flight_);
  }

 private:
  TorchGroup& group_named(const std::string& name, const std::string& description) {
    const bool is_default = description == kDefaultGroup || (name.empty() && description.empty());
    const std::string key = is_default ? std::string(kDefaultGroup) : name;
    for (TorchGroup& group : flight_.groups) {
      if (group.name == key) return group;
    }
    TorchGroup group{.name = key, .ranks = {}, .flight = {.rank = flight_.rank}};
    if (!is_default)
      group.flight.group = description.empty() || description == "undefined" ? name : description;
    return flight_.groups.emplace_back(std::move(group));
  }

  TorchFlight flight_;
};

// Name and ranks.
using GroupKey = std::pair<std::string, std::vector<int>>;

GroupKey key_of(const TorchGroup& group) { return {group.name, group.ranks}; }

const TorchGroup* find_group(const TorchFlight& flight, const GroupKey& key) {
  const auto found = std::find_if(flight.groups.begin(), flight.groups.end(),
                                  [&](const TorchGroup& group) { return key_of(group) == key; });
  return found == flight.groups.end() ? nullptr : &*found;
}

bool waits_in_other_group(const TorchFlight& flight, const GroupKey& key) {
  return std::any_of(flight.groups.begin(), flight.groups.end(), [&](const TorchGroup& group) {
    const auto& entries = group.flight.entries;
    return key_of(group) != key && std::any_of(entries.begin(), entries.end(),
                                               [](const FlightEntry& entry) { return !entry.has_ended(); });
  });
}

// The first collective in progress, "" without one.
std::string in_progress(std::span<const FlightDump> flights) {
  const FlightEntry* first = nullptr;
  for (const FlightDump& flight : flights) {
    for (const FlightEntry& entry : flight.entries) {
      if (!entry.has_ended() && (first == nullptr || entry.number < first->number)) first = &entry;
    }
  }
  return first == nullptr ? "" : first->describe();
}

// The lines about one group, each with its rank.
std::vector<std::pair<int, std::string>> describe_group(std::span<const TorchFlight> flights,
                                                        const GroupKey& key) {
  std::vector<FlightDump> dumps;
  std::set<int> missing(key.second.begin(), key.second.end());
  for (const TorchFlight& flight : flights) {
    if (const TorchGroup* group = find_group(flight, key)) dumps.push_back(group->flight);
    missing.erase(flight.rank);
  }
  std::vector<std::pair<int, std::string>> lines;
  const std::string waits_in = in_progress(dumps);
  if (!missing.empty() && !waits_in.empty()) {
    const int rank = *missing.begin();
    lines.emplace_back(
        rank, format("rank {} has left no dump of its collectives; its peers wait in {}", rank, waits_in));
  }
  for (std::string& line : describe_desync(dumps)) {
    std::int64_t rank = -1;
    const bool has_rank =
        line.starts_with("rank ") && parse_number(line.substr(5, line.find(' ', 5) - 5), &rank);
    // A rank without a dump may not have reached it.
    if (has_rank || missing.empty()) lines.emplace_back(static_cast<int>(rank), std::move(line));
  }
  return lines;
}

}  // namespace

Result<TorchFlight> parse_torch_flight(std::string_view name, std::span<const std::byte> bytes, int rank) {
  STOKER_ASSIGN_OR_RETURN(pickle, Pickle::parse(name, bytes));
  const auto* entries = pickle.find_as<Pickle::List>(pickle.root(), "entries");
  if (entries == nullptr) return corrupt("{}: not a dump of torch's flight recorder (no entries)", name);
  GroupBuilder builder(rank);
  builder.add_groups(pickle);
  for (const Index entry : entries->items) builder.add_entry(pickle, entry);
  return std::move(builder).finish();
}

Result<TorchFlight> read_torch_flight(const Path& file, int rank) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kMaxBytes));
  return parse_torch_flight(printable(file.string()), std::as_bytes(std::span(text.data(), text.size())),
                            rank);
}

std::vector<std::string> describe_torch_desync(std::span<const TorchFlight> flights) {
  // Groups of different ranks may have the same name.
  std::set<GroupKey> keys;
  for (const TorchFlight& flight : flights) {
    for (const TorchGroup& group : flight.groups) keys.insert(key_of(group));
  }
  // Ranks that lack a collective are the cause of what others wait for in other groups.
  enum Order : std::size_t { kBehind, kWaitingElsewhere, kTogether };
  std::array<std::vector<std::string>, 3> lines;
  for (const GroupKey& key : keys) {
    for (auto& [rank, line] : describe_group(flights, key)) {
      const auto flight = std::find_if(flights.begin(), flights.end(),
                                       [&](const TorchFlight& each) { return each.rank == rank; });
      const bool waits = flight != flights.end() && waits_in_other_group(*flight, key);
      lines[rank < 0 ? kTogether : waits ? kWaitingElsewhere : kBehind].push_back(std::move(line));
    }
  }
  std::vector<std::string> all;
  for (std::vector<std::string>& each : lines)
    all.insert(all.end(), std::make_move_iterator(each.begin()), std::make_move_iterator(each.end()));
  return all;
}

}  // namespace stoker::record
