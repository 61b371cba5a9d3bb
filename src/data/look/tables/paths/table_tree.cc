#include "data/look/tables/paths/table_tree.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/encode.h"
#include "base/text.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/condition.h"
#include "data/look/tables/row_filter.h"
#include "data/pack/source.h"
#include "data/pack/source/tree.h"

namespace stoker::data {

namespace {

using Type = formats::ParquetLeaf::Type;

constexpr int kDeepest = 32;
constexpr std::string_view kSplitKey = "split";

// As Spark has it: `_temporary`, `_delta_log`, `.crc`, and no `_year=2024`.
bool is_passed_over(std::string_view name) {
  return name.starts_with('.') || (name.starts_with('_') && name.find('=') == std::string_view::npos);
}

struct Names {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

Result<Names> names_in(const Path& folder) {
  namespace fs = std::filesystem;
  Names names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    std::string name = at->path().filename().string();
    if (is_passed_over(name)) continue;
    const bool is_folder = at->is_directory(ignored) && !is_zarr(name);
    (is_folder ? names.folders : names.files).push_back(std::move(name));
  }
  if (error) return posix_error(printable(folder.string()), error.value());
  std::ranges::sort(names.folders);
  std::ranges::sort(names.files);
  return names;
}

bool is_image(const std::string& file) { return is_image_extension(extension_of(file)); }

// What the folders above a file say.
struct Above {
  std::string path;  // from the root on
  std::string split;
  std::vector<PathKey> keys;
};

struct Listed {
  Above above;
  std::string name;
};

class Walk {
 public:
  explicit Walk(const Path& root) : root_(root) {}

  Status run() { return walk({}, 0); }
  /// An image among them: then it is no folder of tables.
  const std::optional<std::string>& image() const { return image_; }
  std::vector<Listed>& files() { return files_; }

 private:
  Status walk(const Above& above, int depth) {
    const std::string shown = printable((root_ / above.path).string());
    if (depth > kDeepest)
      return invalid("{}: folders more than {} deep (a link to a parent?)", shown, kDeepest);
    OK_OR_RETURN(names, names_in(root_ / above.path));
    for (const std::string& file : names.files) {
      std::string path = child(above.path, file);
      if (is_image(file) && !image_) image_ = path;
      if (is_shard(file) && !is_parquet(file))
        return invalid("{}: lies among tables (Parquet), and is a shard of another kind ({})",
                       printable((root_ / path).string()), to_text(kind_of_shard(file)));
      if (is_parquet(file)) files_.push_back({above, std::move(path)});
    }
    for (const std::string& folder : names.folders) {
      OK_OR_RETURN(below, enter(above, folder));
      RETURN_IF_ERROR(walk(below, depth + 1));
    }
    return {};
  }

  Result<Above> enter(Above above, const std::string& folder) const {
    above.path = child(above.path, folder);
    const std::string shown = printable((root_ / above.path).string());
    auto key = key_in(folder);
    if (!key) return is_split_name(folder) ? with_split(std::move(above), to_lower(folder), shown) : above;
    if (!is_utf8(key->name) || !is_utf8(key->value.value_or("")))
      return invalid("{}: its name is no UTF-8 text", shown);
    const bool is_twice = std::ranges::any_of(above.keys, [&](const auto& k) { return k.name == key->name; });
    if (is_twice) return invalid("{}: the key '{}' stands in its path twice", shown, printable(key->name));
    const bool says_split = key->name == kSplitKey && key->value && !key->value->empty();
    const std::string split = says_split ? *key->value : "";
    above.keys.push_back(std::move(*key));
    return says_split ? with_split(std::move(above), split, shown) : above;
  }

  static Result<Above> with_split(Above above, const std::string& split, const std::string& shown) {
    if (split.front() == '.' || split.find('/') != std::string::npos || printable(split) != split)
      return invalid("{}: '{}' cannot be the name of a split", shown, printable(split));
    if (!above.split.empty() && above.split != split)
      return invalid("{}: is of two splits by its path: '{}' and '{}'", shown, above.split, split)
          .cure("stoker data pack FOLDER OUT, for one of the folders alone");
    above.split = split;
    return above;
  }

