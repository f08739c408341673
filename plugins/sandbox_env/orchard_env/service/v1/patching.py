"""A patch as a script for the sandbox's own tools: all of it or none, and nothing outside the directory.

`git apply` sees to both by itself, and so does GNU `patch`; BusyBox's follows `..` and links, so for `patch`
the names are looked at first. Any line that may name a file counts, though it may be a line of a file: what
is refused so is rare, what BusyBox takes for a name is not ours to know.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_NAMED = re.compile(r"^(?:---|\+\+\+) ([^\t\r\n]+)", re.MULTILINE)
_LINK = re.compile(r"^(?:new file|deleted file|new|old) mode 120000", re.MULTILINE)
_OUTSIDE, _MAKES_LINKS = 126, 125

APPLY = """\
outside() { echo "$1 leads out of the directory" >&2; code=126; }
links() { echo "it makes or changes a link" >&2; code=125; }
if command -v git >/dev/null 2>&1; then
  git apply --whitespace=nowarn "$ORCHARD_PATCH"
  code=$?
elif command -v patch >/dev/null 2>&1; then
  code=0
%s
  if [ $code = 0 ]; then
    said=$(patch -p1 -f --dry-run -i "$ORCHARD_PATCH" 2>&1 </dev/null)
    code=$?
    if [ $code = 0 ]; then
      patch -p1 -f -i "$ORCHARD_PATCH" </dev/null
      code=$?
    else
      printf '%%s\\n' "$said"
    fi
  fi
else
  code=127
fi
rm -f "$ORCHARD_PATCH"
exit $code
"""

_WORDS = {
    127: "the sandbox's image has neither git nor patch",
    _OUTSIDE: "the patch would change a file outside the directory that it is applied in",
    _MAKES_LINKS: "the patch makes or changes a link, which needs git in the sandbox's image",
}


def script_of(patch: str) -> str:
    """What applies the patch that lies at $ORCHARD_PATCH, in the working directory."""
    ways: dict[str, None] = {}
    checks: list[str] = ["  links"] if _LINK.search(patch) else []
    for name in dict.fromkeys(_names(patch)):
        if ".." in name.split("/"):
            checks.append(f"  outside {shlex.quote(name)}")
        ways |= dict.fromkeys(_ways(name))
    checks += [f"  [ ! -L {way} ] || outside {way}" for way in map(shlex.quote, ways)]
    return APPLY % "\n".join(checks)


def why_not(exit_code: object) -> str | None:
    """What an exit code of the script says by itself."""
    return _WORDS.get(exit_code) if isinstance(exit_code, int) else None


def _names(patch: str) -> Iterator[str]:
    """What `-p1` leaves of each line that may name a file."""
    for found in _NAMED.finditer(patch):
        _, slash, name = found[1].replace("\0", "").partition("/")
        if slash and found[1] != "/dev/null":
            yield re.sub("/+", "/", name.lstrip("/"))


def _ways(name: str) -> Iterator[str]:
    """The directories on the way to a file."""
    parts = name.split("/")[:-1]
    return ("./" + "/".join(parts[: length + 1]) for length in range(len(parts)))
