// `stoker data push DATASET TARGET`: docs/commands/data-push.md
#include "cli/commands.h"
#include "cli/data/transfer_arguments.h"
#include "transfer/location.h"

namespace stoker::cli {

int data_push(std::span<const std::string> words, Output& out) {
  TransferArguments choice{.command = "data push"};
  Arguments arguments("data push", "Copy a dataset to a host or folder, and verify it there.");
  arguments.positional("DATASET", &choice.source, "Dataset folder");
  arguments.positional("TARGET", &choice.target, "HOST:PATH or a folder; it becomes the dataset");
  choice.declare(arguments);
  arguments.example("stoker data push photos-s login.cluster:data/photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto source = transfer::parse_location(choice.source, "");
  if (source.ok() && source->host)
    return out.fail(
        invalid("data push: {}: is on a host", source->text)
            .cure("stoker data pull {} {}", shell_quote(choice.source), shell_quote(choice.target)));
  return run_transfer(choice, out);
}

}  // namespace stoker::cli
