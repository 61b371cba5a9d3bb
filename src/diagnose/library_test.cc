// Exceptions of libraries, by their tracebacks.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

constexpr char kBegin[] = "Traceback (most recent call last):\n";
constexpr char kOfUser[] = "  File \"/users/ada/train.py\", line 7, in main\n    step()\n";

std::string in_library(const std::string& path, const std::string& function, const std::string& exception) {
  return format("{}{}  File \"/v/lib/python3.11/site-packages/{}\", line 3, in {}\n    check()\n{}\n", kBegin,
                kOfUser, path, function, exception);
}

TEST(Library, an_assertion_belongs_to_the_file_of_its_last_frame) {
  const Diagnosis bare = explain_log(in_library("megatron/core/tensor.py", "split", "AssertionError"));
  EXPECT_EQ(bare.cause, "an assertion in megatron failed (train.py:7)");
  EXPECT_EQ(bare.certainty, Certainty::likely);
  const Diagnosis with_text =
      explain_log(in_library("apex/amp.py", "initialize", "AssertionError: initialize was called twice"));
  EXPECT_EQ(with_text.cause, "an assertion in apex failed (train.py:7): initialize was called twice");
  EXPECT_EQ(with_text.certainty, Certainty::known);
  const Diagnosis of_python = explain_log(
      format("{}{}  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 115, in start\n    assert "
             "self._popen is None\nAssertionError\n",
             kBegin, kOfUser));
  EXPECT_EQ(of_python.cause, "an assertion in multiprocessing failed (train.py:7)");
  const Diagnosis of_user = explain_log(format("{}{}AssertionError: no data\n", kBegin, kOfUser));
  EXPECT_EQ(of_user.cause, "an assertion of the program failed (train.py:7): no data");
  EXPECT_EQ(of_user.certainty, Certainty::known);
}

TEST(Library, a_bare_assertion_of_jax_is_about_its_backends) {
  const Diagnosis start = explain_log(in_library("jax/_src/xla_bridge.py", "backends", "AssertionError"));
  EXPECT_EQ(start.rule, "jax-no-platform");
  const Diagnosis use = explain_log(in_library("jax/_src/dispatch.py", "apply_primitive", "AssertionError"));
  EXPECT_EQ(use.rule, "jax-assertion");
  EXPECT_EQ(use.certainty, Certainty::likely);
  // Another exception below the same frames.
  EXPECT_EQ(explain_log(in_library("jax/_src/xla_bridge.py", "backends",
                                   "RuntimeError: Unable to initialize backend 'cuda': no device"))
                .rule,
            "jax-no-backend");
}

TEST(Library, an_exception_that_states_no_cause_is_not_sure) {
  EXPECT_EQ(
      explain_log(format("{}{}AttributeError: 'NoneType' object has no attribute 'shape'\n", kBegin, kOfUser))
          .certainty,
      Certainty::likely);
  EXPECT_EQ(explain_log(format("{}{}XlaRuntimeError: INTERNAL: failed\n", kBegin, kOfUser)).certainty,
            Certainty::likely);
  EXPECT_EQ(explain_log(format("{}{}TypeError: expected str, bytes or os.PathLike object, not NoneType\n",
                               kBegin, kOfUser))
                .certainty,
            Certainty::likely);
  EXPECT_EQ(explain_log(format("{}{}KeyError: 'lr'\n", kBegin, kOfUser)).certainty, Certainty::known);
}

