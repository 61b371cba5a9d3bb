"""A site profile of a user, for tests of what a site sets for caches."""

from pathlib import Path


def site_with_caches(folder: Path, path: str, settings: str) -> dict[str, object]:
    """Writes the profile of the site "here", which all hosts belong to. Its caches are in the folder `path`, which may name
    variables, and have further settings ("quota: 3MB"). Returns the environment for it: `folder` is the home."""
    sites = folder / "config/stoker/sites"
    sites.mkdir(parents=True, exist_ok=True)
    (sites / "here.yaml").write_text(
        "name: here\nwhat: a test\nsources: {page: {url: 'https://example.org', date: 2026-01-01}}\n"
        f"detect: {{hosts: ['*'], from: page}}\nstorage: {{cache: {{path: '{path}', from: page, {settings}}}}}\n"
    )
    return {"XDG_CONFIG_HOME": folder / "config", "HOME": folder, "STOKER_CACHE": None}
