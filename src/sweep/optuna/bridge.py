"""Optuna for a study of Stoker. Reads one request per line from standard input and writes one answer per line to standard
output, both JSON. Ends with its input: what it has begun it finishes, also when Stoker is killed."""

import errno
import importlib.util
import inspect
import json
import math
import os
import re
import signal
import sys
import time
import warnings


class RefusedError(Exception):
    """An error whose text is meant for the user, with facts for its cure."""

    def __init__(self, text, **facts):
        super().__init__(text)
        self.facts = facts


# ---- The space -------------------------------------------------------------------------------------------------------


def is_same_value(a, b):
    """As YAML: 1 and 1.0 are the same, 1 and true are not."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


class Space:
    def __init__(self, parameters):
        self.parameters = parameters
        self.distributions = {one["name"]: self.distribution(one) for one in parameters}
        self.choices = {one["name"]: self.choices_of(one) for one in parameters if "values" in one}
        self.values = {one["name"]: one["values"] for one in parameters if "values" in one}

    @staticmethod
    def choices_of(parameter):
        """The choices of Optuna, which takes 1 and true for equal: then all are text."""
        values = parameter["values"]
        is_clear = len(set(values)) == len(values)
        return values if is_clear else [json.dumps(value) for value in values]

    @classmethod
    def distribution(cls, one):
        if "values" in one:
            return optuna.distributions.CategoricalDistribution(cls.choices_of(one))
        if one["integer"]:
            step = int(one["step"]) or 1
            high = int(one["min"]) + (int(one["max"]) - int(one["min"])) // step * step
            return optuna.distributions.IntDistribution(int(one["min"]), high, log=one["log"], step=step)
        step = one["step"] or None
        high = one["max"]
        if step:
            high = max(one["min"], round(one["min"] + int((high - one["min"]) / step + 1e-9) * step, 12))
        return optuna.distributions.FloatDistribution(one["min"], high, log=one["log"], step=step)

    def is_active(self, parameter, values):
        when = parameter.get("when")
        return when is None or (
            when["name"] in values and any(is_same_value(values[when["name"]], value) for value in when["values"])
        )

    def to_optuna(self, values):
        """Values as Optuna has them."""
        result = {}
        for name, value in values.items():
            if name in self.choices:
                places = (i for i, one in enumerate(self.values[name]) if is_same_value(one, value))
                value = self.choices[name][next(places)]
            elif isinstance(self.distributions[name], optuna.distributions.FloatDistribution):
                value = float(value)
            result[name] = value
        return result

    def suggest(self, trial):
        """The values of the active parameters, as Stoker has them."""
        values = {}
        waiting = list(self.parameters)
        while waiting:
            parameter = next(one for one in waiting if "when" not in one or is_decided(one, waiting))
            waiting.remove(parameter)
            if not self.is_active(parameter, values):
                continue
            name = parameter["name"]
            suggested = trial._suggest(name, self.distributions[name])
            if name in self.choices:
                suggested = parameter["values"][self.choices[name].index(suggested)]
            values[name] = suggested
        return values


def is_decided(parameter, waiting):
    return all(one["name"] != parameter["when"]["name"] for one in waiting)


# ---- Samplers --------------------------------------------------------------------------------------------------------


def sampler_class(name):
    found = getattr(optuna.samplers, name, None)
    if inspect.isclass(found) and issubclass(found, optuna.samplers.BaseSampler) and not inspect.isabstract(found):
        return found
    known = [one for one in optuna.samplers.__all__ if one.endswith("Sampler") and not one.startswith("Base")]
    raise RefusedError("unknown sampler", name=name, candidates=known)


def make_sampler(request, trial_seed):
    kind = sampler_class(request["sampler"])
    options = dict(request["options"])
    if "seed" in inspect.signature(kind.__init__).parameters:
        # A sequence has one seed for all of its points.
        options["seed"] = request["seed"] if kind is optuna.samplers.QMCSampler else trial_seed
    return kind(**options)


class Proposer:
    """An in-memory study with Stoker's history, made for each trial: a proposal depends on nothing else."""

    def __init__(self):
        self.study = None

    def check(self, request):
        make_sampler(request, 0)
        return {}

    def propose(self, request):
        self.space = Space(request["space"])
        self.study = optuna.create_study(
            sampler=make_sampler(request, request["trial_seed"]), directions=request["directions"]
        )
        # Trials keep their places, to which the attributes of samplers refer.
        place = 0
        for trial in request["trials"]:
            while place < trial["place"]:
                self.study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
                place += 1
            self.add(trial)
            place += 1
        self.known_attributes = dict(self.study_attributes())
        return self.ask()

    def study_attributes(self):
        return self.study._storage.get_study_system_attrs(self.study._study_id)

    def add(self, trial):
        values = self.space.to_optuna(trial["params"])
        state = optuna.trial.TrialState[trial["state"]]
        attributes = trial["attributes"] or {"trial": {}, "study": {}}
        self.study.add_trial(
            optuna.trial.create_trial(
                state=state,
                values=trial["values"] if state.name == "COMPLETE" else None,
                params=values,
                distributions={name: self.space.distributions[name] for name in values},
                intermediate_values={
                    step: float("nan") if value is None else value for step, value in trial["reports"]
                },
                system_attrs=attributes["trial"],
            )
        )
        for key, value in attributes["study"].items():
            self.study._storage.set_study_system_attr(self.study._study_id, key, value)

    def ask(self):
        self.trial = self.study.ask()
        values = self.space.suggest(self.trial)
        attributes = self.study._storage.get_trial_system_attrs(self.trial._trial_id)
        changed = {
            key: value for key, value in self.study_attributes().items() if self.known_attributes.get(key) != value
        }
        return {"params": values, "attributes": {"trial": attributes, "study": changed}}

    def again(self, _):
        """Another point for the same trial. The refused one stays running, from which samplers keep away."""
        return self.ask()


