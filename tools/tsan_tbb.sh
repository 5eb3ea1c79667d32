#!/bin/bash
# tools/tsan_tbb.sh: builds Debian's oneTBB with ThreadSanitizer into build/tbb-tsan/install, for the preset "tsan".
#
# Debian's own libtbb gives ThreadSanitizer false reports; this one gives none and lets it see real races. The source package is fetched
# with a private apt configuration: the machine's package sources stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD/build/tbb-tsan
if [ -f "$top/install/lib/cmake/TBB/TBBConfig.cmake" ]; then
  echo "libtbb for ThreadSanitizer: already in build/tbb-tsan/install"
  exit 0
fi

version=$(dpkg-query -W -f '${source:Version}' libtbb-dev)
sources=$top/apt/sources
mkdir -p "$sources" "$top/apt/lists/partial" "$top/apt/cache/archives/partial"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The machine's own Debian mirrors, as source entries.
mirrors=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | sort -u | grep -E '^[^ ]*debian' || true)
[ -n "$mirrors" ] || mirrors="http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME")"
while read -r site release; do
  echo "deb-src [signed-by=$keyring] $site $release main"
done <<<"$mirrors" >"$sources/debian.list"

apt_options=(
  -o Dir::Etc::SourceList=/dev/null
  -o Dir::Etc::SourceParts="$sources"
  -o Dir::State::Lists="$top/apt/lists"
  -o Dir::Cache="$top/apt/cache"
  -o APT::Sandbox::User="$(id -un)"
)
echo "libtbb for ThreadSanitizer: fetching the source of oneTBB $version"
apt-get "${apt_options[@]}" -q update
cd "$top"
rm -rf source
mkdir source
(cd source && apt-get "${apt_options[@]}" -q --download-only source "onetbb=$version" && tar xf onetbb_*.orig.tar.*)
tree=$(find source -mindepth 1 -maxdepth 1 -type d | head -n 1)
[ -n "$tree" ] || {
  echo "the source package of oneTBB holds no tree" >&2
  exit 1
}
cmake -S "$tree" -B "$top/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX="$top/install" \
  -DCMAKE_INSTALL_LIBDIR=lib -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DCMAKE_CXX_FLAGS=-Wno-tsan
cmake --build "$top/build"
cmake --install "$top/build" >/dev/null
rm -rf "$top/apt" "$top/build" "$top/source"
echo "libtbb for ThreadSanitizer: installed in build/tbb-tsan/install"
