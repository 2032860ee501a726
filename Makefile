# Every target does its own set-up; Go, make and Node.js are all that has to be there.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# Where `make dist` stages the function app, and for which machine it builds. Azure runs linux/amd64.
DIST ?= dist
GOOS ?= linux
GOARCH ?= amd64
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

# The Bicep CLI. `az bicep install` puts it at ~/.azure/bin/bicep.
BICEP ?= bicep

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
LDFLAGS := -s -w -X main.release=$(VERSION)

.PHONY: help
help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## run the whole loop with everything embedded; Ctrl-C ends it
	@go build -o bin/feedscale ./functions/cmd/feedscale
	@exec ./bin/feedscale demo

.PHONY: test
test: lint ## pass every test: format, vet, staticcheck, unit and end-to-end tests under the race detector
	go test -race -timeout 12m ./...

.PHONY: start
start: ## run the staged app under `func start`; needs Azure Functions Core Tools, Azurite and `feedscale emulate`
	@command -v func >/dev/null || { echo "Azure Functions Core Tools are missing: npm install --global azure-functions-core-tools@4 --unsafe-perm true, or https://aka.ms/azfunc-install" >&2; exit 1; }
	@$(MAKE) --no-print-directory dist GOOS= GOARCH=
	cd $(DIST) && func start

.PHONY: lint
lint: ## check format, go vet, staticcheck and the module files
	@unformatted=$$(gofmt -l functions infra pkg); test -z "$$unformatted" || { echo "not formatted, run gofmt -w: $$unformatted"; exit 1; }
	go vet ./...
	go vet -tags azuretypes ./infra/check
	go vet -tags browser ./functions/dashboard
	go mod tidy -diff
	go run $(STATICCHECK) ./...

.PHONY: browser
browser: ## test the dashboard in Chromium, which has to be installed (CHROMIUM names it); pictures go to bin/dashboard
	go test -count 1 -tags browser ./functions/dashboard -screenshots $(CURDIR)/bin/dashboard

.PHONY: interop
interop: ## run the official Java and Python clients against the stand-ins, KEDA against feedscale, decisions against the HPA's own code, and infra/ against Azure's types; needs a JDK, Maven and Python
	pkg/emulator/interop/run-cosmos.sh
	pkg/emulator/interop/run-servicebus.sh
	pkg/emulator/interop/run-hpa.sh
	pkg/emulator/interop/run-keda.sh
	go test -count 1 -tags azuretypes ./infra/check

.PHONY: infra
infra: ## compile, lint and format-check infra/ with the Bicep compiler; needs the Bicep CLI
	@infra/check/compile.sh $(BICEP)

.PHONY: bench
bench: ## measure a tick against a bare HTTP loop
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/handler ./functions
	@go build -o bin/benchmark ./pkg/benchmark
	@./bin/benchmark bin/handler

.PHONY: chaos
chaos: ## run a thousand processors that throw, hang, rewind, stop or do fine: no stall is missed, and none invented
	go test -count 1 -timeout 60m -run TestNoStallIsMissedAndNoneIsInvented ./pkg/poller -runs 1000

SEED ?= 1
DURATION ?= 1h

.PHONY: chaos-process
chaos-process: ## run handlers and `feedscale run` while what they use fails and they are killed; SEED=1 TICKS=10000
	go test -count 1 -timeout 6h -v -run TestEverythingIsRightAgainWhateverFailedAndWhoeverWasKilled ./functions -seed $(SEED) -ticks $(or $(TICKS),10000)

.PHONY: soak
soak: ## run handlers under faults for DURATION=1h, and write what one of them holds to bin/soak.md
	go test -count 1 -timeout 0 -v -run TestNothingGrowsWhereThingsGoWrongForLong ./functions -seed $(SEED) -soak $(DURATION) -page $(CURDIR)/bin/soak.md

.PHONY: cover
cover: ## write coverage.html
	go test -timeout 12m -coverpkg ./... -coverprofile coverage.out ./...
	go tool cover -html coverage.out -o coverage.html
	@go tool cover -func coverage.out | tail -1

.PHONY: dist
dist: ## stage the function app in dist/, for func start and zip deployment
	@rm -rf $(DIST)
	@mkdir -p $(DIST)
	CGO_ENABLED=0 GOOS=$(GOOS) GOARCH=$(GOARCH) go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(DIST)/handler ./functions
	@cp host.json $(DIST)/
	@cp local.settings.sample.json $(DIST)/local.settings.json
	@if test -f processors.yaml; then cp processors.yaml $(DIST)/; fi
	@for f in functions/*/function.json; do d=$(DIST)/$$(basename $$(dirname $$f)); mkdir -p $$d && cp $$f $$d/; done
	@echo "staged in $(DIST)"