  const Path& root_;
  std::vector<Listed> files_;
  std::optional<std::string> image_;
};

// A key of any of the paths, and what its values are.
struct Column {
  std::string name;
  Type type = Type::bytes;
  bool may_be_missing = false;
};

const PathKey* find(const Listed& file, std::string_view name) {
  const auto found = std::ranges::find(file.above.keys, name, &PathKey::name);
  return found == file.above.keys.end() ? nullptr : &*found;
}

// Whole numbers where all values are, else text.
Column column_of(const std::vector<Listed>& files, const std::string& name) {
  Column column{.name = name};
  bool has_values = false;
  bool is_whole = true;
  bool is_small = true;
  for (const Listed& file : files) {
    const PathKey* const key = find(file, name);
    if (key == nullptr || !key->value) {
      column.may_be_missing = true;
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

// In the order in which paths have them.
std::vector<Column> columns_of(const std::vector<Listed>& files) {
  std::vector<Column> columns;
  std::set<std::string_view> seen;
  for (const Listed& file : files) {
    for (const PathKey& key : file.above.keys) {
      if (seen.insert(key.name).second) columns.push_back(column_of(files, key.name));
    }
  }
  return columns;
}

TreeTable table_of(const Listed& file, const std::vector<Column>& columns) {
  TreeTable table{.path = {.name = file.name, .columns = {}}, .split = file.above.split};
  for (const Column& column : columns) {
    PathColumn& added = table.path.columns.emplace_back();
    added.leaf = {.name = column.name,
                  .type = column.type,
                  .logical = column.type == Type::bytes ? "text" : "",
                  .may_be_missing = column.may_be_missing};
    const PathKey* const key = find(file, column.name);
    if (key != nullptr) added.text = key->value;
    if (added.text && column.type != Type::bytes) parse_number(*added.text, &added.number);
  }
  if (!table.split.empty()) return table;
  const std::string own = split_of_shard(Path(file.name).filename().string());
  table.split = is_split_name(own) ? to_lower(own) : "all";
  return table;
}

// What can be told of a condition by these columns alone.
Condition known_part(const Condition& condition, const std::set<std::string_view>& known) {
  Condition part{
      .kind = condition.kind, .parts = {}, .terms = condition.terms, .comparison = condition.comparison};
  for (const Term& term : condition.terms) {
    const auto* const column = std::get_if<Term::Column>(&term.value);
    if (column != nullptr && !known.contains(column->name))
      return {.kind = Condition::Kind::anything, .parts = {}, .terms = {}};
  }
  for (const Condition& one : condition.parts) part.parts.push_back(known_part(one, known));
  return part;
}

Status pass_over(TableTree& tree, const std::string& where, const std::string& subject) {
  OK_OR_RETURN(condition, parse_condition(where));
  std::vector<formats::ParquetLeaf> leaves;
  std::set<std::string_view> known;
  for (const PathColumn& column : tree.tables[0].path.columns) {
    leaves.push_back(column.leaf);
    known.insert(column.leaf.name);
  }
  const Result<RowFilter> filter = RowFilter::create(known_part(condition, known), leaves);
  if (!filter.ok()) return filter.status().with_context(subject);
  std::vector<formats::ParquetValues> values(filter->leaves().size());
  tree.passed_over = std::erase_if(tree.tables, [&](const TreeTable& table) {
    for (std::size_t i = 0; i < values.size(); ++i)
      put_values(table.path.columns[filter->leaves()[i]], 1, values[i]);
    return !filter->may_hold(values, 0);
  });
  return {};
}

// Whether the first folder that has tables or images, in the order of a walk, has tables. Nothing where there
// is none.
std::optional<bool> begins_with_table(const Path& folder, int depth) {
  const auto names = names_in(folder);
  if (!names.ok() || depth > kDeepest || (depth == 0 && names->folders.empty())) return false;
  if (std::ranges::any_of(names->files, is_image)) return false;
  if (std::ranges::any_of(names->files, is_parquet)) return true;
  for (const std::string& below : names->folders) {
    if (const auto found = begins_with_table(folder / below, depth + 1)) return found;
  }
  return std::nullopt;
}

}  // namespace

bool is_table_tree(const Path& folder) {
  if (!begins_with_table(folder, 0).value_or(false)) return false;
  Walk walk(folder);
  const Status listed = walk.run();  // what is wrong is said by list_tables()
  const bool has_folders = std::ranges::any_of(
      walk.files(), [](const Listed& file) { return file.name.find('/') != std::string::npos; });
  return !listed.ok() || (has_folders && !walk.image());
}

Result<TableTree> list_tables(const Path& folder, const std::string& where) {
  Walk walk(folder);
  RETURN_IF_ERROR(walk.run());
  TableTree tree;
  const std::vector<Column> columns = columns_of(walk.files());
  for (const Listed& file : walk.files()) tree.tables.push_back(table_of(file, columns));
  std::ranges::sort(tree.tables, {}, [](const TreeTable& table) { return table.path.name; });
  if (!where.empty() && !tree.tables.empty())
    RETURN_IF_ERROR(pass_over(tree, where, printable(folder.string())));
  return tree;
}

}  // namespace stoker::data
