#include "slurm/script/task_range.h"

#include <limits>

#include "stoker/text.h"

namespace stoker::slurm {

std::optional<TaskRange> read_task_range(std::string_view piece) {
  TaskRange range;
  piece = trim(piece);
  const std::size_t colon = piece.find(':');
  if (colon != std::string_view::npos &&
      (!parse_number(piece.substr(colon + 1), &range.step) || range.step == 0))
    return std::nullopt;
  piece = piece.substr(0, colon);
  const std::size_t dash = piece.find('-');
  if (!parse_number(piece.substr(0, dash), &range.first)) return std::nullopt;
  range.last = range.first;
  if (dash != std::string_view::npos && !parse_number(piece.substr(dash + 1), &range.last))
    return std::nullopt;
  const bool is_range = range.first <= range.last && range.last <= std::numeric_limits<std::uint32_t>::max();
  return is_range ? std::optional(range) : std::nullopt;
}

}  // namespace stoker::slurm