# ---- Storages --------------------------------------------------------------------------------------------------------

DEFINITION = "stoker:definition"
PRIOR = "stoker:prior"
ORIGIN = "stoker:origin"
MESSAGE = "stoker:message"
SAMPLER = "stoker:sampler"
WORKER = "stoker:worker"
ATTEMPT = "stoker:attempt"
SEEDS = "stoker:seeds"
FOLDER = "stoker:folder:"
STATES = {"RUNNING": "running", "COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def storage_of(url):
    scheme, _, rest = url.partition("://")
    if scheme == "journal":
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(rest))
    options = {}
    if scheme == "sqlite":
        options["connect_args"] = {"timeout": 60}
    if scheme == "postgresql":
        drivers = [name for name in ("psycopg", "psycopg2") if importlib.util.find_spec(name)]
        if not drivers:
            raise RefusedError("no driver", missing="psycopg", package="psycopg[binary]")
        url = f"postgresql+{drivers[0]}://{rest}"
        options["pool_pre_ping"] = True
    # Of processes that create the tables of a new database at the same time, only one succeeds at first.
    for pause in (0.1, 0.3, 1):
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except Exception:
            time.sleep(pause)
    return optuna.storages.RDBStorage(url, engine_kwargs=options)


def plain_values(choices):
    """The choices of an Optuna user as values that Stoker has: no two are equal."""
    values = [one if isinstance(one, str | bool | int | float) else str(one) for one in choices]
    is_clear = all(is_same_value(a, b) == (i == j) for i, a in enumerate(values) for j, b in enumerate(values))
    return values if is_clear else [repr(one) for one in choices]


def parameter_of(name, distribution):
    if isinstance(distribution, optuna.distributions.CategoricalDistribution):
        return {"name": name, "values": plain_values(distribution.choices)}
    is_integer = isinstance(distribution, optuna.distributions.IntDistribution)
    step = distribution.step or 0
    return {
        "name": name,
        "min": distribution.low,
        "max": distribution.high,
        "integer": is_integer,
        "log": distribution.log,
        "step": 0 if is_integer and step == 1 else step,
    }


