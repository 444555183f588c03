#!/bin/sh
# clang-format over every source: --write changes the files, --check names those it would change.
set -eu
cd "$(dirname "$0")/../.."
clang-format --version >/dev/null

sources() {
  find include src apps tests fuzz examples bench \
    \( -name '*.hpp' -o -name '*.cpp' \) -type f 2>/dev/null | sort
}

case ${1:-} in
  --write)
    sources | xargs clang-format -i --style=file
    ;;
  --check)
    # Compares results: what --dry-run reports includes changes that change nothing. A copy of all
    # files takes one process, where one for each file would take longer than the work.
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    sources | xargs tar -cf - .clang-format | tar -xf - -C "$copy"
    (cd "$copy" && sources | xargs clang-format -i --style=file)
    wrong=$(sources | while read -r file; do cmp -s "$file" "$copy/$file" || echo "$file"; done)
    [ -z "$wrong" ] || {
      printf 'These files need ./dev format:\n%s\n' "$wrong"
      exit 1
    }
    ;;
  *)
    echo "usage: $0 --write | --check" >&2
    exit 2
    ;;
esac
