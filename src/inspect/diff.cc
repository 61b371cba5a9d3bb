#include "inspect/diff.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "dataset/shard_source.h"

namespace stoker::inspect {

namespace {

using dataset::IndexSection;
using dataset::OpenDataset;

// A sample's section and number.
struct SamplePosition {
  std::uint32_t section = 0;
  std::uint32_t split = 0;
  std::uint64_t sample = 0;
};
// By split and key: two splits may have the same key.
using Keys = std::unordered_map<std::string, SamplePosition>;

std::string split_and_key(std::string_view split, std::string_view key) {
  std::string full_key(split);
  full_key += '\0';
  full_key += key;
  return full_key;
}

std::string_view key_of(std::string_view full_key) { return full_key.substr(full_key.find('\0') + 1); }

Result<Keys> keys_of(const OpenDataset& dataset, const std::string& name) {
  Keys keys;
  keys.reserve(dataset.index.samples());
  std::uint32_t section = 0;
  for (std::uint32_t split = 0; split < dataset.manifest.splits.size(); ++split) {
    const dataset::SplitInfo& info = dataset.manifest.splits[split];
    for (std::size_t i = 0; i < info.shards.size(); ++i, ++section) {
      const IndexSection& samples = dataset.index.sections()[section];
      if (!samples.has_keys())
        return invalid("{}: its index has no keys, so its samples cannot be compared", name);
      for (std::uint64_t s = 0; s < samples.samples(); ++s) {
        if (keys.emplace(split_and_key(info.name, samples.key(s)), SamplePosition{section, split, s}).second)
          continue;
        return invalid("{}: sample '{}' appears twice", name, printable(samples.key(s)));
      }
    }
  }
  return keys;
}

// A component of a sample by its name; nullopt without one.
std::optional<dataset::Component> find_component(const IndexSection& section, std::uint64_t sample,
                                                 std::string_view name) {
  for (std::uint32_t c = 0; c < section.component_count(sample); ++c) {
    const dataset::Component component = section.component(sample, c);
    if (section.names()[component.name] == name) return component;
  }
  return std::nullopt;
}

// The order of components in a sample follows the format: it is no content.
bool same_content(const IndexSection& a, std::uint64_t i, const IndexSection& b, std::uint64_t j) {
  const std::uint32_t count = a.component_count(i);
  if (count != b.component_count(j)) return false;
  for (std::uint32_t c = 0; c < count; ++c) {
    const dataset::Component one = a.component(i, c);
    const auto two = find_component(b, j, a.names()[one.name]);
    if (!two || one.length != two->length || one.crc32c != two->crc32c) return false;
  }
  return true;
}

std::string label_text(const OpenDataset& dataset, const IndexSection& section, std::uint64_t sample) {
  if (!section.has_labels() || section.label(sample) < 0) return "none";
  const auto label = static_cast<std::size_t>(section.label(sample));
  const std::vector<std::string>& classes = dataset.manifest.schema.classes;
  return label < classes.size() ? classes[label] : std::to_string(label);
}

// "class 'x' added", for each name that only one dataset has.
void compare_names(std::string_view what, const std::set<std::string>& a, const std::set<std::string>& b,
                   std::vector<std::string>& into) {
  for (const std::string& name : a) {
    if (!b.contains(name)) into.push_back(format("{} '{}' removed", what, printable(name)));
  }
  for (const std::string& name : b) {
    if (!a.contains(name)) into.push_back(format("{} '{}' added", what, printable(name)));
  }
}

std::array<std::set<std::string>, 3> names_of(const dataset::Manifest& m) {
  std::array<std::set<std::string>, 3> names;
  names[0].insert(m.schema.classes.begin(), m.schema.classes.end());
  for (const auto& component : m.schema.components) names[1].insert(component.name);
  for (const auto& split : m.splits) names[2].insert(split.name);
  return names;
}

class DatasetComparison {
 public:
  DatasetComparison(const OpenDataset& a, const OpenDataset& b, DatasetDiff& diff)
      : a_(a), b_(b), diff_(diff) {}

  /// Whether every sample has the same position in both datasets. REQUIRES: run().
  bool has_same_places() const { return has_same_places_; }

