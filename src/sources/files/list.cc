#include "sources/files/list.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unordered_map>

#include "base/encode.h"
#include "base/thread.h"
#include "codec/csv.h"
#include "parquet/parquet.h"
#include "sources/files/dotted_names.h"
#include "sources/files/folder_tree.h"

namespace stoker::sources {

namespace {

constexpr ByteCount kListLimit = 8_GiB;
constexpr std::string_view kPathColumns[] = {"path", "file", "filename", "file_name", "filepath", "image"};
constexpr std::string_view kLabelColumns[] = {"label", "class", "target", "category"};
constexpr std::string_view kSplitColumns[] = {"split", "subset"};

struct ListRow {
  std::string path;  // normalized; relative to the root once that is known
  std::string label;
  std::string split;
  std::uint64_t line = 0;
  SourceFile file;
  Status status;
  std::string_view problem;  // the reason for leaving it out
};

// Field numbers; -1: missing.
struct ListColumns {
  int path = 0;
  int label = -1;
  int split = -1;
  bool has_header = false;
};

int position(const std::vector<std::string>& row, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string word = to_lower(trim(row[i]));
    if (std::find(names.begin(), names.end(), word) != names.end()) return static_cast<int>(i);
  }
  return -1;
}

ListColumns columns_of(const std::vector<std::string>& first) {
  if (const int path = position(first, kPathColumns); path >= 0) {
    return {.path = path,
            .label = position(first, kLabelColumns),
            .split = position(first, kSplitColumns),
            .has_header = true};
  }
  return {.path = 0, .label = first.size() > 1 ? 1 : -1, .split = first.size() > 2 ? 2 : -1};
}

// "7", or "7.0" as pandas writes integers of a column with gaps.
std::optional<std::int64_t> whole_number(std::string_view text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::int64_t number = 0;
  const bool is_whole = text.substr(dot).find_first_not_of('0', 1) == std::string_view::npos;
  return is_whole && parse_number(text.substr(0, dot), &number) ? std::optional(number) : std::nullopt;
}

// Classes in the order of their labels: by value if all are numbers ("10" after "9"), else by text.
std::map<std::string, std::int32_t> numbered(std::vector<std::string>& classes) {
  const auto value = [](const std::string& text) {
    double number = 0;
    return parse_number(text, &number) && std::isfinite(number) ? number : std::nan("");
  };
  std::vector<std::pair<double, std::string>> sorted;
  for (std::string& text : classes) sorted.emplace_back(value(text), std::move(text));
  const bool are_numbers =
      std::none_of(sorted.begin(), sorted.end(), [](const auto& one) { return std::isnan(one.first); });
  for (auto& one : sorted) one.first = are_numbers ? one.first : 0;
  std::sort(sorted.begin(), sorted.end());
  std::map<std::string, std::int32_t> numbers;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    classes[i] = sorted[i].second;
    numbers.emplace(sorted[i].second, static_cast<std::int32_t>(i));
  }
  return numbers;
}

// Reads the rows of a list and makes a source of them.
class ListReader {
 public:
  ListReader(const SourceOptions& options, std::shared_ptr<RateLimiter> rate_limiter, Progress& progress)
      : options_(options),
        subject_(printable(options.where)),
        rate_limiter_(std::move(rate_limiter)),
        progress_(progress) {}

  Result<PackSource> read() {
    STOKER_RETURN_IF_ERROR(read_rows());
    choose_root();
    STOKER_RETURN_IF_ERROR(stat_files());
    PackSource source;
    number_labels(source);
    STOKER_RETURN_IF_ERROR(add_samples(source));
    source.tree = folder_tree(root_.empty() ? "." : root_, rate_limiter_, &progress_);
    set_original_names(std::move(original_names_), source);
    return source;
  }

 private:
  template <typename... Args>
  Status row_error(const ListRow& row, std::string_view what, const Args&... args) const {
    return invalid("{}:{}: {}", subject_, row.line, format(what, args...));
  }

  Status read_rows() {
    const std::string extension = Path(options_.where).extension().string();
    STOKER_RETURN_IF_ERROR(extension == ".parquet" ? read_parquet_rows()
                                                   : read_text_rows(extension == ".tsv"));
    if (rows_.empty()) return invalid("{}: lists no files", subject_);
    return {};
  }

