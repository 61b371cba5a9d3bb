#include "sources/source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <unistd.h>

#include "archive/detect_archive.h"
#include "base/language/counted.h"
#include "sources/files/archive_tree.h"
#include "sources/files/folder_source.h"
#include "sources/files/folder_tree.h"
#include "sources/files/list.h"
#include "sources/files/tree.h"
#include "sources/order_hash.h"
#include "sources/shards/shards.h"
#include "sources/tables/class_names.h"

namespace stoker::sources {

PackSource::PackSource() = default;
PackSource::PackSource(PackSource&&) noexcept = default;
PackSource& PackSource::operator=(PackSource&&) noexcept = default;
PackSource::~PackSource() = default;

std::string_view basename_of(std::string_view name) { return name.substr(0, name.find('.')); }

std::string extension_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string() : to_lower(name.substr(dot + 1));
}

bool is_image_extension(std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  return last == "jpg" || last == "jpeg" || last == "png" || last == "webp";
}

bool is_main_image(std::string_view extension) {
  return is_image_extension(extension) && extension.find('.') == std::string_view::npos;
}

std::string_view non_image_reason(std::string_view extension) {
  constexpr std::array<std::string_view, 14> kOthers = {"gif", "bmp", "tif", "tiff", "avif", "heic", "heif",
                                                        "jxl", "jp2", "svg", "ico",  "ppm",  "pgm",  "psd"};
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  const bool is_other = std::find(kOthers.begin(), kOthers.end(), last) != kOthers.end();
  return is_other ? "not JPEG, PNG or WebP" : "not an image";
}

std::string PackSource::key(const SourceSample& sample) const {
  return child(folders[sample.folder].member, basename_of(file(sample, 0).name));
}

const std::string& PackSource::original_name(const SourceFile& file) const {
  return file.original_name == 0 ? file.name : (*original_names)[file.original_name - 1];
}

std::string PackSource::path_of(const SourceFolder& folder, const SourceFile& file) const {
  return child(folder.path, original_name(file));
}

