// Reads the reference values of tests/golden for the tests of this folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json/json.h"

namespace stoker::train {

inline nlohmann::json golden(const std::string& file) {
  // The build folder is inside the checkout, so tests/golden is next to one of the program's parents.
  Path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!path_exists(folder / "tests/golden" / file) && folder.has_relative_path())
    folder = folder.parent_path();
  const auto text = read_file(folder / "tests/golden" / file);
  EXPECT_TRUE(text.ok()) << text.status().to_string();
  return text.ok() ? parse_json<nlohmann::json>(*text) : nlohmann::json();
}

/// The row of this name in a file's `rows`.
inline nlohmann::json golden_row(const nlohmann::json& reference, std::string_view name) {
  for (const nlohmann::json& row : reference.at("rows")) {
    if (row.contains("name") && row.at("name") == name) return row;
  }
  ADD_FAILURE() << "no golden row '" << name << "'";
  return {};
}

}  // namespace stoker::train
