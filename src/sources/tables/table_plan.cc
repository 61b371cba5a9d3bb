#include "sources/tables/table_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "sources/foreign_example.h"
#include "sources/tables/filter/leaf_kind.h"
#include "sources/tables/filter/pattern.h"
#include "sources/tables/list_files.h"
#include "stoker/text.h"

namespace stoker::sources {

namespace {

using parquet::ParquetLeaf;
using Leaves = std::span<const ParquetLeaf>;

constexpr std::string_view kOwnKey = "__key__";
constexpr std::string_view kOwnLabel = "cls";

bool is_bytes(const ParquetLeaf& leaf) { return leaf.type == ParquetLeaf::Type::bytes && leaf.lists == 0; }

bool makes_items(const ParquetLeaf& leaf) { return is_list_of_texts(leaf) || is_list_of_bytes(leaf); }

bool can_be_label(const ParquetLeaf& leaf) {
  return leaf.lists == 0 && (is_integer(leaf.type) || leaf.type == ParquetLeaf::Type::boolean);
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?") != std::string_view::npos; }

// The leaves that match a name or pattern; the name of a structure matches all its fields.
Result<std::vector<std::size_t>> match_leaves(Leaves leaves, std::string_view option,
                                              const std::string& pattern) {
  std::vector<std::size_t> exact;
  std::vector<std::size_t> found;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string& name = leaves[i].name;
    names.push_back(name);
    if (name == pattern) exact.push_back(i);
    if (matches(name, pattern) || name.starts_with(pattern + ".")) found.push_back(i);
  }
  if (!exact.empty()) return exact;
  if (!found.empty()) return found;
  if (has_wildcard(pattern))
    return invalid("{}: '{}' matches no column{}", option, printable(pattern), suggestion("", names));
  return invalid("{}: '{}': no such column{}", option, printable(pattern), suggestion(pattern, names));
}

Result<std::optional<std::size_t>> find_leaf(Leaves leaves, std::string_view option,
                                             const std::string& name) {
  if (name.empty()) return std::optional<std::size_t>();
  STOKER_ASSIGN_OR_RETURN(found, match_leaves(leaves, option, name));
  if (found.size() > 1) return invalid("{}: '{}' matches several columns", option, printable(name));
  return std::optional(found[0]);
}

class Planner {
 public:
  Planner(Leaves leaves, std::size_t first_partition, const TableOptions& options)
      : leaves_(leaves), own_(leaves.first(first_partition)), options_(options) {}

  Result<TablePlan> plan() {
    STOKER_RETURN_IF_ERROR(choose_label_and_key());
    for (const TensorSpec& tensor : options_.tensors) STOKER_RETURN_IF_ERROR(add_tensor(tensor));
    if (options_.columns.empty() && options_.tensors.empty()) STOKER_RETURN_IF_ERROR(add_default_columns());
    for (const std::string& column : options_.columns) STOKER_RETURN_IF_ERROR(add_columns(column));
    if (plan_.arrays.empty() && plan_.files.empty() && plan_.items.empty())
      return invalid("none of its columns becomes a file of a sample")
          .cure("select columns with --columns or --tensor");
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const bool is_used = used_.contains(i) || plan_.label == i || plan_.key == i;
      if (!is_used) plan_.skipped_fields.push_back(leaves_[i].name);
    }
    return std::move(plan_);
  }

 private:
  Status choose_label_and_key() {
    STOKER_ASSIGN_OR_RETURN(label, find_leaf(leaves_, "--label", options_.label));
    STOKER_ASSIGN_OR_RETURN(key, find_leaf(leaves_, "--key", options_.key));
    plan_.label = label ? label : default_label();
    plan_.key = key;
    for (std::size_t i = 0; i < own_.size() && !key; ++i) {
      if (leaves_[i].name != kOwnKey || !is_bytes(leaves_[i])) continue;
      plan_.key = i;
      plan_.is_own = true;
    }
    if (label && leaves_[*label].lists > 0)
      return wrong_kind("--label", *label, "a number or a text is expected");
    if (label && !number_type(leaves_[*label]) && !is_text(leaves_[*label]))
      return wrong_kind("--label", *label, "a number or a text is expected");
    if (key && (leaves_[*key].lists > 0 || !(is_integer(leaves_[*key].type) || is_text(leaves_[*key]))))
      return wrong_kind("--key", *key, "a whole number or a text is expected");
    return {};
  }

