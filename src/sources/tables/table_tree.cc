#include "sources/tables/table_tree.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/encode.h"
#include "sources/files/folder_layout.h"
#include "sources/files/tree.h"
#include "sources/shard_scan.h"
#include "sources/source.h"
#include "sources/split_name.h"
#include "sources/tables/filter/predicate.h"
#include "sources/tables/filter/row_filter.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using Type = parquet::ParquetLeaf::Type;

constexpr int kMaxDepth = 32;
constexpr std::string_view kSplitKey = "split";

// Spark's rule: `_temporary`, `_delta_log` and `.crc` are hidden, `_year=2024` is not.
bool is_hidden(std::string_view name) {
  return name.starts_with('.') || (name.starts_with('_') && name.find('=') == std::string_view::npos);
}

struct FolderEntries {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

Result<FolderEntries> names_in(const Path& folder) {
  namespace fs = std::filesystem;
  FolderEntries names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    std::string name = at->path().filename().string();
    if (is_hidden(name)) continue;
    const bool is_folder = at->is_directory(ignored) && !is_zarr(name);
    (is_folder ? names.folders : names.files).push_back(std::move(name));
  }
  if (error) return posix_error(printable(folder.string()), error.value());
  std::ranges::sort(names.folders);
  std::ranges::sort(names.files);
  return names;
}

bool is_image(const std::string& file) { return is_image_extension(extension_of(file)); }

// Split and partition keys of the folders above a file.
struct ParentKeys {
  std::string path;  // relative to the root
  std::string split;
  std::vector<PartitionKey> keys;
};

struct ListedTable {
  ParentKeys parent;
  std::string name;
};

class TableWalk {
 public:
  explicit TableWalk(const Path& root) : root_(root) {}

  Status run() { return walk({}, 0); }
  /// The first image: the folder is then not a table.
  const std::optional<std::string>& image() const { return image_; }
  std::vector<ListedTable>& files() { return files_; }

 private:
  Status walk(const ParentKeys& parent, int depth) {
    const std::string shown = printable((root_ / parent.path).string());
    if (depth > kMaxDepth)
      return invalid("{}: folders more than {} deep (a link to a parent?)", shown, kMaxDepth);
    STOKER_ASSIGN_OR_RETURN(names, names_in(root_ / parent.path));
    for (const std::string& file : names.files) {
      std::string path = child(parent.path, file);
      if (is_image(file) && !image_) image_ = path;
      if (is_shard(file) && !is_parquet(file))
        return invalid("{}: is a shard of a different format ({}) among Parquet tables",
                       printable((root_ / path).string()), to_text(kind_of_shard(file)));
      if (is_parquet(file)) files_.push_back({parent, std::move(path)});
    }
    for (const std::string& folder : names.folders) {
      STOKER_ASSIGN_OR_RETURN(below, enter(parent, folder));
      STOKER_RETURN_IF_ERROR(walk(below, depth + 1));
    }
    return {};
  }

  Result<ParentKeys> enter(ParentKeys parent, const std::string& folder) const {
    parent.path = child(parent.path, folder);
    const std::string shown = printable((root_ / parent.path).string());
    auto key = parse_partition_key(folder);
    if (!key) return is_split_name(folder) ? with_split(std::move(parent), to_lower(folder), shown) : parent;
    if (!is_utf8(key->name) || !is_utf8(key->value.value_or("")))
      return invalid("{}: its name is not UTF-8", shown);
    const bool is_twice =
        std::ranges::any_of(parent.keys, [&](const auto& k) { return k.name == key->name; });
    if (is_twice) return invalid("{}: the key '{}' appears twice in its path", shown, printable(key->name));
    const bool names_split = key->name == kSplitKey && key->value && !key->value->empty();
    const std::string split = names_split ? *key->value : "";
    parent.keys.push_back(std::move(*key));
    return names_split ? with_split(std::move(parent), split, shown) : parent;
  }

  static Result<ParentKeys> with_split(ParentKeys parent, const std::string& split,
                                       const std::string& shown) {
    if (split.front() == '.' || split.find('/') != std::string::npos || printable(split) != split)
      return invalid("{}: '{}' cannot be the name of a split", shown, printable(split));
    if (!parent.split.empty() && parent.split != split)
      return invalid("{}: its path names two splits: '{}' and '{}'", shown, parent.split, split)
          .cure("pack one of the folders alone: stoker data pack FOLDER OUT");
    parent.split = split;
    return parent;
  }

  const Path& root_;
  std::vector<ListedTable> files_;
  std::optional<std::string> image_;
};

// A partition key and the type of its values.
struct KeyColumn {
  std::string name;
  Type type = Type::bytes;
  bool is_nullable = false;
};

const PartitionKey* find(const ListedTable& file, std::string_view name) {
  const auto found = std::ranges::find(file.parent.keys, name, &PartitionKey::name);
  return found == file.parent.keys.end() ? nullptr : &*found;
}

