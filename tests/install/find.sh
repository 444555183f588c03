# shellcheck shell=sh disable=SC2154
# Builds and runs the consumer against the Latchkey installed in $prefix, with find_package and with
# pkg-config. Sourced by the tests with $source, $work, $prefix and $cxx set.

echo "-- find_package"
cmake -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx"
cmake --build "$work/consumer"
"$work/consumer/consumer"

echo "-- pkg-config"
libdir=$(dirname "$(find "$prefix" -name latchkey.pc)")
export PKG_CONFIG_PATH="$libdir"
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$source/tests/install/consumer/main.cpp" -o "$work/by_pkg_config" \
  $(pkg-config --cflags --libs latchkey)
LD_LIBRARY_PATH="$(dirname "$libdir")" "$work/by_pkg_config"