def chosen_sampler():
    """A sampler that proposes what Stoker chose."""

    class Chosen(optuna.samplers.BaseSampler):
        def __init__(self):
            self.values = {}

        def infer_relative_search_space(self, study, trial):
            return {}

        def sample_relative(self, study, trial, search_space):
            return {}

        def sample_independent(self, study, trial, param_name, param_distribution):
            return self.values[param_name]

    return Chosen()


class Storage:
    """A study in a storage of Optuna."""

    def __init__(self):
        self.begun = {}
        self.worker = ""

    def open(self, request):
        url, name, wanted = request["url"], request["name"], request["wanted"]
        storage = storage_of(url)
        known = optuna.get_all_study_names(storage)
        is_new = False
        if name not in known and request["create"]:
            try:
                study = optuna.create_study(storage=storage, study_name=name, directions=wanted["directions"])
                is_new = True
                self.fill(study, wanted)
            except optuna.exceptions.DuplicatedStudyError:
                pass  # a process created it at the same time
        elif name not in known:
            raise RefusedError("no study", code="not_found", name=name, candidates=known)
        self.sampler = chosen_sampler()
        self.study = optuna.load_study(
            storage=storage, study_name=name, sampler=self.sampler, pruner=optuna.pruners.NopPruner()
        )
        self.storage = self.study._storage
        self.finished = set()
        self.sent = {}
        deadline = time.monotonic() + 10
        while request["create"] and DEFINITION not in self.study.user_attrs and time.monotonic() < deadline:
            if self.study.get_trials(deepcopy=False):
                break  # of an Optuna user
            time.sleep(0.05)
        return {"new": is_new, **self.describe(wanted)}

    def exists(self, request):
        return {"exists": request["name"] in optuna.get_all_study_names(storage_of(request["url"]))}

    @staticmethod
    def fill(study, wanted):
        space = Space(wanted["space"])
        study.set_metric_names(wanted["metrics"])
        for one in wanted["enqueue"]:
            study.enqueue_trial(space.to_optuna(one["params"]), user_attrs={ORIGIN: one["origin"]})
        study.set_user_attr(PRIOR, wanted["prior"])
        study.set_user_attr(DEFINITION, wanted["definition"])

    def describe(self, wanted):
        attributes = self.study.user_attrs
        if DEFINITION in attributes:
            self.space = Space(json.loads(attributes[DEFINITION])["space"])
            return {"definition": attributes[DEFINITION], "prior": attributes.get(PRIOR, "")}
        # The study of an Optuna user.
        self.space = self.space_of_trials() if wanted is None else Space(wanted["space"])
        count = len(self.study.directions)
        metrics = self.study.metric_names or ([f"value_{i}" for i in range(count)] if count > 1 else ["value"])
        goals = [direction.name.lower() for direction in self.study.directions]
        return {
            "space": self.space.parameters,
            "objectives": [{"metric": metric, "goal": goal} for metric, goal in zip(metrics, goals, strict=True)],
        }

    def space_of_trials(self):
        distributions = {}
        for trial in self.study.get_trials(deepcopy=False):
            distributions.update(trial.distributions)
        if not distributions:
            raise RefusedError("the study has no trial yet, and no parameters without one", code="not_found")
        space = Space([parameter_of(name, one) for name, one in distributions.items()])
        space.distributions = distributions
        for name in space.choices:
            space.choices[name] = list(distributions[name].choices)
        return space

    def from_optuna(self, params):
        """Values as Stoker has them, or None if the space does not have them."""
        values = {}
        for name, value in params.items():
            distribution = self.space.distributions.get(name)
            if distribution is None:
                return None
            if name in self.space.choices:
                choices = self.space.choices[name]
                place = next((i for i, one in enumerate(choices) if is_same_value(one, value)), None)
                if place is None:
                    return None
                value = self.space.values[name][place]
            elif isinstance(value, bool) or not isinstance(value, int | float) or not distribution._contains(value):
                return None
            values[name] = value
        return values

    def row(self, trial):
        state = STATES[trial.state.name]
        message = trial.user_attrs.get(MESSAGE, "")
        values = list(trial.values) if state == "complete" else []
        if not all(math.isfinite(value) for value in values):
            state, message, values = "failed", f"a value is {values}", []
        rungs = []
        while f"completed_rung_{len(rungs)}" in trial.system_attrs:
            rungs.append(trial.system_attrs[f"completed_rung_{len(rungs)}"])
        return {
            "number": trial.number,
            "state": state,
            "params": self.from_optuna(trial.params),
            "values": values,
            "reports": [
                [step, value if math.isfinite(value) else None] for step, value in trial.intermediate_values.items()
            ],
            "rungs": [rung if math.isfinite(rung) else None for rung in rungs],
            "started": trial.datetime_start.timestamp() if trial.datetime_start else 0,
            "ended": trial.datetime_complete.timestamp() if trial.datetime_complete else 0,
            "origin": trial.user_attrs.get(ORIGIN, "optuna"),
            "message": message,
            "sampler": trial.user_attrs.get(SAMPLER),
            "worker": trial.user_attrs.get(WORKER, ""),
            "attempt": trial.user_attrs.get(ATTEMPT, 0),
            "seeds": trial.user_attrs.get(SEEDS, []),
        }

    def bind(self, request):
        self.study.set_user_attr(FOLDER + request["id"], request["folder"])
        return {}

    def is_bound(self, request):
        return {"is_bound": FOLDER + request["id"] in self.study.user_attrs}

    def set_worker(self, request):
        self.worker = request["worker"]
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state.name != "RUNNING" or trial.user_attrs.get(WORKER) != self.worker:
                continue
            fixed = trial.system_attrs.get("fixed_params", {})
            # The origin is written last, except for what was enqueued with all parameters.
            if ORIGIN not in trial.user_attrs or not fixed.keys() <= trial.params.keys():
                self.give_up(trial.number, fixed, trial.user_attrs.get(ORIGIN))
        return {}

    def read(self, _):
        changed = []
        for trial in self.study.get_trials(deepcopy=False):
            if trial.number in self.finished or trial.state.name == "WAITING":
                continue
            row = self.row(trial)
            text = json.dumps(row)
            if trial.state.is_finished():
                self.finished.add(trial.number)
                self.sent.pop(trial.number, None)
            elif self.sent.get(trial.number) == text:
                continue
            else:
                self.sent[trial.number] = text
            changed.append(row)
        return {"trials": changed}

    def begin(self, request):
        while True:
            trial_id = self.study._pop_waiting_trial_id()
            if trial_id is None and request["only_enqueued"]:
                return {"number": None}
            if trial_id is None:
                trial_id = self.storage.create_new_trial(self.study._study_id, template_trial=self.new_trial())
            elif self.worker:
                self.storage.set_trial_user_attr(trial_id, WORKER, self.worker)
            trial = optuna.trial.Trial(self.study, trial_id)
            fixed = self.storage.get_trial(trial_id).system_attrs.get("fixed_params", {})
            self.begun[trial.number] = (trial, fixed)
            values = self.from_optuna(fixed)
            if values is not None:
                return {"number": trial.number, "fixed": values, "origin": trial.user_attrs.get(ORIGIN, "")}
            self.end({"number": trial.number, "state": "FAIL", "message": "was enqueued outside the space"})

    def new_trial(self, params=None, **attributes):
        """A running trial, which has its worker from the first moment on."""
        return optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            params=params,
            distributions={name: self.space.distributions[name] for name in params or ()},
            user_attrs=attributes | ({WORKER: self.worker} if self.worker else {}),
        )

    def begin_again(self, request):
        attributes = {ORIGIN: request["origin"], ATTEMPT: request["attempt"]}
        template = self.new_trial(self.space.to_optuna(request["params"]), **attributes)
        trial_id = self.storage.create_new_trial(self.study._study_id, template_trial=template)
        return {"number": self.storage.get_trial(trial_id).number}

    def set_point(self, request):
        trial, _ = self.begun[request["number"]]
        self.sampler.values = self.space.to_optuna(request["params"])
        for name in self.sampler.values:
            trial._suggest(name, self.space.distributions[name])
        trial.set_user_attr(ORIGIN, request["origin"])
        if request["sampler"] is not None:
            trial.set_user_attr(SAMPLER, request["sampler"])
        del self.begun[request["number"]]
        return {}

    def trial_id(self, number):
        return self.storage.get_trial_id_from_study_id_trial_number(self.study._study_id, number)

    def report(self, request):
        trial_id = self.trial_id(request["number"])
        value = float("nan") if request["value"] is None else request["value"]
        self.storage.set_trial_intermediate_value(trial_id, request["step"], value)
        known = self.storage.get_trial(trial_id).system_attrs
        for i, rung in enumerate(request["rungs"]):
            if f"completed_rung_{i}" not in known:
                self.storage.set_trial_system_attr(
                    trial_id, f"completed_rung_{i}", float("nan") if rung is None else rung
                )
        return {}

    def set_seeds(self, request):
        self.storage.set_trial_user_attr(self.trial_id(request["number"]), SEEDS, request["seeds"])
        return {}

    def end(self, request):
        number = request["number"]
        if self.begun.pop(number, None) and self.worker:
            self.storage.set_trial_user_attr(self.trial_id(number), WORKER, "")  # nothing to retry
        if request["message"]:
            self.storage.set_trial_user_attr(self.trial_id(number), MESSAGE, request["message"])
        self.study.tell(number, values=request.get("values") or None, state=optuna.trial.TrialState[request["state"]])
        return {}

    def abandon(self):
        """Without its Stoker, what was begun has no point. What was enqueued is enqueued again."""
        for number, (trial, fixed) in list(self.begun.items()):
            self.give_up(number, fixed, trial.user_attrs.get(ORIGIN))

    def give_up(self, number, fixed, origin):
        try:
            if self.worker:
                self.storage.set_trial_user_attr(self.trial_id(number), WORKER, "")
            self.end({"number": number, "state": "FAIL", "message": "Stoker ended while it asked"})
        except Exception:
            return  # another process has ended it, or the storage is gone
        if fixed:
            self.study.enqueue_trial(fixed, user_attrs={ORIGIN: origin} if origin else None)


