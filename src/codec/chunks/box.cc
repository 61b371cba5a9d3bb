#include "codec/chunks/box.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stoker/text.h"

namespace stoker::codec {

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;

struct Dimension {
  std::uint64_t size = 1;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

// A copy with neighbouring dimensions joined where both sides are contiguous over them.
struct CopyPlan {
  std::array<Dimension, kMaxDimensions> dimensions;
  std::size_t count = 0;
};

CopyPlan make_copy_plan(std::span<const std::uint64_t> size, std::span<const std::uint64_t> from,
                        std::span<const std::uint64_t> to) {
  CopyPlan plan;
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (size[d] == 1) continue;
    const Dimension next{size[d], from[d], to[d]};
    if (plan.count > 0) {
      Dimension& last = plan.dimensions[plan.count - 1];
      if (last.from == next.from * next.size && last.to == next.to * next.size) {
        last = {last.size * next.size, next.from, next.to};
        continue;
      }
    }
    plan.dimensions[plan.count++] = next;
  }
  return plan;
}

template <std::size_t Bytes>
void copy_elements(const std::byte* from, std::byte* to, const Dimension& d) {
  for (std::uint64_t i = 0; i < d.size; ++i) {
    std::memcpy(to, from, Bytes);
    from += d.from;
    to += d.to;
  }
}

void copy_line(const std::byte* from, std::byte* to, const Dimension& d, std::size_t bytes) {
  if (d.from == bytes && d.to == bytes) {
    std::memcpy(to, from, d.size * bytes);
    return;
  }
  switch (bytes) {
    case 1:
      return copy_elements<1>(from, to, d);
    case 2:
      return copy_elements<2>(from, to, d);
    case 4:
      return copy_elements<4>(from, to, d);
    case 8:
      return copy_elements<8>(from, to, d);
    default:
      for (std::uint64_t i = 0; i < d.size; ++i) std::memcpy(to + i * d.to, from + i * d.from, bytes);
  }
}

}  // namespace

std::string shape_text(const Extents& shape) {
  std::vector<std::string> sizes;
  for (const std::uint64_t size : shape) sizes.push_back(std::to_string(size));
  return join(sizes, " x ");
}

std::optional<std::uint64_t> product(std::span<const std::uint64_t> sizes, std::uint64_t unit) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  std::uint64_t result = unit;
  for (const std::uint64_t size : sizes) {
    if (__builtin_mul_overflow(result, size, &result) || result >= kMaxBytes) return std::nullopt;
  }
  return result < kMaxBytes ? std::optional(result) : std::nullopt;
}

Extents c_strides(std::span<const std::uint64_t> shape, std::uint64_t element_bytes) {
  Extents strides(shape.size());
  std::uint64_t bytes = element_bytes;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = bytes;
    bytes *= shape[d];
  }
  return strides;
}

void copy_box(StridedView<const std::byte> from, StridedView<std::byte> to,
              std::span<const std::uint64_t> size, std::size_t element_bytes) {
  if (std::find(size.begin(), size.end(), 0) != size.end()) return;
  const CopyPlan plan = make_copy_plan(size, from.strides, to.strides);
  if (plan.count == 0) {
    std::memcpy(to.data, from.data, element_bytes);
    return;
  }
  const Dimension& line = plan.dimensions[plan.count - 1];
  std::array<std::uint64_t, kMaxDimensions> at{};
  const std::byte* source = from.data;
  std::byte* target = to.data;
  for (;;) {
    copy_line(source, target, line, element_bytes);
    std::size_t d = plan.count - 1;
    for (; d > 0; --d) {
      const Dimension& outer = plan.dimensions[d - 1];
      source += outer.from;
      target += outer.to;
      if (++at[d - 1] < outer.size) break;
      source -= outer.from * outer.size;
      target -= outer.to * outer.size;
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void fill_with(std::span<const std::byte> element, std::span<std::byte> out) {
  if (out.empty()) return;
  const bool is_uniform =
      std::all_of(element.begin(), element.end(), [&](std::byte b) { return b == element[0]; });
  if (is_uniform) {
    std::memset(out.data(), static_cast<int>(element[0]), out.size());
    return;
  }
  std::memcpy(out.data(), element.data(), element.size());
  for (std::size_t done = element.size(); done < out.size();) {
    const std::size_t more = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), more);
    done += more;
  }
}

std::uint64_t linear_index(std::span<const std::uint64_t> at, std::span<const std::uint64_t> counts) {
  std::uint64_t index = 0;
  for (std::size_t d = 0; d < at.size(); ++d) index = index * counts[d] + at[d];
  return index;
}

}  // namespace stoker::codec
