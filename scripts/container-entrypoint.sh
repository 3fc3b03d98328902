#!/bin/sh
# What is called everloop in the image. Secrets by file, as other images have them: for NAME_FILE=/run/secrets/x, NAME is what
# that file holds; here, so that `docker exec` has them too. Then everloop, in the place of this shell, so that a stop reaches it.
set -eu

refuse() {
    echo "everloop: $1" >&2
    exit 2
}

for name in $(env | sed -n 's/^\([A-Z0-9_]*\)_FILE=.*/\1/p'); do
    case "$name" in
    EVERLOOP_PROVIDERS__*__API_KEY | EVERLOOP_NET__CA) continue ;; # settings of everloop's own, which end so
    EVERLOOP_* | *_API_KEY | PGPASSWORD | HF_TOKEN | GITHUB_TOKEN | GITHUB_MODELS_TOKEN | AWS_SECRET_ACCESS_KEY | AWS_BEARER_TOKEN_BEDROCK) ;;
    *) continue ;;                                                 # somebody else's, as SSL_CERT_FILE
    esac
    eval "file=\$${name}_FILE given=\${$name-}"
    [ -z "$given" ] || refuse "$name and ${name}_FILE are both set: set one of them"
    [ -f "$file" ] && [ -r "$file" ] || refuse "${name}_FILE is $file, which cannot be read: mount the secret there, readable by user $(id -u)"
    export "$name=$(cat "$file")"
    unset "${name}_FILE"
done
exec /app/venv/bin/everloop "$@"
