// `stoker data pull SOURCE FOLDER`: docs/commands/data-pull.md
#include "cli/commands.h"
#include "cli/data/transfer_arguments.h"
#include "transfer/location.h"

namespace stoker::cli {

int data_pull(std::span<const std::string> words, Output& out) {
  TransferArguments choice{.command = "data pull"};
  Arguments arguments("data pull", "Copy a dataset from a host or folder to a folder, verified.");
  arguments.positional("SOURCE", &choice.source, "HOST:PATH or a folder: the dataset");
  arguments.positional("FOLDER", &choice.target, "Folder on this machine; it becomes the dataset");
  choice.declare(arguments);
  arguments.example("stoker data pull login.cluster:data/photos-s photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto target = transfer::parse_location(choice.target, "");
  if (target.ok() && target->host)
    return out.fail(
        invalid("data pull: {}: is on a host", target->text)
            .cure("stoker data push {} {}", shell_quote(choice.source), shell_quote(choice.target)));
  return run_transfer(choice, out);
}

}  // namespace stoker::cli