  Status read_text_rows(bool is_tabbed) {
    STOKER_ASSIGN_OR_RETURN(text, read_file(options_.where, kListLimit));
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
      return invalid("{}: is UTF-16 (by its byte order mark), but a list is UTF-8", subject_)
          .cure("iconv -f UTF-16 -t UTF-8 {} > utf8.csv", shell_quote(options_.where));
    codec::CsvReader reader(text, is_tabbed ? '\t' : ',', subject_);
    ListColumns columns;
    for (bool is_first = true;; is_first = false) {
      STOKER_ASSIGN_OR_RETURN(fields, reader.next());
      if (!fields) return {};
      if (is_first) STOKER_RETURN_IF_ERROR(check_separator(*fields, is_tabbed ? '\t' : ',', reader.line()));
      if (is_first) columns = columns_of(*fields);
      if (is_first && columns.has_header) continue;
      const auto field = [&, &fields = fields](int column) {
        const bool has_it = column >= 0 && static_cast<std::size_t>(column) < fields->size();
        return has_it ? std::string(trim((*fields)[static_cast<std::size_t>(column)])) : std::string();
      };
      STOKER_RETURN_IF_ERROR(
          add_row(field(columns.path), field(columns.label), field(columns.split), reader.line()));
    }
  }

  // Detects a header with the wrong separator, which would be read as a path.
  Status check_separator(const std::vector<std::string>& header, char expected, std::uint64_t line) const {
    for (const char found : std::string_view(";|\t,")) {
      if (found == expected || header.size() != 1) continue;
      std::vector<std::string> names;
      for (std::string_view name : split(header[0], found)) names.emplace_back(name);
      if (names.size() < 2 || position(names, kPathColumns) < 0) continue;
      const std::string shown = found == '\t' ? "a tab" : format("'{}'", found);
      return invalid("{}:{}: fields are separated by {}, but a comma is expected (in a .tsv file a tab)",
                     subject_, line, shown);
    }
    return {};
  }

