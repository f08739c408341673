"""Each plugin is loaded on its own; a broken one is listed with its cause and hurts nobody else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from textwrap import dedent

import pytest

from orchard_core.errors import (
    ConfigError,
    DuplicatePlugin,
    PluginApiMismatch,
    PluginError,
    PluginImportFailed,
    PluginNotInstalled,
    UnknownPlugin,
)
from orchard_core.plugins.catalog import Fault
from orchard_core.plugins.factory import find, make
from orchard_core.plugins.manager import GROUP, Plugins
from orchard_core.types.plugin import PluginKind

HARNESS = PluginKind.HARNESS
GOOD = """
    from orchard_core import Descriptor, hookimpl
    @hookimpl
    def orchard_harnesses():
        return [Descriptor(name="{name}", summary="A harness", factory=dict{extra})]
"""

Install = Callable[..., None]
Load = Callable[..., Plugins]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("plug_")]:
        del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    """Write a real installed distribution: a module and its dist-info."""

    def write(name: str, code: str, version: str = "1.2.3") -> None:
        module = f"plug_{name.replace('-', '_')}"
        (site / f"{module}.py").write_text(dedent(code))
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}\n")

    return write


@pytest.fixture
def load(site: Path) -> Load:
    def build(**environ: str) -> Plugins:
        found = [
            entry
            for dist in distributions(path=[str(site)])
            for entry in dist.entry_points.select(group=GROUP)
        ]
        return Plugins(found, environ)

    return build


def good(name: str, extra: str = "") -> str:
    return GOOD.format(name=name, extra=extra)


def test_a_good_plugin_is_offered_with_its_distribution_and_version(install: Install, load: Load) -> None:
    install("alpha", good("mine"))
    offer = load().catalog.offers[HARNESS, "mine"]
    assert (offer.source.distribution, offer.source.version) == ("alpha", "1.2.3")
    assert make(offer, None, {}) == {}


def test_a_plugin_that_fails_to_import_is_listed_and_the_rest_works(install: Install, load: Load) -> None:
    install("alpha", "import module_that_is_not_there")
    install("beta", good("mine"))
    catalog = load().catalog
    assert (HARNESS, "mine") in catalog.offers
    (broken,) = catalog.broken
    assert broken.fault is Fault.IMPORT
    assert isinstance(broken.error, PluginImportFailed)
    assert "module_that_is_not_there" in str(broken.error)
    assert "pip install --force-reinstall alpha" in broken.error.hint


def test_a_plugin_that_exits_on_import_does_not_end_the_program(install: Install, load: Load) -> None:
    install("alpha", "raise SystemExit(3)")
    (broken,) = load().catalog.broken
    assert broken.fault is Fault.IMPORT


def test_a_half_registered_plugin_is_rolled_back_whole(install: Install, load: Load) -> None:
    install(
        "alpha",
        good("mine")
        + """
    @hookimpl
    def orchard_tasksets():
        raise RuntimeError("no data")
    @hookimpl
    def orchard_on_event(event):
        pass
