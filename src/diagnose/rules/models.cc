// Rules for exceptions of models, training loops and their data that need an explanation.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kModelRules[] = {
    // PyTorch.
    {"lists-not-rectangular", root, "expected sequence of length",
     R"(ValueError: expected sequence of length (\d+) at dim (\d+) \(got (\d+)\))",
     "lists of different lengths, {1} and {3}, cannot become one tensor {frame}",
     "pad or cut them to one length: `padding=True, truncation=True` of a tokenizer, a collator that pads, "
     "or `torch.nn.utils.rnn.pad_sequence`",
     "", "ValueError: expected sequence of length 8 at dim 1 (got 7)", "source of PyTorch, tensor_new.cpp"},
    {"batch-of-one", root, "Expected more than 1 value per channel",
     R"(Expected more than 1 value per channel when training, got input size (?:torch\.Size\()?(\[[\d, ]+\]))",
     "BatchNorm got a batch with one value per channel in training, {1} {frame}: usually the incomplete last "
     "batch",
     "`drop_last=True` of the DataLoader, a larger batch, or `model.eval()` if it is no training", "",
     "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 8])",
     "source of PyTorch, functional.py"},
    {"sequence-too-long", root, "(below transformers.model)",
     R"(The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at non-singleton dimension [01]\..* \(below transformers\.model\)$)",
     "a sequence of {1} tokens is longer than the {2} positions of the model {frame}",
     "cut it (`tokenizer(text, truncation=True, max_length={2})`), split it into parts, or use a model with "
     "a "
     "longer context",
     "",
     "RuntimeError: The expanded size of the tensor (700) must match the existing size (512) at "
     "non-singleton "
     "dimension 1.  Target sizes: [1, 700].  Tensor sizes: [1, 512] (below transformers.model)",
     "source of transformers, modeling_bert.py"},
    {"peft-modules", root, "not found in the base model",
     R"(Target modules (.*?) not found in the base model)",
     "the model has no modules {1} for adapters {frame}",
     "set `target_modules` to names of this model, which `print(model)` shows: `q_proj` in Llama, `query` in "
     "BERT, `c_attn` in GPT-2; or `target_modules='all-linear'`",
     "",
     "ValueError: Target modules {'q_proj', 'v_proj'} not found in the base model. Please check the target "
     "modules.",
     "source of PEFT, tuners_utils.py"},
    {"strategies-differ", root, "strategy to match",
     R"(--load_best_model_at_end requires the save and eval(?:uation)? strategy to match.*: Evaluation strategy: (?:\w+\.)?(\w+), Save strategy: (?:\w+\.)?(\w+))",
     "`load_best_model_at_end` needs one strategy to evaluate and to save {frame}: they are {1} and {2}",
     "set `eval_strategy` and `save_strategy` alike, with `save_steps` a multiple of `eval_steps`", "",
     "ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found: "
     "Evaluation "
     "strategy: IntervalStrategy.EPOCH, Save strategy: SaveStrategy.STEPS",
     "source of transformers, training_args.py"},
    {"optimizer-without-parameters", root, "optimizer got an empty parameter list", "",
     "the model has no parameters for the optimizer {frame}: its layers are in a plain list or dict, or all "
     "are "
     "frozen",
     "keep layers in `nn.ModuleList` or `nn.ModuleDict`; call `super().__init__()` first; build the "
     "optimizer after "
     "the layers",
     "", "ValueError: optimizer got an empty parameter list", "source of PyTorch, optimizer.py"},
    {"not-positive-definite", root, "ositive definite\nositive-definite",
     R"((?i)(?:Matrix is not positive definite|input is not positive[- ]definite|not positive definite|leading minor of order (\d+) is not positive))",
     "a matrix that Cholesky factorizes is not positive definite {frame}",
     "add a small value to its diagonal (`K + 1e-6 * eye`), remove duplicate points, and use float64", "",
     "numpy.linalg.LinAlgError: Matrix is not positive definite\n"
     "torch._C._LinAlgError: linalg.cholesky: The factorization could not be completed because the input is "
     "not "
     "positive-definite (the leading minor of order 2 is not positive-definite).",
     "source of NumPy, linalg.py; source of PyTorch, BatchLinearAlgebra.cpp"},
    {"not-json", root, "is not JSON serializable", R"(Object of type (\w+) is not JSON serializable)",
     "a value of type {1} cannot be written as JSON {frame}",
     "convert it: `float(x)`, `int(x)`, `x.tolist()`, `str(x)`, or `json.dump(value, file, default=float)`",
     "", "TypeError: Object of type float32 is not JSON serializable", "source of CPython, encoder.py"},
    // JAX and Flax.
    {"jax-traced-shape", root, "Shapes must be 1D sequences of concrete values",
     R"(Shapes must be 1D sequences of concrete values of integer type, got (.*?)\.?$)",
     "the shape of an array depends on an argument of a function under `jit` {frame}: {1}",
     "mark that argument as static: `jax.jit(f, static_argnums=1)`, or use a fixed size and a mask", "",
     "TypeError: Shapes must be 1D sequences of concrete values of integer type, got (JitTracer(~int32[]),).",
     "source of JAX, core.py"},
    {"flax-collection-missing", root, "ScopeCollectionNotFound\nModifyScopeVariableError",
     R"re((?:Tried to access "([^"]+)" from collection "([^"]+)"|Cannot update variable "([^"]+)" .*collection is immutable))re",
     "Flax has no variables of the collection {2} for {1}{3} {frame}: `apply` got only the parameters, or "
     "may not "
     "change it",
     "`model.apply({'params': p, 'batch_stats': s}, x, mutable=['batch_stats'])` in training, without "
     "`mutable` in "
     "evaluation",
     "",
     "flax.errors.ScopeCollectionNotFound: Tried to access \"mean\" from collection \"batch_stats\" in "
     "\"/BatchNorm_0\" but the collection is empty.",
     "source of Flax, scope.py"},
    {"jax-assertion-hidden", root, "(below library jax)", R"(^AssertionError \(below library jax\)$)",
     "an assertion in JAX failed {frame}, and its frames are hidden: often a platform that this jaxlib "
     "cannot use",
     "`python -c 'import jax; print(jax.devices())'` and `JAX_PLATFORMS` show the platform; "
     "`JAX_TRACEBACK_FILTERING=off` shows the frames",
     "", "AssertionError (below library jax)", "source of JAX, traceback_util.py", kScriptEnds, kFitsSeveral},
    // Keras.
    {"keras-input-shape", root, "is incompatible with the layer: ",
     R"((?:Input (?:0|\d+)|of layer).*is incompatible with the layer: (expected [^.]*?)(?:, (?:but received input|found) (?:with )?(?:shape|ndim)[ =]*\(?([^)]*)\)?|\.|$))",
     "an input does not have the shape that its layer was built for {frame}: {1}[[, got {2}]]",
     "give the data the size of the model's `Input`, or build the model for the size of the data", "",
     "ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape "
     "to have "
     "value 3136, but received input with shape (32, 64)",
     "source of Keras, input_spec.py"},
    // Hugging Face.
    {"hf-no-loss", root, "did not return a loss from the inputs",
     R"(did not return a loss from the inputs, only the following keys: ([\w,]+))",
     "the model returned no loss, only {1} {frame}: the batches have no labels",
     "add a column `labels`, or a collator that makes it: `DataCollatorForLanguageModeling(tokenizer, "
     "mlm=False)`",
     "",
     "ValueError: The model did not return a loss from the inputs, only the following keys: logits. For "
     "reference, "
     "the inputs it received are input_ids.",
     "source of transformers, trainer.py"},
    {"hf-no-model-type", root, "Unrecognized model in ", R"(Unrecognized model in (\S+?)\.? Should have a)",
     "{1} is no folder of a model {frame}: its config.json is missing, or has no model_type",
     "name the folder that has config.json, for example `{1}/checkpoint-500`, or save with `save_pretrained`",
     "ls {1}",
     "ValueError: Unrecognized model in ./outputs. Should have a `model_type` key in its config.json.",
     "source of transformers, configuration_auto.py"},
    {"safetensors-header", root, "eader too large\neaderTooLarge", R"([Hh]eader ?[Tt]oo ?[Ll]arge)",
     "the file is no safetensors file {frame}: usually a pointer of Git LFS, a web page or a cut-off "
     "download",
     "`head -c 200 FILE` shows which; `git lfs pull`, or download it again", "head -c 200 FILE",
     "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: header too large\n"
     "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
     "source of safetensors, tensor.rs", kScriptEnds, kFitsSeveral},
    {"deepspeed-auto", root, "(below deepspeed.config)",
     R"re(^(?:TypeError: .*'str'|ValueError: .*'auto'|AssertionError: .*\bauto\b).* \(below deepspeed\.config\)$)re",
     "DeepSpeed's configuration has the value `auto` {frame}, which only the Trainer of Hugging Face "
     "replaces",
     "write numbers in place of `auto` in the configuration", "grep -n auto FILE",
     "TypeError: unsupported operand type(s) for //: 'str' and 'str' (below deepspeed.config)",
     "source of DeepSpeed, config.py"},
    // Lightning.
    {"early-stopping-not-finite", root, "is not finite. Previous best value was",
     R"(Monitored metric (\S+) = (\S+) is not finite)",
     "the training diverged: its metric {1} became {2}, and EarlyStopping ended it",
     "use a smaller learning rate, warm-up or `gradient_clip_val`; check the inputs: `torch.isfinite`", "",
     "Monitored metric val_loss = nan is not finite. Previous best value was inf. Signaling Trainer to stop.",
     "source of Lightning, early_stopping.py"},
    // PyTorch.
    {"anomaly-not-finite", root, "returned nan values in its",
     R"(Function '(\w+?)' returned nan values in its \d+\w* output)",
     "the backward pass computed NaN in {1} {frame}",
     "change that operation of the forward pass: an epsilon in logarithms, roots and divisions, or "
     "`torch.where` on safe inputs; check the inputs: `torch.isfinite`",
     "", "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.",
     "source of PyTorch, anomaly_mode.cpp"},
    // pandas.
    {"pandas-removed", root, "object has no attribute '",
     R"(^AttributeError: '(DataFrame|Series|Index|DataFrameGroupBy)' object has no attribute '(append|ix|iteritems|as_matrix|get_value|set_value|mad|is_monotonic|lookup|swaplevels|applymap|pad|backfill|to_panel|asobject|tshift|slice_shift)')",
     "this version of pandas has no {1}.{2} any more {frame}: the code is older",
     "`append` is `pd.concat([a, b])`, `iteritems` is `items`, `ix` is `loc` or `iloc`, `as_matrix` is "
     "`to_numpy`; or "
     "`pip install 'pandas<2'`",
     "pip show pandas", "AttributeError: 'DataFrame' object has no attribute 'append'",
     "source of pandas, frame.py"},
    // Ray.
    {"ray-get-timeout", general, "GetTimeoutError", R"(GetTimeoutError: (?:Get timed out: )?(.*?)\.?$)",
     "a task of Ray was not ready within the `timeout` of `ray.get` {frame}",
     "use a longer timeout, or `ray.wait`; `ray summary tasks` shows whether the task runs or waits for "
     "resources",
     "ray summary tasks", "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.",
     "source of Ray, exceptions.py"},
    // Python.
    {"slurm-variable-missing", root, "(below environ)",
     R"(^KeyError: ['"](SLURM_\w+)['"] \(below environ\)$)",
     "the program needs the environment variable {1} {frame}, which Slurm sets only in a job, some only by "
     "options",
     "start it with `srun` in a job, and request it: `--ntasks`, `--cpus-per-task`, `--gpus-per-node`; or "
     "read "
     "`os.environ.get(NAME, DEFAULT)`",
     "", "KeyError: 'SLURM_NTASKS' (below environ)", "source of CPython, os.py"},
    {"variable-of-program-missing", root, "(below environ)", R"(^KeyError: ['"](\w+)['"] \(below environ\)$)",
     "the program needs the environment variable {1} {frame}, which is not set",
     "`export {1}=VALUE` before the program; torchrun and `stoker run` set the variables of ranks", "",
     "KeyError: 'DATA_ROOT' (below environ)", "source of CPython, os.py"},
    {"relative-import", root, "attempted relative import",
     R"(ImportError: attempted relative import (?:with no known parent package|beyond top-level package))",
     "a file of a package was started as a script, so its relative import fails {frame}",
     "start it as a module from the folder above the package: `python -m PACKAGE.MODULE`", "",
     "ImportError: attempted relative import with no known parent package", "source of CPython, import.c"},
    {"program-of-program-missing", root, "(below process.start)",
     R"(^FileNotFoundError: \[Errno 2\] No such file or directory: '([^'/]+)' \(below process\.start\)$)",
     "the program {1}, which the program starts, was not found on that node {frame}",
     "load its module or activate its environment before the program", "which {1}",
     "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg' (below process.start)",
     "source of CPython, subprocess.py"},
    {"read-timed-out", general, "ReadTimeout\nRead timed out",
     R"(^(?:.*host='([^']+)', port=(\d+))?.*Read timed out|^(?:\w+\.)*ReadTimeout\b)",
     "the server[[ {1}]][[ (port {2})]] accepted the connection and did not answer in time {frame}",
     "check the server: it is busy or hangs; use a longer `timeout`, and retries", "",
     "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='127.0.0.1', port=28601): Read timed out. "
     "(read "
     "timeout=5)\nhttpx.ReadTimeout: The read operation timed out",
     "source of requests, adapters.py"},
};

}  // namespace

std::span<const FailureRule> model_rules() { return kModelRules; }

}  // namespace stoker::diagnose