TEST(Library, what_was_not_read_explains_a_later_none) {
  const std::string none =
      format("{}{}AttributeError: 'NoneType' object has no attribute 'shape'\n", kBegin, kOfUser);
  const Diagnosis image = explain_log(
      "[ WARN:0@0.013] global loadsave.cpp:268 findDecoder imread_('data/7.jpg'): can't open/read file: "
      "check "
      "file path/integrity\n" +
      none);
  EXPECT_EQ(image.cause, "OpenCV could not read the image data/7.jpg, and the program used it (train.py:7)");
  EXPECT_EQ(image.evidence.at(0).where, "train.log:1");
  const std::string first_start =
      "[WARNING] [engine.py:4437:load_checkpoint] Unable to find latest file at out/latest, if trying to "
      "load "
      "latest checkpoint please ensure this file exists\n";
  EXPECT_EQ(explain_log(first_start + none).rule, "deepspeed-no-latest");
  // A first start is no failure, whatever happens later.
  EXPECT_EQ(explain_log(first_start + steps(3) + kBegin + kOfUser + "KeyError: 'lr'\n").rule,
            "python-exception");
  EXPECT_EQ(explain_log(first_start + steps(90) + none).rule, "used-none");
}

TEST(Library, all_lines_of_a_message_are_read) {
  // AutoGraph names the user's line in the message.
  const Diagnosis graph = explain_log(format(
      "{}  File \"/tmp/__autograph_generated_filex1.py\", line 11, in tf__step\nTypeError: in user code:\n\n"
      "    File \"/users/ada/model.py\", line 21, in call  *\n        return x @ w\n\n"
      "    InvalidArgumentError: Matrix size-incompatible: In[0]: [8,97], In[1]: [128,6]\n\n",
      kBegin));
  EXPECT_EQ(
      graph.cause,
      "the program raised InvalidArgumentError: Matrix size-incompatible: In[0]: [8,97], In[1]: [128,6] "
      "(model.py:21)");
  EXPECT_EQ(explain_log(
                format("{}{}E.InvalidArgumentError: Graph execution error:\n\nDetected at node a defined at "
                       "(most recent call last):\n<stack traces unavailable>\nInvalid JPEG data or crop "
                       "window, data size 12\n",
                       kBegin, kOfUser))
                .rule,
            "tensorflow-image-damaged");
  EXPECT_EQ(explain_log(
                format("{}{}ValueError: pytree structure error: different pytree metadata at key path\n"
                       "    grads\nAt that key path, the prefix pytree grads has a subtree of type\n"
                       "    <class 'dict'>\nwith metadata\n    ('bias', 'kernel')\nbut at the same key path "
                       "the full pytree has a subtree of the same type but with metadata\n    ('kernel',)\n",
                       kBegin, kOfUser))
                .cause,
            "two trees of JAX have different keys (train.py:7): ('bias', 'kernel') and ('kernel',)");
  EXPECT_EQ(explain_log(
                format("{}{}ValueError: pytree structure error: different numbers of pytree children at key "
                       "path\n    tree_map tree\nAt that key path, the prefix pytree tree_map tree has a "
                       "subtree of type\n    <class 'dict'>\nwith 2 child keys\n    b w\nbut at the same key "
                       "path the full pytree has a subtree of the same type but with 1 child keys\n    w\n",
                       kBegin, kOfUser))
                .cause,
            "two trees of JAX have different keys (train.py:7): b w and w");
  EXPECT_EQ(explain_log(
                format("{}{}ValueError: Data cardinality is ambiguous. Make sure all arrays contain the same "
                       "number of samples.'x' sizes: 64\n'y' sizes: 60\n",
                       kBegin, kOfUser))
                .cause,
            "inputs and labels have different numbers of samples: 64 and 60 (train.py:7)");
  // The errors of the single fits follow their number.
  EXPECT_EQ(explain_log(
                format("{}{}ValueError: \nAll the 4 fits failed.\nIt is very likely that your model is "
                       "misconfigured.\n\nBelow are more details about the failures:\n-----\n4 fits failed "
                       "with the following error:\n{}{}ValueError: could not convert string to float: 'x'\n",
                       kBegin, kOfUser, kBegin, kOfUser))
                .cause,
            "a text is no number (train.py:7): 'x'");
}

