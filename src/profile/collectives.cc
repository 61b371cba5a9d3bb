#include "profile/collectives.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "stoker/text.h"

namespace stoker::profile {
namespace {

// Letters and digits in lower case: "_allgather_base_" becomes "allgatherbase".
std::string bare(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) text += c;
  }
  return text;
}

struct OperationName {
  std::string_view begin;
  std::string_view name;
};
// Longer beginnings first.
constexpr OperationName kOperations[] = {
    {"allreduce", "all-reduce"},
    {"allgather", "all-gather"},
    {"allgatherbase", "all-gather"},
    {"reducescatter", "reduce-scatter"},
    {"alltoall", "all-to-all"},
    {"broadcast", "broadcast"},
    {"barrier", "barrier"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"sendrecv", "send-receive"},
    {"send", "send"},
    {"recv", "receive"},
    {"reduce", "reduce"},
};

struct ElementSize {
  std::string_view name;
  int bytes;
};
constexpr ElementSize kElements[] = {
    {"float32", 4},    {"float", 4},      {"fp32", 4},       {"float16", 2},      {"half", 2},
    {"fp16", 2},       {"bfloat16", 2},   {"bf16", 2},       {"float64", 8},      {"double", 8},
    {"int64", 8},      {"long", 8},       {"longint", 8},    {"uint64", 8},       {"int32", 4},
    {"int", 4},        {"uint32", 4},     {"int16", 2},      {"short", 2},        {"int8", 1},
    {"char", 1},       {"uint8", 1},      {"byte", 1},       {"bool", 1},         {"unsignedchar", 1},
    {"signedchar", 1}, {"float8e4m3", 1}, {"float8e5m2", 1}, {"float8e4m3fn", 1},
};

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

// The share of the bytes that one link carries.
double bus_factor(std::string_view operation, int ranks) {
  const double n = ranks;
  if (operation == "all-reduce") return 2 * (n - 1) / n;
  if (operation == "all-gather" || operation == "reduce-scatter" || operation == "all-to-all")
    return (n - 1) / n;
  return 1;
}

}  // namespace

std::string operation_name(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  const std::string text = bare(colon == std::string_view::npos ? name : name.substr(colon + 1));
  for (const OperationName& each : kOperations) {
    if (text.starts_with(each.begin)) return std::string(each.name);
  }
  return std::string(name);
}

int element_bytes(std::string_view element) {
  const std::string text = bare(element);
  for (const ElementSize& each : kElements) {
    if (text == each.name) return each.bytes;
  }
  return 0;
}

std::uint64_t collective_bytes(std::string_view operation, std::uint64_t count, int element_bytes,
                               int ranks) {
  std::uint64_t bytes = saturating_product(count, static_cast<std::uint64_t>(std::max(0, element_bytes)));
  if ((operation == "all-gather" || operation == "reduce-scatter") && ranks > 1)
    bytes = saturating_product(bytes, static_cast<std::uint64_t>(ranks));
  return bytes;
}

std::optional<double> CollectiveRow::algorithm_bandwidth() const {
  if (timed == 0 || shortest <= 0 || kind.bytes == 0) return std::nullopt;
  return 1e9 * static_cast<double>(kind.bytes) / static_cast<double>(shortest);
}

std::optional<double> CollectiveRow::bus_bandwidth() const {
  const auto bandwidth = algorithm_bandwidth();
  if (!bandwidth || kind.ranks < 2) return std::nullopt;
  return *bandwidth * bus_factor(kind.operation, kind.ranks);
}

void CollectiveTable::add(CollectiveKind kind, std::optional<Nanos> duration, std::uint64_t count) {
  if (rows_.size() >= kMostKinds && !rows_.contains(kind))
    kind = {.operation = rows_.size() < 2 * kMostKinds ? kind.operation : "", .element = "", .group = ""};
  CollectiveRow& row = rows_[kind];
  row.kind = std::move(kind);
  row.count += count;
  if (!duration || *duration < 0) return;
  row.shortest = row.timed == 0 ? *duration : std::min(row.shortest, *duration);
  row.timed += count;
  row.total += *duration;
}

std::vector<CollectiveRow> CollectiveTable::rows() const {
  std::vector<CollectiveRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [kind, row] : rows_) rows.push_back(row);
  const auto moved = [](const CollectiveRow& row) {
    return static_cast<double>(row.kind.bytes) * static_cast<double>(row.count);
  };
  std::ranges::stable_sort(rows, [&](const CollectiveRow& a, const CollectiveRow& b) {
    return a.total != b.total ? a.total > b.total : moved(a) > moved(b);
  });
  return rows;
}

}  // namespace stoker::profile
