// Rules over file systems: quotas, full disks, servers that went away.
#include "explain/failure/rule.h"

namespace stoker::explain {
namespace {

using enum Weight;

constexpr FailureRule kFileRules[] = {
    {"quota-exceeded", root, "isk quota exceeded\nEDQUOT", "",
     "the quota is used up: bytes, or the number of files",
     "remove what is not needed, or write to scratch; many small files into one archive: stoker data pack",
     "lfs quota -u $USER /path; quota -s; df -i",
     "OSError: [Errno 122] Disk quota exceeded: '/users/ada/ckpt.pt'", "open-mmlab/mmdetection#12069"},
    {"disk-full", root,
     "No space left on device\nENOSPC\nPytorchStreamWriter failed\nenforce fail at inline_container",
     R"((?:No space left on device(?:: '([^']*)')?|ENOSPC|PytorchStreamWriter failed|inline_container\.cc:\d+\] ?\.? ?unexpected pos))",
     "the disk is full: {1}",
     "df -h and df -i tell which; checkpoints to another disk, fewer of them (checkpoint.keep)",
     "df -h; df -i",
     "OSError: [Errno 28] No space left on device: '/tmp/a.pt'\nRuntimeError: PytorchStreamWriter failed "
     "writing file data/2: file write failed\nRuntimeError: [enforce fail at inline_container.cc:595] . "
     "unexpected pos 64 vs 0",
     "pytorch/pytorch#84412"},
    {"stale-file", root, "tale file handle\ntale NFS file handle\nESTALE", "",
     "a file was replaced or its server restarted while it was open",
     "open it again; replace files by renaming a new one", "",
     "OSError: [Errno 116] Stale file handle: '/nfs/a.csv'", "huggingface/accelerate#1204"},
    {"file-server-gone", root,
     "Transport endpoint\nInput/output error\n[Errno 5]\n[Errno 108]\nRemote I/O error\nHost is down",
     R"((Transport endpoint is not connected|Transport endpoint is shut down|Cannot send after transport endpoint shutdown|\[Errno 5\] Input/output error|^[\w./-]+: .*[/'‘].*: Input/output error|Remote I/O error|Host is down))",
     "the file system failed on that node: {1}",
     "again on another node: --exclude=NODE, and a word to the administrators", "",
     "OSError: [Errno 5] Input/output error: '/lustre/a.tar'\nOSError: [Errno 108] Cannot send after "
     "transport endpoint shutdown\ncp: error reading '/lustre/a.tar': Input/output error",
     "source of Linux, errno.h"},
    {"read-only-disk", root, "Read-only file system", R"(Read-only file system(?:: '?([^']*)'?)?)",
     "the file system can only be read there: {1}", "another folder: scratch, or the node's own disk", "",
     "OSError: [Errno 30] Read-only file system: '/usr/share/a'", "apptainer/singularity#6173"},
    {"name-too-long", root, "File name too long", "", "a file's name is too long for the file system",
     "shorter names of runs and parameters", "", "OSError: [Errno 36] File name too long: 'a'",
     "huggingface/datasets#2096"},
    {"file-locking", root, "unable to lock file\nNo locks available\ndatabase is locked",
     R"((unable to lock file|No locks available|database is locked))",
     "a lock is refused by the file system, or held by another process: {1}",
     "HDF5_USE_FILE_LOCKING=FALSE for reading; no SQLite on NFS or Lustre", "",
     "OSError: [Errno 11] Unable to open file (unable to lock file, errno = 11)\nsqlite3.OperationalError: "
     "database is locked",
     "h5py/h5py#1101"},
    {"hdf5-damaged", root, "truncated file: eof\nfile signature not found\nbad object header",
     R"((truncated file: eof.*|file signature not found|bad object header))",
     "an HDF5 file is cut off or none ({1})", "copy or write it again", "",
     "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
     "h5py/h5py#1176"},
    {"archive-damaged", root,
     "Unexpected EOF in archive\nnot in gzip format\nunexpected end of data\nReadError\nBadZipFile",
     R"((Unexpected EOF in archive|not in gzip format|tarfile\.ReadError: .*|BadZipFile: .*|unexpected end of data))",
     "an archive is cut off or damaged: {1}", "copy or pack it again; sha256sum against the source",
     "stoker data verify DATASET",
     "tar: Unexpected EOF in archive\ntarfile.ReadError: unexpected end of data\nzipfile.BadZipFile: File is "
     "not a zip file",
     "webdataset/webdataset#129"},
    {"tool-file-missing", root, "No such file or directory\nCannot open\nannot stat\nNot a directory",
     R"(^(?:tar|cp|mv|rsync|unzip|cat|ls|rm|cd|source|bash|sh|python3?|mkdir|ln)(?:: line \d+)?: (?:cannot (?:stat|access|remove|open|create \w+) )?['"`‘]?([^'"’:]*)['"’]?: (?:Cannot open: )?(No such file or directory|Not a directory|Permission denied))",
     "{1}: {2}", "a path that the node sees; it is another machine than the one you are on",
     "stoker check SCRIPT",
     "tar: data.tar: Cannot open: No such file or directory\ncp: cannot stat 'data': No such file or "
     "directory",
     "source of GNU coreutils and tar", kScriptGoesOn},
};

}  // namespace

std::span<const FailureRule> file_rules() { return kFileRules; }

}  // namespace stoker::explain
