// Rules for well-known exceptions of libraries: JAX, TensorFlow, Keras, Lightning, Hugging Face, Ray, and
// others.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kLibraryRules[] = {
    // JAX, Flax, Optax.
    {"jax-no-platform", root, "(below jax.backends)", R"(^AssertionError \(below jax\.backends\)$)",
     "JAX could start no backend: none that `JAX_PLATFORMS` names is available on that node {frame}",
     "install JAX for its device (`pip install 'jax[cuda12]'`) and use a node that has one, or "
     "`unset JAX_PLATFORMS`",
     "python -c 'import jax; print(jax.devices())'", "AssertionError (below jax.backends)",
     "source of JAX, xla_bridge.py"},
    {"jax-assertion", general, "(below jax.dispatch)", R"(^AssertionError \(below jax\.dispatch\)$)",
     "JAX failed in an internal check {frame}: usually it could start no backend that `JAX_PLATFORMS` names",
     "install JAX for its device (`pip install 'jax[cuda12]'`) and use a node that has one, or "
     "`unset JAX_PLATFORMS`",
     "python -c 'import jax; print(jax.devices())'", "AssertionError (below jax.dispatch)",
     "source of JAX, dispatch.py", kScriptEnds, kFitsSeveral},
    {"jax-unknown-backend", root, "Unknown backend",
     R"(Unknown backend:? '(\w+)' requested.*Platforms present are: ([\w, ]+))",
     "JAX has no devices of the kind {1} here {frame}: there are {2}",
     "install JAX for its device (`pip install 'jax[cuda12]'`) and use a node that has one; `jax.devices()` "
     "without a "
     "name takes what is there",
     "python -c 'import jax; print(jax.devices())'",
     "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
     "present. "
     "Platforms present are: cpu",
     "source of JAX, xla_bridge.py"},
    {"jax-traced-condition", root, "TracerBoolConversionError", R"(TracerBoolConversionError: (.*?)\.?$)",
     "an `if` or `while` depends on a traced value of JAX {frame}",
     "use `jnp.where`, `jax.lax.cond` or `jax.lax.while_loop`; or make the argument static: "
     "`static_argnames`",
     "",
     "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
     "source of JAX, errors.py"},
    {"jax-traced-value", root,
     "TracerArrayConversionError\nTracerIntegerConversionError\nConcretizationTypeError\n"
     "NonConcreteBooleanIndexError",
     R"((TracerArrayConversionError|TracerIntegerConversionError|ConcretizationTypeError|NonConcreteBooleanIndexError): )",
     "a function needs the value of a traced array of JAX {frame}: {1}",
     "use `jax.numpy` instead of `numpy` and `jnp.where` instead of masks; make sizes static: "
     "`static_argnames`",
     "",
     "jax.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on "
     "traced array with shape float32[3]\n"
     "jax.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is "
     "expected: traced array with shape int32[]",
     "source of JAX, errors.py"},
    {"jax-leaked-tracer", root, "UnexpectedTracerError", "",
     "a traced value of JAX was kept after its function ended {frame}",
     "return it from the function instead of storing it in a global or an attribute; "
     "`JAX_CHECK_TRACER_LEAKS=1` "
     "shows where",
     "",
     "jax.errors.UnexpectedTracerError: Encountered an unexpected tracer. A function transformed by JAX had "
     "a side effect",
     "source of JAX, errors.py"},
    {"jax-not-divisible", root, "evenly divide\nis partitioned\nshould be divisible by",
     R"(array axis (\d+) is partitioned (\d+) times, but the dimension size is (\d+)|(?:should|must) (?:be )?evenly divide|dimension \d+ should be divisible by)",
     "an array cannot be divided among the devices[[: axis {1} has {3} elements for {2} parts]] {frame}",
     "make the size of the batch a multiple of the number of devices: drop or pad the last one", "",
     "jax._src.sharding.IndivisibleError: Sharding NamedSharding(mesh=Mesh('data': 8)) implies that array "
     "axis 0 is partitioned 8 times, but the dimension size is 43 (full shape: (43, 64))\n"
     "ValueError: One of pjit arguments was given the sharding of NamedSharding(mesh={'data': 8}), which "
     "implies that the global size of its dimension 0 should be divisible by 8, but it is equal to 43",
     "source of JAX, sharding_impls.py"},
    {"jax-donated", root, "has been deleted",
     R"((?:Array has been deleted with shape=(\S+?)\.?|Buffer has been deleted or donated.*)$)",
     "an array[[ ({1})]] was used after its buffer was donated to a jitted function, or deleted {frame}",
     "copy it before that call (`jnp.copy`), or leave it out of `donate_argnums`", "",
     "RuntimeError: Array has been deleted with shape=float32[256].\n"
     "RuntimeError: INVALID_ARGUMENT: Buffer has been deleted or donated.",
     "source of JAX, array.py"},
    {"jax-nan", root, "FloatingPointError: invalid value",
     R"(FloatingPointError: invalid value \((nan|inf)\)(?: encountered in (\w+))?)",
     "JAX computed {1}[[ in {2}]] {frame}",
     "use `jax.nn.log_softmax` instead of a logarithm of probabilities, an epsilon in logarithms, roots and "
     "divisions, or a smaller learning rate",
     "", "FloatingPointError: invalid value (nan) encountered in mul", "source of JAX, dispatch.py"},
    {"xla-allocation", root, "allocate of <", R"(^allocate of <\d+> failed\.$)",
     "the host is out of memory: XLA could not allocate a temporary array",
     "compute in smaller parts: a shorter sequence, a smaller batch, or `jax.lax.map` over chunks", "",
     "allocate of <20> failed.", "source of slinky, used by XLA's CPU backend"},
    {"jax-attribute-gone", root, "has no attribute",
     R"(module 'jax(?:\.[\w.]+)?' has no attribute '(tree_map|tree_flatten|tree_leaves|tree_unflatten)')",
     "this version of JAX has no jax.{1} {frame}",
     "use the functions of `jax.tree`, for example `jax.tree.map`", "",
     "AttributeError: module 'jax' has no attribute 'tree_map'", "source of JAX, deprecations.py"},
    {"jax-carry-differs", root, "but the corresponding output carry component has",
     R"(input carry (?:component )?(\S+) has type (\S+) but the corresponding output carry component has type (\S+?)(?:,? so\b|, |[.,]?$))",
     "the carry {1} of a loop of JAX changes from {2} to {3} {frame}",
     "return the carry with the type that it had: `new.astype(old.dtype)`", "",
     "The input carry h has type float32[16] but the corresponding output carry component has type "
     "bfloat16[16], so the dtypes do not match.",
     "source of JAX, loops.py"},
    {"jax-trees-differ", root, "at key path: \nDict key mismatch",
     R"(different (?:pytree metadata|numbers of pytree children) at key path: (.*) but (.*)$|Dict key mismatch; expected keys: (.*?), (?:got|dict).*)",
     "two trees of JAX have different keys {frame}:[[ {1} and {2}]][[ expected {3}]]",
     "use the same names in both, for example in parameters, gradients and the state of the optimizer", "",
     "ValueError: pytree structure error: different pytree metadata at key path: ('decoder', 'enc') but "
     "('dec', 'enc')\n"
     "ValueError: Dict key mismatch; expected keys: ['a', 'b'], dict: {'a': 1}.",
     "source of JAX, tree_util.py"},
    {"jax-pmap-devices", root, "(below jax.pmap)\nlogical devices, but only",
     R"(cannot select an axis to squeeze out.* got shape=\((\d+),.*\(below jax\.pmap\)$|requires (\d+) logical devices, but only (\d+) XLA devices)",
     "`pmap` maps the leading axis of its arguments, {1}{2} entries, over as many devices, and the program "
     "does not have them[[: only {3}]] {frame}",
     "give that axis the size `jax.local_device_count()`: reshape the batch; or use a node with that "
     "number of devices",
     "python -c 'import jax; print(jax.local_device_count())'",
     "ValueError: cannot select an axis to squeeze out which has size not equal to one, got shape=(4, 16) "
     "and "
     "dimensions=(0,) (below jax.pmap)\n"
     "ValueError: compiling computation that requires 8 logical devices, but only 1 XLA devices are "
     "available "
     "(num_replicas=8)",
     "source of JAX, pmap.py"},
    {"jax-mapped-sizes", root, "got inconsistent sizes for array axes to be mapped",
     R"(vmap got inconsistent sizes for array axes to be mapped: (\S.*?)[;.]?$)",
     "arrays that `vmap` maps have different sizes {frame}: {1}",
     "give them the same number of samples where they are loaded; `in_axes=None` for an argument that is not "
     "mapped",
     "",
     "ValueError: vmap got inconsistent sizes for array axes to be mapped: * one axis had size 17: axis 0 of "
     "argument x; * one axis had size 18: axis 0 of argument z",
     "source of JAX, api.py"},
    {"orbax-trees-differ", root, "tree structures do not match",
     R"(tree structures do not match: (\S.*?):?$)",
     "the checkpoint has other entries than what the program restores it into {frame}: {1}",
     "restore with the model and the optimizer that it was saved with; `partial_restore=True` restores only "
     "the entries of `item`",
     "",
     "ValueError: User-provided restore item and on-disk value metadata tree structures do not match: "
     "opt_state: - Source: (<class 'list'>, 2)",
     "source of Orbax, base_pytree_checkpoint_handler.py"},
    {"jax-static-unhashable", root, "Non-hashable static arguments", "",
     "a static argument of a jitted function is not hashable {frame}",
     "pass a tuple instead of a list or a dict, or do not mark it as static", "",
     "ValueError: Non-hashable static arguments are used in a jit function: static_argnums=1",
     "source of JAX, api_util.py"},
    {"flax-no-rng", root, "InvalidRngError", R"re(InvalidRngError: (\S+) needs PRNG for "(\w+)")re",
     "the module {1} of Flax needs random numbers for {2} {frame}",
     "pass `rngs={'dropout': key}` to `apply`, with the name of that collection; or switch it off for "
     "evaluation",
     "", "flax.errors.InvalidRngError: Dropout_0 needs PRNG for \"dropout\"", "source of Flax, errors.py"},
    {"flax-parameter-shape", root, "ScopeParamShapeError",
     R"(ScopeParamShapeError: .*parameter .(\w+). in .(\S+?)., the given .* generate shape (\([\d, ]*\)),.* has shape (\([\d, ]*\)))",
     "the parameter {1} of {2} has the shape {4} in the given variables, but the model and its input need "
     "{3} "
     "{frame}",
     "use the settings that the variables or the checkpoint were made with, and initialize the model with an "
     "input of the shape that it gets",
     "",
     "flax.errors.ScopeParamShapeError: For parameter \"kernel\" in \"/head\", the given initializer is "
     "expected to generate shape (64, 37), but the existing parameter it received has shape (64, 1000).",
     "source of Flax, errors.py"},
    {"flax-parameter-missing", root, "ScopeParamNotFoundError",
     R"(ScopeParamNotFoundError: .*parameter named .(\w+). in scope .([^.\x22]*))",
     "the variables of the model have no parameter {1} in {2} {frame}",
     "pass the variables of the same model: `{'params': params}`", "",
     "flax.errors.ScopeParamNotFoundError: Could not find parameter named \"kernel\" in scope \"/head\".",
     "source of Flax, errors.py"},
    // TensorFlow, Keras.
    {"tensorflow-input-not-finite", root, "Detected Infinity or NaN in output",
     R"re(Detected (Infinity or NaN|NaN|Infinity) in output \d+ of .*"(Placeholder|IteratorGetNext|\w*Dataset\w*)")re",
     "the input data of TensorFlow have values that are infinite or not a number {frame}",
     "look for them before the training, `numpy.isfinite(x).all()`, and remove or replace those samples", "",
     "!!! Detected Infinity or NaN in output 0 of graph op \"IteratorGetNext\" (# of outputs: 1) !!!",
     "source of TensorFlow, check_numerics_callback.py"},
    {"tensorflow-not-finite", root, "Detected Infinity or NaN in output\n: Tensor had ",
     R"re(Detected (?:Infinity or NaN|NaN|Infinity) in output \d+ of .*"(\w+)"|: Tensor had ((?:[+-]?Inf|NaN)(?:(?: and|,) [+-]?(?:Inf|NaN))*) values)re",
     "a check of TensorFlow found values that are infinite or not a number[[, in the output of {1}]][[: "
     "{2}]] "
     "{frame}",
     "use a smaller learning rate, `clipnorm`, and an epsilon in logarithms, roots and divisions; check the "
     "input data, too",
     "",
     "!!! Detected Infinity or NaN in output 0 of graph op \"Log\" (# of outputs: 1) !!!\n"
     "InvalidArgumentError: x : Tensor had NaN values [Op:CheckNumerics]",
     "source of TensorFlow, check_numerics_callback.py"},
    {"tensorflow-image-damaged", root,
     "Failed to decode \nUnknown image file format\nInvalid JPEG data\nInvalid PNG\nUnable to decode bytes "
     "as JPEG",
     R"((Failed to decode (?:WebP|BMP|GIF|JPEG|PNG)[\w ]*|Unknown image file format|Invalid JPEG data or crop window|Invalid PNG[\w ]*|Unable to decode bytes as JPEG))",
     "a file of the dataset is no image, or is damaged: {1}", "`stoker data lint FOLDER` lists such files",
     "stoker data lint FOLDER",
     "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.\n"
     "Invalid JPEG data or crop window, data size 4096 [Op:DecodeJpeg]",
     "source of TensorFlow, decode_image_op.cc"},
    {"tensorflow-port-taken", root, "Failed to add port to server",
     R"(Failed to add port to server: No address added out of total \d+ resolved for '([^']+)')",
     "the address {1} of this task is in use, by another job or a leftover process",
     "use a free port for this task in `TF_CONFIG`, or end the process that uses it", "ss -ltnp",
     "E0000 00:00:1795803317.995886    6769 add_port.cc:83] Failed to add port to server: No address added "
     "out of total 1 resolved for '0.0.0.0:12345'",
     "source of gRPC, add_port.cc"},
    {"tensorflow-server", ending, "Could not start gRPC server", "",
     "TensorFlow could not start the server of this task: its port in `TF_CONFIG` may be in use",
     "use a free port for this task in `TF_CONFIG`", "ss -ltnp",
     "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server",
     "source of TensorFlow, grpc_server_lib.cc"},
    {"keras-argument", root, "Argument(s) not recognized", R"(Argument\(s\) not recognized: \{'(\w+)')",
     "an optimizer or a layer of Keras 3 has no argument {1} {frame}",
     "use `learning_rate` instead of `lr`, and a schedule of `keras.optimizers.schedules` instead of `decay`",
     "", "ValueError: Argument(s) not recognized: {'lr': 0.001}", "source of Keras, base_optimizer.py"},
    {"keras-class-unknown", root,
     "Could not locate class '\nCould not locate function '\nUnknown layer: '\nUnknown object: '",
     R"((?:Could not locate (?:class|function)|Unknown (?:layer|object):) '([^']+)')",
     "Keras does not know {1}, which the saved model uses {frame}",
     "pass it to `load_model` with `custom_objects`, or import the module that registers it with "
     "`keras.saving.register_keras_serializable()`",
     "",
     "TypeError: Could not locate class 'MultiScale'. Make sure custom classes are decorated\n"
     "ValueError: Unknown layer: 'MultiScale'. Please ensure you are using a `keras.utils."
     "custom_object_scope`",
     "source of Keras, serialization_lib.py"},
    {"keras-saved-model", root, "File format not supported: filepath=",
     R"(File format not supported: filepath=(.*?)\. Keras 3 only supports)",
     "Keras 3 cannot load {1}, a SavedModel of an earlier version {frame}",
     "`keras.layers.TFSMLayer(PATH, call_endpoint='serving_default')` reads it; or save it anew as `.keras`",
     "",
     "ValueError: File format not supported: filepath=out/m. Keras 3 only supports V3 `.keras` files, legacy "
     "H5 "
     "format files",
     "source of Keras, saving_api.py"},
    {"keras-cardinality", root, "Data cardinality is ambiguous",
     R"(Data cardinality is ambiguous.*?'?x'? sizes: ([\d, ]*\d),? *'?y'? sizes: ([\d, ]*\d)|Data cardinality is ambiguous:?$)",
     "inputs and labels have different numbers of samples[[: {1} and {2}]] {frame}",
     "compare the lengths of the arrays where they are loaded: one of them lacks samples", "",
     "ValueError: Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. "
     "'x' "
     "sizes: 1000, 'y' sizes: 999",
     "source of Keras, data_adapter_utils.py"},
    {"keras-labels-shape", root, "Received: target.shape=\n are incompatible",
     R"(^(?:\w+\.)*\w+: (?:Arguments `target` and `output` must have the same (?:shape|rank).*target\.shape=(\([^)]*\)), output\.shape=(\([^)]*\))|Shapes (\([^)]*\)) and (\([^)]*\)) are incompatible$))",
     "labels of the shape {1}{3} do not fit the output {2}{4} of the model {frame}",
     "integer labels need `sparse_categorical_crossentropy`, or `keras.utils.to_categorical`; otherwise give "
     "the last layer as many outputs as there are classes",
     "",
     "ValueError: Arguments `target` and `output` must have the same shape. Received: target.shape=(None, "
     "1), output.shape=(None, 5)\n"
     "ValueError: Arguments `target` and `output` must have the same rank (ndim). Received: "
     "target.shape=(8,), "
     "output.shape=(8, 5)\n"
     "ValueError: Shapes (None, 1) and (None, 5) are incompatible",
     "source of Keras, nn.py"},
    {"keras-weights-differ", root,
     "and the shape of the target value in `variable.assign\nvariables during loading\nobjects could not be "
     "loaded",
     R"((?:variable\.shape=(\([^)]*\)), Received: value\.shape=(\([^)]*\))(?:.*<Variable path=([^,>\s]+))?|Layer '([^']+)' expected \d+ variables, but received \d+ variables during loading))",
     "the weights belong to a different model {frame}[[: {3}]][[: the layer {4} has other variables]][[: "
     "shape {2} in the file and {1} in the model]]",
     "build the model with the settings that the weights were saved with; "
     "`load_weights(FILE, skip_mismatch=True)` loads only what fits",
     "",
     "The shape of the target variable and the shape of the target value in `variable.assign(value)` must "
     "match. variable.shape=(3, 16), Received: value.shape=(3, 8). Target variable: <Variable "
     "path=enc0/kernel, shape=(3, 16)>\n"
     "ValueError: Layer 'dense' expected 2 variables, but received 0 variables during loading.",
     "source of Keras, saving_lib.py"},
    // Lightning.
    {"lightning-arguments-not-saved", root, "(below lightning.load)",
     R"(^TypeError: (?:\w+\.)*?(\w+)\.__init__\(\) missing \d+ required positional arguments?: (.*) \(below lightning\.load\)$)",
     "the checkpoint does not hold the arguments of {1}: {2} {frame}",
     "pass them to `load_from_checkpoint`, and call `self.save_hyperparameters()` in `__init__` for later "
     "checkpoints",
     "", "TypeError: Net.__init__() missing 1 required positional argument: 'width' (below lightning.load)",
     "source of Lightning, saving.py"},
    {"lightning-monitor", root, "could not find the monitored key",
     R"(could not find the monitored key in the returned metrics: (\[[^\]]*\]))",
     "a callback of Lightning monitors a metric that was not logged: there are {1}",
     "set `monitor` to one of them, or log it with `self.log` under that name", "",
     "lightning.fabric.utilities.exceptions.MisconfigurationException: `ModelCheckpoint(monitor='val_acc')` "
     "could not find the monitored key in the returned metrics: ['train_loss', 'val_loss']",
     "source of Lightning, model_checkpoint.py"},
    {"early-stopping-metric", root, "Early stopping conditioned on metric",
     R"(Early stopping conditioned on metric `([^`]+)` which is not available.*following: (.*))",
     "early stopping monitors {1}, which was not logged: there are {2}",
     "set `monitor` to one of them, or log it with `self.log` under that name", "",
     "RuntimeError: Early stopping conditioned on metric `val_loss` which is not available. Pass in or "
     "modify your "
     "`EarlyStopping` callback to use any of the following: `train/loss`",
     "source of Lightning, early_stopping.py"},
    {"hydra-value-missing", root, "Missing mandatory value", R"(Missing mandatory value: ([\w.]+))",
     "the configuration requires a value for {1} {frame}", "`{1}=VALUE` on the command line sets it", "",
     "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.root",
     "source of OmegaConf, base.py"},
    {"lightning-no-gpu", root, "No supported gpu backend found", "", "Lightning finds no GPU on that node",
     "request a GPU (`#SBATCH --gres=gpu:1`) on a node with GPUs, and install a torch built for CUDA",
     "nvidia-smi",
     "lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",
     "source of Lightning, accelerator_connector.py"},
    // Hugging Face, DeepSpeed, Optuna.
    {"hf-argument-renamed", root, "unexpected keyword argument 'evaluation_strategy'", "",
     "this version of transformers has no argument evaluation_strategy {frame}",
     "use `eval_strategy`, its name in newer versions", "pip show transformers",
     "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
     "source of transformers, training_args.py"},
    {"argument-unexpected", root, "got an unexpected keyword argument",
     R"(^TypeError: (?:\w+\.)*?(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)')",
     "{1} has no argument {2} {frame}: a misspelling, or a different version of its library",
     "compare the arguments with the documentation of the installed version: `pip list`", "",
     "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'\n"
     "TypeError: fit() got an unexpected keyword argument 'nb_epoch'",
     "source of CPython"},
    {"deepspeed-batch", root, "Check batch related parameters",
     R"(train_batch_size is not equal to micro_batch_per_gpu \* gradient_acc_step \* world_size (\d+) != (\d+) \* (\d+) \* (\d+))",
     "`train_batch_size` is {1}, but the micro-batch, the accumulation steps and the ranks are {2}, {3} and "
     "{4}",
     "leave one of the three numbers out of DeepSpeed's configuration: it is computed; or start as many "
     "ranks "
     "as they need",
     "",
     "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
     "gradient_acc_step * world_size 64 != 8 * 4 * 1",
     "source of DeepSpeed, config.py"},
    {"deepspeed-no-latest", root, "(below None)",
     R"(Unable to find latest file at ([^\s,]+),? .*\(below None\)$)",
     "DeepSpeed found no checkpoint: {1} does not exist, and the program used what was not loaded {frame}",
     "check the folder, or pass the `tag` of a checkpoint; at a first start, continue without one", "",
     "Unable to find latest file at ckpts/latest, if trying to load latest checkpoint (below None)",
     "source of DeepSpeed, engine.py"},
    {"image-not-read", root, "(below None)",
     R"(imread_\(['"]([^'"]*)['"]\): can't open/read file.*\(below None\)$)",
     "OpenCV could not read the image {1}, and the program used it {frame}",
     "check the path; `stoker data lint FOLDER` lists damaged images", "stoker data lint FOLDER",
     "[ WARN:0@0.013] global loadsave.cpp:268 findDecoder imread_('a.jpg'): can't open/read file: check file "
     "path/integrity (below None)",
     "source of OpenCV, loadsave.cpp"},
    {"optuna-no-trial", root, "No trials are completed yet", "",
     "no trial of Optuna completed: each one failed or was pruned",
     "read the error of the first trial above; remove `catch` from `optimize` to stop there", "",
     "ValueError: No trials are completed yet.", "source of Optuna, _base.py"},
    // Ray, XGBoost, scikit-learn, pandas.
    {"ray-not-running", root, "Could not find any running Ray instance", "",
     "no Ray cluster runs where the program looks for one",
     "start one first (`ray start --head`), or call `ray.init()` without `address`", "ray status",
     "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to by "
     "setting `--address` flag or `RAY_ADDRESS` environment variable.",
     "source of Ray, services.py"},
    {"ray-node-timeout", root, "The current node timed out during startup", "",
     "a node of Ray did not start in time",
     "read `gcs_server.out` and `raylet.out` in the session's `logs` folder; a loaded node or a slow "
     "`--temp-dir` "
     "needs more time",
     "",
     "Exception: The current node timed out during startup. This could happen because some of the raylet "
     "failed "
     "to startup or the GCS has become overloaded.",
     "source of Ray, node.py"},
    {"labels-not-from-zero", root,
     "label must be discrete values\nLabel must be in [0\nInvalid classes inferred",
     R"((label must be discrete values in the range of \[0, num_class\)|Label must be in \[0, \d+\)|Invalid classes inferred from unique values of `y`))",
     "a label is outside of the classes: {1}",
     "number the classes from 0, for example `y - y.min()` or `LabelEncoder`; compare with `num_class`", "",
     "xgboost.core.XGBoostError: multiclass_obj.cu:64: Check failed: valid: SoftmaxMultiClassObj: label must "
     "be discrete values in the range of [0, num_class).\n"
     "lightgbm.basic.LightGBMError: Label must be in [0, 4), but found 4 in label",
     "source of XGBoost, multiclass_obj.cu"},
    {"data-not-finite", root, "contains NaN\ncontains infinity\ncontains inf or NaN",
     R"((?:(Input \w+|Input) contains (NaN|infinity)|Label contains (NaN), infinity|contains (inf or NaN)))",
     "the data is not finite: {1} contains {2}{3}{4} {frame}",
     "find the rows with `np.isfinite`, then drop or fill them; a division by zero is a usual reason", "",
     "ValueError: Input X contains infinity or a value too large for dtype('float64').\n"
     "ValueError: Input y contains NaN.",
     "source of scikit-learn, validation.py"},
    {"all-fits-failed", effect, "fits failed", R"(^All the (\d+) fits failed)", "all {1} fits failed", "", "",
     "All the 9 fits failed.", "source of scikit-learn, _validation.py"},
    {"sample-counts-differ", root, "inconsistent numbers of samples",
     R"(inconsistent numbers of samples: (\[[\d, ]*\]))",
     "arrays have different numbers of samples: {1} {frame}",
     "compare the lengths of the arrays where they are loaded: one of them lacks samples", "",
     "ValueError: Found input variables with inconsistent numbers of samples: [100, 99]",
     "source of scikit-learn, validation.py"},
    {"column-missing", root, "(below table)", R"(^KeyError: (.*) \(below table\)$)",
     "the table has no column or row {1} {frame}",
     "`print(list(df.columns))` shows its names: a blank, a different separator or spelling is usual; "
     "`skipinitialspace=True` and `sep=` of `read_csv`",
     "", "KeyError: 'age' (below table)", "source of pandas, base.py"},
    {"entry-missing", root, "(below store)\nobject '",
     R"(^(?:KeyError|FileNotFoundError): ['\x22]?([^\s'\x22/]+)['\x22]? \(below store\)$|\(object '([^']+)' doesn't exist\))",
     "the store or file has no array or group {1}{2} {frame}",
     "list what it has: `print(list(group))`; correct the name, or write it first", "",
     "KeyError: 'tp' (below store)\nKeyError: \"Unable to synchronously open object (object 'tp' doesn't "
     "exist)\"",
     "source of zarr, group.py; h5py, group.py"},
    {"dataset-columns-differ", root, "because column names don't match",
     R"(Couldn't cast:? (.*?) because column names don't match)",
     "the files of a dataset have different columns {frame}[[: {1}]]",
     "give all files the same columns, or load them apart and join them: `concatenate_datasets`", "",
     "datasets.table.CastError: Couldn't cast text, label, source to text, label because column names don't "
     "match",
     "source of datasets, table.py"},
    {"csv-malformed", root, "Error tokenizing data",
     R"(Error tokenizing data. C error: Expected (\d+) fields in line (\d+), saw (\d+))",
     "line {2} of a CSV file has {3} fields instead of {1}",
     "quote the text of that line if it contains a comma; `on_bad_lines='warn'` skips such lines", "",
     "pandas.errors.ParserError: Error tokenizing data. C error: Expected 3 fields in line 1417, saw 4",
     "source of pandas, parsers.pyx"},
    // PyTorch.
    {"checkpoint-of-gpu", root, "Attempting to deserialize object on",
     R"(Attempting to deserialize object on (?:a )?CUDA device)",
     "the checkpoint holds tensors of a GPU that this node does not have {frame}",
     "`torch.load(FILE, map_location='cpu')`, or use a node with as many GPUs", "",
     "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
     "False.",
     "source of PyTorch, serialization.py"},
    {"optimizer-groups-differ", root, "size of optimizer's group\ndifferent number of parameter groups", "",
     "the state of the optimizer belongs to other parameters than the optimizer has {frame}",
     "build the optimizer over the same parameters as when it was saved, or start with a new state", "",
     "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's "
     "group",
     "source of PyTorch, optimizer.py"},
    {"checkpoint-shape", root, "copying a param with shape",
     R"(size mismatch for ([\w.]+): copying a param with shape (?:torch\.Size\()?(\[[\d, ]*\])\)? from checkpoint, the shape in current model is (?:torch\.Size\()?(\[[\d, ]*\]))",
     "the parameter {1} has the shape {2} in the checkpoint and {3} in the model",
     "use the settings of the checkpoint; for a new head, delete its weights from the loaded state and use "
     "`strict=False`",
     "stoker checkpoint diff A B",
     "    size mismatch for fc.weight: copying a param with shape torch.Size([10, 16]) from checkpoint, the "
     "shape in "
     "current model is torch.Size([37, 16]).",
     "source of PyTorch, module.py"},
    // Python.
    {"process-pool-broken", ending, "BrokenProcessPool\nTerminatedWorkerError",
     R"((BrokenProcessPool|TerminatedWorkerError): )",
     "a worker process of a pool died {frame}: usually killed for its memory, otherwise by a crash or an "
     "exit of its "
     "code",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly "
     "while the "
     "future was running or pending.\n"
     "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor "
     "was "
     "unexpectedly terminated.",
     "source of CPython, process.py"},
    {"pickled-class-missing", root, "(below unpickle)\nCan't get attribute '",
     R"(No module named '([\w.]+)' \(below unpickle\)|Can't get attribute '(\w+)' on <module '([\w.]+)')",
     "the file holds an object of[[ the module {1}]][[ the class {2} of {3}]], which the program does not "
     "have {frame}",
     "start it with `PYTHONPATH=FOLDER` of the code that wrote the file; save `model.state_dict()` instead "
     "of objects",
     "",
     "ModuleNotFoundError: No module named 'mynet' (below unpickle)\n"
     "AttributeError: Can't get attribute 'Net' on <module '__main__' from 'eval.py'>",
     "source of CPython, _pickle.c"},
    {"certificate-refused", root, "CERTIFICATE_VERIFY_FAILED",
     R"(CERTIFICATE_VERIFY_FAILED\] certificate verify failed: ([^(]+))",
     "the certificate of a server was refused: {1}",
     "`export SSL_CERT_FILE=CA.pem`, and for requests `REQUESTS_CA_BUNDLE`, with the certificates of your "
     "site; an "
     "expired one has to be renewed there",
     "",
     "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed "
     "certificate (_ssl.c:1006)",
     "source of CPython, _ssl.c"},
    {"links-in-a-circle", root, "Too many levels of symbolic links",
     R"(Too many levels of symbolic links(?:: '([^']*)')?)", "symbolic links point at each other[[: {1}]]",
     "`namei -l PATH` shows them; `ln -sfn FOLDER LINK` sets one anew", "",
     "OSError: [Errno 40] Too many levels of symbolic links: 'latest/a.json'", "source of glibc, errlist"},
    {"path-is-none", general, "not NoneType\nnot 'NoneType'",
     R"(expected str, bytes or os\.PathLike object, not NoneType|argument must be a string, .* not 'NoneType')",
     "a path or a number is None {frame}: usually an option or an environment variable is not set",
     "print it before that line; `export NAME=VALUE` sets a variable", "",
     "TypeError: expected str, bytes or os.PathLike object, not NoneType\n"
     "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
     "source of CPython, posixpath.py", kScriptEnds, kFitsSeveral},
    {"text-encoding", root, "codec can't decode byte\ncodec can't encode character",
     R"('(ascii|latin-1|charmap|cp1252)' codec can't (decode byte \w+|encode characters?))",
     "the program reads or writes text as {1}, which cannot {2} {frame}",
     "`export PYTHONUTF8=1`, or open the file with `encoding='utf-8'`", "locale",
     "UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 6: ordinal not in range(128)",
     "source of CPython"},
    {"text-not-utf8", root, "'utf-8' codec can't decode byte",
     R"('utf-8' codec can't decode byte (\w+) in position (\d+))",
     "a file is not text in UTF-8: byte {1} at position {2} {frame}",
     "open it with its own encoding, or with the program that compressed it (0x8b is gzip)", "",
     "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x8b in position 1: invalid start byte",
     "source of CPython"},
    {"text-as-number", root,
     "not supported between instances of\nunsupported operand type(s)\nnon-int of type",
     R"(((?:'[^']+' not supported between instances of '(?:float|int)' and 'str'|'[^']+' not supported between instances of 'str' and '(?:float|int)'|unsupported operand type\(s\) for [^:]+: '(?:(?:float|int)' and 'str|str' and '(?:float|int))'|can't multiply sequence by non-int of type 'float')))",
     "a text is used as a number {frame}: {1}",
     "YAML reads `1e-3` as text: write `1.0e-3`, or convert it with `float()`", "",
     "TypeError: '<=' not supported between instances of 'float' and 'str'\n"
     "TypeError: unsupported operand type(s) for *: 'float' and 'str'",
     "source of CPython"},
    {"start-method-twice", root, "(below spawn)", R"(context has already been set \(below spawn\)$)",
     "the script starts processes on import {frame}", "put its last lines below `if __name__ == '__main__':`",
     "", "RuntimeError: context has already been set (below spawn)",
     "source of CPython, multiprocessing/spawn.py"},
    {"start-method-set", root, "context has already been set", "",
     "`set_start_method` was called twice, or after a library had started processes {frame}",
     "call it once, first in the program, below `if __name__ == '__main__':`", "",
     "RuntimeError: context has already been set", "source of CPython, multiprocessing/context.py"},
    {"module-hidden", root, "(below own ", R"(\(below own (\w+)\.py\)$)",
     "your file {1}.py hides the module {1}, which a library imports {frame}",
     "rename your file {1}.py, and delete `__pycache__` beside it",
     "python -c 'import {1}; print({1}.__file__)'",
     "RecursionError: maximum recursion depth exceeded (below own random.py)", "source of CPython, import.c"},
    {"read-none", general, "(below reader)",
     R"(^(AttributeError: 'NoneType' object has no attribute '\w+'|TypeError: 'NoneType' object is not \w+) \(below reader\)$)",
     "a file was empty, or holds nothing (`null`), and the program used it {frame}: {1}",
     "print its name before that line, and skip or repair such files", "find . -size 0",
     "AttributeError: 'NoneType' object has no attribute 'get' (below reader)", "source of CPython",
     kScriptEnds, kFitsSeveral},
    {"used-none", general, "'NoneType' object ",
     R"(^(?:AttributeError|TypeError): ('NoneType' object (?:has no attribute '\w+'|is not (?:subscriptable|iterable|callable)|does not support item assignment).*))",
     "the program used a None {frame}: {1}",
     "print the values of that line: a missing key (`get`), a search without a match, an empty file or a "
     "function without `return` give None",
     "", "AttributeError: 'NoneType' object has no attribute 'shape'", "source of CPython", kScriptEnds,
     kFitsSeveral},
    {"python-too-old", root, "(below Python ", R"(^SyntaxError: .*\(below Python ([\d.]+)\)$)",
     "Python is too old for a line of the code, which needs Python {1} {frame}",
     "use an environment with that version; `python --version` shows the current one", "python --version",
     "SyntaxError: invalid syntax (below Python 3.12)", "source of CPython"},
    {"python-2-code", root, "Missing parentheses in call to '",
     R"(Missing parentheses in call to '(print|exec)')", "the code was written for Python 2 {frame}",
     "convert it to Python 3: `2to3 -w FILE`", "",
     "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?", "source of CPython"},
    {"library-assertion", general, "(below library ",
     R"(^AssertionError(?:: (.*))? \(below library ([\w-]+)\)$)",
     "an assertion in {2} failed {frame}[[: {1}]]",
     "read the arguments that the last line of the program passes to it", "",
     "AssertionError: group is not initialized (below library megatron)", "source of CPython"},
    // C++.
    {"cpp-not-a-number", root, "what():  sto", R"(^ +what\(\):  (sto(?:i|l|ll|ul|ull|f|d|ld))$)",
     "an exception of C++ ended the program: std::{1} got a text that is no number, or a number that is too "
     "large",
     "check the numbers in its input; `gdb -batch -ex run -ex bt --args PROGRAM` shows where", "",
     "  what():  stoi", "source of libstdc++, string_conversions.h"},
    {"cpp-exception", ending, "terminate called after throwing",
     R"(terminate called after throwing an instance of '([^']+)'$)",
     "an exception of C++ ended the program: {1}[[: {2}]]",
     "`gdb -batch -ex run -ex bt --args PROGRAM` shows where", "",
     "terminate called after throwing an instance of 'std::invalid_argument'",
     "source of libstdc++, vterminate.cc"},
};

}  // namespace

std::span<const FailureRule> library_rules() { return kLibraryRules; }

}  // namespace stoker::diagnose
