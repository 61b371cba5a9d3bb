// Rules for file systems: quotas, full disks, lost servers.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kFileRules[] = {
    {"quota-exceeded", root, "isk quota exceeded\nEDQUOT", "",
     "the quota is exhausted: bytes or number of files",
     "delete unneeded files or write to scratch; `stoker data pack` packs many small files",
     "lfs quota -u $USER /path; quota -s; df -i",
     "OSError: [Errno 122] Disk quota exceeded: '/users/ada/ckpt.pt'", "open-mmlab/mmdetection#12069"},
    {"write-incomplete", root,
     "(below torch.save)\nrote only \nPytorchStreamWriter failed\nenforce fail at "
     "inline_container\nrequested and "
     "\nShort write\n"
     "short write",
     R"((?:PytorchStreamWriter failed writing [^:]*(?:: file write failed)?$|inline_container\.cc:\d+\] ?\.? ?unexpected pos \d+ vs \d+|^OSError: \d+ requested and \d+ written|[Ss]hort write\b|[Ww]rote only \d+ of \d+ bytes|iostream error \(below torch\.save\)))",
     "a file could not be written completely: the disk or the quota is full, or the file reached `ulimit -f`",
     "delete unneeded files or write to a different disk; `ulimit -f unlimited` if that limit is set",
     "df -h .; df -i .; quota -s; ulimit -f",
     "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 64 vs 0\n"
     "RuntimeError: PytorchStreamWriter failed writing file data/2: file write failed\n"
     "OSError: 500 requested and 120 written\n"
     "RuntimeError: basic_ios::clear: iostream error (below torch.save)",
     "pytorch/pytorch#84412; source of NumPy, multiarray/convert.c", kScriptEnds, kFitsSeveral},
    {"disk-full", root, "No space left on device\nENOSPC",
     R"((?:No space left on device(?:: '([^']*)')?|ENOSPC))", "the disk is full: {1}",
     "delete unneeded files, write checkpoints to a different disk, or keep fewer of them", "df -h; df -i",
     "OSError: [Errno 28] No space left on device: '/tmp/a.pt'", "pytorch/pytorch#84412"},
    {"stale-file", root, "tale file handle\ntale NFS file handle\nESTALE", "",
     "an open file was replaced, or its server restarted", "open it again; replace files with rename", "",
     "OSError: [Errno 116] Stale file handle: '/nfs/a.csv'", "huggingface/accelerate#1204"},
    {"file-server-gone", root,
     "Transport endpoint\nInput/output error\n[Errno 5]\n[Errno 108]\nRemote I/O error\nHost is down",
     R"((Transport endpoint is not connected|Transport endpoint is shut down|Cannot send after transport endpoint shutdown|^[\w./-]+: .*[/'‘].*: Input/output error|Remote I/O error|Host is down)|\[Errno 5\] (Input/output error))",
     "the file system failed on that node: {1}{2}",
     "leave that node out (`--exclude={node}`) and inform the administrators", "",
     "OSError: [Errno 5] Input/output error: '/lustre/a.tar'\nOSError: [Errno 108] Cannot send after "
     "transport endpoint shutdown\ncp: error reading '/lustre/a.tar': Input/output error",
     "source of Linux, errno.h"},
    {"read-only-disk", root, "Read-only file system", R"(Read-only file system(?:: '?([^']*)'?)?)",
     "the file system is read-only: {1}", "use a different folder: scratch, or the node-local disk", "",
     "OSError: [Errno 30] Read-only file system: '/usr/share/a'", "apptainer/singularity#6173"},
    {"name-too-long", root, "File name too long", "", "a file name is too long for the file system",
     "use shorter names for runs and parameters", "", "OSError: [Errno 36] File name too long: 'a'",
     "huggingface/datasets#2096"},
    {"database-locked", root, "database is locked", "",
     "a different process holds a lock on a SQLite database",
     "use one writer, or wait longer (`sqlite3.connect(FILE, timeout=60)`); no SQLite on NFS or Lustre", "",
     "sqlite3.OperationalError: database is locked", "source of SQLite, main.c"},
    {"database-not-opened", root, "unable to open database file", "",
     "SQLite cannot open its database file {frame}: its folder does not exist, or may not be written",
     "create the folder, or correct the path (`sqlite:////absolute/path.db`)", "ls -ld FOLDER",
     "sqlite3.OperationalError: unable to open database file", "source of SQLite, main.c"},
    {"file-too-large", root, "File too large\nFile size limit exceeded", "",
     "a file reached the size limit of the process or of its file system",
     "`ulimit -f unlimited` before the program, or write smaller files", "ulimit -f",
     "OSError: [Errno 27] File too large\njob.sh: line 4:   812 File size limit exceeded  cp a b",
     "source of glibc, errlist"},
    {"hdf5-locked", root, "unable to lock file", R"(unable to lock file, errno = 11\b)",
     "another process has the HDF5 file open, and holds its lock {frame}",
     "close it there (`fuser -v FILE` names the process), or give each writer its own file; for reading "
     "`export HDF5_USE_FILE_LOCKING=FALSE`",
     "",
     "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, errno = 11, error "
     "message = 'Resource temporarily unavailable')",
     "h5py/h5py#1101"},
    {"output-blocks", root, "write could not complete without blocking", "",
     "the program writes faster than the reader of its pipe reads, and the pipe does not block {frame}",
     "write to a file, or make it block: `os.set_blocking(1, True)`", "",
     "BlockingIOError: [Errno 11] write could not complete without blocking",
     "source of CPython, bufferedio.c"},
    {"file-locking", root, "unable to lock file\nNo locks available",
     R"((unable to lock file|No locks available))",
     "the file system refuses a lock, or another process holds it: {1}",
     "set `HDF5_USE_FILE_LOCKING=FALSE` for reading", "",
     "OSError: [Errno 37] Unable to open file (unable to lock file, errno = 37)\nflock: 9: No locks "
     "available",
     "h5py/h5py#1101"},
    {"tfrecord-damaged", root, "corrupted record at\ntruncated record at",
     R"((?:corrupted|truncated) record at (\d+))", "a TFRecord file is damaged: its record at byte {1}",
     "copy or write it again; `tf.data.Dataset.ignore_errors` skips such records", "",
     "truncated record at 69948' failed with Read less bytes than requested\n"
     "corrupted record at 8125\ntensorflow.python.framework.errors_impl.DataLossError: {{function_node "
     "__wrapped__IteratorGetNext}} corrupted record at 0 [Op:IteratorGetNext]",
     "source of TensorFlow, record_reader.cc"},
    {"hdf5-damaged", root, "truncated file: eof\nfile signature not found\nbad object header",
     R"((truncated file: eof[^)]*|file signature not found|bad object header))",
     "an HDF5 file is truncated or invalid ({1})", "copy or write it again", "",
     "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
     "h5py/h5py#1176"},
    {"no-zip-file", root, "BadZipFile: ", R"(BadZipFile: (?:File is not a zip file|Bad magic number[\w ]*))",
     "the file is no zip archive, or was cut off {frame}: a failed download, an error page, or a pointer of "
     "Git "
     "LFS",
     "`file FILE` shows what it is; download or copy it again", "file FILE",
     "zipfile.BadZipFile: File is not a zip file", "source of CPython, zipfile.py", kScriptEnds,
     kFitsSeveral},
    {"archive-damaged", root,
     "Unexpected EOF in archive\nnot in gzip format\nunexpected end of "
     "data\nReadError\nBadZipFile\nend-of-stream "
     "marker",
     R"((Unexpected EOF in archive|not in gzip format|tarfile\.ReadError: .*|BadZipFile: .*|unexpected end of data|ended before the end-of-stream marker))",
     "an archive is truncated or damaged: {1}", "copy or pack it again; compare `sha256sum` with the source",
     "stoker data verify DATASET",
     "tar: Unexpected EOF in archive\ntarfile.ReadError: unexpected end of data\nzipfile.BadZipFile: Bad "
     "CRC-32 "
     "for file 'a'\nEOFError: Compressed file ended before the end-of-stream marker was reached",
     "webdataset/webdataset#129"},
    {"tool-file-missing", root,
     "No such file or directory\nCannot open\nannot stat\nNot a directory\nPermission denied\ncannot find or "
     "open",
     R"(^(?:tar|cp|mv|rsync|unzip|cat|ls|rm|cd|source|bash|sh|python3?|mkdir|ln|wc|head|tail|sort|grep|awk|gawk|mawk|sed|cut|paste|join|uniq|diff|cmp|gzip|gunzip|zcat|bzip2|xz|zstd|find|chmod|chown|touch|stat|du|md5sum|sha\d+sum|split|tee|dd|install|scp|xargs|less|file|source|readlink|realpath)(?: \((?:child|[\w ]+)\))?(?:: line \d+)?: +(?:\[\w+\] )?(?:fatal: )?(?:(?:cannot|can't|failed to|link_stat|change_dir)(?: find or)? ?(?:stat|access|remove|open|read|touch|move|overwrite|opendir|create (?:\w+ )?\w+|change \w+ of)?(?: file| directory| input file)? ?)?['"`‘]?([^'"’:,]*?)['"’]?(?:(?: for \w+)?(?::| failed:| \() ?(?:Cannot open: )?(No such file or directory|Not a directory|Permission denied)|, ))",
     "a command of the script cannot use {1}: {2}",
     "use a path that exists on the compute node, not only on the login node", "stoker check {started_from}",
     "tar: data.tar: Cannot open: No such file or directory\ncp: cannot stat 'data': No such file or "
     "directory\n"
     "tar (child): data.tgz: Cannot open: No such file or directory\nwc: S3.fq: No such file or directory\n"
     "unzip:  cannot find or open a.zip, a.zip.zip or a.zip.ZIP.\n"
     "rsync: [sender] link_stat \"/data/a\" failed: No such file or directory (2)\n"
     "awk: fatal: cannot open file `a.txt' for reading: No such file or directory",
     "source of GNU coreutils and tar", kScriptContinues},
};

}  // namespace

std::span<const FailureRule> file_rules() { return kFileRules; }

}  // namespace stoker::diagnose
