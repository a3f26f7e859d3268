#!/bin/bash
# Stands in for uv: "uv run [options] PROGRAM ..." in the stack's own environment, which must not be rebuilt.
# "coverage run [options] SCRIPT ..." runs the script alone: what it covers is no evidence here.
set -eu
python=@PYTHON@
if [[ "${1:-}" != run ]]; then
    echo "uv stand-in: only 'uv run' is known, not 'uv $*'" >&2
    exit 2
fi
shift
while [[ "${1:-}" == -?* ]]; do
    case $1 in
        --extra | --group | --project | --directory | --python | --with | -p) shift 2 ;;
        *) shift ;;
    esac
done
if [[ "${1:-}" == coverage && "${2:-}" == run ]]; then
    shift 2
    while [[ "${1:-}" == -?* ]]; do shift; done
fi
case ${1:-} in
    *.py | -) exec "$python" "$@" ;;
    python | python3) exec "$python" "${@:2}" ;;
    *) exec "$@" ;;
esac
