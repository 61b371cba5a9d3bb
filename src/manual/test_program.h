// A program of three commands, with texts that a shell or troff would interpret.
#pragma once

#include "manual/command.h"

namespace stoker::manual {

inline constexpr const char* kHostileText = "It's \"$HOME\" `id` \\ [x]: y";

inline CommandText run_command() {
  CommandText run{.name = "run", .headline = "Run a job", .summary = "Run a job here."};
  run.arguments = {{.name = "JOB", .what = "Job file", .is_required = true, .value = hint_of("JOB")}};
  run.options = {
      {.names = "--json", .what = "Print JSON"},
      {.names = "-j,--jobs", .value_name = "N", .what = "Use N threads", .shown_default = "2"},
      {.names = "--set", .value_name = "KEY=VALUE", .what = "Override a key", .is_repeatable = true}};
  run.examples = {"stoker run job.yaml"};
  return run;
}

inline CommandText pack_command() {
  CommandText pack{.name = "data pack", .headline = kHostileText, .summary = ".hidden → shards."};
  pack.arguments = {{.name = "SOURCE", .what = "Images", .is_required = true, .value = hint_of("SOURCE")},
                    {.name = "OUT[:DIR]", .what = "Output", .value = hint_of("DIR")}};
  pack.options = {{.names = "--format",
                   .value_name = "KIND",
                   .what = kHostileText,
                   .value = {.choices = {"tar", "o'dd $(id)"}}}};
  return pack;
}

inline CommandText wait_command() {
  CommandText wait{.name = "data wait", .headline = "Wait", .summary = "Wait for runs."};
  wait.arguments = {{.name = "RUN|DIR", .what = "Run", .is_list = true, .value = hint_of("RUN|DIR")}};
  wait.rest = ArgumentText{.name = "COMMAND", .what = "Command", .is_list = true, .value = hint_of("FILE")};
  wait.options = {
      {.names = "--runs", .value_name = "DIR", .what = "Folder with the runs", .value = hint_of("DIR")}};
  return wait;
}

inline ProgramText test_program() {
  return {.version = "1.2", .commands = {run_command(), pack_command(), wait_command()}};
}

}  // namespace stoker::manual
