#include "sources/arrays/npy_sets.h"

#include <algorithm>
#include <map>
#include <utility>

#include "archive/zip.h"
#include "base/encode.h"
#include "sources/shard_scan.h"
#include "sources/split_name.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

constexpr std::string_view kSeparators = "-_.";
constexpr std::string_view kEnding = ".npy";  // .npz has the same length

// The parts of a file name: "X_train-0" is array X of split train, shard 0.
struct Name {
  std::string split;
  std::string number;
  std::string variable;
};

bool is_split(std::string_view word) {
  constexpr std::string_view kSplits[] = {"train", "training", "val", "valid", "validation", "test", "dev"};
  return std::find(std::begin(kSplits), std::end(kSplits), word) != std::end(kSplits);
}

// Removes the number from the end: "train-0", "000".
std::string take_number(std::string_view* stem) {
  const std::size_t last = stem->find_last_not_of("0123456789");
  const std::size_t begin = last == std::string_view::npos ? 0 : last + 1;
  const bool stands_apart = begin == 0 || kSeparators.find((*stem)[begin - 1]) != std::string_view::npos;
  if (begin == stem->size() || !stands_apart) return {};
  std::string number(stem->substr(begin));
  *stem = stem->substr(0, begin == 0 ? 0 : begin - 1);
  return number;
}

Name name_of(std::string_view stem) {
  Name name;
  const std::string first = to_lower(stem.substr(0, stem.find_first_of(kSeparators)));
  const std::string last = to_lower(stem.substr(stem.find_last_of(kSeparators) + 1));  // npos + 1 is 0
  if (is_split(first)) {
    name.split = first;
    stem.remove_prefix(std::min(stem.size(), first.size() + 1));
  } else if (is_split(last)) {
    name.split = last;
    stem.remove_suffix(last.size() + 1);
  }
  name.variable = stem.empty() ? "data" : stem;
  return name;
}

std::string_view stem_of(std::string_view file) { return file.substr(0, file.size() - kEnding.size()); }

void sort_arrays(arrays::NpySet& set) {
  std::sort(set.arrays.begin(), set.arrays.end(),
            [](const arrays::NpySet::Array& a, const arrays::NpySet::Array& b) { return a.name < b.name; });
}

// Numbers mean shards if all files have one: "features_512.npy" next to "labels.npy" has none.
Result<std::vector<arrays::NpySet>> sets_of_files(const std::vector<std::string>& files) {
  const bool have_numbers = std::all_of(files.begin(), files.end(), [](const std::string& file) {
    std::string_view stem = stem_of(file);
    return !take_number(&stem).empty();
  });
  std::map<std::pair<std::string, std::string>, arrays::NpySet> sets;
  for (const std::string& file : files) {
    std::string_view stem = stem_of(file);
    std::string number;
    if (have_numbers) number = take_number(&stem);
    Name name = name_of(stem);
    arrays::NpySet& set = sets[{name.split, number}];
    if (set.arrays.empty()) {
      set.file = file;
      set.stem = printable(file);
      set.split = name.split.empty() ? "all" : name.split;
    }
    const auto same = std::ranges::find(set.arrays, name.variable, &arrays::NpySet::Array::name);
    if (same != set.arrays.end())
      return invalid("{} and {}: are both array '{}' of one shard", printable(same->file), printable(file),
                     printable(name.variable));
    set.arrays.push_back({.name = std::move(name.variable), .file = file, .member = {}});
  }
  std::vector<arrays::NpySet> found;
  for (auto& [key, set] : sets) {
    sort_arrays(set);
    found.push_back(std::move(set));
  }
  return found;
}