// Integers if all values are, else text.
KeyColumn column_of(const std::vector<ListedTable>& files, const std::string& name) {
  KeyColumn column{.name = name};
  bool has_values = false;
  bool is_whole = true;
  bool is_small = true;
  for (const ListedTable& file : files) {
    const PartitionKey* const key = find(file, name);
    if (key == nullptr || !key->value) {
      column.is_nullable = true;
      continue;
    }
    std::int64_t number = 0;
    has_values = true;
    is_whole = is_whole && parse_number(*key->value, &number);
    is_small = is_small && number >= std::numeric_limits<std::int32_t>::min() &&
               number <= std::numeric_limits<std::int32_t>::max();
  }
  if (has_values && is_whole) column.type = is_small ? Type::int32 : Type::int64;
  return column;
}

// In the order of the paths.
std::vector<KeyColumn> columns_of(const std::vector<ListedTable>& files) {
  std::vector<KeyColumn> columns;
  std::set<std::string_view> seen;
  for (const ListedTable& file : files) {
    for (const PartitionKey& key : file.parent.keys) {
      if (seen.insert(key.name).second) columns.push_back(column_of(files, key.name));
    }
  }
  return columns;
}

TreeTable table_of(const ListedTable& file, const std::vector<KeyColumn>& columns) {
  TreeTable table{.path = {.name = file.name, .columns = {}}, .split = file.parent.split};
  for (const KeyColumn& column : columns) {
    PartitionColumn& added = table.path.columns.emplace_back();
    added.leaf = {.name = column.name,
                  .type = column.type,
                  .logical = column.type == Type::bytes ? "text" : "",
                  .is_nullable = column.is_nullable};
    const PartitionKey* const key = find(file, column.name);
    if (key != nullptr) added.text = key->value;
    if (added.text && column.type != Type::bytes) parse_number(*added.text, &added.number);
  }
  if (!table.split.empty()) return table;
  const std::string name = Path(file.name).filename().string();
  const std::string own = split_of_shard(name);
  table.split = is_split_name(own) ? to_lower(own) : counted_prefix(name).empty() ? "all" : own;
  return table;
}

// The part of a condition that these columns determine.
Predicate partition_predicate(const Predicate& condition, const std::set<std::string_view>& known) {
  Predicate part{
      .kind = condition.kind, .parts = {}, .terms = condition.terms, .comparison = condition.comparison};
  for (const Term& term : condition.terms) {
    const auto* const column = std::get_if<Term::Column>(&term.value);
    if (column != nullptr && !known.contains(column->name))
      return {.kind = Predicate::Kind::unknown, .parts = {}, .terms = {}};
  }
  for (const Predicate& one : condition.parts) part.parts.push_back(partition_predicate(one, known));
  return part;
}

Status prune(TableTree& tree, const std::string& where, const std::string& subject) {
  STOKER_ASSIGN_OR_RETURN(condition, parse_predicate(where));
  std::vector<parquet::ParquetLeaf> leaves;
  std::set<std::string_view> known;
  for (const PartitionColumn& column : tree.tables[0].path.columns) {
    leaves.push_back(column.leaf);
    known.insert(column.leaf.name);
  }
  const Result<RowFilter> filter = RowFilter::create(partition_predicate(condition, known), leaves);
  if (!filter.ok()) return filter.status().with_context(subject);
  std::vector<parquet::ParquetValues> values(filter->leaves().size());
  tree.pruned = std::erase_if(tree.tables, [&](const TreeTable& table) {
    for (std::size_t i = 0; i < values.size(); ++i)
      put_values(table.path.columns[filter->leaves()[i]], 1, values[i]);
    return !filter->may_match(values, 0);
  });
  return {};
}

// Whether the first folder with tables or images, in walk order, has tables. Nullopt without either.
std::optional<bool> starts_with_table(const Path& folder, int depth) {
  const auto names = names_in(folder);
  if (!names.ok() || depth > kMaxDepth || (depth == 0 && names->folders.empty())) return false;
  if (std::ranges::any_of(names->files, is_image)) return false;
  if (std::ranges::any_of(names->files, is_parquet)) return true;
  for (const std::string& below : names->folders) {
    if (const auto found = starts_with_table(folder / below, depth + 1)) return found;
  }
  return std::nullopt;
}

}  // namespace

bool is_table_tree(const Path& folder) {
  if (!starts_with_table(folder, 0).value_or(false)) return false;
  TableWalk walk(folder);
  const Status listed = walk.run();  // list_tables() reports the error
  const bool has_folders = std::ranges::any_of(
      walk.files(), [](const ListedTable& file) { return file.name.find('/') != std::string::npos; });
  return !listed.ok() || (has_folders && !walk.image());
}

Result<TableTree> list_tables(const Path& folder, const std::string& where) {
  TableWalk walk(folder);
  STOKER_RETURN_IF_ERROR(walk.run());
  TableTree tree;
  const std::vector<KeyColumn> columns = columns_of(walk.files());
  for (const ListedTable& file : walk.files()) tree.tables.push_back(table_of(file, columns));
  std::ranges::sort(tree.tables, {}, [](const TreeTable& table) { return table.path.name; });
  if (!where.empty() && !tree.tables.empty())
    STOKER_RETURN_IF_ERROR(prune(tree, where, printable(folder.string())));
  return tree;
}

}  // namespace stoker::sources
