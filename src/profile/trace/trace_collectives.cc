#include "profile/trace/trace_collectives.h"

#include <algorithm>
#include <limits>

#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::profile {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t count_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  return found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

int small_of(const Json& object, const char* key) {
  return static_cast<int>(std::min<std::uint64_t>(count_of(object, key), 1u << 30));
}

// Elements of the inputs of a span of gloo: the product of the dimensions, summed over the tensors.
std::uint64_t elements_of(const Json& dims) {
  if (!dims.is_array() || dims.empty()) return 0;
  if (std::ranges::any_of(dims, [](const Json& each) { return each.is_array(); })) {
    std::uint64_t sum = 0;
    for (const Json& each : dims)
      sum += std::min(elements_of(each), std::numeric_limits<std::uint64_t>::max() - sum);
    return sum;
  }
  std::uint64_t product = 1;
  for (const Json& each : dims) {
    if (!each.is_number_unsigned() || __builtin_mul_overflow(product, each.get<std::uint64_t>(), &product))
      return 0;
  }
  return product;
}

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)": "AllReduce".
std::string operation_of_kernel(std::string_view name) {
  const std::size_t at = name.find("Kernel_");
  if (at >= name.size()) return "collective";
  const std::string_view rest = name.substr(at + 7);
  return operation_name(rest.substr(0, rest.find_first_of("_(")));
}

CollectiveKind kind_of_kernel_args(std::string_view name, const Json& args) {
  CollectiveKind kind;
  const std::string listed = text_of(args, "Collective name");
  kind.operation = listed.empty() ? operation_of_kernel(name) : operation_name(listed);
  kind.element = text_of(args, "dtype");
  kind.group = text_of(args, "Process Group Description");
  if (kind.group.empty()) kind.group = text_of(args, "Process Group OperationName");
  kind.ranks = small_of(args, "Group size");
  // Of the two, an all-gather has the data of all ranks in its output, a reduce-scatter in its input.
  const std::uint64_t elements = std::max(count_of(args, "In msg nelems"), count_of(args, "Out msg nelems"));
  kind.bytes = collective_bytes("", elements, element_bytes(kind.element), 0);
  return kind;
}

CollectiveKind kind_of_host_args(std::string_view name, const Json& args, const TraceInfo& info) {
  CollectiveKind kind;
  const std::string_view first = name.substr(0, name.find(' '));  // "all-reduce float32 [272474]"
  kind.operation = operation_name(first);
  if (info.groups == 1) kind.ranks = info.world_size;
  kind.bytes = count_of(args, "bytes");
  if (kind.bytes > 0) return kind;
  const auto types = args.find("Input type");
  if (types != args.end() && types->is_array() && !types->empty() && types->front().is_string())
    kind.element = types->front().get<std::string>();
  const auto dims = args.find("Input Dims");
  const std::uint64_t elements = dims == args.end() ? 0 : elements_of(*dims);
  kind.bytes = collective_bytes(kind.operation, elements, element_bytes(kind.element), kind.ranks);
  return kind;
}

}  // namespace

TraceInfo parse_distributed_info(std::string_view json) {
  TraceInfo info;
  const Json object = parse_json<Json>(json);
  if (!object.is_object()) return info;
  if (object.contains("rank") && object["rank"].is_number_unsigned()) info.rank = small_of(object, "rank");
  info.world_size = small_of(object, "world_size");
  info.groups = small_of(object, "pg_count");
  return info;
}

CollectiveKind collective_of(const TraceEvent& event, const TraceInfo& info) {
  Json args = parse_json<Json>(event.args);
  if (!args.is_object()) args = Json::object();
  CollectiveKind kind = event.category == "kernel" ? kind_of_kernel_args(event.name, args)
                                                   : kind_of_host_args(event.name, args, info);
  for (std::string* text : {&kind.operation, &kind.element, &kind.group}) *text = clipped(*text, 64);
  return kind;
}

}  // namespace stoker::profile
