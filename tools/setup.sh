#!/bin/sh
# Makes the virtual environment at $1 hold exactly what requirements.lock says, plus this repository, editable.
# PYTHON is the interpreter to make it with. ORCHARD_SETUP_PIP=1 leaves uv out, for a machine where it does not run.
set -eu
venv=${1:?usage: tools/setup.sh VENV}
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"

say() { printf 'set-up: %s\n' "$*" >&2; }
fail() { say "$1"; say "  to mend: $2"; exit 1; }

[ -n "${PYTHON:-}" ] || fail "no Python 3.11 or newer on PATH" "install one (Debian: apt install python3 python3-venv), or run make PYTHON=/path/to/python3"

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "$PYTHON is not a Python 3.11 or newer" "run make PYTHON=/path/to/python3, or leave PYTHON out to use the one on PATH"

if [ ! -x "$venv/bin/python" ]; then
    say "making $venv with $PYTHON"
    "$PYTHON" -m venv "$venv" >/dev/null 2>&1 || {
        rm -rf "$venv"
        if command -v uv >/dev/null 2>&1; then
            uv venv --quiet --seed --python "$PYTHON" "$venv"
        elif "$PYTHON" -m virtualenv --version >/dev/null 2>&1; then
            "$PYTHON" -m virtualenv --quiet "$venv"
        else
            fail "$PYTHON cannot make a virtual environment" "apt install python3-venv, or pip install virtualenv"
        fi
    }
fi

"$venv/bin/python" -m pip --version >/dev/null 2>&1 ||
    fail "$venv has no pip: it is half made, or another tool made it" "make clean, then the same command again"

projects=".:$(ls -d plugins/*/pyproject.toml 2>/dev/null | xargs -r -n 1 dirname | paste -sd: -)"
editables() { echo "$projects" | tr ':' '\n' | sed -e '/^$/d' -e "s|^|-e |"; }

locked_by_uv() {
    [ -z "${ORCHARD_SETUP_PIP:-}" ] || { echo "ORCHARD_SETUP_PIP is set" >"$venv/uv.log"; return 1; }
    version=$(sed -n 's/^uv==\([^ ;\\]*\).*/\1/p' requirements.lock)
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$version" 2>"$venv/uv.log" || return 1
    # uv's own certificates first; then the machine's, for a network whose proxy signs with its own.
    for certs in "" --system-certs; do
        # shellcheck disable=SC2086
        "$venv/bin/uv" pip install --quiet $certs --python "$venv/bin/python" -r requirements.lock \
            2>"$venv/uv.log" && return
    done
    return 1
}

say "installing the locked packages"
if locked_by_uv; then
    say "building the in-sandbox agent and installing this repository"
    # shellcheck disable=SC2046,SC2086
    "$venv/bin/uv" pip install --quiet $certs --python "$venv/bin/python" --no-deps --build-constraints requirements.lock $(editables)
else
    say "without uv (see $venv/uv.log): using pip, which takes longer"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.lock ||
        fail "the packages cannot be installed" "see pip's words above; it needs a package index (PIP_INDEX_URL, pip config)"
    # shellcheck disable=SC2046
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps $(editables)
fi
say "done"