TEST(Library, the_result_of_a_study_outranks_the_errors_of_its_trials) {
  const std::string trial = format(
      "[W 2026-11-27 18:17:20,257] Trial 0 failed with parameters: {{}} because of the following error: "
      "OverflowError().\n{}{}OverflowError: too large\n",
      kBegin, kOfUser);
  EXPECT_EQ(explain_log(trial + kBegin + kOfUser + "ValueError: No trials are completed yet.\n").rule,
            "optuna-no-trial");
  EXPECT_EQ(explain_log(trial + kBegin + kOfUser + "OverflowError: too large\n").cause,
            "the program raised OverflowError: too large (train.py:7)");
}

TEST(Library, processes_on_import_need_a_guard) {
  const std::string again = "RuntimeError: context has already been set\n";
  EXPECT_EQ(explain_log(format("{}  File \"/usr/lib/python3.11/multiprocessing/spawn.py\", line 297, in "
                               "_fixup_main_from_path\n{}{}",
                               kBegin, kOfUser, again))
                .cause,
            "the script starts processes on import (train.py:7)");
  EXPECT_EQ(explain_log(std::string(kBegin) + kOfUser + again).rule, "start-method-set");
}

TEST(Library, new_syntax_names_the_python_that_it_needs) {
  const auto cause = [](const std::string& code, const std::string& message = "invalid syntax") {
    return explain_log(format("  File \"/users/ada/a.py\", line 2\n    {}\n      ^^^^\nSyntaxError: {}\n",
                              code, message))
        .cause.english();
  };
  EXPECT_THAT(cause("match state:"), HasSubstr("needs Python 3.10 (a.py:2)"));
  EXPECT_THAT(cause("except* ValueError:"), HasSubstr("needs Python 3.11"));
  EXPECT_THAT(cause("def first[T](x: list[T]) -> T:"), HasSubstr("needs Python 3.12"));
  EXPECT_THAT(cause("type Pair = tuple[int, int]"), HasSubstr("needs Python 3.12"));
  EXPECT_THAT(cause("f\"{a[\"b\"]}\"", "f-string: unmatched '['"), HasSubstr("needs Python 3.12"));
  EXPECT_THAT(cause("print 'done'", "Missing parentheses in call to 'print'. Did you mean print(...)?"),
              HasSubstr("Python 2"));
  EXPECT_EQ(cause("match = state:"), "Python cannot parse the code (a.py:2): invalid syntax");
  EXPECT_EQ(cause("x = = 3"), "Python cannot parse the code (a.py:2): invalid syntax");
  EXPECT_EQ(cause("for type in kinds", "expected ':'"),
            "Python cannot parse the code (a.py:2): expected ':'");
}

TEST(Library, an_import_from_the_users_own_file_is_distinguished) {
  const auto rule = [](const std::string& error) {
    return explain_log(kBegin + std::string(kOfUser) + error).rule;
  };
  EXPECT_EQ(
      rule("ImportError: cannot import name 'Trainer' from 'transformers' (/users/ada/transformers.py)\n"),
      "name-not-in-own-file");
  EXPECT_EQ(rule("ImportError: cannot import name 'Trainer' from 'transformers' "
                 "(/v/lib/python3.11/site-packages/transformers/__init__.py)\n"),
            "name-not-in-module");
  EXPECT_EQ(
      rule(
          "ImportError: cannot import name 'f' from partially initialized module 'utils' (most likely due to "
          "a circular import) (/users/ada/utils.py)\n"),
      "circular-import");
}

