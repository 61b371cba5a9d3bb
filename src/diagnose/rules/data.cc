// Rules for data that does not fit: empty sets, broken text files, arrays of other shapes.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kDataRules[] = {
    // Empty sets.
    {"nothing-found", root, "(below nothing)", R"(^(.*) \(below nothing\)$)",
     "the data is empty {frame}: {1}", "check that path and its pattern: nothing was found there", "",
     "found 0 images in /data/val (below nothing)", "source of many programs"},
    {"input-at-end", root, "EOFError: EOF when reading a line", "",
     "the program asks for an answer, and a batch job has no terminal that gives one {frame}",
     "give it as an option of the program (such as `--yes`), or in a pipe: `yes | COMMAND`", "",
     "EOFError: EOF when reading a line", "source of CPython, bltinmodule.c"},
    {"date-format", root, " match format ",
     R"(time data ['\x22]?([^'\x22]+)['\x22]? (?:doesn't|does not) match format ['\x22]([^'\x22]+)['\x22])",
     "the date {1} does not have the format {2} {frame}: day and month may be swapped",
     "name the format of the data (`%d.%m.%Y`, `dayfirst=True`), or correct that row; pandas makes it NaT "
     "with "
     "`errors='coerce'`",
     "",
     "ValueError: time data \"2024-13-05\" doesn't match format \"%Y-%m-%d\".\n"
     "ValueError: time data '5.1.2024' does not match format '%Y-%m-%d'",
     "source of pandas, strptime.pyx"},
    {"features-differ", root, "The feature names should match",
     R"(The feature names should match [\w ]+ during fit: (.*))",
     "the data have other columns than at `fit` {frame}: {1}",
     "pass the same columns in the same order: `X[model.feature_names_in_]`", "",
     "ValueError: The feature names should match the ones passed during fit: Feature names unseen at fit "
     "time: minute",
     "source of scikit-learn, validation.py"},
    {"merge-key-types", root, "You are trying to merge on",
     R"(You are trying to merge on (\S+) and (\S+) columns(?: for key '([^']+)')?)",
     "two tables cannot be merged {frame}: the key[[ {3}]] is {1} in one and {2} in the other",
     "give it one type in both before `merge`: `df['KEY'].astype(str)`; a column of numbers with blanks or "
     "text "
     "in it was read as text",
     "",
     "ValueError: You are trying to merge on int64 and object columns for key 'id'. If you wish to proceed "
     "you should use pd.concat",
     "source of pandas, merge.py"},
    {"metric-not-recorded", root, "KeyError: 'val_", R"(^KeyError: '(val_\w+)'$)",
     "no metric {1} was recorded {frame}: training had no data for validation, or the metric has another "
     "name",
     "pass `validation_data` or `validation_split` to `fit`, and print the recorded names: "
     "`history.history.keys()`",
     "", "KeyError: 'val_accuracy'", "source of Keras, history.py", kScriptEnds, kFitsSeveral},
    {"dataset-empty", root, "num_samples=0\nwith 0 sample(s)\nWith n_samples=0\nwith 0 feature(s)",
     R"((num_samples=0|Found array with 0 (?:sample|feature)\(s\)|With n_samples=0))",
     "the dataset is empty {frame}: usually no file matched its path or pattern ({1})",
     "check the path and the pattern of its files, and print its length", "",
     "ValueError: num_samples should be a positive integer value, but got num_samples=0\n"
     "ValueError: Found array with 0 sample(s) (shape=(0, 4)) while a minimum of 1 is required.",
     "source of PyTorch, sampler.py; source of scikit-learn, validation.py"},
    {"empty-sequence", general,
     "division by zero\nis an empty sequence\niterable argument is empty\nneed at least one array\n"
     "expects a non-empty TensorList\nNo objects to concatenate",
     R"(^(ZeroDivisionError: .*|ValueError: (?:(?:max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)|need at least one array.*|No objects to concatenate)|RuntimeError: .*expects a non-empty TensorList.*))",
     "a set is empty or a count is zero {frame}: {1}",
     "print its length before that line; a usual reason is a path or a filter that matched nothing", "",
     "ZeroDivisionError: division by zero\nValueError: max() arg is an empty sequence\n"
     "ValueError: need at least one array to concatenate",
     "source of CPython", kScriptEnds, kFitsSeveral},
    {"orbax-step-missing", root, "Checkpoint at ", R"(Checkpoint at (\S+)/(\d+) not found)",
     "{1} has no checkpoint of step {2}",
     "restore `latest_step()`, or a step that is in that folder; `max_to_keep` deletes earlier ones",
     "ls {1}", "FileNotFoundError: Checkpoint at /scratch/run/100 not found.",
     "source of Orbax, checkpointer.py"},
    // Text files.
    {"json-empty", root, "Expecting value: line 1 column 1", R"(Expecting value: line 1 column 1 \(char 0\))",
     "a text that should be JSON is empty, or is something else {frame}",
     "read it: `head FILE`; an error page of a server and an empty file are usual", "head FILE",
     "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
     "source of CPython, decoder.py"},
    {"json-several", root, "Extra data: line", R"(Extra data: line (\d+) column (\d+))",
     "a JSON text continues after its end, at line {1} {frame}: often it is a file of JSON lines",
     "read it line by line (JSON Lines), with `json.loads(line)`", "head -2 FILE",
     "json.decoder.JSONDecodeError: Extra data: line 2 column 1 (char 24)", "source of CPython, decoder.py"},
    {"json-malformed", root, "JSONDecodeError", R"(JSONDecodeError: (.*?): line (\d+) column (\d+))",
     "a text is not valid JSON at line {2}, column {3} {frame}: {1}",
     "correct that place: usual are a comma before a closing bracket, single quotes, unescaped quotes, and a "
     "file "
     "that was cut off",
     "python -m json.tool FILE",
     "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 4 column 9 (char 88)",
     "source of CPython, decoder.py"},
    {"number-with-comma", root, "could not convert string",
     R"(could not convert string (?:to float: )?['"]([-+\d.]*\d,\d+)['"])",
     "a number has a decimal comma {frame}: {1}",
     "read it with `decimal=','`, or write the numbers with a point", "",
     "ValueError: could not convert string to float: '0,25'", "source of CPython, floatobject.c"},
    {"text-no-number", root, "could not convert string\ninvalid literal for int",
     R"((?:could not convert string (?:to float: )?|invalid literal for int\(\) with base \d+: )(['"].*))",
     "a text is no number {frame}: {1}",
     "look for it in the data or the arguments: a header, a unit or a blank field", "",
     "ValueError: could not convert string to float: 'n/a'\n"
     "ValueError: invalid literal for int() with base 10: 'auto'",
     "source of CPython, floatobject.c"},
    // Binary files.
    {"parquet-damaged", root,
     "Parquet magic bytes not found\nParquet file size is\nCouldn't deserialize thrift\nNot an Arrow "
     "file\nnot a "
     "parquet file",
     R"((?:input source '([^']+)': )?(Parquet magic bytes not found|Parquet file size is \d+ bytes|Couldn't deserialize thrift|Not an Arrow file))",
     "the file[[ {1}]] is cut off, or is no Parquet or Arrow file {frame}: {2}",
     "copy or write it again; write to a temporary name and rename it", "",
     "pyarrow.lib.ArrowInvalid: Could not open Parquet input source 'a.parquet': Parquet magic bytes not "
     "found in "
     "footer.",
     "source of Arrow, file_reader.cc"},
    {"numpy-file-empty", root, "No data left in file", "", "a file of NumPy is empty {frame}",
     "write it again; write to a temporary name and rename it", "find . -name '*.np[yz]' -empty",
     "EOFError: No data left in file", "source of NumPy, _npyio_impl.py"},
    {"message-pack-cut", root, "Unpack failed: incomplete input", "",
     "a file in MessagePack is empty or cut off {frame}: as Flax writes its checkpoints",
     "use an earlier checkpoint; write to a temporary file and rename it", "",
     "ValueError: Unpack failed: incomplete input", "source of msgpack, _unpacker.pyx"},
    // Arrays.
    {"mesh-needs-devices", root, "(below devices)\nthe product of mesh_shape",
     R"((?:cannot reshape array of size (\d+) into shape (\([\d, ]*\)) \(below devices\)$|Number of devices (\d+) must (?:equal|be >=) the product of mesh_shape (\([\d, ]*\))))",
     "a mesh of the shape {2}{4} needs another number of devices than there are: {1}{3} {frame}",
     "request as many devices as the mesh has, or change its shape; on CPUs "
     "`export XLA_FLAGS=--xla_force_host_platform_device_count=N`",
     "python -c 'import jax; print(jax.devices())'",
     "ValueError: cannot reshape array of size 1 into shape (4,2) (below devices)\n"
     "ValueError: Number of devices 4 must equal the product of mesh_shape (4, 2)\n"
     "ValueError: Number of devices 1 must be >= the product of mesh_shape (4, 2)",
     "source of JAX, mesh_utils.py"},
    {"reshape-differs", root, "cannot reshape array of size",
     R"(cannot reshape array of size (\d+) into shape (\([\d,]*\)))",
     "an array of {1} elements cannot take the shape {2} {frame}",
     "drop the rest of the last part, or compare the type and the length of the file with what wrote it", "",
     "ValueError: cannot reshape array of size 999 into shape (128)", "source of NumPy, shape.c"},
    {"arrays-do-not-fit", root, "operands could not be broadcast",
     R"(operands could not be broadcast together with (?:remapped )?shapes (.*\)))",
     "arrays do not fit {frame}: {1}",
     "print both shapes before that line; parts of a divided array differ by rank if its length is no "
     "multiple",
     "", "ValueError: operands could not be broadcast together with shapes (3,) (4,)",
     "source of NumPy, nditer_constr.c"},
    {"parts-differ", root,
     "All dimensions except\nSizes of tensors must match except\nrequires inputs with matching shapes\nall "
     "the input "
     "array dimensions except",
     R"((All dimensions except \d+ must match.*|Sizes of tensors must match except in dimension \d+.*|layer requires inputs with matching shapes.*|all the input array dimensions except.*))",
     "parts that are joined have different sizes {frame}: {1}",
     "crop or pad them to one size; with skip connections make the input a multiple of the total stride", "",
     "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 64 but got size 65 for "
     "tensor "
     "number 1 in the list.",
     "source of PyTorch, TensorShape.cpp"},
    {"array-of-objects", root,
     "Invalid dtype: object\nUnsupported object type\nof type numpy.object_\nUnsupported numpy type: object",
     R"((Invalid dtype: object|Unsupported object type \w+|numpy\.object_))",
     "an array of Python objects cannot become a tensor {frame}: it holds text, None, or rows of different "
     "lengths",
     "convert it first: `array.astype('float32')` names the value that is no number", "",
     "ValueError: Invalid dtype: object\nValueError: Failed to convert a NumPy array to a Tensor "
     "(Unsupported object "
     "type float).",
     "source of Keras, dtype_policies"},
    {"samples-not-resizable", root, "resize storage that is not resizable", "",
     "samples of one batch have different shapes, or share memory {frame}",
     "resize, crop or pad all samples to one shape; return copies of arrays that share memory",
     "stoker data lint "
     "FOLDER",
     "RuntimeError: Trying to resize storage that is not resizable", "source of PyTorch, collate.py",
     kScriptEnds, kFitsSeveral},
    {"batch-to-unpack", general, "(below batch)",
     R"((not enough values to unpack \(expected (\d+), got \d+\)|too many values to unpack \(expected (\d+).*\)) \(below batch\)$)",
     "a batch has another number of parts than the {2}{3} names that take it {frame}: {1}",
     "take as many as the dataset returns (`__getitem__`), for example `x, y, index = batch`, or change what "
     "it returns",
     "", "ValueError: too many values to unpack (expected 2) (below batch)", "source of CPython, ceval.c"},
    {"values-to-unpack", general, "values to unpack",
     R"((not enough values to unpack \(expected \d+, got \d+\)|too many values to unpack \(expected \d+.*\)))",
     "a row or a tuple has another number of values than the program expects {frame}: {1}",
     "print it before that line; an empty or incomplete row of the data is a usual reason", "",
     "ValueError: not enough values to unpack (expected 4, got 0)", "source of CPython, ceval.c", kScriptEnds,
     kFitsSeveral},
};

}  // namespace

std::span<const FailureRule> data_rules() { return kDataRules; }

}  // namespace stoker::diagnose
