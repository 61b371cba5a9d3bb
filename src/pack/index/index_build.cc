// Writes index.bin first, then manifest.json, each atomically by rename. A crash in between leaves a folder
// without a manifest, which is not a dataset; a rerun writes both.
#include "pack/index/index_build.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/hash.h"
#include "base/language/counted.h"
#include "dataset/side_index.h"
#include "pack/index/index_shards.h"
#include "pack/index/shard_reading.h"
#include "sources/merged_names.h"
#include "sources/shard_scan.h"
#include "sources/source.h"
#include "sources/tables/class_names.h"

namespace stoker::pack {

namespace {

using Shards = std::vector<ScannedShard>;

// Label members are not components: `cls` always, `json` if it is the label of our pack.
bool is_label_member(const sources::ShardSample& sample, const sources::ShardMember& member,
                     bool json_is_label) {
  return sample.members.size() > 1 &&
         (member.extension == "cls" || (json_is_label && member.extension == "json"));
}

std::string section_of(const ScannedShard& work, bool has_labels, bool json_is_label) {
  dataset::SectionBuilder section(has_labels ? dataset::SectionBuilder::Labels::int64
                                             : dataset::SectionBuilder::Labels::none);
  std::size_t at = 0;
  for (std::size_t i = 0; i < work.scan.samples.size(); ++i) {
    const sources::ShardSample& sample = work.scan.samples[i];
    dataset::SampleEntry entry{.key = sample.key, .label = work.labels[i].value_or(-1), .components = {}};
    for (const sources::ShardMember& member : sample.members) {
      const std::uint32_t crc = work.crcs[at++];
      if (has_labels && is_label_member(sample, member, json_is_label)) continue;
      entry.components.push_back({.offset = member.data_offset,
                                  .length = member.bytes,
                                  .crc32c = crc,
                                  .name = section.name(member.extension)});
    }
    section.add(entry);
  }
  if (work.scan.chunks) section.set_chunks(*work.scan.chunks);
  return section.encode(work.scan.bytes, dataset::shard_hash(work.blocks));
}

dataset::ShardInfo info_of(const ScannedShard& work) {
  return {.file = work.entry.file,
          .bytes = work.scan.bytes,
          .samples = work.scan.samples.size(),
          .hash = dataset::shard_hash(work.blocks),
          .blocks = work.blocks};
}

// Combines the tables: class names of text labels, and facts.
Result<std::vector<std::string>> name_classes(Shards& shards, std::optional<sources::TableFacts>& facts) {
  std::vector<sources::ShardScan*> scans;
  for (ScannedShard& shard : shards) {
    scans.push_back(&shard.scan);
    if (shard.scan.table) add_facts(facts, *shard.scan.table);
  }
  STOKER_ASSIGN_OR_RETURN(names, number_classes(scans));
  for (ScannedShard& shard : shards) {
    const bool is_renamed = shard.scan.table || !shard.scan.classes.empty();
    for (std::size_t i = 0; is_renamed && i < shard.labels.size(); ++i)
      shard.labels[i] = shard.scan.samples[i].label;
  }
  return names;
}

// Rebuilds the index of an existing manifest, if the shards match it.
Result<IndexBuild> rebuild(const Path& folder, dataset::Manifest manifest, const IndexOptions& options,
                           Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(named, shards_of_manifest(folder, manifest));
  Shards shards(std::make_move_iterator(named.begin()), std::make_move_iterator(named.end()));
  STOKER_RETURN_IF_ERROR(read_shards(folder, shards, {options, manifest.schema.block_hash}, progress));
  std::optional<sources::TableFacts> facts;
  STOKER_RETURN_IF_ERROR(name_classes(shards, facts).status());
  std::vector<std::string> sections;
  const auto& components = manifest.schema.components;
  const bool has_json = std::any_of(components.begin(), components.end(),
                                    [](const dataset::ComponentInfo& c) { return c.name == "json"; });
  std::size_t i = 0;
  for (const dataset::SplitInfo& split : manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) {
      const ScannedShard& work = shards[i++];
      if (dataset::shard_hash(work.blocks) != shard.hash) {
        return corrupt("{}: does not match the manifest (SHA-256)", printable((folder / shard.file).string()))
            .cure("stoker data verify {} --full", shell_quote(folder.string()));
      }
      sections.push_back(section_of(work, manifest.schema.has_labels, !has_json));
    }
  }
  const std::string index = dataset::encode_index(sections);
  if (sha256(index) != manifest.index_hash) {
    return invalid("{}: the index cannot be rebuilt from the shards: {}", printable(folder.string()),
                   manifest.schema.container == to_text(dataset::ContainerKind::parquet)
                       ? "it was made with options (--where, --columns, --tensor, ...), or has data that is "
                         "not in the shards"
                   : manifest.schema.has_labels
                       ? "it has labels that are not in the shards (packed with --labels index)"
                       : "it was made with a different --window, or has data that is not in the shards")
        .cure("restore {}/index.bin from a copy, or pack again", printable(folder.string()));
  }
  STOKER_RETURN_IF_ERROR(write_file(folder / dataset::kIndexFile, index, Durability::synced));
  return IndexBuild{.manifest = std::move(manifest), .had_manifest = true};
}

struct LabelCount {
  std::uint64_t samples = 0;
  std::uint64_t labelled = 0;
  std::uint64_t unread = 0;  // have a member `cls` that is not a label

