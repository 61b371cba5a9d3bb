// Trees are written from their leaves up: a leaf goes to the file when the next cell does not fit, what tells
// it from its neighbours stays in memory, and the levels above follow at the end. Page 1, which has the
// schema and with it the roots, comes last.
#include "format/sqlite/sqlite_writer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace stoker::formats {

namespace {

constexpr std::size_t kPage = 16384;
constexpr std::size_t kFileHeader = 100;
constexpr std::size_t kLeafHeader = 8;
constexpr std::size_t kInteriorHeader = 12;
constexpr std::size_t kPointer = 2;
// What an index keeps of an entry in its own page; more would go to pages of their own.
constexpr std::size_t kMostPayload = (kPage - 12) * 64 / 255 - 23;
constexpr std::uint64_t kLockByte = std::uint64_t{1} << 30;  // the page that holds it is left empty
constexpr std::uint32_t kSqliteVersion = 3'040'001;          // "written by": any that knows schema format 4

enum class PageKind : unsigned char {
  index_interior = 0x02,
  table_interior = 0x05,
  index_leaf = 0x0A,
  table_leaf = 0x0D,
};

template <typename T>
void put_big_endian(std::string& out, T value, std::size_t bytes = sizeof(T)) {
  for (std::size_t i = bytes; i-- > 0;) out += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i);
}

// Below 2^56: the ninth byte, which would hold eight bits, never comes.
void put_varint(std::string& out, std::uint64_t value) {
  constexpr int kGroups = 8;
  int last = kGroups - 1;
  while (last > 0 && value >> 7 * last == 0) --last;
  for (int i = last; i >= 0; --i) out += static_cast<char>((value >> 7 * i & 127) | (i > 0 ? 128u : 0u));
}

// The serial type of a number, and how many bytes it takes.
std::pair<unsigned, std::size_t> type_of(std::int64_t value) {
  if (value == 0 || value == 1) return {static_cast<unsigned>(8 + value), 0};
  constexpr std::pair<unsigned, std::size_t> kTypes[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 6}};
  for (const auto& [type, bytes] : kTypes) {
    const std::int64_t limit = std::int64_t{1} << (8 * bytes - 1);
    if (value >= -limit && value < limit) return {type, bytes};
  }
  return {6, 8};
}

std::string record_of(std::span<const SqliteValue> values) {
  std::string types;
  std::string body;
  for (const SqliteValue& value : values) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      const auto [type, bytes] = type_of(*number);
      types += static_cast<char>(type);
      put_big_endian(body, *number, bytes);
    } else {
      const std::string_view text = std::get<std::string_view>(value);
      put_varint(types, 13 + 2 * text.size());
      body += text;
    }
  }
  CHECK(types.size() < 127);  // so that its length, itself included, is one byte
  std::string record(1, static_cast<char>(types.size() + 1));
  return record + types + body;
}

// One page, its cells from the end backwards, as SQLite lays them out itself.
std::string page_of(PageKind kind, std::span<const std::string> cells, std::uint32_t right,
                    std::size_t offset = 0) {
  const bool is_interior = kind == PageKind::index_interior || kind == PageKind::table_interior;
  std::string head(1, static_cast<char>(kind));
  std::string pointers;
  std::string page(kPage, '\0');
  std::size_t at = kPage;
  for (const std::string& cell : cells) {
    at -= cell.size();
    std::copy(cell.begin(), cell.end(), page.begin() + static_cast<std::ptrdiff_t>(at));
    put_big_endian(pointers, static_cast<std::uint16_t>(at));
  }
  put_big_endian(head, std::uint16_t{0});  // no free block
  put_big_endian(head, static_cast<std::uint16_t>(cells.size()));
  put_big_endian(head, static_cast<std::uint16_t>(at));
  head += '\0';  // no fragments
  if (is_interior) put_big_endian(head, right);
  head += pointers;
  CHECK(offset + head.size() <= at);
  std::copy(head.begin(), head.end(), page.begin() + static_cast<std::ptrdiff_t>(offset));
  return page;
}