TEST(Library, relatives_of_known_exceptions_have_a_cure) {
  const auto rule = [](const std::string& error) {
    const Diagnosis diagnosis = explain_log(kBegin + std::string(kOfUser) + error + "\n");
    EXPECT_FALSE(diagnosis.cure.english().empty()) << error;
    return diagnosis.rule;
  };
  EXPECT_EQ(
      rule("jax.errors.TracerIntegerConversionError: The __index__() method was called on traced array with "
           "shape int32[]"),
      "jax-traced-value");
  EXPECT_EQ(rule("TypeError: operands could not be broadcast together with shapes (3,4) (5,)"),
            "arrays-do-not-fit");
  EXPECT_EQ(rule("TypeError: sub got incompatible shapes for broadcasting: (8, 3), (8, 4)."),
            "shapes-do-not-fit");
  EXPECT_EQ(rule("ValueError: Argument(s) not recognized: {'decay': 1e-6}"), "keras-argument");
  EXPECT_EQ(rule("TypeError: Could not locate function 'swish2'. Make sure custom functions are decorated"),
            "keras-class-unknown");
  EXPECT_EQ(rule("TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'no_cuda'"),
            "argument-unexpected");
  EXPECT_EQ(rule("AttributeError: module 'ray.air' has no attribute 'Checkpoint'"), "module-attribute-gone");
  EXPECT_EQ(rule("lightgbm.basic.LightGBMError: Label must be in [0, 3), but found 3 in label"),
            "labels-not-from-zero");
  EXPECT_EQ(rule("ValueError: Input X contains NaN."), "data-not-finite");
  EXPECT_EQ(rule("UnicodeEncodeError: 'ascii' codec can't encode characters in position 0-1: ordinal not in "
                 "range(128)"),
            "text-encoding");
  EXPECT_EQ(
      rule("UnicodeDecodeError: 'utf-8' codec can't decode byte 0x8b in position 1: invalid start byte"),
      "text-not-utf8");
  EXPECT_EQ(rule("TypeError: unsupported operand type(s) for /: 'str' and 'int'"), "text-as-number");
  EXPECT_EQ(rule("TypeError: cannot pickle 'generator' object"), "cannot-pickle-resource");
  EXPECT_EQ(
      rule("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 429. GiB for an array with shape "
           "(240000, 240000) and data type float64"),
      "array-too-large");
  EXPECT_EQ(
      rule("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.81 MiB for an array with shape "
           "(1000, 1024) and data type float64"),
      "host-memory-error");
  EXPECT_EQ(rule("AttributeError: module 'numpy' has no attribute 'float'."), "numpy-alias-gone");
}

TEST(Library, a_loss_that_stays_nan_explains_a_failed_assertion) {
  const std::string gate = format("{}{}AssertionError: accuracy 0.0 is below 0.5\n", kBegin, kOfUser);
  std::string nan;
  for (int i = 0; i < 300; ++i) nan += format("step {} train_loss=nan lr 0.1\n", i);
  const Diagnosis lasting = explain_log(steps(20) + nan + gate);
  EXPECT_EQ(lasting.rule, "loss-is-nan");
  EXPECT_EQ(lasting.certainty, Certainty::likely);
  EXPECT_EQ(lasting.evidence.at(0).where, "train.log:21");
  EXPECT_EQ(explain_log(steps(20) + "step 21: loss=nan\n" + steps(20) + gate).rule, "assertion");
  EXPECT_EQ(explain_log(nan + steps(400) + gate).rule, "assertion");
}

std::string with_code(const std::string& code, const std::string& exception) {
  return format("{}  File \"/users/ada/net.py\", line 9, in forward\n    {}\n{}\n", kBegin, code, exception);
}

TEST(Library, the_line_of_code_shows_what_an_unspecific_exception_is_about) {
  const std::string index = "IndexError: index out of range in self";
  EXPECT_EQ(explain_log(with_code("x = x + self.pos_embedding(positions)", index)).rule,
            "position-out-of-range");
  EXPECT_EQ(explain_log(with_code("x = self.embed_tokens(ids)", index)).rule, "token-out-of-range");
  EXPECT_EQ(explain_log(with_code("x = self.table(ids)", index)).rule, "target-out-of-range");
  const std::string reshape = "ValueError: cannot reshape array of size 2 into shape (2,4)";
  EXPECT_EQ(explain_log(with_code("mesh = Mesh(np.array(devices).reshape(2, 4), names)", reshape)).rule,
            "mesh-needs-devices");
  EXPECT_EQ(explain_log(with_code("x = x.reshape(2, 4)", reshape)).rule, "reshape-differs");
  const std::string none = "TypeError: 'NoneType' object is not subscriptable";
  EXPECT_EQ(explain_log(with_code("n = yaml.safe_load(text)['n']", none)).rule, "read-none");
  const Diagnosis used = explain_log(with_code("n = best['n']", none));
  EXPECT_EQ(used.cause, "the program used a None (net.py:9): 'NoneType' object is not subscriptable");
  EXPECT_EQ(used.certainty, Certainty::likely);
}

