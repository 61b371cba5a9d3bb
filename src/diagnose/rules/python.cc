// Rules for exceptions of Python and training libraries.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kPythonRules[] = {
    {"module-missing", root, "No module named",
     R"((?:(?:ModuleNotFound|Import)Error: .*|ython[\d.]*: )No module named '?([^'\s]+)'?)",
     "Python finds no module {1} on that node",
     "activate the environment that has it, or install it there: `pip install {1}`",
     "stoker check {started_from}",
     "ModuleNotFoundError: No module named 'torchvision'\n/usr/bin/python3: No module named torch",
     "pytorch/vision#4591"},
    {"circular-import", root, "partially initialized module",
     R"(partially initialized module '([\w.]+)'.*circular import)",
     "module {1} imports itself: files import each other, or your own file has the name of the library {1} "
     "{frame}",
     "rename your file if a library has its name; otherwise move one of the imports into the function that "
     "needs it",
     "",
     "ImportError: cannot import name 'load' from partially initialized module 'data' (most likely due to a "
     "circular import) (/users/ada/data.py)\n"
     "AttributeError: partially initialized module 'torch' has no attribute 'nn' (most likely due to a "
     "circular "
     "import)",
     "source of CPython, moduleobject.c"},
    {"name-not-in-module", root, "cannot import name",
     R"(cannot import name '(\w+)' from '((\w+)[\w.]*)'(?: \([^)]*(?:site-packages|dist-packages|/lib/python3)[^)]*\)|$))",
     "module {2} has no {1}: a different version of the library",
     "compare `pip show {3}` with the requirements of the code: a newer version may have removed or renamed "
     "it, "
     "an older one may lack it",
     "",
     "ImportError: cannot import name 'container_abcs' from 'torch._six' "
     "(/v/lib/python3.11/site-packages/torch/_six.py)",
     "NVIDIA/apex#1048"},
    {"name-not-in-own-file", root, "cannot import name",
     R"(cannot import name '(\w+)' from '([\w.]+)' \((?:([^)]*/[^)]*)|unknown location)\))",
     "module {2} has no {1}: it is[[ the file {3},]] your own, or another version of the library",
     "rename your file or folder if it hides the library {2}; otherwise correct the import, or its version",
     "",
     "ImportError: cannot import name 'load_dataset' from 'datasets' (/users/ada/datasets/__init__.py)\n"
     "ImportError: cannot import name 'load_dataset' from 'datasets' (unknown location)",
     "source of CPython, import.c"},
    {"lfs-pointer", root, "invalid load key, 'v'\ngit-lfs.github.com/spec",
     R"(invalid load key, 'v'|version https://git-lfs\.github\.com/spec)",
     "the file is a pointer of Git LFS in place of its content {frame}", "`git lfs pull` fetches the content",
     "head -3 FILE", "_pickle.UnpicklingError: invalid load key, 'v'.", "source of Git LFS, pointer.go"},
    {"page-for-file", root, "invalid load key, '<'", R"(invalid load key, '<')",
     "the file is a web page in place of a pickle: its download failed {frame}",
     "read the page (`head FILE`), then download the file again with its direct address", "",
     "_pickle.UnpicklingError: invalid load key, '<'.", "source of CPython, _pickle.c"},
    {"checkpoint-unreadable", root,
     "PytorchStreamReader failed\nfailed finding central directory\nunexpected EOF, expected\ninvalid load "
     "key\nRan out of "
     "input\nHeaderTooLarge\nInvalidHeaderDeserialization\nIncompleteMetadata\nUnpicklingError\n"
     "file not fully covered\ninvalid header deserialization\nheader too ",
     R"((PytorchStreamReader failed \w+ \w+(?: \w+)?|failed finding central directory|unexpected EOF, expected \d+ more bytes|invalid load key|Ran out of input|InvalidHeaderDeserialization|MetadataIncompleteBuffer|IncompleteMetadata|incomplete metadata, file not fully covered|file not fully covered|invalid header deserialization|header too small|pickle data was truncated))",
     "a checkpoint or weights file is truncated or invalid ({1})",
     "use an earlier checkpoint; write to a temporary file and rename it", "stoker checkpoint verify FOLDER",
     "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
     "directory\n_pickle.UnpicklingError: invalid load "
     "key, '\\x00'.\nEOFError: Ran out of input\nsafetensors_rust.SafetensorError: Error while deserializing "
     "header: InvalidHeaderDeserialization",
     "pytorch/pytorch#31620"},
    {"weights-only", root, "Weights only load failed", "",
     "torch.load 2.6 and later loads only weights by default",
     "`weights_only=False`, for files that you trust", "",
     "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have "
     "two options",
     "pytorch/pytorch#144763"},
    {"state-dict-prefix", root, "key(s) in state_dict",
     R"re((?:Missing|Unexpected) key\(s\) in state_dict: "(module\.|_orig_mod\.))re",
     "the keys of the checkpoint and of the model differ by the prefix {1}",
     "`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` removes it; DistributedDataParallel "
     "adds "
     "'module.', and torch.compile '_orig_mod.'",
     "stoker checkpoint diff A B",
     "    Unexpected key(s) in state_dict: \"module.fc1.weight\", \"module.fc1.bias\".\n"
     "    Missing key(s) in state_dict: \"_orig_mod.fc1.weight\".",
     "source of PyTorch, module.py"},
    {"state-dict-differs", general,
     "Error(s) in loading state_dict\nMissing key in checkpoint state_dict\nMissing key(s) in state_dict",
     R"((?:Error\(s\) in loading state_dict for (\w+)|Missing key(?:\(s\))? in (?:checkpoint )?state_dict: (\S+)))",
     "the checkpoint belongs to a different model[[ than {1}]][[: {2} is missing]][[, it has {3}]]",
     "use the model settings of the checkpoint; if only the names differ, rename its keys: "
     "DistributedDataParallel for "
     "example adds the prefix 'module.'",
     "stoker checkpoint diff A B",
     "RuntimeError: Error(s) in loading state_dict for ResNet:\n Missing key(s) in state_dict: \"fc.weight\"",
     "pytorch/pytorch#3805"},
    {"settings-unknown-key", root, "Extra inputs are not permitted\nextra fields not permitted",
     R"(ValidationError: \d+ validation errors? for (\w+): (.*(?:Extra inputs are|extra fields) not permitted.*))",
     "the settings of {1} are not valid {frame}: {2}",
     "a name with \"not permitted\" is unknown there: correct its spelling, or remove it", "",
     "pydantic_core._pydantic_core.ValidationError: 1 validation error for Config: overlap: Extra inputs are "
     "not permitted",
     "source of pydantic, errors.py"},
    {"output-folder-missing", root, "(below write)",
     R"(\[Errno 2\] No such file or directory: b?(?:'([^']+)'|\x22([^\x22]+)\x22)(?: -> .*)? \(below write\)$)",
     "the program cannot create {1}{2} {frame}: the folder of that file does not exist",
     "create it before the start, `mkdir -p \"$(dirname {1}{2})\"`, or in the program: `os.makedirs(FOLDER, "
     "exist_ok=True)`",
     "ls -ld \"$(dirname {1}{2})\"",
     "FileNotFoundError: [Errno 2] No such file or directory: 'plots/a.png' (below write)",
     "source of CPython, fileio.c"},
    {"output-parent-missing", root, "Parent directory \nnon-existent directory: '",
     R"re((?:Parent directory (\S.*?) does not exist|Cannot save file into a non-existent directory: '([^']+)'))re",
     "the program cannot write into the folder {1}{2} {frame}: it does not exist",
     "create it before the start, `mkdir -p {1}{2}`, or in the program: `os.makedirs(FOLDER, exist_ok=True)`",
     "ls -ld {1}{2}",
     "RuntimeError: Parent directory out/ckpt does not exist.\n"
     "OSError: Cannot save file into a non-existent directory: 'out/tables'",
     "source of PyTorch, inline_container.cc; source of pandas, io/common.py"},
    {"data-file-missing", root, "[Errno 2]\nforrtl: severe (29)",
     R"((?:\[Errno 2\] No such file or directory: b?(?:'([^']+)'|\x22([^\x22]+)\x22)|\[Errno 2\] .*\bname = '([^']+)', errno = 2|forrtl: severe \(29\): file not found,.* file (\S.*)))",
     "{1}{2}{3}{4} does not exist on that node",
     "use a path that all nodes see, or copy it to each node before the start", "stoker check {started_from}",
     "FileNotFoundError: [Errno 2] No such file or directory: '/local/imagenet/train'\n"
     "FileNotFoundError: [Errno 2] No such file or directory: \"/local/ada's data\"\n"
     "FileNotFoundError: [Errno 2] Unable to open file (unable to open file: name = '/local/a.h5', errno = "
     "2, "
     "error message = 'No such file or directory')\n"
     "forrtl: severe (29): file not found, unit 15, file /scratch/a.sf",
     "pytorch/examples#1098; firemodels/fds#1391"},
    {"file-not-found", root, "FileNotFoundError",
     R"(^(?:\w+\.)*FileNotFoundError(?:: (?:\[Errno 2\] )?(.*[\s./\\].*))?$)",
     "a file was not found[[: {1}]]",
     "check the path: all nodes have to see it, and a relative one starts at the working directory",
     "stoker check {started_from}",
     "FileNotFoundError: Couldn't find any class folder in /data/train.\nFileNotFoundError\n"
     "FileNotFoundError: [Errno 2] No such file or directory",
     "source of torchvision, folder.py"},
    // A bare name may be a file or a key of a library's store.
    {"entry-not-found", general, "FileNotFoundError",
     R"(^(?:\w+\.)*FileNotFoundError: ['\x22]?([^\s./\\'\x22]+)['\x22]?$)",
     "a file or an entry of that name was not found {frame}: {1}",
     "print the names that exist there; a relative path starts at the working directory", "",
     "FileNotFoundError: tp", "source of CPython", kScriptEnds, kFitsSeveral},
    {"permission-denied", root, "[Errno 13]",
     R"(\[Errno 13\] Permission denied: b?(?:'([^']+)'|\x22([^\x22]+)\x22))", "no permission to open {1}{2}",
     "use a different folder or change its mode; `HF_HOME` and `XDG_CACHE_HOME` move caches", "ls -ld {1}{2}",
     "PermissionError: [Errno 13] Permission denied: '/scratch/other/a.pt'\n"
     "PermissionError: [Errno 13] Permission denied: \"/scratch/ada's\"",
     "huggingface/datasets#2065"},
    {"access-refused", root, "PermissionError",
     R"(^(?:\w+\.)*PermissionError(?:: (?:\[Errno \d+\] )?(.*))?$)", "access was refused[[: {1}]]",
     "use a different folder or change its mode; `HF_HOME` and `XDG_CACHE_HOME` move caches", "",
     "PermissionError: [Errno 1] Operation not permitted: '/scratch/other/a.pt'\nPermissionError",
     "source of CPython"},
    {"checkpoint-below-load", ending, "(below torch.load)",
     R"(^(?:\w+\.)*(\w+)(?:: .*)? \(below torch\.load\)$)",
     "torch.load cannot read the file, which is probably truncated or damaged ({1})",
     "use an earlier checkpoint; write to a temporary file and rename it", "stoker checkpoint verify FOLDER",
     "OSError: [Errno 22] Invalid argument (below torch.load)\n"
     "RuntimeError: basic_ios::clear: iostream error (below torch.load)",
     "source of PyTorch, serialization.py"},
    {"loader-worker-lost", ending, "(below torch.utils.data)",
     R"(^(?:ConnectionResetError|ConnectionRefusedError|BrokenPipeError|EOFError)\b.* \(below torch\.utils\.data\)$)",
     "a worker process of the DataLoader died, usually killed for its memory",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "ConnectionResetError: [Errno 104] Connection reset by peer (below torch.utils.data)\n"
     "EOFError (below torch.utils.data)",
     "source of PyTorch, dataloader.py"},
    {"batch-not-rectangular", root, "Unable to create tensor, you should",
     R"(Unable to create tensor, you should(?:.*Perhaps your features \(`([^`]+)`)?)",
     "samples of one batch have different lengths[[: {1}]]",
     "use `padding=True, truncation=True`; for labels a collator that pads them: "
     "`DataCollatorForSeq2Seq(tokenizer)`",
     "",
     "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with "
     "'padding=True' 'truncation=True' to have batched tensors with the same length. Perhaps your features "
     "(`labels` in this case) have excessive nesting (inputs type `list` where type `int` is expected).",
     "source of transformers, tokenization_utils_base.py"},
    {"image-damaged", root, "cannot identify image file\nimage file is truncated\nUnidentifiedImageError",
     R"((?:cannot identify image file (\S+)|image file is truncated))", "an image is damaged: {1}",
     "`stoker data lint FOLDER` lists all damaged images", "stoker data lint FOLDER",
     "PIL.UnidentifiedImageError: cannot identify image file '/data/n0/a.JPEG'\n"
     "OSError: image file is truncated (12 bytes not processed)",
     "python-pillow/Pillow#1510"},
    {"batch-sizes-differ", root, "stack expects each tensor to be equal size",
     R"(stack expects each tensor to be equal size, but got (\[[\d, ]*\]) at entry 0 and (\[[\d, ]*\]))",
     "samples of one batch have different shapes: {1} and {2}",
     "resize, crop or pad all samples to one shape; convert grey images: `image.convert('RGB')`",
     "stoker data lint FOLDER",
     "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, "
     "224, 224] at entry 1",
     "pytorch/pytorch#42654"},
    {"shapes-do-not-fit", root,
     "mat1 and mat2 shapes\nsize mismatch\nThe size of tensor a\nis invalid for input of size\nShape "
     "mismatch\nDimensions must be equal\nIncompatible shapes: \nincompatible shapes for\n"
     "contracting dimensions to have",
     R"((mat1 and mat2 shapes cannot be multiplied \([^)]*\)|The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)|shape '[^']*' is invalid for input of size \d+|size mismatch.*|Dimensions must be equal, but are \d+ and \d+.*|Incompatible shapes: \[[\d,]*\] vs\. \[[\d,]*\]|\w+ got incompatible shapes for broadcasting: .*|\w+ requires contracting dimensions to have the same shape, got .*))",
     "shapes do not match {frame}: {1}", "print the shapes before that line", "",
     "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x2048 and 512x10)\n"
     "ValueError: Dimensions must be equal, but are 97 and 128 for '{{node add}} = AddV2'\n"
     "TypeError: add got incompatible shapes for broadcasting: (3,), (4,).",
     "pytorch/pytorch#67986"},
    {"dtypes-differ", root, "should be the same\nexpected scalar type\nmust have the same dtype",
     R"((Input type \(.*\) and weight type \(.*\) should be the same|expected scalar type \w+ but found \w+|expected m1 and m2 to have the same dtype.*|mat1 and mat2 must have the same dtype.*))",
     "tensor types do not match: {1}", "use `inputs.to(dtype)`, or autocast around the call", "",
     "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the "
     "same",
     "pytorch/pytorch#26295"},
    {"position-out-of-range", root, "(below positions)",
     R"(^IndexError: index out of range in self \(below positions\)$)",
     "a sequence is longer than the positions that the model has {frame}",
     "cut it (`truncation=True, max_length=N`), or build the model with more positions: "
     "`max_position_embeddings`, `n_positions`",
     "", "IndexError: index out of range in self (below positions)", "huggingface/transformers#8323"},
    {"token-out-of-range", root, "(below tokens)",
     R"(^IndexError: index out of range in self \(below tokens\)$)",
     "a token is not in the vocabulary of the model {frame}",
     "use the tokenizer of the model; after new tokens `model.resize_token_embeddings(len(tokenizer))`", "",
     "IndexError: index out of range in self (below tokens)", "huggingface/transformers#8323"},
    {"target-out-of-range", root, "is out of bounds.\nindex out of range in self\noutside the valid range of",
     R"((?:Target (-?\d+) is out of bounds|index out of range in self|Received a label value of (-?\d+) which is outside))",
     "a label or an index is out of range: {1}{2}",
     "check labels against the number of classes, tokens against the vocabulary", "stoker data info DATASET",
     "IndexError: Target 10 is out of bounds.\nIndexError: index out of range in self\n"
     "Received a label value of 10 which is outside the valid range of [0, 10).  Label values: 2 5 10",
     "huggingface/transformers#8323"},
    {"loss-not-finite", root,
     "oss is NaN\noss is nan\nLoss is inf\nloss is inf\nNaN or Inf\nnan loss\nNaN loss\nnan detected\n"
     "weights are not finite\non-finite loss\non-finite grad\nonfinite loss\noss is not finite\noss became",
     R"((?i)(loss is nan|loss is inf|nan or inf|nan loss|nan detected|weights are not finite|non-?finite (?:loss|grad)|loss is not finite|loss became (?:nan|inf|non)))",
     "the loss is not finite",
     "use a smaller learning rate, warm-up or clipping; GradScaler or bfloat16 for half precision; at the "
     "first "
     "step, check the inputs: `np.isfinite`",
     "", "Loss is nan, stopping training\nNon-finite loss at step 42, stopping\nloss became NaN at step 3",
     "facebookresearch/detr#28"},
    {"loss-is-nan", slow, "oss=nan\noss: nan\noss nan\noss': nan\noss\": NaN\noss = nan\noss=NaN\noss: NaN",
     R"re(\b(?:[Tt]rain(?:ing)?[ _/])?[Ll]oss['"]?(?: ?[=:] ?| )[Nn]a[Nn]\b)re",
     "the loss is NaN from this line on, so the training continued without effect",
     "stop at the first such loss and inspect its batch: `torch.isfinite(loss)`; use a smaller learning "
     "rate, "
     "warm-up or clipping",
     "", "step=6123 loss=nan lr=0.050", "source of many training scripts"},
    {"loss-scale-minimum", root, "loss scale already at minimum\nMinimum loss scale reached", "",
     "half precision overflows at every step", "use bfloat16, a smaller learning rate, or clipping", "",
     "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
     "microsoft/DeepSpeed#1599"},
    {"gradient-missing", root, "does not require grad", "",
     "the loss depends on no parameter: frozen, detached, or under no_grad",
     "set `requires_grad` of the parameters; no `item()` or `detach()` before `backward()`", "",
     "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
     "pytorch/pytorch#15270"},
    {"backward-twice", root, "backward through the graph a second time", "",
     "backward() ran twice over one graph",
     "use `detach()` on values that are reused between steps, or `retain_graph=True`", "",
     "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors "
     "after they have already been freed).",
     "pytorch/pytorch#17646"},
    {"changed-by-step", root, "modified by an inplace operation",
     R"(modified by an inplace operation: .* is output 0 of (?:AsStrided|T|Transpose|Permute)(?:Backward\d*)?, is at version)",
     "a weight was changed between the forward pass and its backward() {frame}, usually by "
     "`optimizer.step()`",
     "compute the output again after that step, or call each `backward()` before the first step; `detach()` "
     "what a different optimizer trains",
     "",
     "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
     "operation: [torch.FloatTensor [8, 1]], which is output 0 of AsStridedBackward0, is at version 2; "
     "expected version 1 instead.",
     "pytorch/pytorch#39141", kScriptEnds, kFitsSeveral},
    {"changed-in-place", root, "modified by an inplace operation", "",
     "a tensor that backward() needs was changed in place {frame}",
     "use `x = x + y` instead of `x += y`, and `inplace=False`; call `backward()` before `optimizer.step()`; "
     "`torch.autograd.set_detect_anomaly(True)` shows the operation",
     "",
     "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
     "operation: [torch.FloatTensor [3]]",
     "pytorch/pytorch#15803"},
    {"cannot-pickle-resource", root, "cannot pickle '",
     R"(cannot pickle '([^']*(?:lock|_io\.|socket|SSL|module|generator|[Cc]onnection|[Cc]ursor|weakref|Logger)[^']*)' object)",
     "an object for another process cannot be pickled: it holds a {1}",
     "create it inside of the function that uses it there, not as a global or an attribute of what is passed",
     "",
     "TypeError: cannot pickle '_thread.lock' object\nTypeError: cannot pickle '_io.BufferedReader' object",
     "source of CPython, copyreg.py"},
    {"cannot-pickle", root, "Can't pickle\ncannot pickle", R"([Cc]an(?:'t|not) pickle (.*))",
     "an object for a worker cannot be pickled: {1}",
     "use no lambdas, local functions or open files in the dataset; define them at module level", "",
     "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'", "pytorch/pytorch#43689"},
    {"main-not-guarded", root, "bootstrapping phase", "", "the script starts processes on import",
     "put its last lines below `if __name__ == '__main__':`", "",
     "RuntimeError: An attempt has been made to start a new process before the current process has finished "
     "its bootstrapping phase.",
     "pytorch/pytorch#5858"},
    {"process-group-missing", root, "process group has not been initialized", "",
     "a collective ran before init_process_group",
     "call `init_process_group()` first; torchrun and `stoker run` set its variables", "",
     "ValueError: Default process group has not been initialized, please make sure to call "
     "init_process_group.",
     "pytorch/pytorch#38300"},
    {"local-rank-required", root, "the following arguments are required",
     R"(error: the following arguments are required:.*--local[-_]rank)",
     "the program requires --local_rank, which torchrun does not pass: it sets LOCAL_RANK",
     "read `int(os.environ['LOCAL_RANK'])` in the program, and make the option optional", "",
     "train.py: error: the following arguments are required: --local_rank", "pytorch/pytorch#98587"},
    {"local-rank-unknown", root, "unrecognized arguments",
     R"(error: unrecognized arguments:.*(--local[-_]rank)\b)",
     "the launcher passes {1}, which the program does not know",
     "add that option to the program, or start it with `torchrun`, which sets LOCAL_RANK instead "
     "(DeepSpeed's "
     "launcher: `--no_local_rank`), and read that",
     "", "train.py: error: unrecognized arguments: --local-rank=0", "pytorch/pytorch#98587"},
    {"unrecognised-argument", root,
     "unrecognized arguments\nthe following arguments are required\ninvalid choice:\nNo such option",
     R"(error: (unrecognized arguments: .*|the following arguments are required: .*|argument .*|[Nn]o such option.*))",
     "the program rejects its arguments: {1}", "its option `--help` lists the valid ones", "",
     "train.py: error: unrecognized arguments: --epoch 3\ntrain.py: error: the following arguments are "
     "required: --data",
     "pytorch/pytorch#98587"},
    {"python-syntax", root, "SyntaxError:\nIndentationError:\nTabError:",
     R"(^(SyntaxError|IndentationError|TabError): (.*))", "Python cannot parse the code {frame}: {2}",
     "`python -m py_compile FILE` shows the error; for syntax of a newer Python, use that version (`python "
     "--version`)",
     "", "SyntaxError: invalid syntax", "source of CPython"},
    {"numpy-alias-gone", root, "module 'numpy' has no attribute",
     R"(module 'numpy' has no attribute '(float|int|bool|object|complex|str|long|unicode)')",
     "NumPy has no np.{1} any more since its version 1.24 {frame}: the code, or a library, is older",
     "write `{1}` instead, or a type with its size, for example `np.float64`; if a library has that line, "
     "update it, or `pip install 'numpy<1.24'`",
     "", "AttributeError: module 'numpy' has no attribute 'float'.", "source of NumPy, __init__.py"},
    {"numpy-2-removed", root, "was removed in the NumPy 2.0 release",
     R"(`np\.(\w+)` was removed in the NumPy 2\.0 release\.?(?: Use `([^`]+)`)?)",
     "NumPy 2 has no np.{1} any more {frame}[[: its name is {2}]]",
     "change the code, update the library that has that line, or `pip install 'numpy<2'`", "",
     "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
     "source of NumPy, _expired_attrs_2_0.py"},
    {"numpy-2", root, "compiled using NumPy 1.x\n_ARRAY_API not found\nnumpy.dtype size changed",
     R"re((?:compiled using NumPy 1\.x|_ARRAY_API not found|ValueError: numpy\.dtype size changed))re",
     "a library was built for a different NumPy version",
     "`pip install 'numpy<2'`, or update the other packages", "",
     "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.0 as it may crash.\nValueError: "
     "numpy.dtype size changed, may indicate binary incompatibility.",
     "numpy/numpy#26710"},
    {"removed-from-python", root, "' has no attribute '",
     R"(^AttributeError: module '(time|collections|inspect|fractions|math|asyncio|typing|string|types|os|platform|base64|array|sys|threading|logging)' has no attribute '(clock|Mapping|MutableMapping|Iterable|Callable|Sequence|MutableSequence|Hashable|getargspec|gcd|coroutine|async|io|letters|maketrans|errno|getcwdu|linux_distribution|dist|popen|encodestring|decodestring|setdefaultencoding|maxint|exc_clear|_shutdown_locks)')",
     "this version of Python has no {1}.{2} any more {frame}",
     "use the version of Python that the code is for, or its present name: `collections.abc`, "
     "`time.perf_counter`, `inspect.signature`, `math.gcd`",
     "python --version", "AttributeError: module 'collections' has no attribute 'Mapping'",
     "source of CPython"},
    {"standard-module-hidden", root, "' has no attribute '",
     R"(^AttributeError: module '(abc|argparse|array|ast|asyncio|base64|bisect|builtins|calendar|cmd|code|codecs|collections|concurrent|configparser|copy|csv|dataclasses|datetime|decimal|difflib|dis|email|enum|fractions|functools|glob|gzip|hashlib|heapq|html|http|inspect|io|itertools|json|keyword|logging|math|multiprocessing|numbers|operator|os|pathlib|pickle|platform|profile|queue|random|re|secrets|select|selectors|shutil|signal|site|socket|ssl|statistics|string|struct|subprocess|sys|tempfile|test|threading|time|token|tokenize|traceback|types|typing|urllib|uuid|warnings|weakref|xml|zipfile)' has no attribute '(\w+)')",
     "Python's module {1} has no {2} {frame}: usually your own file {1}.py hides it",
     "rename your file {1}.py, and delete `__pycache__` beside it; otherwise the version of Python is too "
     "old",
     "python -c 'import {1}; print({1}.__file__)'", "AttributeError: module 'random' has no attribute 'seed'",
     "source of CPython", kScriptEnds, kFitsSeveral},
    {"module-attribute-gone", root, "' has no attribute '",
     R"(^AttributeError: module '((\w+)[\w.]*)' has no attribute '(\w+)')",
     "module {1} has no {3} {frame}: a different version, or your own file with that name",
     "compare `pip show {2}` with the requirements of the code", "",
     "AttributeError: module 'torch' has no attribute 'float8_e4m3fn'", "source of CPython"},
    {"wandb-login", root, "api_key not configured\nwandb.errors.\nwandb: ERROR",
     R"((api_key not configured|wandb\.errors\.(?:\w+\.)?\w*Error: .*|wandb: ERROR .*))",
     "Weights & Biases needs a key or the network: {1}", "set `WANDB_MODE=offline`, and `wandb sync` later",
     "",
     "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])\n"
     "wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.",
     "wandb/wandb#2447", kScriptContinues},
    {"display-missing", root,
     "could not connect to display\nno display name and no $DISPLAY\nQt platform plugin", "",
     "the program needs a display", "set `MPLBACKEND=Agg`, and use `savefig` instead of `show`",
     "stoker check {started_from}", "_tkinter.TclError: no display name and no $DISPLAY environment variable",
     "matplotlib/matplotlib#3466"},
    {"dump-of-hang", hang, "Timeout (", R"(^Timeout \((\d+:\d\d:\d\d(?:\.\d+)?)\)!$)",
     "the program waited for {1} in the same place {frame}[[; two threads are at {2}: perhaps each holds a "
     "lock that the other needs]]",
     "read that line of the program: it waits for data, a file system, a lock or another process; threads "
     "that need several locks take them in the same order",
     "", "Timeout (0:00:08)!", "source of CPython, faulthandler.c"},
    {"aborted-while-waiting", hang, "(below waiting)", R"(^Fatal Python error: Aborted \(below waiting\)$)",
     "the program waited for ever {frame}, and a signal from outside ended it",
     "read that line of the program: it waits for a process, a thread or data; empty a queue before `join()`",
     "", "Fatal Python error: Aborted (below waiting)", "source of CPython, faulthandler.c"},
    {"dump-of-crash", ending, "Fatal Python error: ",
     R"(^Fatal Python error: (Segmentation fault|Bus error|Aborted|Floating-point exception|Illegal instruction))",
     "the program crashed {frame}: {1}",
     "read that line of the program: the library that it calls has the error, or was built for a different "
     "version",
     "", "Fatal Python error: Segmentation fault", "source of CPython, faulthandler.c"},
    {"interrupted", outside, "KeyboardInterrupt", R"(^KeyboardInterrupt)",
     "Ctrl-C, or SIGINT from the scheduler", "none if you stopped it; otherwise start it again", "",
     "KeyboardInterrupt", "source of CPython"},
    // Its threads hold tensors and release them while the interpreter exits.
    {"thread-at-exit", general, "terminate called without an active exception", "",
     "a thread was still running at exit: in C++ one without `join` or `detach`; with torch.distributed "
     "usually "
     "one of gloo's, after the work was complete",
     "`join` the threads of C++ before their end; with PyTorch make `torch.distributed.barrier()` and "
     "`torch.distributed.destroy_process_group()` the last lines of "
     "the program",
     "", "terminate called without an active exception", "pytorch/pytorch#179291; pytorch/pytorch#38230"},
    {"try-again", general, "Resource temporarily unavailable", "",
     "the system refused something for the moment {frame}: a lock that another process holds, a full pipe, "
     "or "
     "one process too many",
     "read what the line above asked for; `ulimit -u` limits processes, `fuser FILE` shows the users of a "
     "file",
     "", "BlockingIOError: [Errno 11] Resource temporarily unavailable", "source of glibc, errlist",
     kScriptEnds, kFitsSeveral},
    {"assertion-not-finite", general, "AssertionError",
     R"((?i)^AssertionError: (.*\b(?:not finite|non-?finite|infinite|nans?|isfinite|isnan)\b.*)$)",
     "an assertion of the program failed {frame}: {1}; training diverged, or the data have such values",
     "use a smaller learning rate, or clip the gradients; check the inputs: `np.isfinite(x).all()`", "",
     "AssertionError: 3 of 9 predictions are not finite", "source of CPython"},
    {"assertion", general, "AssertionError", R"(^AssertionError(?:: (.*))?$)",
     "an assertion of the program failed {frame}: {1}", "", "", "AssertionError: batch size must divide",
     "source of CPython"},
    {"python-exception", general, "an exception that no other rule knows",
     "^(an exception that no other rule knows)", "the program raised {2} {frame}", "", "", "",
     "source of CPython"},
};

}  // namespace

std::span<const FailureRule> python_rules() { return kPythonRules; }

}  // namespace stoker::diagnose
