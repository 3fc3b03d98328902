#!/bin/sh
# Secrets by file, as other images have them: for NAME_FILE=/run/secrets/x, NAME is what that file holds. Then everloop, in the
# place of this shell, so that a stop reaches it.
set -eu
names=$(env | sed -n 's/^\(EVERLOOP_[A-Z0-9_]*\|[A-Z0-9_]*_API_KEY\|PGPASSWORD\)_FILE=.*/\1/p')
for name in $names; do
    case "$name" in *__CA | *__API_KEY) continue ;; esac # settings of everloop's own, which end so
    eval "file=\$${name}_FILE"
    if [ ! -r "$file" ]; then
        echo "everloop: ${name}_FILE is $file, which cannot be read: mount the secret there, readable by user $(id -u)" >&2
        exit 2
    fi
    export "$name=$(cat "$file")"
    unset "${name}_FILE"
done
exec everloop "$@"