  bool is_any() const { return labelled > 0; }
};

LabelCount count_labels(const Shards& shards) {
  LabelCount count;
  for (const ScannedShard& shard : shards) {
    count.samples += shard.labels.size();
    for (std::size_t i = 0; i < shard.labels.size(); ++i) {
      const sources::ShardSample& sample = shard.scan.samples[i];
      if (shard.labels[i]) {
        ++count.labelled;
      } else if (std::ranges::any_of(sample.members, [&](const sources::ShardMember& member) {
                   return is_label_member(sample, member, /*json_is_label=*/false);
                 })) {
        ++count.unread;
      }
    }
  }
  return count;
}

// The hashes of the keys of each split, sorted: eight bytes per sample.
std::map<std::string_view, std::vector<std::size_t>> hashed_keys(const Shards& shards) {
  std::map<std::string_view, std::vector<std::size_t>> splits;
  for (const ScannedShard& shard : shards) {
    std::vector<std::size_t>& hashes = splits[shard.entry.split];
    for (const sources::ShardSample& sample : shard.scan.samples)
      if (!sample.key.empty()) hashes.push_back(std::hash<std::string_view>()(sample.key));
  }
  for (auto& [split, hashes] : splits) std::ranges::sort(hashes);
  return splits;
}

// Keys that several samples of a split have. In a tar, the files of a sample may not be adjacent.
std::string note_on_repeated_keys(const Shards& shards) {
  std::uint64_t repeated = 0;
  std::optional<std::size_t> first;
  for (const auto& [split, hashes] : hashed_keys(shards)) {
    for (auto at = std::ranges::adjacent_find(hashes); at != hashes.end();
         at = std::adjacent_find(at + 1, hashes.end())) {
      if (!first) first = *at;
      ++repeated;
    }
  }
  if (!first) return {};
  std::string key;
  for (const ScannedShard& shard : shards) {
    const auto found = std::ranges::find_if(shard.scan.samples, [&](const sources::ShardSample& sample) {
      return std::hash<std::string_view>()(sample.key) == *first;
    });
    if (found != shard.scan.samples.end()) key = printable(found->key);
  }
  const bool is_tar = sources::kind_of_shard(shards[0].entry.file) == dataset::ContainerKind::tar;
  return format("repeated keys: {} with the key of an earlier sample, such as '{}'{}",
                stoker::counted(repeated, "sample"), key,
                is_tar ? " (the files of one sample must be adjacent in a tar)" : "");
}

// Names that merge images.
std::string note_on_merged_names(const Shards& shards) {
  sources::MergedNames merged;
  std::vector<std::string_view> extensions;
  for (const ScannedShard& shard : shards) {
    for (const sources::ShardSample& sample : shard.scan.samples) {
      extensions.clear();
      for (const sources::ShardMember& member : sample.members) extensions.push_back(member.extension);
      merged.add(sample.key, extensions);
    }
  }
  return merged.note();
}

// Skipped fields and missing labels, each once.
std::vector<std::string> notes_on(const Shards& shards, const LabelCount& labels) {
  sources::SkippedFields skipped_fields;
  std::map<std::string, std::uint64_t> skipped_members;
  std::set<std::string> left_out;
  for (const ScannedShard& shard : shards) {
    for (const auto& [name, samples] : shard.scan.skipped_fields) skipped_fields[printable(name)] += samples;
    for (const auto& [why, members] : shard.scan.skipped_members) skipped_members[why] += members;
    left_out.insert(shard.scan.copy_only.begin(), shard.scan.copy_only.end());
  }
  if (labels.is_any() && labels.unread > 0)
    skipped_fields["cls members that are not natural numbers"] = labels.unread;
  std::vector<std::string> notes;
  std::uint64_t json_labels = 0;
  for (const ScannedShard& shard : shards) json_labels += shard.unread_json_labels;
  for (std::string note : {note_on_merged_names(shards), note_on_repeated_keys(shards)})
    if (!note.empty()) notes.push_back(std::move(note));
  if (json_labels > 0)
    notes.push_back(format("skipped: the label in {}, which is not an integer",
                           stoker::counted(json_labels, "json member")));
  if (!labels.is_any() && labels.unread > 0)
    notes.push_back(format("no labels: the cls members of {} are not natural numbers",
                           stoker::counted(labels.unread, "sample")));
  for (const auto& [name, samples] : skipped_fields)
    notes.push_back(format("skipped: {} ({})", name, stoker::counted(samples, "sample")));
  for (const auto& [why, members] : skipped_members)
    notes.push_back(format("skipped: {} ({})", stoker::counted(members, "member"), why));
  if (labels.is_any() && labels.labelled < labels.samples)
    notes.push_back(format("unlabelled: {} of {} (label -1)", grouped(labels.samples - labels.labelled),
                           stoker::counted(labels.samples, "sample")));
  for (const std::string& what : left_out)
    notes.push_back(
        format("{} is left out: it cannot be read in place (`stoker data convert` includes it if the "
               "folder has no {} and {})",
               what, dataset::kManifestFile, dataset::kIndexFile));
  return notes;
}

// Compares MDS shards with their index.json.
Status check_listed_samples(const Path& folder, const Shards& shards) {
  for (const ScannedShard& shard : shards) {
    if (!shard.entry.listed_samples || *shard.entry.listed_samples == shard.scan.samples.size()) continue;
    return corrupt("{}: has {}, index.json lists {}", printable((folder / shard.entry.file).string()),
                   stoker::counted(shard.scan.samples.size(), "sample"), *shard.entry.listed_samples);
  }
  return {};
}

// A file whose rows are part of a different shard (HDF5's virtual datasets) is not a shard itself.
void remove_part_files(Shards& shards) {
  std::set<std::string> parts;
  for (const ScannedShard& shard : shards) {
    if (!shard.scan.chunks || !sources::is_hdf5(shard.entry.file)) continue;
    for (const codec::ShardPart& part : shard.scan.chunks->parts()) {
      if (part.file != shard.entry.file) parts.insert(part.file);
    }
  }
  std::erase_if(shards, [&](const ScannedShard& shard) { return parts.contains(shard.entry.file); });
}

// The manifest without the index, which is built from `sections`.
dataset::Manifest describe(const Shards& shards, std::vector<std::string> classes, bool has_labels,
                           std::vector<std::string>& sections) {
  dataset::Manifest manifest;
  std::set<std::string> components;
  std::map<std::string, std::vector<const ScannedShard*>> splits;
  for (const ScannedShard& shard : shards) splits[shard.entry.split].push_back(&shard);
  for (const auto& [name, works] : splits) {
    dataset::SplitInfo& split = manifest.splits.emplace_back();
    split.name = name;
    split.class_samples.resize(classes.size());
    for (const ScannedShard* work : works) {
      split.shards.push_back(info_of(*work));
      split.samples += split.shards.back().samples;
      sections.push_back(section_of(*work, has_labels, /*json_is_label=*/false));
      for (const auto& label : work->labels)
        if (!classes.empty() && label) ++split.class_samples[static_cast<std::size_t>(*label)];
      for (const sources::ShardSample& sample : work->scan.samples) {
        for (const sources::ShardMember& member : sample.members) {
          if (!has_labels || !is_label_member(sample, member, false)) components.insert(member.extension);
        }
      }
    }
  }
  manifest.schema.container = to_text(sources::kind_of_shard(shards[0].entry.file));
  manifest.schema.has_labels = has_labels;
  manifest.schema.classes = std::move(classes);
  for (const std::string& name : components)
    manifest.schema.components.push_back({.name = name, .is_image = sources::is_image_extension(name)});
  return manifest;
}

// Whether options or file names affect the samples, in addition to the shards.
bool is_chosen(const Shards& shards, const IndexOptions& options) {
  return options.windows || options.table.is_set() ||
         std::ranges::any_of(shards, [](const ScannedShard& shard) {
           return shard.entry.rows.has_value() || !shard.entry.table.columns.empty();
         });
}

Status write_dataset(const Path& folder, const std::string& index, dataset::Manifest& manifest,
                     bool has_content) {
  STOKER_RETURN_IF_ERROR(dataset::check_names(manifest, printable(folder.string())));
  dataset::describe_index(index, manifest);
  if (has_content) {
    STOKER_ASSIGN_OR_RETURN(parsed,
                            dataset::SideIndex::parse(std::as_bytes(std::span(index)), dataset::kIndexFile));
    manifest.content = dataset::content_digest(parsed.sections());
  }
  manifest.version = dataset::dataset_version(manifest);
  STOKER_RETURN_IF_ERROR(write_file(folder / dataset::kIndexFile, index, Durability::synced));
  return write_file(folder / dataset::kManifestFile, dataset::to_json(manifest), Durability::synced);
}

}  // namespace