namespace {

constexpr std::size_t kPathsLimit = std::size_t{8} << 30;

Result<std::string> read_all(int fd, std::string_view subject) {
  std::string text;
  for (;;) {
    char buffer[65536];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(subject, errno);
    if (n == 0) return text;
    if (text.size() > kPathsLimit) return invalid("{}: more than 8 GiB of paths", subject);
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

Path scratch_of(const SourceOptions& options) {
  std::error_code ignored;
  return options.scratch.empty() ? std::filesystem::temp_directory_path(ignored) : options.scratch;
}

// Null if it is no archive.
Result<std::unique_ptr<SourceTree>> open_archive(const SourceOptions& options, Progress& progress) {
  using archive::ArchiveFormat;
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(options.where));
  STOKER_ASSIGN_OR_RETURN(found, archive::detect_archive(file, printable(options.where)));
  if (found == ArchiveFormat::none) return std::unique_ptr<SourceTree>();
  if (found == ArchiveFormat::zip) return zip_tree(options.where, progress);
  return tar_tree(options.where, scratch_of(options), progress);
}

// Table options without a table; `--label cls` is probably a typo for `--labels cls`.
Status no_table_in(const SourceOptions& options) {
  const std::string& label = options.table.label;
  Status status = not_a_table(printable(options.where));
  if (label != "index" && label != "cls" && label != "json") return status;
  return std::move(status).cure("--labels {} writes the labels of all samples as such members", label);
}

Result<PackSource> list_any(const SourceOptions& options, Progress& progress) {
  // Shared by the source's tree and the lister: one limit for all.
  auto rate_limiter = std::make_shared<RateLimiter>(options.metadata_per_s);
  if (options.where == "-") {
    STOKER_ASSIGN_OR_RETURN(text, read_all(options.standard_input, "standard input"));
    STOKER_ASSIGN_OR_RETURN(tree, paths_tree(text, "standard input", rate_limiter, progress));
    return list_by_folders(std::move(tree), options, progress);
  }
  const std::string name = printable(options.where);
  if (!path_exists(options.where)) {
    Status missing = not_found("{}: no such folder, archive or list", name);
    const std::string dvc = options.where + ".dvc";
    return path_exists(dvc) ? std::move(missing).cure("dvc pull {}", shell_quote(dvc)) : missing;
  }
  STOKER_ASSIGN_OR_RETURN(has_shards, is_shard_source(options));
  if (has_shards) {
    SourceOptions with_scratch = options;
    with_scratch.scratch = scratch_of(options);
    return list_from_shards(with_scratch, rate_limiter, progress);
  }
  if (options.table.is_set()) return no_table_in(options);
  if (folder_exists(options.where)) {
    return list_by_folders(folder_tree(options.where, rate_limiter, &progress), options, progress);
  }
  const Path extension = Path(options.where).extension();
  if (extension == ".csv" || extension == ".tsv" || extension == ".parquet")
    return list_from_table(options, rate_limiter, progress);
  STOKER_ASSIGN_OR_RETURN(tree, open_archive(options, progress));
  if (!tree) {
    return invalid("{}: is neither a folder, nor a tar or zip archive, nor a list (.csv, .tsv, .parquet)",
                   name);
  }
  std::string note = tree->note();
  STOKER_ASSIGN_OR_RETURN(source, list_by_folders(std::move(tree), options, progress));
  if (!note.empty()) source.notes.push_back(std::move(note));
  return std::move(source);
}

// Label files are only read while packing.
void note_unlabelled(PackSource& source) {
  if (!source.has_labels() || source.has_label_files) return;
  std::uint64_t samples = 0;
  std::uint64_t unlabelled = 0;
  for (const std::vector<SourceSample>& split : source.samples) {
    samples += split.size();
    for (const SourceSample& sample : split) unlabelled += sample.label < 0 ? 1 : 0;
  }
  if (unlabelled == 0) return;
  source.notes.push_back(
      format("unlabelled: {} of {} (label -1)", grouped(unlabelled), stoker::counted(samples, "sample")));
}

// Divides each class separately, so that each split has its share; the samples depend only on key and seed.
Status split_samples(PackSource& source, const SourceOptions& options) {
  const std::string name = printable(options.where);
  if (source.splits.size() > 1 || source.splits[0] != "all") {
    return invalid("{}: has splits already: {} (--split)", name, join(source.splits, ", "));
  }
  struct Placed {
    std::int32_t label;
    std::uint64_t hash;
    std::uint32_t sample;
    auto operator<=>(const Placed&) const = default;
  };
  const std::vector<SourceSample> all = std::move(source.samples[0]);
  std::vector<Placed> placed;
  placed.reserve(all.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    // A different hash than the order of shards: else a split would be a contiguous part of that order.
    placed.push_back({all[i].label, order_hash(source, all[i], options.seed + 0x73706C6974), i});
  }
  std::sort(placed.begin(), placed.end());
  std::vector<std::uint32_t> split_of(all.size());
  for (std::size_t begin = 0; begin < placed.size();) {
    std::size_t end = begin;
    while (end < placed.size() && placed[end].label == placed[begin].label) ++end;
    double sum = 0;
    std::size_t from = begin;
    for (std::uint32_t split = 0; split < options.splits.size(); ++split) {
      sum += options.splits[split].share;
      const bool is_last = split + 1 == options.splits.size();
      const auto share = static_cast<std::size_t>(sum * static_cast<double>(end - begin) + 0.5);
      const std::size_t to = is_last ? end : std::min(end, begin + share);
      for (; from < to; ++from) split_of[placed[from].sample] = split;
    }
    begin = end;
  }
  source.splits.clear();
  for (const SplitShare& share : options.splits) source.splits.push_back(share.name);
  source.samples.assign(options.splits.size(), {});
  for (std::uint32_t i = 0; i < all.size(); ++i) source.samples[split_of[i]].push_back(all[i]);
  for (std::size_t split = 0; split < source.splits.size(); ++split) {
    if (!source.samples[split].empty()) continue;
    return invalid("{}: split '{}' would get none of {} samples (--split)", name, source.splits[split],
                   all.size());
  }
  return {};
}

}  // namespace

Result<PackSource> list_source(const SourceOptions& options, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(source, list_any(options, progress));
  if (!options.splits.empty()) STOKER_RETURN_IF_ERROR(split_samples(source, options));
  note_unlabelled(source);
  return std::move(source);
}

}  // namespace stoker::sources
