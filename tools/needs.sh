#!/bin/sh
# Gets what some tests need and pip cannot bring, where this machine lets it: Chromium, curl, jq, Node.js, a Redis server,
# Podman with runc and a static busybox from the system's packages (as root, with apt), and a Python 3.12 by uv. It never
# fails: a test whose need is not met is skipped, and says how to get it. What is here already is not touched, so that a
# second run does nothing.
set -u
cd "$(dirname "$0")/.."

say() { printf 'needs: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

has_chromium() {
    has chromium || has chromium-browser || has google-chrome || has google-chrome-stable || has chrome ||
        ls "${XDG_CACHE_HOME:-$HOME/.cache}"/ms-playwright/chromium*/chrome-*/* >/dev/null 2>&1
}

packages=""
has_chromium || packages="$packages chromium"
has curl || packages="$packages curl"
has jq || packages="$packages jq"
has node || packages="$packages nodejs"
has npm || packages="$packages npm"
for tool in podman runc; do
    has "$tool" || [ -x "/usr/sbin/$tool" ] || packages="$packages $tool"
done
has nft || [ -x /usr/sbin/nft ] || packages="$packages nftables"
has ip || [ -x /usr/sbin/ip ] || packages="$packages iproute2"
has busybox || packages="$packages busybox-static"
has redis-server || packages="$packages redis-server"

install() {
    timeout 120 apt-get update -qq >/dev/null 2>&1
    # One by one: a package that this release lacks must not keep the others away.
    for package in $packages; do
        say "installing $package"
        spare=--no-install-recommends
        [ "$package" != podman ] || spare=--install-recommends # its network and user tools are only recommended
        DEBIAN_FRONTEND=noninteractive timeout 900 apt-get install -y -qq $spare "$package" \
            </dev/null >/dev/null 2>&1 || say "  $package cannot be installed here"
    done
}

if [ -n "$packages" ]; then
    if [ "$(id -u)" = 0 ] && has apt-get; then
        install
    else
        say "missing, and only root with apt installs it here:$packages"
    fi
fi

release=$(node --version 2>/dev/null)
major=${release#v}
major=${major%%.*}
[ "${major:-20}" -ge 20 ] || say "Node.js $release is here, and the coding CLIs need 20 or newer: from nodejs.org"

uv=.venv/bin/uv
[ -x "$uv" ] || uv=uv
if ! has "$uv"; then
    say "no uv, which makes the Python 3.12 of the harness openhands: pip install uv"
elif ! "$uv" python find --quiet 3.12 >/dev/null 2>&1 &&
    ! ls "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12 >/dev/null 2>&1; then
    say "installing Python 3.12"
    timeout 600 "$uv" python install --quiet 3.12 >/dev/null 2>&1 || say "  Python 3.12 cannot be installed here"
fi
exit 0