  Status read_parquet_rows() {
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(options_.where));
    STOKER_ASSIGN_OR_RETURN(size, file.size());
    STOKER_ASSIGN_OR_RETURN(parquet, parquet::ParquetFile::open(
                                         [&file = file](std::uint64_t at, std::span<std::byte> out) {
                                           return file.read_at(at, out);
                                         },
                                         size, subject_));
    std::vector<std::string> names;  // of leaves, in order; "" for a leaf in a list
    for (const parquet::ParquetLeaf& leaf : parquet.leaves())
      names.push_back(leaf.lists == 0 ? leaf.name : "");
    const std::array<int, 3> places = {position(names, kPathColumns), position(names, kLabelColumns),
                                       position(names, kSplitColumns)};
    if (places[0] < 0) {
      std::erase(names, "");
      return invalid("{}: no column 'path' (available: {})", subject_,
                     printable(join(names, ", ").substr(0, 200)))
          .cure("stoker data convert {} OUT --format tar, if its rows are samples",
                shell_quote(options_.where));
    }
    std::array<std::vector<std::string>, 3> fields;
    for (std::size_t i = 0; i < places.size(); ++i) {
      fields[i].resize(parquet.rows() * (places[i] < 0 ? 1 : 0));
      if (places[i] < 0) continue;
      STOKER_ASSIGN_OR_RETURN(texts, parquet.read_texts(static_cast<std::size_t>(places[i])));
      fields[i] = std::move(texts);
    }
    for (std::size_t row = 0; row < parquet.rows(); ++row)
      STOKER_RETURN_IF_ERROR(add_row(fields[0][row], fields[1][row], fields[2][row], row + 1));
    return {};
  }

  // Classes and splits are stored as UTF-8.
  Status not_utf8(const ListRow& row, std::string_view what, std::string_view text) const {
    Status error = row_error(row, "the {} '{}' is not UTF-8 (lists from Windows are often CP1252)", what,
                             printable(text));
    if (Path(options_.where).extension() == ".parquet") return error;
    return std::move(error).cure("iconv -f CP1252 -t UTF-8 {} > utf8.csv", shell_quote(options_.where));
  }

  // `line` is the row number for a Parquet file.
  Status add_row(const std::string& path, std::string label, std::string split, std::uint64_t line) {
    ListRow row;
    row.line = line;
    row.path = Path(path).lexically_normal().string();
    row.label = std::move(label);
    row.split = std::move(split);
    if (row.path.empty() || row.path.ends_with('/') || row.path == ".")
      return row_error(row, "not a file path");
    if (!is_utf8(row.label)) return not_utf8(row, "label", row.label);
    if (!is_utf8(row.split)) return not_utf8(row, "split", row.split);
    if (row.path.size() > kPathLimit)
      return row_error(row, "a path of {} bytes (at most {})", row.path.size(), kPathLimit);
    rows_.push_back(std::move(row));
    return {};
  }

  // Paths are relative to the list's folder. If one leaves it, the root is the deepest common folder.
  void choose_root() {
    root_ = Path(options_.where).parent_path().string();
    const auto leaves = [](const ListRow& row) {
      return row.path.starts_with('/') || row.path.starts_with("../");
    };
    if (std::none_of(rows_.begin(), rows_.end(), leaves)) return;
    const auto parent = [](std::string_view path) { return path.substr(0, path.rfind('/') + 1); };
    std::string common;
    for (ListRow& row : rows_) {
      row.path = std::filesystem::absolute(Path(root_) / row.path).lexically_normal().string();
      if (common.empty()) common = parent(row.path);
      while (!row.path.starts_with(common))
        common = parent(std::string_view(common).substr(0, common.size() - 1));
    }
    for (ListRow& row : rows_) row.path = row.path.substr(common.size());
    root_ = common;
  }

  Status stat_files() {
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> seen{0};
    const auto work = [&] {
      constexpr std::size_t kAtOnce = 64;
      for (std::size_t begin = next.fetch_add(kAtOnce); begin < rows_.size();
           begin = next.fetch_add(kAtOnce)) {
        for (std::size_t i = begin; i < std::min(begin + kAtOnce, rows_.size()); ++i) {
          if (progress_.stop_requested()) return;
          stat_file(rows_[i]);
          progress_.report({.done = ++seen, .total = rows_.size(), .unit = "files checked", .bytes = {}});
        }
      }
    };
    {
      std::vector<Thread> helpers;
      for (int t = 1; t < options_.threads; ++t) helpers.emplace_back([&](const StopToken&) { work(); });
      work();
    }
    if (progress_.stop_requested()) return cancelled("{}: interrupted while checking files", subject_);
    for (const ListRow& row : rows_) STOKER_RETURN_IF_ERROR(row.status);
    return {};
  }

  void stat_file(ListRow& row) {
    rate_limiter_->acquire();
    struct stat info{};
    const std::string path = child(root_ == "/" ? "" : root_, row.path);
    if (::stat((root_ == "/" ? "/" + path : path).c_str(), &info) != 0) {
      const Status why = posix_error(printable(row.path), errno);
      row.status = Status(why.code(), format("{}:{}: {}", subject_, row.line, why.message()));
      if (row.label.empty() && row.path.find_first_of(";|\t,") != std::string::npos)
        row.status =
            std::move(row.status).cure("separate path and label with a comma (in a .tsv file with a tab)");
      return;
    }
    if (!S_ISREG(info.st_mode)) row.problem = S_ISDIR(info.st_mode) ? "a folder" : "a pipe, socket or device";
    row.file = {.name = row.path.substr(row.path.rfind('/') + 1),
                .bytes = static_cast<std::uint64_t>(info.st_size),
                .modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
                .place = 0};
  }

  // If all labels are natural numbers (or -1 for none), they are kept; else their texts are
  // classes.
  void number_labels(PackSource& source) {
    bool has_natural = false;
    bool has_others = false;
    for (const ListRow& row : rows_) {
      if (row.label.empty()) continue;
      const std::int64_t number = whole_number(row.label).value_or(-2);
      has_natural = has_natural || number >= 0;
      has_others = has_others || number < -1;
    }
    source.has_number_labels = has_natural && !has_others;
    if (!has_others) return;
    std::set<std::string> texts;
    for (const ListRow& row : rows_) {
      if (!row.label.empty()) texts.insert(row.label);
    }
    source.classes.assign(texts.begin(), texts.end());
    class_numbers_ = numbered(source.classes);
  }

  Result<std::int32_t> label_of(const PackSource& source, const ListRow& row) const {
    if (row.label.empty()) return -1;
    if (!source.classes.empty()) return class_numbers_.at(row.label);
    const std::int64_t number = whole_number(row.label).value_or(-1);
    if (number > std::numeric_limits<std::int32_t>::max())
      return row_error(row, "label {} is too large (at most 2147483647)", row.label);
    return static_cast<std::int32_t>(number);
  }

  Result<std::uint32_t> split_of(PackSource& source, const ListRow& row) const {
    const std::string name = row.split.empty() ? "all" : row.split;
    const auto found = std::find(source.splits.begin(), source.splits.end(), name);
    if (found != source.splits.end()) return static_cast<std::uint32_t>(found - source.splits.begin());
    const bool is_name =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
        std::string::npos;
    constexpr std::size_t kMaxSplits = 64;
    if (!is_name)
      return row_error(row, "'{}' cannot be the name of a split (letters, digits, '-', '_')",
                       printable(name));
    if (source.splits.size() == kMaxSplits) return row_error(row, "more than {} splits", kMaxSplits);
    source.splits.push_back(name);
    source.samples.emplace_back();
    return static_cast<std::uint32_t>(source.splits.size() - 1);
  }

  static std::string_view unusable_path_reason(std::string_view path) {
    for (const std::string_view part : split(path, '/')) {
      if (const std::string_view why = unusable_name_reason(part); !why.empty()) return why;
    }
    return {};
  }

  Status add_samples(PackSource& source) {
    std::map<std::string, std::uint32_t, std::less<>> folders;
    std::unordered_map<std::string, std::uint64_t> lines;  // key → line
    for (ListRow& row : rows_) {
      ++source.files;
      source.bytes += row.file.bytes;
      if (!row.problem.empty()) {
        source.left_out.push_back({row.path, "not a file", std::string(row.problem)});
        continue;
      }
      if (const std::string_view why = unusable_path_reason(row.path); !why.empty()) {
        source.left_out.push_back({row.path, "unusable name", std::string(why)});
        continue;
      }
      const bool is_of_images = options_.layout == SourceLayout::images;
      const std::string extension = extension_of(row.file.name);
      if (extension.empty() || (is_of_images && !is_image_extension(extension))) {
        source.left_out.push_back(
            {row.path, std::string(non_image_reason(extension)), extension.empty() ? "no extension" : ""});
        continue;
      }
      if (is_of_images) replace_dots(row.file, original_names_);
      if (row.file.original_name != 0) ++source.skipped_fields[std::string(kDotsReplaced)];
      STOKER_ASSIGN_OR_RETURN(split, split_of(source, row));
      STOKER_ASSIGN_OR_RETURN(label, label_of(source, row));
      const std::size_t slash = row.path.rfind('/');
      const std::string folder = slash == std::string::npos ? "" : row.path.substr(0, slash);
      const auto [found, is_new] =
          folders.try_emplace(folder, static_cast<std::uint32_t>(source.folders.size()));
      if (is_new)
        source.folders.push_back({.path = folder, .member = folder, .split = 0, .label = -1, .files = {}});
      const SourceSample sample{
          .folder = found->second,
          .first = static_cast<std::uint32_t>(source.folders[found->second].files.size()),
          .files = 1,
          .label = label};
      source.folders[found->second].files.push_back(std::move(row.file));
      source.samples[split].push_back(sample);
      if (const auto [twin, fresh] = lines.emplace(source.key(sample), row.line); !fresh) {
        return row_error(row, "'{}' and the file of line {} would be the same sample ('{}')",
                         printable(row.path), twin->second, printable(twin->first))
            .cure("list each file once; to oversample a class, weight it in training");
      }
    }
    if (source.splits.empty())
      return invalid(
          "{}: no images{}", subject_,
          options_.layout == SourceLayout::images ? " (JPEG, PNG or WebP by their extension)" : "");
    return {};
  }

  const SourceOptions& options_;
  std::string subject_;
  std::shared_ptr<RateLimiter> rate_limiter_;  // shared with the tree
  Progress& progress_;
  std::string root_;
  std::vector<ListRow> rows_;
  std::map<std::string, std::int32_t> class_numbers_;
  std::vector<std::string> original_names_;
};

}  // namespace

Result<PackSource> list_from_table(const SourceOptions& options, std::shared_ptr<RateLimiter> rate_limiter,
                                   Progress& progress) {
  return ListReader(options, std::move(rate_limiter), progress).read();
}

}  // namespace stoker::sources