  Status wrong_kind(std::string_view option, std::size_t leaf, std::string_view why) const {
    return invalid("{}: column '{}' is of type {}: {}", option, printable(leaves_[leaf].name),
                   type_name(leaves_[leaf]), why);
  }

  // Same rules as data index.
  std::optional<std::size_t> default_label() const {
    std::vector<std::size_t> ending;
    for (const std::string_view name :
         {kOwnLabel, std::string_view("label"), std::string_view("image.class.label")}) {
      for (std::size_t i = 0; i < leaves_.size(); ++i) {
        if (leaves_[i].name == name && can_be_label(leaves_[i])) return i;
      }
    }
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].name.ends_with("label") && can_be_label(leaves_[i])) ending.push_back(i);
    }
    return ending.size() == 1 ? std::optional(ending[0]) : std::nullopt;
  }

  // A pattern does not select them.
  bool is_label_or_key(std::size_t leaf) const { return plan_.label == leaf || plan_.key == leaf; }

  // Default columns: the files of a scan without options, else all columns. A text partition key becomes a
  // file only on request.
  Status add_default_columns() {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (is_bytes(leaves_[i]) && !is_label_or_key(i)) STOKER_RETURN_IF_ERROR(add_leaf(i));
    }
    if (!plan_.files.empty() || !plan_.arrays.empty()) return {};
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const bool makes_file = number_type(leaves_[i]) || makes_items(leaves_[i]);
      if (makes_file && !is_label_or_key(i)) STOKER_RETURN_IF_ERROR(add_leaf(i));
    }
    return {};
  }

  Status add_columns(const std::string& pattern) {
    STOKER_ASSIGN_OR_RETURN(found, match_leaves(leaves_, "--columns", pattern));
    for (const std::size_t leaf : found) {
      const bool is_exact = leaves_[leaf].name == pattern;
      if (is_label_or_key(leaf) && !is_exact) continue;
      const bool makes_file =
          number_type(leaves_[leaf]) || is_bytes(leaves_[leaf]) || makes_items(leaves_[leaf]);
      if (!makes_file && !is_exact) continue;  // listed as skipped
      if (!makes_file) return wrong_kind("--columns", leaf, "cannot become a file");
      if (std::find(named_.begin(), named_.end(), leaf) != named_.end()) continue;
      named_.push_back(leaf);
      STOKER_RETURN_IF_ERROR(add_leaf(leaf));
    }
    return {};
  }

  Status add_leaf(std::size_t leaf) {
    used_.insert(leaf);
    const std::string name = extension_for_feature(leaves_[leaf].name);
    const auto type = number_type(leaves_[leaf]);
    if (makes_items(leaves_[leaf])) {
      const bool is_json = is_list_of_texts(leaves_[leaf]);
      plan_.items.push_back({leaf, is_json ? name + ".json" : name, is_json});
      return claim_extension(plan_.items.back().extension, leaves_[leaf].name);
    }
    if (!type) {
      plan_.files.push_back(leaf);
      return claim_extension(plan_.is_own ? leaves_[leaf].name : name, leaves_[leaf].name);
    }
    TablePlan::Array array{
        .extension = name + ".npy", .type = *type, .leaves = {leaf}, .fill = {}, .pad = {}};
    return add_array(std::move(array), leaves_[leaf].name);
  }

  // The lists of one column.
  Status add_lists(const TensorSpec& tensor, const std::string& option) {
    STOKER_ASSIGN_OR_RETURN(found, match_leaves(leaves_, option, tensor.columns[0]));
    if (tensor.columns.size() > 1 || found.size() > 1)
      return invalid("{}: a length in [ ] is for one column of lists", option)
          .cure("use one --tensor for each of them");
    const ParquetLeaf& leaf = leaves_[found[0]];
    if (leaf.lists != 1 || !number_type(leaf))
      return wrong_kind(option, found[0], "a list of numbers is expected (a length in [ ])");
    used_.insert(found[0]);
    TablePlan::Array array{.extension = tensor.name + ".npy",
                           .type = tensor.type.value_or(number_type(leaf).value_or(DType::f64)),
                           .leaves = {found[0]},
                           .fill = {},
                           .length = tensor.length,
                           .pad = {}};
    if (tensor.length->pad) {
      array.pad.resize(size_of(array.type));
      const std::string_view why = parquet::store_number(*tensor.length->pad, array.type, array.pad.data());
      if (!why.empty())
        return invalid("{}: pad={} {} in {}", option, *tensor.length->pad, why,
                       parquet::numpy_name(array.type));
    }
    return add_array(std::move(array), option);
  }

  Status add_tensor(const TensorSpec& tensor) {
    const std::string option = format("--tensor {}", tensor.name);
    if (tensor.length) return add_lists(tensor, option);
    TablePlan::Array array{
        .extension = tensor.name + ".npy", .leaves = {}, .is_vector = true, .fill = {}, .pad = {}};
    for (const std::string& pattern : tensor.columns) {
      STOKER_ASSIGN_OR_RETURN(found, match_leaves(leaves_, option, pattern));
      for (const std::size_t leaf : found) {
        const bool is_exact = leaves_[leaf].name == pattern;
        const bool is_twice = std::find(array.leaves.begin(), array.leaves.end(), leaf) != array.leaves.end();
        const bool is_number = number_type(leaves_[leaf]) && leaves_[leaf].lists == 0;
        if (!is_exact && (is_label_or_key(leaf) || is_twice)) continue;
        if (is_twice) return invalid("{}: '{}' appears twice", option, printable(pattern));
        if (!is_number && leaves_[leaf].lists == 1 && number_type(leaves_[leaf]))
          return wrong_kind(option, leaf, "a number for each row is expected")
              .cure("a length for lists: --tensor {}={}[512,pad=0,cut]", tensor.name, leaves_[leaf].name);
        if (!is_number) return wrong_kind(option, leaf, "a number for each row is expected");
        array.leaves.push_back(leaf);
        used_.insert(leaf);
      }
    }
    if (array.leaves.empty()) return invalid("{}: no column is left", option);
    array.type = number_type(leaves_[array.leaves[0]]).value_or(DType::f64);
    for (const std::size_t leaf : array.leaves)
      array.type = parquet::common_type(array.type, number_type(leaves_[leaf]).value_or(array.type));
    if (tensor.type) array.type = *tensor.type;
    return add_array(std::move(array), option);
  }

  // `what` is its name in messages.
  Status add_array(TablePlan::Array array, const std::string& what) {
    if (options_.missing == MissingValues::fill) {
      std::vector<std::byte> element(size_of(array.type));
      const std::string_view why = parquet::store_number(options_.fill, array.type, element.data());
      const bool is_nullable = std::any_of(array.leaves.begin(), array.leaves.end(),
                                           [&](std::size_t leaf) { return leaves_[leaf].is_nullable; });
      // NaN may be requested for all columns; it is an error for integers only if a value can be missing.
      if (!why.empty() && is_nullable && !options_.fill.is_nan())
        return invalid("--missing: {} {} for '{}' ({})", options_.fill, why, printable(what),
                       parquet::numpy_name(array.type));
      if (why.empty()) array.fill = std::move(element);
    }
    const std::string extension = array.extension;
    plan_.arrays.push_back(std::move(array));
    return claim_extension(extension, what);
  }

  Status claim_extension(const std::string& extension, const std::string& what) {
    if (extensions_.insert(extension).second) return {};
    return invalid("column '{}': a sample has another file '{}' already", printable(what),
                   printable(extension))
        .cure("--columns with only one of them");
  }

  Leaves leaves_;
  Leaves own_;  // of the file itself
  const TableOptions& options_;
  TablePlan plan_;
  std::set<std::size_t> used_;
  std::vector<std::size_t> named_;
  std::set<std::string> extensions_;
};

}  // namespace

std::vector<std::size_t> TablePlan::leaves() const {
  std::set<std::size_t> all(files.begin(), files.end());
  for (const Array& array : arrays) all.insert(array.leaves.begin(), array.leaves.end());
  for (const Items& one : items) all.insert(one.leaf);
  if (label) all.insert(*label);
  if (key) all.insert(*key);
  return {all.begin(), all.end()};
}

Result<TablePlan> plan_table(Leaves leaves, std::size_t first_partition, const TableOptions& options) {
  return Planner(leaves, first_partition, options).plan();
}

}  // namespace stoker::sources
