"""Writes importances.json: trials on the problems of bench/sweep_problems.py, and how Optuna weighs their parameters (its default,
PED-ANOVA). python make_importances.py importances.json"""

import json
import sys
import warnings
from pathlib import Path

import optuna

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from sweep_problems import FUNCTIONS, SPACES

TRIALS = 80


def conditional(params):
    """A momentum that only one optimizer has."""
    if params["kind"] == "sgd":
        return 0.2 + (params["momentum"] - 0.9) ** 2 + 0.01 * params["unused"]
    return 0.25 + 0.1 * (params["layers"] - 3) ** 2


PROBLEMS = {name: (FUNCTIONS[name], SPACES[name]) for name in FUNCTIONS}
PROBLEMS["conditional"] = (
    conditional,
    {
        "kind": ["sgd", "adam", "lion"],
        "momentum": {"min": 0.5, "max": 0.99, "when": {"kind": "sgd"}},
        "layers": {"min": 1, "max": 64, "log": True, "when": {"kind": ["adam", "lion"]}},
        "unused": {"min": 0, "max": 1, "step": 0.125},
    },
)


def is_whole(domain):
    return (
        all(isinstance(domain[key], int) for key in ("min", "max"))
        and domain.get("type") != "float"
        and "step" not in domain
    )


def distribution(domain):
    if isinstance(domain, list):
        return optuna.distributions.CategoricalDistribution(domain)
    if is_whole(domain):
        return optuna.distributions.IntDistribution(domain["min"], domain["max"], log=domain.get("log", False))
    return optuna.distributions.FloatDistribution(
        domain["min"], domain["max"], log=domain.get("log", False), step=domain.get("step")
    )


def is_active(domain, params):
    when = domain.get("when", {}) if isinstance(domain, dict) else {}
    return all(params[name] in (values if isinstance(values, list) else [values]) for name, values in when.items())


def suggest(trial, space):
    params = {}
    for name, domain in space.items():
        if is_active(domain, params):
            value = trial._suggest(name, distribution(domain))
            params[name] = float(f"{value:.6g}") if isinstance(value, float) else value
    return params


def importances(function, space, goal):
    sign = 1 if goal == "minimize" else -1
    searched = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=7), direction=goal)
    trials = []

    def objective(trial):
        params = suggest(trial, space)
        value = float(f"{sign * function(params):.8g}")
        trials.append([params, value])
        return value

    searched.optimize(objective, n_trials=TRIALS)
    study = optuna.create_study(direction=goal)
    for params, value in trials:
        distributions = {name: distribution(space[name]) for name in params}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
    return trials, optuna.importance.get_param_importances(study)


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    rows = []
    for name, (function, space) in PROBLEMS.items():
        goal = "maximize" if name in ("hartmann6", "conditional") else "minimize"
        trials, weights = importances(function, space, goal)
        sweep = {"name": name, "space": space, "objectives": {"value": goal}}
        rows.append({"sweep": sweep, "importances": weights, "trials": trials})
        print(name, {key: round(weight, 3) for key, weight in weights.items()})
    lines = ",\n".join(json.dumps(row) for row in rows)
    Path(sys.argv[1]).write_text(f'{{"optuna": "{optuna.__version__}", "problems": [\n{lines}\n]}}\n')


main()
