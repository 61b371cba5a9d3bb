#include "stoker/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace stoker::train {

namespace {

void put(std::string& out, std::uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Bounds-checked reader of a rank's serialized metrics.
class SumsReader {
 public:
  explicit SumsReader(std::string_view bytes) : rest_(bytes) {}
  bool read(std::uint64_t* value) {
    if (rest_.size() < sizeof *value) return false;
    std::memcpy(value, rest_.data(), sizeof *value);
    rest_.remove_prefix(sizeof *value);
    return true;
  }
  bool read(std::uint64_t size, std::string_view* text) {
    if (rest_.size() < size) return false;
    *text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view rest_;
};

}  // namespace

void Metrics::add_mean(std::string_view name, double value, double weight) {
  add_ratio(name, value * weight, weight);
}

void Metrics::add_ratio(std::string_view name, double part, double whole) {
  std::vector<double>& sums = means_.try_emplace(std::string(name), std::vector<double>(2, 0)).first->second;
  sums[0] += part;
  sums[1] += whole;
}

std::vector<double>* Metrics::counts_of(std::string_view name, std::size_t size) {
  std::vector<double>& counts =
      counts_.try_emplace(std::string(name), std::vector<double>(size, 0)).first->second;
  return counts.size() == size ? &counts : nullptr;
}

Status Metrics::add_counts(std::string_view name, std::span<const double> counts) {
  std::vector<double>* sums = counts_of(name, counts.size());
  if (sums == nullptr) return invalid("metric '{}': {} counts do not match its size", name, counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) (*sums)[i] += counts[i];
  return {};
}

Status Metrics::add_to_confusion(std::string_view name, std::int64_t row, std::int64_t column,
                                 std::int64_t classes) {
  if (row < 0 || column < 0 || row >= classes || column >= classes) {
    return invalid("metric '{}': prediction {} for class {} is out of range (of {} classes)", name, column,
                   row, classes);
  }
  std::vector<double>* sums = counts_of(name, static_cast<std::size_t>(classes * classes));
  if (sums == nullptr) return invalid("metric '{}': is not a matrix of {} classes", name, classes);
  (*sums)[static_cast<std::size_t>(row * classes + column)] += 1;
  return {};
}

Status Metrics::add_to_histogram(std::string_view name, double value, double low, double high,
                                 std::int64_t bins) {
  std::vector<double>* sums = counts_of(name, static_cast<std::size_t>(bins));
  if (sums == nullptr) return invalid("metric '{}': is not a histogram of {} bins", name, bins);
  if (std::isnan(value)) return invalid("metric '{}': the value is not a number", name);
  const double place = std::clamp((value - low) / (high - low) * static_cast<double>(bins), 0.0,
                                  static_cast<double>(bins - 1));
  (*sums)[static_cast<std::size_t>(place)] += 1;
  return {};
}

double Metrics::value(std::string_view name) const {
  const auto found = means_.find(name);
  if (found == means_.end() || found->second[1] == 0) return std::numeric_limits<double>::quiet_NaN();
  return found->second[0] / found->second[1];
}

std::vector<double> Metrics::counts(std::string_view name) const {
  const auto found = counts_.find(name);
  return found == counts_.end() ? std::vector<double>{} : found->second;
}

std::vector<std::string> Metrics::names() const {
  std::set<std::string> names;
  for (const auto& [name, sums] : means_) names.insert(name);
  for (const auto& [name, sums] : counts_) names.insert(name);
  return {names.begin(), names.end()};
}

std::string Metrics::serialize() const {
  std::string out;
  for (const Sums* items : {&means_, &counts_}) {
    put(out, items->size());
    for (const auto& [name, sums] : *items) {
      put(out, name.size());
      out += name;
      put(out, sums.size());
      out.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
    }
  }
  return out;
}

// Peers run the same program, but lengths are checked nevertheless.
Status Metrics::merge(std::string_view packed, int rank) {
  SumsReader reader(packed);
  for (Sums* items : {&means_, &counts_}) {
    std::uint64_t number = 0;
    if (!reader.read(&number)) return internal("metrics of rank {}: truncated", rank);
    for (; number > 0; --number) {
      std::uint64_t length = 0, count = 0;
      std::string_view name, sums;
      if (!reader.read(&length) || !reader.read(length, &name) || !reader.read(&count) ||
          count > packed.size() || !reader.read(count * sizeof(double), &sums)) {
        return internal("metrics of rank {}: truncated", rank);
      }
      std::vector<double>& mine =
          items->try_emplace(std::string(name), std::vector<double>(count, 0)).first->second;
      if (mine.size() != count) {
        return invalid("metric '{}': {} counts on rank {}, {} on an earlier rank", name, count, rank,
                       mine.size());
      }
      for (std::size_t i = 0; i < count; ++i) {
        double value = 0;
        std::memcpy(&value, sums.data() + i * sizeof value, sizeof value);
        mine[i] += value;
      }
    }
  }
  return {};
}

Result<Metrics::Reduced> Metrics::combine(const std::vector<std::string>& all) {
  Reduced result;
  std::map<std::string, std::vector<std::string>, std::less<>> ranks_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Metrics one;
    STOKER_RETURN_IF_ERROR(one.merge(all[rank], static_cast<int>(rank)));
    for (const std::string& name : one.names()) ranks_of[name].push_back(std::to_string(rank));
    STOKER_RETURN_IF_ERROR(result.metrics.merge(all[rank], static_cast<int>(rank)));
  }
  for (const auto& [name, ranks] : ranks_of) {
    if (ranks.size() == all.size()) continue;
    result.partial.push_back(
        format("'{}' only on rank{} {}", name, ranks.size() > 1 ? "s" : "", join(ranks, ", ")));
  }
  return result;
}

}  // namespace stoker::train