""",
    )
    plugins = load()
    assert (HARNESS, "mine") not in plugins.catalog.offers
    assert plugins.observers() == []
    assert "no data" in str(plugins.catalog.broken[0].error)


def test_a_hook_with_a_wrong_signature_is_named(install: Install, load: Load) -> None:
    install(
        "alpha",
        """
    from orchard_core import hookimpl
    @hookimpl
    def orchard_harnesses(wrong):
        return []
    """,
    )
    (broken,) = load().catalog.broken
    assert broken.fault is Fault.REGISTRATION
    assert "orchard_harnesses" in str(broken.error)


def test_another_api_version_is_a_message_of_its_own_with_the_right_upgrade(
    install: Install, load: Load
) -> None:
    install("newer", good("ahead", ", api_version=99"))
    install("older", good("behind", ", api_version=0"))
    newer, older = load().catalog.broken
    assert newer.fault is older.fault is Fault.API
    assert isinstance(newer.error, PluginApiMismatch)
    assert newer.error.hint == "pip install --upgrade orchard-core"
    assert older.error.hint == "pip install --upgrade older"


def test_a_name_offered_twice_keeps_the_first_and_names_both(install: Install, load: Load) -> None:
    install("alpha", good("mine"))
    install("beta", good("mine"))
    catalog = load().catalog
    assert catalog.offers[HARNESS, "mine"].source.distribution == "alpha"
    (broken,) = catalog.broken
    assert broken.fault is Fault.DUPLICATE
    assert isinstance(broken.error, DuplicatePlugin)
    assert "alpha" in broken.error.message
    assert "beta" in broken.error.message


def test_a_plugin_may_not_take_a_built_in_name(install: Install, load: Load) -> None:
    install("alpha", good("local").replace("orchard_harnesses", "orchard_sandbox_providers"))
    catalog = load().catalog
    assert catalog.offers[PluginKind.SANDBOX, "local"].source.plugin == "builtin"
    assert catalog.broken[0].fault is Fault.DUPLICATE


def test_an_unknown_name_says_what_was_perhaps_meant(install: Install, load: Load) -> None:
    install("alpha", good("mine"))
    with pytest.raises(UnknownPlugin, match="did you mean 'mine'") as caught:
        find(load().catalog, HARNESS, "mien")
    assert "orchard plugins" in caught.value.hint


def test_a_known_name_that_is_not_installed_says_what_brings_it(load: Load) -> None:
    with pytest.raises(PluginNotInstalled) as caught:
        find(load().catalog, HARNESS, "react")
    assert caught.value.hint == "pip install 'orchard-harness-react'"


def test_a_broken_plugin_is_not_reported_as_unknown(install: Install, load: Load) -> None:
    install("orchard-harness-react", "import module_that_is_not_there")
    with pytest.raises(PluginImportFailed):
        find(load().catalog, HARNESS, "react")


def test_a_factory_that_fails_to_import_names_the_distribution(install: Install, load: Load) -> None:
    install("alpha", good("mine").replace("factory=dict", 'factory="module_that_is_not_there:X"'))
    with pytest.raises(PluginImportFailed, match="alpha"):
        make(load().catalog.offers[HARNESS, "mine"], None, {})


def test_a_missing_extra_names_the_requirement(install: Install, load: Load) -> None:
    install("alpha", good("mine", ', requires=("module_that_is_not_there",), extra="alpha[more]"'))
    with pytest.raises(PluginNotInstalled) as caught:
        make(load().catalog.offers[HARNESS, "mine"], None, {})
    assert caught.value.hint == "pip install 'alpha[more]'"


def test_options_are_validated_before_the_factory_runs(install: Install, load: Load) -> None:
    install(
        "alpha",
        """
    from pydantic import BaseModel
    from orchard_core import Descriptor, hookimpl
    class Config(BaseModel):
        count: int = 1
    @hookimpl
    def orchard_harnesses():
        return [
            Descriptor(name="counts", summary="", factory=lambda c: c.count, config=Config, argument="count"),
            Descriptor(name="plain", summary="", factory=dict),
        ]
    """,
    )
    offers = load().catalog.offers
    assert make(offers[HARNESS, "counts"], "3", {}) == 3
    with pytest.raises(
        ConfigError, match="option 'count' of harness counts should be a valid integer"
    ) as caught:
        make(offers[HARNESS, "counts"], "many", {})
    assert "count" in caught.value.hint
    with pytest.raises(ConfigError, match="takes nothing after its name"):
        make(offers[HARNESS, "plain"], "3", {})
    with pytest.raises(ConfigError, match="takes no options"):
        make(offers[HARNESS, "plain"], None, {"x": 1})


def test_a_name_that_wants_an_argument_says_how_to_write_it(install: Install, load: Load) -> None:
    install(
        "alpha",
        """
    from pydantic import BaseModel
    from orchard_core import Descriptor, hookimpl
    class Config(BaseModel):
        path: str
    @hookimpl
    def orchard_harnesses():
        return [Descriptor(name="reads", summary="", factory=dict, config=Config, argument="path")]
    """,
    )
    with pytest.raises(ConfigError, match="needs a path after its name") as caught:
        make(load().catalog.offers[HARNESS, "reads"], None, {})
    assert caught.value.hint == "write reads:PATH"


def test_an_environment_variable_restricts_what_is_loaded(install: Install, load: Load) -> None:
    install("alpha", good("one"))
    install("beta", "raise RuntimeError('imported')")
    catalog = load(ORCHARD_PLUGINS="alpha").catalog
    assert (HARNESS, "one") in catalog.offers
    assert catalog.broken == ()
    assert [source.plugin for source in catalog.skipped] == ["beta"]


def test_an_environment_variable_makes_a_broken_plugin_fatal(install: Install, load: Load) -> None:
    install("alpha", "import module_that_is_not_there")
    with pytest.raises(PluginError, match="alpha"):
        load(ORCHARD_PLUGINS_STRICT="1")


def test_names_of_plugins_have_one_form(install: Install, load: Load) -> None:
    install("alpha", good("Not OK"))
    assert "[a-z0-9]" in str(load().catalog.broken[0].error)