  // Matches samples within their split first, then the remaining ones across splits.
  std::vector<SampleChange> run(const Keys& in_a, const Keys& in_b) {
    std::unordered_map<std::string_view, SamplePosition> only_b;
    for (const auto& [full_key, to] : in_b) {
      if (!in_a.contains(full_key)) only_b.emplace(key_of(full_key), to);
    }
    for (const auto& [full_key, at] : in_a) {
      const std::string_view key = key_of(full_key);
      if (const auto found = in_b.find(full_key); found != in_b.end()) {
        compare(key, at, found->second);
      } else if (const auto elsewhere = only_b.find(key); elsewhere != only_b.end()) {
        compare(key, at, elsewhere->second);
        only_b.erase(elsewhere);
      } else {
        add(Change::removed, key);
      }
    }
    for (const auto& [key, to] : only_b) add(Change::added, key);
    return std::move(changes_);
  }

 private:
  void add(Change change, std::string_view key, std::string before = {}, std::string after = {}) {
    ++diff_.counts[static_cast<std::size_t>(change)];
    changes_.push_back({change, std::string(key), std::move(before), std::move(after)});
  }

  void compare(std::string_view key, const SamplePosition& at, const SamplePosition& to) {
    has_same_places_ = has_same_places_ && at.section == to.section && at.sample == to.sample;
    const IndexSection& one = a_.index.sections()[at.section];
    const IndexSection& two = b_.index.sections()[to.section];
    const std::string label_a = label_text(a_, one, at.sample);
    const std::string label_b = label_text(b_, two, to.sample);
    const std::string& split_a = a_.manifest.splits[at.split].name;
    const std::string& split_b = b_.manifest.splits[to.split].name;
    const std::size_t before = changes_.size();
    if (!same_content(one, at.sample, two, to.sample)) add(Change::content, key);
    if (label_a != label_b) add(Change::relabelled, key, label_a, label_b);
    if (split_a != split_b) add(Change::moved, key, split_a, split_b);
    if (changes_.size() == before) ++diff_.same;
  }

  const OpenDataset& a_;
  const OpenDataset& b_;
  DatasetDiff& diff_;
  std::vector<SampleChange> changes_;
  bool has_same_places_ = true;
};

bool have_same_shards(const OpenDataset& a, const OpenDataset& b) {
  return a.manifest.schema == b.manifest.schema &&
         std::ranges::equal(a.index.sections(), b.index.sections(), {}, &IndexSection::shard_hash,
                            &IndexSection::shard_hash);
}

}  // namespace

std::string_view to_text(Change change) {
  constexpr std::string_view kNames[] = {"added", "removed", "content", "relabelled", "moved"};
  return kNames[static_cast<std::size_t>(change)];
}

Result<DatasetDiff> diff_datasets(const Path& first, const Path& second) {
  STOKER_ASSIGN_OR_RETURN(a, dataset::open_dataset(first));
  STOKER_ASSIGN_OR_RETURN(b, dataset::open_dataset(second));
  STOKER_ASSIGN_OR_RETURN(in_a, keys_of(a, printable(first.string())));
  STOKER_ASSIGN_OR_RETURN(in_b, keys_of(b, printable(second.string())));
  DatasetDiff diff{.first_version = a.manifest.version, .second_version = b.manifest.version};
  const auto names_a = names_of(a.manifest);
  const auto names_b = names_of(b.manifest);
  constexpr std::string_view kWhat[] = {"class", "component", "split"};
  for (std::size_t i = 0; i < 3; ++i) compare_names(kWhat[i], names_a[i], names_b[i], diff.schema);
  DatasetComparison comparison(a, b, diff);
  std::vector<SampleChange> changes = comparison.run(in_a, in_b);
  std::sort(changes.begin(), changes.end(), [](const SampleChange& x, const SampleChange& y) {
    return x.change != y.change ? x.change < y.change : x.key < y.key;
  });
  std::array<std::size_t, 5> shown{};
  for (SampleChange& change : changes) {
    if (shown[static_cast<std::size_t>(change.change)]++ < DatasetDiff::kMaxShown)
      diff.samples.push_back(std::move(change));
  }
  const bool is_same_order = have_same_shards(a, b) && comparison.has_same_places();
  diff.order_differs = changes.empty() && diff.schema.empty() && !is_same_order;
  return diff;
}

}  // namespace stoker::inspect
