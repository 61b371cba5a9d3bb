// What is to be packed: splits, classes, samples, and files that cannot be taken by their name alone. Comes
// from a folder, a list of paths, paths on standard input, a tar or zip archive, or from shards, which are
// read where they lie. Listing reads no file. Plain values but for the tree, whose reads are thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/look/tables/table_options.h"
#include "data/pack/pace.h"

namespace stoker::data {

enum class SourceLayout {
  images,  ///< a sample is an image with the files that share its basename
  files,   ///< every basename is a sample, whatever its files are
};

/// One file of the source.
struct SourceFile {
  std::string name;  ///< without folder, as it is packed
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::uint64_t place = 0;     ///< where an archive's tree finds it; 0 in a folder
  std::uint32_t own_name = 0;  ///< 1 + its place in Source::own_names; 0: it is called so where it lies
};

/// One folder with files that are samples.
struct SourceFolder {
  std::string path;    ///< from the source's root: "train/cat/a"
  std::string member;  ///< in the archive: "cat/a"; empty at a split's root
  std::uint32_t split = 0;
  std::int64_t label = -1;
  std::vector<SourceFile> files;  ///< sorted by name, but for lists
};

/// Consecutive files of one folder that share a basename.
struct SourceSample {
  std::uint32_t folder = 0;
  std::uint32_t first = 0;
  std::uint32_t files = 0;
  std::int32_t label = -1;
};

/// A file that is not packed, and why.
struct LeftOut {
  std::string path;    ///< from the source's root
  std::string reason;  ///< one of a few: "not an image", "truncated", ...
  std::string detail;  ///< what exactly; may be empty

  auto operator<=>(const LeftOut&) const = default;
};

/// Left out on purpose and without harm: not counted.
constexpr std::string_view kHidden = "hidden";
/// Left out as names with several dots do not tell what is a sample of its own.
constexpr std::string_view kAmbiguous = "ambiguous name";

class SourceTree;

struct Source {
  Source();
  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;
  ~Source();

  std::unique_ptr<SourceTree> tree;  ///< reads the files
  std::vector<std::string> splits;
  /// label = position. Sorted, a list's numbers by their values.
  std::vector<std::string> classes;
  std::vector<SourceFolder> folders;
  std::vector<std::vector<SourceSample>> samples;  ///< per split, by folder and name
  std::vector<LeftOut> left_out;
  /// What files are called where they lie, if they are packed under another name. Shared with the tree.
  std::shared_ptr<const std::vector<std::string>> own_names;
  /// What was made of the source that one may not expect, each in a sentence.
  std::vector<std::string> notes;
  /// What shards hold that makes no file, label or key, by its name; and in how many samples.
  std::map<std::string, std::uint64_t> not_carried;
  std::optional<TableFacts> table;  ///< of tables whose rows or columns were chosen
  bool could_choose = false;        ///< what is not carried are columns that options could choose
  std::uint64_t files = 0;          ///< all but hidden ones
  std::uint64_t bytes = 0;
  bool has_label_files = false;    ///< labels come from files "<basename>.cls"
  bool has_number_labels = false;  ///< labels without names, from a list

  bool has_labels() const { return has_label_files || has_number_labels || !classes.empty(); }
  const SourceFile& file(const SourceSample& sample, std::uint32_t which) const {
    return folders[sample.folder].files[sample.first + which];
  }
  /// Path and basename without extension: WebDataset's __key__.
  std::string key(const SourceSample& sample) const;
  /// What the file is called where it lies.
  const std::string& own_name(const SourceFile& file) const;
  /// Where it lies, from the source's root.
  std::string path_of(const SourceFolder& folder, const SourceFile& file) const;
};

/// The part of a file name before its first dot, and the rest in lower case: ("0001", "seg.png").
std::string_view basename_of(std::string_view name);
std::string extension_of(std::string_view name);
/// Whether files of that extension are images: its last part is jpg, jpeg, png or webp.
bool is_image_extension(std::string_view extension);
/// Whether it is an image's by itself, as "png" is and "mask.png" is not.
bool is_picture(std::string_view extension);
/// Why a file of that extension is left out where only images are packed: "not an image", or that it is one
/// of another kind.
std::string_view why_no_image(std::string_view extension);

/// A share of the samples that becomes a split.
struct SplitShare {
  std::string name;
  double share = 0;  ///< of 1
};

struct SourceOptions {
  /// A folder, a dataset or other tools' shards, an archive, a list (.csv, .tsv, .parquet), or "-": paths on
  /// standard input.
  std::string where;
  SourceLayout layout = SourceLayout::images;
  std::vector<SplitShare> splits;  ///< empty: as the source has them
  std::uint64_t seed = 0;          ///< of the division into splits
  int threads = 1;
  double metadata_per_s = 0;  ///< at most so many files are looked at or opened in a second; 0: no limit
  int standard_input = 0;     ///< the descriptor that "-" reads
  /// The folder in which is unpacked, into files without a name, what is compressed as a whole. Empty: that
  /// of temporary files.
  Path scratch;
  TableOptions table;  ///< of Parquet: which rows and columns
};

/// Lists the source with up to `threads` threads. Errors: no such source, nothing to pack, a class without
/// files, two files that would be one, label files beside class folders, an archive or list that is damaged.
/// Cancelled when `progress` says stop.
Result<Source> list_source(const SourceOptions& options, Progress& progress);

}  // namespace stoker::data