std::string file_header(std::uint32_t pages) {
  std::string header = "SQLite format 3";
  header += '\0';
  put_big_endian(header, static_cast<std::uint16_t>(kPage));
  header +=
      std::string_view("\x01\x01\x00\x40\x20\x20", 6);  // a rollback journal, nothing reserved, fixed shares
  constexpr std::uint32_t kChanges = 1, kSchemaFormat = 4, kUtf8 = 1;
  for (std::uint32_t value : {kChanges, pages, 0u, 0u, 1u, kSchemaFormat, 0u, 0u, kUtf8, 0u, 0u, 0u})
    put_big_endian(header, value);
  header.append(20, '\0');
  put_big_endian(header, kChanges);  // for which `pages` is valid
  put_big_endian(header, kSqliteVersion);
  CHECK(header.size() == kFileHeader);
  return header;
}

// A table or an index on its way.
struct Tree {
  SqliteName name;
  bool is_index = false;
  std::int64_t rows = 0;
  // The leaf at hand.
  std::vector<std::string> cells;
  std::size_t used = kLeafHeader;
  // An index's entry that did not fit: it will stand between that leaf and the next, once there is one.
  std::optional<std::string> pending;
  // The leaves that are written. Of a table, with the last row of each; of an index, with what lies between.
  std::vector<std::uint32_t> children;
  std::vector<std::int64_t> last_rows;
  std::vector<std::string> dividers;
  std::uint32_t root = 0;
};

bool fits(const Tree& tree, const std::string& cell) { return tree.used + cell.size() + kPointer <= kPage; }

void put(Tree& tree, std::string cell) {
  tree.used += cell.size() + kPointer;
  tree.cells.push_back(std::move(cell));
}

std::string with_child(std::uint32_t child, const std::string& rest) {
  std::string cell;
  put_big_endian(cell, child);
  return cell + rest;
}

}  // namespace

struct SqliteWriter::Parts {
  File file;
  std::uint32_t pages = 1;  // page 1 comes last
  std::vector<Tree> trees;

  Result<std::uint32_t> write(const std::string& page) {
    if (pages == kLockByte / kPage) ++pages;
    ++pages;
    RETURN_IF_ERROR(file.write_at((std::uint64_t{pages} - 1) * kPage, std::as_bytes(std::span(page))));
    return pages;
  }

  Status end_leaf(Tree& tree) {
    OK_OR_RETURN(page,
                 write(page_of(tree.is_index ? PageKind::index_leaf : PageKind::table_leaf, tree.cells, 0)));
    tree.children.push_back(page);
    tree.last_rows.push_back(tree.rows);
    tree.cells.clear();
    tree.used = kLeafHeader;
    return {};
  }

  Status finish_table(Tree& tree) {
    constexpr std::size_t kMostChildren = 1000;  // 15 bytes each, pointer included
    if (!tree.cells.empty() || tree.children.empty()) RETURN_IF_ERROR(end_leaf(tree));
    while (tree.children.size() > 1) {
      const std::size_t count = tree.children.size();
      const std::size_t pages_above = (count + kMostChildren - 1) / kMostChildren;
      std::vector<std::uint32_t> above;
      std::vector<std::int64_t> last_rows;
      for (std::size_t p = 0; p < pages_above; ++p) {
        const std::size_t last = (p + 1) * count / pages_above - 1;
        std::vector<std::string> cells;
        for (std::size_t i = p * count / pages_above; i < last; ++i) {
          std::string row;
          put_varint(row, static_cast<std::uint64_t>(tree.last_rows[i]));
          cells.push_back(with_child(tree.children[i], row));
        }
        OK_OR_RETURN(page, write(page_of(PageKind::table_interior, cells, tree.children[last])));
        above.push_back(page);
        last_rows.push_back(tree.last_rows[last]);
      }
      tree.children = std::move(above);
      tree.last_rows = std::move(last_rows);
    }
    tree.root = tree.children.front();
    return {};
  }

  Status finish_index(Tree& tree) {
    if (tree.pending) {
      // No leaf may be empty: the one before gives its last entry to stand between the two.
      std::string divider = std::move(tree.cells.back());
      tree.cells.pop_back();
      std::string last = *std::exchange(tree.pending, std::nullopt);
      RETURN_IF_ERROR(end_leaf(tree));
      tree.dividers.push_back(std::move(divider));
      put(tree, std::move(last));
    }
    RETURN_IF_ERROR(end_leaf(tree));
    while (tree.children.size() > 1) RETURN_IF_ERROR(add_level(tree));
    tree.root = tree.children.front();
    return {};
  }

