#include "data/look/diff.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "format/shard_source.h"

namespace stoker::data {

namespace {

using formats::IndexSection;
using formats::OpenDataset;

// Where a sample lies: section and number in it.
struct Place {
  std::uint32_t section = 0;
  std::uint32_t split = 0;
  std::uint64_t sample = 0;
};
// By split and key: the same key may stand in two splits.
using Keys = std::unordered_map<std::string, Place>;

std::string in_split(std::string_view split, std::string_view key) {
  std::string both(split);
  both += '\0';
  both += key;
  return both;
}

std::string_view key_of(std::string_view both) { return both.substr(both.find('\0') + 1); }

Result<Keys> keys_of(const OpenDataset& dataset, const std::string& name) {
  Keys keys;
  keys.reserve(dataset.index.samples());
  std::uint32_t section = 0;
  for (std::uint32_t split = 0; split < dataset.manifest.splits.size(); ++split) {
    const formats::SplitInfo& info = dataset.manifest.splits[split];
    for (std::size_t i = 0; i < info.shards.size(); ++i, ++section) {
      const IndexSection& samples = dataset.index.sections()[section];
      if (!samples.has_keys()) return invalid("{}: its index has no keys to compare by", name);
      for (std::uint64_t s = 0; s < samples.samples(); ++s) {
        if (keys.emplace(in_split(info.name, samples.key(s)), Place{section, split, s}).second) continue;
        return invalid("{}: sample '{}' is there twice", name, printable(samples.key(s)));
      }
    }
  }
  return keys;
}

bool same_content(const IndexSection& a, std::uint64_t i, const IndexSection& b, std::uint64_t j) {
  const std::uint32_t count = a.component_count(i);
  if (count != b.component_count(j)) return false;
  for (std::uint32_t c = 0; c < count; ++c) {
    const formats::Component one = a.component(i, c);
    const formats::Component two = b.component(j, c);
    if (one.length != two.length || one.crc32c != two.crc32c || a.names()[one.name] != b.names()[two.name])
      return false;
  }
  return true;
}

std::string label_text(const OpenDataset& dataset, const IndexSection& section, std::uint64_t sample) {
  if (!section.has_labels() || section.label(sample) < 0) return "none";
  const auto label = static_cast<std::size_t>(section.label(sample));
  const std::vector<std::string>& classes = dataset.manifest.schema.classes;
  return label < classes.size() ? classes[label] : std::to_string(label);
}

// "class 'x' added", for each name that only one of them has.
void compare_names(std::string_view what, const std::set<std::string>& a, const std::set<std::string>& b,
                   std::vector<std::string>& into) {
  for (const std::string& name : a) {
    if (!b.contains(name)) into.push_back(format("{} '{}' removed", what, printable(name)));
  }
  for (const std::string& name : b) {
    if (!a.contains(name)) into.push_back(format("{} '{}' added", what, printable(name)));
  }
}

std::array<std::set<std::string>, 3> names_of(const formats::Manifest& m) {
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

  /// Whether each of the samples has its twin at the same place, after run().
  bool has_same_places() const { return has_same_places_; }

  // Samples are matched in their split first; what is left over then, across splits.
  std::vector<SampleChange> run(const Keys& in_a, const Keys& in_b) {
    std::unordered_map<std::string_view, Place> only_b;
    for (const auto& [both, to] : in_b) {
      if (!in_a.contains(both)) only_b.emplace(key_of(both), to);
    }
    for (const auto& [both, at] : in_a) {
      const std::string_view key = key_of(both);
      if (const auto found = in_b.find(both); found != in_b.end()) {
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

  void compare(std::string_view key, const Place& at, const Place& to) {
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
  OK_OR_RETURN(a, formats::open_dataset(first));
  OK_OR_RETURN(b, formats::open_dataset(second));
  OK_OR_RETURN(in_a, keys_of(a, printable(first.string())));
  OK_OR_RETURN(in_b, keys_of(b, printable(second.string())));
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
    if (shown[static_cast<std::size_t>(change.change)]++ < DatasetDiff::kMostShown)
      diff.samples.push_back(std::move(change));
  }
  const bool is_same_order = have_same_shards(a, b) && comparison.has_same_places();
  diff.order_differs = changes.empty() && diff.schema.empty() && !is_same_order;
  return diff;
}

}  // namespace stoker::data