TEST(Library, the_frame_of_a_library_shows_what_was_looked_for) {
  EXPECT_EQ(explain_log(in_library("pandas/core/indexes/base.py", "get_loc", "KeyError: 'city'")).cause,
            "the table has no column or row 'city' (train.py:7)");
  EXPECT_EQ(explain_log(in_library("zarr/core/group.py", "getitem", "KeyError: 'wind'")).cause,
            "the store or file has no array or group wind (train.py:7)");
  EXPECT_EQ(explain_log(in_library("httpcore/_sync/http_proxy.py", "handle_request",
                                   "httpcore.ConnectTimeout: timed out"))
                .rule,
            "proxy-not-reached");
  const std::string missing =
      "TypeError: Net.__init__() missing 2 required positional arguments: 'a' and 'b'";
  EXPECT_EQ(explain_log(in_library("lightning/pytorch/core/saving.py", "_load_state", missing)).cause,
            "the checkpoint does not hold the arguments of Net: 'a' and 'b' (train.py:7)");
  EXPECT_EQ(explain_log(with_code("net = Net()", missing)).rule, "python-exception");
}

TEST(Library, a_file_of_the_user_may_hide_a_module_from_a_library) {
  const auto imported = [](const std::string& file) {
    return format(
        "{}  File \"/users/ada/train.py\", line 1, in <module>\n    import lib\n"
        "  File \"/v/lib/python3.11/site-packages/lib/a.py\", line 4, in <module>\n    from queue import "
        "Queue\n"
        "  File \"{}\", line 2, in <module>\n    jobs = open_jobs()\nNameError: name 'open_jobs' is not "
        "defined\n",
        kBegin, file);
  };
  EXPECT_EQ(explain_log(imported("/users/ada/queue.py")).cause,
            "your file queue.py hides the module queue, which a library imports (queue.py:2)");
  EXPECT_EQ(explain_log(imported("/users/ada/jobs.py")).rule, "python-exception");
}

TEST(Library, a_message_ends_where_its_sentence_ends) {
  EXPECT_EQ(
      explain_log(with_code("f(x)", "ValueError: sizes differ:\n  * 3 in a;\n  * 4 in b\nepoch over")).cause,
      "the program raised ValueError: sizes differ: * 3 in a; * 4 in b (net.py:9)");
  const Diagnosis columns = explain_log(
      with_code("load()",
                "datasets.table.CastError: Couldn't cast\ntext: string\nsplit: string\n-- schema "
                "metadata --\nx: 3\nto\n{'text': Value('string')}\nbecause column names don't match"));
  EXPECT_THAT(columns.cause.english(), HasSubstr("(net.py:9): text, split to text"));
  const Diagnosis trees = explain_log(with_code(
      "restore()", "ValueError: tree structures do not match:\nparams:\n    - Source: 2\n    - Target: 3\n"));
  EXPECT_EQ(trees.rule, "orbax-trees-differ");
}