  // The pages above those that are written. What does not fit into one stands between it and the next, a
  // level higher.
  Status add_level(Tree& tree) {
    const std::vector<std::uint32_t> children = std::exchange(tree.children, {});
    const std::vector<std::string> dividers = std::exchange(tree.dividers, {});
    for (std::size_t i = 0;; ++i) {
      std::vector<std::string> cells;
      for (std::size_t used = kInteriorHeader; i < dividers.size(); ++i) {
        used += 4 + dividers[i].size() + kPointer;
        if (used > kPage) break;
        cells.push_back(with_child(children[i], dividers[i]));
      }
      if (i + 1 == dividers.size()) {  // the next page must have one, too
        cells.pop_back();
        --i;
      }
      OK_OR_RETURN(page, write(page_of(PageKind::index_interior, cells, children[i])));
      tree.children.push_back(page);
      if (i == dividers.size()) return {};
      tree.dividers.push_back(dividers[i]);
    }
  }

  Status write_schema() {
    std::vector<std::string> cells;
    for (const Tree& tree : trees) {
      const std::string_view type = tree.is_index ? "index" : "table";
      const SqliteValue values[] = {type, tree.name.name, tree.name.table, std::int64_t{tree.root},
                                    tree.name.sql};
      const std::string record = record_of(values);
      std::string& cell = cells.emplace_back();
      put_varint(cell, record.size());
      put_varint(cell, cells.size());
      cell += record;
    }
    std::string page = page_of(PageKind::table_leaf, cells, 0, kFileHeader);
    const std::string header = file_header(pages);
    std::copy(header.begin(), header.end(), page.begin());
    return file.write_at(0, std::as_bytes(std::span(page)));
  }
};

SqliteWriter::SqliteWriter(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SqliteWriter::SqliteWriter(SqliteWriter&&) noexcept = default;
SqliteWriter& SqliteWriter::operator=(SqliteWriter&&) noexcept = default;
SqliteWriter::~SqliteWriter() = default;

Result<SqliteWriter> SqliteWriter::create(const Path& path) {
  OK_OR_RETURN(file, File::create(path));
  auto parts = std::make_unique<Parts>();
  parts->file = std::move(file);
  return SqliteWriter(std::move(parts));
}

std::size_t SqliteWriter::add_table(SqliteName name) {
  Tree& tree = parts_->trees.emplace_back();
  tree.name = std::move(name);
  return parts_->trees.size() - 1;
}

std::size_t SqliteWriter::add_index(SqliteName name) {
  const std::size_t index = add_table(std::move(name));
  parts_->trees[index].is_index = true;
  return index;
}

Status SqliteWriter::add_row(std::size_t table, std::span<const SqliteValue> values) {
  Tree& tree = parts_->trees[table];
  const std::string record = record_of(values);
  if (record.size() > kMostPayload) {
    return invalid("{}: a row of {} bytes (at most {})", printable(parts_->file.path().string()),
                   record.size(), kMostPayload);
  }
  std::string cell;
  put_varint(cell, record.size());
  put_varint(cell, static_cast<std::uint64_t>(tree.rows + 1));
  cell += record;
  if (!fits(tree, cell)) RETURN_IF_ERROR(parts_->end_leaf(tree));
  ++tree.rows;
  put(tree, std::move(cell));
  return {};
}

Status SqliteWriter::add_entry(std::size_t index, std::span<const SqliteValue> values, std::int64_t row) {
  Tree& tree = parts_->trees[index];
  std::vector<SqliteValue> all(values.begin(), values.end());
  all.emplace_back(row);
  const std::string record = record_of(all);
  if (record.size() > kMostPayload) {
    return invalid("{}: an entry of {} bytes (at most {})", printable(parts_->file.path().string()),
                   record.size(), kMostPayload);
  }
  std::string cell;
  put_varint(cell, record.size());
  cell += record;
  if (tree.pending) {
    std::string divider = *std::exchange(tree.pending, std::nullopt);
    RETURN_IF_ERROR(parts_->end_leaf(tree));
    tree.dividers.push_back(std::move(divider));
  }
  if (fits(tree, cell)) {
    put(tree, std::move(cell));
  } else {
    tree.pending = std::move(cell);
  }
  return {};
}

Status SqliteWriter::finish() {
  for (Tree& tree : parts_->trees)
    RETURN_IF_ERROR(tree.is_index ? parts_->finish_index(tree) : parts_->finish_table(tree));
  RETURN_IF_ERROR(parts_->write_schema());
  RETURN_IF_ERROR(parts_->file.sync());
  return parts_->file.close();
}

}  // namespace stoker::formats