Result<IndexBuild> build_index(const Path& folder, const IndexOptions& options, Progress& progress) {
  if (path_exists(folder / dataset::kManifestFile)) {
    STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(folder));
    return rebuild(folder, std::move(manifest), options, progress);
  }
  if (path_exists(folder / dataset::kPendingFolder)) return dataset::read_manifest(folder).status();
  STOKER_ASSIGN_OR_RETURN(
      found, find_shards(folder, options.table.where, options.windows ? &*options.windows : nullptr));
  Shards shards(std::make_move_iterator(found.shards.begin()), std::make_move_iterator(found.shards.end()));
  STOKER_RETURN_IF_ERROR(read_shards(folder, shards, {options}, progress));
  STOKER_RETURN_IF_ERROR(check_listed_samples(folder, shards));
  remove_part_files(shards);
  IndexBuild built;
  STOKER_ASSIGN_OR_RETURN(classes, name_classes(shards, built.table));
  if (found.pruned > 0) add_facts(built.table, {.files_pruned = found.pruned});
  std::erase_if(shards, [](const ScannedShard& shard) { return shard.scan.samples.empty(); });
  if (shards.empty() && built.table) return no_rows_selected(printable(folder.string()), *built.table);
  if (shards.empty()) return invalid("{}: its shards have no samples", printable(folder.string()));
  const LabelCount labels = count_labels(shards);
  const bool has_labels = labels.is_any() || !classes.empty();
  built.notes = notes_on(shards, labels);
  built.notes.insert(built.notes.end(), found.notes.begin(), found.notes.end());
  std::vector<std::string> sections;
  built.manifest = describe(shards, std::move(classes), has_labels, sections);
  const bool has_content =
      is_chosen(shards, options) || dataset::stores_labels_in_index(built.manifest.schema);
  STOKER_RETURN_IF_ERROR(write_dataset(folder, dataset::encode_index(sections), built.manifest, has_content));
  return built;
}

}  // namespace stoker::pack
