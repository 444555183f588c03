#!/bin/sh
# Builds Latchkey inside another project, as a static library, then installs it from there:
# subproject.sh SOURCE BUILD WORK CXX
set -eu
source=$1 work=$3 cxx=$4
prefix=$work/prefix

rm -rf "$work"
mkdir -p "$work"
# With the release preset's flags, so that a compiler cache serves both.
cmake -S "$source/tests/install/subproject" -B "$work/build" -G Ninja \
  -DLATCHKEY_SOURCE="$source" -DLATCHKEY_UNITY=ON -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG' \
  "-DCMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true)"
cmake --build "$work/build" -j 2
"$work/build/consumer"
"$work/build/server_consumer"
cmake --install "$work/build" --prefix "$prefix" >/dev/null

. "$source/tests/install/find.sh"