# ---- Requests --------------------------------------------------------------------------------------------------------


def code_of(error):
    """Whether the same request may succeed later."""
    passing = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ENOTCONN)
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return {"code": "no_space"}
        is_database = type(error).__name__ in ("OperationalError", "InterfaceError")
        if is_database or (isinstance(error, OSError) and error.errno in passing):
            return {"code": "unavailable"}
        error = error.__cause__ or error.__context__
    return {}


def error_of(error):
    if isinstance(error, RefusedError):
        return {"error": str(error), **error.facts}
    missing = re.search(r"No module named '(\w+)", f"{error} {error.__cause__}")
    text = str(error).strip().split("\n")[0] or type(error).__name__
    if missing:
        return {"error": text, "missing": missing.group(1)}
    return {"error": f"{type(error).__name__}: {text}", **code_of(error)}


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Optuna or a plugin prints is no answer
    warnings.simplefilter("ignore")
    operations = {}
    try:
        global optuna
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        proposer = Proposer()
        storage = Storage()
        operations = {
            "check": proposer.check,
            "propose": proposer.propose,
            "again": proposer.again,
            "exists": storage.exists,
            "open": storage.open,
            "bind": storage.bind,
            "is_bound": storage.is_bound,
            "set_worker": storage.set_worker,
            "read": storage.read,
            "begin": storage.begin,
            "begin_again": storage.begin_again,
            "set_point": storage.set_point,
            "report": storage.report,
            "set_seeds": storage.set_seeds,
            "end": storage.end,
        }
        answer = {"optuna": optuna.__version__}
    except ImportError as error:
        answer = error_of(error)
    while True:
        print(json.dumps(answer), file=answers, flush=True)
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            if operations:
                storage.abandon()
            return
        request = json.loads(line)
        try:
            answer = operations[request["op"]](request)
        except Exception as error:
            answer = error_of(error)


main()
