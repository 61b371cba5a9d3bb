// Reads the points of a file with one of the readers of this folder, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/points/points.h"
#include "stoker/status.h"

namespace stoker::observe {

struct Reading {
  std::vector<std::string> points;  ///< as lines of a file of points
  Status status;                    ///< the last error
};

/// The file arrives in pieces of this size.
template <typename Reader>
Reading read_in_pieces(std::string_view bytes, std::size_t piece) {
  Reading reading;
  Reader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const Status status = reader.feed(bytes.substr(at, piece), [&](const record::PointLine& point) {
      std::string line;
      record::append_point(point, &line);
      reading.points.push_back(line);
    });
    if (!status.ok()) reading.status = status;
  }
  return reading;
}

}  // namespace stoker::observe
