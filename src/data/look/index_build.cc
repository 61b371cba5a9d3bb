// What is written: index.bin first, then manifest.json, each whole by rename. A crash between the two leaves
// a folder without a manifest, which is no dataset, and a rerun makes both.
#include "data/look/index_build.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/hash.h"
#include "base/language/counted.h"
#include "data/look/index/shard_reading.h"
#include "data/look/index_shards.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/class_names.h"
#include "data/pack/source.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

using Shards = std::vector<ShardInIndex>;

// Which members are labels and no components: `cls` always, `json` where our pack put the label.
bool is_label_member(const ShardSample& sample, const ShardMember& member, bool json_is_label) {
  return sample.members.size() > 1 &&
         (member.extension == "cls" || (json_is_label && member.extension == "json"));
}

std::string section_of(const ShardInIndex& work, bool has_labels, bool json_is_label) {
  formats::SectionBuilder section(has_labels ? formats::SectionBuilder::Labels::int64
                                             : formats::SectionBuilder::Labels::none);
  std::size_t at = 0;
  for (std::size_t i = 0; i < work.scan.samples.size(); ++i) {
    const ShardSample& sample = work.scan.samples[i];
    formats::SampleEntry entry{.key = sample.key, .label = work.labels[i].value_or(-1), .components = {}};
    for (const ShardMember& member : sample.members) {
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
  return section.encode(work.scan.bytes, formats::shard_hash(work.blocks));
}

formats::ShardInfo info_of(const ShardInIndex& work) {
  return {.file = work.is.file,
          .bytes = work.scan.bytes,
          .samples = work.scan.samples.size(),
          .hash = formats::shard_hash(work.blocks),
          .blocks = work.blocks};
}

// What is told of all tables together: classes of labels that are texts, and what was read.
Result<std::vector<std::string>> name_classes(Shards& shards, std::optional<TableFacts>& facts) {
  std::vector<ShardScan*> scans;
  for (ShardInIndex& shard : shards) {
    scans.push_back(&shard.scan);
    if (shard.scan.table) add_to(facts, *shard.scan.table);
  }
  OK_OR_RETURN(names, number_classes(scans));
  for (ShardInIndex& shard : shards) {
    const bool is_renamed = shard.scan.table || !shard.scan.classes.empty();
    for (std::size_t i = 0; is_renamed && i < shard.labels.size(); ++i)
      shard.labels[i] = shard.scan.samples[i].label;
  }
  return names;
}

// The index of a manifest that is there, if the shards are its own.
Result<IndexBuild> rebuild(const Path& folder, formats::Manifest manifest, const IndexOptions& options,
                           Progress& progress) {
  OK_OR_RETURN(named, shards_of_manifest(folder, manifest));
  Shards shards(std::make_move_iterator(named.begin()), std::make_move_iterator(named.end()));
  RETURN_IF_ERROR(read_shards(folder, shards, {options, manifest.schema.block_hash}, progress));
  std::optional<TableFacts> facts;
  RETURN_IF_ERROR(name_classes(shards, facts).status());
  std::vector<std::string> sections;
  const auto& components = manifest.schema.components;
  const bool has_json = std::any_of(components.begin(), components.end(),
                                    [](const formats::ComponentInfo& c) { return c.name == "json"; });
  std::size_t i = 0;
  for (const formats::SplitInfo& split : manifest.splits) {
    for (const formats::ShardInfo& shard : split.shards) {
      const ShardInIndex& work = shards[i++];
      if (formats::shard_hash(work.blocks) != shard.hash) {
        return corrupt("{}: is not the shard that the manifest names (SHA-256)",
                       printable((folder / shard.file).string()))
            .cure("stoker data verify {} --full", shell_quote(folder.string()));
      }
      sections.push_back(section_of(work, manifest.schema.has_labels, !has_json));
    }
  }
  const std::string index = formats::encode_index(sections);
  if (sha256(index) != manifest.index_hash) {
    return invalid("{}: the index cannot be made from the shards: {}", printable(folder.string()),
                   manifest.schema.container == to_text(ContainerKind::parquet)
                       ? "it held what is in no shard, or other rows or columns (--where, --columns, "
                         "--tensor, ...)"
                   : manifest.schema.has_labels
                       ? "it held labels that are in no shard (packed with --labels index)"
                       : "it held what is in no shard, or other windows (--window)")
        .cure("a copy of {}/index.bin, or pack again", printable(folder.string()));
  }
  RETURN_IF_ERROR(write_file(folder / formats::kIndexFile, index, Durability::synced));
  return IndexBuild{.manifest = std::move(manifest), .had_manifest = true};
}

struct LabelCount {
  std::uint64_t samples = 0;
  std::uint64_t labelled = 0;
  std::uint64_t unread = 0;  // have a member `cls` that is no label

  bool is_any() const { return labelled > 0; }
};

LabelCount count_labels(const Shards& shards) {
  LabelCount count;
  for (const ShardInIndex& shard : shards) {
    count.samples += shard.labels.size();
    for (std::size_t i = 0; i < shard.labels.size(); ++i) {
      const ShardSample& sample = shard.scan.samples[i];
      if (shard.labels[i]) {
        ++count.labelled;
      } else if (std::ranges::any_of(sample.members, [&](const ShardMember& member) {
                   return is_label_member(sample, member, /*json_is_label=*/false);
                 })) {
        ++count.unread;
      }
    }
  }
  return count;
}

// What no sample has, and why; each thing once.
std::vector<std::string> notes_on(const Shards& shards, const LabelCount& labels) {
  NotTaken not_taken;
  std::set<std::string> left_out;
  for (const ShardInIndex& shard : shards) {
    for (const auto& [name, samples] : shard.scan.not_taken) not_taken[printable(name)] += samples;
    left_out.insert(shard.scan.only_in_copies.begin(), shard.scan.only_in_copies.end());
  }
  if (labels.is_any() && labels.unread > 0) not_taken["cls that is no natural number"] = labels.unread;
  std::vector<std::string> notes;
  for (const auto& [name, samples] : not_taken)
    notes.push_back(format("not carried: {} ({})", name, stoker::counted(samples, "sample")));
  if (labels.is_any() && labels.labelled < labels.samples)
    notes.push_back(format("no label: {} of {}, which have -1", grouped(labels.samples - labels.labelled),
                           stoker::counted(labels.samples, "sample")));
  for (const std::string& what : left_out)
    notes.push_back(
        format("{} is left out: it cannot be read where it lies (stoker data convert takes it)", what));
  return notes;
}

// A file whose rows another shard shows (HDF5's virtual datasets) is part of that one.
void leave_out_parts(Shards& shards) {
  std::set<std::string> parts;
  for (const ShardInIndex& shard : shards) {
    if (!shard.scan.chunks || !is_hdf5(shard.is.file)) continue;
    for (const formats::ShardPart& part : shard.scan.chunks->parts()) {
      if (part.file != shard.is.file) parts.insert(part.file);
    }
  }
  std::erase_if(shards, [&](const ShardInIndex& shard) { return parts.contains(shard.is.file); });
}

// The manifest but for its index, which is made of `sections`.
formats::Manifest describe(const Shards& shards, std::vector<std::string> classes, bool has_labels,
                           std::vector<std::string>& sections) {
  formats::Manifest manifest;
  std::set<std::string> components;
  std::map<std::string, std::vector<const ShardInIndex*>> splits;
  for (const ShardInIndex& shard : shards) splits[shard.is.split].push_back(&shard);
  for (const auto& [name, works] : splits) {
    formats::SplitInfo& split = manifest.splits.emplace_back();
    split.name = name;
    split.class_samples.resize(classes.size());
    for (const ShardInIndex* work : works) {
      split.shards.push_back(info_of(*work));
      split.samples += split.shards.back().samples;
      sections.push_back(section_of(*work, has_labels, /*json_is_label=*/false));
      for (const auto& label : work->labels)
        if (!classes.empty() && label) ++split.class_samples[static_cast<std::size_t>(*label)];
      for (const ShardSample& sample : work->scan.samples) {
        for (const ShardMember& member : sample.members) {
          if (!has_labels || !is_label_member(sample, member, false)) components.insert(member.extension);
        }
      }
    }
  }
  manifest.schema.container = to_text(kind_of_shard(shards[0].is.file));
  manifest.schema.has_labels = has_labels;
  manifest.schema.classes = std::move(classes);
  for (const std::string& name : components)
    manifest.schema.components.push_back({.name = name, .is_image = is_image_extension(name)});
  return manifest;
}

// Whether options or the names of files and folders decide what samples there are, and not the shards alone.
bool is_chosen(const Shards& shards, const IndexOptions& options) {
  return options.windows || options.table.is_set() ||
         std::ranges::any_of(shards, [](const ShardInIndex& shard) {
           return shard.is.rows.has_value() || !shard.is.table.columns.empty();
         });
}

Status write_dataset(const Path& folder, const std::string& index, formats::Manifest& manifest,
                     bool has_content) {
  manifest.index_bytes = index.size();
  manifest.index_hash = sha256(index);
  if (has_content) {
    OK_OR_RETURN(parsed, formats::SideIndex::parse(std::as_bytes(std::span(index)), formats::kIndexFile));
    manifest.content = formats::content_of(parsed.sections());
  }
  manifest.version = formats::dataset_version(manifest);
  RETURN_IF_ERROR(write_file(folder / formats::kIndexFile, index, Durability::synced));
  return write_file(folder / formats::kManifestFile, formats::to_json(manifest), Durability::synced);
}

}  // namespace

Result<IndexBuild> build_index(const Path& folder, const IndexOptions& options, Progress& progress) {
  if (path_exists(folder / formats::kManifestFile)) {
    OK_OR_RETURN(manifest, formats::read_manifest(folder));
    return rebuild(folder, std::move(manifest), options, progress);
  }
  if (path_exists(folder / formats::kPendingFolder)) return formats::read_manifest(folder).status();
  OK_OR_RETURN(found,
               find_shards(folder, options.table.where, options.windows ? &*options.windows : nullptr));
  Shards shards(std::make_move_iterator(found.shards.begin()), std::make_move_iterator(found.shards.end()));
  RETURN_IF_ERROR(read_shards(folder, shards, {options}, progress));
  leave_out_parts(shards);
  IndexBuild built;
  OK_OR_RETURN(classes, name_classes(shards, built.table));
  if (found.passed_over > 0) add_to(built.table, {.files_passed_over = found.passed_over});
  std::erase_if(shards, [](const ShardInIndex& shard) { return shard.scan.samples.empty(); });
  if (shards.empty() && built.table) return nothing_chosen(printable(folder.string()), *built.table);
  if (shards.empty()) return invalid("{}: no samples in its shards", printable(folder.string()));
  const LabelCount labels = count_labels(shards);
  const bool has_labels = labels.is_any() || !classes.empty();
  built.notes = notes_on(shards, labels);
  std::vector<std::string> sections;
  built.manifest = describe(shards, std::move(classes), has_labels, sections);
  const bool has_content =
      is_chosen(shards, options) || formats::leaves_labels_to_index(built.manifest.schema);
  RETURN_IF_ERROR(write_dataset(folder, formats::encode_index(sections), built.manifest, has_content));
  return built;
}

}  // namespace stoker::data
