// The source of a pack: splits, classes, samples, and files left out by name. Comes from a folder, a list of
// paths, paths on standard input, a tar or zip archive, or from shards, which are read in place. Listing
// reads no file contents. Plain values except the tree, whose reads are thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "sources/rate_limiter.h"
#include "sources/table_options.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::sources {

enum class SourceLayout {
  images,  ///< a sample is an image and the files that share its basename
  files,   ///< every basename is a sample, with or without images
};

/// One file of the source.
struct SourceFile {
  std::string name;  ///< packed name, without folder
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::uint64_t place = 0;          ///< number of the archive member; 0 in a folder
  std::uint32_t original_name = 0;  ///< 1 + index in PackSource::original_names; 0: not renamed
};

/// A folder with files of samples.
struct SourceFolder {
  std::string path;    ///< from the source's root: "train/cat/a"
  std::string member;  ///< in the archive: "cat/a"; empty at a split's root
  std::uint32_t split = 0;
  std::int64_t label = -1;
  std::vector<SourceFile> files;  ///< sorted by name, except for lists
};

/// Consecutive files of one folder that share a basename.
struct SourceSample {
  std::uint32_t folder = 0;
  std::uint32_t first = 0;
  std::uint32_t files = 0;
  std::int32_t label = -1;
};

/// A file that is not packed, and the reason.
struct LeftOut {
  std::string path;    ///< from the source's root
  std::string reason;  ///< one of few: "not an image", "truncated", ...
  std::string detail;  ///< details; may be empty

  auto operator<=>(const LeftOut&) const = default;
};

/// Left out on purpose: not counted.
constexpr std::string_view kHidden = "hidden";
/// Left out because the dots in names make the sample ambiguous.
constexpr std::string_view kAmbiguous = "ambiguous name";

class SourceTree;

struct PackSource {
  PackSource();
  PackSource(PackSource&&) noexcept;
  PackSource& operator=(PackSource&&) noexcept;
  ~PackSource();

  std::unique_ptr<SourceTree> tree;  ///< reads the files
  std::vector<std::string> splits;
  /// Index = label. Sorted; numbers of a list by value.
  std::vector<std::string> classes;
  std::vector<SourceFolder> folders;
  std::vector<std::vector<SourceSample>> samples;  ///< per split, by folder and name
  std::vector<LeftOut> left_out;
  /// Original names of renamed files. Shared with the tree.
  std::shared_ptr<const std::vector<std::string>> original_names;
  /// Unexpected interpretations of the source, one sentence each.
  std::vector<std::string> notes;
  /// Fields of shards that become no file, label or key, with the number of samples.
  std::map<std::string, std::uint64_t> skipped_fields;
  std::optional<TableFacts> table;      ///< of tables with selected rows or columns
  bool has_selectable_columns = false;  ///< options could select the skipped columns
  std::uint64_t files = 0;              ///< except hidden ones
  std::uint64_t bytes = 0;
  bool has_label_files = false;    ///< labels come from files "<basename>.cls"
  bool has_number_labels = false;  ///< labels without names, from a list
  bool declares_classes = false;   ///< classes come with the labels' names: one may have no sample

  bool has_labels() const { return has_label_files || has_number_labels || !classes.empty(); }
  const SourceFile& file(const SourceSample& sample, std::uint32_t which) const {
    return folders[sample.folder].files[sample.first + which];
  }
  /// Path and basename without extension: WebDataset's __key__.
  std::string key(const SourceSample& sample) const;
  /// The name in the source.
  const std::string& original_name(const SourceFile& file) const;
  /// The path from the source's root.
  std::string path_of(const SourceFolder& folder, const SourceFile& file) const;
};

/// The part of a file name before its first dot, and the rest in lower case: ("0001", "seg.png").
std::string_view basename_of(std::string_view name);
std::string extension_of(std::string_view name);
/// Whether files of that extension are images: its last part is jpg, jpeg, png or webp.
bool is_image_extension(std::string_view extension);
/// Whether it is an image extension without a prefix: "png", but not "mask.png".
bool is_main_image(std::string_view extension);
/// Why a file of that extension is left out if only images are packed: "not an image", or an unsupported
/// image format.
std::string_view non_image_reason(std::string_view extension);

/// A split as a share of the samples.
struct SplitShare {
  std::string name;
  double share = 0;  ///< 0 to 1
};

struct SourceOptions {
  /// A folder, a dataset or shards of other tools, an archive, a list (.csv, .tsv, .parquet), or "-": paths
  /// on standard input.
  std::string where;
  SourceLayout layout = SourceLayout::images;
  std::vector<SplitShare> splits;  ///< empty: the splits of the source
  std::uint64_t seed = 0;          ///< of the division into splits
  int threads = 1;
  double metadata_per_s = 0;  ///< limit of file lookups and opens per second; 0: no limit
  int standard_input = 0;     ///< the descriptor that "-" reads
  /// The folder for unnamed files with unpacked data. Empty: the temporary folder.
  Path scratch;
  TableOptions table;        ///< for Parquet: rows and columns
  bool allows_lists = true;  ///< a Parquet file may be a list of paths; else its rows are samples
};

/// Lists the source with up to `threads` threads. Errors: a missing or empty source, a class without files,
/// two files with one packed name, label files next to class folders, a damaged archive or list. Cancelled on
/// stop_requested().
Result<PackSource> list_source(const SourceOptions& options, Progress& progress);

}  // namespace stoker::sources