Result<std::vector<arrays::NpySet>> sets_of_archive(const Path& folder, const std::string& file) {
  const std::string subject = printable((folder / file).string());
  STOKER_ASSIGN_OR_RETURN(archive, archive::open_zip_file(folder / file));
  std::vector<std::string> members;
  for (const archive::ZipMember& member : archive.zip.members()) {
    if (!member.name.ends_with(kEnding) || member.name.size() == kEnding.size()) continue;
    if (!member.unsafe.empty() || !is_utf8(member.name))
      return invalid("{}: member '{}': {}", subject, printable(member.name.substr(0, 80)),
                     member.unsafe.empty() ? "is not UTF-8" : member.unsafe);
    members.push_back(member.name);
  }
  if (members.empty()) return invalid("{}: has no arrays (members *.npy)", subject);
  std::sort(members.begin(), members.end());
  if (const auto twice = std::adjacent_find(members.begin(), members.end()); twice != members.end())
    return invalid("{}: has two members '{}'", subject, printable(*twice));
  const bool have_splits = std::ranges::all_of(
      members, [](const std::string& member) { return !name_of(stem_of(member)).split.empty(); });
  std::map<std::string, arrays::NpySet> sets;
  for (const std::string& member : members) {
    Name name;
    if (have_splits) name = name_of(stem_of(member));
    arrays::NpySet& set = sets[name.split];
    set.arrays.push_back(
        {.name = have_splits ? name.variable : std::string(stem_of(member)), .file = file, .member = member});
  }
  std::vector<arrays::NpySet> found;
  for (auto& [split, set] : sets) {
    set.file = file;
    set.split = have_splits ? split : split_of_shard(file);
    set.stem = sets.size() > 1 ? format("{}/{}", printable(file), split) : printable(file);
    sort_arrays(set);
    found.push_back(std::move(set));
  }
  return found;
}

// All shards must have the same arrays.
Status check_arrays(const std::vector<arrays::NpySet>& sets, const std::string& folder) {
  for (const arrays::NpySet& set : sets) {
    for (const auto& [has, lacks] : {std::pair(&sets[0], &set), std::pair(&set, &sets[0])}) {
      for (const arrays::NpySet::Array& array : has->arrays) {
        const auto same = std::ranges::find(lacks->arrays, array.name, &arrays::NpySet::Array::name);
        if (same != lacks->arrays.end()) continue;
        return invalid("{}: array '{}' of {} is missing in {} (all shards need the same arrays)", folder,
                       printable(array.name), printable(array.member.empty() ? array.file : has->stem),
                       printable(lacks->stem));
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<arrays::NpySet>> npy_sets(const Path& folder, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  std::vector<std::string> archives;
  for (const std::string& name : names) {
    if (name.starts_with('.') || name.size() == kEnding.size()) continue;
    if (is_npy(name)) files.push_back(name);
    if (is_npz(name)) archives.push_back(name);
  }
  std::sort(files.begin(), files.end());
  std::sort(archives.begin(), archives.end());
  const std::string subject = printable(folder.string());
  if (!files.empty() && !archives.empty()) {
    return invalid("{}: has shards of two formats: {} and {}", subject, printable(files[0]),
                   printable(archives[0]));
  }
  std::vector<arrays::NpySet> sets;
  if (!files.empty()) {
    STOKER_ASSIGN_OR_RETURN(found, sets_of_files(files));
    sets = std::move(found);
  }
  for (const std::string& archive : archives) {
    STOKER_ASSIGN_OR_RETURN(found, sets_of_archive(folder, archive));
    std::move(found.begin(), found.end(), std::back_inserter(sets));
  }
  STOKER_RETURN_IF_ERROR(check_arrays(sets, subject));
  return sets;
}

Result<std::vector<arrays::NpySet>> npy_shards(const Path& folder, const std::vector<std::string>& files) {
  STOKER_ASSIGN_OR_RETURN(sets, npy_sets(folder, files));
  const auto same =
      std::adjacent_find(sets.begin(), sets.end(),
                         [](const arrays::NpySet& a, const arrays::NpySet& b) { return a.file == b.file; });
  if (same == sets.end()) return std::move(sets);
  return invalid("{}: holds several splits: {}, {}", printable((folder / same->file).string()), same->split,
                 (same + 1)->split)
      .cure("stoker data convert {} OUT", shell_quote((folder / same->file).string()));
}

}  // namespace stoker::sources