TEST(Library, a_file_that_is_opened_for_writing_lacks_its_folder) {
  const auto opening = [](const std::string& code, const std::string& inner = "") {
    return explain_log(
        format("{}  File \"/users/ada/train.py\", line 7, in main\n    {}\n{}FileNotFoundError: [Errno 2] No "
               "such file or "
               "directory: 'plots/a.png'\n",
               kBegin, code, inner));
  };
  for (const char* code : {"out = open(\"plots/%d.png\" % n, \"wb\")",
                           "with open(name, mode='a') as log:", "figure.savefig(name)", "np.save(name, x)"}) {
    const Diagnosis missing = opening(code);
    EXPECT_EQ(missing.cause,
              "the program cannot create plots/a.png (train.py:7): the folder of that file does "
              "not exist")
        << code;
    EXPECT_THAT(missing.cure.english(), HasSubstr("mkdir -p \"$(dirname plots/a.png)\""));
  }
  for (const char* code : {"data = open(name)", "open(name, 'rb')", "pd.read_csv(name).to_csv(other)"})
    EXPECT_EQ(opening(code).rule, "data-file-missing") << code;
  EXPECT_EQ(explain_log(kTraceback + "RuntimeError: Parent directory out/ck does not exist.\n").cause,
            "the program cannot write into the folder out/ck (train.py:7): it does not exist");
  // The inner call reads.
  EXPECT_EQ(opening("model.save(name)",
                    "  File \"/users/ada/model.py\", line 3, in save\n    text = open(self.card).read()\n")
                .rule,
            "data-file-missing");
}

TEST(Library, values_that_are_not_finite_are_named_where_they_come_from) {
  const Diagnosis anomaly = explain_log(
      "/v/lib/python3.11/site-packages/torch/autograd/graph.py:9: UserWarning: Error detected in "
      "LogBackward0. "
      "Traceback of forward call that caused the error:\n  File \"/users/ada/train.py\", line 30, in "
      "<module>\n"
      "    loss = model(x)\n  File \"/users/ada/model.py\", line 12, in forward\n    return x.log()\n"
      " (Triggered internally at a.cpp:7.)\n  return run_backward(\n" +
      std::string(kBegin) +
      "  File \"/users/ada/train.py\", line 31, in <module>\n    loss.backward()\nRuntimeError: Function "
      "'LogBackward0' returned nan values in its 0th output.\n");
  EXPECT_EQ(anomaly.cause, "the backward pass computed NaN in LogBackward0 (model.py:12)");
  EXPECT_EQ(anomaly.certainty, Certainty::known);
  const std::string check = in_library("tensorflow/python/eager/execute.py", "quick_execute",
                                       "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph "
                                       "execution error:\n\nx : Tensor had +Inf values\n\t [[{{node a}}]]");
  EXPECT_EQ(explain_log(check).cause,
            "a check of TensorFlow found values that are infinite or not a number: +Inf (train.py:7)");
  EXPECT_EQ(explain_log(check + "\t [[IteratorGetNext]] [Op:b]\n").rule, "tensorflow-input-not-finite");
}

TEST(Library, pmap_lacks_devices) {
  const Diagnosis pmap = explain_log(in_library(
      "jax/_src/pmap.py", "wrapped",
      "ValueError: cannot select an axis to squeeze out which has size not equal to one, got shape=(4, "
      "16) and dimensions=(0,)"));
  EXPECT_EQ(pmap.cause,
            "`pmap` maps the leading axis of its arguments, 4 entries, over as many devices, and the "
            "program does not have them (train.py:7)");
}

TEST(Library, an_actor_of_ray_is_named) {
  const Diagnosis actor = explain_log(
      "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n" +
      in_library("ray/worker.py", "get",
                 "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.") +
      "\tclass_name: Sampler\n\tactor_id: 98\n\tpid: 155\n\tname: sampler-3\n\tnamespace: a\nThe actor is "
      "dead because its "
      "worker process has died.\n");
  EXPECT_EQ(actor.cause, "an actor of Ray ended: sampler-3 of class Sampler, process 155");
  EXPECT_EQ(actor.cure,
            "read the log of its process (`ray logs`): it exited by itself, crashed or was killed");
  EXPECT_EQ(actor.certainty, Certainty::likely);
}

}  // namespace
}  // namespace stoker::diagnose
