// What the harnesses of trackers' files share: the same points in any cut of the file, and valid names.
#pragma once

#include <string>
#include <string_view>

#include "record/points/points.h"
#include "stoker/status.h"

template <typename Reader>
std::string points_of(std::string_view file, std::size_t piece) {
  std::string points;
  Reader reader;
  const auto sink = [&](const stoker::record::PointLine& point) {
    STOKER_CHECK(stoker::record::check_metric_name(point.metric).ok() && point.step.value_or(0) >= 0);
    stoker::record::append_point(point, &points);
  };
  for (std::size_t at = 0; at < file.size(); at += piece) (void)reader.feed(file.substr(at, piece), sink);
  return points;
}

/// `text` unchanged, and as a file whose checksums are right, so that the fuzzer reaches the records.
template <typename Reader>
void read_in_any_cut(std::string_view text, const std::string& framed) {
  (void)points_of<Reader>(text, 7);
  STOKER_CHECK(points_of<Reader>(framed, 7) == points_of<Reader>(framed, framed.size() + 1));
}
