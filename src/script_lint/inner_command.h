// Finds the program that a command starts: word 4 of "srun -N 2 python". Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::script_lint {

/// srun, mpirun and similar programs, which start tasks of the job.
bool is_launcher(std::string_view program);

/// The index of the command that `words` (a program and its arguments) starts, after its options: 1 of
/// {"nohup", "python"}; nothing if it starts none.
std::optional<std::size_t> inner_command(const std::string& program, const std::vector<std::string>& words);

}  // namespace stoker::script_lint
